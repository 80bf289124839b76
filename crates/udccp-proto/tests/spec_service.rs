//! RFC 5595: service codes at both ends.

mod common;
mod spec_support;

use common::pair::PORT;
use common::{CLIENT, Net, Pair, SERVER, connect_options, service};
use spec_support::{Harness, plain, reset, types};
use udccp_base::Duration;
use udccp_proto::{ConnectError, ConnectOptions, ListenConfig, ListenError, State};
use udccp_wire::PacketType::Response;
use udccp_wire::{HeaderKind, ResetCode, ServiceCode};

fn code(text: &str) -> ServiceCode {
    text.parse().unwrap()
}

fn serving(services: &[ServiceCode]) -> ListenConfig {
    ListenConfig { services: services.to_vec(), ..ListenConfig::new(service()) }
}

fn asking(service: ServiceCode, remote_port: u16) -> ConnectOptions {
    ConnectOptions { service, remote_port, ..connect_options(plain()) }
}

//= 5595-2.2-1 test
//= 5595-3.1-1 test
//= 5595-3.3-2 test
//= 5595-3.3-3 test
//= 5595-3.3-4 test
//= 5595-3.3-5 test
//= 5595-3.3-6 test
//= 5595-3.3.1-3 test
#[test]
fn one_port_serves_many_codes_and_the_server_learns_which_was_asked_for() {
    let mut net = Net::new(1);
    let (video, voice, chat) = (code("SC:RTPV"), code("SC:RTPA"), code("SC:?cha"));
    let media = net.ends[SERVER].listen(None, PORT, serving(&[video, voice])).unwrap();
    let talk = net.ends[SERVER].listen(None, PORT, serving(&[chat])).unwrap();
    let elsewhere = net.ends[SERVER].listen(None, PORT + 1, serving(&[chat])).unwrap();
    let now = net.now;
    for (service, port) in [(voice, PORT), (chat, PORT), (video, PORT), (chat, PORT + 1)] {
        let id = net.ends[CLIENT].connect(now, asking(service, port)).unwrap();
        assert_eq!(net.ends[CLIENT].service(id), Some(service));
    }
    net.run(Duration::from_millis(200));
    for (listener, expected) in
        [(media, vec![voice, video]), (talk, vec![chat]), (elsewhere, vec![chat])]
    {
        let end = &mut net.ends[SERVER];
        let mut served = Vec::new();
        while let Some(id) = end.accept(listener) {
            served.push(end.service(id).unwrap());
        }
        served.sort_unstable();
        assert_eq!(served, expected);
    }
    assert_eq!(net.ends[SERVER].listen(None, 9, serving(&[])), Err(ListenError::NoService));
}

//= 5595-2.4-1 test
#[test]
fn code_0_is_a_code_like_any_other() {
    let mut net = Net::new(2);
    let zero = ServiceCode::UNSPECIFIED;
    let listener = net.ends[SERVER].listen(None, PORT, serving(&[zero])).unwrap();
    let now = net.now;
    let id = net.ends[CLIENT].connect(now, asking(zero, PORT)).unwrap();
    let mut pair = Pair { net, listener, ids: [Some(id), None], events: Default::default() };
    pair.pass(Duration::from_millis(200));
    assert_eq!(pair.state(SERVER), Some(State::Open));
    let server = pair.id(SERVER);
    assert_eq!(pair.ends[SERVER].service(server), Some(zero));
}

//= 5595-2.5-1 test
//= 5595-2.5-2 test
#[test]
fn the_invalid_code_can_neither_be_served_nor_asked_for() {
    let mut harness = Harness::listening(plain());
    let now = harness.pair.now;
    let invalid = ServiceCode::INVALID;
    let served = harness.pair.ends[SERVER].listen(None, 9, serving(&[service(), invalid]));
    assert_eq!(served, Err(ListenError::InvalidService));
    let asked = harness.pair.ends[CLIENT].connect(now, asking(invalid, PORT));
    assert_eq!(asked, Err(ConnectError::InvalidService));
    let sent = harness.deliver_at(harness.seq.next(), HeaderKind::Request { service: invalid });
    assert_eq!(reset(&sent).map(|r| r.0), Some(ResetCode::BadServiceCode));
}

//= 5595-3.3-1 test
#[test]
fn one_code_on_one_port_has_one_server() {
    let mut net = Net::new(3);
    let end = &mut net.ends[SERVER];
    let [a, b] = ["10.0.0.2:0", "10.0.0.3:0"].map(|at| Some(at.parse().unwrap()));
    let taken = |at| Err(ListenError::InUse { port: PORT, service: at });
    let first = end.listen(a, PORT, serving(&[service()])).unwrap();
    assert_eq!(end.listen(a, PORT, serving(&[code("SC:more"), service()])), taken(service()));
    assert_eq!(end.listen(None, PORT, serving(&[service()])), taken(service()));
    assert!(end.listen(b, PORT, serving(&[service()])).is_ok(), "another address");
    assert!(end.listen(a, PORT, serving(&[code("SC:more")])).is_ok(), "another code");
    let now = udccp_base::Instant::ZERO;
    end.unlisten(now, first);
    assert!(end.listen(a, PORT, serving(&[service()])).is_ok(), "free again");
}

//= 5595-3.3.1-1 test
//= 5595-3.3.1-3 test
//= 5595-3.3.1-4 test
#[test]
fn a_closed_port_and_a_wrong_code_are_told_apart() {
    let mut harness = Harness::listening(plain());
    let request = HeaderKind::Request { service: code("SC:else") };
    let sent = harness.deliver_at(harness.seq.next(), request);
    assert_eq!(reset(&sent).map(|r| r.0), Some(ResetCode::BadServiceCode));
    let mut header =
        harness.header_at(harness.seq.next(), HeaderKind::Request { service: service() });
    header.dst_port = PORT + 1;
    let sent = harness.deliver_header(&header, &[], &[]);
    assert_eq!(reset(&sent).map(|r| r.0), Some(ResetCode::ConnectionRefused));
    let request = HeaderKind::Request { service: service() };
    let sent = harness.deliver_at(harness.seq.next(), request);
    assert_eq!(types(&sent), [Response]);
    let HeaderKind::Response { service: copy, .. } = sent[0].header.kind else { unreachable!() };
    assert_eq!(copy, service());
}

//= 5595-3.3.1-3 test
#[test]
fn removed_services_and_closed_ports_are_refused() {
    let mut harness = Harness::listening(plain());
    let listener = harness.pair.listener;
    let sent = |harness: &mut Harness, service| {
        reset(&harness.deliver_at(harness.seq.next(), HeaderKind::Request { service })).map(|r| r.0)
    };
    let (old, new) = (service(), code("SC:else"));
    harness.pair.ends[SERVER].set_services(listener, vec![new]).unwrap();
    assert_eq!(sent(&mut harness, old), Some(ResetCode::BadServiceCode));
    let now = harness.pair.now;
    harness.pair.ends[SERVER].unlisten(now, listener);
    assert_eq!(sent(&mut harness, new), Some(ResetCode::ConnectionRefused));
}
