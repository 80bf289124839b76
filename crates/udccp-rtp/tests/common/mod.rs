//! Helpers for the tests of sessions.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use std::future::Future;
use std::time::Duration;

use udccp::{Connection, Listener, Options};
use udccp_rtp::{RtpOptions, SERVICE_AUDIO, SERVICE_RTCP};
use udccp_testkit::{Relay, Rule};

/// Runs a test with a time limit, so that a hang fails.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(300), test).await.expect("the test hangs")
    })
}

/// Two ends of a DCCP connection with a relay between them.
pub async fn dccp(options: &Options, rule: impl Rule) -> (Connection, Connection, Relay) {
    let at = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::bind_with(at, [SERVICE_AUDIO, SERVICE_RTCP], options).unwrap();
    let server = listener.local_addr();
    let relay = Relay::start(server, rule).await;
    let address = format!("127.0.0.1:{}/{}", server.port(), relay.port);
    let address: udccp::Address = address.parse().unwrap();
    let (connected, accepted) =
        tokio::join!(Connection::connect_with(address, SERVICE_AUDIO, options), listener.accept());
    (connected.unwrap(), accepted.unwrap(), relay)
}

/// G.711 with reports about every 200 ms. Media does not expire where the machine stalls.
pub fn quick() -> RtpOptions {
    let options = RtpOptions::new(0, 8000).lifetime(Duration::from_secs(300));
    options.least_interval(Duration::from_millis(200)).bandwidth(8_000_000)
}
