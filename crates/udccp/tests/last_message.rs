//! The last message is lost, so no later one reveals the loss.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{SERVICE, listener, localhost, run};
use udccp::ccid::InitialWindow;
use udccp::{Address, Ccid2Options, Endpoint, Options};
use udccp_testkit::{Fate, Relay, pass};

#[test]
fn acknowledged_ends_by_a_timer_where_the_last_message_is_lost() {
    for ccid in [2, 3, 4] {
        the_last_message_is_lost(ccid);
    }
}

fn the_last_message_is_lost(ccid: u8) {
    run(async {
        let options = Options::default().ccid(ccid);
        let listener = listener(&options);
        let path = Relay::start(listener.local_addr(), pass).await;
        let peer = Address { udp: path.addr(), port: listener.port() };
        let endpoint = Endpoint::bind(localhost(false)).unwrap();
        let client = endpoint.connect(peer, SERVICE, &options).await.unwrap();
        client.send("arrives").await.unwrap();
        client.acknowledged().await.unwrap();
        path.cut();
        client.send("is lost").await.unwrap();
        let acknowledged =
            tokio::time::timeout(Duration::from_secs(30), client.acknowledged()).await;
        acknowledged.expect("the timer judges it lost").unwrap();
        let counters = client.stats().unwrap().counters;
        assert!(counters.data_packets_acked < counters.data_packets_sent, "{counters:?}");
    });
}

/// Messages that are sent at once.
const BURST: u32 = 32;

/// Whether a packet is Data or DataAck.
fn is_data(packet: &[u8]) -> bool {
    packet.get(8).is_some_and(|type_x| matches!(type_x >> 1 & 15, 2 | 4))
}

#[test]
fn acknowledged_waits_for_the_last_message_after_one_that_was_late() {
    run(async {
        let ccid2 = Ccid2Options::new().initial_window(InitialWindow::Packets(BURST));
        let options = Options::default().ccid(2).ccid2(ccid2);
        let listener = listener(&options);
        let is_cut = Arc::new(AtomicBool::new(false));
        let (cut, mut count) = (Arc::clone(&is_cut), 0_u32);
        let path = Relay::start(listener.local_addr(), move |up, packet: &mut _| {
            count += u32::from(up && is_data(packet));
            match up {
                // It must be reported before the report of a later packet is acknowledged.
                false => Fate::Late(Duration::from_millis(30)),
                true if !is_data(packet) => Fate::Pass,
                true if cut.load(Ordering::Relaxed) => Fate::Drop,
                true if count % BURST == BURST - 5 => Fate::Late(Duration::from_millis(10)),
                true => Fate::Pass,
            }
        });
        let path = path.await;
        let peer = Address { udp: path.addr(), port: listener.port() };
        let endpoint = Endpoint::bind(localhost(false)).unwrap();
        // One message has to count as lost and arrive nevertheless, which a busy machine may
        // prevent.
        let client = loop {
            let client = endpoint.connect(peer, SERVICE, &options).await.unwrap();
            client.send_batch((0..BURST).map(|_| "message")).await.unwrap();
            client.acknowledged().await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
            let counters = client.stats().unwrap().counters;
            if counters.data_packets_acked + counters.data_packets_lost > BURST.into() {
                break client;
            }
        };
        let before = client.stats().unwrap();
        is_cut.store(true, Ordering::Relaxed);
        client.send("is lost").await.unwrap();
        client.acknowledged().await.unwrap();
        let after = client.stats().unwrap();
        assert_eq!(after.counters.data_packets_acked, before.counters.data_packets_acked);
        assert_eq!(after.timeouts, before.timeouts + 1, "the timer has to judge it lost");
    });
}
