//! In every state, every packet type with numbers inside and outside the windows arrives: single
//! packets and every pair. Then the peer is silent. Nothing panics, and within the time of all
//! timers the connection is open or gone.

mod common;

use std::collections::BTreeMap;

use common::packet::{finished, numbers};
use common::scenes::{Scene, kind_of, next_packet, scenes};
use common::{CLIENT, Net, Pair, SERVER};
use udccp_base::{Datagram, Duration, Instant, Machine, Message, Payload};
use udccp_proto::ccid::CcidRegistry;
use udccp_proto::{ConnectionConfig, ConnectionId, Endpoint, ListenerId, State};
use udccp_wire::{Header, PacketType, PacketView, Seqno};

/// The sum of a handshake (8 min), all retries of a Close (about 3 min) and TIMEWAIT (4 min).
const BOUND: Duration = Duration::from_secs(1000);

/// Limit of wake-ups within the bound; an idle open connection has few.
const WAKES: usize = 300;

/// An endpoint in some state, and the numbers that its peer would use.
#[derive(Clone)]
struct Place {
    name: &'static str,
    now: Instant,
    end: Endpoint,
    id: Option<ConnectionId>,
    listener: ListenerId,
    like: Datagram,
    header: Header,
    ack: Seqno,
}

/// The kind of a packet's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbers {
    Valid,
    SeqOutside,
    AckOutside,
    BothOutside,
}

const NUMBERS: [Numbers; 4] =
    [Numbers::Valid, Numbers::SeqOutside, Numbers::AckOutside, Numbers::BothOutside];

impl Place {
    fn of(scene: Scene) -> Self {
        let Scene { name, pair, target } = scene;
        let like = next_packet(&pair, target, PacketType::Sync);
        let header = PacketView::new(&like.header, like.transport_len()).unwrap().header();
        let ack = pair.last[target].as_ref().map_or(Seqno::ZERO, |d| numbers(d).1);
        let (now, id, listener) = (pair.now, pair.ids[target], pair.listener);
        Self { name, now, end: pair.ends[target].clone(), id, listener, like, header, ack }
    }

    /// The `nth` packet of the peer.
    fn packet(&self, nth: u64, ty: PacketType, how: Numbers) -> Datagram {
        let far = 1 << 40;
        let (mut seq, mut ack) = (self.header.seq.add(nth), self.ack);
        if matches!(how, Numbers::SeqOutside | Numbers::BothOutside) {
            seq = seq.add(far);
        }
        if matches!(how, Numbers::AckOutside | Numbers::BothOutside) {
            ack = ack.add(far);
        }
        let data = matches!(ty, PacketType::Data | PacketType::DataAck);
        let payload = if data { Payload::Zeros(3) } else { Payload::EMPTY };
        let header = Header { seq, kind: kind_of(ty, ack), ..self.header };
        finished(&self.like, &header, &[], payload)
    }

    /// Passes in these packets, then lets time pass. Returns the final state.
    fn walk(&self, packets: &[&Datagram]) -> Result<Option<State>, String> {
        let (mut end, mut now, mut id) = (self.end.clone(), self.now, self.id);
        for &packet in packets {
            end.handle_datagram(now, packet.clone());
            drain(&mut end, now)?;
            id = id.or_else(|| end.accept(self.listener));
            now += Duration::from_millis(1);
        }
        let until = now + BOUND;
        for _ in 0..WAKES {
            let Some(at) = end.poll_timeout().filter(|at| *at <= until) else {
                return settled(&end, id);
            };
            now = now.max(at);
            end.handle_timeout(now);
            drain(&mut end, now)?;
        }
        Err("the endpoint does not come to rest".into())
    }
}

fn drain(end: &mut Endpoint, now: Instant) -> Result<(), String> {
    for _ in 0..100 {
        if end.poll_transmit(now).is_none() {
            if end.stalled(now).is_some() {
                return Err("a message waits for nothing".into());
            }
            while end.poll_event().is_some() {}
            return Ok(());
        }
    }
    Err("the endpoint never stops talking".into())
}

/// Open or gone. A server's connection that was never accepted appears only in the count.
fn settled(end: &Endpoint, id: Option<ConnectionId>) -> Result<Option<State>, String> {
    let state = id.and_then(|id| end.state(id));
    let is_held = id.is_none() && end.endpoint_stats().connections > 0;
    let is_settled = matches!(state, None | Some(State::Open | State::Closed)) && !is_held;
    if is_settled { Ok(state) } else { Err(format!("the connection hangs in {state:?}")) }
}

fn places() -> Vec<Place> {
    scenes().into_iter().map(Place::of).collect()
}

fn packets(place: &Place, nth: u64) -> Vec<(PacketType, Numbers, Datagram)> {
    let all = PacketType::ALL.into_iter().flat_map(|ty| NUMBERS.map(|how| (ty, how)));
    all.map(|(ty, how)| (ty, how, place.packet(nth, ty, how))).collect()
}

//= 4340-8.5-1 test
#[test]
fn every_packet_in_every_state_leads_to_open_or_to_the_end() {
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for place in places() {
        for (ty, how, packet) in packets(&place, 0) {
            let end = place.walk(&[&packet]);
            let end = end.unwrap_or_else(|e| panic!("{} + {ty} {how:?}: {e}", place.name));
            let end = end.map_or("gone".to_owned(), |s| s.to_string());
            *ends.entry(format!("{:17} then {end}", place.name)).or_default() += 1;
        }
    }
    let table: Vec<String> = ends.iter().map(|(k, n)| format!("{n:3} x {k}")).collect();
    insta::assert_snapshot!(table.join("\n"));
}

#[test]
fn every_pair_of_packets_in_every_state_leads_to_open_or_to_the_end() {
    let mut walks = 0;
    for place in places() {
        let second = packets(&place, 1);
        for (ty, how, one) in packets(&place, 0) {
            for (ty_2, how_2, two) in &second {
                if let Err(e) = place.walk(&[&one, two]) {
                    panic!("{} + {ty} {how:?} + {ty_2} {how_2:?}: {e}", place.name);
                }
                walks += 1;
            }
        }
    }
    assert_eq!(walks, places().len() * 44 * 44);
}

/// The client or the server in OPEN with this CCID, after it sent once and received `heard`
/// messages.
fn listener(ccid: u8, target: usize, heard: usize) -> Place {
    let net = Net::with_ccids(7, CcidRegistry::with_experiments());
    let (tx_ccids, rx_ccids) = (vec![ccid], vec![ccid]);
    let config = ConnectionConfig { tx_ccids, rx_ccids, ..ConnectionConfig::default() };
    let mut pair = Pair::connected_with(net, config);
    pair.send(target, b"hello");
    for _ in 0..heard {
        pair.pass(Duration::from_millis(5));
        pair.send(1 - target, b"hello");
        pair.received(target);
    }
    pair.pass(Duration::from_secs(1));
    Place::of(Scene { name: "OPEN", pair, target })
}

#[test]
fn messages_leave_after_any_packet_under_every_ccid() {
    for (ccid, heard) in [2, 3, 4, 249, 250].into_iter().flat_map(|c| [(c, 0), (c, 200)]) {
        for target in [CLIENT, SERVER] {
            let place = listener(ccid, target, heard);
            for (ty, how, packet) in packets(&place, 0) {
                let mut after = place.clone();
                after.end.handle_datagram(after.now, packet);
                let told = drain(&mut after.end, after.now);
                let (id, message) = (after.id.unwrap(), Message::new(Payload::Zeros(100)));
                let _ = after.end.send(after.now, id, message);
                let end = told.and_then(|()| after.walk(&[]));
                let end =
                    end.unwrap_or_else(|e| panic!("CCID {ccid}, {heard} + {ty} {how:?}: {e}"));
                assert!(matches!(end, None | Some(State::Open | State::Closed)));
            }
        }
    }
}
