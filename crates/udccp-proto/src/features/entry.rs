//! Negotiates one feature at one location.

use udccp_base::{Duration, Instant};
use udccp_wire::{FeatureInfo, FeatureNumber, Reconciliation};

use super::list::ByteList;
use super::preferences::Preference;
use super::value::{decode, encode, reconcile};
use super::{ChangeError, Location, Role};

//= 4340-6.4-1
//= 4340-6.4-2
/// Features that the engine can hold.
const FEATURES: [FeatureNumber; 10] = [
    FeatureNumber::CCID,
    FeatureNumber::ALLOW_SHORT_SEQNOS,
    FeatureNumber::SEQUENCE_WINDOW,
    FeatureNumber::ECN_INCAPABLE,
    FeatureNumber::ACK_RATIO,
    FeatureNumber::SEND_ACK_VECTOR,
    FeatureNumber::SEND_NDP_COUNT,
    FeatureNumber::MIN_CSCOV,
    FeatureNumber::CHECK_DATA_CHECKSUM,
    FeatureNumber::SEND_LEV_RATE,
];

/// Places for all features at both locations; CCID-specific ones stand behind CCID.
pub(super) const SLOTS: usize = 2 * FEATURES.len();

/// The place of a feature, if there can be one.
pub(super) fn slot(location: Location, feature: FeatureNumber) -> Option<usize> {
    let index = match feature.0 {
        n @ 1..=9 => usize::from(n) - 1,
        192 => 9,
        _ => return None,
    };
    Some(2 * index + usize::from(location == Location::Remote))
}

/// The feature at a place.
pub(super) fn feature_at(slot: usize) -> (Location, FeatureNumber) {
    let location = if slot % 2 == 0 { Location::Local } else { Location::Remote };
    (location, FEATURES[slot / 2])
}

/// States of RFC 4340 section 6.6.2. UNSTABLE is CHANGING with [`Entry::next`] waiting: as long as
/// our Change is not answered, we hold on to the list that it showed, and the list that we want
/// now leaves in a Change of its own after the answer. From outside it looks as if the
/// application had asked later. To send the new list at once would be quicker, but not safe: an
/// acknowledgement number reports nothing of the packets before it, so a Confirm of the old list
/// could be taken for one of the new list, and the ends could settle on different values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing of ours is on its way; `queued`: whether a Change shall leave.
    Stable { queued: bool },
    /// A Change left and is not answered; it leaves again at `next_at`.
    Changing { next_at: Instant, interval: Duration },
}

/// A Confirm that shall leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// The value to confirm; `None` makes an empty Confirm.
    pub(super) value: Option<u64>,
    /// It left already, and is kept to be repeated in PARTOPEN.
    pub(super) sent: bool,
}

/// Bytes of older offers that are remembered.
const MAX_REMEMBERED: usize = 240;

/// What a Confirm is worth.
enum Judgement {
    /// It gives the feature this value.
    Right(u64),
    /// It answers a Change of an earlier negotiation, sent again and late: not what we wait for.
    Old,
    /// It is invalid.
    Wrong,
}

/// An option that ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryError {
    Option,
    Mandatory,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) info: &'static FeatureInfo,
    pub(super) location: Location,
    /// The value in force.
    pub(super) value: u64,
    pub(super) preference: Preference,
    /// What we prefer once the Change that is on its way is answered.
    pub(super) next: Option<Preference>,
    pub(super) state: State,
    pub(super) answer: Option<Answer>,
    /// The list that `answer` was reconciled with, where ours changed since.
    pub(super) answer_list: Option<ByteList>,
    /// What our latest Change offered, and what those before it did.
    pub(super) offered: ByteList,
    pub(super) offered_before: ByteList,
    /// The peer has sent a Change of this feature.
    pub(super) negotiated: bool,
    /// The value stays, once it is one of those that we accept.
    pub(super) is_fixed: bool,
    /// The value was (re)established and nobody has been notified.
    pub(super) news: bool,
}

impl Entry {
    /// The entry of a new connection.
    pub(super) fn new(
        info: &'static FeatureInfo,
        location: Location,
        preference: Preference,
    ) -> Self {
        let mut entry = Self {
            info,
            location,
            value: info.initial,
            preference,
            next: None,
            state: State::Stable { queued: false },
            answer: None,
            answer_list: None,
            offered: ByteList::EMPTY,
            offered_before: ByteList::EMPTY,
            negotiated: false,
            is_fixed: false,
            news: false,
        };
        let queued = entry.preference.announced || !entry.is_first_choice();
        entry.state = State::Stable { queued: queued && entry.may_change() };
        entry
    }

    /// Its place.
    pub(super) fn slot(&self) -> usize {
        slot(self.location, self.info.number).unwrap_or(SLOTS)
    }

    fn is_server_priority(&self) -> bool {
        self.info.rule == Reconciliation::ServerPriority
    }

    /// Whether we may send Changes: not for what only the peer can set.
    fn may_change(&self) -> bool {
        //= 4340-6.3.2-2
        self.is_server_priority() || self.location == Location::Local
    }

    /// The value in force once the Confirm that waits has left.
    pub(super) fn upcoming(&self) -> u64 {
        match self.answer {
            Some(Answer { value: Some(value), .. }) => value,
            _ => self.value,
        }
    }

    fn is_first_choice(&self) -> bool {
        if !self.may_change() {
            return true;
        }
        let value = self.upcoming();
        if self.is_server_priority() {
            return self.preference.change.first().is_some_and(|&v| u64::from(v) == value);
        }
        decode(self.info, &self.preference.change) == Some(value)
    }

    /// Whether the settled value is one that we accept.
    pub(super) fn is_met(&self) -> bool {
        let settled = self.state == State::Stable { queued: false };
        let in_list = self.preference.change.contains(&(self.value as u8));
        !settled || self.is_first_choice() || (self.is_server_priority() && in_list)
    }

    /// Whether something waits: a Change or its answer, or a Confirm of ours.
    pub(super) fn is_open(&self) -> bool {
        self.state != State::Stable { queued: false } || self.answer.is_some()
    }

    /// Our wish changes.
    pub(super) fn change(
        &mut self,
        role: Role,
        values: &[u64],
        mandatory: bool,
    ) -> Result<(), ChangeError> {
        if !self.may_change() {
            return Err(ChangeError::NotOurs(self.info.number));
        }
        let change = encode(self.info, values)?;
        let announced = self.preference.announced;
        let new = Preference { mandatory, announced, ..Preference::new(change) };
        if let State::Changing { .. } = self.state {
            //= 4340-6.6.5-1
            self.next = (new.change != self.preference.change).then_some(new);
        } else {
            self.adopt(role, new);
        }
        Ok(())
    }

    /// The new preference becomes ours in STABLE; a Change follows where one is needed.
    fn adopt(&mut self, role: Role, new: Preference) {
        let same = new.change == self.preference.change;
        let old = core::mem::replace(&mut self.preference, new);
        match self.answer {
            // A repeated Confirm would now show a list that is no longer ours.
            Some(answer) if answer.sent => {
                self.answer = None;
                self.answer_list = None;
            }
            Some(_) if !same && self.answer_list.is_none() => {
                self.answer_list = Some(old.change);
            }
            _ => {}
        }
        let queued = self.negotiated && self.state == State::Stable { queued: true };
        let needed = !self.is_first_choice() || (!same && self.may_differ(role));
        self.state = State::Stable { queued: needed || queued };
    }

    /// The peer's Change, in order.
    pub(super) fn on_change(
        &mut self,
        role: Role,
        value: &[u8],
        mandatory: bool,
    ) -> Result<(), EntryError> {
        let mut holds_on = false;
        let result = if self.is_server_priority() {
            // Only once: what the two lists lead to must not depend on which Change came last.
            if role == Role::Server && !self.negotiated {
                self.preference.adapt_to(value);
            }
            let reconciled = self.reconciled(role, value);
            holds_on = reconciled.is_some_and(|(other, _)| self.holds_on_against(other));
            let kept = self.upcoming();
            reconciled.map(|other| match holds_on {
                true => (kept, value.iter().any(|&v| u64::from(v) == kept)),
                false => other,
            })
        } else {
            self.accepted(value)
        };
        let (confirmed, agreed) = match result {
            Some(result) => result,
            //= 4340-6.6.9-1
            None if mandatory => return Err(EntryError::Mandatory),
            //= 4340-6.6.8-1
            //= 4340-15-6
            None => {
                self.set_answer(None);
                return Ok(());
            }
        };
        if !agreed && mandatory {
            return Err(EntryError::Mandatory);
        }
        //= 4340-6.6.6-1
        let before = self.negotiated;
        self.set_answer(Some(confirmed));
        if holds_on {
            self.answer_list = Some(ByteList::new(&[confirmed as u8]));
        }
        // The peer's Change may be an old one, sent again although its negotiation is long over;
        // then the peer ignores our Confirm, and nobody would see that values differ. So it is
        // answered, but a negotiation of ours goes on until its own Confirm is there, unless this
        // is the first Change that the peer ever made.
        let ours_goes_on = match self.state {
            State::Changing { .. } => true,
            State::Stable { queued } => queued && before,
        };
        if !ours_goes_on {
            // Where we cannot live with the outcome, our Mandatory Change has to follow.
            self.state = State::Stable { queued: !agreed && self.preference.mandatory };
        }
        Ok(())
    }

    /// The value in force is to stay from now on. A negotiation of ours that is under way ends as
    /// it would have; after it, or if none is, our list is the value in force alone.
    pub(super) fn fix(&mut self) {
        self.is_fixed = true;
    }

    /// Whether the value in force stays although the lists lead to `other`.
    fn holds_on_against(&self, other: u64) -> bool {
        let current = self.upcoming();
        let is_ours = self.preference.change.iter().any(|&v| u64::from(v) == current);
        self.is_fixed && other != current && is_ours
    }

    /// Whether the list that the peer last offered could now lead to another value than before.
    /// Then the peer has to hear of our new list, or an old Change of its own, sent again and
    /// late, would change the value here alone. The server's first choice stands in any case, and
    /// so does the only one.
    fn may_differ(&self, role: Role) -> bool {
        let several = self.preference.change.len() > 1;
        self.negotiated && role == Role::Client && self.is_server_priority() && several
    }

    fn set_answer(&mut self, value: Option<u64>) {
        self.answer = Some(Answer { value, sent: false });
        self.answer_list = None;
        self.negotiated = true;
    }

    /// The value to confirm, and whether the lists share one; `None` for an invalid list.
    fn reconciled(&self, role: Role, theirs: &[u8]) -> Option<(u64, bool)> {
        if theirs.is_empty() {
            return None;
        }
        //= 4340-15-5
        // Values that mean nothing to us are simply not in our list.
        //= 4340-6.3.1-1
        match self.outcome(role, theirs) {
            Some(value) => Some((u64::from(value), true)),
            None => Some((self.upcoming(), false)),
        }
    }

    fn outcome(&self, role: Role, theirs: &[u8]) -> Option<u8> {
        let ours = &self.preference.change;
        match role {
            Role::Server => reconcile(ours, theirs),
            Role::Client => reconcile(theirs, ours),
        }
    }

    /// A non-negotiable value: taken if valid, but only where the peer is its location.
    fn accepted(&self, bytes: &[u8]) -> Option<(u64, bool)> {
        if self.location == Location::Local {
            return None;
        }
        //= 4340-6.3.2-1
        decode(self.info, bytes).map(|value| (value, true))
    }

    //= 4340-6.6.1-3
    /// The peer's Confirm, in order.
    pub(super) fn on_confirm(&mut self, role: Role, value: &[u8]) -> Result<(), EntryError> {
        if !matches!(self.state, State::Changing { .. }) {
            return Ok(());
        }
        if value.is_empty() {
            //= 4340-6.6.7-4
            if self.info.required || self.preference.mandatory {
                return Err(EntryError::Option);
            }
        } else {
            //= 4340-6.6.8-2
            match self.judge(role, value) {
                Judgement::Right(value) => self.value = value,
                Judgement::Old => return Ok(()),
                Judgement::Wrong => return Err(EntryError::Option),
            }
            self.news = true;
            // What waits to be sent is older than what arrived.
            self.answer = self.answer.filter(|a| a.sent || a.value == Some(self.value));
        }
        //= 4340-6.6.7-3
        self.state = State::Stable { queued: false };
        if let Some(next) = self.next.take() {
            self.adopt(role, next);
        }
        Ok(())
    }

    /// Whether a Confirm carries what it must. It may acknowledge our latest Change and still
    /// answer an older one.
    fn judge(&self, role: Role, bytes: &[u8]) -> Judgement {
        if !self.is_server_priority() {
            let old = || self.offered_before.chunks_exact(self.info.value_len).any(|v| v == bytes);
            return match decode(self.info, bytes) {
                Some(value) if bytes == &*self.preference.change => Judgement::Right(value),
                Some(_) if old() => Judgement::Old,
                _ => Judgement::Wrong,
            };
        }
        let Some((&value, theirs)) = bytes.split_first() else { return Judgement::Wrong };
        let previous = u64::from(value) == self.value;
        let offered_before = self.offered_before.contains(&value);
        let right = match self.outcome(role, theirs) {
            Some(expected) => value == expected,
            // Some implementations leave the list out: then any value of ours may be right.
            None if theirs.is_empty() => previous || self.preference.change.contains(&value),
            None => previous,
        };
        match right {
            true => Judgement::Right(u64::from(value)),
            false if offered_before => Judgement::Old,
            false => Judgement::Wrong,
        }
    }

    /// The Change is about to leave; returns whether it is a new one.
    pub(super) fn is_new_change(&self) -> bool {
        !matches!(self.state, State::Changing { .. })
    }

    /// The Change left.
    pub(super) fn on_change_sent(&mut self, next_at: Instant, interval: Duration) {
        if self.is_new_change() {
            let is_full = self.offered_before.len() >= MAX_REMEMBERED;
            let before = &self.offered_before[if is_full { MAX_REMEMBERED / 2 } else { 0 }..];
            self.offered_before = before.iter().chain(&*self.offered).copied().collect();
            self.offered = self.preference.change.clone();
        }
        self.state = State::Changing { next_at, interval };
    }

    /// The Confirm left: the value is in force here from now on.
    pub(super) fn on_confirm_sent(&mut self, keep: bool) {
        if let Some(answer) = &mut self.answer {
            if let (Some(value), false) = (answer.value, answer.sent) {
                self.value = value;
                self.news = true;
            }
            answer.sent = true;
        }
        if !keep {
            self.answer = None;
            self.answer_list = None;
        }
    }
}
