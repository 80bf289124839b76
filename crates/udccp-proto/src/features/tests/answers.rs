//! Answers to each kind of feature option: sections 6.3 and 6.6.7 to 6.6.9.

use udccp_wire::{ResetCode, option_kind as kind};

use super::*;

const CCID: FeatureNumber = FeatureNumber::CCID;
const WINDOW: FeatureNumber = FeatureNumber::SEQUENCE_WINDOW;
const VECTOR: FeatureNumber = FeatureNumber::SEND_ACK_VECTOR;

fn option_error(kind: u8, feature: u8, value: u8) -> FeatureError {
    FeatureError { code: ResetCode::OptionError, data: [kind, feature, value] }
}

fn mandatory_error(kind: u8, feature: u8, value: u8) -> FeatureError {
    FeatureError { code: ResetCode::MandatoryError, data: [kind, feature, value] }
}

/// The options with which a new server answers these.
fn answer(options: &[&str]) -> Vec<String> {
    let mut end = End::open(Role::Server);
    end.receive_text(options).unwrap();
    end.send(PacketType::Ack).shows()
}

/// The Reset with which a new server answers these options.
fn refusal(options: &[&str]) -> FeatureError {
    End::open(Role::Server).receive_text(options).unwrap_err()
}

//= 4340-6.6.7-1 test
//= 4340-15-1 test
#[test]
fn an_unknown_feature_gets_an_empty_confirm() {
    assert_eq!(answer(&["Change L(10; 1 2)"]), ["Confirm R(10; )"]);
    assert_eq!(answer(&["Change R(77; 1)"]), ["Confirm L(77; )"]);
    assert_eq!(answer(&["Change L(0; 1)", "Change L(0; 2)"]), ["Confirm R(0; )"]);
    assert_eq!(answer(&["Change R(200; 1)"]), ["Confirm L(200; )"]);
}

//= 4340-6.6.7-2 test
//= 4340-15-4 test
#[test]
fn a_mandatory_unknown_feature_resets() {
    let error = refusal(&["Mandatory", "Change L(10; 7 2)"]);
    assert_eq!(error, mandatory_error(kind::CHANGE_L, 10, 7));
    let error = refusal(&["Mandatory", "Change R(128; )"]);
    assert_eq!(error, mandatory_error(kind::CHANGE_R, 128, 0));
    // Mandatory applies only to the next option.
    assert_eq!(answer(&["Mandatory", "Change L(6; 1)", "Change L(10; 1)"])[0], "Confirm R(10; )");
}

//= 4340-6.6.7-5 test
//= 4340-6.2-1 test
#[test]
fn unrequested_confirms_are_ignored() {
    let mut end = End::open(Role::Server);
    end.receive_text(&["Confirm L(10; 1)", "Confirm R(10; )", "Mandatory", "Confirm L(9; )"])
        .unwrap();
    end.receive_text(&["Confirm L(1; 3 3)", "Confirm R(3; 9)", "Confirm R(1; )"]).unwrap();
    assert!(end.engine.is_settled());
    assert_eq!((end.value(R, CCID), end.value(L, CCID)), (2, 2));
    assert_eq!(end.send(PacketType::Ack).shows(), [""; 0]);
}

//= 4340-6.6.7-3 test
#[test]
fn an_empty_confirm_leaves_the_value_as_it_was() {
    let mut end = End::open(Role::Server);
    end.engine.change(R, VECTOR, &[1], false).unwrap();
    end.send(PacketType::Ack);
    assert!(!end.engine.is_stable(R, VECTOR));
    end.receive_text(&["Confirm L(6; )"]).unwrap();
    assert!(end.engine.is_stable(R, VECTOR));
    assert_eq!(end.value(R, VECTOR), 0);
    assert_eq!(end.engine.unmet(), Some((R, VECTOR)));
    end.wait(100_000);
    assert_eq!(end.send(PacketType::Ack).shows(), [""; 0], "it is not asked again");
}

//= 4340-6.6.9-1 test
//= 4340-6.6.7-4 test
#[test]
fn an_empty_confirm_for_a_required_feature_resets() {
    let mut end = End::open(Role::Client);
    end.engine.change(L, WINDOW, &[200], false).unwrap();
    end.send(PacketType::Ack);
    let error = end.receive_text(&["Confirm R(3; )"]).unwrap_err();
    assert_eq!(error, option_error(kind::CONFIRM_R, 3, 0));
    // An empty Confirm of a Mandatory Change is an error too.
    let mut end = End::open(Role::Client);
    end.engine.change(R, VECTOR, &[1], true).unwrap();
    assert_eq!(end.send(PacketType::Ack).shows(), ["Mandatory", "Change R(6; 1)"]);
    assert!(end.receive_text(&["Confirm L(6; )"]).is_err());
}

//= 4340-6.3.1-1 test
#[test]
fn lists_without_a_shared_entry_change_nothing() {
    assert_eq!(answer(&["Change R(1; 9 8)"]), ["Confirm L(1; 2 2)"]);
    let mut client = End::open(Role::Client);
    client.engine.change(R, CCID, &[8, 9], false).unwrap();
    let mut server = End::open(Role::Server);
    server.receive(&client.send(PacketType::Ack)).unwrap();
    client.receive(&server.send(PacketType::Ack)).unwrap();
    assert_eq!((client.value(R, CCID), server.value(L, CCID)), (2, 2));
    assert_eq!(client.engine.unmet(), Some((R, CCID)));
    assert!(client.engine.is_settled());
}

//= 4340-6.6.9-1 test
#[test]
fn a_mandatory_change_that_cannot_be_met_resets() {
    let error = refusal(&["Mandatory", "Change R(1; 9 8)"]);
    assert_eq!(error, mandatory_error(kind::CHANGE_R, 1, 9));
    let error = refusal(&["Mandatory", "Change L(5; 1)"]);
    assert_eq!(error, mandatory_error(kind::CHANGE_L, 5, 1));
    assert_eq!(answer(&["Mandatory", "Change L(4; 1)"]), ["Confirm R(4; 1 1 0)"]);
}

//= 4340-6.6.8-1 test
//= 4340-6.3.2-1 test
//= 4340-7.5.2-1 test
//= 4340-15-6 test
#[test]
fn invalid_changes_get_empty_confirms() {
    // Wrong lengths, a Sequence Window below 32, one above 2^46 - 1, an empty list.
    assert_eq!(answer(&["Change L(5; 1)"]), ["Confirm R(5; )"]);
    assert_eq!(answer(&["Change L(3; 0 0 0 0 0 31)"]), ["Confirm R(3; )"]);
    assert_eq!(answer(&["Change L(3; 64 0 0 0 0 0)"]), ["Confirm R(3; )"]);
    assert_eq!(answer(&["Change L(3; 63 255 255 255 255 255)"])[0].len(), 36);
    assert_eq!(answer(&["Change L(6; )"]), ["Confirm R(6; )"]);
    // Only the location sets a non-negotiable feature.
    assert_eq!(answer(&["Change R(5; 0 2)"]), ["Confirm L(5; )"]);
}

#[test]
fn an_invalid_change_leaves_our_own_negotiation_going() {
    let mut end = End::open(Role::Client);
    end.engine.change(R, CCID, &[3, 2], false).unwrap();
    end.send(PacketType::Ack);
    end.receive_text(&["Change L(1; )"]).unwrap();
    assert!(!end.engine.is_stable(R, CCID));
    assert_eq!(end.send(PacketType::Ack).shows(), ["Confirm R(1; )"]);
    end.wait(10_000);
    assert_eq!(end.send(PacketType::Ack).shows(), ["Change R(1; 3 2)"]);
}

//= 4340-6.6.8-2 test
#[test]
fn an_invalid_confirm_resets() {
    let confirmed = |values: &[u64], confirm: &str| {
        let mut end = End::open(Role::Client);
        end.engine.change(R, CCID, values, false).unwrap();
        end.send(PacketType::Ack);
        end.receive_text(&[confirm]).map(|()| end.value(R, CCID))
    };
    assert_eq!(confirmed(&[3, 2], "Confirm L(1; 2 2 3)"), Ok(2));
    assert_eq!(confirmed(&[3, 2], "Confirm L(1; 3)"), Ok(3), "without the list");
    // The server's first entry that we accept is 2; the lists do not lead to 3.
    let wrong = confirmed(&[3, 2], "Confirm L(1; 3 2 3)");
    assert_eq!(wrong, Err(option_error(kind::CONFIRM_L, 1, 3)));
    assert!(confirmed(&[3], "Confirm L(1; 4 4)").is_err(), "nothing shared: the old value stays");
    assert_eq!(confirmed(&[3], "Confirm L(1; 2 4)"), Ok(2));
    assert!(confirmed(&[3], "Confirm L(1; 7)").is_err());
    let mut end = End::open(Role::Client);
    end.engine.change(L, WINDOW, &[200], false).unwrap();
    end.send(PacketType::Ack);
    assert!(end.receive_text(&["Confirm R(3; 0 0 0 0 0 100)"]).is_err());
}

//= 4340-15-5 test
#[test]
fn unknown_values_in_a_list_are_skipped() {
    let mut end = End::new(Role::Server, &prefer(&[(L, CCID, &[3, 2])]));
    end.receive_text(&["Change R(1; 77 2 250 3)"]).unwrap();
    assert_eq!(end.send(PacketType::Response).shows(), ["Confirm L(1; 3 3 2)"]);
    assert_eq!(answer(&["Change L(4; 9 1)"]), ["Confirm R(4; 1 1 0)"]);
}

//= 4340-6.3.2-2 test
#[test]
fn features_set_by_the_peer_alone_cannot_be_requested() {
    let mut end = End::open(Role::Client);
    let error = end.engine.change(R, WINDOW, &[500], false).unwrap_err();
    assert_eq!(error, ChangeError::NotOurs(WINDOW));
    assert!(FeaturePreferences::new().set(R, WINDOW, &[500]).is_err());
    let too_small = end.engine.change(L, WINDOW, &[31], false).unwrap_err();
    assert_eq!(too_small, ChangeError::InvalidValue { feature: WINDOW, value: 31 });
    let two = end.engine.change(L, WINDOW, &[100, 200], false).unwrap_err();
    assert_eq!(two, ChangeError::InvalidValue { feature: WINDOW, value: 200 });
    let none = end.engine.change(L, CCID, &[], false).unwrap_err();
    assert_eq!(none, ChangeError::NoValue(CCID));
    let unknown = FeatureNumber(100);
    let error = end.engine.change(L, unknown, &[1], false).unwrap_err();
    assert_eq!(error, ChangeError::Unknown(unknown));
    let too_long: Vec<u64> = (0..255).collect();
    assert!(end.engine.change(L, CCID, &too_long, false).is_err());
    assert!(end.engine.change(L, CCID, &too_long[..251], false).is_ok());
}

//= 4340-6.6.1-4 test
#[test]
fn two_options_for_one_feature_are_processed_in_turn() {
    let mut end = End::new(Role::Client, &prefer(&[(R, CCID, &[2, 3])]));
    end.receive_text(&["Change L(1; 3 2)", "Change L(1; 2 3)"]).unwrap();
    assert_eq!(end.send(PacketType::Ack).shows(), ["Confirm R(1; 2 2 3)"]);
    assert_eq!(answer(&["Change L(6; 1)", "Change R(6; 1)", "Change L(7; 1)"]).len(), 3);
}

#[test]
fn an_unacceptable_outcome_causes_a_mandatory_change() {
    let mut wishes = FeaturePreferences::new();
    wishes.set(R, CCID, &[3]).unwrap().mandatory = true;
    let mut end = End::new(Role::Server, &wishes);
    end.receive_text(&["Change L(1; 2)"]).unwrap();
    let response = end.send(PacketType::Response);
    assert_eq!(response.shows(), ["Confirm R(1; 2 3)", "Mandatory", "Change R(1; 3)"]);
}

#[test]
fn a_confirm_shows_the_list_that_it_was_made_with() {
    let mut end = End::new(Role::Server, &prefer(&[(L, CCID, &[2, 3])]));
    end.engine.set_phase(Phase::Open);
    end.receive_text(&["Change R(1; 3)"]).unwrap();
    end.engine.change(L, CCID, &[2], false).unwrap();
    let packet = end.send(PacketType::Ack);
    assert_eq!(packet.shows(), ["Confirm L(1; 3 2 3)", "Change L(1; 2)"]);
}

#[test]
fn a_server_without_preference_accepts_the_clients_choice() {
    assert_eq!(answer(&["Change R(7; 1 0)"]), ["Confirm L(7; 1 1 0)"]);
    assert_eq!(answer(&["Change R(7; 0 1)"]), ["Confirm L(7; 0 0 1)"]);
    assert_eq!(answer(&["Change L(8; 9 3 0)"])[0][..20], *"Confirm R(8; 9 9 0 1");
    // A server with an explicit preference keeps its order.
    let mut end = End::new(Role::Server, &prefer(&[(L, FeatureNumber::SEND_NDP_COUNT, &[0, 1])]));
    end.receive_text(&["Change R(7; 1 0)"]).unwrap();
    assert_eq!(end.send(PacketType::Response).shows(), ["Confirm L(7; 0 0 1)"]);
}

//= 4340-6.6.7-1 test
#[test]
fn an_empty_confirm_that_finds_no_room_leaves_with_the_next_packet() {
    let mut end = End::open(Role::Server);
    end.receive_text(&["Change L(98; 1)", "Change L(99; 1)"]).unwrap();
    assert_eq!(end.send_with_room(PacketType::Ack, 3).shows(), ["Confirm R(98; )"]);
    assert_eq!(end.send_with_room(PacketType::Ack, 3).shows(), ["Confirm R(99; )"]);
    assert_eq!(end.send(PacketType::Ack).shows(), [""; 0]);
}
