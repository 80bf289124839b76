//! The interface of everything that reacts to packets and time.

use crate::datagram::Datagram;
use crate::time::Instant;

/// What [`Machine::poll_transmit_into`] has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Nothing: there is nothing to send.
    Nothing,
    /// A datagram; there may be more.
    One,
    /// A datagram, and there are no more.
    Last,
}

/// A state machine with no clock and no I/O: an endpoint, a TCP model, a link.
/// To drive it, change one thing (`handle_datagram`, `handle_timeout`, or a command of the concrete
/// type), then drain `poll_transmit` until it returns `None`, then read `poll_timeout` and wait.
/// Several datagrams that arrived together may be handled before one drain; they are then
/// acknowledged together. `now` must not go backwards. An early `handle_timeout` is harmless.
pub trait Machine {
    /// A datagram arrived.
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram);

    /// As [`Self::handle_datagram`], for the datagram in `place`, which is empty afterwards. A
    /// datagram is large; this saves a driver from moving it.
    fn handle_datagram_in(&mut self, now: Instant, place: &mut Option<Datagram>) {
        if let Some(datagram) = place.take() {
            self.handle_datagram(now, datagram);
        }
    }

    /// The time of `poll_timeout` has come.
    fn handle_timeout(&mut self, now: Instant);

    /// The next datagram to send; `None` if there is no more.
    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram>;

    /// As [`Self::poll_transmit`], but writes to `out`, which must be empty. A datagram is large;
    /// this saves a driver from moving it.
    fn poll_transmit_into(&mut self, now: Instant, out: &mut Option<Datagram>) -> Sent {
        *out = self.poll_transmit(now);
        if out.is_some() { Sent::One } else { Sent::Nothing }
    }

    /// Whether `poll_transmit` may return something; cheaper than calling it.
    fn may_transmit(&self) -> bool {
        true
    }

    /// When to call `handle_timeout`; `None` if nothing is pending. Valid after a drain.
    fn poll_timeout(&self) -> Option<Instant>;
}
