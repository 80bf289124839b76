//! Caches the feature values in force, so that packets do not have to query the negotiation engine.

use udccp_wire::FeatureNumber;

use super::INITIAL_ACK_RATIO;
use crate::features::{Activated, Location};

/// Largest Sequence Window with which 24-bit numbers are used. An attacker who guesses a number
/// hits a window of 1024 packets once in 16,384 tries (RFC 4340 section 7.5.5). A connection that
/// needs more is fast enough to afford the longer numbers.
const WIDEST_SHORT_WINDOW: u64 = 1024;

/// Feature values that both ends agreed on. `Default` is a new connection's (RFC 4340 section 6.4).
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Agreed {
    /// We put Ack Vectors on our acknowledgements.
    pub(in super::super) send_ack_vector: bool,
    /// We put NDP Counts on our packets.
    pub(in super::super) send_ndp: bool,
    /// The peer puts NDP Counts on its packets.
    pub(in super::super) peer_sends_ndp: bool,
    /// We may send short sequence numbers.
    pub(in super::super) short_out: bool,
    /// The peer may send short sequence numbers.
    pub(in super::super) short_in: bool,
    /// The peer cannot read ECN marks.
    pub(in super::super) peer_ecn_incapable: bool,
    /// Least checksum coverage that we accept; 0 for full coverage only.
    pub(in super::super) min_cscov: u8,
    /// Least checksum coverage that the peer accepts; 0 for full coverage only.
    pub(in super::super) peer_min_cscov: u8,
    /// The peer checks Data Checksums.
    pub(in super::super) peer_checks_data: bool,
    /// Our Sequence Window that the peer confirmed.
    pub(in super::super) sequence_window: u64,
    /// Our Ack Ratio that the peer confirmed.
    pub(in super::super) ack_ratio: u16,
    /// The one that we last asked for.
    pub(super) asked_ratio: u16,
    /// Our packets have long numbers, and data that the Checksum covers fully, without Data
    /// Checksum.
    pub(in super::super) is_plain: bool,
}

//= 4340-15-7
//= 4340-15-8
impl Default for Agreed {
    fn default() -> Self {
        Self {
            send_ack_vector: false,
            send_ndp: false,
            peer_sends_ndp: false,
            short_out: false,
            short_in: false,
            peer_ecn_incapable: false,
            min_cscov: 0,
            peer_min_cscov: 0,
            peer_checks_data: false,
            sequence_window: 100,
            ack_ratio: INITIAL_ACK_RATIO,
            asked_ratio: INITIAL_ACK_RATIO,
            is_plain: true,
        }
    }
}

impl Agreed {
    /// Applies a value that came into force.
    pub(super) fn apply(&mut self, activated: Activated) {
        let Activated { location, feature, value } = activated;
        let on = value == 1;
        let coverage = value.min(15) as u8;
        match (feature, location) {
            (FeatureNumber::SEND_ACK_VECTOR, Location::Local) => self.send_ack_vector = on,
            (FeatureNumber::SEND_NDP_COUNT, Location::Local) => self.send_ndp = on,
            (FeatureNumber::SEND_NDP_COUNT, Location::Remote) => self.peer_sends_ndp = on,
            (FeatureNumber::ALLOW_SHORT_SEQNOS, Location::Local) => self.short_out = on,
            (FeatureNumber::ALLOW_SHORT_SEQNOS, Location::Remote) => self.short_in = on,
            (FeatureNumber::ECN_INCAPABLE, Location::Remote) => self.peer_ecn_incapable = on,
            (FeatureNumber::MIN_CSCOV, Location::Local) => self.min_cscov = coverage,
            (FeatureNumber::MIN_CSCOV, Location::Remote) => self.peer_min_cscov = coverage,
            (FeatureNumber::CHECK_DATA_CHECKSUM, Location::Remote) => self.peer_checks_data = on,
            (FeatureNumber::SEQUENCE_WINDOW, Location::Local) => self.sequence_window = value,
            (FeatureNumber::ACK_RATIO, Location::Local) => self.ack_ratio = value as u16,
            _ => {}
        }
        let is_covered = self.peer_min_cscov == 0 && !self.peer_checks_data;
        self.is_plain = !self.may_send_short() && is_covered;
    }

    //= 4340-5.1-10
    //= 4340-7.6.1-1
    //= 4340-7.6.2-1
    //= 4340-5.4-1
    /// Whether our packets may have short sequence numbers now.
    pub(in super::super) const fn may_send_short(&self) -> bool {
        self.short_out && self.sequence_window <= WIDEST_SHORT_WINDOW
    }

    /// Whether a peer with this Sequence Window should stop using short sequence numbers.
    pub(in super::super) const fn must_refuse_short(&self, sequence_window: u64) -> bool {
        self.short_in && sequence_window > WIDEST_SHORT_WINDOW
    }

    /// Whether data with this checksum coverage may be delivered (RFC 4340 section 9.2.1).
    pub(in super::super) const fn accepts_coverage(&self, cscov: u8) -> bool {
        //= 4340-9.2.1-1
        cscov == 0 || (self.min_cscov > 0 && cscov >= self.min_cscov)
    }

    /// The coverage to use if the application requests `wished`.
    pub(in super::super) const fn coverage_to_send(&self, wished: u8) -> u8 {
        if self.peer_min_cscov > 0 && wished >= self.peer_min_cscov { wished } else { 0 }
    }
}
