//! A connection in each of its states, and the packets that may arrive then.

use udccp_base::{Datagram, Duration, Payload};
use udccp_proto::ConnectionConfig;
use udccp_wire::{HeaderKind, PacketType, ResetCode, Seqno};

use super::packet::{forge_with, numbers, reversed};
use super::{CLIENT, Net, Pair, SERVER, service};

/// A connection in some state, and the end that is to receive a packet.
pub struct Scene {
    pub name: &'static str,
    pub pair: Pair,
    pub target: usize,
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

/// All states in which a packet can arrive, with the end that receives it.
pub fn scenes() -> Vec<Scene> {
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

pub fn kind_of(ty: PacketType, ack: Seqno) -> HeaderKind {
    HeaderKind::of(ty, ack, service()).with_reset(ResetCode::Closed, [0; 3])
}

/// The next packet of type `ty` that the peer of `target` would send.
pub fn next_packet(pair: &Pair, target: usize, ty: PacketType) -> Datagram {
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
