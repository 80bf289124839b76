//! Builds the network of a test: client, router and server in namespaces.

use std::io::{self, Write};
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

use udccp_netns::Namespace;

use crate::plan::{Condition, MatrixEntry, Stack};

/// What keeps the kernel's DCCP quiet on a host of ours: packets that no socket sends are its
/// answers to packets that it knows no connection of.
const MUTE: &str = "\
table inet udccp {
  chain output {
    type filter hook output priority 0; policy accept;
    meta l4proto 33 meta skuid >= 0 accept
    meta l4proto 33 drop
  }
}
";

/// A host of the network.
#[derive(Debug)]
pub(crate) struct Host(Namespace);

impl Host {
    fn new() -> io::Result<Self> {
        let namespace = Namespace::with(|| {
            feed("ip", &["link", "set", "lo", "up"], "")?;
            // IPv6 addresses are good at once.
            for scope in ["all", "default"] {
                std::fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/accept_dad"), "0")?;
            }
            Ok(())
        })?;
        Ok(Self(namespace))
    }

    /// Starts something on the host, in a thread of its own.
    pub(crate) fn start<R: Send + 'static>(
        &self,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> io::Result<JoinHandle<R>> {
        self.0.spawn(job)
    }

    /// Runs a program on the host.
    fn run(&self, program: &'static str, args: &str, input: &'static str) -> io::Result<()> {
        let args: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
        let job = move || {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            feed(program, &args, input)
        };
        self.start(job)?.join().map_err(|_| io::Error::other("a host panicked"))?
    }
}

/// Client, router and server, joined.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) client: Host,
    pub(crate) server: Host,
    /// A namespace ends with its last user, and its cables with it.
    _router: Host,
}

impl Network {
    /// The network of a cell.
    pub(crate) fn of(entry: &MatrixEntry) -> io::Result<Self> {
        let (client, router, server) = (Host::new()?, Host::new()?, Host::new()?);
        for (host, net, device) in [(&client, 1, "left"), (&server, 2, "right")] {
            let far = format!("/proc/{}/fd/{}", std::process::id(), router.0.as_raw_fd());
            host.run("ip", &format!("link add eth0 type veth peer name {device} netns {far}"), "")?;
            host.run("ip", "link set eth0 up", "")?;
            router.run("ip", &format!("link set {device} up"), "")?;
            for (own, gateway, mask) in [
                (format!("10.{net}.0.1"), format!("10.{net}.0.9"), 24),
                (format!("fd0{net}::1"), format!("fd0{net}::9"), 64),
            ] {
                host.run("ip", &format!("addr add {own}/{mask} dev eth0"), "")?;
                router.run("ip", &format!("addr add {gateway}/{mask} dev {device}"), "")?;
                host.run("ip", &format!("route add default via {gateway}"), "")?;
            }
        }
        let forwards = router.start(|| {
            std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
            std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1")
        })?;
        forwards.join().map_err(|_| io::Error::other("a host panicked"))??;
        impair(&router, entry.condition)?;
        for (host, stack) in [(&client, entry.client), (&server, entry.server)] {
            if stack == Stack::Ours && udccp::kernel_has_dccp() {
                host.run("nft", "-f -", MUTE)?;
            }
        }
        Ok(Self { client, server, _router: router })
    }
}

fn impair(router: &Host, condition: Condition) -> io::Result<()> {
    for device in ["left", "right"] {
        let netem = condition.netem();
        router.run("tc", &format!("qdisc add dev {device} root netem {netem}"), "")?;
    }
    Ok(())
}

/// Addresses of client and server.
pub(crate) fn addresses(v6: bool) -> [IpAddr; 2] {
    if v6 {
        [1, 2].map(|n| IpAddr::from([0xfd00 + n, 0, 0, 0, 0, 0, 0, 1]))
    } else {
        [1, 2].map(|n| IpAddr::from([10, n, 0, 1]))
    }
}

/// Address of the router, at the client's side.
pub(crate) fn gateway(v6: bool) -> IpAddr {
    if v6 { IpAddr::from([0xfd01, 0, 0, 0, 0, 0, 0, 9]) } else { IpAddr::from([10, 1, 0, 9]) }
}

/// Runs a program with something to read; an error where it fails.
fn feed(program: &str, args: &[&str], input: &str) -> io::Result<()> {
    let mut child = Command::new(program)
        .args(args)
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| io::Error::new(e.kind(), format!("{program}: {e}")))?;
    if let Some(mut pipe) = child.stdin.take() {
        let _ = pipe.write_all(input.as_bytes());
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(io::Error::other(format!("{program} {}: {said}", args.join(" "))))
}
