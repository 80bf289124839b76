//! Settings that are zero, the smallest and the largest: each is refused with its reason, or a
//! session with it carries media and reports, and does not fill the path with anything else.

mod common;

use std::time::Duration;

use common::{dccp, quick, run};
use tokio::time::Instant;
use udccp::Options;
use udccp_rtp::{Error, Event, RtpOptions, RtpSession, SessionStats};
use udccp_testkit::pass;

/// Two sessions with these options.
async fn pair(options: [&RtpOptions; 2]) -> Result<[RtpSession; 2], Error> {
    let (a, b, relay) = dccp(&Options::default(), pass).await;
    // It ends with the test.
    std::mem::forget(relay);
    Ok([RtpSession::new(a, options[0])?, RtpSession::new(b, options[1])?])
}

/// Media arrive in both directions.
async fn carries_media(options: &RtpOptions) -> [RtpSession; 2] {
    let [a, b] = pair([options, &quick()]).await.unwrap();
    for (from, to) in [(&a, &b), (&b, &a)] {
        from.send(u32::MAX, true, [7; 160]).await.unwrap();
        while !matches!(to.recv().await.unwrap(), Some(Event::Packet(_))) {}
    }
    [a, b]
}

const TIMES: [Duration; 3] = [Duration::ZERO, Duration::from_nanos(1), Duration::MAX];
/// How long a session is watched.
const WATCHED: Duration = Duration::from_millis(300);

/// A session with these options carries media and stays open for a while. Returns its counters, and
/// how long that took.
async fn watch(options: &RtpOptions) -> (SessionStats, u64) {
    let begun = Instant::now();
    let [a, b] = carries_media(options).await;
    let reading = async { while b.recv().await.unwrap().is_some() {} };
    let _ = tokio::time::timeout(WATCHED, reading).await;
    (a.stats(), begun.elapsed().as_millis() as u64)
}

#[test]
fn a_lifetime_without_end_is_served() {
    run(async {
        for lifetime in [Duration::MAX, Duration::from_secs(u64::MAX)] {
            carries_media(&quick().lifetime(lifetime)).await;
        }
    });
}

#[test]
fn a_lifetime_of_nothing_loses_at_most_what_has_to_wait() {
    run(async {
        for lifetime in [Duration::ZERO, Duration::from_nanos(1)] {
            let [a, _b] = pair([&quick().lifetime(lifetime), &quick()]).await.unwrap();
            for n in 0..20 {
                a.send(n, false, [7; 160]).await.unwrap();
            }
            a.close().await.unwrap();
        }
    });
}

/// Reports have their share of the path, and leave media theirs.
#[test]
fn reports_at_every_interval_and_bandwidth_are_few() {
    run(async {
        for interval in TIMES {
            for bandwidth in [0, 1, u32::MAX] {
                let options = quick().least_interval(interval).bandwidth(bandwidth);
                let (stats, took_ms) = watch(&options).await;
                let reports = stats.reports_sent;
                // Of intervals of 20 ms, the shortest that chance gives has 8.
                let most = 10 + took_ms / 8;
                assert!(reports <= most, "{reports} reports: {interval:?}, {bandwidth} bit/s");
            }
        }
    });
}

#[test]
fn keep_alives_of_every_interval_are_few() {
    run(async {
        for idle in TIMES {
            let (stats, took_ms) = watch(&quick().keep_alive(idle)).await;
            let sent = stats.keep_alives_sent;
            let most = 10 + took_ms / 100;
            assert!(sent <= most, "{sent} keep-alives: {idle:?}");
        }
    });
}

/// RFC 3550 section 6.5: the length of a name is one byte.
#[test]
fn names_of_every_length_arrive_cut_to_255_bytes() {
    run(async {
        let odd = format!("{}ä", "n".repeat(254));
        let names = ["", "n", &"n".repeat(255), &"n".repeat(256), &"n".repeat(100_000), &odd];
        for name in names {
            let [_a, b] = carries_media(&quick().name(name)).await;
            while b.stats().sources.first().is_none_or(|source| source.name.is_none()) {
                b.recv().await.unwrap().expect("a report");
            }
            let most = name.len().min(if name == odd { 254 } else { 255 });
            assert_eq!(b.stats().sources[0].name.as_deref(), Some(&name[..most]));
        }
    });
}

#[test]
fn extreme_numbers_are_served_or_refused() {
    run(async {
        for (payload_type, clock_rate, ssrc) in [(0, 1, 0), (127, u32::MAX, u32::MAX)] {
            let options = RtpOptions::new(payload_type, clock_rate).ssrc(ssrc);
            let [_a, b] = carries_media(&options).await;
            assert_eq!(b.stats().sources[0].ssrc, ssrc);
        }
        for payload_type in [64, 95, 128, 255] {
            let error = pair([&RtpOptions::new(payload_type, 1), &quick()]).await.unwrap_err();
            assert!(matches!(error, Error::PayloadType(t) if t == payload_type));
        }
        let error = pair([&RtpOptions::new(0, 0), &quick()]).await.unwrap_err();
        assert!(matches!(error, Error::ClockRate));
    });
}
