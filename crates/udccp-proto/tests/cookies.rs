//! Init Cookies (RFC 4340 section 8.1.4): handshakes for which the server keeps no state.

mod common;

use common::packet::{finished, forge_with, in_one_piece, numbers};
use common::pair::PORT;
use common::{CLIENT, Net, Pair, SERVER, connect_options, listen_config};
use udccp_base::{Datagram, Duration, Machine, Payload};
use udccp_proto::{
    CloseReason, ConnectionConfig, ConnectionId, EventKind, InitCookies, ListenConfig, ListenerId,
    State,
};
use udccp_wire::{HeaderKind, OptionRef, PacketView, ResetCode, option_kind};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn server(init_cookies: InitCookies) -> ListenConfig {
    ListenConfig { init_cookies, ..listen_config(ConnectionConfig::default()) }
}

/// A network whose server sends cookies, and a client that has just begun to connect.
fn starting_with(seed: u64, listen: ListenConfig, config: ConnectionConfig) -> Pair {
    let mut net = Net::new(seed);
    let listener = net.ends[SERVER].listen(None, PORT, listen).unwrap();
    let id = net.ends[CLIENT].connect(net.now, connect_options(config)).unwrap();
    Pair { net, listener, ids: [Some(id), None], events: Default::default() }
}

fn starting(seed: u64, listen: ListenConfig) -> Pair {
    starting_with(seed, listen, ConnectionConfig::default())
}

fn exchange(pair: &mut Pair) {
    pair.send(CLIENT, b"ping");
    pair.pass(ms(200));
    assert_eq!(pair.received(SERVER), [b"ping"]);
    pair.send(SERVER, b"pong");
    pair.pass(ms(500));
    assert_eq!(pair.received(CLIENT), [b"pong"]);
}

//= 4340-8.1.4-3 test
#[test]
fn server_keeps_no_state_until_the_cookie_returns() {
    let mut pair = starting(1, server(InitCookies::Always));
    pair.trace = Some(Vec::new());
    pair.mute(CLIENT);
    pair.drain();
    let request = pair.last[CLIENT].clone().unwrap();
    pair.filter = None;
    pair.net.deliver(SERVER, request);
    assert_eq!(pair.ends[SERVER].endpoint_stats().connections, 0);
    assert_eq!(pair.ends[SERVER].poll_timeout(), None);
    pair.pass(ms(100));
    let stats = pair.ends[SERVER].endpoint_stats();
    assert_eq!((stats.connections, stats.cookies_sent, stats.cookies_taken), (1, 1, 1));
    exchange(&mut pair);
    pair.close(CLIENT);
    pair.pass(ms(100));
    assert_eq!(pair.end_reason(SERVER), Some(CloseReason::PeerClose));
    insta::assert_snapshot!(pair.take_trace());
}

#[test]
fn cookie_connection_equals_a_stored_one() {
    let config = ConnectionConfig {
        short_seqnos: true,
        data_checksum: true,
        ndp_count: true,
        send_cscov: 3,
        min_cscov: 2,
        ..ConnectionConfig::default()
    };
    let run = |init_cookies| {
        let listen = ListenConfig { init_cookies, ..listen_config(config.clone()) };
        let mut pair = starting_with(2, listen, config.clone());
        pair.pass(ms(100));
        pair.trace = Some(Vec::new());
        exchange(&mut pair);
        pair.close(SERVER);
        pair.pass(ms(100));
        (pair.take_trace(), pair.state(CLIENT), pair.state(SERVER))
    };
    assert_eq!(run(InitCookies::Always), run(InitCookies::Never));
}

#[test]
fn the_handshake_survives_the_loss_of_each_of_its_packets() {
    for lost in 0..4 {
        let mut pair = starting(3, server(InitCookies::Always));
        let mut count = 0;
        pair.filter = Some(Box::new(move |_, _| {
            count += 1;
            count - 1 != lost
        }));
        pair.pass(Duration::from_secs(4));
        assert_eq!(pair.state(CLIENT), Some(State::Open), "packet {lost} lost");
        assert_eq!(pair.state(SERVER), Some(State::Open), "packet {lost} lost");
        exchange(&mut pair);
    }
}

#[test]
fn a_late_second_response_does_no_harm() {
    let mut pair = starting(4, server(InitCookies::Always));
    pair.delay = Duration::from_secs(1);
    pair.pass(Duration::from_secs(10));
    assert!(pair.ends[SERVER].endpoint_stats().cookies_sent >= 2);
    pair.delay = ms(10);
    exchange(&mut pair);
}

//= 4340-8.1.4-7 test
#[test]
fn invalid_cookies_are_answered_with_bad_init_cookie() {
    let with_ack = |seed| {
        let mut pair = starting(seed, server(InitCookies::Always));
        pair.filter = Some(Box::new(|from, d| {
            let view = PacketView::new(&d.header, d.transport_len()).unwrap();
            from == SERVER || view.service_code().is_some()
        }));
        pair.pass(ms(50));
        let ack = pair.last[CLIENT].clone().unwrap();
        (pair, ack)
    };
    let answer = |pair: &mut Pair, ack: Datagram| {
        let before = pair.sent;
        pair.net.deliver(SERVER, ack);
        let d = pair.last[SERVER].clone().filter(|_| pair.sent > before)?;
        PacketView::new(&d.header, d.transport_len()).unwrap().reset_code()
    };
    let bad = Some(ResetCode::BadInitCookie);
    // One bit of the cookie is changed.
    let (mut pair, ack) = with_ack(5);
    let view = PacketView::new(&ack.header, ack.transport_len()).unwrap();
    let cookie = view.options().find_map(|o| match o.unwrap() {
        OptionRef::InitCookie(c) => Some(c.to_vec()),
        _ => None,
    });
    let mut cookie = cookie.expect("the client echoes the cookie");
    cookie[20] ^= 1;
    let changed = finished(&ack, &view.header(), &[OptionRef::InitCookie(&cookie)], Payload::EMPTY);
    assert_eq!(answer(&mut pair, changed), bad);
    // There is no cookie.
    let none = finished(&ack, &view.header(), &[], Payload::EMPTY);
    assert_eq!(answer(&mut pair, none), Some(ResetCode::NoConnection));
    // The cookie comes from another address.
    cookie[20] ^= 1;
    let like = Datagram { src: "10.0.0.9:0".parse().unwrap(), ..ack.clone() };
    let other = finished(&like, &view.header(), &[OptionRef::InitCookie(&cookie)], Payload::EMPTY);
    assert_eq!(answer(&mut pair, other), bad);
    assert_eq!(pair.ends[SERVER].endpoint_stats().bad_cookies, 2);
    assert_eq!(pair.ends[SERVER].endpoint_stats().connections, 0);
    // Just within the lifetime, and just after it.
    let lifetime = Duration::from_secs(60);
    let made = pair.now - ms(50) + ms(10);
    pair.net.now = made + lifetime + Duration::from_nanos(1);
    assert_eq!(answer(&mut pair, ack.clone()), bad);
    let (mut pair, ack) = with_ack(5);
    pair.net.now = made + lifetime;
    assert_ne!(answer(&mut pair, ack), bad);
    assert_eq!(pair.ends[SERVER].endpoint_stats().cookies_taken, 1);
}

#[test]
fn cookies_cannot_be_reused() {
    let mut pair = starting(6, server(InitCookies::Always));
    let acks = std::rc::Rc::new(std::cell::RefCell::new(None));
    let seen = acks.clone();
    pair.filter = Some(Box::new(move |from, d| {
        let view = PacketView::new(&d.header, d.transport_len()).unwrap();
        let has = view.options().any(|o| o.unwrap().kind() == option_kind::INIT_COOKIE);
        if from == CLIENT && has {
            seen.borrow_mut().get_or_insert(d.clone());
        }
        true
    }));
    pair.pass(ms(100));
    let (now, id) = (pair.now, pair.id(SERVER));
    pair.ends[SERVER].abort(now, id);
    pair.ends[SERVER].release(now, id);
    pair.pass(ms(100));
    assert_eq!(pair.ends[SERVER].endpoint_stats().connections, 0);
    let ack = acks.borrow().clone().unwrap();
    pair.net.deliver(SERVER, ack);
    assert_eq!(pair.ends[SERVER].endpoint_stats().cookies_taken, 1);
    let listener = pair.listener;
    assert_eq!(pair.ends[SERVER].accept(listener), None);
    // The addresses are free again once the cookie has expired.
    pair.pass(Duration::from_secs(61));
    assert_eq!(pair.ends[SERVER].endpoint_stats().timewaits, 0);
}

//= 4340-8.1.3-7 test
#[test]
fn data_of_the_request_is_refused_and_reported_so() {
    let mut pair = starting(7, server(InitCookies::Always));
    pair.mute(CLIENT);
    pair.drain();
    let request = pair.last[CLIENT].clone().unwrap();
    let (kind, seq, _) = numbers(&request);
    let with_data = forge_with(&request, kind, seq, &[], Payload::Bytes("early"[..].into()));
    pair.filter = None;
    pair.net.deliver(SERVER, in_one_piece(&with_data));
    let response = pair.last[SERVER].clone().unwrap();
    let view = PacketView::new(&response.header, response.transport_len()).unwrap();
    let dropped = view.options().find_map(|o| match o.unwrap() {
        OptionRef::DataDropped(blocks) => Some(blocks.to_vec()),
        _ => None,
    });
    assert_eq!(dropped, Some(vec![0x80]), "Drop Code 0, one packet");
    pair.pass(ms(100));
    exchange(&mut pair);
    assert_eq!(pair.stats(SERVER).counters.drops.protocol_constraints, 1);
}

#[test]
fn message_without_room_for_the_cookie_waits_for_the_server() {
    let mut pair = starting(8, server(InitCookies::Always));
    let mps = pair.stats(CLIENT).max_message_size;
    pair.send(CLIENT, &vec![7; mps]);
    pair.pass(ms(500));
    assert_eq!(pair.received(SERVER), [vec![7; mps]]);
}

#[test]
fn a_client_that_closes_at_once_is_served_too() {
    let mut pair = starting(9, server(InitCookies::Always));
    let mut had_first_ack = false;
    // The client closes in PARTOPEN, and its first Ack is lost.
    pair.filter = Some(Box::new(move |from, d| {
        let view = PacketView::new(&d.header, d.transport_len()).unwrap();
        let is_first_ack = from == CLIENT && view.service_code().is_none() && !had_first_ack;
        had_first_ack |= is_first_ack;
        !is_first_ack
    }));
    pair.pass(ms(30));
    assert_eq!(pair.state(CLIENT), Some(State::PartOpen));
    pair.close(CLIENT);
    pair.pass(Duration::from_secs(2));
    assert_eq!(pair.state(CLIENT), Some(State::TimeWait));
    assert_eq!(pair.end_reason(CLIENT), Some(CloseReason::LocalClose));
}

#[test]
fn client_waits_while_the_backlog_is_full() {
    let listen = ListenConfig { backlog: 1, ..server(InitCookies::Always) };
    let mut net = Net::new(10);
    let listener = net.ends[SERVER].listen(None, PORT, listen).unwrap();
    let (now, options) = (net.now, connect_options(ConnectionConfig::default()));
    let ids = [0; 2].map(|_| net.ends[CLIENT].connect(now, options.clone()).unwrap());
    net.run(ms(100));
    let states = |net: &Net| ids.map(|id| net.ends[CLIENT].state(id).unwrap());
    assert_eq!(states(&net), [State::Open, State::PartOpen]);
    let stats = net.ends[SERVER].endpoint_stats();
    assert_eq!((stats.connections, stats.too_busy), (1, 1));
    // A third is refused at once.
    let third = net.ends[CLIENT].connect(net.now, options).unwrap();
    net.run(ms(50));
    assert_eq!(net.ends[CLIENT].state(third), Some(State::TimeWait));
    assert!(net.ends[SERVER].accept(listener).is_some());
    net.run(Duration::from_secs(2));
    assert_eq!(states(&net), [State::Open; 2]);
}

/// Requests of a flood, each from its own address.
fn flood_request(like: &Datagram, n: u32) -> Datagram {
    let (kind, seq, _) = numbers(like);
    let src = std::net::Ipv4Addr::from(0x0b00_0000 + n);
    let like = Datagram { src: (src, 0).into(), ..like.clone() };
    finished(
        &like,
        &udccp_wire::Header {
            kind,
            seq: seq.add(u64::from(n)),
            ..PacketView::new(&like.header, like.transport_len()).unwrap().header()
        },
        &[],
        Payload::EMPTY,
    )
}

fn connects(net: &mut Net, listener: ListenerId) -> Option<ConnectionId> {
    let options = connect_options(ConnectionConfig::default());
    let id = net.ends[CLIENT].connect(net.now, options).unwrap();
    net.run(ms(100));
    while net.ends[CLIENT].poll_event().is_some_and(|e| e.kind != EventKind::Connected) {}
    (net.ends[CLIENT].state(id) == Some(State::Open)).then_some(())?;
    net.ends[SERVER].accept(listener)
}

#[test]
fn request_flood_takes_no_memory_and_clients_still_connect() {
    // Without optimisation, fewer requests show the same in less time.
    let requests: u32 = if cfg!(debug_assertions) { 40_000 } else { 1_000_000 };
    let between = requests / 10;
    let mut net = Net::new(11);
    let listen = ListenConfig { backlog: 128, ..server(InitCookies::UnderLoad) };
    let listener = net.ends[SERVER].listen(None, PORT, listen).unwrap();
    let options = connect_options(ConnectionConfig::default());
    net.ends[CLIENT].connect(net.now, options).unwrap();
    net.filter = Some(Box::new(|from, _| from == SERVER));
    net.drain();
    let like = net.last[CLIENT].clone().unwrap();
    net.filter = None;
    let mut connected = 0;
    for n in 0..requests {
        net.now += Duration::from_micros(1);
        let now = net.now;
        net.ends[SERVER].handle_datagram(now, flood_request(&like, n));
        while net.ends[SERVER].poll_transmit(now).is_some() {}
        if n % between == between - 1 {
            connected += u32::from(connects(&mut net, listener).is_some());
        }
    }
    assert_eq!(connected, 10);
    let stats = net.ends[SERVER].endpoint_stats();
    // Half of the backlog, and those that connected, finally including the first client.
    let connected = connected + 1;
    assert_eq!(stats.connections, 64 + connected as usize);
    assert_eq!(stats.timewaits, 0);
    assert_eq!(stats.cookies_sent, u64::from(requests - 64 + connected));
    assert_eq!(stats.cookies_taken, u64::from(connected));
    let forged = HeaderKind::Ack { ack: numbers(&like).1 };
    let ack = forge_with(&like, forged, numbers(&like).1, &[], Payload::EMPTY);
    net.deliver(SERVER, ack);
    assert_eq!(net.ends[SERVER].endpoint_stats().connections, 64 + connected as usize);
}
