//! Tracks packets that are sent whether or not congestion control allows data.

use core::num::NonZeroU16;

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

/// Packets to send, apart from data and feedback. One of each kind is enough: a newer one includes
/// what an older one would say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outbox {
    /// A Request (in REQUEST) or a Response (in RESPOND).
    pub(crate) handshake: bool,
    /// A CloseReq (in CLOSEREQ) or a Close (in CLOSING).
    pub(crate) close: bool,
    /// An Ack, or data with an acknowledgement.
    pub(crate) ack: bool,
    /// A due acknowledgement waits for data to carry it.
    pub(crate) is_ack_held: bool,
    /// A Sync with this acknowledgement number.
    pub(crate) sync: Option<Seqno>,
    /// Whether the Sync carries the Ack Vector.
    pub(crate) sync_with_vector: bool,
    /// A Sync padded to this many bytes, including the IP header.
    pub(crate) probe: Option<NonZeroU16>,
    /// A SyncAck with this acknowledgement number.
    pub(crate) sync_ack: Option<Seqno>,
    /// A Reset.
    pub(crate) reset: Option<ResetOut>,
}

impl Outbox {
    /// Whether nothing is to be sent, except perhaps an Ack.
    #[inline]
    pub(crate) fn has_no_control(&self) -> bool {
        // Usually nothing is: one branch covers all.
        let syncs = self.sync.is_some() | self.sync_ack.is_some();
        let others = self.reset.is_some() | self.probe.is_some();
        !(self.handshake | self.close | syncs | others)
    }

    /// Whether nothing is to be sent.
    pub(crate) fn is_empty(&self) -> bool {
        !self.ack && self.has_no_control()
    }
}
