//! Sends data in trains: consecutive packets written into the driver's batch.

use udccp_base::{Datagram, Instant, Payload};
use udccp_wire::{DataRun, DataTemplate, HeaderKind, PacketType};

use super::super::{Connection, Ctx};
use super::packet::WrittenOptions;
use crate::ccid::Feedback;
use crate::endpoint::Train;
use crate::state::State;

impl Connection {
    /// Writes the packets that [`Self::poll_transmit`] would return next into `train`, at most
    /// `most`, while they are Data without options on the same path as `like`. Returns how many.
    pub(crate) fn transmit_run(
        &mut self,
        ctx: &mut Ctx<'_>,
        like: &Datagram,
        most: u32,
        train: &mut impl Train,
    ) -> u32 {
        let mut count = 0;
        let Some(template) = self.run_template(ctx.now, like) else { return count };
        while count < most && self.next_fits(ctx.now, train, count > 0) {
            let header = template.with(self.seq.gss.next(), self.cc.ccval(ctx.now));
            let copy = |payload: &Payload| train.put(&header, payload);
            let Some((size, token)) = self.send.queue_mut().lend(copy) else { break };
            let seq = self.seq.take_next();
            let written = WrittenOptions::default();
            self.account(ctx.now, PacketType::Data, seq, size, like.ecn, written);
            if let Some(token) = token {
                self.send.follow(seq, token);
            }
            count += 1;
        }
        if count > 0 {
            self.send.queue_mut().drop_lent();
            self.end_train(train);
            self.note_writable(ctx);
            self.after_data(ctx);
        }
        count
    }

    /// Whether the first message fits in the train and may be sent without an acknowledgement.
    /// `follows` is true if another has just been sent.
    #[inline]
    fn next_fits(&mut self, now: Instant, train: &impl Train, follows: bool) -> bool {
        let Some(size) = self.send.queue().next_len() else { return false };
        train.takes(DataRun::HEADER_LEN + size)
            && !self.cc.wants_ack_of_ack()
            && (follows && self.cc.may_follow() || self.cc.may_send(&self.config, now, size as u32))
    }

    /// If the train is full, the free part of the window may wait for a train of its own.
    fn end_train(&mut self, train: &impl Train) {
        let next = self.send.queue().next_len();
        if next.is_some_and(|size| !train.takes(DataRun::HEADER_LEN + size)) {
            self.cc.end_train(self.send.queue().packets());
        }
    }

    /// The common header of all packets of a run. Returns `None` if the next packet may be anything
    /// but Data without options on the same path as `like`.
    fn run_template(&mut self, now: Instant, like: &Datagram) -> Option<DataTemplate> {
        let tuple = &self.who.tuple;
        let is_data = !self.send.queue().is_empty() && self.state == State::Open;
        let same_path = (like.src, like.dst) == (tuple.local, tuple.remote);
        if !is_data || !same_path || !self.path.is_encapsulated() || !self.outbox.has_no_control() {
            return None;
        }
        let owes_nothing = !self.outbox.ack
            && !self.negotiation.has_due(now)
            && self.cc.feedback(now) == Feedback::None;
        let is_plain = !self.needs_long_way();
        // A packet may have to be marked as a probe.
        let same_ecn =
            self.config.ecn_probe.is_none() && self.ecn_of(now, PacketType::Data) == like.ecn;
        let has_cookies = !self.handshake.cookies().is_empty();
        let leaves = owes_nothing && is_plain && same_ecn && !has_cookies;
        if !leaves || self.send.queue().has_deadlines() || !self.has_what_it_needs() {
            return None;
        }
        self.header(now, HeaderKind::Data, self.seq.gss).data_template()
    }
}
