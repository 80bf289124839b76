//! Messages with a token: each has exactly one fate, over a path that loses packets or fails, and
//! when the connection closes with data in flight.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{SERVICE, listener, number_of, numbered, run, without_timeouts};
use udccp::{
    Address, Connection, ConnectionEvent, DropReason, Error, MessageFate, Options, Outgoing,
    blocking,
};
use udccp_testkit::{Fate, Relay, Rule, by_chance, pass};

fn of(ccid: u8) -> Options {
    Options::default().ccid(ccid)
}

/// A client and a server, with a relay between them that follows a rule.
async fn over_relay(options: &Options, rule: impl Rule) -> (Connection, Connection, Relay) {
    let listener = listener(options);
    let server = listener.local_addr();
    let relay = Relay::start(server, rule).await;
    let through = Address { udp: relay.addr(), port: server.port() };
    let connect = Connection::connect_with(through, SERVICE, options);
    let (client, accepted) = tokio::join!(connect, listener.accept());
    (client.unwrap(), accepted.unwrap(), relay)
}

/// A message whose token is its number.
fn message(n: u32) -> Outgoing {
    Outgoing::new(numbered(n, 400)).token(n.into())
}

/// The fates of the next `count` messages with a token, exactly one each.
async fn fates(connection: &Connection, count: usize) -> BTreeMap<u64, MessageFate> {
    let mut fates = BTreeMap::new();
    while fates.len() < count {
        let event = connection.event().await;
        match event.unwrap_or_else(|| panic!("no more than {} of {count} fates", fates.len())) {
            ConnectionEvent::MessageFate { token, fate } => {
                assert_eq!(fates.insert(token, fate), None, "a second fate of {token}");
            }
            _ => continue,
        }
    }
    fates
}

async fn no_more_fates(connection: &Connection) {
    while let Some(event) = connection.event().await {
        let is_fate = matches!(event, ConnectionEvent::MessageFate { .. });
        assert!(!is_fate, "one more fate: {event:?}");
    }
}

#[test]
fn message_fates_agree_at_both_ends_under_loss() {
    for (ccid, count) in [(2, 400), (3, 100)] {
        run(async move {
            let (client, server, _relay) =
                over_relay(&of(ccid), by_chance(u64::from(ccid), 0.02, 0.0, 0.0)).await;
            let one_way = async |from: &Connection, to: &Connection| {
                let send = async {
                    for n in 0..count {
                        from.send(message(n)).await.unwrap();
                    }
                    fates(from, count as usize).await
                };
                let mut arrived = Vec::new();
                let receive = async {
                    while let Ok(Some(data)) = to.recv().await {
                        arrived.push(u64::from(number_of(&data)));
                    }
                };
                let fates = tokio::select! {
                    fates = send => fates,
                    () = receive => panic!("the end before all fates"),
                };
                let mut acknowledged = 0;
                for (token, fate) in fates {
                    let is_known = matches!(fate, MessageFate::Acknowledged);
                    assert!(!is_known || arrived.contains(&token), "{token} is not there");
                    acknowledged += u32::from(is_known);
                }
                assert!(acknowledged > count / 2, "{acknowledged} of {count} were acknowledged");
            };
            tokio::join!(one_way(&client, &server), one_way(&server, &client));
            tokio::join!(client.close(), server.close()).0.unwrap();
            tokio::join!(no_more_fates(&client), no_more_fates(&server));
        });
    }
}

#[test]
fn unanswered_messages_are_reported_as_lost() {
    for ccid in [2, 3] {
        run(async {
            let is_cut = Arc::new(AtomicBool::new(false));
            let cut = Arc::clone(&is_cut);
            let rule = move |from_client, _: &mut Vec<u8>| match cut.load(Ordering::Relaxed) {
                true if from_client => Fate::Drop,
                _ => Fate::Pass,
            };
            let (client, server, _relay) = over_relay(&of(ccid), rule).await;
            for n in 0.. {
                client.send(message(n)).await.unwrap();
                assert!(server.recv().await.unwrap().is_some());
                // A process that does not run for a while takes it for lost.
                if fates(&client, 1).await[&n.into()] == MessageFate::Acknowledged {
                    break;
                }
            }
            is_cut.store(true, Ordering::Relaxed);
            client.send(message(u32::MAX)).await.unwrap();
            assert_eq!(fates(&client, 1).await[&u32::MAX.into()], MessageFate::Lost);
        });
    }
}

#[test]
fn close_settles_the_fates_of_messages_in_flight() {
    const COUNT: u32 = 200;
    run(async {
        let options = of(2).close_linger(Duration::from_millis(50));
        let (client, _server, relay) = over_relay(&options, pass).await;
        relay.cut();
        client.send_batch((0..COUNT).map(message)).await.unwrap();
        let closed = client.close().await;
        let fates = fates(&client, COUNT as usize).await;
        no_more_fates(&client).await;
        let count = |fate| fates.values().filter(|f| **f == fate).count() as u64;
        let unsent = count(MessageFate::Dropped(DropReason::ConnectionEnded));
        assert!(unsent > 0 && unsent < u64::from(COUNT), "{fates:?}");
        let left = count(MessageFate::Lost) + count(MessageFate::Unknown);
        assert_eq!(left + unsent, u64::from(COUNT), "{fates:?}");
        assert!(matches!(closed, Err(Error::Lost(_) | Error::Unsent { .. })), "{closed:?}");
        assert_eq!(client.stats().unwrap().counters.drops.send_ended, unsent);
    });
}

#[test]
fn blocking_sockets_have_the_same_fates() {
    let listener = blocking::Listener::bind(common::localhost(false), SERVICE).unwrap();
    let (options, to) = (without_timeouts(), listener.local_addr());
    let client = blocking::Connection::connect_with(to, SERVICE, &options, None).unwrap();
    let server = listener.accept().unwrap();
    for n in 0..100 {
        client.send(message(n)).unwrap();
        assert_eq!(server.recv().unwrap().map(|data| number_of(&data)), Some(n));
    }
    let mut fates = BTreeMap::new();
    while fates.len() < 100 {
        let event = client.event(Some(Duration::from_secs(30))).unwrap().expect("it is open");
        if let ConnectionEvent::MessageFate { token, fate } = event {
            assert_eq!(fates.insert(token, fate), None, "a second fate of {token}");
        }
    }
    assert!(fates.values().all(|fate| *fate == MessageFate::Acknowledged), "{fates:?}");
}

/// The lifetime counts from the call that sends, whether the message waits in it or in the queue.
#[test]
fn message_expires_while_it_waits_for_queue_space() {
    run(async {
        let options = of(2).send_queue(1 << 20, 2);
        let (client, server, relay) = over_relay(&options, pass).await;
        client.send(message(0)).await.unwrap();
        client.acknowledged().await.unwrap();
        relay.cut();
        while client.try_send("fills window and queue").is_ok() {}
        let late = async {
            client.send(message(7).lifetime(Duration::from_millis(20))).await.unwrap();
        };
        let restore = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            relay.restore();
        };
        tokio::join!(late, restore);
        let fates = fates(&client, 2).await;
        assert_eq!(fates[&7], MessageFate::Dropped(DropReason::Expired));
        drop(server);
    });
}
