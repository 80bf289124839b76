//! Events that are not among the next: a hierarchical timing wheel (G. Varghese and T. Lauck,
//! "Hashed and Hierarchical Timing Wheels", 1987).

use udccp_base::Instant;

use super::Key;

/// Length of a tick in nanoseconds, as a power of two: 16 us.
const TICK_BITS: u32 = 14;
/// Slots per level, as a power of two: as many as a word has bits.
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const LEVELS: usize = (u64::BITS - TICK_BITS).div_ceil(SLOT_BITS) as usize;

/// No component.
pub(super) const NONE: u32 = u32::MAX;

/// The event of a component, and its neighbours in the list of a slot, if it is in one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(super) key: Key,
    next: u32,
    before: u32,
}

impl Event {
    pub(super) const fn at(key: Key) -> Self {
        Self { key, next: NONE, before: NONE }
    }
}

/// Events by time. Those in the same 64 ticks as the base have one slot per tick, those in the same
/// 64^2 ticks one per 64 ticks, and so on. An event is moved to a lower level at most a few times.
/// Inserting or removing one costs the same for any number of events.
#[derive(Debug)]
pub(super) struct Wheel {
    /// The first component in the list of each slot.
    heads: [u32; LEVELS * SLOTS],
    /// One bit for each slot of a level that has events, and one for each level with such slots.
    slots: [u64; LEVELS],
    levels: u32,
    /// The tick of the slot that was taken last. No event is in an earlier slot.
    base: u64,
}

impl Default for Wheel {
    fn default() -> Self {
        Self { heads: [NONE; LEVELS * SLOTS], slots: [0; LEVELS], levels: 0, base: 0 }
    }
}

impl Wheel {
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.levels == 0
    }

    /// Level and slot of an event. They stay the same until the base reaches the slot. An event
    /// before the base can go in the slot of the base, which is the first.
    #[inline]
    fn slot_of(&self, due: Instant) -> (usize, usize) {
        let tick = (due.as_nanos() >> TICK_BITS).max(self.base);
        let level = ((tick ^ self.base) | 1).ilog2() / SLOT_BITS;
        (level as usize, (tick >> (level * SLOT_BITS)) as usize % SLOTS)
    }

    /// Inserts the event of a component.
    #[inline(never)]
    pub(super) fn push(&mut self, component: u32, events: &mut [Event]) {
        let event = &mut events[component as usize];
        let (level, slot) = self.slot_of(event.key.due);
        let head = core::mem::replace(&mut self.heads[level * SLOTS + slot], component);
        (event.next, event.before) = (head, NONE);
        if head != NONE {
            events[head as usize].before = component;
        }
        self.slots[level] |= 1 << slot;
        self.levels |= 1 << level;
    }

    /// Removes the event of a component.
    pub(super) fn remove(&mut self, component: u32, events: &mut [Event]) {
        let Event { key, next, before } = events[component as usize];
        if next != NONE {
            events[next as usize].before = before;
        }
        if before != NONE {
            events[before as usize].next = next;
            return;
        }
        let (level, slot) = self.slot_of(key.due);
        self.heads[level * SLOTS + slot] = next;
        if next == NONE {
            self.mark_empty(level, slot);
        }
    }

    fn mark_empty(&mut self, level: usize, slot: usize) {
        self.slots[level] &= !(1 << slot);
        if self.slots[level] == 0 {
            self.levels &= !(1 << level);
        }
    }

    /// Takes the list of all events of the first tick that has any; see [`after`].
    pub(super) fn take_first(&mut self, events: &mut [Event]) -> u32 {
        while self.levels != 0 {
            let level = self.levels.trailing_zeros();
            let slot = self.slots[level as usize].trailing_zeros();
            let place = level as usize * SLOTS + slot as usize;
            let mut at = core::mem::replace(&mut self.heads[place], NONE);
            self.mark_empty(level as usize, slot as usize);
            let shift = level * SLOT_BITS;
            let above = self.base >> shift >> SLOT_BITS << SLOT_BITS;
            self.base = (above | u64::from(slot)) << shift;
            if level == 0 {
                return at;
            }
            while at != NONE {
                let next = after(at, events);
                self.push(at, events);
                at = next;
            }
        }
        NONE
    }
}

/// The next component in a list.
#[inline]
pub(super) fn after(component: u32, events: &[Event]) -> u32 {
    events[component as usize].next
}

#[cfg(test)]
impl Wheel {
    /// All events in the wheel.
    pub(super) fn keys(&self, events: &[Event]) -> Vec<Key> {
        let mut keys = Vec::new();
        for (place, &head) in self.heads.iter().enumerate() {
            let (level, slot) = (place / SLOTS, place % SLOTS);
            assert_eq!(head != NONE, self.slots[level] >> slot & 1 == 1);
            let mut at = head;
            while at != NONE {
                let key = events[at as usize].key;
                assert_eq!(self.slot_of(key.due), (level, slot));
                keys.push(key);
                at = after(at, events);
            }
        }
        for (level, &slots) in self.slots.iter().enumerate() {
            assert_eq!(slots != 0, self.levels >> level & 1 == 1);
        }
        keys
    }
}
