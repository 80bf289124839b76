//! A sorted set of disjoint ranges of sequence space, fast for TCP's access pattern.
//!
//! New ranges are added at the back, holes are filled at the front, and lookups repeat. So an
//! append, a fill at the front and a lookup near the last one cost O(1) for any number of ranges.
//! Other operations take a binary search and, at worst, a move of the shorter side.

use std::collections::VecDeque;

/// Room of a set for its first ranges: most have one or two.
const FEW: usize = 2;

/// A range of sequence space, `start..end`, never empty inside a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// First offset covered.
    pub(crate) start: u64,
    /// First offset no longer covered.
    pub(crate) end: u64,
}

impl Range {
    /// `start..end`.
    pub(crate) const fn new(start: u64, end: u64) -> Self {
        Self { start, end }
    }

    /// Bytes covered.
    pub(crate) const fn len(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// The part within `low..high` (possibly empty).
    pub(crate) fn clamp(self, low: u64, high: u64) -> Self {
        Self::new(self.start.max(low), self.end.min(high))
    }
}

/// The set. Adjacent ranges are always merged.
#[derive(Clone, Debug, Default)]
pub(crate) struct RangeSet {
    ranges: VecDeque<Range>,
    /// The index of the last lookup: a hint that is checked before use.
    hint: usize,
}

impl RangeSet {
    /// Whether nothing is covered.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The lowest range.
    pub(crate) fn first(&self) -> Option<Range> {
        self.ranges.front().copied()
    }

    /// The highest range.
    pub(crate) fn last(&self) -> Option<Range> {
        self.ranges.back().copied()
    }

    /// The ranges in descending order.
    pub(crate) fn iter_back(&self) -> impl Iterator<Item = Range> {
        self.ranges.iter().rev().copied()
    }

    /// Index of the first range that ends after `offset`.
    fn index_after(&mut self, offset: u64) -> usize {
        let fits = |i: usize| {
            (i == 0 || self.ranges.get(i - 1).is_some_and(|r| r.end <= offset))
                && self.ranges.get(i).is_none_or(|r| r.end > offset)
        };
        let last = self.ranges.len();
        let near = [self.hint, self.hint + 1, last, last.saturating_sub(1), 0];
        let found = near.into_iter().find(|&i| i <= last && fits(i));
        self.hint = found.unwrap_or_else(|| self.ranges.partition_point(|r| r.end <= offset));
        self.hint
    }

    /// The first range that ends after `offset`: the one that covers it, or otherwise the next.
    pub(crate) fn first_after(&mut self, offset: u64) -> Option<Range> {
        let i = self.index_after(offset);
        self.ranges.get(i).copied()
    }

    /// Adds `range`; calls `newly` for each part that was not covered before, in ascending order.
    /// Returns the range of the set that now contains `range`.
    pub(crate) fn insert(&mut self, range: Range, mut newly: impl FnMut(Range)) -> Range {
        // Data usually arrives at the back: extend or append without a search.
        match self.ranges.back_mut() {
            Some(back) if back.start <= range.start && range.start <= back.end => {
                if range.end > back.end {
                    newly(Range::new(back.end, range.end));
                    back.end = range.end;
                }
                *back
            }
            Some(back) if range.start <= back.end => self.insert_within(range, newly),
            _ => {
                newly(range);
                if self.ranges.capacity() == 0 {
                    self.ranges.reserve_exact(FEW);
                }
                self.ranges.push_back(range);
                range
            }
        }
    }

    fn insert_within(&mut self, range: Range, mut newly: impl FnMut(Range)) -> Range {
        // A range that ends exactly at the new one's start is merged with it.
        let first = self.index_after(range.start.saturating_sub(1));
        let mut merged = range;
        let mut uncovered_from = range.start;
        let mut last = first;
        while let Some(&r) = self.ranges.get(last).filter(|r| r.start <= range.end) {
            if uncovered_from < r.start {
                newly(Range::new(uncovered_from, r.start));
            }
            uncovered_from = uncovered_from.max(r.end);
            merged = Range::new(merged.start.min(r.start), merged.end.max(r.end));
            last += 1;
        }
        if uncovered_from < range.end {
            newly(Range::new(uncovered_from, range.end));
        }
        match last - first {
            0 => self.ranges.insert(first, merged),
            1 => self.ranges[first] = merged,
            _ => {
                self.ranges[first] = merged;
                self.ranges.drain(first + 1..last);
            }
        }
        merged
    }

    /// Calls `gap` for each part of `range` that is not covered, in ascending order.
    pub(crate) fn for_each_gap(&mut self, range: Range, mut gap: impl FnMut(Range)) {
        let mut from = range.start;
        while from < range.end {
            let next = self.first_after(from);
            let gap_end = next.map_or(range.end, |r| r.start.min(range.end));
            if from < gap_end {
                gap(Range::new(from, gap_end));
            }
            from = next.map_or(range.end, |r| r.end);
        }
    }

    /// Removes `range`; returns the number of covered bytes removed.
    pub(crate) fn remove(&mut self, range: Range) -> u64 {
        let mut removed = 0;
        let mut i = self.index_after(range.start);
        let touched = |r: &Range| r.start < range.end && range.len() > 0;
        while let Some(r) = self.ranges.get(i).copied().filter(touched) {
            removed += r.clamp(range.start, range.end).len();
            let (left, right) = (Range::new(r.start, range.start), Range::new(range.end, r.end));
            match (left.len() > 0, right.len() > 0) {
                (false, false) => {
                    self.ranges.remove(i);
                }
                (true, false) => {
                    self.ranges[i] = left;
                    i += 1;
                }
                (false, true) => self.ranges[i] = right,
                (true, true) => {
                    self.ranges[i] = left;
                    self.ranges.insert(i + 1, right);
                }
            }
            if right.len() > 0 {
                break;
            }
        }
        removed
    }

    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Removes everything below `edge`; returns the number of covered bytes removed.
    pub(crate) fn remove_below(&mut self, edge: u64) -> u64 {
        let mut removed = 0;
        while let Some(front) = self.ranges.front_mut() {
            if front.end > edge {
                if front.start < edge {
                    removed += edge - front.start;
                    front.start = edge;
                }
                break;
            }
            removed += front.len();
            self.ranges.pop_front();
            self.hint = self.hint.saturating_sub(1);
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use udccp_base::Seed;

    use super::*;

    fn contents(set: &RangeSet) -> BTreeSet<u64> {
        set.ranges.iter().flat_map(|r| r.start..r.end).collect()
    }

    /// Compares with a set of single offsets, with random ranges, removals and lookups.
    #[test]
    fn agrees_with_a_set_of_single_offsets() {
        let mut rng = Seed(11).stream("ranges");
        for _ in 0..200 {
            let (mut set, mut model) = (RangeSet::default(), BTreeSet::new());
            let mut edge = 0;
            for _ in 0..60 {
                let start = edge + rng.below(100);
                let range = Range::new(start, start + 1 + rng.below(12));
                let mut fresh = Vec::new();
                let merged = set.insert(range, |r| fresh.extend(r.start..r.end));
                let expected: Vec<u64> =
                    (range.start..range.end).filter(|s| model.insert(*s)).collect();
                assert_eq!(fresh, expected);
                assert!(merged.start <= range.start && range.end <= merged.end);
                let probe = edge + rng.below(110);
                let next = set.first_after(probe).map(|r| r.start.max(probe));
                assert_eq!(next, model.range(probe..).next().copied());
                let window = Range::new(probe, probe + rng.below(30));
                let mut gaps = Vec::new();
                set.for_each_gap(window, |r| gaps.extend(r.start..r.end));
                assert!(gaps.into_iter().eq((probe..window.end).filter(|s| !model.contains(s))));
                if rng.chance(0.2) {
                    let gone = set.remove(window);
                    let before = model.len();
                    model.retain(|s| !(probe..window.end).contains(s));
                    assert_eq!(gone, (before - model.len()) as u64);
                }
                if rng.chance(0.2) {
                    edge += rng.below(30);
                    let gone = set.remove_below(edge);
                    let kept = model.split_off(&edge);
                    assert_eq!(gone, model.len() as u64);
                    model = kept;
                }
                assert_eq!(contents(&set), model);
                let apart = set.ranges.iter().zip(set.ranges.iter().skip(1));
                assert!(apart.into_iter().all(|(a, b)| a.end < b.start), "merged where touching");
            }
        }
    }
}
