//! Settings of a NAT. Defaults are those of RFC 5597.

use core::net::IpAddr;

use udccp_base::Duration;

//= 5597-4.3-1
//= 5597-4.3-2
//= 5597-4.3-3
/// Which packets from outside reach a mapped endpoint (RFC 4787 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filtering {
    /// All: most transparent to applications.
    EndpointIndependent,
    /// Those from addresses to which the endpoint has sent: stricter, and the default.
    #[default]
    AddressDependent,
    /// Those from addresses and ports to which the endpoint has sent. RFC 5597 recommends one of
    /// the others, but many NATs do this.
    AddressAndPortDependent,
}

/// Settings of a NAT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatConfig {
    /// The address that the outside sees.
    pub external: IpAddr,
    /// External ports, first and last (default 1024 to 65535).
    pub ports: (u16, u16),
    /// How DCCP is filtered; other protocols are not filtered by this.
    pub filtering: Filtering,
    /// Idle time after which an established connection expires (default 124 min).
    pub established_idle: Duration,
    /// Idle time after which a connection that opens or closes expires (default 4 min).
    pub transitory_idle: Duration,
    /// Idle time after which DCCP inside UDP expires (default 5 min, RFC 4787 section 4.3).
    pub udp_idle: Duration,
    /// Time from an unsolicited Listen or Sync to the ICMP error that answers it (default 6 s).
    pub unsolicited_wait: Duration,
    /// Answer unsolicited Listens and Syncs with ICMP Port Unreachable (default true).
    pub sends_icmp: bool,
}

impl NatConfig {
    //= 5597-5-2
    //= 5597-5-3
    /// Default settings.
    pub const fn new(external: IpAddr) -> Self {
        Self {
            external,
            ports: (1024, u16::MAX),
            filtering: Filtering::AddressDependent,
            established_idle: Duration::from_secs(124 * 60),
            transitory_idle: Duration::from_secs(4 * 60),
            udp_idle: Duration::from_secs(5 * 60),
            unsolicited_wait: Duration::from_secs(6),
            sends_icmp: true,
        }
    }
}
