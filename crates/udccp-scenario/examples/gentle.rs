//! The algorithm of docs/guides/python.md in Rust: additive increase by a fifth of a packet per
//! window, and a cut by an eighth. It replaces the window algorithm of flow `first` in a scenario,
//! and the rates of both flows are printed.
//!
//! ```sh
//! cargo run --release -p udccp-scenario --example gentle scenarios/two-flows-short.toml
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use udccp_base::Instant;
use udccp_cc::{AckSample, Algorithm, CongestionControl, CustomAlgorithm};
use udccp_scenario::schema::Scenario;
use udccp_scenario::{Record, RunOptions, document, run};

#[derive(Clone, Debug)]
struct Gentle {
    cwnd: f64,
    ssthresh: f64,
    max: f64,
}

impl CongestionControl for Gentle {
    fn name(&self) -> &'static str {
        "gentle"
    }
    fn cwnd(&self) -> u32 {
        self.cwnd as u32
    }
    fn ssthresh(&self) -> u32 {
        self.ssthresh as u32
    }
    fn on_ack(&mut self, ack: &AckSample) {
        if ack.cwnd_limited {
            let growth = if self.in_slow_start() { 1.0 } else { 0.2 / self.cwnd };
            self.cwnd = (self.cwnd + growth * f64::from(ack.newly_acked)).min(self.max);
        }
    }
    fn on_congestion_event(&mut self, _: Instant, _: u32) {
        self.cwnd = (0.875 * self.cwnd).max(1.0);
        self.ssthresh = self.cwnd.max(2.0);
    }
    fn on_rto(&mut self, _: Instant, _: u32) {
        (self.ssthresh, self.cwnd) = ((self.cwnd / 2.0).max(2.0), 1.0);
    }
    fn set_window(&mut self, _: Instant, cwnd: u32, ssthresh: u32) {
        (self.cwnd, self.ssthresh) = (f64::from(cwnd), f64::from(ssthresh));
    }
    fn clamp(&mut self, max: u32) {
        self.max = f64::from(max);
    }
}

/// Runs a scenario file once, with seed 1.
fn gentle_in(file: &str) -> Result<Record, Box<dyn Error>> {
    let scenario = Scenario::read(&document::parse(file, std::fs::read_to_string(file)?)?)?;
    let first = |packets: u32| Gentle { cwnd: f64::from(packets), ssthresh: 1e9, max: 1e9 };
    let gentle = CustomAlgorithm::new("gentle", move |packets| Box::new(first(packets)));
    let algorithms = [("first".to_owned(), Algorithm::Custom(gentle))];
    let options = RunOptions { algorithms: &algorithms, ..RunOptions::default() };
    Ok(run("gentle", &scenario, 1, options)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("which scenario file?")?;
    for flow in gentle_in(&file)?.flows {
        let rate = flow.goodput_mbps.unwrap_or_default();
        println!("{}, {}: {rate:.2} Mbit/s", flow.name, flow.protocol);
    }
    Ok(())
}
