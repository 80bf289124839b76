//! Prints a DCCP packet given in hexadecimal, as it appears inside UDP.
//!
//! ```sh
//! cargo run -p udccp-wire --example decode -- a0281389 05000000 01000000 00000007 0000002a
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use udccp_wire::PacketView;

/// A Request from port 41000 to port 5001 for service 42.
const REQUEST: &str = "a02813890500000001000000000000070000002a";

fn main() -> Result<(), Box<dyn Error>> {
    let given: String = std::env::args().skip(1).collect();
    let digits = if given.is_empty() { REQUEST } else { &given };
    let bytes = digits
        .as_bytes()
        .chunks(2)
        .map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?))
        .collect::<Result<Vec<u8>, Box<dyn Error>>>()?;
    println!("{}", PacketView::new(&bytes, bytes.len())?);
    Ok(())
}
