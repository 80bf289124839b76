//! The receiver half: what it is told, and which acknowledgements it owes.

use udccp_base::{Instant, MaybeInstant};
use udccp_wire::Seqno;

use super::CongestionControl;
use crate::ccid::{
    CcidReceiver as _, Feedback, OptionSink, ReceiverHalf, ReceiverMetrics, of_receiver,
};
use crate::config::ConnectionConfig;

impl CongestionControl {
    /// The newest packet that the receiver half knows, and when it arrived.
    pub(in crate::connection) fn newest(&self) -> Option<(Seqno, Instant)> {
        self.rx.as_ref().and_then(|rx| of_receiver!(rx, rx => rx.newest()))
    }

    /// CCID of the receiver half.
    pub(in crate::connection) fn receiver_ccid(&self) -> Option<u8> {
        self.rx.as_ref().map(|rx| of_receiver!(rx, rx => rx.ccid()))
    }

    /// State of the receiver half.
    pub(in crate::connection) fn receiver_metrics(&self, now: Instant) -> Option<ReceiverMetrics> {
        self.rx.as_ref().and_then(|rx| of_receiver!(rx, rx => rx.metrics(now)))
    }

    /// Replaces a receiver half that stands in for the whole one, if this packet needs the whole.
    #[inline(never)]
    pub(super) fn use_whole_receiver_for(
        &mut self,
        config: &ConnectionConfig,
        seq: Seqno,
        is_data: bool,
    ) {
        if let Some(ReceiverHalf::UnusedTfrc(rx)) = &self.rx {
            if rx.needs_whole_for(seq, is_data) {
                self.use_whole_receiver(config);
            }
        }
    }

    #[inline(never)]
    pub(super) fn note_other_feedback(&mut self, now: Instant, seq: Seqno) {
        if let Some(rx) = &mut self.rx {
            of_receiver!(rx, rx => rx.on_feedback_sent(now, seq));
        }
    }

    /// The peer acknowledged our packet `ackno`, and so received what that packet acknowledged.
    #[inline(always)]
    pub(in crate::connection) fn on_ack_of_ack(&mut self, ackno: Seqno) {
        if let Some(ReceiverHalf::Ccid2(rx)) = &mut self.rx {
            rx.on_ack_of_ack(ackno);
        } else if let Some(rx) = &mut self.rx {
            of_receiver!(rx, rx => rx.on_ack_of_ack(ackno));
        }
    }

    /// The peer requests this Ack Ratio.
    pub(in crate::connection) fn set_ack_ratio(&mut self, ack_ratio: u16) {
        if let Some(rx) = &mut self.rx {
            of_receiver!(rx, rx => rx.set_ack_ratio(ack_ratio));
        }
    }

    /// Whether an acknowledgement is owed.
    #[inline]
    pub(in crate::connection) fn feedback(&self, now: Instant) -> Feedback {
        self.rx.as_ref().map_or(Feedback::None, |rx| of_receiver!(rx, rx => rx.feedback(now)))
    }

    /// Whether the receiver half reports about once per round-trip time.
    #[inline(always)]
    pub(in crate::connection) fn reports_rarely(&self) -> bool {
        matches!(self.rx, Some(ReceiverHalf::Tfrc(_) | ReceiverHalf::UnusedTfrc(_)))
    }

    /// Whether certainly no acknowledgement is owed, not even a delayed one.
    #[inline(always)]
    pub(in crate::connection) fn owes_nothing(&self) -> bool {
        // One comparison finds out that it is CCID 2, as long as the rest is not inlined.
        if let Some(ReceiverHalf::Ccid2(rx)) = &self.rx {
            return rx.owes_nothing();
        }
        if let Some(ReceiverHalf::Tfrc(rx)) = &self.rx {
            return rx.owes_nothing();
        }
        if let Some(ReceiverHalf::UnusedTfrc(_)) = &self.rx {
            return true;
        }
        self.has_no_receiver()
    }

    #[cold]
    #[inline(never)]
    fn has_no_receiver(&self) -> bool {
        self.rx.is_none()
    }

    /// Whether an acknowledgement is due.
    #[inline(always)]
    pub(in crate::connection) fn is_feedback_due(&self, now: Instant) -> bool {
        if let Some(ReceiverHalf::Ccid2(rx)) = &self.rx {
            return rx.feedback(now) == Feedback::Due;
        }
        if let Some(ReceiverHalf::Tfrc(rx)) = &self.rx {
            return rx.is_due(now);
        }
        if let Some(ReceiverHalf::UnusedTfrc(_)) = &self.rx {
            return false;
        }
        self.is_other_feedback_due(now)
    }

    #[cold]
    #[inline(never)]
    fn is_other_feedback_due(&self, now: Instant) -> bool {
        self.feedback(now) == Feedback::Due
    }

    /// Bytes of options that an acknowledgement needs for the receiver half.
    #[inline]
    pub(in crate::connection) fn feedback_len_bytes(&self) -> usize {
        self.rx.as_ref().map_or(0, |rx| of_receiver!(rx, rx => rx.feedback_len_bytes()))
    }

    /// Writes the receiver half's own options of an acknowledgement.
    #[inline]
    pub(in crate::connection) fn write_options(&mut self, now: Instant, sink: &mut dyn OptionSink) {
        if let Some(rx) = &mut self.rx {
            of_receiver!(rx, rx => rx.write_options(now, sink));
        }
    }

    /// The Elapsed Time that the receiver half would write in an acknowledgement, if any; `None` if
    /// it does or may write another option.
    #[inline]
    pub(in crate::connection) fn usual_feedback(&self, now: Instant) -> Option<Option<u32>> {
        match self.rx.as_ref()? {
            ReceiverHalf::Ccid2(rx) => Some(rx.elapsed_units(now)),
            ReceiverHalf::Tfrc(_) | ReceiverHalf::UnusedTfrc(_) | ReceiverHalf::Other(_) => None,
        }
    }

    /// When to call `handle_receiver_timeout`.
    #[inline]
    pub(in crate::connection) fn receiver_timer(&self) -> MaybeInstant {
        match &self.rx {
            Some(ReceiverHalf::Ccid2(rx)) => rx.next_wake(),
            Some(ReceiverHalf::Tfrc(rx)) => rx.next_wake(),
            Some(other) => of_receiver!(other, rx => rx.poll_timeout()).into(),
            None => MaybeInstant::NONE,
        }
    }

    /// Runs the timer of the receiver half, if it is due.
    pub(in crate::connection) fn handle_receiver_timeout(&mut self, now: Instant) {
        if let Some(rx) = &mut self.rx {
            of_receiver!(rx, rx => rx.handle_timeout(now));
        }
    }
}
