//! UDP and TCP ports for tests that start processes.
//!
//! Neither function opens a socket to test a port if the kernel's tables can tell. A process that
//! another test starts at that moment would inherit the socket until it executes its program, and
//! would keep the port in use until then.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the range from which kernels choose ports for sockets.
const FIRST: u16 = 20_000;
const PORTS: u16 = 12_000;
/// Distance between the first ports of processes with consecutive ids.
const STRIDE: u32 = 61;

/// A port that nothing uses, in any protocol and at any address. No later call in this process
/// returns it again.
///
/// # Panics
/// If all ports are in use.
pub fn free() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let own = u64::from(std::process::id()) * u64::from(STRIDE);
    let mut ports = std::iter::repeat_with(|| {
        let next = own + u64::from(TAKEN.fetch_add(1, Ordering::Relaxed));
        FIRST + u16::try_from(next % u64::from(PORTS)).expect("below the number of ports")
    });
    let is_free = |port: &u16| !["udp", "udp6", "tcp", "tcp6"].iter().any(|t| holds(t, *port));
    ports.by_ref().take(usize::from(PORTS)).find(is_free).expect("a port that nothing uses")
}

/// Whether an IPv4 or IPv6 UDP socket of this network namespace is bound to a port.
pub fn is_bound_over_udp(port: u16) -> bool {
    if cfg!(target_os = "linux") {
        return holds("udp", port) || holds("udp6", port);
    }
    UdpSocket::bind(("127.0.0.1", port)).is_err()
}

/// Whether the kernel's table of sockets contains this local port. On a system without such tables
/// they count as empty.
fn holds(table: &str, port: u16) -> bool {
    let sockets = std::fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
    sockets.lines().skip(1).any(|line| {
        let local = line.split_whitespace().nth(1).and_then(|local| local.rsplit(':').next());
        local.and_then(|digits| u16::from_str_radix(digits, 16).ok()) == Some(port)
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::process::Command;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn a_free_port_can_be_bound_while_other_threads_start_processes() {
        const PROCESSES: usize = 200;
        let started = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while started.fetch_add(1, Ordering::Relaxed) < PROCESSES {
                        Command::new("true").status().expect("a process");
                    }
                });
            }
            while started.load(Ordering::Relaxed) < PROCESSES {
                let port = free();
                UdpSocket::bind(("127.0.0.1", port)).expect("nothing else has the port");
            }
        });
    }

    #[test]
    fn sockets_of_every_family_are_seen() {
        let v4 = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let port = |address: std::net::SocketAddr| address.port();
        assert!(is_bound_over_udp(port(v4.local_addr().expect("an address"))));
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a socket");
        assert!(holds("tcp", port(tcp.local_addr().expect("an address"))));
        if let Ok(v6) = UdpSocket::bind("[::1]:0") {
            assert!(is_bound_over_udp(port(v6.local_addr().expect("an address"))));
        }
        assert_ne!(free(), free());
    }
}
