//! The features of one connection that were negotiated. While no negotiation is open, they are
//! packed into a few bytes, because most connections negotiate once and then live for long.

use std::sync::Arc;

use udccp_wire::FeatureNumber;

use super::entry::{Entry, State};
use super::list::ByteList;
use super::preferences::Preference;
use super::slots::{SLOTS, feature_at, slot};
use super::{FeaturePreferences, Location};

/// The features of one connection. A feature without an entry is as in a new connection: it has the
/// initial value and the configured preference.
#[derive(Clone, Debug)]
pub(super) struct Table {
    preferences: Arc<FeaturePreferences>,
    store: Store,
}

#[derive(Clone, Debug)]
enum Store {
    /// In order of slots.
    Working(Vec<Entry>),
    /// Consecutive, in the format of [`pack_into`]; none is open.
    Packed(Box<[u8]>),
}

/// The state of one feature.
#[derive(Clone, Copy, Debug)]
pub(super) struct Summary {
    pub(super) value: u64,
    /// The value once the pending Confirm has been sent.
    pub(super) upcoming: u64,
    /// Whether no Change of ours is unanswered.
    pub(super) is_stable: bool,
}

impl Summary {
    fn of(entry: &Entry) -> Self {
        let is_stable = entry.state == State::Stable { queued: false };
        Self { value: entry.value, upcoming: entry.upcoming(), is_stable }
    }
}

impl Table {
    /// The table of a new connection: the features for which a Change has to be sent.
    pub(super) fn new(preferences: Arc<FeaturePreferences>) -> Self {
        let fresh = (0..SLOTS).filter_map(|index| fresh(&preferences, index));
        let working = fresh.filter(Entry::is_open).collect();
        Self { preferences, store: Store::Working(working) }
    }

    /// Entries that may be open. All others are settled.
    #[inline]
    pub(super) fn working(&self) -> &[Entry] {
        match &self.store {
            Store::Working(entries) => entries,
            Store::Packed(_) => &[],
        }
    }

    /// Entries that may be open.
    #[inline]
    pub(super) fn working_mut(&mut self) -> &mut [Entry] {
        match &mut self.store {
            Store::Working(entries) => entries,
            Store::Packed(_) => &mut [],
        }
    }

    /// The entry of a feature, if it may be open.
    pub(super) fn find(&self, location: Location, feature: FeatureNumber) -> Option<&Entry> {
        let index = slot(location, feature)?;
        self.working().iter().find(|e| e.slot() == index)
    }

    /// The state of a feature; `None` if it is not understood.
    pub(super) fn summary(&self, location: Location, feature: FeatureNumber) -> Option<Summary> {
        self.preferences.get(location, feature)?;
        let index = slot(location, feature)?;
        let new = || feature.info().map(|info| info.initial);
        let known = match &self.store {
            Store::Working(_) => self.find(location, feature).map(Summary::of),
            Store::Packed(bytes) => Unpacked::new(bytes).find(|p| p.index == index).map(|p| {
                let value = p.value();
                Summary { value, upcoming: value, is_stable: true }
            }),
        };
        let as_new = |value| Summary { value, upcoming: value, is_stable: true };
        known.or_else(|| new().map(as_new))
    }

    /// The entry of a feature, which may be changed; `None` if the feature is not understood.
    pub(super) fn entry_mut(
        &mut self,
        location: Location,
        feature: FeatureNumber,
    ) -> Option<&mut Entry> {
        let index = slot(location, feature)?;
        let new = fresh(&self.preferences, index)?;
        let entries = self.unpack();
        let place = match entries.binary_search_by_key(&index, Entry::slot) {
            Ok(place) => place,
            Err(place) => {
                entries.insert(place, new);
                place
            }
        };
        entries.get_mut(place)
    }

    /// Entries that differ from those of a new connection.
    pub(super) fn all(&self) -> Vec<Entry> {
        match &self.store {
            Store::Working(entries) => entries.clone(),
            Store::Packed(bytes) => self.read(bytes),
        }
    }

    fn read(&self, bytes: &[u8]) -> Vec<Entry> {
        let entry = |p: Unpacked<'_>| p.entry(fresh(&self.preferences, p.index)?);
        Unpacked::new(bytes).filter_map(entry).collect()
    }

    fn unpack(&mut self) -> &mut Vec<Entry> {
        if let Store::Packed(bytes) = &self.store {
            self.store = Store::Working(self.read(bytes));
        }
        match &mut self.store {
            Store::Working(entries) => entries,
            Store::Packed(_) => unreachable!("it was unpacked just now"),
        }
    }

    /// Packs the entries. Nothing is open, so only what a later negotiation needs is kept.
    pub(super) fn pack(&mut self) {
        let Store::Working(entries) = &mut self.store else { return };
        debug_assert!(!entries.iter().any(|e| e.is_open() || e.news));
        for entry in entries.iter_mut() {
            // It belongs to an answer, and there is none.
            entry.answer_list = None;
        }
        let new = |entry: &Entry| fresh(&self.preferences, entry.slot());
        let changed = || entries.iter().filter_map(|e| Some((e, new(e).filter(|new| new != e)?)));
        let mut bytes = Vec::with_capacity(changed().map(|(e, new)| packed_len(e, &new)).sum());
        for (entry, new) in changed() {
            pack_into(&mut bytes, entry, &new);
        }
        debug_assert_eq!(bytes.len(), bytes.capacity());
        let packed = Store::Packed(bytes.into());
        let working = core::mem::replace(&mut self.store, packed);
        if cfg!(debug_assertions) {
            let again = Self { preferences: self.preferences.clone(), store: working }.all();
            assert!(self.all().iter().all(|e| again.contains(e)), "{again:?}: {:?}", self.all());
        }
    }
}

/// The entry of a new connection.
fn fresh(preferences: &FeaturePreferences, index: usize) -> Option<Entry> {
    let (location, feature) = feature_at(index);
    let preference = preferences.get(location, feature)?.clone();
    Some(Entry::new(feature.info()?, location, preference))
}

/// Flags of a packed entry.
const NEGOTIATED: u8 = 1;
const FIXED: u8 = 2;
const OWN_PREFERENCE: u8 = 4;
const MANDATORY: u8 = 8;
const ANNOUNCED: u8 = 16;
const INDIFFERENT: u8 = 32;

/// Bits above the length of the value: one for each list that is present.
const LIST_BITS: u8 = 3;

/// From this length on, a list's length takes two more bytes.
const LONG: u8 = u8::MAX;

/// Appends an entry: slot, flags, a byte with the length of the value and the lists present, the
/// value, and the lists: our preference (if it differs from the initial one), the last offer, and
/// earlier offers.
fn pack_into(bytes: &mut Vec<u8>, entry: &Entry, new: &Entry) {
    let preference = &entry.preference;
    let lists = packed_lists(entry, new);
    let flags = [
        (entry.negotiated, NEGOTIATED),
        (entry.is_fixed, FIXED),
        (*preference != new.preference, OWN_PREFERENCE),
        (preference.mandatory, MANDATORY),
        (preference.announced, ANNOUNCED),
        (preference.indifferent, INDIFFERENT),
    ];
    bytes.push(entry.slot() as u8);
    bytes.push(flags.into_iter().filter(|(on, _)| *on).map(|(_, flag)| flag).sum());
    let value_len = value_len(entry.value);
    let present = (0..).zip(&lists).filter(|(_, list)| !list.is_empty()).map(|(n, _)| 1 << n);
    bytes.push(value_len as u8 | present.sum::<u8>() << LIST_BITS);
    bytes.extend_from_slice(&entry.value.to_be_bytes()[8 - value_len..]);
    for list in lists.into_iter().filter(|list| !list.is_empty()) {
        match u8::try_from(list.len()) {
            Ok(len) if len < LONG => bytes.push(len),
            _ => {
                bytes.push(LONG);
                bytes.extend_from_slice(&(list.len() as u16).to_be_bytes());
            }
        }
        bytes.extend_from_slice(list);
    }
}

/// Bytes of a value without leading zeros.
fn value_len(value: u64) -> usize {
    8 - value.leading_zeros() as usize / 8
}

fn packed_lists<'a>(entry: &'a Entry, new: &Entry) -> [&'a [u8]; 3] {
    let is_own = entry.preference != new.preference;
    let own: &[u8] = if is_own { &entry.preference.change } else { &[] };
    [own, &entry.offered, &entry.offered_before]
}

/// Length of the bytes that [`pack_into`] appends.
fn packed_len(entry: &Entry, new: &Entry) -> usize {
    let len = |list: &[u8]| match list.len() {
        0 => 0,
        len if len < LONG.into() => 1 + len,
        len => 3 + len,
    };
    3 + value_len(entry.value) + packed_lists(entry, new).map(len).iter().sum::<usize>()
}

/// An iterator over packed entries, and also its item.
#[derive(Clone, Copy, Debug)]
struct Unpacked<'a> {
    index: usize,
    flags: u8,
    value: &'a [u8],
    lists: [&'a [u8]; 3],
    rest: &'a [u8],
}

impl<'a> Unpacked<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { index: 0, flags: 0, value: &[], lists: [&[]; 3], rest: bytes }
    }

    fn value(&self) -> u64 {
        self.value.iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Restores the entry. `new` is the entry of a new connection.
    fn entry(&self, new: Entry) -> Option<Entry> {
        let [own, offered, offered_before] = self.lists.map(ByteList::new);
        let preference = Preference {
            change: if self.has(OWN_PREFERENCE) { own } else { new.preference.change },
            mandatory: self.has(MANDATORY),
            announced: self.has(ANNOUNCED),
            indifferent: self.has(INDIFFERENT),
        };
        Some(Entry {
            value: self.value(),
            preference,
            state: State::Stable { queued: false },
            offered,
            offered_before,
            negotiated: self.has(NEGOTIATED),
            is_fixed: self.has(FIXED),
            ..new
        })
    }
}

impl Iterator for Unpacked<'_> {
    type Item = Self;

    fn next(&mut self) -> Option<Self> {
        let (&[index, flags, shape], rest) = self.rest.split_first_chunk()?;
        let value_len = shape & ((1 << LIST_BITS) - 1);
        let (value, mut rest) = rest.split_at_checked(value_len.into())?;
        let mut lists = [&[][..]; 3];
        for (n, list) in lists.iter_mut().enumerate() {
            if shape >> LIST_BITS & 1 << n != 0 {
                (*list, rest) = split_list(rest)?;
            }
        }
        self.rest = rest;
        Some(Self { index: index.into(), flags, value, lists, rest: &[] })
    }
}

/// Splits off a list. Returns it and the rest.
fn split_list(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&len, rest) = bytes.split_first()?;
    if len < LONG {
        return rest.split_at_checked(len.into());
    }
    let (&len, rest) = rest.split_first_chunk()?;
    rest.split_at_checked(u16::from_be_bytes(len).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_entries_round_trip() {
        let preferences = Arc::new(FeaturePreferences::new());
        let mut table = Table::new(preferences);
        for (n, feature) in (1..=9).map(FeatureNumber).enumerate() {
            for location in [Location::Local, Location::Remote] {
                let entry = table.entry_mut(location, feature).unwrap();
                entry.value = (1 << 45) + n as u64;
                entry.offered = ByteList::new(&[7; 300][..n * 31]);
                entry.offered_before = ByteList::new(&[8; 400][..n * 40]);
                entry.negotiated = n % 2 == 0;
                entry.is_fixed = n % 3 == 0;
                entry.preference.mandatory = n % 4 == 0;
                if n % 5 == 0 {
                    entry.preference.change = ByteList::new(&[9; 251]);
                }
            }
        }
        let before = table.all();
        assert_eq!(before.len(), 18);
        table.pack();
        assert!(table.working().is_empty());
        assert_eq!(table.all(), before);
        for entry in &before {
            let summary = table.summary(entry.location, entry.info.number).unwrap();
            assert_eq!((summary.value, summary.is_stable), (entry.value, true));
        }
        let again = table.entry_mut(Location::Local, FeatureNumber::CCID).unwrap().clone();
        assert_eq!(again, before[0]);
        assert_eq!(table.working(), before);
    }

    #[test]
    fn an_unnegotiated_feature_takes_no_memory() {
        let mut table = Table::new(Arc::new(FeaturePreferences::new()));
        table.entry_mut(Location::Remote, FeatureNumber::ACK_RATIO).unwrap();
        table.pack();
        assert!(matches!(&table.store, Store::Packed(bytes) if bytes.is_empty()));
        let ratio = table.summary(Location::Remote, FeatureNumber::ACK_RATIO).unwrap();
        assert_eq!(ratio.value, 2);
        assert!(table.summary(Location::Local, FeatureNumber::SEND_LEV_RATE).is_none());
    }
}
