//! A bounded queue of messages that wait for congestion control, with priorities and deadlines.

use std::collections::VecDeque;

use udccp_base::{Instant, MaybeInstant, Message, Payload};

use crate::config::QueuePolicy;
use crate::event::DropReason;

/// A message that was discarded from the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Discarded {
    /// Why it was discarded.
    pub(in super::super) reason: DropReason,
    /// Its payload length.
    pub(in super::super) bytes: u32,
    /// Its token, if the application wants to know its fate.
    pub(in super::super) token: Option<u64>,
}

/// A bounded queue: highest priority first, and first in, first out within a priority.
#[derive(Clone, Debug)]
pub(in super::super) struct SendQueue {
    /// Allocated with the first message that does not belong to a run.
    levels: Option<Box<Levels>>,
    /// Comes after all levels.
    run: Run,
    max_packets: u32,
    max_bytes: usize,
    policy: QueuePolicy,
    was_refused: bool,
    /// Whether there was room when the application last requested to be notified of a change.
    watched: Option<bool>,
}

/// Messages by priority.
#[derive(Clone, Debug, Default)]
struct Levels {
    /// Sorted by falling priority. Empty levels are kept for the next message.
    all: Vec<Level>,
    /// Number of messages, and their payload bytes.
    packets: usize,
    bytes: usize,
    with_deadline: u32,
    /// Messages that were sent, but are still at the front of the first level that is not empty.
    lent: u32,
    /// The earliest deadline among messages that were queued behind one with a later deadline. It
    /// may be too early, since some of them may have been sent.
    hidden_deadline: MaybeInstant,
}

impl Levels {
    /// The first level that is not empty.
    #[inline]
    fn first(&self) -> Option<&Level> {
        self.all.iter().find(|level| !level.waiting.is_empty())
    }

    #[inline]
    fn first_mut(&mut self) -> Option<&mut Level> {
        self.all.iter_mut().find(|level| !level.waiting.is_empty())
    }

    /// The messages of this priority.
    #[inline]
    fn of(&mut self, priority: u32) -> &mut VecDeque<Waiting> {
        if self.all.first().is_some_and(|first| first.priority == priority) {
            return &mut self.all[0].waiting;
        }
        let at = self.all.partition_point(|level| level.priority > priority);
        if self.all.get(at).is_none_or(|level| level.priority != priority) {
            self.all.insert(at, Level { priority, waiting: VecDeque::new() });
        }
        &mut self.all[at].waiting
    }

    /// This message was removed.
    #[inline]
    fn forget(&mut self, waiting: &Waiting) {
        self.packets -= 1;
        self.bytes -= waiting.payload.len();
        self.with_deadline -= u32::from(waiting.deadline.is_some());
    }

    /// A message with a deadline is about to be put at the end of its level.
    fn note_deadline(&mut self, priority: u32, deadline: Instant) {
        if self.with_deadline == 0 {
            self.hidden_deadline = MaybeInstant::NONE;
        }
        self.with_deadline += 1;
        let last = self.of(priority).back();
        if last.is_some_and(|last| last.outlives(deadline)) {
            self.hide_deadline(deadline);
        }
    }

    fn hide_deadline(&mut self, deadline: Instant) {
        self.hidden_deadline = self.hidden_deadline.earlier(MaybeInstant::some(deadline));
    }

    /// Finds the hidden deadlines again.
    fn hide_deadlines(&mut self) {
        self.hidden_deadline = MaybeInstant::NONE;
        for level in &self.all {
            let waiting = &level.waiting;
            for (message, behind) in waiting.iter().zip(waiting.iter().skip(1)) {
                let hidden = behind.deadline.filter(|&at| message.outlives(at));
                self.hidden_deadline = self.hidden_deadline.earlier(hidden.into());
            }
        }
    }
}

/// Messages of zeros, all of one size and of the lowest priority, with which an endless source
/// fills the queue.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    bytes: u32,
    count: u32,
}

impl Run {
    /// Bytes of all its messages.
    #[inline]
    fn len(self) -> usize {
        self.bytes as usize * self.count as usize
    }
}

#[derive(Clone, Debug)]
struct Level {
    priority: u32,
    waiting: VecDeque<Waiting>,
}

#[derive(Clone, Debug)]
struct Waiting {
    payload: Payload,
    deadline: Option<Instant>,
    token: Option<u64>,
}

impl Waiting {
    fn discarded(&self, reason: DropReason) -> Discarded {
        Discarded { reason, bytes: self.payload.len() as u32, token: self.token }
    }

    fn is_expired(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|d| d < now)
    }

    /// Whether it is still valid after a message with this deadline has expired.
    fn outlives(&self, deadline: Instant) -> bool {
        self.deadline.is_none_or(|own| own > deadline)
    }
}

impl SendQueue {
    /// An empty queue.
    pub(in super::super) fn new(max_packets: usize, max_bytes: usize, policy: QueuePolicy) -> Self {
        Self {
            levels: None,
            run: Run::default(),
            max_packets: saturating(max_packets),
            max_bytes,
            policy,
            was_refused: false,
            watched: None,
        }
    }

    /// Sets the limits for new messages. Queued messages beyond them are kept.
    pub(in super::super) fn set_limits(&mut self, max_packets: usize, max_bytes: usize) {
        (self.max_packets, self.max_bytes) = (saturating(max_packets.max(1)), max_bytes.max(1));
    }

    /// Maximum number of messages and payload bytes that may be queued.
    pub(in super::super) fn limits(&self) -> (usize, usize) {
        (self.max_packets as usize, self.max_bytes)
    }

    /// Sets what happens when the queue is full.
    pub(in super::super) fn set_policy(&mut self, policy: QueuePolicy) {
        self.policy = policy;
    }

    /// What happens when the queue is full.
    pub(in super::super) fn policy(&self) -> QueuePolicy {
        self.policy
    }

    /// The application knows whether there is room now, and wants to know when that changes.
    pub(in super::super) fn watch(&mut self, is_writable: bool) {
        self.watched = Some(is_writable);
    }

    /// Whether the application waits for room, or for any change.
    #[inline]
    pub(in super::super) fn awaits_change(&self) -> bool {
        self.was_refused || self.watched.is_some()
    }

    /// Whether the next change has to be reported.
    #[inline]
    pub(in super::super) fn is_watched(&self) -> bool {
        self.watched.is_some()
    }

    /// Whether this is a change that has to be reported. Returns true once per change.
    pub(in super::super) fn take_change(&mut self, is_writable: bool) -> bool {
        self.watched.take_if(|was| *was != is_writable).is_some()
    }

    /// Messages in the levels, and their payload bytes.
    #[inline]
    fn in_levels(&self) -> (usize, usize) {
        self.levels.as_ref().map_or((0, 0), |levels| (levels.packets, levels.bytes))
    }

    /// Number of queued messages.
    #[inline]
    pub(in super::super) fn packets(&self) -> usize {
        self.in_levels().0 + self.run.count as usize
    }

    /// Queued payload bytes.
    #[inline]
    pub(in super::super) fn bytes(&self) -> usize {
        self.in_levels().1 + self.run.len()
    }

    /// Whether the queue is empty.
    #[inline]
    pub(in super::super) fn is_empty(&self) -> bool {
        self.packets() == 0
    }

    /// How many messages of up to `size` bytes there is room for.
    pub(in super::super) fn free(&self, size: usize) -> usize {
        let packets = (self.max_packets as usize).saturating_sub(self.packets());
        if self.is_empty() {
            return packets.max(1);
        }
        let bytes = self.max_bytes.saturating_sub(self.bytes());
        packets.min(bytes / size.max(1))
    }

    /// Whether there is room for a message of `size` bytes.
    #[inline]
    pub(in super::super) fn fits(&self, size: usize) -> bool {
        self.fits_after(0, size)
    }

    /// The same when `count` more messages have joined the run.
    #[inline]
    fn fits_after(&self, count: u32, size: usize) -> bool {
        let packets = self.packets() + count as usize;
        let bytes = self.bytes() + count as usize * self.run.bytes as usize;
        packets == 0 || (packets < self.max_packets as usize && bytes + size <= self.max_bytes)
    }

    /// Queues a message. Messages discarded to make room are passed to `discarded`.
    ///
    /// # Errors
    /// The queue is full; the error returns the message.
    #[inline]
    pub(in super::super) fn push(
        &mut self,
        now: Instant,
        message: Message,
        discarded: &mut dyn FnMut(Discarded),
    ) -> Result<(), Message> {
        let size = message.payload.len();
        if !self.fits(size) {
            self.purge_expired(now, discarded);
            if !self.fits(size) && self.policy == QueuePolicy::DropLowest {
                self.make_room(size, message.priority, discarded);
            }
            if !self.fits(size) {
                self.was_refused = true;
                return Err(message);
            }
        }
        self.put(message);
        Ok(())
    }

    /// Queues a message for which there is room. Inlined, to write the message only once, in its
    /// final place: a message that was just written field by field is slow to copy.
    #[inline(always)]
    pub(in super::super) fn put(&mut self, message: Message) {
        if self.run.count > 0 {
            self.break_run();
        }
        let levels = self.levels.get_or_insert_default();
        levels.packets += 1;
        levels.bytes += message.payload.len();
        let Message { payload, deadline, priority, token } = message;
        if let Some(deadline) = deadline {
            levels.note_deadline(priority, deadline);
        }
        levels.of(priority).push_back(Waiting { payload, deadline, token });
    }

    /// Queues messages of `bytes` zeros, of the lowest priority, at most `most` and at least one,
    /// while there is room for one of `largest` bytes. Returns how many.
    #[inline]
    pub(in super::super) fn put_zeros(&mut self, bytes: u32, most: u32, largest: usize) -> u32 {
        if self.run.count > 0 && self.run.bytes != bytes {
            self.break_run();
        }
        self.run.bytes = bytes;
        let mut count = 1;
        while count != most && self.fits_after(count, largest) {
            count += 1;
        }
        self.run.count += count;
        count
    }

    /// Turns the run into ordinary messages.
    #[cold]
    fn break_run(&mut self) {
        let run = core::mem::take(&mut self.run);
        if run.count == 0 {
            return;
        }
        let levels = self.levels.get_or_insert_default();
        levels.packets += run.count as usize;
        levels.bytes += run.len();
        let level = levels.of(0);
        for _ in 0..run.count {
            let payload = Payload::Zeros(run.bytes);
            level.push_back(Waiting { payload, deadline: None, token: None });
        }
    }

    /// Whether the run is all that is queued.
    #[inline]
    fn is_run(&self) -> bool {
        self.run.count > 0 && self.in_levels().0 == 0
    }

    /// The application waits for room, as after a refusal.
    pub(crate) fn want_room(&mut self) {
        self.was_refused = true;
    }

    /// Whether the queue has fallen to half its limits after a refusal. Returns true once.
    pub(in super::super) fn take_writable(&mut self) -> bool {
        if !self.was_refused {
            return false;
        }
        let half =
            self.packets() <= self.max_packets as usize / 2 && self.bytes() <= self.max_bytes / 2;
        self.was_refused = !half;
        half
    }

    /// Whether any message has a deadline.
    #[inline]
    pub(in super::super) fn has_deadlines(&self) -> bool {
        self.levels.as_ref().is_some_and(|levels| levels.with_deadline > 0)
    }

    /// Payload length in bytes of the next message, for a queue without deadlines.
    #[inline]
    pub(in super::super) fn next_len(&self) -> Option<usize> {
        if self.is_run() {
            return Some(self.run.bytes as usize);
        }
        let levels = self.levels.as_ref()?;
        levels.first()?.waiting.get(levels.lent as usize).map(|waiting| waiting.payload.len())
    }

    /// The same if the next message and all others are zeros of one size.
    #[inline(always)]
    pub(in super::super) fn next_zeros(&self) -> Option<u32> {
        self.is_run().then_some(self.run.bytes)
    }

    /// Removes the next message; it and all others are zeros of one size. Returns its length in
    /// bytes, and that of the next one.
    #[inline(always)]
    pub(in super::super) fn pop_zeros(&mut self) -> (u32, Option<u32>) {
        debug_assert!(self.is_run());
        self.run.count -= 1;
        (self.run.bytes, (self.run.count > 0).then_some(self.run.bytes))
    }

    /// Payload length in bytes of the next message. Discards expired messages first.
    pub(in super::super) fn front_len(
        &mut self,
        now: Instant,
        discarded: &mut dyn FnMut(Discarded),
    ) -> Option<usize> {
        self.break_run();
        while let Some(level) = self.levels.as_ref().and_then(|levels| levels.first()) {
            let front = level.waiting.front()?;
            if !front.is_expired(now) {
                return Some(front.payload.len());
            }
            if let Some(waiting) = self.take() {
                discarded(waiting.discarded(DropReason::Expired));
            }
        }
        None
    }

    /// Removes the next message. Returns it and its token.
    #[inline]
    pub(in super::super) fn pop(&mut self) -> Option<(Payload, Option<u64>)> {
        self.take().map(|waiting| (waiting.payload, waiting.token))
    }

    /// Lets `copy` read the next message, and removes it. Returns its length in bytes and its
    /// token, or `None` if the queue is empty or its priority differs from that of the lent
    /// messages. [`Self::drop_lent`] frees the message, and has to be called before any other
    /// change. Decrementing a reference count right after the copy would wait for the copy's
    /// writes, which takes longer than everything else that is done for a message.
    #[inline]
    pub(in super::super) fn lend(
        &mut self,
        copy: impl FnOnce(&Payload),
    ) -> Option<(usize, Option<u64>)> {
        if self.is_run() {
            let is_lent = self.levels.as_ref().is_some_and(|levels| levels.lent > 0);
            let (payload, token) = if is_lent { None } else { self.pop() }?;
            copy(&payload);
            return Some((payload.len(), token));
        }
        let levels = self.levels.as_mut()?;
        let waiting = levels.first()?.waiting.get(levels.lent as usize)?;
        copy(&waiting.payload);
        let (size, token) = (waiting.payload.len(), waiting.token);
        let has_deadline = waiting.deadline.is_some();
        levels.packets -= 1;
        levels.bytes -= size;
        levels.with_deadline -= u32::from(has_deadline);
        levels.lent += 1;
        Some((size, token))
    }

    /// Frees the messages that [`Self::lend`] removed.
    #[inline]
    pub(in super::super) fn drop_lent(&mut self) {
        let Some(levels) = &mut self.levels else { return };
        let lent = core::mem::take(&mut levels.lent) as usize;
        if let Some(level) = levels.first_mut() {
            level.waiting.drain(..lent);
        }
    }

    /// Discards the next message.
    pub(in super::super) fn discard(&mut self, reason: DropReason) -> Option<Discarded> {
        self.take().map(|waiting| waiting.discarded(reason))
    }

    #[inline]
    fn take(&mut self) -> Option<Waiting> {
        debug_assert!(self.levels.as_ref().is_none_or(|levels| levels.lent == 0));
        if self.is_run() {
            let payload = Payload::Zeros(self.pop_zeros().0);
            return Some(Waiting { payload, deadline: None, token: None });
        }
        let levels = self.levels.as_mut()?;
        let waiting = levels.first_mut()?.waiting.pop_front()?;
        levels.forget(&waiting);
        Some(waiting)
    }

    /// The earliest deadline, for a timer. Until the next [`Self::purge_expired`] it may be that of
    /// a message which was already sent, if that had been queued behind one with a later deadline.
    pub(in super::super) fn next_deadline(&self) -> Option<Instant> {
        let levels = self.levels.as_ref().filter(|levels| levels.with_deadline > 0)?;
        let first = levels.all.iter().filter_map(|l| l.waiting.front()?.deadline);
        first.chain(levels.hidden_deadline.get()).min()
    }

    /// Discards every message whose deadline has passed.
    pub(in super::super) fn purge_expired(
        &mut self,
        now: Instant,
        discarded: &mut dyn FnMut(Discarded),
    ) {
        if !self.has_deadlines() {
            return;
        }
        self.discard_where(DropReason::Expired, |waiting| waiting.is_expired(now), discarded);
        if let Some(levels) = &mut self.levels {
            levels.hide_deadlines();
        }
    }

    /// Discards the messages for which `is_gone` is true.
    fn discard_where(
        &mut self,
        reason: DropReason,
        is_gone: impl Fn(&Waiting) -> bool,
        discarded: &mut dyn FnMut(Discarded),
    ) {
        let Some(levels) = &mut self.levels else { return };
        let Levels { all, packets, bytes, with_deadline, .. } = &mut **levels;
        for level in all {
            level.waiting.retain(|waiting| {
                let is_gone = is_gone(waiting);
                if is_gone {
                    *packets -= 1;
                    *bytes -= waiting.payload.len();
                    *with_deadline -= u32::from(waiting.deadline.is_some());
                    discarded(waiting.discarded(reason));
                }
                !is_gone
            });
        }
    }

    /// Discards every message larger than `max` bytes.
    pub(in super::super) fn remove_larger(
        &mut self,
        max: usize,
        discarded: &mut dyn FnMut(Discarded),
    ) {
        self.break_run();
        let is_larger = |waiting: &Waiting| waiting.payload.len() > max;
        self.discard_where(DropReason::TooLarge, is_larger, discarded);
    }

    /// Discards the newest messages of the lowest priority below `priority` until `size` fits,
    /// unless even that would not make enough room.
    fn make_room(&mut self, size: usize, priority: u32, discarded: &mut dyn FnMut(Discarded)) {
        self.break_run();
        let (all, bytes) = (self.levels.iter().flat_map(|levels| &levels.all), self.bytes());
        let lower = all.filter(|l| l.priority < priority);
        let below: usize = lower.flat_map(|l| &l.waiting).map(|w| w.payload.len()).sum();
        if bytes - below + size > self.max_bytes && bytes != below {
            return;
        }
        while !self.fits(size) {
            let Some(levels) = &mut self.levels else { return };
            let lowest = levels.all.iter_mut().rev().find(|l| !l.waiting.is_empty());
            let Some(level) = lowest.filter(|l| l.priority < priority) else { return };
            let Some(waiting) = level.waiting.pop_back() else { return };
            levels.forget(&waiting);
            discarded(waiting.discarded(DropReason::Displaced));
        }
    }
}

/// A queue never holds more messages than `u32::MAX`.
fn saturating(packets: usize) -> u32 {
    u32::try_from(packets).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
