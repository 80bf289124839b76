//! Reads the receiver's round-trip time off the window counter (RFC 4342 section 8.1).

use udccp_base::{Duration, Instant};
use udccp_wire::Seqno;

/// Values that the counter can have.
pub(crate) const WCTRMAX: u8 = 16;
/// Counter steps remembered: the newest, and the four before it.
const STEPS: usize = 5;
/// Adjacent packets differ by no more, unless packets between them were lost.
const MAX_STEP: u8 = 5;
/// So many lost packets, and the one that follows, can take the counter round once or more. That
/// takes four round-trip times; acknowledgements may have moved the counter meanwhile.
const MAY_WRAP: i64 = 3;
const WRAP_ROUNDS: u64 = 2;

/// How far the counter moved from `from` to `to`, modulo 16.
pub(crate) const fn distance(from: u8, to: u8) -> u8 {
    to.wrapping_sub(from) % WCTRMAX
}

/// First arrivals of the last few counter values, and the estimate made of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct CounterRtt {
    /// Counter without modulus, first arrival; oldest first.
    steps: [Option<(u64, Instant)>; STEPS],
    newest: Option<Newest>,
}

/// The newest data packet.
#[derive(Clone, Copy, Debug)]
struct Newest {
    /// Its counter, without modulus and with.
    total: u64,
    ccval: u8,
    seq: Seqno,
    at: Instant,
}

impl CounterRtt {
    /// A data packet with this number and CCVal arrived, newer than all before. Returns a sample if
    /// the counter stepped onto one. `rtt` is what earlier samples say.
    pub(crate) fn on_data(
        &mut self,
        now: Instant,
        seq: Seqno,
        ccval: u8,
        rtt: Option<Duration>,
    ) -> Option<Duration> {
        let Some(last) = &mut self.newest else {
            self.restart(now, seq, ccval);
            return None;
        };
        let step = distance(last.ccval, ccval);
        if step > MAX_STEP || last.may_wrap(now, seq, rtt) {
            self.restart(now, seq, ccval);
            return None;
        }
        (last.seq, last.at) = (seq, now);
        if step == 0 {
            return None;
        }
        (last.total, last.ccval) = (last.total + u64::from(step), ccval);
        let total = last.total;
        let sample = self.sample(now, total);
        self.steps.rotate_left(1);
        self.steps[STEPS - 1] = Some((total, now));
        sample
    }

    //= 4342-8.1-4
    //= 4342-8.1-5
    /// (T(K+D) - T(K)) 4/D, with D = 4 before 3 before 2.
    fn sample(&self, now: Instant, total: u64) -> Option<Duration> {
        [4_u64, 3, 2].into_iter().find_map(|d| {
            let wanted = total.checked_sub(d)?;
            let (_, at) = self.steps.iter().flatten().find(|(t, _)| *t == wanted)?;
            Some((now - *at) * 4 / d)
        })
    }

    fn restart(&mut self, now: Instant, seq: Seqno, ccval: u8) {
        self.steps = [None; STEPS];
        self.steps[STEPS - 1] = Some((0, now));
        self.newest = Some(Newest { total: 0, ccval, seq, at: now });
    }
}

impl Newest {
    /// Whether the counter may have gone round before the packet with this number: packets are
    /// missing, and they had the time.
    fn may_wrap(&self, now: Instant, seq: Seqno, rtt: Option<Duration>) -> bool {
        let missing = seq.distance_from(self.seq) - 1;
        missing >= MAY_WRAP && rtt.is_none_or(|rtt| now - self.at >= rtt * WRAP_ROUNDS)
    }
}
