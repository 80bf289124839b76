//! Tracks messages whose fate the application wants to know, from their packets to the peer's
//! reports.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use udccp_wire::Seqno;

use crate::ackvec::{DropState, Evidence, NUMDUPACK, for_each_drop, for_each_run};
use crate::ccid::{AckInfo, PacketReport};
use crate::event::MessageFate;

/// A message in flight.
#[derive(Clone, Copy, Debug)]
struct Message {
    seq: Seqno,
    token: u64,
    state: FateState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FateState {
    Open,
    /// Known, but not yet reported to the application.
    Settled(MessageFate),
    Reported,
}

/// Messages in flight, ordered by sequence number. The first one is always open: a reported message
/// is kept only while an older one is open, and three later reports settle that.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct FateLog {
    messages: VecDeque<Message>,
    evidence: Evidence,
    /// Number of messages that are settled but not reported.
    news: usize,
}

impl FateLog {
    /// A message with this token was sent in packet `seq`, which is greater than all before.
    pub(super) fn on_sent(&mut self, seq: Seqno, token: u64) {
        self.messages.push_back(Message { seq, token, state: FateState::Open });
    }

    /// Whether any message is in flight.
    #[inline]
    pub(super) fn has_open(&self) -> bool {
        !self.messages.is_empty()
    }

    /// Reads an acknowledgement. If it has no Ack Vector, `read_others` visits the reports in
    /// congestion control's own options. `is_ecn` means that routers may have marked our packets.
    pub(in super::super) fn on_ack(
        &mut self,
        ack: &AckInfo<'_>,
        is_ecn: bool,
        read_others: impl FnOnce(&mut dyn FnMut(PacketReport, Seqno, Seqno)),
    ) {
        // Later reports only call these packets received, and do not repeat that they were dropped.
        self.settle_dropped(ack);
        if let Some((cells, _)) = ack.ack_vector {
            self.read_vector(ack.ackno, cells);
            return;
        }
        self.settle(ack.ackno, ack.ackno, MessageFate::Acknowledged);
        read_others(&mut |report, newest, oldest| {
            let fate = match report {
                PacketReport::Received => MessageFate::Acknowledged,
                PacketReport::LostOrMarked if is_ecn => MessageFate::Unknown,
                PacketReport::LostOrMarked => MessageFate::Lost,
                PacketReport::Unknown => MessageFate::Unknown,
            };
            self.settle(newest, oldest, fate);
        });
    }

    /// Settles the messages that were received and dropped according to Data Dropped, whatever else
    /// the acknowledgement reports.
    fn settle_dropped(&mut self, ack: &AckInfo<'_>) {
        for_each_drop(ack.ackno, ack.data_dropped, |state, newest, oldest| {
            if let DropState::Dropped(code) = state {
                self.settle(newest, oldest, MessageFate::PeerDropped(code));
            }
            ControlFlow::Continue(())
        });
    }

    fn read_vector(&mut self, ackno: Seqno, cells: &[u8]) {
        let Some(first) = self.messages.front().map(|m| m.seq) else { return };
        let mut wanted = NUMDUPACK;
        for_each_run(ackno, cells, |state, newest, oldest| {
            if newest.is_before(first) {
                return ControlFlow::Break(());
            }
            if state.is_received() {
                wanted = self.evidence.add_run(newest, oldest, wanted);
                self.settle(newest, oldest, MessageFate::Acknowledged);
            }
            ControlFlow::Continue(())
        });
        if let Some(third) = self.evidence.third_newest() {
            self.settle(third.prev(), first, MessageFate::Lost);
        }
    }

    /// Settles the open messages from `oldest` to `newest`.
    fn settle(&mut self, newest: Seqno, oldest: Seqno, fate: MessageFate) {
        let end = self.messages.partition_point(|m| m.seq.at_most(newest));
        for message in self.messages.range_mut(..end).rev() {
            if message.seq.is_before(oldest) {
                return;
            }
            if message.state == FateState::Open {
                message.state = FateState::Settled(fate);
                self.news += 1;
            }
        }
    }

    /// No more reports will come: settles all messages in flight with this fate.
    pub(in super::super) fn settle_all(&mut self, fate: MessageFate) {
        for message in self.messages.iter_mut().filter(|m| m.state == FateState::Open) {
            message.state = FateState::Settled(fate);
            self.news += 1;
        }
    }

    /// Calls `report` with token and fate of each message settled since the last call, in the order
    /// in which they were sent.
    pub(in super::super) fn report_news(&mut self, mut report: impl FnMut(u64, MessageFate)) {
        for message in &mut self.messages {
            if self.news == 0 {
                break;
            }
            if let FateState::Settled(fate) = message.state {
                message.state = FateState::Reported;
                self.news -= 1;
                report(message.token, fate);
            }
        }
        while self.messages.front().is_some_and(|m| m.state == FateState::Reported) {
            self.messages.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ackvec::DropCode;

    /// A report of loss intervals leaves out the newest packets. It reports them as received only
    /// after the peer knows that we have its report of the drops.
    #[test]
    fn a_drop_is_believed_before_the_packet_is_reported_as_received() {
        let mut log = FateLog::default();
        (1..=3).for_each(|n| log.on_sent(Seqno::new(n), n));
        let report = |ackno, data_dropped| AckInfo {
            ackno: Seqno::new(ackno),
            seq: Seqno::new(100 + ackno),
            ack_vector: None,
            data_dropped,
            elapsed: None,
            timestamp_echo_rtt: None,
            ccid_options: &[],
            slow_receiver: false,
            is_data_ack: false,
        };
        // One packet with Drop Code 1, one normal or not yet received, one with Drop Code 2.
        log.on_ack(&report(3, &[0x90, 0x00, 0xa0]), false, |_| ());
        log.on_ack(&report(4, &[]), false, |visit| {
            visit(PacketReport::Received, Seqno::new(4), Seqno::new(1));
        });
        let mut told = Vec::new();
        log.report_news(|token, fate| told.push((token, fate)));
        let dropped = MessageFate::PeerDropped;
        assert_eq!(
            told,
            [
                (1, dropped(DropCode::ReceiveBuffer)),
                (2, MessageFate::Acknowledged),
                (3, dropped(DropCode::ApplicationNotListening)),
            ]
        );
        assert!(!log.has_open());
    }
}
