//! Processes received feature options.

use std::sync::Arc;

use udccp_base::{Duration, MaybeDuration, MaybeInstant};
use udccp_wire::{FeatureNumber, OptionRef, PacketType, ResetCode, Seqno, option_kind as kind};

use super::entry::{Entry, EntryError};
use super::table::{Summary, Table};
use super::value::ccid_knows;
use super::{ChangeError, FeatureError, FeaturePreferences, Location, Role};

/// Largest Sequence Window. FGSR and FGSS fall back by this when numbers wrap (erratum 974).
pub(super) const W_MAX: u64 = (1 << 46) - 1;

/// The packet that carries the options.
#[derive(Clone, Copy, Debug)]
pub struct PacketContext {
    /// Its type.
    pub packet_type: PacketType,
    /// Its (extended) sequence number.
    pub seq: Seqno,
    /// Its (extended) acknowledgement number, if it has one.
    pub ackno: Option<Seqno>,
}

/// The phase of the connection. It decides what is repeated and whether timers run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// REQUEST or RESPOND: each packet of ours carries all open Changes and all Confirms, including
    /// those sent before. No timers.
    #[default]
    Handshake,
    /// PARTOPEN: answers to the Response are repeated on every packet, because the packet with them
    /// may have been lost.
    PartOpen,
    /// OPEN and later.
    Open,
}

/// A feature has a new value. Also reported when a negotiation confirms the value in force.
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
#[derive(Clone, Debug)]
pub struct Negotiator {
    pub(super) role: Role,
    pub(super) phase: Phase,
    pub(super) table: Table,
    /// Empty Confirms to send for unknown features, if any: option type and feature.
    #[expect(clippy::box_collection, reason = "few connections have any, and there are many")]
    pub(super) unknown: Option<Box<Vec<(u8, FeatureNumber)>>>,
    /// Greatest sequence number received with a feature option.
    fgsr: Option<Seqno>,
    /// Greatest sequence number sent with a new Change.
    pub(super) fgss: Option<Seqno>,
    /// Whether the packet whose options are being read is in order.
    is_in_order: bool,
    pub(super) rtt: MaybeDuration,
    /// When the last packet for options alone was sent.
    pub(super) lone_packet_at: MaybeInstant,
    /// Whether anything is pending. Most packets then need no look at every feature.
    pub(super) open: bool,
    news: bool,
}

impl Negotiator {
    /// A negotiator for one end of a connection. All values are the RFC's initial ones. A Change is
    /// queued for each preference that requests another value (or is `announced`).
    pub fn new(role: Role, preferences: Arc<FeaturePreferences>) -> Self {
        let mut negotiator = Self {
            role,
            phase: Phase::Handshake,
            table: Table::new(preferences),
            unknown: None,
            fgsr: None,
            fgss: None,
            is_in_order: false,
            rtt: MaybeDuration::NONE,
            lone_packet_at: MaybeInstant::NONE,
            open: false,
            news: false,
        };
        negotiator.refresh();
        negotiator
    }

    /// Sets the phase, which starts as `Handshake`. `Open` ends the repetition of Confirms.
    pub fn set_phase(&mut self, phase: Phase) {
        self.phase = phase;
        if phase == Phase::Open {
            for entry in self.table.working_mut() {
                entry.answer = entry.answer.filter(|a| !a.sent);
            }
            self.refresh();
            self.put_away();
        }
    }

    /// Sets the round-trip time for the timers (1 s until known).
    pub fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = MaybeDuration::some(rtt);
    }

    /// Requests a feature value: a list of values, best first, for server-priority features, or a
    /// single value, only at `Location::Local`, for non-negotiable ones. Nothing is sent if the
    /// feature already has the (first) value and no other is being negotiated. With `mandatory`, a
    /// peer that cannot agree resets the connection.
    ///
    /// # Errors
    /// An unknown feature, an invalid value, or a feature that the peer alone can set.
    pub fn change(
        &mut self,
        location: Location,
        feature: FeatureNumber,
        values: &[u64],
        mandatory: bool,
    ) -> Result<(), ChangeError> {
        let role = self.role;
        let entry = self.entry_mut(location, feature).ok_or(ChangeError::Unknown(feature))?;
        entry.change(role, values, mandatory)?;
        self.refresh();
        Ok(())
    }

    /// From now on a server-priority feature keeps its value, whatever the peer requests, unless we
    /// do not accept the value. Our own Change of it, if one is under way, is still answered.
    pub fn fix(&mut self, location: Location, feature: FeatureNumber) {
        if let Some(entry) = self.entry_mut(location, feature) {
            entry.fix();
        }
    }

    /// The valid packet `seq` arrived, and `gsr` is the greatest number received so far; its
    /// feature options follow.
    pub fn begin_packet(&mut self, seq: Seqno, gsr: Seqno) {
        self.note_gsr(gsr);
        //= 4340-6.6.4-1
        //= 4340-6.6.4-6
        self.is_in_order = self.fgsr.is_none_or(|f| seq.is_after(f));
    }

    //= 4340-6.6.4-7
    //= 4340-6.6.4-8
    /// A packet without feature options arrived, and `gsr` is the greatest number received so far.
    #[inline(always)]
    pub fn note_gsr(&mut self, gsr: Seqno) {
        if self.fgsr.is_some_and(|f| f.is_after(gsr)) {
            self.fgsr = Some(gsr.sub(W_MAX));
        }
    }

    /// Processes an option of `packet`, for which [`Self::begin_packet`] was called; options other
    /// than feature negotiation are ignored. `mandatory`: a Mandatory option comes immediately
    /// before it.
    ///
    /// # Errors
    /// The connection must be reset with the error's code and data.
    pub fn on_option(
        &mut self,
        packet: &PacketContext,
        option: &OptionRef<'_>,
        mandatory: bool,
    ) -> Result<(), FeatureError> {
        let (kind, feature, value) = match *option {
            OptionRef::ChangeL { feature, value } => (kind::CHANGE_L, feature, value),
            OptionRef::ConfirmL { feature, value } => (kind::CONFIRM_L, feature, value),
            OptionRef::ChangeR { feature, value } => (kind::CHANGE_R, feature, value),
            OptionRef::ConfirmR { feature, value } => (kind::CONFIRM_R, feature, value),
            _ => return Ok(()),
        };
        //= 4340-6-1
        if packet.packet_type == PacketType::Data {
            return Ok(());
        }
        self.fgsr = Some(self.fgsr.map_or(packet.seq, |f| f.max(packet.seq)));
        let result = self.process(kind, feature, value, mandatory, packet);
        self.refresh();
        result.map_err(|error| {
            let code = match error {
                EntryError::Option => ResetCode::OptionError,
                EntryError::Mandatory => ResetCode::MandatoryError,
            };
            FeatureError { code, data: [kind, feature.0, value.first().copied().unwrap_or(0)] }
        })
    }

    //= 4340-6.6.2-1
    /// The pseudocode of RFC 4340 section 6.6.2.
    fn process(
        &mut self,
        kind: u8,
        feature: FeatureNumber,
        value: &[u8],
        mandatory: bool,
        packet: &PacketContext,
    ) -> Result<(), EntryError> {
        let is_change = matches!(kind, kind::CHANGE_L | kind::CHANGE_R);
        let location = match kind {
            kind::CHANGE_L | kind::CONFIRM_L => Location::Remote,
            _ => Location::Local,
        };
        let (role, fgss, in_order) = (self.role, self.fgss, self.is_in_order);
        let Some(entry) = self.entry_mut(location, feature) else {
            return if is_change { self.on_unknown(kind, feature, mandatory) } else { Ok(()) };
        };
        //= 4340-6.6.4-3
        if !in_order {
            return Ok(());
        }
        if is_change {
            //= 4340-6.6.3-4
            //= 4340-6.6.1-4
            return entry.on_change(role, value, mandatory);
        }
        //= 4340-6.6.4-4
        let answers_latest = packet.ackno.is_some_and(|a| fgss.is_none_or(|f| a.at_least(f)));
        if answers_latest { entry.on_confirm(role, value) } else { Ok(()) }
    }

    //= 4340-6.6.7-5
    /// A Change of a feature that we do not know. (Confirms of unknown features are ignored.)
    fn on_unknown(
        &mut self,
        kind: u8,
        feature: FeatureNumber,
        mandatory: bool,
    ) -> Result<(), EntryError> {
        //= 4340-6.6.7-2
        //= 4340-15-4
        if mandatory {
            return Err(EntryError::Mandatory);
        }
        //= 4340-6.6.7-1
        let confirm = if kind == kind::CHANGE_L { kind::CONFIRM_R } else { kind::CONFIRM_L };
        let unknown = self.unknown.get_or_insert_default();
        if !unknown.contains(&(confirm, feature)) {
            unknown.push((confirm, feature));
        }
        Ok(())
    }

    /// The value in force of a feature; `None` for an unknown feature.
    pub fn value(&self, location: Location, feature: FeatureNumber) -> Option<u64> {
        self.summary(location, feature).map(|s| s.value)
    }

    /// The value once the pending Confirms have been sent; otherwise as `value`. A server needs it
    /// between reading a Request and writing its Response.
    pub fn upcoming_value(&self, location: Location, feature: FeatureNumber) -> Option<u64> {
        self.summary(location, feature).map(|s| s.upcoming)
    }

    /// Whether the negotiation of a feature is over (no Change of ours is unanswered).
    pub fn is_stable(&self, location: Location, feature: FeatureNumber) -> bool {
        self.summary(location, feature).is_none_or(|s| s.is_stable)
    }

    /// Whether all negotiations are over and no Confirm waits to be sent.
    pub fn is_settled(&self) -> bool {
        !self.open
    }

    /// A feature whose settled value is not one that we accept, because the peer shares no value
    /// with us. The connection decides whether that is acceptable.
    pub fn unmet(&self) -> Option<(Location, FeatureNumber)> {
        let entry = self.table.all().into_iter().find(|e| !e.is_met())?;
        Some((entry.location, entry.info.number))
    }

    /// The next feature that has a new value.
    pub fn poll_activated(&mut self) -> Option<Activated> {
        if !self.news {
            self.put_away();
            return None;
        }
        let Some(entry) = self.table.working_mut().iter_mut().find(|e| e.news) else {
            self.news = false;
            self.put_away();
            return None;
        };
        entry.news = false;
        let Entry { location, value, .. } = *entry;
        Some(Activated { location, feature: entry.info.number, value })
    }

    /// The state of a feature that is currently understood. Whether a CCID-specific feature is
    /// understood depends on the CCID of its half-connection: 128 to 191 are located at the end
    /// that sends the data, 192 to 255 at the end that receives it (RFC 4340 section 10.3).
    fn summary(&self, location: Location, feature: FeatureNumber) -> Option<Summary> {
        let summary = self.table.summary(location, feature)?;
        if feature.0 < 128 {
            return Some(summary);
        }
        let ccid = self.upcoming_value(ccid_location(location, feature), FeatureNumber::CCID)?;
        //= 4340-10.3-3
        ccid_knows(ccid, feature).then_some(summary)
    }

    fn entry_mut(&mut self, location: Location, feature: FeatureNumber) -> Option<&mut Entry> {
        self.summary(location, feature)?;
        self.table.entry_mut(location, feature)
    }

    /// Updates the summaries after a change.
    pub(super) fn refresh(&mut self) {
        let entries = self.table.working();
        self.open = self.unknown.is_some() || entries.iter().any(Entry::is_open);
        self.news = entries.iter().any(|e| e.news);
    }

    /// Packs the table once everything is settled, until the next negotiation.
    #[inline]
    pub(super) fn put_away(&mut self) {
        if !self.open && !self.news && self.phase == Phase::Open {
            self.table.pack();
        }
    }
}

/// The location of the CCID feature that a CCID-specific feature depends on.
pub(super) fn ccid_location(location: Location, feature: FeatureNumber) -> Location {
    match (feature.0 >= 192, location) {
        (true, Location::Local) | (false, Location::Remote) => Location::Remote,
        (true, Location::Remote) | (false, Location::Local) => Location::Local,
    }
}
