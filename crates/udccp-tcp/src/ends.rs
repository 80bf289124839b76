//! The two ends of a flow: one opens and sends; the other waits, receives, and closes after it.

use core::net::SocketAddr;

use udccp_base::{
    AppPort, Datagram, Instant, Machine, Message, Payload, Probe, Seed, SendOutcome, Sent,
    Transport,
};

use crate::connection::{CloseReason, Connection, State, TcpStats};
use crate::send::{LazySide, SendSide};
use crate::shared::SharedTcpConfig;

/// The active end: opens the connection and sends.
///
/// A message adds its length to the byte stream; boundaries and contents are not kept. A message of
/// [`udccp_base::AppPort::max_payload`] bytes fills one segment.
#[derive(Debug)]
pub struct TcpSender(Connection<SendSide>);

/// The passive end: answers a SYN, receives, and closes when the peer has closed.
///
/// Read with [`Transport::poll_delivered`] before draining: unread data reduces the window that the
/// next acknowledgement advertises.
#[derive(Debug)]
pub struct TcpReceiver(Connection<LazySide>);

impl TcpSender {
    /// An end at `local` that will open to `remote`; both addresses have TCP ports. `seed` gives
    /// the initial sequence number and timestamp.
    pub fn new(
        local: SocketAddr,
        remote: SocketAddr,
        config: impl Into<SharedTcpConfig>,
        seed: Seed,
    ) -> Self {
        Self(Connection::new(local, remote, config.into(), seed.derive("active"), State::Closed))
    }
}

impl TcpReceiver {
    /// An end at `local` that waits for `remote`; both addresses have TCP ports. `seed` gives the
    /// initial sequence number and timestamp.
    pub fn new(
        local: SocketAddr,
        remote: SocketAddr,
        config: impl Into<SharedTcpConfig>,
        seed: Seed,
    ) -> Self {
        Self(Connection::new(local, remote, config.into(), seed.derive("passive"), State::Listen))
    }
}

macro_rules! an_end {
    ($end:ty) => {
        impl $end {
            /// The state of the connection.
            pub fn state(&self) -> State {
                self.0.state()
            }

            /// Why the connection ended before both ends closed it.
            pub fn close_reason(&self) -> Option<CloseReason> {
                self.0.close_reason()
            }

            /// Counters so far.
            pub fn stats(&self) -> TcpStats {
                self.0.stats()
            }
        }

        impl Machine for $end {
            #[inline]
            fn handle_datagram(&mut self, now: Instant, datagram: Datagram) {
                self.0.handle_datagram(now, datagram);
            }
            #[inline]
            fn handle_datagram_in(&mut self, now: Instant, place: &mut Option<Datagram>) {
                self.0.handle_datagram_in(now, place);
            }
            fn handle_timeout(&mut self, now: Instant) {
                self.0.handle_timeout(now);
            }
            #[inline]
            fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
                self.0.poll_transmit(now)
            }
            #[inline]
            fn poll_transmit_into(&mut self, now: Instant, out: &mut Option<Datagram>) -> Sent {
                self.0.poll_transmit_into(now, out)
            }
            #[inline]
            fn may_transmit(&self) -> bool {
                self.0.may_transmit()
            }
            #[inline]
            fn poll_timeout(&self) -> Option<Instant> {
                self.0.poll_timeout()
            }
        }

        impl AppPort for $end {
            #[inline]
            fn send(&mut self, now: Instant, message: Message) -> SendOutcome {
                self.0.send(now, message)
            }
            #[inline]
            fn fill(&mut self, now: Instant, bytes: Option<u32>, most: u32) -> (u32, u32) {
                self.0.fill(now, bytes, most)
            }
            #[inline]
            fn is_writable(&self) -> bool {
                self.0.is_writable()
            }
            fn close(&mut self, now: Instant) {
                self.0.close(now);
            }
            fn max_payload(&self) -> usize {
                self.0.max_payload()
            }

            fn keeps_boundaries(&self) -> bool {
                self.0.keeps_boundaries()
            }
        }

        impl Transport for $end {
            fn open(&mut self, now: Instant) {
                self.0.open(now);
            }
            #[inline]
            fn poll_delivered(&mut self, now: Instant) -> Option<Payload> {
                self.0.poll_delivered(now)
            }
            #[inline]
            fn take_delivered(&mut self, now: Instant) -> u64 {
                self.0.take_delivered(now)
            }
            #[inline]
            fn receive_in(&mut self, now: Instant, place: &mut Option<Datagram>) -> (u64, Instant) {
                self.0.receive_in(now, place)
            }
            fn watches_device(&self) -> bool {
                self.0.watches_device()
            }
            #[inline]
            fn on_device(&mut self, now: Instant, ip_len: u32, leaves: Instant) {
                self.0.on_device(now, ip_len, leaves);
            }
            fn is_closed(&self) -> bool {
                self.0.is_closed()
            }
            fn is_spent(&self) -> bool {
                self.0.is_spent()
            }
            fn probe(&self) -> Probe {
                self.0.probe()
            }
        }
    };
}

an_end!(TcpSender);
an_end!(TcpReceiver);
