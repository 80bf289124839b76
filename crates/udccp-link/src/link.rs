//! The contract of a link element.

use core::fmt;

use udccp_base::Instant;

use crate::change::Change;
use crate::histogram::DelayHistogram;
use crate::limit::{Backlog, QueueLimit};
use crate::stats::{DropReason, LinkStats};

/// Packets that a link refused or lost during one call, with the reason, in that order. The
/// caller owns it, empties it, and so knows of every packet what became of it.
pub type Drops<P> = Vec<(P, DropReason)>;

/// A link element: packets in, packets out later, in one direction.
///
/// Driving it: hand in packets with [`handle_packet`](Self::handle_packet); when the time of
/// [`poll_timeout`](Self::poll_timeout) has come, call
/// [`poll_departure`](Self::poll_departure) until `None`. `now` never goes backwards.
pub trait Link<P>: fmt::Debug + Send {
    /// A packet arrives at the near end.
    fn handle_packet(&mut self, now: Instant, packet: P, drops: &mut Drops<P>);

    /// The next packet that reaches the far end at `now` or before; `None` when there is none.
    fn poll_departure(&mut self, now: Instant, drops: &mut Drops<P>) -> Option<P>;

    /// When the next packet reaches the far end (or anything else happens); `None` while empty.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Packets now inside: waiting, being serialised, or propagating.
    fn packets_inside(&self) -> usize;

    /// What waits in the queue at `now`. See [`QueueLimit`] for what counts as waiting.
    fn backlog(&mut self, now: Instant) -> Backlog;

    /// When all that is in the queue and the transmitter at `now` has left them, if nothing else
    /// arrives; `now` where nothing waits, and where the element does not know.
    fn empties_at(&self, now: Instant) -> Instant {
        now
    }

    /// The limit of the queue.
    fn limit(&self) -> QueueLimit;

    /// Whether packets leave in the order of their arrival.
    fn keeps_order(&self) -> bool {
        true
    }

    /// Copies of packets that this link has made so far. All copies are made when the packet
    /// arrives, within [`handle_packet`](Self::handle_packet).
    fn duplicated(&self) -> u64 {
        0
    }

    /// From `now` on the link is another. A change that an element knows nothing of is none of its
    /// business; in a chain, those whose it is make it.
    fn change(&mut self, now: Instant, change: &Change, drops: &mut Drops<P>) {
        let _ = (now, change, drops);
    }

    /// Counters up to `now` (a copy; subtract two with [`LinkStats::since`]).
    fn stats(&self, now: Instant) -> LinkStats;

    /// The same without the record of queue delays, which is long: for whoever asks often.
    fn counters(&self, now: Instant) -> LinkStats {
        LinkStats { queue_delay: DelayHistogram::default(), ..self.stats(now) }
    }
}

impl<P, L: Link<P> + ?Sized> Link<P> for Box<L> {
    fn handle_packet(&mut self, now: Instant, packet: P, drops: &mut Drops<P>) {
        (**self).handle_packet(now, packet, drops);
    }

    fn poll_departure(&mut self, now: Instant, drops: &mut Drops<P>) -> Option<P> {
        (**self).poll_departure(now, drops)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (**self).poll_timeout()
    }

    fn packets_inside(&self) -> usize {
        (**self).packets_inside()
    }

    fn backlog(&mut self, now: Instant) -> Backlog {
        (**self).backlog(now)
    }

    fn empties_at(&self, now: Instant) -> Instant {
        (**self).empties_at(now)
    }

    fn limit(&self) -> QueueLimit {
        (**self).limit()
    }

    fn keeps_order(&self) -> bool {
        (**self).keeps_order()
    }

    fn duplicated(&self) -> u64 {
        (**self).duplicated()
    }

    fn change(&mut self, now: Instant, change: &Change, drops: &mut Drops<P>) {
        (**self).change(now, change, drops);
    }

    fn stats(&self, now: Instant) -> LinkStats {
        (**self).stats(now)
    }

    fn counters(&self, now: Instant) -> LinkStats {
        (**self).counters(now)
    }
}
