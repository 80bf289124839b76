//! RFC 5634 section 3.1, step by step.

use udccp_base::{DataRate, Duration, Ecn, Instant};
use udccp_wire::Seqno;

use crate::ccid::ccid2::{Ccid2Config, Ccid2Sender};
use crate::ccid::{CcidSender, QuickStartStep, SendVerdict, SentInfo};

const RTT: Duration = Duration::from_millis(100);

fn sender() -> Ccid2Sender {
    let mut sender = Ccid2Sender::new(&Ccid2Config::default(), 1468);
    sender.on_handshake_rtt(Instant::ZERO, RTT);
    sender
}

fn cwnd(sender: &Ccid2Sender) -> u32 {
    sender.metrics().cwnd.unwrap()
}

/// Sends as fast as allowed for `span`. Returns the number of packets.
fn send_for(sender: &mut Ccid2Sender, from: Instant, span: Duration) -> u32 {
    let (mut now, mut sent) = (from, 0);
    while now < from + span {
        match sender.poll_send(now, 1468) {
            SendVerdict::Now => {
                let seq = Seqno::new(100 + u64::from(sent));
                let (is_data, has_ack, app_limited) = (true, false, false);
                let (size_bytes, ecn) = (1468, Ecn::Ect0);
                let info = SentInfo { seq, size_bytes, is_data, has_ack, app_limited, ecn };
                sender.on_sent(now, info);
                sent += 1;
            }
            SendVerdict::At(at) => now = at,
            SendVerdict::Blocked => break,
        }
    }
    sent
}

const TEN_MBIT: QuickStartStep = QuickStartStep::Approved(DataRate::from_mbps(12));

//= 5634-2.3.1-1 test
//= 5634-3.1.3-2 test
//= 5634-3.1.3-3 test
//= 5634-3.1.4-1 test
#[test]
fn the_window_is_rate_times_rtt_over_packet_and_headers_and_is_paced() {
    let mut sender = sender();
    let before = cwnd(&sender);
    assert!(sender.quick_start(Instant::ZERO, TEN_MBIT));
    // 12 Mbit/s for 100 ms in packets of 1468 + 32 bytes.
    assert_eq!(cwnd(&sender), 100);
    assert!(before < 5);
    let sent = send_for(&mut sender, Instant::ZERO, RTT / 2);
    assert!((50..=51).contains(&sent), "one a millisecond: {sent}");
    assert!(!sender.quick_start(Instant::ZERO, QuickStartStep::Approved(DataRate::from_mbps(1))));
}

//= 5634-3.1.4-2 test
#[test]
fn validation_leaves_what_is_in_flight() {
    let mut sender = sender();
    sender.quick_start(Instant::ZERO, TEN_MBIT);
    let sent = send_for(&mut sender, Instant::ZERO, RTT / 4);
    sender.quick_start(Instant::ZERO + RTT, QuickStartStep::Validated);
    assert_eq!(cwnd(&sender), sent);
    let now = Instant::ZERO + RTT;
    assert_eq!(sender.metrics().ssthresh, None, "slow start goes on");
    sender.quick_start(now, QuickStartStep::Validated);
    assert_eq!(cwnd(&sender), sent, "said once");
}

//= 5634-3.1.3-4 test
//= 5634-3.1.5-1 test
#[test]
fn congestion_or_silence_leaves_half_the_window_before() {
    for step in [QuickStartStep::Congested, QuickStartStep::Silent] {
        let mut sender = sender();
        let before = cwnd(&sender);
        sender.quick_start(Instant::ZERO, TEN_MBIT);
        send_for(&mut sender, Instant::ZERO, RTT / 4);
        sender.quick_start(Instant::ZERO + RTT, step);
        assert_eq!(cwnd(&sender), (before / 2).max(1));
        assert!(sender.metrics().ssthresh.unwrap() <= 2, "no slow start");
    }
}
