//! The checks. Where possible, each check tries the operation instead of inferring support.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use udccp::blocking::{Connection, Endpoint, Listener};
use udccp::{IoInfo, Options, ServiceCode};

use super::check::Check;
use crate::about::About;

/// DCCP over UDP, and what makes it faster.
pub(super) fn sockets() -> Vec<Check> {
    let mut checks = vec![loopback(false), loopback(true)];
    checks.extend(offloads());
    checks.push(ecn());
    checks
}

/// Programs that some work needs.
pub(super) fn tools() -> [Check; 3] {
    [
        tool("tshark", "checking packets with a second decoder", "tshark"),
        tool("tcpdump", "capturing packets", "tcpdump"),
        tool("python3", "the Python package", "python3"),
    ]
}

/// Kernel and processors in one line.
pub(super) fn system() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = About::new().kernel.unwrap_or_else(|| std::env::consts::OS.to_owned());
    format!("{kernel}, {cores} core(s)")
}

/// Opens a connection over the loopback interface.
fn loopback(v6: bool) -> Check {
    let check = if v6 {
        Check::new("DCCP over UDP, IPv6", "peers that have IPv6 addresses")
    } else {
        Check::new("DCCP over UDP, IPv4", "everything").essential()
    };
    match connect_to_ourselves(v6) {
        Ok(()) => check.ok("a connection over loopback carries data"),
        Err(e) if v6 => {
            check.missing(e.to_string(), "enable IPv6 (net.ipv6.conf.all.disable_ipv6)")
        }
        Err(e) => check.missing(e.to_string(), "allow UDP on the loopback interface"),
    }
}

fn connect_to_ourselves(v6: bool) -> Result<(), udccp::Error> {
    let service = ServiceCode(u32::from_be_bytes(*b"doct"));
    let limit = Some(Duration::from_secs(3));
    let listener = Listener::bind(localhost(v6), service)?;
    let peer = listener.local_addr();
    let client = Connection::connect_with(peer, service, &Options::default(), limit)?;
    let server = listener.accept_within(limit)?;
    server.set_read_timeout(limit);
    client.send("hello")?;
    server.recv()?;
    client.abort();
    Ok(())
}

pub(super) fn localhost(v6: bool) -> SocketAddr {
    if v6 { ([0, 0, 0, 0, 0, 0, 0, 1], 0).into() } else { ([127, 0, 0, 1], 0).into() }
}

/// Checks segmentation of sent packets and merging of received ones.
fn offloads() -> [Check; 2] {
    let gso = Check::new("UDP GSO", "sending many packets with one call");
    let gro = Check::new("UDP GRO", "receiving many packets with one call");
    let kernel = "Linux 4.18 and newer have it; without it every packet costs a system call";
    let Ok(endpoint) = Endpoint::bind(localhost(false)) else {
        return [gso.missing("no UDP socket", kernel), gro.missing("no UDP socket", kernel)];
    };
    let IoInfo { max_gso_segments, gro_segments, .. } = endpoint.io_info();
    [
        if max_gso_segments > 1 {
            gso.ok(format!("{max_gso_segments} packets in one call"))
        } else {
            gso.limited("a packet in a call", kernel)
        },
        if gro_segments > 1 {
            gro.ok(format!("{gro_segments} packets in one buffer"))
        } else {
            gro.limited("a packet in a buffer", kernel)
        },
    ]
}

/// Checks whether the ECN mark of a sent packet can be read by the receiver.
fn ecn() -> Check {
    let check = Check::new("ECN marks", "learning of congestion before packets are lost");
    match udccp::probe_ecn(localhost(false)) {
        Ok(true) => check.ok("set and read on UDP packets"),
        Ok(false) => check.missing(
            "marks do not arrive",
            "look for a firewall rule that clears the TOS byte; --no-ecn works without",
        ),
        Err(e) => check.missing(e.to_string(), "allow UDP on the loopback interface"),
    }
}

/// Looks for a program in the search path.
fn tool(name: &'static str, needed_for: &'static str, package: &str) -> Check {
    let check = Check::new(name, needed_for);
    match find_in_path(name) {
        Some(path) => check.ok(path.display().to_string()),
        None if cfg!(target_os = "linux") => {
            check.missing("not found", format!("apt-get install {package}"))
        }
        None => check.missing("not found", format!("install {package}")),
    }
}

pub(super) fn find_in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|p| p.is_file())
}
