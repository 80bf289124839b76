//! Timing of feature options: section 6.6.3 and the limits of section 6.6.1.

use super::*;

const ACK_RATIO: FeatureNumber = FeatureNumber::ACK_RATIO;

fn millis(end: &End) -> Option<u64> {
    end.engine.poll_timeout().map(|at| at.saturating_since(end.now).as_millis())
}

//= 4340-6.6.3-2 test
//= 4340-6.6.3-3 test
#[test]
fn retransmissions_back_off_to_64_seconds() {
    let mut end = End::open(Role::Client);
    end.wait(1);
    end.engine.set_rtt(Duration::from_millis(80));
    end.engine.change(L, ACK_RATIO, &[4], false).unwrap();
    assert!(end.engine.take_packet_request(end.now));
    end.send(PacketType::Ack);
    let mut intervals = Vec::new();
    for _ in 0..12 {
        let interval = millis(&end).unwrap();
        end.wait(interval - 1);
        assert!(!end.engine.take_packet_request(end.now));
        assert_eq!(end.send(PacketType::Ack).shows(), [""; 0], "not before it is due");
        end.wait(1);
        assert!(end.engine.take_packet_request(end.now));
        assert_eq!(end.send(PacketType::Ack).shows(), ["Change L(5; 0 4)"]);
        intervals.push(interval);
    }
    let expected = [160, 320, 640, 1280, 2560, 5120, 10240, 20480, 40960, 64000, 64000, 64000];
    assert_eq!(intervals, expected);
    end.receive_text(&["Confirm R(5; 0 4)"]).unwrap();
    assert_eq!(end.engine.poll_timeout(), None);
}

//= 4340-6.6.1-1 test
#[test]
fn packets_for_options_alone_are_a_round_trip_time_apart() {
    let mut end = End::open(Role::Server);
    end.wait(5_000);
    end.engine.set_rtt(Duration::from_millis(50));
    let mut lone_packets = 0;
    for n in 0..100 {
        end.receive_text(&[&format!("Change L(5; 0 {n})")]).unwrap();
        if end.engine.take_packet_request(end.now) {
            lone_packets += 1;
            assert_eq!(end.send(PacketType::Ack).shows(), [format!("Confirm R(5; 0 {n})")]);
        }
        end.wait(5);
    }
    assert_eq!(lone_packets, 10);
    assert_eq!(millis(&end), Some(0), "what waits leaves when the time has come");
}

#[test]
fn piggybacked_confirms_need_no_packets_of_their_own() {
    let mut end = End::open(Role::Server);
    end.receive_text(&["Change L(6; 1)"]).unwrap();
    assert_eq!(end.send(PacketType::DataAck).shows(), ["Confirm R(6; 1 1 0)"]);
    assert_eq!(end.engine.poll_timeout(), None);
    assert!(!end.engine.take_packet_request(end.now));
}

/// Otherwise data would have to be DataAck, or be followed by an Ack, during a whole negotiation.
#[test]
fn between_two_tries_of_a_change_no_packet_is_wanted_for_options() {
    let mut end = End::open(Role::Client);
    end.wait(1);
    end.engine.set_rtt(Duration::from_millis(80));
    assert!(!end.engine.has_due(end.now));
    end.engine.change(L, ACK_RATIO, &[4], false).unwrap();
    assert!(end.engine.has_due(end.now));
    end.send(PacketType::DataAck);
    end.wait(159);
    assert!(!end.engine.has_due(end.now) && !end.engine.is_settled());
    end.receive_text(&["Change L(6; 1)"]).unwrap();
    assert!(end.engine.has_due(end.now), "a Confirm waits for nothing");
    end.send(PacketType::DataAck);
    assert!(!end.engine.has_due(end.now));
    end.wait(1);
    assert!(end.engine.has_due(end.now));
}

//= 4340-6.6.3-4 test
#[test]
fn every_change_in_order_gets_a_new_confirm() {
    let mut end = End::open(Role::Server);
    for _ in 0..5 {
        end.receive_text(&["Change L(6; 1)"]).unwrap();
        assert_eq!(end.send(PacketType::Ack).shows(), ["Confirm R(6; 1 1 0)"]);
        assert_eq!(end.send(PacketType::Ack).shows(), [""; 0]);
    }
}

#[test]
fn no_timer_runs_in_the_handshake() {
    let wish = prefer(&[(R, FeatureNumber::SEND_ACK_VECTOR, &[1])]);
    let mut end = End::new(Role::Client, &wish);
    assert_eq!(end.engine.poll_timeout(), None);
    for _ in 0..3 {
        assert_eq!(end.send(PacketType::Request).shows(), ["Change R(6; 1)"]);
        assert_eq!(end.engine.poll_timeout(), None);
    }
    end.engine.set_phase(Phase::PartOpen);
    assert_eq!(millis(&end), Some(1_000), "the Response did not answer: ask again");
}

#[test]
fn options_that_do_not_fit_wait_and_mandatory_is_never_sent_alone() {
    let mut end = End::open(Role::Client);
    end.engine.change(R, FeatureNumber::SEND_ACK_VECTOR, &[1], true).unwrap();
    end.receive_text(&["Change L(7; 1)", "Change R(6; 1)"]).unwrap();
    let mut ack = |room| end.send_with_room(PacketType::Ack, room).shows();
    assert_eq!(ack(4), [""; 0], "a Mandatory Change has 5 bytes");
    assert_eq!(ack(5), ["Mandatory", "Change R(6; 1)"]);
    assert_eq!(ack(5), [""; 0], "a Confirm with a list of two has 6 bytes");
    assert_eq!(ack(11), ["Confirm L(6; 1 0 1)"]);
    assert_eq!(ack(11), ["Confirm R(7; 1 0 1)"]);
}

#[test]
fn a_settled_engine_writes_nothing() {
    let mut end = End::open(Role::Server);
    assert_eq!(end.send(PacketType::Ack).shows(), [""; 0]);
    assert!(end.engine.is_settled());
    assert_eq!(end.news(), []);
}
