//! Reads the counters of a host's device, TCP and socket buffers from `/proc/self/net`, which shows
//! the network namespace of this process.

use std::fs;
use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

/// Length of an Ethernet header, which the byte counters of Ethernet devices include.
const ETHERNET: u64 = 14;
/// Linux's hardware type for Ethernet devices.
const ARPHRD_ETHER: u16 = 1;

/// The network device of a host.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    name: String,
    /// Bytes that the device counts for each packet in addition to the IP packet.
    header: u64,
}

/// Counters of a device since it was created, in IP bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) in_bytes: u64,
    pub(crate) in_packets: u64,
    pub(crate) out_bytes: u64,
    pub(crate) out_packets: u64,
}

/// TCP counters of a network namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TcpCounters {
    pub(crate) timeouts: u64,
    /// Fast recoveries that were started.
    pub(crate) recoveries: u64,
    /// How often the kernel ran short of memory for TCP.
    pub(crate) memory_pressures: u64,
}

/// TCP's counters of packets that the kernel dropped because a socket had no room for them. Drops
/// that a protocol intends are not included.
const TCP_DROPS: [&str; 5] =
    ["RcvPruned", "OfoPruned", "TCPRcvQDrop", "TCPBacklogDrop", "TCPOFODrop"];
/// The same for UDP. Send errors are not included: they are drops in the host's own queue.
const UDP_DROPS: [&str; 4] = ["RcvbufErrors", "MemErrors", "Udp6RcvbufErrors", "Udp6MemErrors"];

/// How many packets this namespace's sockets dropped for lack of room, or zero if the kernel does
/// not count them.
pub(crate) fn buffer_drops() -> u64 {
    let read =
        |name: &str| fs::read_to_string(format!("/proc/self/net/{name}")).unwrap_or_default();
    let pairs = sum_named_counters(&read("netstat"), "TcpExt:", &TCP_DROPS)
        + sum_named_counters(&read("snmp"), "Udp:", &UDP_DROPS);
    let sockets = ["raw", "raw6"].map(|name| sum_last_column(&read(name)));
    pairs + sum_named_lines(&read("snmp6"), &UDP_DROPS) + sockets.iter().sum::<u64>()
}

/// Sums the wanted counters of a file whose lines come in pairs: a line of names and a line of
/// values.
fn sum_named_counters(text: &str, prefix: &str, wanted: &[&str]) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
    let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let pairs = names.split_whitespace().zip(values.split_whitespace());
    let wanted = pairs.filter(|(name, _)| wanted.contains(name));
    wanted.filter_map(|(_, value)| value.parse::<u64>().ok()).sum()
}

/// Sums the wanted counters of a file with one name and one value per line.
fn sum_named_lines(text: &str, wanted: &[&str]) -> u64 {
    let value = |line: &str| {
        let (name, value) = line.split_once(char::is_whitespace)?;
        wanted.contains(&name).then(|| value.trim().parse::<u64>().ok())?
    };
    text.lines().filter_map(value).sum()
}

/// Sums the last column of a table of sockets, which is the number of drops.
fn sum_last_column(text: &str) -> u64 {
    let last = |line: &str| line.split_whitespace().last()?.parse::<u64>().ok();
    text.lines().skip(1).filter_map(last).sum()
}

impl Device {
    /// The device that has this address; a loopback address belongs to the loopback device.
    pub(crate) fn of(address: IpAddr) -> Option<Self> {
        let all: Vec<_> = getifaddrs().ok()?.collect();
        let has = |a: &nix::ifaddrs::InterfaceAddress| {
            let found = a.address.as_ref();
            let v4 = || found?.as_sockaddr_in().map(|s| IpAddr::V4(s.ip()));
            let v6 = || found?.as_sockaddr_in6().map(|s| IpAddr::V6(s.ip()));
            v4().or_else(v6) == Some(address)
        };
        let is_loopback = |a: &nix::ifaddrs::InterfaceAddress| {
            address.is_loopback() && a.flags.contains(InterfaceFlags::IFF_LOOPBACK)
        };
        let found = all.iter().find(|a| has(a)).or_else(|| all.iter().find(|a| is_loopback(a)))?;
        let name = found.interface_name.clone();
        let link = all.iter().filter(|a| a.interface_name == name);
        // A TUN device has no link-layer address and no link-layer header.
        let hatype = link.filter_map(|a| a.address.as_ref()?.as_link_addr()).map(|a| a.hatype());
        let is_ethernet = hatype.into_iter().any(|hatype| hatype == ARPHRD_ETHER);
        Some(Self { name, header: if is_ethernet { ETHERNET } else { 0 } })
    }

    /// The device's counters now, or zero if they cannot be read.
    pub(crate) fn traffic(&self) -> Traffic {
        let text = std::fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
        self.parse(&text).unwrap_or_default()
    }

    fn parse(&self, text: &str) -> Option<Traffic> {
        let named = |line: &str| {
            let (name, counts) = line.split_once(':')?;
            (name.trim() == self.name).then(|| counts.to_owned())
        };
        let counts = text.lines().find_map(named)?;
        let counts: Vec<u64> = counts.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        let &[in_bytes, in_packets, .., out_bytes, out_packets, _, _, _, _, _, _] =
            counts.as_slice()
        else {
            return None;
        };
        let ip = |bytes: u64, packets: u64| bytes.saturating_sub(self.header * packets);
        Some(Traffic {
            in_bytes: ip(in_bytes, in_packets),
            in_packets,
            out_bytes: ip(out_bytes, out_packets),
            out_packets,
        })
    }
}

impl Traffic {
    /// The traffic since an earlier reading.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            in_bytes: self.in_bytes.saturating_sub(earlier.in_bytes),
            in_packets: self.in_packets.saturating_sub(earlier.in_packets),
            out_bytes: self.out_bytes.saturating_sub(earlier.out_bytes),
            out_packets: self.out_packets.saturating_sub(earlier.out_packets),
        }
    }
}

impl TcpCounters {
    /// This namespace's counters now, or zero if they cannot be read.
    pub(crate) fn read() -> Self {
        Self::parse(&std::fs::read_to_string("/proc/self/net/netstat").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let mut lines = text.lines().filter_map(|l| l.strip_prefix("TcpExt:"));
        let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
        let mut counters = Self::default();
        for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
            let value: u64 = value.parse().unwrap_or(0);
            match name {
                "TCPTimeouts" => counters.timeouts = value,
                "TCPRenoRecovery" | "TCPSackRecovery" => counters.recoveries += value,
                "TCPMemoryPressures" => counters.memory_pressures = value,
                _ => {}
            }
        }
        counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_byte_counts_exclude_link_headers() {
        let device = Device { name: "v0".to_owned(), header: ETHERNET };
        let text = "Inter-| Receive | Transmit\n face |bytes\n\
                    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
                    v0: 15140 10 0 0 0 0 0 0 330 5 0 0 0 0 0 0\n";
        let found = device.parse(text).unwrap();
        assert_eq!((found.in_bytes, found.in_packets), (15_000, 10));
        assert_eq!((found.out_bytes, found.out_packets), (260, 5));
    }

    #[test]
    fn tcp_timeouts_and_recoveries_are_read_by_counter_name() {
        let text = "TcpExt: A TCPTimeouts TCPSackRecovery TCPMemoryPressures TCPRenoRecovery\n\
                    TcpExt: 1 2 3 5 4\n";
        let found = TcpCounters { timeouts: 2, recoveries: 7, memory_pressures: 5 };
        assert_eq!(TcpCounters::parse(text), found);
    }

    #[test]
    fn buffer_drops_are_read_by_counter_name() {
        let netstat = "TcpExt: PruneCalled RcvPruned OfoPruned TCPOFODrop\nTcpExt: 9 1 2 4\n\
                       IpExt: RcvPruned\nIpExt: 7\n";
        assert_eq!(sum_named_counters(netstat, "TcpExt:", &TCP_DROPS), 7);
        let snmp = "Udp: InDatagrams RcvbufErrors SndbufErrors MemErrors\nUdp: 100 8 50 16\n";
        assert_eq!(sum_named_counters(snmp, "Udp:", &UDP_DROPS), 24);
        assert_eq!(sum_named_lines("Udp6InErrors 3\nUdp6RcvbufErrors \t32\n", &UDP_DROPS), 32);
        let raw = "  sl  local_address drops\n  33: 00000000:0021 64\n";
        assert_eq!(sum_last_column(raw), 64);
        assert_eq!((sum_named_counters("", "Udp:", &UDP_DROPS), sum_last_column("")), (0, 0));
    }

    #[test]
    fn the_loopback_device_is_found_by_any_of_its_addresses() {
        let device = Device::of("127.0.0.3".parse().unwrap()).expect("a loopback device");
        assert_eq!((device.name.as_str(), device.header), ("lo", 0));
    }
}
