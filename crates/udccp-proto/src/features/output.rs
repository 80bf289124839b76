//! Writes feature options, and schedules them.

use udccp_base::{Duration, Instant, MaybeInstant};
use udccp_wire::{
    FeatureNumber, OptionRef, PacketType, Reconciliation, Seqno, option_kind as kind,
};

use super::Location;
use super::entry::{Answer, Entry, State};
use super::negotiator::{Negotiator, Phase, W_MAX, ccid_location};
use super::value::ccid_knows;

/// A Change is first retransmitted after two round-trip times, but at least this long; or after
/// `UNKNOWN_RTT` while the round-trip time is unknown.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
const UNKNOWN_RTT: Duration = Duration::from_secs(1);
/// Limit of the back-off (RFC 4340 section 6.6.3: at least 64 seconds).
const MAX_INTERVAL: Duration = Duration::from_secs(64);
/// Time between two packets for options alone, while the round-trip time is unknown.
const LONE_PACKET_SPACING: Duration = Duration::from_millis(200);

/// Longest value area of a Confirm: 253 bytes of option data minus the feature number.
const MAX_VALUE_AREA: usize = 252;

/// A packet to which options are added.
struct Packet<'a> {
    room: usize,
    written: usize,
    emit: &'a mut dyn FnMut(&OptionRef<'_>),
}

impl Packet<'_> {
    /// Emits a feature option of `kind`, preceded by Mandatory if set; false if it does not fit.
    fn put(&mut self, kind: u8, feature: FeatureNumber, value: &[u8], mandatory: bool) -> bool {
        let size = 3 + value.len() + usize::from(mandatory);
        if size > self.room {
            return false;
        }
        self.room -= size;
        self.written += size;
        // Both or neither: a Mandatory at the end would reset the connection.
        if mandatory {
            (self.emit)(&OptionRef::Mandatory);
        }
        (self.emit)(&match kind {
            kind::CHANGE_L => OptionRef::ChangeL { feature, value },
            kind::CHANGE_R => OptionRef::ChangeR { feature, value },
            kind::CONFIRM_L => OptionRef::ConfirmL { feature, value },
            _ => OptionRef::ConfirmR { feature, value },
        });
        true
    }
}

impl Negotiator {
    /// Passes to `emit` the options that packet `seq` should carry, at most `room` bytes, and
    /// returns their length in bytes. There are none on Data, Close, CloseReq, Reset and Listen,
    /// and no Confirms on Request, which acknowledges nothing, and Sync, whose acknowledgement
    /// number may be that of any packet. Call it exactly once for each packet that is sent.
    pub fn write_options(
        &mut self,
        now: Instant,
        seq: Seqno,
        packet_type: PacketType,
        room: usize,
        emit: &mut dyn FnMut(&OptionRef<'_>),
    ) -> usize {
        self.check_fgss(seq);
        //= 4340-6-1
        //= 4340-6.6.1-2
        let confirms = match packet_type {
            PacketType::Request | PacketType::Sync => false,
            PacketType::Response | PacketType::Ack | PacketType::DataAck | PacketType::SyncAck => {
                true
            }
            _ => return 0,
        };
        if !self.open {
            return 0;
        }
        let mut packet = Packet { room, written: 0, emit };
        if confirms {
            self.write_empty_confirms(&mut packet);
        }
        for index in 0..self.table.working().len() {
            if confirms {
                self.write_confirm(index, &mut packet);
            }
            self.write_change(index, now, seq, &mut packet);
        }
        let written = packet.written;
        self.refresh();
        self.put_away();
        written
    }

    //= 4340-6.2-1
    fn write_empty_confirms(&mut self, packet: &mut Packet<'_>) {
        let Some(mut unknown) = self.unknown.take() else { return };
        unknown.retain(|&(kind, feature)| !packet.put(kind, feature, &[], false));
        self.unknown = Some(unknown).filter(|left| !left.is_empty());
    }

    /// Writes this entry's pending Confirm, if any. Its value is in force from then on.
    fn write_confirm(&mut self, index: usize, packet: &mut Packet<'_>) {
        // A server in RESPOND repeats Confirms too: a duplicated Request contains no new Change,
        // and the Response that had the Confirms may have been lost.
        let keep = self.phase != Phase::Open;
        let Some(entry) = self.table.working_mut().get_mut(index) else { return };
        let Some(answer) = entry.answer else { return };
        let mut area = [0; MAX_VALUE_AREA];
        let len = confirm_area(entry, answer, &mut area);
        let kind = match entry.location {
            Location::Local => kind::CONFIRM_L,
            Location::Remote => kind::CONFIRM_R,
        };
        if packet.put(kind, entry.info.number, &area[..len], false) {
            entry.on_confirm_sent(keep);
        }
    }

    /// Writes this entry's Change if it is new or due.
    fn write_change(&mut self, index: usize, now: Instant, seq: Seqno, packet: &mut Packet<'_>) {
        if !self.is_due(index, now) || !self.may_name(index) {
            return;
        }
        let first = self.first_interval();
        let Some(entry) = self.table.working_mut().get_mut(index) else { return };
        let kind = match entry.location {
            Location::Local => kind::CHANGE_L,
            Location::Remote => kind::CHANGE_R,
        };
        //= 4340-6.6.4-2
        let preference = &entry.preference;
        if !packet.put(kind, entry.info.number, &preference.change, preference.mandatory) {
            return;
        }
        if entry.is_new_change() {
            self.fgss = Some(seq);
        }
        let interval = match entry.state {
            //= 4340-6.6.3-2
            State::Changing { interval, .. } if self.phase != Phase::Handshake => {
                (interval * 2).min(MAX_INTERVAL)
            }
            State::Changing { interval, .. } => interval,
            State::Stable { .. } => first,
        };
        entry.on_change_sent(now + interval, interval);
    }

    //= 4340-6.6.3-1
    /// Whether this entry has a Change to send on a packet that is sent now.
    fn is_due(&self, index: usize, now: Instant) -> bool {
        let Some(entry) = self.table.working().get(index) else { return false };
        // An unsent Confirm goes first, so that the peer reads the options in this order.
        if entry.answer.is_some_and(|a| !a.sent) {
            return false;
        }
        match entry.state {
            State::Changing { next_at, .. } => next_at <= now || self.phase == Phase::Handshake,
            State::Stable { queued } => queued,
        }
    }

    //= 4340-10.3-1
    /// Whether the peer will know which CCID this entry refers to: the CCID is agreed, or our
    /// Mandatory Change of CCID allows no other.
    fn may_name(&self, index: usize) -> bool {
        let Some(entry) = self.table.working().get(index) else { return false };
        let feature = entry.info.number;
        if feature.0 < 128 {
            return true;
        }
        let location = ccid_location(entry.location, feature);
        let Some(ccid) = self.table.find(location, FeatureNumber::CCID) else {
            // There was no negotiation of the CCID.
            let ccid = self.table.summary(location, FeatureNumber::CCID);
            return ccid.is_some_and(|ccid| ccid_knows(ccid.value, feature));
        };
        let wishes = &ccid.preference;
        let forced =
            || wishes.mandatory && wishes.change.iter().all(|&c| ccid_knows(c.into(), feature));
        match ccid.state {
            State::Stable { queued: false } => ccid_knows(ccid.upcoming(), feature),
            _ => forced(),
        }
    }

    /// At least one round-trip time (RFC 4340 section 6.6.3).
    fn first_interval(&self) -> Duration {
        self.rtt.get().map_or(UNKNOWN_RTT, |rtt| (rtt * 2).max(MIN_INTERVAL))
    }

    fn check_fgss(&mut self, gss: Seqno) {
        //= 4340-6.6.4-7
        //= 4340-6.6.4-8
        if self.fgss.is_some_and(|f| f.is_after(gss)) {
            self.fgss = Some(gss.sub(W_MAX));
        }
    }

    /// Whether pending options need a packet of their own now, at most once per round-trip time. If
    /// this returns true, send that packet: the request is not repeated at once.
    pub fn take_packet_request(&mut self, now: Instant) -> bool {
        let due = self.poll_timeout().is_some_and(|at| at <= now);
        if due {
            self.lone_packet_at = MaybeInstant::some(now);
        }
        due
    }

    /// Whether a packet that can carry options would carry some now: a Confirm, or a Change that is
    /// new or due for retransmission. Between two transmissions of a Change it is false.
    #[inline]
    pub fn has_due(&self, now: Instant) -> bool {
        self.open && self.first_due().is_some_and(|at| at <= now)
    }

    //= 4340-6.6.1-1
    //= 4340-6.6.3-3
    /// When `take_packet_request` can next return true; `None` if nothing is pending.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if !self.open || self.phase == Phase::Handshake { None } else { self.earliest_due() }
    }

    fn first_due(&self) -> Option<Instant> {
        let unknown = self.unknown.is_some().then_some(Instant::ZERO);
        let indices = 0..self.table.working().len();
        indices.filter_map(|i| self.due_at(i)).chain(unknown).min()
    }

    fn earliest_due(&self) -> Option<Instant> {
        let earliest = self.first_due()?;
        let spacing = self.rtt.get().unwrap_or(LONE_PACKET_SPACING);
        Some(self.lone_packet_at.get().map_or(earliest, |last| earliest.max(last + spacing)))
    }

    /// When this entry next has something to send; `Instant::ZERO` means now.
    fn due_at(&self, index: usize) -> Option<Instant> {
        let entry = self.table.working().get(index)?;
        if entry.answer.is_some_and(|a| !a.sent) {
            return Some(Instant::ZERO);
        }
        let at = match entry.state {
            State::Stable { queued: false } => return None,
            State::Changing { next_at, .. } => next_at,
            _ => Instant::ZERO,
        };
        self.may_name(index).then_some(at)
    }
}

/// Writes the value area of a Confirm and returns its length.
fn confirm_area(entry: &Entry, answer: Answer, area: &mut [u8; MAX_VALUE_AREA]) -> usize {
    let Some(value) = answer.value else { return 0 };
    let value_len = entry.info.value_len;
    area[..value_len].copy_from_slice(&value.to_be_bytes()[8 - value_len..]);
    if entry.info.rule == Reconciliation::NonNegotiable {
        return value_len;
    }
    let list = entry.answer_list.as_ref().unwrap_or(&entry.preference.change);
    let end = MAX_VALUE_AREA.min(value_len + list.len());
    area[value_len..end].copy_from_slice(&list[..end - value_len]);
    end
}
