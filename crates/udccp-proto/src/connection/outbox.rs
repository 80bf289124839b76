//! Tracks packets that are sent whether or not congestion control allows data.

use core::num::NonZeroU16;

use udccp_base::{Instant, MaybeInstant};
use udccp_wire::{ResetCode, Seqno};

/// A Reset to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResetOut {
    /// Code of the Reset.
    pub(crate) code: ResetCode,
    /// Data of the Reset (RFC 4340 section 5.6).
    pub(crate) data: [u8; 3],
    /// Its acknowledgement number.
    pub(crate) ackno: Seqno,
    /// Whether its Error Text explains the code.
    pub(crate) is_explained: bool,
}

/// The Syncs of a batch that have yet to be answered, in order. Of more, the last few are.
#[derive(Clone, Debug, Default)]
pub(crate) struct SyncAcks(Option<Box<[Option<Seqno>; 3]>>);

impl SyncAcks {
    /// A valid Sync with this number arrived.
    pub(crate) fn push(&mut self, sync: Seqno) {
        let syncs = self.0.get_or_insert_default();
        let free = syncs.iter().position(Option::is_none).unwrap_or_else(|| {
            syncs.rotate_left(1);
            syncs.len() - 1
        });
        syncs[free] = Some(sync);
    }

    /// Takes the first.
    pub(crate) fn take(&mut self) -> Option<Seqno> {
        let syncs = self.0.as_mut()?;
        let first = syncs[0].take();
        syncs.rotate_left(1);
        if syncs[0].is_none() {
            self.0 = None;
        }
        first
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// Packets to send, apart from data and feedback. One of each other kind is enough: a newer one
/// includes what an older one would say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outbox {
    /// A Request (in REQUEST) or a Response (in RESPOND).
    pub(crate) handshake: bool,
    /// A CloseReq (in CLOSEREQ) or a Close (in CLOSING).
    pub(crate) close: bool,
    /// An Ack, or data with an acknowledgement.
    pub(crate) ack: bool,
    /// When an acknowledgement that is due did not fit beside data.
    set_aside: MaybeInstant,
    /// A due acknowledgement waits for data to carry it.
    pub(crate) is_ack_held: bool,
    /// A Sync with this acknowledgement number.
    pub(crate) sync: Option<Seqno>,
    /// Whether the Sync carries the Ack Vector.
    pub(crate) sync_with_vector: bool,
    /// A Sync padded to this many bytes, including the IP header.
    pub(crate) probe: Option<NonZeroU16>,
    /// SyncAcks with these acknowledgement numbers.
    pub(crate) sync_acks: SyncAcks,
    /// A Reset. Few connections send one, so it is stored apart.
    pub(crate) reset: Option<Box<ResetOut>>,
}

impl Outbox {
    /// Whether nothing is to be sent, except perhaps an Ack.
    #[inline]
    pub(crate) fn has_no_control(&self) -> bool {
        // Usually nothing is: one branch covers all.
        let syncs = self.sync.is_some() | !self.sync_acks.is_empty();
        let others = self.reset.is_some() | self.probe.is_some();
        !(self.handshake | self.close | syncs | others)
    }

    /// Drops everything except a Reset.
    pub(crate) fn keep_only_reset(&mut self) {
        *self = Self { reset: self.reset.take(), ..Self::default() };
    }

    /// An acknowledgement that is due does not fit beside data that leaves now.
    pub(crate) fn set_ack_aside(&mut self, now: Instant) {
        self.ack = true;
        self.set_aside = MaybeInstant::some(now);
    }

    /// Whether an Ack precedes data. One that was set aside follows all data that leaves at the
    /// same time. What leaves later, because a device was busy, would otherwise put it off for as
    /// long as there is more.
    #[inline]
    pub(crate) fn ack_precedes_data(&self, now: Instant) -> bool {
        self.ack && !self.is_ack_held && self.set_aside.get().is_some_and(|at| at < now)
    }

    /// A packet was sent. If it carried the acknowledgement that was due, delayed or not, none is.
    #[inline]
    pub(crate) fn on_sent(&mut self, has_ack: bool) {
        if has_ack {
            (self.ack, self.is_ack_held, self.set_aside) = (false, false, MaybeInstant::NONE);
        }
    }

    /// Whether nothing is to be sent.
    pub(crate) fn is_empty(&self) -> bool {
        !self.ack && self.has_no_control()
    }
}
