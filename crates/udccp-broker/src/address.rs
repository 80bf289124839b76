//! Socket addresses in the format of C programs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};

use rustix::io::Errno;

const AF_UNSPEC: u16 = 0;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
/// Bytes of `struct sockaddr_in`.
const V4_BYTES: usize = 16;
/// Bytes of `struct sockaddr_in6` without the scope id, which RFC 2133 did not have.
const V6_LEAST_BYTES: usize = 24;
const V6_BYTES: usize = 28;

/// Reads an address for a socket of the given family.
///
/// # Errors
/// EINVAL if it is too short, EAFNOSUPPORT if it has another family.
pub(crate) fn read(bytes: &[u8], is_v6: bool) -> Result<SocketAddr, Errno> {
    let family = bytes.get(..2).map(|f| u16::from_ne_bytes([f[0], f[1]])).ok_or(Errno::INVAL)?;
    let port = |bytes: &[u8]| u16::from_be_bytes([bytes[2], bytes[3]]);
    let wanted = if is_v6 { AF_INET6 } else { AF_INET };
    let least = if is_v6 { V6_LEAST_BYTES } else { V4_BYTES };
    if bytes.len() < least {
        return Err(Errno::INVAL);
    }
    if family != wanted {
        return Err(Errno::AFNOSUPPORT);
    }
    if !is_v6 {
        let ip: [u8; 4] = bytes[4..8].try_into().map_err(|_| Errno::INVAL)?;
        return Ok((Ipv4Addr::from(ip), port(bytes)).into());
    }
    let ip: [u8; 16] = bytes[8..24].try_into().map_err(|_| Errno::INVAL)?;
    let scope = bytes.get(24..28).map_or(0, |s| u32::from_ne_bytes([s[0], s[1], s[2], s[3]]));
    Ok(SocketAddrV6::new(Ipv6Addr::from(ip), port(bytes), 0, scope).into())
}

/// Reads an address to bind to. AF_UNSPEC with the wildcard address counts as IPv4.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_to_bind(bytes: &[u8], is_v6: bool) -> Result<SocketAddr, Errno> {
    let is_any = bytes.len() >= V4_BYTES && bytes[..2] == AF_UNSPEC.to_ne_bytes();
    if is_v6 || !is_any || bytes[4..8] != [0; 4] {
        return read(bytes, is_v6);
    }
    Ok((Ipv4Addr::UNSPECIFIED, u16::from_be_bytes([bytes[2], bytes[3]])).into())
}

/// Checks that the system has a route to `to`, from the address `from` if the program chose one.
///
/// # Errors
/// ENETUNREACH or EHOSTUNREACH; EINVAL if there is no route from `from`.
pub(crate) fn route(from: Option<SocketAddr>, to: SocketAddr) -> Result<(), Errno> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let from = from.map(|from| from.ip()).filter(|ip| ip.is_ipv4() == to.is_ipv4()).unwrap_or(any);
    let tried = UdpSocket::bind((from, 0)).and_then(|socket| socket.connect(to));
    tried.map_err(|e| e.raw_os_error().map_or(Errno::NETUNREACH, Errno::from_raw_os_error))
}

/// Writes an address for a socket of the given family.
pub(crate) fn write(address: SocketAddr, is_v6: bool) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(V6_BYTES);
    let family = if is_v6 { AF_INET6 } else { AF_INET };
    bytes.extend(family.to_ne_bytes());
    bytes.extend(address.port().to_be_bytes());
    match (is_v6, address.ip()) {
        (false, IpAddr::V4(ip)) => {
            bytes.extend(ip.octets());
            bytes.resize(V4_BYTES, 0);
        }
        (false, IpAddr::V6(_)) => bytes.resize(V4_BYTES, 0),
        (true, ip) => {
            let (ip, scope) = match (ip, address) {
                // The wildcard address of one family stands for that of the other.
                (IpAddr::V4(ip), _) if ip.is_unspecified() => (Ipv6Addr::UNSPECIFIED, 0),
                (IpAddr::V4(ip), _) => (ip.to_ipv6_mapped(), 0),
                (IpAddr::V6(ip), SocketAddr::V6(a)) => (ip, a.scope_id()),
                (IpAddr::V6(ip), SocketAddr::V4(_)) => (ip, 0),
            };
            bytes.extend([0; 4]);
            bytes.extend(ip.octets());
            bytes.extend(scope.to_ne_bytes());
        }
    }
    bytes
}

/// Whether a socket at `local` serves an IP version. The IPv6 wildcard includes IPv4, unless the
/// socket accepts only IPv6.
pub(crate) fn serves(local: SocketAddr, is_v6_only: bool, is_v4: bool) -> bool {
    let serves_both = local.is_ipv6() && local.ip().is_unspecified() && !is_v6_only;
    serves_both || local.is_ipv4() == is_v4
}

/// Converts an IPv4-mapped address to IPv4.
pub(crate) fn unmap_ipv4(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(ip) => (ip, v6.port()).into(),
            None => address,
        },
        SocketAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip() {
        for (text, is_v6) in [("127.0.0.1:5004", false), ("[2001:db8::1]:5004", true)] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(read(&write(address, is_v6), is_v6), Ok(address));
        }
        let mapped = read(&write("192.0.2.1:7".parse().unwrap(), true), true).unwrap();
        assert_eq!(unmap_ipv4(mapped), "192.0.2.1:7".parse().unwrap());
    }

    #[test]
    fn unspecified_family_without_address_binds_ipv4() {
        let mut any = write("0.0.0.0:5004".parse().unwrap(), false);
        any[..2].fill(0);
        assert_eq!(read_to_bind(&any, false), Ok("0.0.0.0:5004".parse().unwrap()));
        assert_eq!(read_to_bind(&any, true), Err(Errno::INVAL));
        any[4] = 127;
        assert_eq!(read_to_bind(&any, false), Err(Errno::AFNOSUPPORT));
    }

    #[test]
    fn short_and_foreign_addresses_are_refused() {
        let v4 = write("127.0.0.1:5004".parse().unwrap(), false);
        assert_eq!(read(&v4[..15], false), Err(Errno::INVAL));
        assert_eq!(read(&v4, true), Err(Errno::INVAL));
        let v6 = write("[::1]:5004".parse().unwrap(), true);
        assert_eq!(read(&v6, false), Err(Errno::AFNOSUPPORT));
    }
}
