//! Holds messages to send, and the options about earlier packets and coverage that the next packet
//! needs (RFC 4340 sections 7.7 and 9.2).

mod fates;
mod queue;

use udccp_wire::{PacketType, Seqno};

use super::negotiation::Agreed;
use crate::config::ConnectionConfig;
pub(super) use fates::FateLog;
pub(super) use queue::{Discarded, SendQueue};

/// The sending side of one connection.
#[derive(Clone, Debug)]
pub(super) struct SendSide {
    queue: SendQueue,
    /// Non-data packets sent since the last data packet.
    ndp_run: u64,
    /// Checksum coverage that the application requested.
    cscov: u8,
    /// The peer is a slow receiver, and the sender half does not know yet.
    peer_is_slow: bool,
    /// Messages in flight whose fate the application wants to know. Allocated at the first one.
    fates: Option<Box<FateLog>>,
}

impl SendSide {
    /// A sending side with these settings, without messages.
    pub(super) fn new(c: &ConnectionConfig) -> Self {
        let queue = SendQueue::new(c.send_queue_packets, c.send_queue_bytes, c.queue_policy);
        Self { queue, ndp_run: 0, cscov: c.send_cscov, peer_is_slow: false, fates: None }
    }

    /// The queued messages.
    #[inline]
    pub(super) fn queue(&self) -> &SendQueue {
        &self.queue
    }

    /// The queued messages.
    #[inline]
    pub(super) fn queue_mut(&mut self) -> &mut SendQueue {
        &mut self.queue
    }

    /// Checksum coverage of the data packet that is being sent.
    #[inline]
    pub(super) fn coverage(&self, agreed: &Agreed) -> u8 {
        agreed.coverage_to_send(self.cscov)
    }

    /// Uses full coverage for all data from now on.
    pub(super) fn cover_fully(&mut self) {
        self.cscov = 0;
    }

    /// Slow Receiver arrived, perhaps on a packet that acknowledges nothing. The sender half hears
    /// of it with the next acknowledgement.
    pub(super) fn note_slow_peer(&mut self) {
        self.peer_is_slow = true;
    }

    /// Whether the sender half has to hear of Slow Receiver now.
    #[inline]
    pub(super) fn take_slow_peer(&mut self) -> bool {
        core::mem::take(&mut self.peer_is_slow)
    }

    /// NDP Count of the packet that is being sent, if it needs one.
    #[inline]
    pub(super) fn ndp_count(&self, agreed: &Agreed) -> Option<u64> {
        (agreed.send_ndp && self.ndp_run > 0).then_some(self.ndp_run)
    }

    /// A message with this token was sent in packet `seq`: starts tracking its fate.
    pub(super) fn follow(&mut self, seq: Seqno, token: u64) {
        self.fates.get_or_insert_with(Box::default).on_sent(seq, token);
    }

    /// Whether a message is in flight whose fate the application wants to know.
    #[inline]
    pub(super) fn has_open_fates(&self) -> bool {
        self.fates.as_ref().is_some_and(|fates| fates.has_open())
    }

    /// Whether the next acknowledgement has to report fates, or Slow Receiver.
    #[inline]
    pub(super) fn awaits_ack(&self) -> bool {
        self.peer_is_slow || self.has_open_fates()
    }

    /// Takes these messages out. The caller returns them with `keep_fates`.
    pub(super) fn take_fates(&mut self) -> Option<Box<FateLog>> {
        self.fates.take()
    }

    /// Puts back what `take_fates` returned.
    pub(super) fn keep_fates(&mut self, fates: Box<FateLog>) {
        self.fates = Some(fates);
    }

    /// A data packet was sent.
    #[inline]
    pub(super) fn on_data_sent(&mut self) {
        self.ndp_run = 0;
    }

    /// A packet of this type was sent.
    #[inline]
    pub(super) fn on_sent(&mut self, ty: PacketType) {
        self.ndp_run = if ty.is_data_packet() { 0 } else { self.ndp_run + 1 };
    }
}
