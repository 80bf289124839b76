//! The guarantees of [`CongestionControl`] for all algorithms.

use udccp_base::{Duration, Instant};
use udccp_cc::{AckSample, Algorithm, BbrConfig, CubicConfig};

fn algorithms() -> Vec<Algorithm> {
    vec![
        Algorithm::NEW_RENO,
        Algorithm::CCID2,
        Algorithm::Cubic(CubicConfig::rfc9438()),
        Algorithm::Cubic(CubicConfig::linux_6_1()),
        Algorithm::Bic(Default::default()),
        Algorithm::HighSpeed(Default::default()),
        Algorithm::Htcp(Default::default()),
        Algorithm::Hybla(Default::default()),
        Algorithm::Scalable(Default::default()),
        Algorithm::Illinois(Default::default()),
        Algorithm::Lp(Default::default()),
        Algorithm::Vegas(Default::default()),
        Algorithm::Veno(Default::default()),
        Algorithm::Westwood(Default::default()),
        Algorithm::Yeah(Default::default()),
        Algorithm::Compound(Default::default()),
        Algorithm::Bbr(BbrConfig::default()),
    ]
}

#[test]
fn a_window_that_is_set_is_the_window_and_never_more_than_its_limit() {
    let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
    for algorithm in algorithms() {
        let mut cc = algorithm.build(20);
        cc.set_window(at(0), 12, 6);
        assert_eq!(cc.cwnd(), 12, "{algorithm:?}");
        cc.clamp(5);
        assert_eq!(cc.cwnd(), 5, "{algorithm:?}: from now on");
        for ms in 1..200 {
            cc.on_ack(&AckSample::full_window(at(ms), 5));
            assert!(cc.cwnd() <= 5, "{algorithm:?}: {}", cc.cwnd());
        }
        cc.set_window(at(200), 50, 6);
        assert_eq!(cc.cwnd(), 5, "{algorithm:?}: whoever sets it");
    }
}
