//! Tail loss probes (RFC 8985 section 7).

mod common;

use common::{Fate, Pipe, ms, plain};
use udccp_base::{AppPort, Datagram, Duration, Message, Payload};
use udccp_cc::InitialWindow;
use udccp_tcp::{DelayedAck, LossDetection, TcpConfig};

const PAYLOAD: u64 = 1448;

/// An open flow with detection of losses by time and a round-trip time of 100 ms. Its window is ten
/// segments, and `rule` decides the fate of data segments, counted from 1.
fn flow(mut rule: impl FnMut(u64) -> Fate + 'static) -> Pipe {
    let config = TcpConfig {
        initial_window: InitialWindow::Packets(10),
        max_cwnd: Some(10),
        delayed_ack: DelayedAck::OFF,
        loss_detection: LossDetection::RackTlp,
        min_rto: ms(200),
        ..plain()
    };
    let mut n = 0;
    let mut pipe = Pipe::new(config, ms(50)).with_rule(move |_, d: &Datagram| {
        n += u64::from(!d.payload.is_empty());
        if d.payload.is_empty() { Fate::Pass } else { rule(n) }
    });
    pipe.to_send = 0;
    pipe.start();
    pipe.run_for(ms(300));
    pipe
}

fn write(pipe: &mut Pipe, segments: u64) {
    for _ in 0..segments {
        pipe.sender.send(pipe.now, Message::new(Payload::Zeros(PAYLOAD as u32)));
    }
    pipe.drain();
}

/// Retransmissions, cuts and timeouts of a flow whose tail was probed by repeating its second
/// segment, and that then sends two more segments.
fn after_more_data(mut pipe: Pipe) -> (u64, u64, u64) {
    write(&mut pipe, 2);
    while pipe.sender.stats().send.retransmits == 0 {
        pipe.run_for(ms(1));
    }
    write(&mut pipe, 2);
    pipe.run_for(Duration::from_secs(1));
    assert_eq!(pipe.delivered, 4 * PAYLOAD);
    let stats = pipe.sender.stats().send;
    (stats.retransmits, stats.congestion_events, stats.timeouts)
}

/// Section 7.4.2: the congestion control would not notice this loss otherwise.
#[test]
fn window_is_cut_for_losses_repaired_by_a_probe() {
    let pipe = flow(|n| if n == 2 { Fate::Drop } else { Fate::Pass });
    assert_eq!(after_more_data(pipe), (1, 1, 0));
}

/// Section 7.4.2: the peer reports a duplicate, so the original has arrived.
#[test]
fn window_is_not_cut_for_a_spurious_probe() {
    let pipe = flow(|n| if n == 2 { Fate::Late(ms(290)) } else { Fate::Pass });
    assert_eq!(after_more_data(pipe), (1, 0, 0));
}

/// Section 7.3: new data is a better probe than old data, and is sent regardless of the window. A
/// tail is probed once; the next tail gets its own probe.
#[test]
fn probes_send_new_data_if_available() {
    let mut pipe = flow(|n| match n {
        1..=10 => Fate::Late(ms(160)),
        14 => Fate::Drop,
        _ => Fate::Pass,
    });
    // The acknowledgement of the probe is lost; that of the next segment answers both.
    let mut back = 0;
    pipe = pipe.with_back_rule(move |_, _| {
        back += 1;
        if back == 11 { Fate::Drop } else { Fate::Pass }
    });
    write(&mut pipe, 12);
    pipe.run_for(ms(200));
    assert_eq!(pipe.sender.stats().send.segments_sent, 10);
    pipe.run_for(ms(10));
    assert_eq!(pipe.sender.stats().send.segments_sent, 11);
    pipe.run_for(ms(600));
    assert_eq!(pipe.delivered, 12 * PAYLOAD);
    write(&mut pipe, 2);
    pipe.run_for(Duration::from_secs(2));
    assert_eq!(pipe.delivered, 14 * PAYLOAD);
    let stats = pipe.sender.stats().send;
    assert_eq!((stats.retransmits, stats.congestion_events, stats.timeouts), (1, 0, 0));
}

/// Section 7.2: an acknowledgement that advances shows that the path works.
#[test]
fn acknowledgements_restart_the_probe_timer() {
    let mut pipe = flow(|n| if n == 2 || n == 3 { Fate::Drop } else { Fate::Pass });
    write(&mut pipe, 3);
    pipe.run_for(ms(290));
    assert_eq!(pipe.sender.stats().send.retransmits, 0);
    pipe.run_for(ms(30));
    assert_eq!(pipe.sender.stats().send.retransmits, 1);
}
