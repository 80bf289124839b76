//! Follows the messages whose fate the application asked for, from their packets to what the peer
//! reports.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use udccp_wire::Seqno;

use crate::ackvec::{DropCode, DropState, Evidence, NUMDUPACK, for_each_drop, for_each_run};
use crate::ccid::{AckInfo, PacketReport};
use crate::event::MessageFate;

/// One message on its way.
#[derive(Clone, Copy, Debug)]
struct Message {
    seq: Seqno,
    token: u64,
    state: FateState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FateState {
    Open,
    /// Known, and not reported to the application yet.
    Settled(MessageFate),
    Reported,
}

/// Messages on their way, in order of sequence numbers. The first of them is open: what was
/// reported stays only as long as an older message is open, which three later reports end.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct FateLog {
    messages: VecDeque<Message>,
    evidence: Evidence,
    /// Messages that are settled and not reported.
    news: usize,
}

impl FateLog {
    /// A message with this token left in the packet `seq`, which is greater than all before.
    pub(super) fn on_sent(&mut self, seq: Seqno, token: u64) {
        self.messages.push_back(Message { seq, token, state: FateState::Open });
    }

    /// Whether a message is on its way.
    #[inline]
    pub(super) fn has_open(&self) -> bool {
        !self.messages.is_empty()
    }

    /// Reads an acknowledgement. Where it has no Ack Vector, `read_others` visits what congestion
    /// control's own options report; `is_ecn`: routers may have marked what was sent.
    pub(in super::super) fn on_ack(
        &mut self,
        ack: &AckInfo<'_>,
        is_ecn: bool,
        read_others: impl FnOnce(&mut dyn FnMut(PacketReport, Seqno, Seqno)),
    ) {
        if let Some((cells, _)) = ack.ack_vector {
            self.read_vector(ack, cells);
            return;
        }
        self.settle_received(ack.ackno, ack.ackno, ack);
        read_others(&mut |report, newest, oldest| match report {
            PacketReport::Received => self.settle_received(newest, oldest, ack),
            PacketReport::LostOrMarked if is_ecn => {
                self.settle(newest, oldest, |_| MessageFate::Unknown);
            }
            PacketReport::LostOrMarked => self.settle(newest, oldest, |_| MessageFate::Lost),
            PacketReport::Unknown => self.settle(newest, oldest, |_| MessageFate::Unknown),
        });
    }

    fn read_vector(&mut self, ack: &AckInfo<'_>, cells: &[u8]) {
        let Some(first) = self.messages.front().map(|m| m.seq) else { return };
        let mut wanted = NUMDUPACK;
        for_each_run(ack.ackno, cells, |state, newest, oldest| {
            if newest.is_before(first) {
                return ControlFlow::Break(());
            }
            if state.is_received() {
                wanted = self.evidence.add_run(newest, oldest, wanted);
                self.settle_received(newest, oldest, ack);
            }
            ControlFlow::Continue(())
        });
        if let Some(third) = self.evidence.third_newest() {
            self.settle(third.prev(), first, |_| MessageFate::Lost);
        }
    }

    fn settle_received(&mut self, newest: Seqno, oldest: Seqno, ack: &AckInfo<'_>) {
        self.settle(newest, oldest, |seq| match drop_code(seq, ack) {
            Some(code) => MessageFate::PeerDropped(code),
            None => MessageFate::Acknowledged,
        });
    }

    /// Settles what is open from `oldest` to `newest`.
    fn settle(&mut self, newest: Seqno, oldest: Seqno, fate: impl Fn(Seqno) -> MessageFate) {
        let end = self.messages.partition_point(|m| m.seq.at_most(newest));
        for message in self.messages.range_mut(..end).rev() {
            if message.seq.is_before(oldest) {
                return;
            }
            if message.state == FateState::Open {
                message.state = FateState::Settled(fate(message.seq));
                self.news += 1;
            }
        }
    }

    /// Nothing more will be known of what is on its way.
    pub(in super::super) fn settle_all(&mut self, fate: MessageFate) {
        for message in self.messages.iter_mut().filter(|m| m.state == FateState::Open) {
            message.state = FateState::Settled(fate);
            self.news += 1;
        }
    }

    /// Calls `report` with token and fate of each message that was settled since the last call, in
    /// the order in which they left.
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

/// What the acknowledgement reports of the data of a packet that arrived, where that was dropped.
fn drop_code(seq: Seqno, ack: &AckInfo<'_>) -> Option<DropCode> {
    let mut found = None;
    for_each_drop(ack.ackno, ack.data_dropped, |state, newest, oldest| {
        match state {
            _ if newest.is_before(seq) => return ControlFlow::Break(()),
            DropState::Dropped(code) if oldest.at_most(seq) => found = Some(code),
            _ => return ControlFlow::Continue(()),
        }
        ControlFlow::Break(())
    });
    found
}
