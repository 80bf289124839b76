//! The throughput equation (RFC 5348 section 3.1) and its inverse.

use udccp_base::Duration;

use super::ms;
use crate::ccid::tfrc::Rate;
use crate::ccid::tfrc::equation::{inverse_response, loss_event_rate, response, throughput};

const TABLE: &str = include_str!("../../../../tests/data/tfrc_equation.csv");

fn table() -> impl Iterator<Item = (f64, f64)> {
    TABLE.lines().skip(1).map(|line| {
        let (p, f) = line.split_once(',').unwrap();
        (p.parse().unwrap(), f.parse().unwrap())
    })
}

fn close(a: f64, b: f64) -> bool {
    ((a - b) / b).abs() < 1e-12
}

//= 5348-3.1-1 test
//= 5348-3.1-2 test
//= 5348-3.1-5 test
#[test]
fn response_and_inverse_agree_with_forty_digits() {
    assert_eq!(table().count(), 81);
    for (p, f) in table() {
        assert!(close(response(p), f), "f({p}) = {}, not {f}", response(p));
        assert!(close(inverse_response(f), p), "p of {f} = {}, not {p}", inverse_response(f));
    }
}

#[test]
fn the_rate_at_one_percent_loss_is_that_of_the_worked_example() {
    // f(0.01) = 0.0816497 + 0.0073485 * 1.0032, so 1460 B at 100 ms give 164,0xx B/s.
    let x = throughput(1460, ms(100), 0.01).bytes_per_sec();
    assert!((x - 1460.0 / (0.1 * (0.081_649_66 + 0.007_348_47 * 1.0032))).abs() < 1.0, "{x}");
}

#[test]
fn unreachable_rates_have_a_bounded_loss_event_rate() {
    assert_eq!(inverse_response(1e9), 1.0);
    assert_eq!(inverse_response(0.0), 0.0);
    assert_eq!(inverse_response(-1.0), 0.0);
    assert_eq!(inverse_response(f64::NAN), 0.0);
    assert_eq!(throughput(1460, Duration::ZERO, 0.01), Rate::MAX);
    assert_eq!(loss_event_rate(1460, ms(100), Rate::default()), 1.0);
    assert!(loss_event_rate(1460, Duration::from_nanos(1), Rate::MAX) >= 0.0);
}

#[test]
fn rate_and_loss_invert_each_other_for_every_path_and_size() {
    for s in [64, 536, 1460, 65_536] {
        for rtt in [Duration::from_micros(5), ms(1), ms(100), ms(4000)] {
            for p in [1e-8, 1e-4, 0.01, 0.3, 0.9] {
                let x = throughput(s, rtt, p);
                let back = loss_event_rate(s, rtt, x);
                // Rates are whole bytes in 64 s, so low rates have a coarse resolution.
                let grain = 1.0 / (64.0 * x.bytes_per_sec());
                assert!((back / p - 1.0).abs() < 1e-6 + grain * 2.0, "{s} B, {rtt}, {p}: {back}");
            }
        }
    }
}
