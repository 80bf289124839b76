//! Every state with every packet type, valid as to numbers: what becomes of the state, and what is
//! sent. One snapshot, readable as a table.

mod common;

use common::packet::{forge_with, numbers, reversed};
use common::{CLIENT, Net, Pair, SERVER, service};
use udccp_base::{Datagram, Duration, Payload};
use udccp_proto::{ConnectionConfig, State};
use udccp_wire::{HeaderKind, PacketType, PacketView, ResetCode, Seqno};

/// A connection brought to some state, and who is to receive the packet.
struct Scene {
    name: &'static str,
    pair: Pair,
    target: usize,
}

fn quick() -> ConnectionConfig {
    ConnectionConfig { handshake_timestamps: false, ..ConnectionConfig::default() }
}

fn starting() -> Pair {
    Pair::starting(Net::new(7), quick(), quick())
}

fn open() -> Pair {
    let mut pair = Pair::connected_with(Net::new(7), quick());
    pair.send(SERVER, b"x");
    pair.pass(Duration::from_secs(1));
    pair
}

/// All states that a packet can meet, with the end that it meets.
fn scenes() -> Vec<Scene> {
    let scene = |name, target, prepare: fn() -> Pair| Scene { name, pair: prepare(), target };
    vec![
        scene("CLOSED", CLIENT, || {
            let mut pair = open();
            let (now, id) = (pair.now, pair.id(CLIENT));
            pair.ends[CLIENT].abort(now, id);
            pair.drain();
            pair
        }),
        scene("LISTEN", SERVER, || {
            let mut pair = starting();
            pair.mute(CLIENT);
            pair.drain();
            pair
        }),
        scene("REQUEST", CLIENT, || {
            let mut pair = starting();
            pair.mute(SERVER);
            pair.pass(Duration::from_millis(50));
            pair
        }),
        scene("RESPOND", SERVER, || {
            let mut pair = starting();
            pair.mute(SERVER);
            pair.pass(Duration::from_millis(50));
            pair
        }),
        scene("PARTOPEN", CLIENT, || {
            let mut pair = starting();
            let mut responses = 0;
            pair.filter = Some(Box::new(move |from, _| {
                responses += from;
                from == CLIENT || responses == 1
            }));
            pair.pass(Duration::from_millis(50));
            pair
        }),
        scene("OPEN (client)", CLIENT, open),
        scene("OPEN (server)", SERVER, open),
        scene("CLOSEREQ", SERVER, || {
            let mut pair = open();
            pair.mute(SERVER);
            pair.close(SERVER);
            pair.drain();
            pair
        }),
        scene("CLOSING (client)", CLIENT, || {
            let mut pair = open();
            pair.mute(CLIENT);
            pair.close(CLIENT);
            pair.drain();
            pair
        }),
        scene("TIMEWAIT", CLIENT, || {
            let mut pair = open();
            pair.close(CLIENT);
            pair.pass(Duration::from_millis(100));
            pair
        }),
    ]
}

fn kind_of(ty: PacketType, ack: Seqno) -> HeaderKind {
    let service = service();
    match ty {
        PacketType::Request => HeaderKind::Request { service },
        PacketType::Response => HeaderKind::Response { ack, service },
        PacketType::Data => HeaderKind::Data,
        PacketType::Ack => HeaderKind::Ack { ack },
        PacketType::DataAck => HeaderKind::DataAck { ack },
        PacketType::CloseReq => HeaderKind::CloseReq { ack },
        PacketType::Close => HeaderKind::Close { ack },
        PacketType::Reset => HeaderKind::Reset { ack, code: ResetCode::Closed, data: [0; 3] },
        PacketType::Sync => HeaderKind::Sync { ack },
        PacketType::SyncAck => HeaderKind::SyncAck { ack },
        PacketType::Listen => HeaderKind::Listen { service },
    }
}

/// The next packet of type `ty` that the peer of `target` would send.
fn next_packet(pair: &Pair, target: usize, ty: PacketType) -> Datagram {
    let peer = 1 - target;
    let ours = pair.last[target].clone();
    let (like, seq) = match (&pair.last[peer], &ours) {
        (Some(d), _) => (d.clone(), numbers(d).1.next()),
        (None, Some(d)) => (reversed(d), Seqno::new(77)),
        (None, None) => unreachable!("somebody has said something"),
    };
    let ack = ours.map_or(Seqno::ZERO, |d| numbers(&d).1);
    let data = ty.carries_app_data() && ty != PacketType::Request && ty != PacketType::Response;
    let payload = if data { Payload::Zeros(3) } else { Payload::EMPTY };
    forge_with(&like, kind_of(ty, ack), seq, &[], payload)
}

fn types_sent(pair: &mut Pair, from: usize) -> String {
    use udccp_base::Machine;
    let now = pair.now;
    let mut types = Vec::new();
    while let Some(d) = pair.net.ends[from].poll_transmit(now) {
        let view = PacketView::new(&d.header, d.transport_len()).unwrap();
        let code = view.reset_code().map_or(String::new(), |c| format!("({c})"));
        types.push(format!("{}{code}", view.packet_type()));
    }
    types.join(", ")
}

//= 4340-8.5-1 test
#[test]
fn every_state_with_every_packet_type() {
    use udccp_base::Machine;
    let mut table = String::new();
    for ty in PacketType::ALL {
        for Scene { name, mut pair, target } in scenes() {
            let packet = next_packet(&pair, target, ty);
            let now = pair.now;
            pair.net.ends[target].handle_datagram(now, packet);
            let sent = types_sent(&mut pair, target);
            pair.collect();
            let state = pair.state(target).map_or("-".into(), |s: State| s.to_string());
            let line = format!("{name:17} + {:9}-> {state:9} {sent}", ty.name());
            table += line.trim_end();
            table.push('\n');
        }
        table.push('\n');
    }
    insta::assert_snapshot!(table);
}

#[test]
fn the_states_arrows_are_those_of_the_rfc() {
    let mut arrows = String::new();
    for from in State::ALL {
        let to: Vec<String> = from.successors().iter().map(|s| s.to_string()).collect();
        arrows += &format!("{from} -> {}\n", to.join(" "));
    }
    insta::assert_snapshot!(arrows, @r"
    CLOSED -> LISTEN REQUEST
    LISTEN -> CLOSED RESPOND
    REQUEST -> PARTOPEN CLOSED TIMEWAIT
    RESPOND -> OPEN CLOSED TIMEWAIT
    PARTOPEN -> OPEN CLOSING CLOSED TIMEWAIT
    OPEN -> CLOSEREQ CLOSING CLOSED TIMEWAIT
    CLOSEREQ -> CLOSING CLOSED TIMEWAIT
    CLOSING -> CLOSED TIMEWAIT
    TIMEWAIT -> CLOSED
    ");
}
