//! Measures the receiver's round-trip time with the window counter (RFC 4342 section 8.1).

use udccp_base::{Duration, Instant};
use udccp_wire::Seqno;

/// Number of counter values.
pub(crate) const WCTRMAX: u8 = 16;
/// Number of counter steps to remember: the newest, and the four before it.
const STEPS: usize = 5;
/// Largest difference between adjacent packets if no packet between them was lost.
const MAX_STEP: u8 = 5;
/// This many lost packets, and the next packet, can make the counter wrap. A wrap takes four
/// round-trip times, or fewer if acknowledgements moved the counter meanwhile.
const MAY_WRAP: i64 = 3;
const WRAP_ROUNDS: u64 = 2;

/// Counter steps from `from` to `to`, modulo 16.
pub(crate) const fn distance(from: u8, to: u8) -> u8 {
    to.wrapping_sub(from) % WCTRMAX
}

/// The first arrivals of the last few counter values, and the estimate based on them.
#[derive(Clone, Debug, Default)]
pub(crate) struct CounterRtt {
    /// Counter without modulus, and first arrival. Oldest first.
    steps: [Option<(u64, Instant)>; STEPS],
    newest: Option<Newest>,
}

/// The newest data packet.
#[derive(Clone, Copy, Debug)]
struct Newest {
    /// Its counter without modulus. Below, its counter modulo 16.
    total: u64,
    ccval: u8,
    seq: Seqno,
    at: Instant,
}

impl CounterRtt {
    /// A data packet newer than all before arrived. Returns a sample if its counter value gives
    /// one. `rtt` is the estimate from earlier samples.
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
    /// (T(K+D) - T(K)) 4/D, for the first D of 4, 3 and 2 that is available.
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
    /// Whether the counter may have wrapped before packet `seq`: enough packets are missing, and
    /// enough time has passed.
    fn may_wrap(&self, now: Instant, seq: Seqno, rtt: Option<Duration>) -> bool {
        let missing = seq.distance_from(self.seq) - 1;
        missing >= MAY_WRAP && rtt.is_none_or(|rtt| now - self.at >= rtt * WRAP_ROUNDS)
    }
}
