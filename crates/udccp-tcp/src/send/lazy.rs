//! The sending side of a connection: there from the start at an end that sends, and made for its
//! first data at an end that usually only receives.

use core::fmt;
use std::sync::Arc;

use udccp_base::{Duration, Instant, MaybeDuration, Probe};
use udccp_cc::RttEstimator;

use super::{AckInfo, FIRST_DATA, SendSide, SendStats, first_sample, rto_config};
use crate::config::TcpConfig;
use crate::recv::{Arrivals, Hold};
use crate::shared::Shared;

/// A [`SendSide`] that may not exist yet. Methods that have the name of one of its methods have the
/// same results.
pub(crate) trait Side: fmt::Debug {
    /// What such an end has for data that arrives.
    type Arrivals: Hold;

    fn new(config: &Arc<Shared>) -> Self;
    /// The sending side, if it exists.
    fn get(&self) -> Option<&SendSide>;
    fn get_mut(&mut self) -> Option<&mut SendSide>;
    /// The sending side, which is made if it does not exist.
    fn made(&mut self, config: &Arc<Shared>) -> &mut SendSide;
    fn establish(
        &mut self,
        now: Instant,
        at: (u32, u64),
        rtt: Option<Duration>,
        config: &Arc<Shared>,
    );
    fn on_ack(&mut self, now: Instant, info: &AckInfo<'_>, config: &Arc<Shared>);
    fn on_idle_ack(&mut self, window_end: u64) -> bool;
    fn segment_payload(&self) -> u32;
    fn rto(&self) -> Duration;
    fn min_rtt(&self) -> Option<Duration>;
    fn probe(&self, config: &Arc<Shared>) -> Probe;
    fn unanswered(&self) -> u32;
    fn back_off(&mut self, config: &Arc<Shared>);

    /// First offset not acknowledged, and next offset to send.
    #[inline(always)]
    fn edges(&self) -> (u64, u64) {
        self.get().map_or((FIRST_DATA, FIRST_DATA), |side| (side.una(), side.nxt()))
    }

    #[inline]
    fn is_quiet(&self, now: Instant) -> bool {
        self.get().is_none_or(|side| side.is_quiet(now))
    }

    #[inline]
    fn may_send(&self) -> bool {
        self.get().is_some_and(SendSide::may_send)
    }

    #[inline]
    fn deadline(&self) -> Instant {
        self.get().map_or(Instant::MAX, SendSide::deadline)
    }

    #[inline]
    fn is_closing(&self) -> bool {
        self.get().is_some_and(SendSide::is_closing)
    }

    fn stats(&self) -> SendStats {
        self.get().map_or(SendStats::default(), SendSide::stats)
    }
}

impl Side for SendSide {
    type Arrivals = Option<Box<Arrivals>>;

    fn new(config: &Arc<Shared>) -> Self {
        Self::new(config)
    }

    #[inline(always)]
    fn get(&self) -> Option<&SendSide> {
        Some(self)
    }

    #[inline(always)]
    fn get_mut(&mut self) -> Option<&mut SendSide> {
        Some(self)
    }

    #[inline(always)]
    fn made(&mut self, _config: &Arc<Shared>) -> &mut SendSide {
        self
    }

    fn establish(
        &mut self,
        now: Instant,
        (payload, window_end): (u32, u64),
        rtt: Option<Duration>,
        _config: &Arc<Shared>,
    ) {
        self.establish(now, payload, window_end, rtt);
    }

    #[inline]
    fn on_ack(&mut self, now: Instant, info: &AckInfo<'_>, _config: &Arc<Shared>) {
        self.on_ack(now, info);
    }

    #[inline(always)]
    fn on_idle_ack(&mut self, window_end: u64) -> bool {
        self.on_idle_ack(window_end)
    }

    #[inline]
    fn segment_payload(&self) -> u32 {
        self.segment_payload()
    }

    #[inline]
    fn rto(&self) -> Duration {
        self.rto()
    }

    fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt()
    }

    fn probe(&self, _config: &Arc<Shared>) -> Probe {
        self.probe()
    }

    fn unanswered(&self) -> u32 {
        self.unanswered()
    }

    fn back_off(&mut self, _config: &Arc<Shared>) {
        self.back_off();
    }
}

/// A sending side that is made when it is needed.
#[derive(Debug)]
pub(crate) enum LazySide {
    Made(Box<SendSide>),
    Later(Later),
}

/// What handshake and peer determine before there is data, as in [`SendSide`].
#[derive(Debug)]
pub(crate) struct Later {
    mss: u32,
    /// How many SYNs had no answer, since the last answer.
    unanswered: u32,
    window_end: u64,
    /// The round-trip time of the handshake, and the timeout.
    rtt: MaybeDuration,
    rto: Duration,
}

impl Later {
    /// The estimator with all that is known of round-trip times.
    fn estimator(&self, config: &TcpConfig) -> RttEstimator {
        let mut rtt = RttEstimator::new(rto_config(config));
        (0..self.unanswered).for_each(|_| rtt.back_off());
        if let Some(sample) = self.rtt.get() {
            first_sample(&mut rtt, sample);
        }
        rtt
    }

    fn make(&self, config: &Arc<Shared>) -> Box<SendSide> {
        let mut side = Box::new(SendSide::new(config));
        side.mss = self.mss;
        side.board.set_mss(self.mss);
        side.window_end = self.window_end;
        side.rtt = self.estimator(config);
        side.unanswered = self.unanswered;
        side
    }
}

impl LazySide {
    #[cold]
    #[inline(never)]
    fn make(&mut self, config: &Arc<Shared>) -> &mut SendSide {
        if let Self::Later(later) = self {
            *self = Self::Made(later.make(config));
        }
        match self {
            Self::Made(side) => side,
            Self::Later(_) => unreachable!("it was made just now"),
        }
    }
}

impl Side for LazySide {
    type Arrivals = Arrivals;

    fn new(config: &Arc<Shared>) -> Self {
        let side = SendSide::new(config);
        if side.observer.is_some() {
            // Such a congestion control looks at every acknowledgement, even of no data.
            return Self::Made(Box::new(side));
        }
        let SendSide { mss, window_end, rtt, unanswered, .. } = side;
        let (rto, rtt) = (rtt.rto(), MaybeDuration::NONE);
        Self::Later(Later { mss, unanswered, window_end, rtt, rto })
    }

    #[inline]
    fn get(&self) -> Option<&SendSide> {
        match self {
            Self::Made(side) => Some(side),
            Self::Later(_) => None,
        }
    }

    #[inline]
    fn get_mut(&mut self) -> Option<&mut SendSide> {
        match self {
            Self::Made(side) => Some(side),
            Self::Later(_) => None,
        }
    }

    #[inline]
    fn made(&mut self, config: &Arc<Shared>) -> &mut SendSide {
        match self {
            Self::Made(side) => side,
            Self::Later(_) => self.make(config),
        }
    }

    fn establish(
        &mut self,
        now: Instant,
        (payload, window_end): (u32, u64),
        rtt: Option<Duration>,
        config: &Arc<Shared>,
    ) {
        if let Self::Later(later) = self
            && let Some(rtt) = rtt
        {
            later.mss = payload;
            later.window_end = later.window_end.max(window_end);
            later.unanswered = 0;
            later.rtt = MaybeDuration::some(rtt);
            later.rto = later.estimator(config).rto();
        } else {
            self.made(config).establish(now, payload, window_end, rtt);
        }
    }

    #[inline(never)]
    fn on_ack(&mut self, now: Instant, info: &AckInfo<'_>, config: &Arc<Shared>) {
        if let Self::Later(later) = self
            && info.blocks.is_empty()
        {
            later.unanswered = 0;
            later.window_end = later.window_end.max(info.window_end);
        } else {
            self.made(config).on_ack(now, info);
        }
    }

    #[inline(always)]
    fn on_idle_ack(&mut self, window_end: u64) -> bool {
        match self {
            Self::Made(side) => side.on_idle_ack(window_end),
            Self::Later(later) => {
                later.unanswered = 0;
                window_end <= later.window_end
            }
        }
    }

    #[inline]
    fn segment_payload(&self) -> u32 {
        match self {
            Self::Made(side) => side.segment_payload(),
            Self::Later(later) => later.mss,
        }
    }

    #[inline]
    fn rto(&self) -> Duration {
        match self {
            Self::Made(side) => side.rto(),
            Self::Later(later) => later.rto,
        }
    }

    fn min_rtt(&self) -> Option<Duration> {
        match self {
            Self::Made(side) => side.min_rtt(),
            Self::Later(later) => later.rtt.get(),
        }
    }

    fn probe(&self, config: &Arc<Shared>) -> Probe {
        match self {
            Self::Made(side) => side.probe(),
            Self::Later(later) => later.make(config).probe(),
        }
    }

    fn unanswered(&self) -> u32 {
        match self {
            Self::Made(side) => side.unanswered(),
            Self::Later(later) => later.unanswered,
        }
    }

    fn back_off(&mut self, config: &Arc<Shared>) {
        match self {
            Self::Made(side) => side.back_off(),
            Self::Later(later) => {
                later.unanswered += 1;
                later.rto = later.estimator(config).rto();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use udccp_cc::{Algorithm, CubicConfig};

    use super::*;
    use crate::shared::SharedTcpConfig;

    /// Handshake, acknowledgements of nothing, and a first write at `side`.
    fn play(side: &mut impl Side, config: &Arc<Shared>, lost_syns: u32) {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        (0..lost_syns).for_each(|_| side.back_off(config));
        assert_eq!(side.unanswered(), lost_syns);
        let rtt = (lost_syns == 0).then_some(Duration::from_millis(30));
        side.establish(at(30), (1_448, 60_000), rtt, config);
        let info = |window_end, blocks| AckInfo {
            ack: FIRST_DATA,
            window_end,
            blocks,
            timestamp_rtt: Some(Duration::from_millis(20)),
            peer_timestamp: Some(7),
            congestion_echo: true,
        };
        for (n, window_end) in [50_000, 70_000, 65_000].into_iter().enumerate() {
            if !side.on_idle_ack(window_end) {
                side.on_ack(at(40 + n as u64), &info(window_end, &[]), config);
            }
        }
        assert_eq!((side.edges(), side.segment_payload()), ((FIRST_DATA, FIRST_DATA), 1_448));
        assert_eq!((side.deadline(), side.unanswered()), (Instant::MAX, 0));
        assert!(!side.is_closing());
        assert!(side.made(config).write(5_000));
    }

    #[test]
    fn a_side_that_is_made_for_its_first_data_is_the_one_that_was_always_there() {
        let observing = Algorithm::Cubic(CubicConfig::linux_6_1());
        for algorithm in [Algorithm::NEW_RENO, observing] {
            let SharedTcpConfig(config) = TcpConfig::new(algorithm).into();
            for lost_syns in [0, 2] {
                let mut always = SendSide::new(&config);
                let mut late = <LazySide as Side>::new(&config);
                play(&mut always, &config, lost_syns);
                play(&mut late, &config, lost_syns);
                assert_eq!(format!("{always:?}"), format!("{:?}", late.get().expect("it is made")));
            }
        }
    }

    #[test]
    fn an_end_without_data_has_no_sending_side() {
        let SharedTcpConfig(config) = TcpConfig::new(Algorithm::NEW_RENO).into();
        let mut side = <LazySide as Side>::new(&config);
        side.establish(Instant::ZERO, (1_448, 60_000), Some(Duration::from_millis(30)), &config);
        assert!(side.on_idle_ack(60_000) && side.get().is_none());
        assert!(side.is_quiet(Instant::ZERO) && !side.may_send());
    }
}
