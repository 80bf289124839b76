//! Voice with deadlines: a frame every 20 ms, which is dropped rather than sent late.
//!
//! ```sh
//! cargo run -p udccp --example voice
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::net::Ipv4Addr;
use std::time::Duration;

use udccp::{Connection, Listener, Options, Outgoing, ServiceCode};

/// Time between two frames.
const FRAME: Duration = Duration::from_millis(20);
/// A frame that has not been sent by then is useless.
const LIFETIME: Duration = Duration::from_millis(60);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (heard, dropped) = call(100).await?;
    println!("{heard} frames heard, {dropped} too late to be sent");
    Ok(())
}

/// A call of `frames` frames over the loopback interface. Returns the number of frames received,
/// and of those that were too late to be sent.
pub async fn call(frames: u32) -> Result<(u64, u64), Box<dyn Error>> {
    let service: ServiceCode = "SC:voic".parse()?;
    // CCID 3 changes its rate smoothly, which suits voice.
    let options = Options::new().ccid(3);
    let at = (Ipv4Addr::LOCALHOST, 0).into();
    let listener = Listener::bind_with(at, [service], &options)?;
    let speaker = Connection::connect_with(listener.local_addr(), service, &options).await?;
    let listening = listener.accept().await?;
    let hears = tokio::spawn(async move {
        let mut heard = 0;
        while let Ok(Some(_frame)) = listening.recv().await {
            heard += 1;
        }
        heard
    });
    let mut clock = tokio::time::interval(FRAME);
    for n in 0..frames {
        clock.tick().await;
        let frame = Outgoing::new(vec![n as u8; 160]).lifetime(LIFETIME);
        speaker.send(frame).await?;
    }
    speaker.acknowledged().await?;
    let dropped = speaker.stats().map_or(0, |stats| stats.counters.drops.send_expired);
    speaker.close().await?;
    Ok((hears.await?, dropped))
}
