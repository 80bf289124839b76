//! A voice call: packets of a codec, with or without silence suppression.

use udccp_base::{AppPort, Duration, Instant, Payload, Rng};

use super::distribution::Distribution;
use super::live::Outbox;
use super::periods::Periods;
use super::{End, Outcome, Source, SourceStats};

/// Header of RTP (RFC 3550 section 5.1), which is part of every packet's payload.
const RTP_HEADER: u32 = 12;

/// A speech codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// ITU-T G.711: 64 kbit/s, 8 bytes a millisecond.
    G711,
    /// ITU-T G.729: 8 kbit/s, frames of 10 bytes for 10 ms.
    G729,
}

impl Codec {
    /// Bytes of speech that take `span`; a codec with frames rounds up to whole ones.
    pub fn bytes_for(self, span: Duration) -> u32 {
        let bytes = match self {
            Self::G711 => span.as_nanos().div_ceil(125_000),
            Self::G729 => span.as_nanos().div_ceil(10_000_000) * 10,
        };
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
}

/// Silence suppression: mean lengths of talk-spurts and pauses, both exponential.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speech {
    /// Mean length of a talk-spurt.
    pub talk: Duration,
    /// Mean length of a pause.
    pub pause: Duration,
}

impl Speech {
    /// Artificial conversational speech of ITU-T P.59 (1993), table 1: talk-spurts of 1.004 s,
    /// pauses of 1.587 s.
    pub const P59: Self =
        Self { talk: Duration::from_millis(1_004), pause: Duration::from_millis(1_587) };

    /// Share of time that is speech.
    pub fn activity(self) -> f64 {
        self.talk.as_secs_f64() / (self.talk + self.pause).as_secs_f64()
    }
}

/// Speech from one speaker in packets.
///
/// A packet is created when the speech in it has been spoken. Nothing is sent in a pause (no
/// comfort noise). A packet that cannot leave in time is dropped, not queued, because a late one is
/// useless.
#[derive(Clone, Debug)]
pub struct Voip {
    packet_bytes: u32,
    every: Duration,
    periods: Periods,
    next: Option<Instant>,
    outbox: Outbox,
}

impl Voip {
    /// Bytes of a message: speech of `every`, and the header of RTP.
    pub fn packet_bytes(codec: Codec, every: Duration) -> u32 {
        RTP_HEADER + codec.bytes_for(every)
    }

    /// A call with packets of `every` (20 ms is usual). With `speech` as `None`, the codec also
    /// sends in silence. A packet that waits for longer than `patience` is dropped. `rng` should
    /// be a stream that nothing else draws from.
    pub fn new(
        codec: Codec,
        every: Duration,
        speech: Option<Speech>,
        patience: Duration,
        rng: Rng,
    ) -> Self {
        let every = every.max(Duration::from_millis(1));
        let exponential = |d: Duration| Distribution::Exponential { mean: d.as_secs_f64() };
        let always = (Distribution::Constant(f64::MAX), Distribution::Constant(0.0));
        let (on, off) = speech.map_or(always, |s| (exponential(s.talk), exponential(s.pause)));
        Self {
            packet_bytes: Self::packet_bytes(codec, every),
            every,
            periods: Periods::new(on, off, rng),
            next: None,
            outbox: Outbox::new(patience),
        }
    }
}

impl Source for Voip {
    fn start(&mut self, now: Instant) {
        self.periods.start(now);
        self.next = Some(self.periods.after(self.every));
    }

    fn feed(&mut self, now: Instant, port: &mut dyn AppPort) -> bool {
        while let Some(due) = self.next.filter(|due| *due <= now) {
            self.outbox.push(due, self.packet_bytes);
            self.next = Some(self.periods.after(self.every));
        }
        self.outbox.offer(now, port)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    fn stats(&self) -> SourceStats {
        self.outbox.stats()
    }

    fn tracks_delivery(&self) -> bool {
        true
    }

    fn delivered(&mut self, now: Instant, end: End, payload: &Payload) {
        if end == End::Receiver {
            self.outbox.delivered(now, payload);
        }
    }

    fn outcome(&self) -> Outcome {
        Outcome::Messages(self.outbox.times().clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_have_the_sizes_of_their_standards() {
        let ms = Duration::from_millis;
        assert_eq!(Codec::G711.bytes_for(ms(20)), 160);
        assert_eq!(Codec::G729.bytes_for(ms(20)), 20);
        assert_eq!(Codec::G729.bytes_for(ms(30)), 30);
        assert!((Speech::P59.activity() - 0.3875).abs() < 1e-4);
    }
}
