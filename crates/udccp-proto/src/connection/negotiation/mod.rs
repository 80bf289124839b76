//! Negotiates features, and caches the values in force (RFC 4340 section 6).

mod agreed;
mod preferences;

use udccp_base::{Duration, Instant};
use udccp_wire::{FeatureNumber, OptionRef, PacketType, Seqno};

use crate::ccid::{FeatureNeed, OptionSink};
use crate::config::MAX_SEQUENCE_WINDOW;
use crate::features::{Activated, FeatureError, Location, Negotiator, PacketContext, Phase};
pub(super) use agreed::Agreed;
pub(crate) use preferences::preferences;

/// Ack Ratio of a new connection (RFC 4340 section 11.3).
const INITIAL_ACK_RATIO: u16 = 2;

/// Feature negotiation of one connection: the agreed values, and our last requests.
#[derive(Clone, Debug)]
pub(super) struct Negotiation {
    agreed: Agreed,
    asked_window: u64,
    engine: Negotiator,
}

impl Negotiation {
    /// The largest Sequence Window requested so far is `asked_window`.
    pub(super) fn new(engine: Negotiator, asked_window: u64) -> Self {
        Self { agreed: Agreed::default(), asked_window, engine }
    }

    /// The values in force.
    #[inline]
    pub(super) fn agreed(&self) -> &Agreed {
        &self.agreed
    }

    /// Whether all negotiations are over and no Confirm is left to send.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        self.engine.is_settled()
    }

    /// The handshake has reached this phase.
    pub(super) fn set_phase(&mut self, phase: Phase) {
        self.engine.set_phase(phase);
    }

    /// Sets the round-trip time for the timers.
    pub(super) fn set_rtt(&mut self, rtt: Duration) {
        self.engine.set_rtt(rtt);
    }

    /// The valid packet `seq` other than DCCP-Data has arrived; its feature options follow.
    pub(super) fn begin_packet(&mut self, seq: Seqno, gsr: Seqno) {
        self.engine.begin_packet(seq, gsr);
    }

    /// A valid packet other than DCCP-Data has arrived.
    #[inline(always)]
    pub(super) fn note_gsr(&mut self, gsr: Seqno) {
        self.engine.note_gsr(gsr);
    }

    /// Handles a Change or Confirm of the packet of [`Self::begin_packet`].
    ///
    /// # Errors
    /// The Reset that the option requires.
    pub(super) fn on_option(
        &mut self,
        packet: &PacketContext,
        option: &OptionRef<'_>,
        mandatory: bool,
    ) -> Result<(), FeatureError> {
        self.engine.on_option(packet, option, mandatory)
    }

    /// The next value that came into force.
    pub(super) fn poll_activated(&mut self) -> Option<Activated> {
        let activated = self.engine.poll_activated()?;
        self.agreed.apply(activated);
        Some(activated)
    }

    /// The upcoming CCID of the half-connection from us (`Local`) or to us (`Remote`).
    pub(super) fn ccid(&self, location: Location) -> u8 {
        self.engine.upcoming_value(location, FeatureNumber::CCID).unwrap_or_default() as u8
    }

    //= 4340-10.5-4
    /// The handshake is over for us, and both CCIDs are final. Another CCID would start with fresh
    /// congestion state, and a receiver could use that to erase the reaction to each loss.
    pub(super) fn fix_ccids(&mut self) {
        for location in [Location::Local, Location::Remote] {
            self.engine.fix(location, FeatureNumber::CCID);
        }
    }

    /// The Ack Ratio that the peer requests.
    pub(super) fn peer_ack_ratio(&self) -> u16 {
        let ratio = self.engine.value(Location::Remote, FeatureNumber::ACK_RATIO);
        ratio.map_or(INITIAL_ACK_RATIO, |ratio| ratio as u16)
    }

    /// Requests the features that a CCID needs. `place` maps the location of each.
    pub(super) fn ask_for(&mut self, needs: &[FeatureNeed], place: impl Fn(Location) -> Location) {
        for need in needs {
            let location = place(need.location);
            // A feature that the engine does not know cannot be negotiated. The peer's CCID handles
            // that.
            let _ = self.engine.change(location, need.feature, &[need.value], need.mandatory);
        }
    }

    //= 4341-4-2
    /// Whether the peer agreed to the features that data has to wait for, such as Send Ack Vector.
    #[inline]
    pub(super) fn lets_data_leave(&self, needs: &[FeatureNeed]) -> bool {
        let value = |need: &FeatureNeed| self.engine.upcoming_value(need.location, need.feature);
        self.is_settled() || needs.iter().all(|n| !n.before_data || value(n) == Some(n.value))
    }

    /// Requests a Sequence Window if `needed` is more than we requested so far, with room for the
    /// next few doublings of speed. Returns the window requested.
    #[inline]
    pub(super) fn ask_sequence_window(&mut self, needed: u64) -> Option<u64> {
        //= 4340-7.5.2-2
        (needed > self.asked_window).then(|| self.widen_sequence_window(needed))
    }

    fn widen_sequence_window(&mut self, needed: u64) -> u64 {
        let roomy = needed.saturating_mul(2).checked_next_power_of_two();
        let window = roomy.unwrap_or(MAX_SEQUENCE_WINDOW).min(MAX_SEQUENCE_WINDOW);
        self.asked_window = window;
        let feature = FeatureNumber::SEQUENCE_WINDOW;
        let _ = self.engine.change(Location::Local, feature, &[window], false);
        window
    }

    /// Requests this Ack Ratio, unless it was the last one requested.
    #[inline]
    pub(super) fn ask_ack_ratio(&mut self, ratio: u16) {
        if ratio != self.agreed.asked_ratio {
            self.agreed.asked_ratio = ratio;
            let feature = FeatureNumber::ACK_RATIO;
            let _ = self.engine.change(Location::Local, feature, &[u64::from(ratio)], false);
        }
    }

    /// The window for the peer's numbers is `window` from now on. If it is wide, short numbers are
    /// easy to guess, and we withdraw our consent to them.
    pub(super) fn on_remote_window(&mut self, window: u64) {
        //= 4340-7.5.5-1
        if self.agreed.must_refuse_short(window) {
            let feature = FeatureNumber::ALLOW_SHORT_SEQNOS;
            let _ = self.engine.change(Location::Remote, feature, &[0], false);
        }
    }

    //= 4340-7.5.2-3
    /// Maximum number of packets in flight that keeps us within the peer's window even if all are
    /// lost.
    pub(super) fn safe_in_flight(&self) -> u64 {
        self.agreed.sequence_window / 4 * 3
    }

    /// Whether the peer has yet to confirm that we are ECN Incapable.
    pub(super) fn waits_for_ecn_confirm(&self) -> bool {
        self.engine.value(Location::Local, FeatureNumber::ECN_INCAPABLE) == Some(0)
    }

    /// Writes the options that packet `seq` has to carry, as far as there is room. Returns whether
    /// there were any.
    pub(super) fn write_options(
        &mut self,
        now: Instant,
        seq: Seqno,
        ty: PacketType,
        room: usize,
        sink: &mut impl OptionSink,
    ) -> bool {
        let write = &mut |option: &OptionRef<'_>| {
            sink.option(option);
        };
        self.engine.write_options(now, seq, ty, room, write) > 0
    }

    /// Whether an option is due now.
    #[inline]
    pub(super) fn has_due(&self, now: Instant) -> bool {
        self.engine.has_due(now)
    }

    /// Whether a packet should be sent just for options.
    #[inline]
    pub(super) fn take_packet_request(&mut self, now: Instant) -> bool {
        self.engine.take_packet_request(now)
    }

    /// When to call `take_packet_request` again.
    #[inline]
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.engine.poll_timeout()
    }
}
