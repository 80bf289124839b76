//! Sends Data packets without acknowledgements, with one call of the sender half before each and
//! one after it.

use udccp_base::{Instant, MaybeInstant};

use super::CongestionControl;
use crate::ccid::{CcidSender as _, SendVerdict, SenderHalf, SentInfo};

/// Whether a data packet without an acknowledgement may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum PlainVerdict {
    /// Now, with this CCVal. Whether packets are not paced is for the sender half.
    Now(u8, bool),
    /// Not now.
    Later,
    /// It may have to carry an acknowledgement.
    Acknowledges,
}

impl CongestionControl {
    /// Whether a Data packet of `size_bytes` may be sent now.
    #[inline(always)]
    pub(in super::super) fn plain_verdict(
        &mut self,
        now: Instant,
        size_bytes: u32,
    ) -> PlainVerdict {
        if !self.owes_nothing() {
            return PlainVerdict::Acknowledges;
        }
        let verdict = match &mut self.tx {
            Some(SenderHalf::Ccid2(tx)) if tx.is_allowed(now) => {
                debug_assert!(!tx.wants_ack_of_ack());
                debug_assert_eq!(tx.decide(now, size_bytes), (SendVerdict::Now, true));
                PlainVerdict::Now(0, true)
            }
            Some(SenderHalf::Ccid2(tx)) if !tx.wants_ack_of_ack() => {
                match tx.decide(now, size_bytes) {
                    (SendVerdict::Now, is_unpaced) => PlainVerdict::Now(0, is_unpaced),
                    _ => PlainVerdict::Later,
                }
            }
            Some(SenderHalf::Tfrc(tx)) => match tx.poll_send(now, size_bytes) {
                SendVerdict::Now => PlainVerdict::Now(tx.ccval(now), false),
                _ => PlainVerdict::Later,
            },
            _ => return PlainVerdict::Acknowledges,
        };
        let waits = verdict == PlainVerdict::Later;
        self.kept_at = if waits { MaybeInstant::some(now) } else { MaybeInstant::NONE };
        verdict
    }

    /// That packet was sent. `rest` is the size of the next message, if there is one. Returns
    /// whether nothing more can be sent now, as far as is known; then the state is that after
    /// another question.
    #[inline(always)]
    pub(in super::super) fn on_plain_sent(
        &mut self,
        now: Instant,
        packet: SentInfo,
        is_unpaced: bool,
        rest: Option<u32>,
    ) -> bool {
        let waits = match (&mut self.tx, rest) {
            (Some(SenderHalf::Ccid2(tx)), rest) => {
                tx.on_plain_sent(now, packet, is_unpaced);
                if tx.may_allow() {
                    return rest.is_none();
                }
                if tx.wants_ack_after_data() || rest.is_some() && !tx.is_full() {
                    return false;
                }
                rest.is_some_and(|_| {
                    tx.on_full();
                    true
                })
            }
            (Some(SenderHalf::Tfrc(tx)), rest) => {
                // Copied, so that CCID 2 has it in registers.
                tx.on_sent(now, SentInfo { ..packet });
                let Some(size) = rest else { return true };
                if tx.poll_send(now, size) == SendVerdict::Now {
                    return false;
                }
                true
            }
            _ => return false,
        };
        if waits {
            self.kept_at = MaybeInstant::some(now);
        }
        true
    }
}
