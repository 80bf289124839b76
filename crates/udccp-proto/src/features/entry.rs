//! Negotiates one feature at one location.

use udccp_base::{Duration, Instant};
use udccp_wire::{FeatureInfo, Reconciliation};

use super::list::ByteList;
use super::preferences::Preference;
use super::slots::{SLOTS, slot};
use super::value::{decode, encode, reconcile};
use super::{ChangeError, Location, Role};

/// States of RFC 4340 section 6.6.2. UNSTABLE is CHANGING with [`Entry::next`] set. While our
/// Change is unanswered, we keep the list that it offered. The new list is sent in its own Change
/// after the answer, as if the application had requested it later. Sending it at once would be
/// quicker, but not safe: an acknowledgement number reports nothing about earlier packets. A
/// Confirm of the old list could be taken for one of the new list, and the ends could settle on
/// different values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// We wait for no answer. `queued`: a Change has to be sent.
    Stable { queued: bool },
    /// A Change was sent and is unanswered. It is retransmitted at `next_at`.
    Changing { next_at: Instant, interval: Duration },
}

/// A Confirm to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// The value to confirm; `None` makes an empty Confirm.
    pub(super) value: Option<u64>,
    /// It was sent, and is kept to be repeated in PARTOPEN.
    pub(super) sent: bool,
}

/// Limit of the bytes of earlier offers that are kept.
const MAX_REMEMBERED: usize = 240;

/// The assessment of a Confirm.
enum Judgement {
    /// It gives the feature this value.
    Right(u64),
    /// It answers a retransmitted Change of an earlier negotiation, so it is not the awaited one.
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
    /// Our preference once the outstanding Change is answered.
    pub(super) next: Option<Preference>,
    pub(super) state: State,
    pub(super) answer: Option<Answer>,
    /// The list that `answer` was reconciled with, if ours has changed since.
    pub(super) answer_list: Option<ByteList>,
    /// The values that our latest Change offered, and those that earlier ones offered.
    pub(super) offered: ByteList,
    pub(super) offered_before: ByteList,
    /// Whether the peer has sent a Change of this feature.
    pub(super) negotiated: bool,
    /// Whether to keep the value once it is one that we accept.
    pub(super) is_fixed: bool,
    /// Whether the value was (re)established and this is not reported yet.
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

    /// The entry's slot.
    pub(super) fn slot(&self) -> usize {
        slot(self.location, self.info.number).unwrap_or(SLOTS)
    }

    fn is_server_priority(&self) -> bool {
        self.info.rule == Reconciliation::ServerPriority
    }

    /// Whether we may send a Change, which we may not for a feature that only the peer can set.
    fn may_change(&self) -> bool {
        //= 4340-6.3.2-2
        self.is_server_priority() || self.location == Location::Local
    }

    /// The value in force once the pending Confirm has been sent.
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

    /// Whether anything is pending: a Change or its answer, or a Confirm of ours.
    pub(super) fn is_open(&self) -> bool {
        self.state != State::Stable { queued: false } || self.answer.is_some()
    }

    /// Changes our preference.
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

    /// Takes over a new preference in STABLE, and queues a Change if one is needed.
    fn adopt(&mut self, role: Role, new: Preference) {
        let same = new.change == self.preference.change;
        let old = core::mem::replace(&mut self.preference, new);
        match self.answer {
            // A repeated Confirm would show a list that is no longer ours.
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

    /// Processes a Change that is in order.
    pub(super) fn on_change(
        &mut self,
        role: Role,
        value: &[u8],
        mandatory: bool,
    ) -> Result<(), EntryError> {
        let mut holds_on = false;
        let result = if self.is_server_priority() {
            // Only once, because the result must not depend on which Change came last.
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
        // The peer's Change may be a retransmission from a negotiation that is over. Then the peer
        // ignores our Confirm, and nobody would notice different values. So it is answered, but our
        // own negotiation goes on until its Confirm arrives, unless this is the peer's first Change
        // of the feature.
        let ours_goes_on = match self.state {
            State::Changing { .. } => true,
            State::Stable { queued } => queued && before,
        };
        if !ours_goes_on {
            // If the outcome is unacceptable, our Mandatory Change has to follow.
            self.state = State::Stable { queued: !agreed && self.preference.mandatory };
        }
        Ok(())
    }

    /// Keeps the value in force from now on. A negotiation of ours that is under way still ends as
    /// usual. After that, or at once if there is none, our list is the value in force alone.
    pub(super) fn fix(&mut self) {
        self.is_fixed = true;
    }

    /// Whether the value in force is kept although the lists lead to `other`.
    fn holds_on_against(&self, other: u64) -> bool {
        let current = self.upcoming();
        let is_ours = self.preference.change.iter().any(|&v| u64::from(v) == current);
        self.is_fixed && other != current && is_ours
    }

    /// Whether the peer's last list could now lead to a different value than before. Then the peer
    /// must be sent our new list. Otherwise a late retransmission of its old Change would change
    /// the value on our side only. This cannot happen to the server, or with a single choice.
    fn may_differ(&self, role: Role) -> bool {
        let several = self.preference.change.len() > 1;
        self.negotiated && role == Role::Client && self.is_server_priority() && several
    }

    fn set_answer(&mut self, value: Option<u64>) {
        self.answer = Some(Answer { value, sent: false });
        self.answer_list = None;
        self.negotiated = true;
    }

    /// The value to confirm, and whether the lists share a value; `None` for an invalid list.
    fn reconciled(&self, role: Role, theirs: &[u8]) -> Option<(u64, bool)> {
        if theirs.is_empty() {
            return None;
        }
        //= 4340-15-5
        // Unknown values need no check: they are not in our list.
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

    /// A non-negotiable value, accepted if it is valid and the feature is located at the peer.
    fn accepted(&self, bytes: &[u8]) -> Option<(u64, bool)> {
        if self.location == Location::Local {
            return None;
        }
        //= 4340-6.3.2-1
        decode(self.info, bytes).map(|value| (value, true))
    }

    //= 4340-6.6.1-3
    /// Processes a Confirm that is in order.
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
            // A Confirm that waits to be sent is older than the one that arrived.
            self.answer = self.answer.filter(|a| a.sent || a.value == Some(self.value));
        }
        //= 4340-6.6.7-3
        self.state = State::Stable { queued: false };
        if let Some(next) = self.next.take() {
            self.adopt(role, next);
        }
        Ok(())
    }

    /// Assesses a Confirm. It may acknowledge the packet of our latest Change and still answer an
    /// earlier one.
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
            // Some implementations omit the list. Then any value of ours may be right.
            None if theirs.is_empty() => previous || self.preference.change.contains(&value),
            None => previous,
        };
        match right {
            true => Judgement::Right(u64::from(value)),
            false if offered_before => Judgement::Old,
            false => Judgement::Wrong,
        }
    }

    /// Whether the Change about to be sent is a new one.
    pub(super) fn is_new_change(&self) -> bool {
        !matches!(self.state, State::Changing { .. })
    }

    /// The Change was sent.
    pub(super) fn on_change_sent(&mut self, next_at: Instant, interval: Duration) {
        if self.is_new_change() {
            let is_full = self.offered_before.len() >= MAX_REMEMBERED;
            let before = &self.offered_before[if is_full { MAX_REMEMBERED / 2 } else { 0 }..];
            self.offered_before = before.iter().chain(&*self.offered).copied().collect();
            self.offered = self.preference.change.clone();
        }
        self.state = State::Changing { next_at, interval };
    }

    /// The Confirm was sent, so the value is in force here from now on.
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
