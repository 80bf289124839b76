//! Compares the definitions with the numbers of "Revisiting inter-flow fairness" (Bhatti et al.
//! 2008). Where a published number does not follow from its definition, the test states the
//! difference.

use std::collections::BTreeMap;
use std::path::Path;

use udccp_metrics::{SystemNru, jain, usage_of_mean, weight};

type Rows = BTreeMap<(String, u32), Vec<Option<f64>>>;

/// A table of `reference/`: rows by protocol and RTT.
fn table(file: &str) -> Rows {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reference").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let numbers = cells[2..].iter().map(|c| c.parse().ok()).collect();
        ((cells[0].to_owned(), cells[1].parse().unwrap()), numbers)
    };
    text.lines().skip(1).map(row).collect()
}

/// The weight of equation (14): "the mean of the two values (Flows 1 and 2) in Table III".
fn weight_of(own: &Rows, protocol: &str, rtt: u32) -> f64 {
    let flows = &own[&(protocol.to_owned(), rtt)];
    weight((flows[0].unwrap() + flows[1].unwrap()) / 2.0).unwrap()
}

/// Table VI from the means of Tables III and IV, for a TCP beside CCID 2: (ours, published) as
/// (fair, unfair) in dB.
fn table_6(tcp: &str, rtts: &[u32], weights_at: impl Fn(u32) -> u32) -> Vec<[(f64, f64); 2]> {
    let own = table("004_table3_self_throughput.csv");
    let pairs = table("004_table4_pair_throughput_ccid2_first.csv");
    let published = table("004_table6_nru_tuples.csv");
    let cell = |rtt: &u32| {
        let key = (tcp.to_owned(), *rtt);
        let rate = |i: usize| pairs[&key][i].unwrap();
        let usage = [
            usage_of_mean(rate(0), weight_of(&own, "ccid2", weights_at(*rtt))).unwrap(),
            usage_of_mean(rate(1), weight_of(&own, tcp, weights_at(*rtt))).unwrap(),
        ];
        let tuple = SystemNru::of_means(&usage);
        let theirs = &published[&key];
        [(tuple.fair.unwrap(), tuple.unfair.unwrap()), (theirs[0].unwrap(), theirs[1].unwrap())]
    };
    rtts.iter().map(cell).collect()
}

#[test]
fn table_6_of_cubic_follows_from_tables_3_and_4_up_to_100_ms() {
    // Rates are printed as whole Mbit/s: an error of one half at 17 is 0.13 dB.
    for [ours, theirs] in table_6("cubic", &[50, 75, 100], |rtt| rtt) {
        assert!((ours.0 - theirs.0).abs() < 0.15, "{ours:?} {theirs:?}");
        assert!((ours.1 - theirs.1).abs() < 0.15, "{ours:?} {theirs:?}");
    }
}

#[test]
fn table_6_of_new_reno_does_not_follow_from_tables_3_and_4() {
    // Its two sides are further apart than mean rates can be: half a Mbit/s at 38 is 0.06 dB.
    for [ours, theirs] in table_6("newreno", &[25, 50, 75, 100], |rtt| rtt) {
        assert!(theirs.0 - ours.0 > 0.05, "{ours:?} {theirs:?}");
        assert!(ours.1 - theirs.1 > 0.35, "{ours:?} {theirs:?}");
    }
}

#[test]
fn table_6_beyond_125_ms_follows_from_the_weights_of_a_short_path() {
    let far = [150, 175, 200];
    for [ours, theirs] in table_6("cubic", &far, |rtt| rtt) {
        // With the weights of Table III at the same RTT, the difference is more than 1 dB.
        assert!(ours.1 - theirs.1 > 1.0, "{ours:?} {theirs:?}");
    }
    for [ours, theirs] in table_6("cubic", &far, |_| 25) {
        // With those of 25 ms (47 Mbit/s for both) it matches.
        assert!((ours.0 - theirs.0).abs() < 0.1, "{ours:?} {theirs:?}");
        assert!((ours.1 - theirs.1).abs() < 0.25, "{ours:?} {theirs:?}");
    }
}

#[test]
fn stability_and_usage_of_table_6_are_not_of_the_same_series() {
    // CUBIC at 100 ms: S_N = 3.83 at -4.24 and 2.00 dB implies a deviation of at least 3.83 * 2 *
    // 2.00 * 4.24 / (2.00 + 4.24) = 10.4 dB if both flows vary alike. With such variation, the mean
    // of the decibels is several dB below the decibels of the mean; yet Table VI has the latter.
    let (fair, unfair, stability) = (2.00, 4.24, 3.83);
    let sigma = stability * 2.0 * fair * unfair / (fair + unfair);
    // The difference for a series that spends half its time at each of two levels, mean -+ sigma.
    let level = |db: f64| libm::pow(10.0, db / 10.0);
    let gap = 10.0 * libm::log10((level(sigma) + level(-sigma)) / 2.0);
    assert!(sigma > 10.0 && gap > 7.0, "{sigma} {gap}");
}

#[test]
fn table_5_is_the_mean_over_time_and_not_the_index_of_table_4() {
    let pairs = table("004_table4_pair_throughput_ccid2_first.csv");
    let published = table("004_table5_pair_jfi.csv");
    for (key, rates) in &pairs {
        let of_means = jain(&[rates[0].unwrap(), rates[1].unwrap()]).unwrap();
        // Except for rounding, the index of the means is an upper bound of the mean index.
        let mean_over_time = published[key][0].unwrap();
        assert!(of_means > mean_over_time - 0.04, "{key:?}: {of_means} {mean_over_time}");
    }
}

#[test]
fn tuples_of_table_9_do_not_follow_from_the_indices_of_table_8() {
    let index = table_by_rtt("004_table8_jfi_14_flows.csv");
    let tuples = table_by_rtt("004_table9_nru_14_flows.csv");
    for (rtt, jfi) in &index {
        // Among flows with index J, the largest has at least 1/J of the mean: max >= sum r^2 / sum
        // r.
        let largest_db = -10.0 * libm::log10(jfi[0].unwrap());
        // So some flow is far above a fourteenth of the total, but the fair side has at most 0.10
        // dB.
        let fair_db = tuples[rtt][0].unwrap_or(0.0);
        assert!(largest_db - fair_db > 2.9, "{rtt} ms: {largest_db} against {fair_db}");
    }
}

/// Eight times the weights are eight equal shares of fourteen, 57 % of the link. There is a fair
/// side where the index allows one flow about that much.
#[test]
fn tuples_of_table_9_fit_eight_times_the_weights() {
    let index = table_by_rtt("004_table8_jfi_14_flows.csv");
    let tuples = table_by_rtt("004_table9_nru_14_flows.csv");
    for (rtt, jfi) in &index {
        // The largest share m that an index J of 14 flows allows, if the others are equal: m^2 + (1
        // - m)^2 / 13 = 1 / (14 J).
        let squares = 1.0 / (14.0 * jfi[0].unwrap());
        let largest = (1.0 + libm::sqrt(13.0 * (14.0 * squares - 1.0))) / 14.0;
        let eighths_db = 10.0 * libm::log10(largest * 14.0 / 8.0);
        match tuples[rtt][0] {
            // Indices are printed with two digits, which is 0.1 dB here.
            Some(fair_db) => assert!(eighths_db > fair_db - 0.15, "{rtt} ms: {eighths_db}"),
            None => assert!(eighths_db < -0.3, "{rtt} ms: {eighths_db}"),
        }
    }
}

fn table_by_rtt(file: &str) -> BTreeMap<u32, Vec<Option<f64>>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reference").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        (cells[0].parse().unwrap(), cells[1..].iter().map(|c| c.parse().ok()).collect())
    };
    text.lines().skip(1).map(row).collect()
}
