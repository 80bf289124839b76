//! The negotiation of Linux 6.1 with CCID 2, as seen in captures.

use super::*;

/// The options of the kernel client's Request.
const REQUEST: [&str; 6] = [
    "Change L(1; 2 3)",
    "Change R(1; 2 3)",
    "Mandatory",
    "Change L(2; 0)",
    "Mandatory",
    "Change L(4; 1)",
];

/// The options of the kernel server's Response to such a Request.
const RESPONSE: [&str; 12] = [
    "Confirm L(1; 2 2 3)",
    "Confirm R(1; 2 2 3)",
    "Mandatory",
    "Change L(2; 0)",
    "Confirm R(2; 0 0)",
    "Mandatory",
    "Change L(4; 1)",
    "Confirm R(4; 1 1)",
    "Mandatory",
    "Change L(6; 1)",
    "Mandatory",
    "Change R(6; 1)",
];

#[test]
fn a_server_answers_every_change_and_asks_for_ack_vectors() {
    let mut server = End::new(Role::Server, &FeaturePreferences::new());
    server.receive_at(Seqno::new(77), None, &REQUEST).unwrap();
    // CCID 2 was agreed for both directions, and it needs Ack Vectors.
    server.engine.change(L, FeatureNumber::SEND_ACK_VECTOR, &[1], true).unwrap();
    server.engine.change(R, FeatureNumber::SEND_ACK_VECTOR, &[1], true).unwrap();
    let response = server.send(PacketType::Response);
    let expected = [
        "Confirm L(1; 2 2)",
        "Confirm R(1; 2 2)",
        "Confirm R(2; 0 0)",
        "Confirm R(4; 1 1 0)",
        "Mandatory",
        "Change L(6; 1)",
        "Mandatory",
        "Change R(6; 1)",
    ];
    assert_eq!(response.shows(), expected);
    let ack = ["Confirm R(6; 1 1)", "Confirm L(6; 1 1)"];
    server.receive_at(Seqno::new(78), Some(server.gss), &ack).unwrap();
    server.engine.set_phase(Phase::Open);
    assert!(server.engine.is_settled());
    assert_eq!(server.value(R, FeatureNumber::ECN_INCAPABLE), 1);
    assert_eq!(server.value(L, FeatureNumber::SEND_ACK_VECTOR), 1);
    assert_eq!(server.value(R, FeatureNumber::SEND_ACK_VECTOR), 1);
}

#[test]
fn a_client_confirms_everything_in_its_first_ack() {
    let mut preferences = prefer(&[(L, FeatureNumber::CCID, &[2]), (R, FeatureNumber::CCID, &[2])]);
    for (location, feature) in [(L, 1), (R, 1), (L, 2), (L, 4)].map(|(l, n)| (l, FeatureNumber(n)))
    {
        let values: &[u64] =
            if feature == FeatureNumber::CCID { &[2, 3] } else { &[feature.0 as u64 / 4] };
        let preference = preferences.set(location, feature, values).unwrap();
        preference.announced = true;
        preference.mandatory = feature != FeatureNumber::CCID;
    }
    let mut client = End::new(Role::Client, &preferences);
    assert_eq!(client.send(PacketType::Request).shows(), REQUEST);
    client.engine.set_phase(Phase::PartOpen);
    client.receive_at(Seqno::new(500), Some(client.gss), &RESPONSE).unwrap();
    let expected =
        ["Confirm R(2; 0 0)", "Confirm R(4; 1 0 1)", "Confirm L(6; 1 0 1)", "Confirm R(6; 1 0 1)"];
    assert_eq!(client.send(PacketType::Ack).shows(), expected);
    assert_eq!(client.send(PacketType::DataAck).shows(), expected, "repeated until OPEN");
    client.receive_at(Seqno::new(501), Some(client.gss), &[]).unwrap();
    client.engine.set_phase(Phase::Open);
    assert_eq!(client.send(PacketType::DataAck).shows(), [""; 0]);
    assert_eq!(client.engine.unmet(), None);
}

#[test]
fn the_kernel_asks_for_sequence_windows_all_the_time() {
    let mut end = End::open(Role::Client);
    for window in [50, 100, 200, 100, 50, 32] {
        // On every packet, until the Confirm arrives.
        for _ in 0..3 {
            end.receive_text(&[&format!("Change L(3; 0 0 0 0 0 {window})")]).unwrap();
        }
        let shows = end.send(PacketType::Ack).shows();
        assert_eq!(shows, [format!("Confirm R(3; 0 0 0 0 0 {window})")]);
        assert_eq!(end.value(R, FeatureNumber::SEQUENCE_WINDOW), window);
    }
}
