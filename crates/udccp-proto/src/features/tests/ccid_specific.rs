//! Features of CCIDs: sections 10 and 10.3, and RFC 4342's Send Loss Event Rate.

use udccp_wire::ResetCode;

use super::*;

const CCID: FeatureNumber = FeatureNumber::CCID;
const LEV: FeatureNumber = FeatureNumber::SEND_LEV_RATE;

fn wishes(ccids: &[u64]) -> FeaturePreferences {
    prefer(&[(L, CCID, ccids), (R, CCID, ccids), (L, LEV, &[1]), (R, LEV, &[1])])
}

//= 4340-10.3-3 test
#[test]
fn a_ccids_feature_is_unknown_under_another_ccid() {
    let mut end = End::new(Role::Server, &wishes(&[2]));
    // Located at us, it belongs to the data that the peer sends, here with CCID 2.
    end.receive_text(&["Change R(192; 1)", "Change L(192; 1)"]).unwrap();
    let response = end.send(PacketType::Response);
    assert_eq!(response.shows(), ["Confirm L(192; )", "Confirm R(192; )"]);
    let mut end = End::new(Role::Server, &wishes(&[2]));
    let error = end.receive_text(&["Mandatory", "Change R(192; 1)"]).unwrap_err();
    assert_eq!(error.code, ResetCode::MandatoryError);
    assert_eq!(end.engine.value(L, LEV), None);
}

#[test]
fn the_ccid_agreed_earlier_in_the_packet_decides() {
    let mut end = End::new(Role::Server, &wishes(&[2, 3]));
    // The client's data uses CCID 3, ours CCID 2.
    let request = ["Change L(1; 3)", "Change R(192; 1)", "Change L(192; 1)"];
    end.receive_text(&request).unwrap();
    let response = end.send(PacketType::Response).shows();
    assert_eq!(response, ["Confirm R(192; )", "Confirm R(1; 3 2 3)", "Confirm L(192; 1 1)"]);
    assert_eq!(end.value(L, LEV), 1);
    assert_eq!(end.engine.value(R, LEV), None);
}

//= 4340-10.3-1 test
#[test]
fn a_ccids_feature_waits_until_the_ccid_is_agreed() {
    let mut client = End::new(Role::Client, &wishes(&[3, 2]));
    let mut server = End::new(Role::Server, &wishes(&[3, 2]));
    let request = client.send(PacketType::Request);
    assert_eq!(request.shows(), ["Change L(1; 3 2)", "Change R(1; 3 2)"]);
    server.receive(&request).unwrap();
    let response = server.send(PacketType::Response);
    let changes = ["Change L(192; 1)", "Change R(192; 1)"];
    assert_eq!(response.shows()[2..], changes, "behind the Confirms of the CCID");
    client.engine.set_phase(Phase::PartOpen);
    client.receive(&response).unwrap();
    assert_eq!(client.engine.value(R, CCID), Some(3));
    server.receive(&client.send(PacketType::Ack)).unwrap();
    let everywhere = [client.value(L, LEV), client.value(R, LEV), server.value(L, LEV)];
    assert_eq!(everywhere, [1; 3]);
    server.engine.set_phase(Phase::Open);
    assert!(server.engine.is_settled());
}

#[test]
fn behind_a_mandatory_ccid_nothing_has_to_wait() {
    let mut preferences = wishes(&[3]);
    preferences.set(L, CCID, &[3]).unwrap().mandatory = true;
    preferences.set(R, CCID, &[3]).unwrap().mandatory = true;
    let mut client = End::new(Role::Client, &preferences);
    let expected = [
        "Mandatory",
        "Change L(1; 3)",
        "Mandatory",
        "Change R(1; 3)",
        "Change L(192; 1)",
        "Change R(192; 1)",
    ];
    assert_eq!(client.send(PacketType::Request).shows(), expected);
}

//= 4340-10-1 test
//= 4340-10.3-2 test
#[test]
fn an_end_without_ccid_2_sends_mandatory_changes() {
    let mut preferences = FeaturePreferences::new();
    preferences.set(L, CCID, &[3]).unwrap().mandatory = true;
    preferences.set(R, CCID, &[3]).unwrap().mandatory = true;
    let mut server = End::new(Role::Server, &preferences);
    server.receive_at(Seqno::new(1), None, &[]).unwrap();
    let response = server.send(PacketType::Response);
    let expected = ["Mandatory", "Change L(1; 3)", "Mandatory", "Change R(1; 3)"];
    assert_eq!(response.shows(), expected);
    let mut client = End::open(Role::Client);
    assert_eq!(client.receive(&response).unwrap_err().code, ResetCode::MandatoryError);
}
