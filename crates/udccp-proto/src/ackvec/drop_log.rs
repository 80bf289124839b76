//! Records packets that arrived but whose data did not reach the application.

use udccp_wire::Seqno;

use super::DropCode;
use super::dropped::{MAX_DROP, MAX_NORMAL};

/// Consecutive packets dropped for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Drops {
    newest: Seqno,
    count: u64,
    code: DropCode,
    /// Our first packet that reported these drops.
    reported: Option<Seqno>,
}

impl Drops {
    fn oldest(&self) -> Seqno {
        self.newest.sub(self.count).next()
    }

    fn holds(&self, seq: Seqno) -> bool {
        seq.at_most(self.newest) && seq.at_least(self.oldest())
    }

    /// Whether `newer` can be merged into this run.
    fn is_followed_by(&self, newer: &Self) -> bool {
        self.newest.next() == newer.oldest()
            && self.code == newer.code
            && self.reported.is_some() == newer.reported.is_some()
    }
}

/// Drops to report in Data Dropped options until the peer has received the report.
#[derive(Clone, Debug)]
pub struct DropLog {
    /// Oldest first.
    runs: Vec<Drops>,
    max_runs: usize,
    forgotten: u64,
    /// The oldest and newest drop in the blocks written last.
    written: Option<(Seqno, Seqno)>,
}

impl DropLog {
    /// Creates an empty log of at most `max_runs` runs (at least 2). When it is full, the oldest
    /// runs are merged or discarded.
    pub fn new(max_runs: usize) -> Self {
        Self { runs: Vec::new(), max_runs: max_runs.max(2), forgotten: 0, written: None }
    }

    /// Records that the data of packet `seq` did not reach the application. A second drop of the
    /// same packet counts only if it is more serious and the first was not yet reported, because a
    /// report must not change.
    pub fn on_drop(&mut self, seq: Seqno, code: DropCode) {
        if let Some(index) = self.runs.iter().rposition(|r| r.holds(seq)) {
            let known = self.runs[index];
            //= 4340-11.7-11
            if known.reported.is_some() || known.code.seriousness() >= code.seriousness() {
                return;
            }
            self.cut_out(index, seq);
        }
        self.insert(Drops { newest: seq, count: 1, code, reported: None });
    }

    /// Removes one packet from a run.
    fn cut_out(&mut self, index: usize, seq: Seqno) {
        let run = self.runs.remove(index);
        let newer = run.newest.distance_from(seq).unsigned_abs();
        let older = seq.distance_from(run.oldest()).unsigned_abs();
        if newer > 0 {
            self.runs.insert(index, Drops { count: newer, ..run });
        }
        if older > 0 {
            self.runs.insert(index, Drops { newest: seq.prev(), count: older, ..run });
        }
    }

    fn insert(&mut self, run: Drops) {
        let before = self.runs.iter().rposition(|r| r.newest.is_before(run.newest));
        let index = before.map_or(0, |i| i + 1);
        match self.runs[..index].last_mut() {
            Some(last) if last.is_followed_by(&run) => {
                last.newest = run.newest;
                last.count += run.count;
            }
            _ => self.runs.insert(index, run),
        }
        while self.runs.len() > self.max_runs {
            self.make_room();
        }
    }

    /// Removes one run: merges the two oldest if they are adjacent, or discards the oldest.
    fn make_room(&mut self) {
        let oldest = self.runs.remove(0);
        match self.runs.first_mut() {
            Some(next) if oldest.is_followed_by(next) => next.count += oldest.count,
            _ => self.forgotten += oldest.count,
        }
    }

    /// Whether there is nothing to report.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Number of drops discarded before the peer received the report: because the log was full, or
    /// no option reaches back to them.
    pub fn forgotten_packets(&self) -> u64 {
        self.forgotten
    }

    //= 4340-11.7-8
    //= 4340-11.7-12
    /// Writes the blocks of a Data Dropped option for acknowledgement number `ackno` into `out`,
    /// newest first. Returns their number, or 0 if no option is needed. The oldest drops are left
    /// out if `out` is too short.
    pub fn write_blocks(&mut self, ackno: Seqno, out: &mut [u8]) -> usize {
        self.written = None;
        let (mut at, mut next) = (0, ackno);
        for run in self.runs.iter().rev() {
            let Ok(normal) = u64::try_from(next.distance_from(run.newest)) else { continue };
            if at + normal.div_ceil(MAX_NORMAL) as usize >= out.len() {
                break;
            }
            //= 4340-11.7-7
            at += fill(&mut out[at..], 0, MAX_NORMAL, normal);
            let kind = 0x80 | (run.code.number() << 4);
            let blocks = fill(&mut out[at..], kind, MAX_DROP, run.count);
            at += blocks;
            let said = run.count.min(blocks as u64 * MAX_DROP);
            let newest = self.written.map_or(run.newest, |w| w.1);
            self.written = Some((run.newest.sub(said).next(), newest));
            if said < run.count {
                break;
            }
            next = run.oldest().prev();
        }
        at
    }

    /// Discards what an option of so many blocks with acknowledgement number `ackno` cannot report,
    /// and no later one can, because acknowledgement numbers only grow. It would keep the log from
    /// ever being empty.
    pub fn discard_unreachable(&mut self, ackno: Seqno, blocks: usize) {
        let reach = (blocks as u64).saturating_sub(1) * MAX_NORMAL;
        let is_gone = |run: &Drops| {
            u64::try_from(ackno.distance_from(run.newest)).is_ok_and(|behind| behind > reach)
        };
        let gone = self.runs.iter().take_while(|run| is_gone(run)).count();
        self.forgotten += self.runs.drain(..gone).map(|run| run.count).sum::<u64>();
    }

    /// Our packet `our_seq` was sent with the blocks that `write_blocks` wrote last.
    pub fn on_ack_sent(&mut self, our_seq: Seqno) {
        let Some((oldest, newest)) = self.written.take() else { return };
        self.part_at(oldest);
        for run in &mut self.runs {
            if run.reported.is_none() && run.newest.in_window(oldest, newest) {
                run.reported = Some(our_seq);
            }
        }
    }

    /// Splits a run of which only the packets from `oldest` upwards were written. The rest is
    /// reported later. Otherwise the log would repeat a run that is too long for one option
    /// forever.
    fn part_at(&mut self, oldest: Seqno) {
        let is_it = |run: &Drops| run.reported.is_none() && run.holds(oldest);
        let Some(index) = self.runs.iter().position(is_it) else { return };
        let run = self.runs[index];
        let count = oldest.distance_from(run.oldest()).unsigned_abs();
        if count > 0 {
            self.runs[index].count -= count;
            self.runs.insert(index, Drops { newest: oldest.prev(), count, ..run });
        }
    }

    /// The peer acknowledged our packet `our_seq`, which carried Data Dropped. Removes all drops
    /// reported up to then.
    pub fn on_ack_of_ack(&mut self, our_seq: Seqno) {
        self.runs.retain(|r| r.reported.is_none_or(|first| first.is_after(our_seq)));
    }
}

/// Writes blocks for `packets` packets, at most `max` in each, as far as they fit.
fn fill(out: &mut [u8], kind: u8, max: u64, mut packets: u64) -> usize {
    let mut at = 0;
    while packets > 0 && at < out.len() {
        let here = packets.min(max);
        out[at] = kind | (here - 1) as u8;
        packets -= here;
        at += 1;
    }
    at
}
