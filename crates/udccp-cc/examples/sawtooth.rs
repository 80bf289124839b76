//! Draws the window of an algorithm that loses a packet whenever 60 packets are in flight.
//!
//! ```sh
//! cargo run -p udccp-cc --example sawtooth
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use udccp_base::{Duration, Instant};
use udccp_cc::{AckSample, Algorithm};

const ROUND_TRIP: Duration = Duration::from_millis(100);
const PIPE_PACKETS: u32 = 60;

fn main() {
    let mut window = Algorithm::NEW_RENO.build(10);
    let mut now = Instant::default();
    for round in 0..80 {
        let in_flight = window.cwnd();
        println!("{round:>3} {in_flight:>3} {}", "*".repeat(in_flight as usize));
        now += ROUND_TRIP;
        if in_flight >= PIPE_PACKETS {
            window.on_congestion_event(now, in_flight);
        } else {
            window.on_ack(&AckSample::full_window(now, in_flight));
        }
    }
}
