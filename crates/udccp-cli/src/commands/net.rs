//! Flags and functions that all commands with sockets share.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use udccp::ccid::CcidRegistry;
use udccp::{Address, EndpointOptions, Options, ServiceCode};

use super::numbers::whole;
use crate::ccid;
use crate::exit::{CliResult, Exit, Failure};

/// How long a peer may be silent before it is probed, and before the connection ends.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const IDLE_LIMIT: Duration = Duration::from_secs(30);

/// Flags of every connection.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct NetArgs {
    /// UDP port that carries the DCCP packets [default: the DCCP port; 6511 is the registered one]
    #[arg(long, value_name = "PORT", value_parser = whole(0..=u16::MAX))]
    pub(crate) udp_port: Option<u16>,
    /// Run DCCP directly over IP (protocol 33), without UDP; needs permission to open raw sockets.
    /// A listener serves IPv4, or IPv6 with `--bind ::`
    #[arg(long, conflicts_with = "udp_port")]
    pub(crate) raw: bool,
    /// Congestion control for both directions: a CCID number, or the experimental `cubic` or `bbr`,
    /// which both ends must name [default: 2; a listener also accepts 3 and 4]
    #[arg(long, value_name = "N|NAME", value_parser = ccid::parse)]
    pub(crate) ccid: Option<u8>,
    /// Local IP address, with its interface if it is link-local (fe80::1%eth0) [default: every
    /// address]
    #[arg(long, value_name = "ADDRESS", value_parser = local)]
    pub(crate) bind: Option<SocketAddr>,
    /// Time to live (hop limit) of packets [default: the system's, usually 64]
    #[arg(long, value_name = "HOPS", value_parser = whole(1..=u8::MAX))]
    pub(crate) ttl: Option<u8>,
    /// Do not mark packets as ECN-capable
    #[arg(long)]
    pub(crate) no_ecn: bool,
    /// Use one system call per packet, so that captures on this machine show the packets as sent
    #[arg(long)]
    pub(crate) no_offload: bool,
}

impl NetArgs {
    /// Options of connections.
    pub(crate) fn options(&self) -> Options {
        let options = Options::new().ecn(!self.no_ecn);
        let options = options.keep_alive(Some(KEEP_ALIVE)).idle_limit(Some(IDLE_LIMIT));
        match self.ccid {
            Some(ccid) => options.ccid(ccid),
            None => options,
        }
    }

    /// Options of endpoints.
    pub(crate) fn endpoint_options(&self) -> EndpointOptions {
        let options = EndpointOptions::new()
            .raw_ip(self.raw)
            .offload(!self.no_offload)
            .ccids(CcidRegistry::with_experiments());
        match self.ttl {
            Some(ttl) => options.ttl(ttl),
            None => options,
        }
    }

    /// The carrier of packets, for messages.
    pub(crate) fn carrier(&self, local: SocketAddr) -> String {
        if self.raw { format!("raw IP at {}", local.ip()) } else { format!("UDP {local}") }
    }

    /// The addresses to try to listen on, in order of preference. Over UDP, IPv6 serves IPv4 too,
    /// if the system has it.
    pub(crate) fn listen_at(&self, port: u16) -> Vec<SocketAddr> {
        let udp_port = self.udp_port.unwrap_or(port);
        match self.bind {
            Some(mut at) => {
                at.set_port(udp_port);
                vec![at]
            }
            None if self.raw => vec![(Ipv4Addr::UNSPECIFIED, 0).into()],
            None => vec![
                (Ipv6Addr::UNSPECIFIED, udp_port).into(),
                (Ipv4Addr::UNSPECIFIED, udp_port).into(),
            ],
        }
    }

    /// The local UDP address of a client that connects to `peer`.
    pub(crate) fn client_at(&self, peer: &Address) -> SocketAddr {
        let any = match peer.udp {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        self.bind.unwrap_or(any)
    }

    /// The addresses of a host.
    pub(crate) fn resolve(&self, host: &str, port: u16) -> CliResult<Vec<Address>> {
        let all = Address::lookup(host, port, self.udp_port).map_err(|e| {
            Failure::new(Exit::Unreachable, format!("cannot find host \"{host}\": {e}"))
                .hint("check the spelling, or give an IP address")
        })?;
        let over = |at: Address| if self.raw { Address::raw(at.ip(), at.port) } else { at };
        Ok(all.into_iter().map(over).collect())
    }
}

/// Tries each address in turn and returns the last failure if none works.
pub(crate) fn first_that_works<A, T>(
    all: &[A],
    mut attempt: impl FnMut(&A) -> Result<T, udccp::Error>,
) -> CliResult<T> {
    let mut last = Failure::new(Exit::Failure, "there is no address to try");
    for one in all {
        match attempt(one) {
            Ok(done) => return Ok(done),
            // A server may listen on only one address of its host. Then the others are refused by
            // the host, or by an endpoint that has other servers (as that of `udccp run`).
            Err(e @ (udccp::Error::PortClosed { .. } | udccp::Error::Refused { .. })) => {
                last = e.into();
            }
            // Other refusals come from the service: all its addresses would give the same answer.
            Err(e) if e.is_refusal() => return Err(e.into()),
            Err(e) => last = e.into(),
        }
    }
    Err(last)
}

/// Parses a local address, with any port. The system knows the names of interfaces.
fn local(text: &str) -> Result<SocketAddr, String> {
    match text.split_once('%') {
        Some((ip, interface)) if ip.parse::<Ipv6Addr>().is_ok() => {
            let found = (text, 0).to_socket_addrs().ok().and_then(|mut all| all.next());
            found.ok_or_else(|| format!("this machine has no interface \"{interface}\""))
        }
        _ => text.parse().map(|ip: IpAddr| (ip, 0).into()).map_err(|e| e.to_string()),
    }
}

/// Parses a service code.
pub(crate) fn service(text: &str) -> Result<ServiceCode, String> {
    let code: ServiceCode = text.parse().map_err(|e| format!("{e}"))?;
    if code.is_valid() { Ok(code) } else { Err("this code is reserved and invalid".into()) }
}

/// Parses a time in seconds, as a decimal number.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let value: f64 = text.parse().map_err(|_| format!("\"{text}\" is not a number of seconds"))?;
    Duration::try_from_secs_f64(value).map_err(|_| "must be 0 or more seconds".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tries the addresses [::1] and 127.0.0.1, of which the first fails; also returns how many
    /// were tried.
    fn tried(fails: impl Fn(Address) -> udccp::Error) -> (CliResult<Address>, usize) {
        let all = ["[::1]:1", "127.0.0.1:1"].map(|text| text.parse::<Address>().unwrap());
        let mut count = 0;
        let done = first_that_works(&all, |at| {
            count += 1;
            if count == 1 { Err(fails(*at)) } else { Ok(*at) }
        });
        (done, count)
    }

    #[test]
    fn a_server_may_be_at_the_second_address_of_its_host() {
        for fails in
            [|peer| udccp::Error::PortClosed { peer }, |peer| udccp::Error::Refused { peer }]
        {
            let (done, count) = tried(fails);
            assert!(done.is_ok_and(|at| at.udp.is_ipv4()) && count == 2);
        }
    }

    #[test]
    fn a_service_that_refuses_is_asked_once() {
        let (done, count) = tried(|peer| udccp::Error::TooBusy { peer });
        assert!(done.is_err() && count == 1);
    }

    #[test]
    fn a_local_address_may_have_an_interface() {
        assert_eq!(local("192.0.2.1").map(|at| at.to_string()).as_deref(), Ok("192.0.2.1:0"));
        assert_eq!(local("::1").map(|at| at.to_string()).as_deref(), Ok("[::1]:0"));
        assert_eq!(local("fe80::1%1").map(|at| at.to_string()).as_deref(), Ok("[fe80::1%1]:0"));
        let error = local("fe80::1%nope").unwrap_err();
        assert_eq!(error, "this machine has no interface \"nope\"");
        assert!(local("localhost").is_err());
    }
}
