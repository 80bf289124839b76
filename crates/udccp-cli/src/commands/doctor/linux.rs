//! Checks for Linux only: raw IP, namespaces, the kernel's DCCP and TCP, guests.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use udccp::blocking::{Connection, Endpoint};
use udccp::{Address, EndpointOptions, Options, ServiceCode};

use super::check::Check;
use super::checks::{find_in_path, localhost};

/// A receive buffer that holds what a fast sender sends between two turns of the driver.
const GOOD_RMEM: u64 = 4 << 20;
/// IP protocol number of DCCP.
const DCCP: i32 = 33;

/// Requirements of fast receivers, emulated networks, guests and comparisons.
pub(super) fn real_kernels() -> Vec<Check> {
    vec![
        receive_memory(),
        raw_socket(),
        kernel_dccp(),
        namespaces(),
        user_namespaces(),
        tun(),
        netem(),
        guest_tools(),
        guest_kernel(),
        ns2(),
        tcp_congestion_controls(),
    ]
}

fn receive_memory() -> Check {
    let check = Check::new("receive buffer", "zero loss at high rates");
    let Some(max) = number("/proc/sys/net/core/rmem_max") else {
        return check.limited("net.core.rmem_max is unknown", "check how large SO_RCVBUF may be");
    };
    let found = format!("net.core.rmem_max = {max} bytes");
    if max >= GOOD_RMEM {
        return check.ok(found);
    }
    check.limited(found, format!("sysctl -w net.core.rmem_max={GOOD_RMEM} (as root)"))
}

/// Checks raw sockets, which carry DCCP without UDP.
fn raw_socket() -> Check {
    let check = Check::new("DCCP over raw IP", "peers that run DCCP without UDP");
    if udccp::kernel_has_dccp() {
        return check.limited(
            "this kernel's DCCP resets connections that it does not know",
            "rmmod dccp_ipv6 dccp_ipv4 dccp, or see `udccp guide raw-ip`",
        );
    }
    match connect_over_raw_ip() {
        Ok(()) => check.ok("a connection over loopback opens"),
        Err(e @ udccp::Error::RawDenied) => check.missing(e.to_string(), e.advice()),
        Err(e) => check.missing(e.to_string(), "look for a firewall rule against protocol 33"),
    }
}

fn connect_over_raw_ip() -> Result<(), udccp::Error> {
    let raw = EndpointOptions::new().raw_ip(true);
    let service = ServiceCode(u32::from_be_bytes(*b"doct"));
    let listener =
        Endpoint::bind_with(localhost(false), &raw)?.listen(0, [service], &Options::default())?;
    let peer = Address::raw(localhost(false).ip(), listener.port());
    let limit = Some(Duration::from_secs(3));
    Connection::connect_with(peer, service, &Options::default(), limit)?.abort();
    Ok(())
}

/// `socket(AF_INET, SOCK_DCCP, IPPROTO_DCCP)`.
fn kernel_dccp() -> Check {
    const SOCK_DCCP: i32 = 6;
    let check = Check::new("kernel DCCP", "comparing with Linux's DCCP");
    match Socket::new(Domain::IPV4, Type::from(SOCK_DCCP), Some(Protocol::from(DCCP))) {
        Ok(_) => check.ok("there"),
        Err(_) => check.missing(
            "this kernel has none",
            "Linux removed it in 6.16; before that, load the modules dccp and dccp_ipv4",
        ),
    }
}

fn namespaces() -> Check {
    let check = Check::new("network namespaces", "emulated networks (udccp emu)");
    let mine = Path::new("/proc/self/ns/net").exists();
    let most = number("/proc/sys/user/max_net_namespaces").unwrap_or(0);
    match (mine && most > 0, is_root()) {
        (true, true) => match refused(&["--net"]) {
            None => check.ok(format!("allowed, {most} of them")),
            Some(why) => check.missing(why, "a container needs --privileged"),
        },
        (true, false) => check.limited(
            "allowed for root and in user namespaces",
            "nothing to do if user namespaces are allowed; otherwise run as root",
        ),
        (false, _) => check.missing(
            "not in this kernel, or set to none",
            "sysctl -w user.max_net_namespaces=1000, or a kernel with CONFIG_NET_NS",
        ),
    }
}

/// Checks user namespaces, in which a user is root of a private network.
fn user_namespaces() -> Check {
    let check = Check::new("user namespaces", "emulated networks without root");
    if number("/proc/sys/user/max_user_namespaces").unwrap_or(0) == 0 {
        return check.missing(
            "not in this kernel, or set to none",
            "sysctl -w user.max_user_namespaces=1000, or run as root",
        );
    }
    let denied = [
        ("kernel.unprivileged_userns_clone", "/proc/sys/kernel/unprivileged_userns_clone", 0),
        (
            "kernel.apparmor_restrict_unprivileged_userns",
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            1,
        ),
    ];
    match denied.into_iter().find(|(_, file, closed)| number(file) == Some(*closed)) {
        Some((name, _, closed)) => check.limited(
            format!("only for root ({name} = {closed})"),
            format!("sysctl -w {name}={}, or run as root", 1 - closed),
        ),
        None => match refused(&["--user", "--map-root-user", "--net"]) {
            None => check.ok("allowed"),
            Some(why) => check.limited(
                why,
                "run as root; a container needs --privileged, and a chroot allows none",
            ),
        },
    }
}

/// Tries unshare(1), where it is installed: containers and chroots forbid what the settings of the
/// kernel allow.
fn refused(flags: &[&str]) -> Option<String> {
    let tried = Command::new("unshare").args(flags).arg("true").output().ok()?;
    (!tried.status.success()).then(|| String::from_utf8_lossy(&tried.stderr).trim().to_owned())
}

fn tun() -> Check {
    let check = Check::new("TUN devices", "emulated networks (udccp emu)");
    match fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
        Ok(_) => check.ok("/dev/net/tun opens"),
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => check.missing(
            format!("/dev/net/tun: {e}"),
            "run as root, or chmod 0666 /dev/net/tun (the default of most distributions)",
        ),
        Err(e) => check.missing(
            format!("/dev/net/tun: {e}"),
            "modprobe tun; a container needs --device /dev/net/tun and --cap-add NET_ADMIN",
        ),
    }
}

/// Checks netem, which is optional: the project has its own links.
fn netem() -> Check {
    let check = Check::new("kernel netem", "the kernel as the path (udccp emu --path netem)");
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let module = format!("/lib/modules/{release}/kernel/net/sched/sch_netem.ko");
    let there = [module.clone(), format!("{module}.xz"), format!("{module}.zst")]
        .iter()
        .any(|m| Path::new(m).exists())
        || Path::new("/sys/module/sch_netem").exists();
    if there {
        return check.ok("the module is installed");
    }
    check.missing(
        "no sch_netem module",
        "only --path netem needs it, for delay and loss: install your kernel's extra modules",
    )
}

/// Programs of the host that `udccp linux` uses in its guest.
fn guest_tools() -> Check {
    let check = Check::new("guest's tools", "scenarios in a Linux kernel with DCCP (udccp linux)");
    let missing = udccp_linux::missing_tools(false);
    let Some((_, package)) = missing.first() else {
        return check.ok("ip and tc are installed");
    };
    let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
    check.missing(format!("no {}", names.join(", ")), format!("apt-get install {package}"))
}

/// Whether the guest's kernel has been built.
fn guest_kernel() -> Check {
    let check = Check::new("guest's kernel", "scenarios in a Linux kernel with DCCP (udccp linux)");
    let found = udccp_linux::cache_folder().and_then(|cache| udccp_linux::Kernel::find(&cache));
    match found {
        Ok(kernel) => check.ok(format!("Linux {}", kernel.version)),
        Err(error) => {
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            let time = udccp_linux::build_time(processors);
            check.missing(error.to_string(), format!("udccp linux --setup, once: {time}"))
        }
    }
}

/// A third-party simulator, for comparison.
fn ns2() -> Check {
    let check = Check::new("ns-2", "scenarios in another simulator (udccp ns2)");
    match find_in_path("ns") {
        Some(path) => check.ok(path.display().to_string()),
        None => check.missing("no program `ns`", "apt-get install ns2"),
    }
}

fn tcp_congestion_controls() -> Check {
    let check = Check::new("TCP variants", "comparing with this kernel's TCP");
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    match read(file) {
        Some(all) if all.contains("reno") && all.contains("cubic") => check.ok(all),
        Some(all) => check.limited(all, "modprobe tcp_cubic (and tcp_bic, tcp_vegas...)"),
        None => check.missing("unknown", "this needs Linux"),
    }
}

/// Whether this user is root and may use privileged ports and devices.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|s| s.trim().to_owned())
}

fn number(path: &str) -> Option<u64> {
    read(path)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_that_fails_says_why() {
        assert_eq!(refused(&[]), None);
        let why = refused(&["--no-such-flag"]);
        assert_eq!(why.is_some_and(|why| !why.is_empty()), find_in_path("unshare").is_some());
    }
}
