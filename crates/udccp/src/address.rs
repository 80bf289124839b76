//! Addresses of DCCP services.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};
use std::num::NonZeroU16;
use std::str::FromStr;

use crate::Error;
use crate::io::canonical;

/// An IP address with the two ports of DCCP over UDP (RFC 6773): the UDP port, and the DCCP port
/// inside the UDP datagram. UDP port 0 means raw IP.
///
/// By default both ports have the same number. `192.0.2.1:5004` then means what it does for any
/// other protocol, several servers can run on a host without a daemon, and a firewall rule for the
/// UDP port covers the service. If the two differ, the UDP port follows a slash:
/// `192.0.2.1:5004/6511` is DCCP port 5004 over UDP port 6511. (6511 is registered for a DCCP-UDP
/// service of the whole host; RFC 6773 section 3.8 asks applications not to listen there.)
/// `192.0.2.1:5004/raw` is DCCP port 5004 over raw IP.
///
/// ```
/// let same: udccp::Address = "192.0.2.1:5004".parse()?;
/// assert_eq!((same.port, same.udp.port()), (5004, 5004));
/// let other: udccp::Address = "[2001:db8::1]:5004/6511".parse()?;
/// assert_eq!((other.port, other.udp.port()), (5004, 6511));
/// let raw: udccp::Address = "192.0.2.1:5004/raw".parse()?;
/// assert!(raw.is_raw());
/// # Ok::<(), udccp::AddressError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// IP address and UDP port; port 0 means raw IP.
    pub udp: SocketAddr,
    /// DCCP port.
    pub port: u16,
}

/// The UDP port registered for DCCP-UDP services (RFC 6773 section 7.1).
pub const DCCP_UDP_PORT: u16 = 6511;

impl Address {
    /// DCCP port `port` at `ip`, over the UDP port of the same number.
    pub const fn new(ip: IpAddr, port: u16) -> Self {
        Self { udp: SocketAddr::new(ip, port), port }
    }

    /// DCCP port `port` at `ip`, over raw IP.
    pub const fn raw(ip: IpAddr, port: u16) -> Self {
        Self { udp: SocketAddr::new(ip, 0), port }
    }

    /// Whether packets go over raw IP.
    pub const fn is_raw(&self) -> bool {
        self.udp.port() == 0
    }

    /// This address, unless both ports are 0, as in `192.0.2.1:0`: that would mean raw IP, and
    /// nobody can serve DCCP port 0.
    pub(crate) fn named(self) -> Result<Self, Error> {
        match (self.udp.port(), self.port) {
            (0, 0) => Err(Error::Refused { peer: self }),
            _ => Ok(self),
        }
    }

    /// For error messages: only the host if the port is 0.
    pub(crate) fn as_named(&self) -> String {
        self.named().map_or_else(|_| self.udp.ip().to_string(), |named| named.to_string())
    }

    /// How the network sees packets to this address: as UDP or raw IP.
    pub(crate) fn envelope(&self) -> String {
        match self.udp.port() {
            0 => "IP protocol 33 (DCCP)".into(),
            port => format!("UDP port {port}"),
        }
    }

    /// The same service over another UDP port.
    #[must_use]
    pub const fn over_udp_port(mut self, udp_port: u16) -> Self {
        self.udp.set_port(udp_port);
        self
    }

    /// The IP address.
    pub const fn ip(&self) -> IpAddr {
        self.udp.ip()
    }

    /// Looks up `host` and returns its addresses, best first. Blocks while the system's resolver
    /// works. An IPv6 address may be in brackets. `udp_port` of `None` means the same as `port`.
    ///
    /// # Errors
    /// The resolver's error. An empty result is an error too.
    pub fn lookup(host: &str, port: u16, udp_port: Option<u16>) -> io::Result<Vec<Self>> {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = bare.filter(|host| host.contains(':')).unwrap_or(host);
        let found = (host, udp_port.unwrap_or(port)).to_socket_addrs()?;
        let all: Vec<Self> = found.map(|udp| Self { udp, port }).collect();
        if all.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        }
        Ok(all)
    }

    /// Looks up the address in a text such as `example.org:5004` or `example.org:5004/6511`, or
    /// parses a numeric address, and returns all addresses, best first. Blocks while the system's
    /// resolver works.
    ///
    /// # Errors
    /// The resolver's error; `InvalidInput` if the text is neither a name with a port nor an
    /// address.
    pub fn resolve(text: &str) -> io::Result<Vec<Self>> {
        if let Ok(address) = text.parse() {
            return Ok(vec![address]);
        }
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, AddressError(text.to_owned()));
        let (host, udp_port) = match text.split_once('/') {
            Some((host, "raw")) => (host, Some(0)),
            Some((host, port)) => {
                let port: NonZeroU16 = port.parse().map_err(|_| invalid())?;
                (host, Some(port.get()))
            }
            None => (text, None),
        };
        let (host, port) = host.rsplit_once(':').ok_or_else(invalid)?;
        Self::lookup(host, port.parse().map_err(|_| invalid())?, udp_port)
    }
}

/// The wildcard address of the same family as `peer`, with port 0.
pub(crate) fn any_port(peer: SocketAddr) -> SocketAddr {
    match canonical(peer) {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

/// A peer's address as it appears in packets: an IPv4-mapped IPv6 address becomes IPv4, only a
/// link-local address keeps a scope (possibly that of `local`), and the unspecified address means
/// this host, as on Linux.
pub(crate) fn of_packets(peer: SocketAddr, local: SocketAddr) -> SocketAddr {
    match canonical(peer) {
        SocketAddr::V4(any) if any.ip().is_unspecified() => {
            (Ipv4Addr::LOCALHOST, any.port()).into()
        }
        SocketAddr::V6(any) if any.ip().is_unspecified() => {
            (Ipv6Addr::LOCALHOST, any.port()).into()
        }
        SocketAddr::V6(one) => {
            let scope = match (one.ip().is_unicast_link_local(), local) {
                (false, _) => 0,
                (true, SocketAddr::V6(local)) if one.scope_id() == 0 => local.scope_id(),
                (true, _) => one.scope_id(),
            };
            SocketAddrV6::new(*one.ip(), one.port(), 0, scope).into()
        }
        one => one,
    }
}

impl From<SocketAddr> for Address {
    fn from(udp: SocketAddr) -> Self {
        Self { udp, port: udp.port() }
    }
}

impl<I: Into<IpAddr>> From<(I, u16)> for Address {
    fn from((ip, port): (I, u16)) -> Self {
        Self::new(ip.into(), port)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.udp;
        shown.set_port(self.port);
        write!(f, "{shown}")?;
        match self.udp.port() {
            0 => f.write_str("/raw"),
            udp if udp == self.port => Ok(()),
            udp => write!(f, "/{udp}"),
        }
    }
}

/// The error for a text that is not an [`Address`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not a DCCP address; write 192.0.2.1:5004, [2001:db8::1]:5004, \
     192.0.2.1:5004/6511 for DCCP port 5004 over UDP port 6511, or 192.0.2.1:5004/raw without UDP"
)]
pub struct AddressError(String);

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let fail = || AddressError(text.to_owned());
        let (host, udp_port) = match text.split_once('/') {
            Some((host, "raw")) => (host, Some(0)),
            Some((host, udp)) => {
                let port: NonZeroU16 = udp.parse().map_err(|_| fail())?;
                (host, Some(port.get()))
            }
            None => (text, None),
        };
        let mut udp: SocketAddr = host.parse().map_err(|_| fail())?;
        let port = udp.port();
        if let Some(udp_port) = udp_port {
            udp.set_port(udp_port);
        }
        Ok(Self { udp, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_print_as_they_parse() {
        let texts = ["192.0.2.1:5004", "[2001:db8::1]:5004", "192.0.2.1:5004/6511"];
        for text in texts.into_iter().chain(["192.0.2.1:5004/raw", "[2001:db8::1]:5004/raw"]) {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_wrong_address_is_refused_with_right_ones() {
        for text in ["localhost", "192.0.2.1", "192.0.2.1:5004/", "192.0.2.1:5004/0"] {
            let e = text.parse::<Address>().unwrap_err().to_string();
            assert!(e.contains(text) && e.contains("[2001:db8::1]:5004"), "{e}");
        }
    }

    #[test]
    fn lookup_keeps_the_dccp_port_apart_from_the_udp_port() {
        let all = Address::lookup("127.0.0.1", 5004, Some(6511)).unwrap();
        assert_eq!(all, ["127.0.0.1:5004/6511".parse().unwrap()]);
    }

    #[test]
    fn an_address_in_brackets_is_looked_up_as_one_without() {
        let all = Address::lookup("[::1]", 5004, None).unwrap();
        assert_eq!(all, ["[::1]:5004".parse().unwrap()]);
        assert!(Address::lookup("[127.0.0.1]", 5004, None).is_err());
    }

    #[test]
    fn a_message_names_a_port_where_one_is_named() {
        let named = |text: &str| text.parse::<Address>().unwrap().as_named();
        for text in ["192.0.2.1:5004", "[2001:db8::1]:5004/6511", "192.0.2.1:5004/raw"] {
            assert_eq!(named(text), text);
        }
        assert_eq!(named("192.0.2.1:0"), "192.0.2.1");
    }

    #[test]
    fn packets_show_addresses_that_mean_the_same_as_one() {
        let local = "[fe80::9%7]:1".parse().unwrap();
        for (asked, shown) in [
            ("192.0.2.1:5", "192.0.2.1:5"),
            ("[::ffff:192.0.2.1]:5", "192.0.2.1:5"),
            ("0.0.0.0:5", "127.0.0.1:5"),
            ("[::]:5", "[::1]:5"),
            ("[2001:db8::1%3]:5", "[2001:db8::1]:5"),
            ("[fe80::1%3]:5", "[fe80::1%3]:5"),
            ("[fe80::1]:5", "[fe80::1%7]:5"),
        ] {
            let of = of_packets(asked.parse().unwrap(), local);
            assert_eq!(of, shown.parse().unwrap(), "{asked}");
        }
    }
}
