//! RTP sessions over the loopback interface.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use common::{dccp, quick, run};
use udccp::{Connection, Listener, Options};
use udccp_rtp::sdp::Profile;
use udccp_rtp::{
    Error, Event, Packet, Report, RtpOptions, RtpSession, SERVICE_AUDIO, SERVICE_RTCP,
    partial_checksums,
};
use udccp_testkit::{Fate, pass};

/// Whether a packet ends in 160 equal bytes, like the media of these tests (path probes are padded
/// with zeros).
fn is_media(packet: &[u8]) -> bool {
    let payload = &packet[packet.len().saturating_sub(160)..];
    payload.len() == 160 && payload[0] != 0 && payload.iter().all(|&b| b == payload[0])
}

async fn next_packet(session: &RtpSession) -> Packet {
    loop {
        if let Event::Packet(packet) = session.recv().await.unwrap().expect("a packet") {
            return packet;
        }
    }
}

async fn next_report(session: &RtpSession) -> Report {
    loop {
        if let Event::Report(report) = session.recv().await.unwrap().expect("a report") {
            return report;
        }
    }
}

async fn report_that(session: &RtpSession, is_it: impl Fn(&Report) -> bool) -> Report {
    loop {
        let report = next_report(session).await;
        if is_it(&report) {
            return report;
        }
    }
}

//= 5762-4.1-1 test
//= 5762-5.2-2 test
#[test]
fn one_packet_is_one_datagram_and_reports_share_the_connection() {
    run(async {
        let (a, b, _relay) = dccp(&Options::default(), pass).await;
        let a = RtpSession::new(a, &quick().name("a@test").ssrc(1)).unwrap();
        let b = RtpSession::new(b, &quick().name("b@test").ssrc(2)).unwrap();
        let (mut first, mut start) = (None, 0);
        for n in 0..50_u32 {
            a.send(n * 160, n == 0, [n as u8; 160]).await.unwrap();
            let packet = next_packet(&b).await;
            let first = *first.get_or_insert(packet.sequence);
            start = if n == 0 { packet.timestamp } else { start };
            assert_eq!((packet.ssrc, packet.payload_type, packet.marker), (1, 0, n == 0));
            assert_eq!(packet.sequence - first, n);
            assert_eq!(packet.timestamp.wrapping_sub(start), n * 160);
            assert_eq!(packet.payload, vec![n as u8; 160]);
        }
        let sent = a.connection().stats().unwrap().counters.data_packets_sent;
        let reports = a.stats().reports_sent;
        assert_eq!(sent, 50 + reports, "media and reports, each in a packet of its own");
        // Wait for a report of each side; earlier ones may already have been sent.
        let (from_b, from_a) = tokio::join!(
            report_that(&a, |report| !report.blocks.is_empty()),
            report_that(&b, |report| report.sender.is_some_and(|s| s.octets >= 50 * 160)),
        );
        assert_eq!((from_a.ssrc, from_b.ssrc), (1, 2));
        assert_eq!(from_a.sender.unwrap().octets, 50 * 160);
        assert!(from_b.sender.is_none(), "a receiver's report");
        assert_eq!(from_b.blocks[0].lost, 0);
        assert_eq!(b.stats().sources[0].name.as_deref(), Some("a@test"));
        let max = a.max_payload_size();
        a.send(0, false, vec![0; max]).await.unwrap();
        assert!(matches!(
            a.send(0, false, vec![0; max + 1]).await,
            Err(Error::PayloadTooLarge { .. })
        ));
        a.close().await.unwrap();
        let mut last = None;
        while let Some(event) = b.recv().await.unwrap() {
            last = Some(event);
        }
        assert!(matches!(last, Some(Event::Bye { ssrc: 1, .. })), "{last:?}");
        assert_eq!(b.stats().reports_received, a.stats().reports_sent, "the goodbye is one");
    });
}

/// RFC 3550 sections 6.2 and 6.3.1: at least half the minimum interval, divided by 1.21828.
#[test]
fn reports_are_no_closer_than_their_interval() {
    run(async {
        let (a, b, _relay) = dccp(&Options::default(), pass).await;
        let start = tokio::time::Instant::now();
        let a = RtpSession::new(a, &quick()).unwrap();
        let _b = RtpSession::new(b, &quick()).unwrap();
        while a.stats().reports_sent < 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let most = start.elapsed().div_duration_f64(Duration::from_millis(80)) + 2.0;
        assert!(a.stats().reports_sent as f64 <= most, "{:?}", a.stats());
    });
}

#[test]
fn without_keep_alives_a_silent_session_sends_nothing() {
    run(async {
        let (a, b, _relay) = dccp(&Options::default(), pass).await;
        let options = RtpOptions::new(0, 8000).keep_alive(Duration::ZERO);
        // However late the test looks, no report is due.
        let options = options.least_interval(Duration::from_secs(3600));
        let a = RtpSession::new(a, &options).unwrap();
        let _b = RtpSession::new(b, &options).unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(a.connection().stats().unwrap().counters.data_packets_sent, 0);
    });
}

#[test]
fn the_receiver_reports_what_was_lost() {
    run(async {
        // Every tenth media packet is lost: 3 of 30.
        let mut count = 0;
        let rule = move |from_client: bool, packet: &mut Vec<u8>| {
            let media = from_client && is_media(packet);
            count += u32::from(media);
            if media && count % 10 == 0 { Fate::Drop } else { Fate::Pass }
        };
        let (a, b, _relay) = dccp(&Options::default(), rule).await;
        let a = RtpSession::new(a, &quick()).unwrap();
        let b = RtpSession::new(b, &quick()).unwrap();
        let sending = async {
            for n in 0..35 {
                a.send(n * 160, false, [7; 160]).await.unwrap();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let report =
                report_that(&a, |report| report.blocks.first().is_some_and(|b| b.lost >= 3)).await;
            report.blocks[0].lost
        };
        let receiving = async { while b.recv().await.unwrap().is_some() {} };
        tokio::select! {
            lost = sending => assert_eq!(lost, 3),
            () = receiving => panic!("closed"),
        }
        assert_eq!(a.stats().sources[0].hears_us.unwrap().lost, 3);
        assert_eq!(b.stats().sources[0].lost, 3);
    });
}

//= 5762-4.1-3 test
#[test]
fn an_idle_session_keeps_bindings_open_from_both_ends() {
    run(async {
        let up = Arc::new(AtomicU32::new(0));
        let down = Arc::new(AtomicU32::new(0));
        let (ups, downs) = (Arc::clone(&up), Arc::clone(&down));
        let rule = move |from_client: bool, _: &mut Vec<u8>| {
            if from_client { &ups } else { &downs }.fetch_add(1, Ordering::Relaxed);
            Fate::Pass
        };
        let (a, b, _relay) = dccp(&Options::default(), rule).await;
        let options = RtpOptions::new(0, 8000).keep_alive(Duration::from_millis(160));
        let a = RtpSession::new(a, &options).unwrap();
        let b = RtpSession::new(b, &options).unwrap();
        let (before_up, before_down) = (up.load(Ordering::Relaxed), down.load(Ordering::Relaxed));
        let sent = || [a.stats(), b.stats()].map(|stats| stats.keep_alives_sent);
        // A busy machine may send them late.
        for tenths in 1..100 {
            match tokio::time::timeout(Duration::from_millis(100), a.recv()).await {
                Err(_) | Ok(Ok(Some(Event::Report(_)))) => {}
                other => panic!("a keep-alive is no event: {other:?}"),
            }
            if sent().iter().all(|n| *n >= 3) && tenths >= 9 {
                break;
            }
        }
        assert!(sent().iter().all(|n| *n >= 3), "{:?}", sent());
        assert!(up.load(Ordering::Relaxed) - before_up >= 3);
        assert!(down.load(Ordering::Relaxed) - before_down >= 3);
        assert_eq!(a.stats().malformed, 0);
    });
}

//= 5762-4.1-4 test
//= 5762-4.2-1 test
#[test]
fn media_delayed_by_congestion_control_expires_and_reports_wait() {
    run(async {
        // No acknowledgement comes back after the handshake, so the window stays closed.
        let mut seen = 0;
        let rule = move |from_client: bool, _: &mut Vec<u8>| {
            seen += u32::from(!from_client);
            if !from_client && seen > 2 {
                Fate::Late(Duration::from_millis(800))
            } else {
                Fate::Pass
            }
        };
        let (a, b, _relay) = dccp(&Options::default(), rule).await;
        let a = RtpSession::new(a, &quick().lifetime(Duration::from_millis(30))).unwrap();
        let b = RtpSession::new(b, &quick()).unwrap();
        let mut numbers = 0..;
        while a.stats().packets_expired <= 10 {
            a.send(numbers.next().unwrap() * 160, false, [1; 160]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // New packets are sent as acknowledgements arrive.
        let fresh = async {
            for n in numbers {
                a.send(n * 160, false, [60; 160]).await.unwrap();
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let received = async {
            while next_packet(&b).await.payload[0] != 60 {}
            let stats = a.stats();
            // Losses show when a later packet arrives.
            while (b.stats().sources[0].lost as u64) < stats.packets_expired {
                next_packet(&b).await;
            }
        };
        tokio::select! {
            () = fresh => {}
            () = received => {}
        }
    });
}

/// Congestion control holds these packets back for more than two round trips of 800 ms.
#[test]
fn media_with_time_to_wait_is_not_dropped() {
    run(async {
        let mut seen = 0;
        let rule = move |from_client: bool, _: &mut Vec<u8>| {
            seen += u32::from(!from_client);
            let is_late = !from_client && seen > 2;
            if is_late { Fate::Late(Duration::from_millis(800)) } else { Fate::Pass }
        };
        let (a, b, _relay) = dccp(&Options::default(), rule).await;
        let a = RtpSession::new(a, &quick()).unwrap();
        let b = RtpSession::new(b, &quick()).unwrap();
        for n in 0..16 {
            a.send(n * 160, false, [n as u8; 160]).await.unwrap();
        }
        for n in 0..16 {
            assert_eq!(next_packet(&b).await.payload[0], n);
        }
        assert_eq!(a.stats().packets_expired, 0);
    });
}

/// Two sessions whose reports use a separate connection.
async fn with_two_connections(options: &RtpOptions) -> (RtpSession, RtpSession) {
    let at = "127.0.0.1:0".parse().unwrap();
    let listener =
        Listener::bind_with(at, [SERVICE_AUDIO, SERVICE_RTCP], &Options::default()).unwrap();
    let address = listener.local_addr();
    let connect = async {
        let rtp = Connection::connect(address, SERVICE_AUDIO).await.unwrap();
        let rtcp = Connection::connect(address, SERVICE_RTCP).await.unwrap();
        RtpSession::with_rtcp(rtp, rtcp, options).unwrap()
    };
    let accept = async {
        let rtp = listener.accept().await.unwrap();
        let rtcp = listener.accept().await.unwrap();
        assert_eq!((rtp.service_code(), rtcp.service_code()), (SERVICE_AUDIO, SERVICE_RTCP));
        RtpSession::with_rtcp(rtp, rtcp, options).unwrap()
    };
    tokio::join!(connect, accept)
}

//= 5762-5.4-3 test
#[test]
fn reports_can_have_a_connection_of_their_own() {
    run(async {
        let (a, b) = with_two_connections(&quick()).await;
        a.send(0, true, b"media").await.unwrap();
        assert_eq!(next_packet(&b).await.payload, &b"media"[..]);
        assert!(next_report(&b).await.sender.is_some());
        let sent = a.connection().stats().unwrap().counters.data_packets_sent;
        assert_eq!(sent, 1, "no report on the connection of RTP");
        a.close().await.unwrap();
        while b.recv().await.unwrap().is_some() {}
    });
}

//= 5762-4.1-3 test
/// Nothing is sent, and the report interval is longer than the test.
/// RFC 5761 section 4: with connections of their own, all payload types can be used.
#[test]
fn media_that_looks_like_rtcp_is_media_where_reports_have_a_connection() {
    run(async {
        let (a, b) = with_two_connections(&RtpOptions::new(72, 8000)).await;
        a.send(0, true, [7; 160]).await.unwrap();
        let packet = next_packet(&b).await;
        assert_eq!((packet.payload_type, packet.marker), (72, true));
    });
}

/// RFC 3550 section 6.3.7: who has sent nothing leaves without a BYE.
#[test]
fn a_session_that_sent_nothing_says_no_goodbye() {
    run(async {
        let (a, b, _relay) = dccp(&Options::default(), pass).await;
        let options = RtpOptions::new(0, 8000).least_interval(Duration::from_secs(3600));
        let a = RtpSession::new(a, &options).unwrap();
        let b = RtpSession::new(b, &options).unwrap();
        let (closed, heard) = tokio::join!(a.close(), b.recv());
        closed.unwrap();
        assert_eq!(heard.unwrap(), None);
    });
}

#[test]
fn media_that_pauses_has_its_connection_kept_open_beside_that_of_reports() {
    run(async {
        let options = RtpOptions::new(0, 8000).keep_alive(Duration::from_millis(160));
        let (a, b) = with_two_connections(&options).await;
        let sent = |c: &Connection| c.stats().unwrap().counters.data_packets_sent;
        for connection in [a.connection(), b.connection()] {
            while sent(connection) < 3 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    });
}

//= 5762-4.1-3 test
#[test]
fn each_connection_of_a_silent_session_is_kept_open() {
    run(async {
        let (rtp, media, _relay) = dccp(&Options::default(), pass).await;
        let (rtcp, control, _control_relay) = dccp(&Options::default(), pass).await;
        let options = RtpOptions::new(0, 8000).keep_alive(Duration::from_millis(160));
        let options = options.least_interval(Duration::MAX);
        let _session = RtpSession::with_rtcp(rtp, rtcp, &options).unwrap();
        for peer in [media, control] {
            assert_eq!(peer.recv().await.unwrap().as_deref(), Some(&[][..]));
        }
    });
}

//= 5762-4.1-6 test
//= 5762-4.1-7 test
/// UDP's checksum covers the whole packet too. The relay recomputes it, so that damage is visible
/// which DCCP's checksum does not cover.
#[test]
fn a_partial_checksum_covers_the_headers_and_lets_damaged_media_pass() {
    run(async {
        let coverage = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&coverage);
        let rule = move |from_client: bool, packet: &mut Vec<u8>| {
            if from_client && is_media(packet) {
                // CCVal and Checksum Coverage (RFC 4340 section 5.1).
                seen.store(u32::from(packet[5] & 0xf), Ordering::Relaxed);
                *packet.last_mut().unwrap() ^= 1;
            }
            Fate::Pass
        };
        let options = partial_checksums(Options::default(), Profile::Avp).unwrap();
        let (a, b, _relay) = dccp(&options, rule).await;
        let a = RtpSession::new(a, &RtpOptions::new(0, 8000)).unwrap();
        let b = RtpSession::new(b, &RtpOptions::new(0, 8000)).unwrap();
        a.send(0, false, [2; 160]).await.unwrap();
        let damaged = next_packet(&b).await;
        assert_eq!((damaged.payload[0], damaged.payload[159]), (2, 3));
        let words_of_data = coverage.load(Ordering::Relaxed) - 1;
        assert_eq!(words_of_data * 4, 12, "the RTP header, and no media");
    });
}

//= 5762-4.1-8 test
//= 5762-4.5-1 test
//= 5762-6-1 test
//= 5762-6-2 test
#[test]
fn partial_checksums_are_off_by_default_and_never_with_authentication() {
    assert_eq!(Options::default().protocol_config().send_cscov, 0);
    for profile in [Profile::Savp, Profile::Savpf] {
        let refused = partial_checksums(Options::default(), profile);
        assert!(matches!(refused, Err(Error::PartialChecksum(p)) if p == profile));
    }
}

#[test]
fn non_rtp_packets_are_counted_and_rtcp_payload_types_refused() {
    run(async {
        let (a, b, _relay) = dccp(&Options::default(), pass).await;
        let b = RtpSession::new(b, &RtpOptions::new(0, 8000)).unwrap();
        a.send("no rtp").await.unwrap();
        a.send(vec![0x80, 200, 0, 1]).await.unwrap();
        a.close().await.unwrap();
        assert_eq!(b.recv().await.unwrap(), None);
        assert_eq!(b.stats().malformed, 2);
        let (a, _b, _relay) = dccp(&Options::default(), pass).await;
        let refused = RtpSession::new(a, &RtpOptions::new(72, 8000));
        assert!(matches!(refused, Err(Error::PayloadType(72))));
    });
}
