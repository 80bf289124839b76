//! One end of a TCP connection: state, both directions, handshake and close.

mod handshake;
mod input;
mod machine;
mod output;
mod state;

use core::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;

use udccp_base::{Datagram, Ecn, HeaderBytes, Instant, Payload, Seed};
use udccp_packet::PseudoHeader;
use udccp_packet::checksum::Sum;

use crate::recv::{ReceiveSide, RecvStats};
use crate::send::{SendStats, Side};
use crate::shared::{Shared, SharedTcpConfig};

use state::Event;
pub use state::State;

/// Why a connection ended before both ends closed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The peer reset it.
    Reset,
    /// The peer did not answer a SYN or data.
    TimedOut,
}

/// Counters of one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpStats {
    /// The sending side.
    pub send: SendStats,
    /// The receiving side.
    pub recv: RecvStats,
    /// Arrived segments that were malformed, had a wrong checksum or were for other ports.
    pub bad_segments: u64,
}

/// Control segments that wait to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Control {
    Syn,
    SynAck,
    /// The third segment of the handshake: kernels send it before the application can write.
    Ack,
    /// A probe of a closed window: an old sequence number that must be answered.
    Probe,
}

/// The result of the negotiation in the handshake.
#[derive(Clone, Copy, Debug, Default)]
struct Agreed {
    /// Both ends' smallest.
    mss: u16,
    timestamps: bool,
    /// Whether segments have what [`Connection::on_next`] expects of all.
    has_short_way: bool,
    sack: bool,
    ecn: bool,
    /// Shift for window fields of the peer.
    peer_shift: u8,
}

/// The addresses of this end and of its peer. Nearly all are short.
#[derive(Debug)]
enum Hosts {
    V4(Ipv4Addr, Ipv4Addr),
    Any(Box<(IpAddr, IpAddr)>),
}

impl Hosts {
    fn new(local: IpAddr, remote: IpAddr) -> Self {
        match (local, remote) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => Self::V4(local, remote),
            any => Self::Any(Box::new(any)),
        }
    }

    /// Both without ports, as in datagrams over raw IP, if they are short.
    #[inline(always)]
    fn v4(&self) -> Option<(SocketAddr, SocketAddr)> {
        let Self::V4(local, remote) = self else { return None };
        let raw_ip = |ip: &Ipv4Addr| SocketAddr::V4(SocketAddrV4::new(*ip, 0));
        Some((raw_ip(local), raw_ip(remote)))
    }

    fn ips(&self) -> (IpAddr, IpAddr) {
        match self {
            Self::V4(local, remote) => ((*local).into(), (*remote).into()),
            Self::Any(any) => **any,
        }
    }

    /// A datagram to the peer.
    #[cold]
    #[inline(never)]
    fn datagram(&self, header: HeaderBytes, payload: Payload, ecn: Ecn) -> Option<Datagram> {
        let (local, remote) = self.ips();
        let [src, dst] = [local, remote].map(|ip| SocketAddr::new(ip, 0));
        Some(Datagram { src, dst, protocol: Datagram::TCP, ecn, header, payload })
    }

    /// The sum of the pseudo-header, which is the same in both directions.
    fn pseudo(&self) -> Sum {
        let (local, remote) = self.ips();
        PseudoHeader::new(local, remote).sum(Datagram::TCP, 0)
    }
}

/// One end of a connection; [`crate::TcpSender`] and [`crate::TcpReceiver`] are its two roles.
#[derive(Debug)]
pub(crate) struct Connection<S: Side> {
    /// Our port and the peer's.
    ports: (u16, u16),
    config: Arc<Shared>,
    state: State,
    close_reason: Option<CloseReason>,
    send: S,
    recv: ReceiveSide<S::Arrivals>,
    agreed: Agreed,
    /// Our initial sequence number, and the peer's when it is known.
    isn: u32,
    peer_isn: u32,
    /// Added to our timestamps, so that they do not reveal our clock (RFC 7323 section 5.4).
    timestamp_offset: u32,
    /// TS.Recent of RFC 7323 section 4.3.
    recent_timestamp: u32,
    /// Last.ACK.sent of RFC 7323 section 4.3.
    last_ack_sent: u64,
    /// Whether to echo a congestion mark, which the peer has not confirmed yet.
    echo_congestion: bool,
    control: Option<Control>,
    /// Whether `open` was called; an end cannot be reused.
    opened: bool,
    syn_sent_at: Instant,
    /// Retransmission of SYN or SYN-ACK, or the end of TIME-WAIT.
    state_deadline: Instant,
    /// Close as soon as the peer does.
    close_with_peer: bool,
    hosts: Hosts,
    /// The sum of the pseudo-header, as a number.
    pseudo_number: u16,
    bad_segments: u32,
}

impl<S: Side> Connection<S> {
    /// An end that waits for `open` in state `Closed`, or for a SYN in state `Listen`.
    pub(crate) fn new(
        local: SocketAddr,
        remote: SocketAddr,
        SharedTcpConfig(config): SharedTcpConfig,
        seed: Seed,
        state: State,
    ) -> Self {
        let mut rng = seed.stream("tcp-initial-numbers");
        let (isn, timestamp_offset) = (rng.next_u64() as u32, rng.next_u64() as u32);
        let hosts = Hosts::new(local.ip(), remote.ip());
        Self {
            ports: (local.port(), remote.port()),
            state,
            close_reason: None,
            send: S::new(&config),
            recv: ReceiveSide::new(&config),
            agreed: Agreed::default(),
            isn: config.initial_sequence.unwrap_or(isn),
            peer_isn: 0,
            timestamp_offset,
            recent_timestamp: 0,
            last_ack_sent: 0,
            echo_congestion: false,
            control: None,
            opened: false,
            syn_sent_at: Instant::ZERO,
            state_deadline: Instant::MAX,
            close_with_peer: state == State::Listen,
            pseudo_number: hosts.pseudo().number(),
            hosts,
            bad_segments: 0,
            config,
        }
    }

    /// The state.
    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Why it ended early, if it did.
    pub(crate) fn close_reason(&self) -> Option<CloseReason> {
        self.close_reason
    }

    /// Counters so far.
    pub(crate) fn stats(&self) -> TcpStats {
        TcpStats {
            send: self.send.stats(),
            recv: self.recv.stats(),
            bad_segments: self.bad_segments.into(),
        }
    }

    /// Changes the state; an event that does not apply in this state is ignored.
    fn step(&mut self, now: Instant, event: Event) {
        if let Some(next) = self.state.after(event) {
            self.state = next;
            if next == State::TimeWait {
                self.state_deadline = now + self.config.time_wait;
            }
        }
    }

    fn abort(&mut self, now: Instant, reason: CloseReason) {
        self.step(now, Event::Abort);
        self.close_reason = Some(reason);
        self.control = None;
    }

    fn timestamp(&self, now: Instant) -> u32 {
        timestamp_at(now, self.timestamp_offset)
    }
}

/// Our timestamp clock, with ticks of one millisecond (RFC 7323 section 5.4 allows 1 ms to 1 s).
fn timestamp_at(now: Instant, offset: u32) -> u32 {
    ((now.as_nanos() / 1_000_000) as u32).wrapping_add(offset)
}
