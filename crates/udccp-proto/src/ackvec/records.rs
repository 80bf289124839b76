//! Records which acknowledgement number each of our vectors had.

use std::collections::VecDeque;

use udccp_wire::Seqno;

/// Largest number of records. Neighbours are merged when there would be more.
const MAX_RECORDS: usize = 128;

/// Upper limit of `stride`.
const MAX_STRIDE: u32 = 1 << 20;

/// Packets of ours that carried the whole vector at the time they were sent. They are consecutive,
/// unless records were merged for lack of room: then data may lie between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    first: Seqno,
    last: Seqno,
    /// The newest packet that the first of these vectors covers.
    ackno: Seqno,
}

impl Record {
    fn packets(&self) -> u64 {
        self.packets_to(self.last)
    }

    fn packets_to(&self, last: Seqno) -> u64 {
        last.distance_from(self.first).unsigned_abs() + 1
    }
}

/// Our packets with a vector that the peer has not acknowledged, oldest first.
#[derive(Clone, Debug)]
pub(super) struct Records {
    /// Usually the only record.
    oldest: Option<Record>,
    /// Everything else, allocated when first needed.
    more: Option<Box<More>>,
}

#[derive(Clone, Debug)]
struct More {
    /// Largest number of packets per record. It grows while many acknowledgements are in flight.
    stride: u32,
    /// Records after the oldest.
    list: VecDeque<Record>,
    /// The lowest packet whose state changed after it was reported, and our newest packet from
    /// before the change. Vectors up to that packet of ours only confirm the history before the
    /// changed one.
    late: Option<(Seqno, Seqno)>,
}

impl Default for More {
    fn default() -> Self {
        Self { stride: 1, list: VecDeque::new(), late: None }
    }
}

impl Records {
    pub(super) fn new() -> Self {
        Self { oldest: None, more: None }
    }

    #[inline]
    pub(super) fn on_sent(&mut self, our_seq: Seqno, ackno: Seqno) {
        let stride = self.more.as_ref().map_or(1, |more| u64::from(more.stride));
        let joins = |last: &&mut Record| {
            last.last.next() == our_seq && (last.ackno == ackno || last.packets() < stride)
        };
        if let Some(last) = self.newest_mut().filter(joins) {
            last.last = our_seq;
            return;
        }
        self.add(our_seq, ackno);
    }

    #[inline(never)]
    fn add(&mut self, our_seq: Seqno, ackno: Seqno) {
        self.merge_newest(our_seq);
        if self.len() == MAX_RECORDS {
            self.thin_out();
        }
        let record = Record { first: our_seq, last: our_seq, ackno };
        match self.oldest {
            None => self.oldest = Some(record),
            Some(_) => self.more.get_or_insert_default().list.push_back(record),
        }
    }

    /// Merges the two newest records if data was sent since and they are short. Otherwise
    /// acknowledgements between data would all need records of their own, however large the stride.
    fn merge_newest(&mut self, our_seq: Seqno) {
        let Some(More { stride, list, .. }) = self.more.as_deref_mut() else { return };
        let Some(last) = list.back().map(|r| r.last).filter(|last| last.next() != our_seq) else {
            return;
        };
        let before = list.len().checked_sub(2).and_then(|i| list.get_mut(i));
        let fits = |before: &&mut Record| before.packets_to(last) <= u64::from(*stride);
        if let Some(before) = before.filter(fits) {
            before.last = last;
            list.pop_back();
        }
    }

    fn len(&self) -> usize {
        let others = self.more.as_ref().map_or(0, |more| more.list.len());
        others + usize::from(self.oldest.is_some())
    }

    #[inline]
    fn newest_mut(&mut self) -> Option<&mut Record> {
        let newest = self.more.as_mut().and_then(|more| more.list.back_mut());
        newest.or(self.oldest.as_mut())
    }

    fn pop_oldest(&mut self) {
        self.oldest = self.more.as_mut().and_then(|more| more.list.pop_front());
    }

    /// Packet `seq`, reported as missing or unmarked, has since arrived or been marked.
    pub(super) fn on_late_change(&mut self, seq: Seqno) {
        let Some(newest) = self.newest_mut().map(|r| r.last) else { return };
        let more = self.more.get_or_insert_default();
        let lowest = more.late.map_or(seq, |(lowest, _)| lowest.min(seq));
        more.late = Some((lowest, newest));
    }

    /// The peer received our packet `our_seq`, which carried a vector. Returns the newest packet up
    /// to which the peer has correct reports.
    pub(super) fn on_acked(&mut self, our_seq: Seqno) -> Option<Seqno> {
        while self.oldest.is_some_and(|r| r.last.is_before(our_seq)) {
            self.pop_oldest();
        }
        let are_few = self.len() < MAX_RECORDS / 4;
        if let Some(more) = self.more.as_mut().filter(|_| are_few) {
            more.stride = 1;
        }
        let record = self.oldest.filter(|r| r.first.at_most(our_seq))?;
        if record.last == our_seq {
            self.pop_oldest();
        }
        let Some(more) = &mut self.more else { return Some(record.ackno) };
        match more.late {
            Some((lowest, newest)) if our_seq.at_most(newest) => {
                Some(record.ackno.min(lowest.prev()))
            }
            _ => {
                more.late = None;
                Some(record.ackno)
            }
        }
    }

    /// Halves the list. Two records become one, which confirms only what both reported. This only
    /// delays the removal of history.
    fn thin_out(&mut self) {
        let More { list, stride, .. } = &mut **self.more.get_or_insert_default();
        *stride = (2 * *stride).min(MAX_STRIDE);
        list.extend(self.oldest.take());
        list.rotate_right(1);
        let mut kept = 0;
        let mut index = 0;
        while index < list.len() {
            let mut record = list[index];
            if let Some(next) = list.get(index + 1) {
                record.last = next.last;
            }
            list[kept] = record;
            kept += 1;
            index += 2;
        }
        list.truncate(kept);
        self.pop_oldest();
    }
}
