//! Flags and steps that all commands with sockets share.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use udccp::ccid::{CcidRegistry, experimental};
use udccp::{Address, EndpointOptions, Options, ServiceCode};

use crate::exit::{Exit, Failure, Outcome};

/// A peer that vanished without a word is noticed some probes after this time of silence.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Flags of every connection.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct NetArgs {
    /// UDP port that carries the DCCP packets [default: the DCCP port; 6511 is the registered one]
    #[arg(long, value_name = "PORT")]
    pub(crate) udp_port: Option<u16>,
    /// Congestion control for the data of both sides: a CCID number, or one of the experiments
    /// `cubic` and `bbr`, which both ends must name [default: 2; a listener takes 3 and 4 too, if
    /// asked for]
    #[arg(long, value_name = "N|NAME", value_parser = ccid)]
    pub(crate) ccid: Option<u8>,
    /// Local IP address [default: every address]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) bind: Option<IpAddr>,
    /// Do not mark packets as ECN-capable
    #[arg(long)]
    pub(crate) no_ecn: bool,
    /// One system call a packet, so that captures on this machine show what is on the wire
    #[arg(long)]
    pub(crate) no_offload: bool,
}

impl NetArgs {
    /// Settings of connections.
    pub(crate) fn options(&self) -> Options {
        let options = Options::new().ecn(!self.no_ecn).keep_alive(Some(KEEP_ALIVE));
        match self.ccid {
            Some(ccid) => options.ccid(ccid),
            None => options,
        }
    }

    /// Settings of UDP sockets.
    pub(crate) fn endpoint_options(&self) -> EndpointOptions {
        EndpointOptions::new().offload(!self.no_offload).ccids(CcidRegistry::with_experiments())
    }

    /// The UDP addresses to try to listen at, best first. IPv6 serves IPv4 too, where the system
    /// has it.
    pub(crate) fn listen_at(&self, port: u16) -> Vec<SocketAddr> {
        let udp_port = self.udp_port.unwrap_or(port);
        match self.bind {
            Some(ip) => vec![(ip, udp_port).into()],
            None => vec![
                (Ipv6Addr::UNSPECIFIED, udp_port).into(),
                (Ipv4Addr::UNSPECIFIED, udp_port).into(),
            ],
        }
    }

    /// The local UDP address of a client of `peer`.
    pub(crate) fn client_at(&self, peer: &Address) -> SocketAddr {
        let any: IpAddr = match peer.udp {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        (self.bind.unwrap_or(any), 0).into()
    }

    /// The addresses of a host.
    pub(crate) fn resolve(&self, host: &str, port: u16) -> Outcome<Vec<Address>> {
        let all = Address::lookup(host, port, self.udp_port).map_err(|e| {
            Failure::new(Exit::Unreachable, format!("cannot find host \"{host}\": {e}"))
                .hint("check the spelling, or give an IP address")
        })?;
        Ok(all)
    }
}

/// Tries each address in turn; the last failure counts.
pub(crate) fn first_that_works<A, T>(
    all: &[A],
    mut attempt: impl FnMut(&A) -> Result<T, udccp::Error>,
) -> Outcome<T> {
    let mut last = Failure::new(Exit::Failure, "there is no address to try");
    for one in all {
        match attempt(one) {
            Ok(done) => return Ok(done),
            // A refusal is the service's answer; another address of the same host has the same.
            Err(e) if e.is_refusal() => return Err(e.into()),
            Err(e) => last = e.into(),
        }
    }
    Err(last)
}

/// A CCID given on the command line, by number or by the name of an experiment.
fn ccid(text: &str) -> Result<u8, String> {
    match text {
        "cubic" => Ok(experimental::CUBIC),
        "bbr" => Ok(experimental::BBR),
        number => {
            number.parse().map_err(|_| "a number from 0 to 255, `cubic` or `bbr` is meant".into())
        }
    }
}

/// A service code given on the command line.
pub(crate) fn service(text: &str) -> Result<ServiceCode, String> {
    let code: ServiceCode = text.parse().map_err(|e| format!("{e}"))?;
    if code.is_valid() { Ok(code) } else { Err("this code is reserved as invalid".into()) }
}

/// A time in seconds, as a decimal number.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let value: f64 = text.parse().map_err(|_| format!("\"{text}\" is no number of seconds"))?;
    Duration::try_from_secs_f64(value).map_err(|_| "must be 0 or more seconds".to_owned())
}
