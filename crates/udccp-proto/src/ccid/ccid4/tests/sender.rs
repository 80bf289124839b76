//! The sender half: nominal segment, headers, minimum interval (RFC 5622 section 5, RFC 4828).

use udccp_base::{Duration, Ecn, Instant};
use udccp_wire::{LossInterval, Seqno};

use super::{at, ms};
use crate::ccid::ccid3::{Ccid3Config, Ccid3Sender};
use crate::ccid::ccid4::{self, Ccid4Config};
use crate::ccid::tfrc::equation;
use crate::ccid::{AckInfo, CcidSender, SendVerdict, SentInfo};

const RTT: Duration = Duration::from_millis(100);
/// Data of a full packet at an MTU of 1500 bytes over IPv4.
const MPS: u32 = 1440;

/// A sender whose packets are numbered 1, 2, 3...
struct Line {
    sender: Ccid3Sender,
    now: Instant,
    next: u64,
    size: u32,
    left: Vec<Instant>,
}

impl Line {
    fn with(config: &Ccid4Config, mps: u32, size: u32) -> Self {
        let mut sender = ccid4::sender(config, mps);
        sender.on_handshake_rtt(at(1000), RTT);
        Self { sender, now: at(1000), next: 1, size, left: Vec::new() }
    }

    fn new(size: u32) -> Self {
        Self::with(&Ccid4Config::default(), MPS, size)
    }

    fn leave(&mut self) {
        let info = SentInfo {
            seq: Seqno::new(self.next),
            size_bytes: self.size,
            is_data: true,
            has_ack: false,
            app_limited: false,
            ecn: Ecn::Ect0,
        };
        let _ = self.sender.ccval(self.now);
        self.sender.on_sent(self.now, info);
        self.left.push(self.now);
        self.next += 1;
    }

    /// Sends as much as is allowed until `until`. Timers fire at multiples of `tick`.
    fn send_until(&mut self, until: Instant, tick: Duration) {
        loop {
            match self.sender.poll_send(self.now, self.size) {
                SendVerdict::Now => self.leave(),
                SendVerdict::At(when) if when <= until => {
                    let ticks = when.as_nanos().div_ceil(tick.as_nanos());
                    self.now = Instant::from_nanos(ticks * tick.as_nanos());
                }
                _ => break,
            }
        }
        self.now = until;
    }

    /// Feedback for the packet sent a round-trip time ago: lossless, loss and data length and Drop
    /// Count of each interval, newest first.
    fn acked(&mut self, ackno: u64, rate: u32, intervals: &[[u32; 4]]) {
        let mut bytes = vec![194, 6];
        bytes.extend_from_slice(&rate.to_be_bytes());
        bytes.extend_from_slice(&[193, 3 + 9 * intervals.len() as u8, 0]);
        for &[lossless_length, loss_length, data_length, _] in intervals {
            let nonce_echo = false;
            let i = LossInterval { lossless_length, nonce_echo, loss_length, data_length };
            bytes.extend_from_slice(&i.to_bytes());
        }
        bytes.extend_from_slice(&[195, 2 + 3 * intervals.len() as u8]);
        for &[.., drops] in intervals {
            bytes.extend_from_slice(&drops.to_be_bytes()[1..]);
        }
        let ack = AckInfo {
            ackno: Seqno::new(ackno),
            ccid_options: &bytes,
            elapsed: Some(self.now - self.left[ackno as usize - 1] - RTT),
            ..AckInfo::default()
        };
        self.sender.on_ack(self.now, &ack);
    }

    /// Sends feedback without loss until the rate is high.
    fn warm(&mut self) {
        for i in 1..=10 {
            self.send_until(at(1000 + 110 * i), ms(1));
            let ackno = self.left.iter().filter(|left| **left + RTT <= self.now).count();
            self.acked(ackno as u64, 1_000_000, &[[ackno as u32, 0, 0, 0]]);
        }
    }

    fn x(&self) -> f64 {
        self.sender.metrics().x_bytes_per_sec.unwrap()
    }
}

//= 4828-3-1 test
//= 4828-3-2 test
//= 4828-3-3 test
//= 4828-3-6 test
//= 4828-3-7 test
#[test]
fn the_nominal_segment_is_1460_bytes_or_what_the_path_has_room_for() {
    let small = |mps| Ccid4Config::default().small_packets(mps);
    for (mps, nominal) in [(1440, 1460), (9000, 1460), (1420, 1440), (480, 500), (68, 88)] {
        assert_eq!((small(mps).nominal, small(mps).header), (nominal, 36), "{mps}");
    }
    assert_eq!(small(1440).min_interval, ms(10));
}

//= 4828-3-10 test
//= 5622-5-2 test
#[test]
fn packets_leave_ten_milliseconds_apart_whatever_the_rate() {
    let mut line = Line::new(160);
    line.warm();
    assert!(line.x() > 1e6, "{}", line.x());
    line.left.clear();
    line.send_until(line.now + ms(500), Duration::from_nanos(1));
    assert!(line.left.windows(2).all(|w| w[1] - w[0] >= ms(10)), "{:?}", line.left);
    assert!((49..=51).contains(&line.left.len()), "{}", line.left.len());
}

//= 5622-5-2 test
#[test]
fn coarse_timers_cost_little_and_three_packets_take_thirty_milliseconds() {
    let granularity = ms(4);
    let tfrc = Ccid3Config { granularity, ..Ccid3Config::default() };
    let config = Ccid4Config { tfrc, ..Ccid4Config::default() };
    let mut line = Line::with(&config, MPS, 160);
    line.warm();
    line.left.clear();
    line.send_until(line.now + ms(4000), granularity);
    assert!(line.left.windows(4).all(|w| w[3] - w[0] >= ms(30)), "more than three in 30 ms");
    // Three in 32 ms, the first tick after 30 ms, are 375 in total. At 12 ms each, it would be 333.
    assert!((360..=376).contains(&line.left.len()), "{}", line.left.len());
}

#[test]
fn late_timers_cost_nothing_on_a_path_shorter_than_their_lateness() {
    let mut line = Line::new(160);
    line.sender = ccid4::sender(&Ccid4Config::default(), MPS);
    line.sender.on_handshake_rtt(at(1000), Duration::from_micros(50));
    line.send_until(line.now + ms(4000), ms(3));
    assert!((398..=401).contains(&line.left.len()), "{}", line.left.len());
    assert!(line.left.windows(4).all(|w| w[3] - w[0] >= ms(30)), "more than three in 30 ms");
}

#[test]
fn a_flow_without_data_to_wait_is_not_late() {
    let mut line = Line::new(160);
    line.leave();
    line.now += ms(16);
    line.left.clear();
    line.leave();
    let first = line.now;
    line.send_until(first + ms(25), Duration::from_nanos(1));
    assert_eq!(line.left, [first, first + ms(10), first + ms(20)]);
}

#[test]
fn a_pause_allows_no_burst() {
    let mut line = Line::new(160);
    line.warm();
    line.now += ms(70);
    let resumed = line.now;
    line.left.clear();
    line.send_until(resumed + ms(25), Duration::from_nanos(1));
    assert_eq!(line.left.len(), 3, "{:?}", line.left);
}

//= 5622-5-1 test
//= 4828-3-4 test
//= 4828-3-5 test
#[test]
fn headers_are_paid_for_out_of_the_rate_of_full_segments() {
    for size in [14, 160, 1200] {
        let mut line = Line::new(size);
        line.warm();
        line.send_until(line.now + ms(110), ms(1));
        let newest = line.next - 1 - 10;
        // One loss a long time ago, with 50 packets before it: p = 1/50.
        line.acked(newest, 1_000_000, &[[40, 1, 41, 1], [newest as u32 - 41, 0, 50, 0]]);
        let fair = equation::throughput(1460, RTT, 0.02).bytes_per_sec();
        let share = f64::from(size) / f64::from(size + 36);
        assert!((line.x() / (fair * share) - 1.0).abs() < 1e-3, "{size}: {} {fair}", line.x());
    }
}

#[test]
fn the_response_is_that_of_table_2_of_rfc_4828() {
    // kB/s with headers at 100 ms. The table uses headers of 40 bytes and segments of 1500.
    for (size, p, kilobytes) in
        [(14, 0.2, 5.4), (14, 0.3, 2.93), (14, 0.5, 0.63), (536, 0.01, 57.6), (536, 0.1, 26.58)]
    {
        let segment = Ccid4Config { header_bytes: 40, ..Ccid4Config::default() }
            .small_packets(MPS)
            .segment(size);
        let x = equation::throughput(1460, RTT, p).without_headers(segment);
        let packets = 1.0 / x.interval(size).max(ms(10)).as_secs_f64();
        let with_headers = packets * f64::from(size + 40) / 1e3;
        assert!((with_headers / kilobytes - 1.0).abs() < 0.05, "{size}, {p}: {with_headers}");
    }
}

/// A quarter of an hour without feedback.
fn unheard(mut line: Line) -> Line {
    line.warm();
    let end = line.now + Duration::from_secs(900);
    while line.now < end {
        let timer = line.sender.poll_timeout().expect("a timer runs");
        line.send_until(timer, ms(1));
        line.sender.handle_timeout(line.now);
    }
    line
}

#[test]
fn large_packets_leave_once_in_64_seconds_too() {
    let line = unheard(Line::with(&Ccid4Config::default(), 8940, 8900));
    let gaps: Vec<_> = line.left.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let longest = *gaps.iter().max().expect("packets left");
    let t_mbi = Duration::from_secs(64);
    assert!((t_mbi - ms(1)..=t_mbi + ms(1)).contains(&longest), "{longest}");
}

#[test]
fn minutes_without_feedback_leave_a_nominal_segment_in_64_seconds() {
    let line = unheard(Line::new(160));
    let lowest = 1460.0 / 64.0 * 160.0 / 196.0;
    assert!((line.x() - lowest).abs() < 0.1, "{}", line.x());
}

#[test]
fn over_loopback_the_nofeedback_timer_waits_for_two_packets() {
    let mut sender = ccid4::sender(&Ccid4Config::default(), MPS);
    sender.on_handshake_rtt(at(0), Duration::from_micros(20));
    assert_eq!(sender.rto(), ms(20));
}
