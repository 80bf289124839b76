//! Notes packets that must leave whether or not congestion control lets data go.

use core::num::NonZeroU16;

use udccp_wire::{ResetCode, Seqno};

/// A Reset to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResetOut {
    /// Why.
    pub(crate) code: ResetCode,
    /// About what.
    pub(crate) data: [u8; 3],
    /// Its acknowledgement number.
    pub(crate) ackno: Seqno,
    /// It explains its code in an Error Text.
    pub(crate) is_explained: bool,
}

/// What waits to leave, apart from data and feedback. One of each kind is enough: a newer one
/// carries more.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outbox {
    /// A Request (in REQUEST) or a Response (in RESPOND).
    pub(crate) handshake: bool,
    /// A CloseReq (in CLOSEREQ) or a Close (in CLOSING).
    pub(crate) close: bool,
    /// An Ack, or data with an acknowledgement.
    pub(crate) ack: bool,
    /// What acknowledgement is owed waits for data to carry it.
    pub(crate) is_ack_held: bool,
    /// A Sync with this acknowledgement number.
    pub(crate) sync: Option<Seqno>,
    /// The Sync is to carry the Ack Vector.
    pub(crate) sync_with_vector: bool,
    /// A Sync padded to this many bytes with the IP header.
    pub(crate) probe: Option<NonZeroU16>,
    /// A SyncAck with this acknowledgement number.
    pub(crate) sync_ack: Option<Seqno>,
    /// A Reset.
    pub(crate) reset: Option<ResetOut>,
}

impl Outbox {
    /// Whether nothing but perhaps an Ack waits.
    #[inline]
    pub(crate) fn has_no_control(&self) -> bool {
        // Nothing waits, mostly: one branch for all of it.
        let syncs = self.sync.is_some() | self.sync_ack.is_some();
        let others = self.reset.is_some() | self.probe.is_some();
        !(self.handshake | self.close | syncs | others)
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        !self.ack && self.has_no_control()
    }
}
