//! The engine.

use udccp_base::{Duration, Instant};
use udccp_wire::{FeatureNumber, OptionRef, PacketType, Seqno};

use super::{ChangeError, FeatureError, FeaturePreferences, Location, Role};

/// The packet that options came on.
#[derive(Clone, Copy, Debug)]
pub struct PacketContext {
    /// Its type.
    pub packet_type: PacketType,
    /// Its (extended) sequence number.
    pub seq: Seqno,
    /// Its (extended) acknowledgement number, if it has one.
    pub ackno: Option<Seqno>,
}

/// Where the connection is; decides what is repeated and whether timers run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// REQUEST or RESPOND: every packet of ours carries all that is open; no timers.
    #[default]
    Handshake,
    /// PARTOPEN: answers to the Response are repeated on every packet, since the packet that
    /// carried them may have been lost.
    PartOpen,
    /// OPEN and later.
    Open,
}

/// A feature took a new value (also reported when a negotiation confirmed the value it had).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activated {
    /// Where the feature is located.
    pub location: Location,
    /// Which feature.
    pub feature: FeatureNumber,
    /// Its value now.
    pub value: u64,
}

/// Negotiates all features of one connection.
#[derive(Debug)]
pub struct Negotiator {}

#[expect(unused_variables, clippy::todo, reason = "signatures first; bodies follow")]
impl Negotiator {
    /// An engine for one end of a connection. All values are the RFC's initial ones; a Change is
    /// queued for each preference that asks for another value (or is `announced`).
    pub fn new(role: Role, preferences: &FeaturePreferences) -> Self {
        todo!()
    }

    /// Where the connection is now. Starts in `Handshake`; going on to `Open` ends repetition.
    pub fn set_phase(&mut self, phase: Phase) {
        todo!()
    }

    /// The round-trip time, for the retransmission timer (1 s until known).
    pub fn set_rtt(&mut self, rtt: Duration) {
        todo!()
    }

    /// Asks for a feature value: server-priority features take a list of values, best first,
    /// non-negotiable ones exactly one and only at `Location::Local`. Nothing is sent when the
    /// feature has the (first) value already and no other is being negotiated. With `mandatory`
    /// a peer that cannot agree resets the connection.
    pub fn change(
        &mut self,
        location: Location,
        feature: FeatureNumber,
        values: &[u64],
        mandatory: bool,
    ) -> Result<(), ChangeError> {
        todo!()
    }

    /// A valid packet arrived; its options follow. Cheap: may be called for every packet.
    pub fn begin_packet(&mut self, packet: PacketContext) {
        todo!()
    }

    /// An option of that packet; options that are no feature negotiation are ignored. `mandatory`
    /// says whether a Mandatory option stood before it.
    ///
    /// # Errors
    /// The connection must be reset with the error's code and data.
    pub fn on_option(
        &mut self,
        option: &OptionRef<'_>,
        mandatory: bool,
    ) -> Result<(), FeatureError> {
        todo!()
    }

    /// Gives `emit` the options that the packet `seq` should carry, at most `room` bytes of them,
    /// and returns how many bytes that was. Nothing on Data, Close, CloseReq, Reset and Listen;
    /// Confirms only on packets whose acknowledgement number is the greatest number received
    /// (not on Request and Sync). Call it for packets that do leave.
    pub fn write_options(
        &mut self,
        now: Instant,
        seq: Seqno,
        packet_type: PacketType,
        room: usize,
        emit: &mut dyn FnMut(&OptionRef<'_>),
    ) -> usize {
        todo!()
    }

    /// Whether options wait that deserve a packet of their own now; at most once in a round-trip
    /// time. A true answer is counted as given: make that packet.
    pub fn take_packet_request(&mut self, now: Instant) -> bool {
        todo!()
    }

    /// When `take_packet_request` can next be true; `None` while nothing waits.
    pub fn poll_timeout(&self) -> Option<Instant> {
        todo!()
    }

    /// The feature's value in force; for an unknown feature, `None`.
    pub fn value(&self, location: Location, feature: FeatureNumber) -> Option<u64> {
        todo!()
    }

    /// The value once the Confirms that wait have left; else as `value`. A server asks it between
    /// reading a Request and writing its Response.
    pub fn upcoming_value(&self, location: Location, feature: FeatureNumber) -> Option<u64> {
        todo!()
    }

    /// Whether the feature's negotiation is over (nothing of ours waits for an answer).
    pub fn is_stable(&self, location: Location, feature: FeatureNumber) -> bool {
        todo!()
    }

    /// Whether all negotiations are over and no Confirm waits to be sent.
    pub fn is_settled(&self) -> bool {
        todo!()
    }

    /// A feature whose settled value is none of those we said we accept, if any: the peer shares
    /// no value with us. The connection decides whether it can live with it.
    pub fn unmet(&self) -> Option<(Location, FeatureNumber)> {
        todo!()
    }

    /// The next feature that took a value.
    pub fn poll_activated(&mut self) -> Option<Activated> {
        todo!()
    }
}
