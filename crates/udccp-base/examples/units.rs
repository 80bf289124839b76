//! Units as types: how long a packet occupies a link, and a random stream with a name.
//!
//! ```sh
//! cargo run -p udccp-base --example units -- "100 Mbit/s" 1500
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use udccp_base::{DataRate, Seed};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rate: DataRate = args.first().map_or("10 Mbit/s", String::as_str).parse()?;
    let bytes: u64 = args.get(1).map_or("1500", String::as_str).parse()?;
    println!("{bytes} bytes take {} at {rate}", rate.time_for(bytes));

    let mut loss = Seed(1).stream("loss");
    let lost = (0..1000).filter(|_| loss.chance(0.01)).count();
    println!("{lost} of 1000 packets are lost at 1 %: the same ones in every run");
    Ok(())
}
