//! Every byte is delivered exactly once, regardless of losses, and both ends close. A failing case
//! prints its parameters, seed first; with them it can be reproduced.

mod common;

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use common::{Fate, Pipe, ms};
use proptest::prelude::*;
use udccp_base::{Duration, Seed, Transport};
use udccp_cc::{Algorithm, CubicConfig};
use udccp_tcp::{DelayedAck, TcpConfig, WindowReduction};

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    bytes: u64,
    loss: f64,
    ack_loss: f64,
    late: f64,
    config: TcpConfig,
}

fn configs() -> impl Strategy<Value = TcpConfig> {
    let algorithm = prop_oneof![
        Just(Algorithm::NEW_RENO),
        Just(Algorithm::Cubic(CubicConfig::linux_2_6())),
        Just(Algorithm::Cubic(CubicConfig::rfc9438())),
    ];
    let reduction = prop_oneof![
        Just(WindowReduction::AtOnce),
        Just(WindowReduction::Proportional),
        Just(WindowReduction::RateHalving),
    ];
    let choices = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let numbers = (any::<u32>(), 1_u32..4, 3_000_u32..200_000, 100_u16..1460);
    (algorithm, reduction, choices, numbers).prop_map(|(algorithm, window_reduction, c, n)| {
        TcpConfig {
            window_reduction,
            timestamps: c.0,
            window_scaling: c.1,
            limited_transmit: c.2,
            rescue: c.3,
            initial_sequence: Some(n.0),
            detect_lost_retransmissions: n.0 % 2 == 0,
            delayed_ack: DelayedAck { every: n.1, ..DelayedAck::default() },
            recv_buffer_bytes: n.2,
            mss: n.3,
            syn_retries: 100,
            data_retries: 100,
            max_rto: Duration::from_secs(10),
            ..TcpConfig::new(algorithm)
        }
    })
}

fn cases() -> impl Strategy<Value = Case> {
    let network = (any::<u64>(), 1_u64..400_000, 0.0..0.2_f64, 0.0..0.2_f64, 0.0..0.1_f64);
    (network, configs()).prop_map(|((seed, bytes, loss, ack_loss, late), config)| Case {
        seed,
        bytes,
        loss,
        ack_loss,
        late,
        config,
    })
}

fn rule(seed: u64, name: &str, loss: f64, late: f64) -> impl FnMut() -> Fate + 'static {
    let mut rng = Seed(seed).stream(name);
    move || {
        if rng.chance(loss) {
            Fate::Drop
        } else if rng.chance(late) {
            Fate::Late(Duration::from_micros(rng.below(30_000)))
        } else {
            Fate::Pass
        }
    }
}

/// Bytes delivered, counters, and a hash of all segments with their times.
fn run(case: &Case) -> (u64, String, u64) {
    let mut forward = rule(case.seed, "forward", case.loss, case.late);
    let mut back = rule(case.seed, "back", case.ack_loss, case.late);
    let mut pipe = Pipe::new(case.config.clone(), ms(10))
        .with_bytes(case.bytes)
        .with_rate(50, 60)
        .with_rule(move |_, _| forward())
        .with_back_rule(move |_, _| back());
    let sent = Rc::new(RefCell::new(DefaultHasher::new()));
    let hash = sent.clone();
    pipe.tap = Some(Box::new(move |now, forward, d| {
        (now, forward, &d.header[..], d.payload.len()).hash(&mut *hash.borrow_mut());
    }));
    pipe.start();
    pipe.run_to_end(Duration::from_secs(100_000));
    assert!(pipe.sender.is_closed() && pipe.receiver.is_closed());
    assert_eq!(pipe.sender.close_reason(), None);
    let summary = format!("{:?} {:?} {}", pipe.sender.stats(), pipe.receiver.stats(), pipe.now);
    (pipe.delivered, summary, sent.borrow().finish())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").map_or(150, |n| n.parse().unwrap_or(150)),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_byte_is_delivered_exactly_once(case in cases()) {
        prop_assert_eq!(run(&case).0, case.bytes);
    }

    /// With receive checksum offload, a segment in order is handled in a shorter way.
    #[test]
    fn the_short_way_of_segments_in_order_gives_the_same_segments(case in cases()) {
        let config = TcpConfig { receive_checksum_offload: true, ..case.config.clone() };
        prop_assert_eq!(run(&case), run(&Case { config, ..case }));
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let case = Case {
        seed: 2008,
        bytes: 3_000_000,
        loss: 0.02,
        ack_loss: 0.02,
        late: 0.01,
        config: TcpConfig::new(Algorithm::NEW_RENO),
    };
    assert_eq!(run(&case), run(&case));
    assert_ne!(run(&case).1, run(&Case { seed: 2009, ..case }).1);
}
