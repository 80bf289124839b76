//! The interface of a link element.

use core::fmt;

use udccp_base::Instant;

use crate::change::Change;
use crate::histogram::DelayHistogram;
use crate::limit::{Backlog, QueueLimit};
use crate::stats::{DropReason, LinkStats};

/// Packets that a link refused or lost in one call, with the reasons, in order. The caller owns it
/// and empties it, and so knows the fate of every packet.
pub type Drops<P> = Vec<(P, DropReason)>;

/// A link element: packets go in, and come out later, in one direction.
///
/// To drive it, pass packets to [`handle_packet`](Self::handle_packet). When the time of
/// [`poll_timeout`](Self::poll_timeout) has come, call [`poll_departure`](Self::poll_departure)
/// until it returns `None`. `now` must not go backwards.
pub trait Link<P>: fmt::Debug + Send {
    /// A packet arrives at the near end.
    fn handle_packet(&mut self, now: Instant, packet: P, drops: &mut Drops<P>);

    /// The next packet that has reached the far end by `now`; `None` if there is none.
    fn poll_departure(&mut self, now: Instant, drops: &mut Drops<P>) -> Option<P>;

    /// When the next packet reaches the far end, or another event is due; `None` if there is none.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Number of packets inside: waiting, in transmission, or propagating.
    fn packets_inside(&self) -> usize;

    /// The backlog of the queue at `now`. See [`QueueLimit`] for what it includes.
    fn backlog(&mut self, now: Instant) -> Backlog;

    /// When the packets now in queue and transmitter will have left, if no others arrive; `now` if
    /// there are none, or if the element does not know.
    fn empties_at(&self, now: Instant) -> Instant {
        now
    }

    /// The limit of the queue.
    fn limit(&self) -> QueueLimit;

    /// Whether packets leave in order of arrival.
    fn keeps_order(&self) -> bool {
        true
    }

    /// Number of packets duplicated so far. Copies are made when a packet arrives, in
    /// [`handle_packet`](Self::handle_packet).
    fn duplicated(&self) -> u64 {
        0
    }

    /// Applies a change at `now`. An element ignores changes that do not concern it; in a chain,
    /// the element concerned applies it.
    fn change(&mut self, now: Instant, change: &Change, drops: &mut Drops<P>) {
        let _ = (now, change, drops);
    }

    /// Counters up to `now`, as a copy; [`LinkStats::since`] is the difference of two.
    fn stats(&self, now: Instant) -> LinkStats;

    /// The same without the histogram of queue delays, which is large, for frequent calls.
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
