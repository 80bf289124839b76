//! Rates, times and losses of the sources, compared with closed forms.

mod toy;

use toy::{ToyReceiver, ToySender};
use udccp_base::{DataRate, Duration, Rng, Seed};
use udccp_sim::{
    Codec, ConstantRate, Distribution, Dumbbell, DumbbellConfig, FlowResult, Frames, OnOff,
    PairConfig, QueueLimit, RunConfig, Source, Speech, Transfer, Video, Voip,
};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn rng() -> Rng {
    Seed(11).stream("source")
}

/// Runs a source over datagrams, 8 Mbit/s and 10 ms one way. A window of `u64::MAX` sends at once.
fn lossy(source: impl Source + 'static, seconds: u64, window: u64, loss: f64) -> FlowResult {
    let rate = DataRate::from_mbps(8);
    let mut config = DumbbellConfig::symmetric(rate, ms(20), QueueLimit::Unlimited);
    config.forward.loss = udccp_sim::LossConfig::Random(loss);
    let mut net = Dumbbell::new(config);
    let at = net.next_addresses();
    let (sender, receiver) = (ToySender::new(at, window), ToyReceiver::new(at));
    let receiver = if window == u64::MAX { ToyReceiver::udp(at) } else { receiver };
    net.add_pair(PairConfig::new("flow", sender, receiver, Box::new(source)));
    let mut run = RunConfig::new(Duration::from_secs(seconds), Seed(3));
    run.check = seconds < 100;
    *net.run(run).unwrap().flows.remove(0)
}

fn flow(source: impl Source + 'static, seconds: u64) -> FlowResult {
    lossy(source, seconds, u64::MAX, 0.0)
}

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found / expected - 1.0).abs() < tolerance, "{found} for {expected}");
}

#[test]
fn a_voice_call_has_the_rate_of_its_codec() {
    for (codec, packet_bytes) in [(Codec::G711, 172), (Codec::G729, 32)] {
        let flow = flow(Voip::new(codec, ms(20), None, ms(150), rng()), 60);
        // The first is due after 20 ms, and one is due at the very end.
        assert_eq!(flow.source.accepted, 2_999);
        assert_eq!(flow.source.accepted_bytes, 2_999 * packet_bytes);
        let messages = flow.messages.unwrap();
        assert_eq!((messages.begun, messages.completed, messages.given_up), (2_999, 2_999, 0));
        // Serialisation takes time only at the bottleneck: 8 bits per microsecond.
        let delay = ms(10) + Duration::from_micros(packet_bytes + 32);
        assert_eq!((messages.quantile(0.0), messages.quantile(1.0)), (Some(delay), Some(delay)));
    }
}

#[test]
fn a_voice_call_is_silent_for_the_share_of_p59() {
    let source = Voip::new(Codec::G711, ms(20), Some(Speech::P59), ms(150), rng());
    let flow = flow(source, 4_000);
    near(flow.source.accepted as f64, 200_000.0 * Speech::P59.activity(), 0.03);
}

#[test]
fn bursts_have_the_mean_rate_of_their_share_of_time() {
    let rate = DataRate::from_mbps(1);
    let exponential = |mean| Distribution::Exponential { mean };
    let pareto = |mean| Distribution::Pareto { mean, shape: 2.5 };
    let constant = Distribution::Constant;
    for (on, off, share, tolerance) in [
        (constant(0.5), constant(1.5), 0.25, 1e-3),
        (exponential(0.5), exponential(1.5), 0.25, 0.03),
        (pareto(0.5), pareto(0.25), 2.0 / 3.0, 0.03),
    ] {
        let flow = flow(OnOff::new(rate, 1_000, on, off, rng()), 4_000);
        near(flow.source.accepted_bytes as f64 * 8.0 / 4_000.0, 1e6 * share, tolerance);
        assert_eq!(flow.source.refused, 0);
    }
}

#[test]
fn a_source_of_rate_zero_sends_nothing() {
    let (on, off) = (Distribution::Constant(1.0), Distribution::Constant(1.0));
    let flow = flow(OnOff::new(DataRate::default(), 1_000, on, off, rng()), 10);
    assert_eq!(flow.forward.sent.packets, 0);
}

#[test]
fn frames_go_in_equal_packets_and_arrive_whole() {
    let rate = DataRate::from_mbps(2);
    let frames = Frames::pattern(rate, ms(40), 12, 5.0);
    let flow = flow(Video::new(frames, ms(40), ms(400)), 48);
    let messages = flow.messages.as_ref().unwrap();
    // 100 groups of 120 kB in 48 s.
    assert_eq!((messages.begun, messages.completed), (1_200, 1_200));
    near(flow.source.accepted_bytes as f64, 1.2e7, 1e-3);
    // 37 500 B in 26 packets (1468 B at most), 7 500 B in 6; 32 B of headers each.
    assert_eq!(flow.forward.sent.packets, 100 * (26 + 11 * 6));
    let times = &messages.times;
    let took = |bytes: u64| ms(10) + Duration::from_micros(bytes);
    assert_eq!((times[0], times[1_199]), (took(7_500 + 6 * 32), took(37_500 + 26 * 32)));
}

#[test]
fn a_frame_with_a_lost_packet_does_not_arrive() {
    let frames = Frames::of([5_000]);
    let flow = lossy(Video::new(frames, ms(40), ms(400)), 400, u64::MAX, 0.05);
    let messages = flow.messages.unwrap();
    // Four packets a frame: 0.95^4; standard deviation 0.4 points.
    near(messages.completed as f64 / messages.begun as f64, 0.8145, 0.02);
}

#[test]
fn a_call_that_has_no_room_drops_the_old_and_sends_the_new() {
    // One packet per round trip of about 60 ms (an ack waits 40 ms): a third of the packets leave.
    let patience = ms(150);
    let flow = lossy(Voip::new(Codec::G711, ms(20), None, patience, rng()), 60, 1, 0.0);
    let messages = flow.messages.unwrap();
    assert!(messages.given_up > messages.begun / 3, "{}", messages.given_up);
    let open = messages.begun - messages.completed - messages.given_up;
    assert!(open < 30, "{open} neither arrived nor given up: what waits is bounded");
    // The transport's own queue of 16 packets adds to that; it has no deadlines.
    assert!(messages.quantile(1.0).unwrap() < patience + ms(17 * 61 + 20));
}

#[test]
fn a_transfer_ends_and_says_how_long_it_took() {
    let flow = flow(Transfer::new(100_000), 5);
    assert_eq!((flow.source.accepted_bytes, flow.goodput_bytes), (100_000, 100_000));
    let transfers = flow.transfers.unwrap();
    assert_eq!((transfers.begun, transfers.completed, transfers.given_up), (1, 1, 0));
    // 69 packets with 32 B of headers each, at 1 B per microsecond, and 10 ms.
    let took = ms(10) + Duration::from_micros(100_000 + 69 * 32);
    assert_eq!(transfers.times, [took]);
    assert_eq!((transfers.mean(), transfers.quantile(0.5)), (Some(took), Some(took)));
}

#[test]
fn messages_longer_than_a_packet_go_in_pieces() {
    let flow = flow(ConstantRate::new(DataRate::from_bits_per_sec(400_000), 5_000), 10);
    assert_eq!((flow.source.accepted, flow.source.accepted_bytes), (100, 500_000));
    assert_eq!(flow.forward.sent.packets, 400);
    assert_eq!(flow.goodput_bytes, 500_000);
}
