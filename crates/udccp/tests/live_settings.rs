//! Settings read and changed while a connection or a listener is open, as the options of `SOL_DCCP`
//! need.

mod common;

use std::time::Duration;

use common::{SERVICE, listener, pair, run};
use tokio::time::timeout;
use udccp::{
    Connection, ConnectionEvent, Error, Options, Outgoing, QueuePolicy, ServiceCode, State,
    TrySendError,
};

#[test]
fn the_send_queue_changes_its_length_and_policy_while_it_is_full() {
    run(async {
        let (client, _server) =
            pair(&Options::default().send_queue(1 << 20, 2), &Options::default()).await;
        assert_eq!(client.send_queue(), Some((1 << 20, 2, QueuePolicy::Refuse)));
        let fill = || while client.try_send(vec![0; 1000]).is_ok() {};
        fill();
        assert_eq!(client.stats().unwrap().send_queue_packets, 2);
        client.set_send_queue(1 << 20, 5);
        fill();
        assert_eq!(client.stats().unwrap().send_queue_packets, 5);
        let urgent = || Outgoing::new(vec![1; 1000]).priority(u32::MAX);
        assert!(matches!(client.try_send(urgent()), Err(TrySendError::Full(_))));
        client.set_queue_policy(QueuePolicy::DropLowest);
        client.try_send(urgent()).expect("another one goes");
        assert_eq!(client.stats().unwrap().counters.drops.send_displaced, 1);
    });
}

#[test]
fn blocked_senders_are_woken_by_queue_changes() {
    run(async {
        type Change = fn(&Connection);
        let longer: Change = |client| client.set_send_queue(1 << 20, 110);
        let another: Change = |client| client.set_queue_policy(QueuePolicy::DropLowest);
        for change in [longer, another] {
            let reads_nothing = Options::default().recv_queue(20_000, 20);
            let few = Options::default().send_queue(1 << 20, 100);
            let (client, _server) = pair(&few, &reads_nothing).await;
            let full = Duration::from_millis(300);
            while timeout(full, client.send(vec![0; 1000])).await.is_ok() {}
            let sender = client.clone();
            let urgent = Outgoing::new(vec![1; 1000]).priority(1);
            let sending = tokio::spawn(async move { sender.send(urgent).await });
            tokio::task::yield_now().await;
            change(&client);
            sending.await.unwrap().unwrap();
        }
    });
}

#[test]
fn stopped_reader_notifies_a_peer_blocked_on_it() {
    run(async {
        let reads_nothing = Options::default().recv_queue(20_000, 20);
        let few = Options::default().send_queue(1 << 20, 10).ccid(2);
        let (client, server) = pair(&few, &reads_nothing).await;
        while client.stats().unwrap().timeouts < 3 {
            let _ = timeout(Duration::from_millis(1), client.send(vec![0; 1000])).await;
        }
        // The next timeout is 1.6 s away.
        server.shutdown_read();
        let is_told = |event| matches!(event, Some(ConnectionEvent::PeerShutdownRead));
        while !is_told(client.event().await) {}
        assert_eq!(client.stats().unwrap().timeouts, 3, "it had to wait for a timeout");
    });
}

#[test]
fn a_server_that_wants_timewait_holds_it() {
    run(async {
        for holds in [false, true] {
            let (client, server) = pair(&Options::default(), &Options::default()).await;
            assert_eq!(server.server_timewait(), Some(false));
            server.set_server_timewait(holds);
            server.close().await.unwrap();
            let _ = client.closed().await;
            let ends = (server.state(), client.state());
            let expected = (State::TimeWait, State::Closed);
            let expected = if holds { expected } else { (expected.1, expected.0) };
            assert_eq!(ends, expected);
        }
    });
}

#[test]
fn a_live_listener_changes_its_services() {
    run(async {
        let listener = listener(&Options::default());
        let other: ServiceCode = "SC:othr".parse().unwrap();
        let at = listener.local_addr();
        assert_eq!(listener.services(), [SERVICE]);
        assert!(matches!(listener.set_services([]), Err(Error::NoService)));
        let taken = listener.endpoint();
        let second = taken.listen(listener.port(), [other], &Options::default()).unwrap();
        assert!(matches!(listener.set_services([other]), Err(Error::ServiceInUse { .. })));
        assert_eq!(listener.services(), [SERVICE]);
        drop(second);
        listener.set_services([other, SERVICE]).unwrap();
        Connection::connect(at, other).await.unwrap();
        listener.set_services([other]).unwrap();
        let refused = Connection::connect(at, SERVICE).await.unwrap_err();
        assert!(matches!(refused, Error::BadServiceCode { .. }), "{refused}");
    });
}

#[test]
fn coverage_is_the_negotiated_value() {
    run(async {
        let (client, server) = pair(&Options::default(), &Options::default()).await;
        assert_eq!((client.coverage(), server.coverage()), (Some((0, 0)), Some((0, 0))));
        let partial = Options::default().send_cscov(3).min_cscov(2);
        let (client, server) = pair(&partial, &partial).await;
        client.send("x").await.unwrap();
        client.acknowledged().await.unwrap();
        // Each end accepts at least the requested coverage. A peer that covers more raises it.
        for end in [client.coverage(), server.coverage()] {
            assert!(matches!(end, Some((3, 2..=3))), "{end:?}");
        }
    });
}

#[test]
fn congestion_control_shows_its_state_at_both_ends() {
    run(async {
        for (ccid, is_rate_based) in [(2, false), (3, true), (4, true)] {
            let options = Options::default().ccid(ccid);
            let (client, server) = pair(&options, &options).await;
            assert_eq!(client.endpoint().available_ccids(), [2, 3, 4]);
            let mut fastest = 0.0_f64;
            for n in 0..20 {
                client.send(common::numbered(n, 500)).await.unwrap();
                assert_eq!(common::number_of(&server.recv().await.unwrap().unwrap()), n);
                let rate = server.receiver_state().map_or(0.0, |r| r.x_recv_bytes_per_sec);
                fastest = fastest.max(rate);
            }
            client.acknowledged().await.unwrap();
            let state = client.sender_state().unwrap();
            assert!(state.rtt.is_some() && state.rto.is_some(), "{state:?}");
            let rates = [state.x_bytes_per_sec, state.x_recv_bytes_per_sec, state.loss_event_rate];
            assert_eq!(rates.map(|x| x.is_some()), [is_rate_based; 3], "{state:?}");
            assert_eq!(state.packet_interval.is_some(), is_rate_based);
            assert_eq!(state.mean_packet_bytes, is_rate_based.then_some(500));
            assert_eq!(state.cwnd_packets.is_some(), !is_rate_based);
            let receiver = server.receiver_state();
            assert_eq!(receiver.is_some(), is_rate_based);
            assert_eq!(fastest > 0.0, is_rate_based);
            assert!(receiver.is_none_or(|r| r.rtt.is_some() && r.loss_event_rate == 0.0));
        }
    });
}
