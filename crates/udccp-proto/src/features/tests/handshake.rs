//! The exchanges in RFC 4340 section 6.5, and the normal course of a handshake.

use udccp_wire::option_kind as kind;

use super::*;

const CCID: FeatureNumber = FeatureNumber::CCID;
const ACK_RATIO: FeatureNumber = FeatureNumber::ACK_RATIO;

/// Client and server with these preferences for the server's CCID.
fn ends_for_server_ccid(client: &[u64], server: &[u64]) -> (End, End) {
    let client = End::new(Role::Client, &prefer(&[(R, CCID, client)]));
    (client, End::new(Role::Server, &prefer(&[(L, CCID, server)])))
}

//= 4340-6.6.1-2 test
//= 4340-6.6.1-3 test
//= 4340-6.6.2-1 test
#[test]
fn the_server_chooses_from_the_clients_list() {
    let (mut client, mut server) = ends_for_server_ccid(&[2, 3, 1], &[3, 2, 1]);
    // 2 is the initial value and the client's first choice, so only an explicit change sends it.
    client.engine.change(R, CCID, &[1, 2, 3], false).unwrap();
    let request = client.send(PacketType::Request);
    assert_eq!(request.shows(), ["Change R(1; 1 2 3)"]);
    server.receive(&request).unwrap();
    assert_eq!((server.value(L, CCID), server.engine.upcoming_value(L, CCID)), (2, Some(3)));
    let response = server.send(PacketType::Response);
    assert_eq!(response.shows(), ["Confirm L(1; 3 3 2 1)"]);
    assert_eq!(server.value(L, CCID), 3, "in force as soon as the Confirm leaves");
    assert_eq!(client.value(R, CCID), 2, "in force only when the Confirm arrives");
    client.receive(&response).unwrap();
    assert_eq!(client.value(R, CCID), 3);
    assert!(!server.engine.is_settled(), "another Response would carry the Confirm again");
    assert_eq!(server.send(PacketType::Response).shows(), response.shows());
    server.engine.set_phase(Phase::Open);
    assert!(client.engine.is_settled() && server.engine.is_settled());
    let activated = Activated { location: R, feature: CCID, value: 3 };
    assert_eq!(client.news(), [activated]);
}

//= 4340-6.6.3-1 test
#[test]
fn a_lost_change_is_sent_again_until_it_is_answered() {
    let (mut client, mut server) = (End::open(Role::Client), End::open(Role::Server));
    client.engine.change(R, CCID, &[2, 3, 1], false).unwrap();
    server.engine.change(L, CCID, &[3, 2, 1], false).unwrap();
    let lost = server.send(PacketType::Ack);
    assert_eq!(lost.shows(), ["Change L(1; 3 2 1)"]);
    for _ in 0..3 {
        server.wait(70_000);
        assert_eq!(server.send(PacketType::Ack).shows(), lost.shows());
    }
    server.wait(70_000);
    client.receive(&server.send(PacketType::Ack)).unwrap();
    let confirm = client.send(PacketType::DataAck);
    assert_eq!(confirm.shows(), ["Confirm R(1; 3 2 3 1)"]);
    server.receive(&confirm).unwrap();
    assert_eq!((server.value(L, CCID), client.value(R, CCID)), (3, 3));
}

//= 4340-6.3.2-1 test
#[test]
fn the_location_alone_sets_a_non_negotiable_feature() {
    let (mut client, mut server) = (End::open(Role::Client), End::open(Role::Server));
    server.engine.change(L, ACK_RATIO, &[3], false).unwrap();
    client.receive(&server.send(PacketType::Ack)).unwrap();
    let confirm = client.send(PacketType::Ack);
    assert_eq!(confirm.shows(), ["Confirm R(5; 0 3)"]);
    assert_eq!((client.value(R, ACK_RATIO), server.value(L, ACK_RATIO)), (3, 2));
    server.receive(&confirm).unwrap();
    assert_eq!(server.value(L, ACK_RATIO), 3);
}

//= 4340-6.6.6-1 test
#[test]
fn two_changes_that_cross_are_two_answers() {
    let (mut client, mut server) = (End::open(Role::Client), End::open(Role::Server));
    client.engine.change(R, CCID, &[1, 3, 2], false).unwrap();
    server.engine.change(L, CCID, &[3, 2, 1], false).unwrap();
    let (a, b) = (client.send(PacketType::Ack), server.send(PacketType::Ack));
    server.receive(&a).unwrap();
    client.receive(&b).unwrap();
    let (a, b) = (client.send(PacketType::Ack), server.send(PacketType::Ack));
    assert_eq!(a.shows(), ["Confirm R(1; 3 1 3 2)"]);
    assert_eq!(b.shows(), ["Confirm L(1; 3 3 2 1)"]);
    server.receive(&a).unwrap();
    client.receive(&b).unwrap();
    assert_eq!((server.value(L, CCID), client.value(R, CCID)), (3, 3));
    assert!(client.engine.is_settled() && server.engine.is_settled());
}

/// The byte strings of section 6.5.
#[test]
fn values_are_encoded_as_the_rfc_shows() {
    let mut end = End::open(Role::Client);
    end.engine.change(L, CCID, &[3, 2], false).unwrap();
    end.engine.change(R, CCID, &[3, 2], false).unwrap();
    end.engine.change(L, FeatureNumber::SEQUENCE_WINDOW, &[1024], false).unwrap();
    end.receive_text(&["Change L(126; 0)", "Change R(126; 0)", "Change L(3; 0 0 0 0 4 0)"])
        .unwrap();
    let packet = end.send(PacketType::Ack);
    let bytes = |o: &OptionValue| {
        let mut bytes = vec![o.kind, 2 + o.data.len() as u8];
        bytes.extend_from_slice(&o.data);
        bytes
    };
    let bytes: Vec<Vec<u8>> = packet.options.iter().map(bytes).collect();
    let expected: [&[u8]; 6] = [
        &[35, 3, 126],
        &[33, 3, 126],
        &[32, 5, 1, 3, 2],
        &[34, 5, 1, 3, 2],
        &[32, 9, 3, 0, 0, 0, 0, 4, 0],
        &[35, 9, 3, 0, 0, 0, 0, 4, 0],
    ];
    assert_eq!(bytes, expected);
    assert_eq!(packet.options[0].kind, kind::CONFIRM_R);
}

#[test]
fn default_preferences_ask_for_nothing() {
    let mut client = End::new(Role::Client, &FeaturePreferences::new());
    assert!(client.engine.is_settled());
    assert_eq!(client.send(PacketType::Request).shows(), [""; 0]);
    let initial = [2, 0, 100, 0, 2, 0, 0, 0, 0];
    for (number, value) in (1..=9).zip(initial) {
        assert_eq!(client.value(L, FeatureNumber(number)), value);
        assert_eq!(client.value(R, FeatureNumber(number)), value);
    }
    assert_eq!(client.engine.value(L, FeatureNumber(10)), None);
}

//= 4340-6.4-1 test
//= 4340-6.4-2 test
#[test]
fn every_feature_of_the_rfc_is_negotiated() {
    let mut client = prefer(&[
        (L, CCID, &[3, 2]),
        (R, CCID, &[3, 2]),
        (L, FeatureNumber::ALLOW_SHORT_SEQNOS, &[1]),
        (L, FeatureNumber::SEQUENCE_WINDOW, &[1000]),
        (R, FeatureNumber::ECN_INCAPABLE, &[1]),
        (L, ACK_RATIO, &[5]),
        (R, FeatureNumber::SEND_ACK_VECTOR, &[1]),
        (R, FeatureNumber::SEND_NDP_COUNT, &[1]),
        (L, FeatureNumber::MIN_CSCOV, &[7, 8]),
    ]);
    client.set(R, FeatureNumber::CHECK_DATA_CHECKSUM, &[1]).unwrap().mandatory = true;
    let mut client = End::new(Role::Client, &client);
    let mut server = End::new(
        Role::Server,
        &prefer(&[(R, FeatureNumber::ALLOW_SHORT_SEQNOS, &[0, 1]), (L, CCID, &[4, 3])]),
    );
    server.receive(&client.send(PacketType::Request)).unwrap();
    client.receive(&server.send(PacketType::Response)).unwrap();
    client.engine.set_phase(Phase::Open);
    server.engine.set_phase(Phase::Open);
    assert!(client.engine.is_settled() && server.engine.is_settled());
    for number in 1..=9 {
        let feature = FeatureNumber(number);
        assert_eq!(client.value(L, feature), server.value(R, feature), "{feature}/client");
        assert_eq!(client.value(R, feature), server.value(L, feature), "{feature}/server");
    }
    assert_eq!((server.value(L, CCID), server.value(R, CCID)), (3, 2));
    let other = [4, 5, 6, 7, 8, 9].map(|n| client.value(R, FeatureNumber(n)));
    assert_eq!(other, [1, 2, 1, 1, 0, 1]);
    assert_eq!((client.value(L, FeatureNumber(3)), client.value(L, ACK_RATIO)), (1000, 5));
    assert_eq!(client.value(L, FeatureNumber::MIN_CSCOV), 7);
}

#[test]
fn a_repeated_request_repeats_its_changes_and_gets_new_confirms() {
    let (mut client, mut server) = ends_for_server_ccid(&[3, 2], &[2, 3]);
    let first = client.send(PacketType::Request);
    server.receive(&first).unwrap();
    let lost = server.send(PacketType::Response);
    let second = client.send(PacketType::Request);
    assert_eq!(first.shows(), second.shows());
    server.receive(&second).unwrap();
    let response = server.send(PacketType::Response);
    assert_eq!(response.shows(), lost.shows());
    client.receive(&response).unwrap();
    assert_eq!(client.value(R, CCID), 2);
    assert!(client.engine.is_settled());
}

#[test]
fn a_server_repeats_its_own_changes_on_each_response() {
    let (mut client, mut server) = ends_for_server_ccid(&[2, 3], &[3]);
    let request = client.send(PacketType::Request);
    server.receive(&request).unwrap();
    assert_eq!(server.send(PacketType::Response).shows(), ["Change L(1; 3)"]);
    let again = server.send(PacketType::Response);
    assert_eq!(again.shows(), ["Change L(1; 3)"]);
    client.engine.set_phase(Phase::PartOpen);
    client.receive(&again).unwrap();
    let ack = client.send(PacketType::Ack);
    server.receive(&ack).unwrap();
    assert_eq!((client.value(R, CCID), server.value(L, CCID)), (3, 3));
}

#[test]
fn answers_are_repeated_in_partopen_and_no_longer() {
    let (mut client, mut server) = ends_for_server_ccid(&[2, 3], &[3]);
    server.receive(&client.send(PacketType::Request)).unwrap();
    client.engine.set_phase(Phase::PartOpen);
    client.receive(&server.send(PacketType::Response)).unwrap();
    let lost = client.send(PacketType::Ack);
    assert_eq!(lost.shows(), ["Confirm R(1; 3 2 3)"]);
    assert_eq!(client.engine.poll_timeout(), None, "a repetition needs no packet of its own");
    let data = client.send(PacketType::DataAck);
    assert_eq!(data.shows(), lost.shows());
    server.receive(&data).unwrap();
    server.receive(&client.send(PacketType::DataAck)).unwrap();
    assert_eq!(server.value(L, CCID), 3);
    client.engine.set_phase(Phase::Open);
    assert_eq!(client.send(PacketType::DataAck).shows(), [""; 0]);
    assert!(client.engine.is_settled());
}
