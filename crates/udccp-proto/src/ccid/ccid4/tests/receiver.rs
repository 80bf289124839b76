//! The receiver half: Dropped Packets and short intervals (RFC 5622 sections 8.4 and 8.7).

use udccp_base::Ecn;
use udccp_wire::{LossInterval, OptionRef, Seqno};

use super::{at, ms};
use crate::ccid::ccid3::Ccid3Receiver;
use crate::ccid::ccid4::{self, Ccid4Config};
use crate::ccid::{CcidReceiver, Feedback, OptionSink, ReceivedInfo};

/// Contents of a feedback packet.
struct Written {
    kinds: Vec<u8>,
    intervals: Vec<LossInterval>,
    drops: Vec<u32>,
    inverse: u32,
    len: usize,
    room: usize,
}

impl Written {
    /// An empty packet with `room` bytes for options.
    fn within(room: usize) -> Self {
        let (kinds, intervals, drops) = (Vec::new(), Vec::new(), Vec::new());
        Self { kinds, intervals, drops, inverse: 0, len: 0, room }
    }
}

impl OptionSink for Written {
    fn option(&mut self, option: &OptionRef<'_>) -> bool {
        let len = option.encoded_len();
        if len > self.room_bytes() {
            return false;
        }
        self.kinds.push(option.kind());
        self.len += len;
        match *option {
            OptionRef::LossIntervals { intervals, .. } => {
                self.intervals.extend(LossInterval::iter(intervals));
            }
            OptionRef::DroppedPackets(counts) => self.drops.extend(OptionRef::drop_counts(counts)),
            OptionRef::LossEventRate(n) => self.inverse = n,
            _ => {}
        }
        true
    }

    fn room_bytes(&self) -> usize {
        self.room - self.len
    }
}

struct Line {
    receiver: Ccid3Receiver,
    /// Packets per step of the window counter.
    per_step: u64,
}

impl Line {
    fn new(per_step: u64) -> Self {
        let mut receiver = ccid4::receiver(&Ccid4Config::default(), 1440);
        receiver.set_rtt(ms(100));
        Self { receiver, per_step }
    }

    fn get(&mut self, seq: u64) {
        let packet = ReceivedInfo {
            seq: Seqno::new(seq),
            is_data: true,
            size_bytes: 160,
            ccval: (seq / self.per_step % 16) as u8,
            ecn: Ecn::Ect0,
            ndp_count: Some(0),
        };
        self.receiver.on_packet(at(25 * seq / self.per_step), &packet);
    }

    fn run(&mut self, range: core::ops::Range<u64>, lost: &[u64]) {
        range.filter(|seq| !lost.contains(seq)).for_each(|seq| self.get(seq));
    }

    fn report(&mut self, millis: u64) -> Written {
        let mut written = Written::within(usize::MAX);
        self.receiver.write_options(at(millis), &mut written);
        self.receiver.on_feedback_sent(at(millis), Seqno::new(7));
        written
    }
}

//= 5622-8.7-1 test
//= 5622-8.7-7 test
//= 5622-8.7-3 test
#[test]
fn the_example_of_rfc_5622_counts_1_4_1_and_0() {
    let mut line = Line::new(2);
    line.run(0..45, &[10, 19, 20, 21, 23, 32, 43]);
    let report = line.report(600);
    // Packet 22 arrived. Three packets before it and one after it were lost.
    assert_eq!(report.drops, [1, 4, 1, 0]);
    let losses: Vec<u32> = report.intervals.iter().map(|i| i.loss_length).collect();
    assert_eq!(losses, [1, 5, 1, 0]);
}

//= 5622-8.7-2 test
#[test]
fn every_feedback_packet_has_dropped_packets_and_room_for_it() {
    let mut line = Line::new(2);
    for seq in 0..200 {
        if seq % 20 != 7 {
            line.get(seq);
        }
        if line.receiver.feedback(at(25 * seq / 2)) == Feedback::Due {
            let room = line.receiver.feedback_len_bytes();
            let report = line.report(25 * seq / 2);
            assert_eq!(report.kinds, [43, 194, 193, 192, 195]);
            assert_eq!(report.drops.len(), report.intervals.len());
            assert!(report.len <= room, "{} in {room}", report.len);
        }
    }
}

//= 5622-8.7-2 test
//= 5622-8.7-3 test
#[test]
fn intervals_that_find_no_room_have_no_drop_count_either() {
    let mut line = Line::new(2);
    line.run(0..200, &[20, 40, 60, 80, 100, 120]);
    let reported = |room| {
        let mut written = Written::within(room);
        line.receiver.clone().write_options(at(2600), &mut written);
        let has_counts = written.kinds.contains(&195);
        assert_eq!(written.intervals.len(), written.drops.len(), "in {room}");
        assert_eq!(has_counts, !written.intervals.is_empty(), "in {room}");
        written.drops
    };
    let (rates, losses) = (4 + 6, 6 + 3 + 2);
    assert_eq!(reported(rates + losses + 4 * (9 + 3)), [1; 4]);
    assert_eq!(reported(rates + losses + 5 * (9 + 3) - 1), [1; 4]);
    assert_eq!(reported(rates + losses + 5 * (9 + 3)), [1; 5]);
    assert_eq!(reported(rates + losses + 9 + 3), [1]);
    // Six intervals after losses, and the one before the first loss.
    assert_eq!(reported(usize::MAX).len(), 7);
    for room in 0..rates + losses + 9 + 3 {
        assert!(reported(room).is_empty(), "in {room}");
    }
}

//= 4828-1-1 test
#[test]
fn the_interval_before_the_first_loss_is_of_full_segments() {
    let mut line = Line::new(2);
    for seq in 0..80 {
        line.get(seq);
        if line.receiver.feedback(at(25 * seq / 2)) == Feedback::Due {
            line.report(25 * seq / 2);
        }
    }
    line.run(81..85, &[]);
    let report = line.report(1100);
    // 8 packets of 160 + 36 bytes per round-trip time are 1.07 segments of 1460: f(p) = 0.93 gives
    // 1/p = 7.2. CCID 3 uses f(p) = 1/8 and gets 57 packets.
    let first = report.intervals.last().unwrap().data_length;
    assert!((6..=8).contains(&first), "{first}");
}

//= 4828-3-8 test
//= 4828-3-9 test
#[test]
fn short_intervals_count_their_losses() {
    // 20 packets per round-trip time, two of every ten lost: intervals of 30 packets are short.
    let lost: Vec<u64> = (1..40).flat_map(|i| [10 * i, 10 * i + 1]).collect();
    let mut line = Line::new(5);
    line.run(0..400, &lost);
    let short = line.report(2100);
    assert_eq!(short.inverse, 5, "one packet in five is lost");
    // The last event began with 370, and lost six packets. It would count as 39/6 packets, but two
    // round-trip times are not over.
    line.run(400..409, &lost);
    assert_eq!(line.report(2300).inverse, 5);
    line.run(409..500, &lost);
    assert!(line.report(2600).inverse > 10);
    // At a quarter of the speed, the same losses are far apart.
    let mut slow = Line::new(1);
    slow.run(0..400, &lost);
    assert_eq!(slow.report(10_100).inverse, 10, "one event in ten packets");
}
