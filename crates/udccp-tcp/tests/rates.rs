//! The samples that a congestion control based on rates, such as BBR, receives.

mod common;

use std::sync::{Arc, Mutex};

use common::{Fate, Pipe, drop_segments, ms};
use udccp_base::{DataRate, Datagram, Duration, Instant};
use udccp_cc::{AckSample, Algorithm, CongestionControl, CustomAlgorithm, Delivery, Needs};
use udccp_tcp::{DelayedAck, TcpConfig};

/// A constant window of twenty that records all calls.
#[derive(Clone, Debug, Default)]
struct Watcher {
    deliveries: Arc<Mutex<Vec<Delivery>>>,
    /// Segments in flight at cuts and at timeouts.
    in_flight: Arc<Mutex<(Vec<u32>, Vec<u32>)>>,
    sets_its_own_window: bool,
    rate: Option<DataRate>,
}

impl CongestionControl for Watcher {
    fn name(&self) -> &'static str {
        "watcher"
    }
    fn cwnd(&self) -> u32 {
        20
    }
    fn ssthresh(&self) -> u32 {
        u32::MAX
    }
    fn needs(&self) -> Needs {
        Needs { rates: true, own_recovery: self.sets_its_own_window, ..Needs::DELIVERIES }
    }
    fn on_delivery(&mut self, delivery: &Delivery) {
        self.deliveries.lock().unwrap().push(*delivery);
    }
    fn pacing_rate(&self) -> Option<DataRate> {
        self.rate
    }
    fn on_ack(&mut self, _: &AckSample) {}
    fn on_congestion_event(&mut self, _: Instant, in_flight: u32) {
        self.in_flight.lock().unwrap().0.push(in_flight);
    }
    fn on_rto(&mut self, _: Instant, in_flight: u32) {
        self.in_flight.lock().unwrap().1.push(in_flight);
    }
    fn set_window(&mut self, _: Instant, _: u32, _: u32) {}
    fn clamp(&mut self, _: u32) {}
}

fn watched_by(watcher: &Watcher) -> Algorithm {
    let watcher = watcher.clone();
    Algorithm::Custom(CustomAlgorithm::new("watcher", move |_| Box::new(watcher.clone())))
}

/// The deliveries reported in a second on a path of 100.3 ms.
fn told(rule: impl FnMut(u64, &Datagram) -> Fate + 'static) -> Vec<Delivery> {
    let watcher = Watcher { sets_its_own_window: true, ..Watcher::default() };
    let algorithm = watched_by(&watcher);
    let config = TcpConfig { delayed_ack: DelayedAck::OFF, ..TcpConfig::new(algorithm) };
    let mut pipe = Pipe::new(config, Duration::from_micros(50_150)).with_rate(100, 1000);
    pipe.forward.rule = Some(Box::new(rule));
    pipe.start();
    pipe.run_for(ms(1_000));
    watcher.deliveries.lock().unwrap().clone()
}

/// Segments behind a hole are valid samples. A segment that fills a hole was sent twice, and is
/// measured by its timestamp, in whole milliseconds.
#[test]
fn sacked_segments_give_rtt_samples_and_retransmissions_use_timestamps() {
    let told = told(drop_segments(&[5]));
    let behind = told.iter().find(|d| d.advanced == 0 && d.delivered == 1).expect("a SACK");
    let behind = behind.rtt.expect("a round-trip time");
    assert!((ms(100)..ms(105)).contains(&behind), "{behind}");
    assert_ne!(behind.as_nanos() % 1_000_000, 0);
    let fills = told.iter().find(|d| d.advanced > d.delivered).expect("the hole is filled");
    let fills = fills.rtt.expect("a round-trip time");
    assert!((ms(100)..ms(105)).contains(&fills) && fills.as_nanos() % 1_000_000 == 0, "{fills}");
}

#[test]
fn prior_in_flight_includes_segments_found_lost() {
    let told = told(drop_segments(&[5, 6, 7]));
    let lost = told.iter().find(|d| d.lost > 0).expect("a loss");
    assert_eq!(lost.prior_in_flight, lost.in_flight + lost.delivered + lost.lost);
    assert_eq!(lost.lost, 3);
}

/// The FlightSize that is halved (RFC 5681 section 3.1, equation 4). At a loss it excludes the data
/// that limited transmit sent for the first two duplicates (section 3.2, step 2); at a timeout it
/// includes everything.
#[test]
fn cuts_and_timeouts_receive_the_segments_in_flight() {
    for limited_transmit in [true, false] {
        let watcher = Watcher::default();
        let algorithm = watched_by(&watcher);
        let config = TcpConfig {
            delayed_ack: DelayedAck::OFF,
            limited_transmit,
            rescue: false,
            ..TcpConfig::rfc(algorithm)
        };
        let mut pipe = Pipe::new(config, ms(50)).with_bytes(100 * 1448);
        pipe = pipe.with_rate(100, 1000).with_rule(drop_segments(&[45, 98, 99, 100]));
        pipe.start();
        pipe.run_for(Duration::from_secs(5));
        assert_eq!(*watcher.in_flight.lock().unwrap(), (vec![20], vec![3]));
    }
}

/// Microseconds between the segments of the first two windows of a sender that paces 1,448 bytes
/// per millisecond and has a round-trip time of 100 ms.
fn gaps(profile: impl Fn(Algorithm) -> TcpConfig) -> Vec<u64> {
    let rate = Some(DataRate::from_bytes_per_sec(1_448_000));
    let algorithm = watched_by(&Watcher { rate, ..Watcher::default() });
    let config = TcpConfig { delayed_ack: DelayedAck::OFF, ..profile(algorithm) };
    let mut pipe = Pipe::new(config, ms(50));
    let log = pipe.record();
    pipe.start();
    pipe.run_for(ms(290));
    let log = log.borrow();
    let times: Vec<_> = log.iter().filter(|s| s.forward && s.data > 0).map(|s| s.at).collect();
    times.windows(2).map(|w| (w[1] - w[0]).as_micros()).collect()
}

/// `tcp_update_skb_after_send` of Linux: the first ten segments are sent at once, then trains of
/// two. Half of a late train's duration is compensated, as for the first train of the second
/// window. A sender without trains paces each segment from the first.
#[test]
fn pacing_separates_kernel_trains_and_other_segments() {
    let kernel = gaps(TcpConfig::new);
    assert_eq!(kernel[..11], [0; 11], "ten and a train");
    assert_eq!(kernel[11..15], [2000, 0, 2000, 0]);
    assert_eq!(kernel[20..26], [0, 1000, 0, 2000, 0, 2000]);
    let others = gaps(TcpConfig::rfc);
    assert_eq!((&others[..19], &others[20..38]), (&[1000; 19][..], &[1000; 18][..]));
}
