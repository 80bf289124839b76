//! The one contract by which everything that reacts is driven.

use crate::datagram::Datagram;
use crate::time::Instant;

/// A state machine with no clock and no I/O: an endpoint, a TCP model, a link.
///
/// Driving it: change one thing (`handle_datagram`, `handle_timeout`, or a command of the
/// concrete type), then drain `poll_transmit` until `None`, then read `poll_timeout` and wait.
/// Several datagrams that arrived together may be handled before one drain; feedback for all of
/// them is then decided once. `now` never goes backwards; an early `handle_timeout` is harmless.
pub trait Machine {
    /// A datagram arrived.
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram);

    /// As [`Self::handle_datagram`], of the datagram in `place`, which holds nothing afterwards. A
    /// datagram is long: a driver that keeps many hands over the one where it lies.
    fn handle_datagram_in(&mut self, now: Instant, place: &mut Option<Datagram>) {
        if let Some(datagram) = place.take() {
            self.handle_datagram(now, datagram);
        }
    }

    /// The time that `poll_timeout` named has come.
    fn handle_timeout(&mut self, now: Instant);

    /// The next datagram to put on the wire, or `None` when all is said.
    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram>;

    /// As [`Self::poll_transmit`], into `out`, which holds nothing before; returns whether it does
    /// then. A datagram is long: a driver that keeps many has it written where it stays.
    fn poll_transmit_into(&mut self, now: Instant, out: &mut Option<Datagram>) -> bool {
        *out = self.poll_transmit(now);
        out.is_some()
    }

    /// When to call `handle_timeout`; `None` while nothing is pending. Valid after a drain.
    fn poll_timeout(&self) -> Option<Instant>;
}
