//! The halves of CCID 2 with other congestion control.

use udccp_base::Duration;
use udccp_cc::InitialWindow;

use super::line::{Line, ms};
use crate::ccid::ccid2::{Ccid2Config, Ccid2Sender};
use crate::ccid::experimental::{BBR, CUBIC, WindowCcid};
use crate::ccid::{Ccid3Config, CcidRegistry, CcidSender, CcidSetup};

fn line(ccid: &WindowCcid, window: u32) -> Line {
    let initial_window = InitialWindow::Packets(window);
    let config = Ccid2Config { initial_window, ..Ccid2Config::default() };
    let mut line = Line::new(&config);
    line.sender = Ccid2Sender::numbered(ccid.number, &ccid.config(&config), 1400);
    line
}

#[test]
fn experimental_ccids_are_used_only_where_registered() {
    let (ccid2, ccid3) = (Ccid2Config::default(), Ccid3Config::default());
    let ccid4 = crate::ccid::Ccid4Config::default();
    let setup = CcidSetup { packet_size_bytes: 1400, ccid2: &ccid2, ccid3: &ccid3, ccid4: &ccid4 };
    for number in [CUBIC, BBR] {
        assert!((248..=254).contains(&number) && CcidRegistry::default().get(number).is_none());
        let registry = CcidRegistry::with_experiments();
        let factory = registry.get(number).expect("registered");
        let numbers = (factory.sender(&setup).ccid(), factory.receiver(&setup).ccid());
        assert_eq!(numbers, (number, number));
    }
}

/// CCID 2 would have 15, because it grows by half.
#[test]
fn slow_start_of_cubic_grows_by_every_packet() {
    let mut cubic = line(&WindowCcid::cubic(), 10);
    assert_eq!(cubic.round_trip(), 20);
    assert_eq!(Line::with_window(10).round_trip(), 15);
}

/// RFC 9438 section 4.6: 0.7 of the window is kept.
#[test]
fn cubic_keeps_seven_tenths() {
    let mut cubic = line(&WindowCcid::cubic(), 100);
    cubic.fill();
    cubic.wait(100);
    cubic.ack(4, "rrrx");
    assert_eq!(cubic.cwnd(), 70);
}

/// The path delivers ten packets per 100 ms, and its queue has no limit. BBR finds no more
/// bandwidth after three rounds, leaves STARTUP, and paces.
#[test]
fn bbr_paces_at_the_rate_that_acknowledgements_show() {
    let mut bbr = line(&WindowCcid::bbr(), 10);
    bbr.sender.on_handshake_rtt(bbr.now, ms(100));
    let gap = ms(10);
    let (mut acked, mut sent) = (0_u64, 0_u64);
    // A bottleneck of one packet per 10 ms, with a delay of 100 ms.
    let mut departs = std::collections::VecDeque::new();
    let mut free_at = bbr.now;
    let end = bbr.now + Duration::from_secs(6);
    let mut late_sent = 0;
    while bbr.now < end {
        while bbr.verdict() == crate::ccid::SendVerdict::Now {
            bbr.leave(true, false);
            sent += 1;
            free_at = free_at.max(bbr.now) + gap;
            departs.push_back(free_at + ms(100));
            late_sent += u64::from(end - bbr.now < Duration::from_secs(2));
        }
        let next_ack = departs.front().copied();
        let wake = bbr.sender.poll_timeout();
        bbr.now = [next_ack, wake].into_iter().flatten().min().expect("something is to come");
        if next_ack == Some(bbr.now) {
            departs.pop_front();
            acked += 1;
            bbr.ack(acked, "r");
        } else {
            bbr.sender.handle_timeout(bbr.now);
        }
    }
    // 100 packets per second, within a tenth, in the last two seconds. The queue is short.
    assert!((180..=220).contains(&late_sent), "{late_sent} packets in two seconds");
    assert!(sent - acked < 25, "{} packets wait", sent - acked);
}
