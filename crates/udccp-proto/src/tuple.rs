//! Identifies connections by addresses and ports.

use core::hash::{Hash, Hasher};
use core::net::{IpAddr, SocketAddr};

//= 6773-3.8-4
//= 6773-3.8-5
//= 6773-3.8-6
//= 6773-3.8-7
//= 6773-3.8-11
//= 6773-4-1
//= 6773-5.2-3
/// Addresses and ports of a connection, as seen from one side. Over UDP the UDP ports are included
/// (RFC 6773 section 3.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FourTuple {
    /// Our IP address, and our UDP encapsulation port (0 over raw IP).
    pub local: SocketAddr,
    /// Our DCCP port.
    pub local_port: u16,
    /// The peer's IP address, and its UDP encapsulation port (0 over raw IP).
    pub remote: SocketAddr,
    /// The peer's DCCP port.
    pub remote_port: u16,
}

impl Hash for FourTuple {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut bytes = [0; 40];
        let mut len = 0;
        let mut put = |part: &[u8]| {
            bytes[len..len + part.len()].copy_from_slice(part);
            len += part.len();
        };
        for end in [&self.local, &self.remote] {
            match end.ip() {
                IpAddr::V4(ip) => put(&ip.octets()),
                IpAddr::V6(ip) => put(&ip.octets()),
            }
            put(&end.port().to_be_bytes());
        }
        put(&self.local_port.to_be_bytes());
        put(&self.remote_port.to_be_bytes());
        state.write(&bytes[..len]);
    }
}
