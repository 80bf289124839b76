//! The send queue of live media: old messages are dropped instead of queued without bound.

use std::collections::VecDeque;

use udccp_base::{AppPort, Duration, Instant, Payload};

use super::pieces::{Assembly, Partly, since};
use super::{SourceStats, Times};

/// Messages of a live source: the queue in front of the transport, and the fate of each message.
///
/// A message that waits for longer than `patience` is dropped, by this queue or (as its deadline)
/// by the transport. A byte stream must complete a message that it has begun, so there only
/// messages of which it has taken nothing are dropped.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    patience: Duration,
    waiting: VecDeque<Partly>,
    next_id: u32,
    assembly: Assembly,
    times: Times,
    stats: SourceStats,
}

impl Outbox {
    pub(super) fn new(patience: Duration) -> Self {
        Self {
            patience,
            waiting: VecDeque::new(),
            next_id: 0,
            assembly: Assembly::default(),
            times: Times::default(),
            stats: SourceStats::default(),
        }
    }

    /// Adds a message created at `now`.
    pub(super) fn push(&mut self, now: Instant, bytes: u32) {
        let deadline = Some(now + self.patience);
        self.waiting.push_back(Partly::new(self.next_id, now, bytes, deadline));
        self.next_id = self.next_id.wrapping_add(1);
        self.times.begun += 1;
    }

    /// Offers waiting messages. Returns whether anything was accepted.
    pub(super) fn offer(&mut self, now: Instant, port: &mut dyn AppPort) -> bool {
        let is_stream = !port.keeps_boundaries();
        let mut taken = false;
        while let Some(first) = self.waiting.front_mut() {
            let is_late = first.deadline.is_some_and(|deadline| deadline < now);
            if is_late && !(is_stream && first.taken > 0) {
                self.times.given_up += 1;
                self.stats.refused += 1;
                self.waiting.pop_front();
                continue;
            }
            let before = first.taken;
            let is_done = first.offer(now, port);
            taken |= first.taken > before;
            self.stats.accepted_bytes += u64::from(first.taken - before);
            if !is_done {
                break;
            }
            self.stats.accepted += 1;
            if let Some(done) = self.waiting.pop_front().filter(|_| is_stream) {
                self.assembly.expect(&done);
            }
        }
        taken
    }

    /// Data arrived at the receiver.
    pub(super) fn delivered(&mut self, now: Instant, payload: &Payload) {
        let done = &mut self.times.done;
        self.assembly.take(payload, |_, made| done.push(since(now, made)));
    }

    pub(super) const fn stats(&self) -> SourceStats {
        self.stats
    }

    pub(super) const fn times(&self) -> &Times {
        &self.times
    }
}
