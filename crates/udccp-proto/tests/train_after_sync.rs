//! The packets that follow a control packet in a train are those that would be sent without trains.

mod common;

use common::packet::forge;
use common::trains;
use udccp_base::{Datagram, Instant, Machine as _, Message, Payload};
use udccp_proto::ccid::Ccid2Config;
use udccp_proto::{
    ConnectOptions, ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, ListenConfig,
};
use udccp_wire::{Header, HeaderKind, PacketType, PacketView, ServiceCode};

const NOW: Instant = Instant::from_nanos(1_000_000_000);

/// Both ends of an open connection over UDP, and the last packet of each.
struct OpenConnection {
    ends: [Endpoint; 2],
    ids: [ConnectionId; 2],
    last: [Datagram; 2],
}

impl OpenConnection {
    /// Without ECN, so that packets of all types have one codepoint and may share a train.
    fn open() -> Self {
        let (service, remote_port) = (ServiceCode(42), 5001);
        // Avoids acknowledgements of acknowledgements, which are sent twice per window.
        let initial_window = udccp_cc::InitialWindow::Packets(100);
        let ccid2 = Ccid2Config { initial_window, ..Ccid2Config::default() };
        let config = ConnectionConfig { ecn: false, ccid2, ..ConnectionConfig::default() };
        let mut ends = [1, 2].map(|n| Endpoint::new(EndpointConfig::new([n; 32])));
        let listen =
            ListenConfig { connection: config.clone().into(), ..ListenConfig::new(service) };
        let listener = ends[1].listen(None, remote_port, listen).unwrap();
        let [local, remote] = [1, 2].map(|host| ([10, 0, 0, host], 6511).into());
        let (local_port, config) = (Some(40_000), config.into());
        let options = ConnectOptions { local, local_port, remote, remote_port, service, config };
        let id = ends[0].connect(NOW, options).unwrap();
        let (mut last, mut accepted) = ([None, None], None);
        for from in [0, 1].into_iter().cycle().take(12) {
            if from == 0 && accepted.is_some() {
                ends[0].send(NOW, id, Message::new(Payload::Zeros(4))).unwrap();
            }
            while let Some(d) = ends[from].poll_transmit(NOW) {
                last[from] = Some(d.clone());
                ends[1 - from].handle_datagram(NOW, d);
            }
            accepted = accepted.or_else(|| ends[1].accept(listener));
        }
        Self { ends, ids: [id, accepted.unwrap()], last: last.map(Option::unwrap) }
    }

    /// The server acknowledges everything, and that packet is lost. Then a message arrives whose
    /// acknowledgement may be delayed.
    fn delay_an_acknowledgement(&mut self) {
        self.ends[1].send(NOW, self.ids[1], Message::new(Payload::Zeros(4))).unwrap();
        while let Some(d) = self.ends[1].poll_transmit(NOW) {
            self.last[1] = d;
        }
        self.ends[0].send(NOW, self.ids[0], Message::new(Payload::Zeros(4))).unwrap();
        self.last[0] = self.ends[0].poll_transmit(NOW).unwrap();
        self.ends[1].handle_datagram(NOW, self.last[0].clone());
        assert!(self.ends[1].poll_transmit(NOW).is_none());
    }
}

fn header(d: &Datagram) -> Header {
    PacketView::new(&d.header, d.transport_len()).unwrap().header()
}

#[test]
fn data_after_a_sync_ack_carries_the_due_acknowledgement() {
    let mut both = OpenConnection::open();
    both.delay_an_acknowledgement();
    let [theirs, ours] = [0, 1].map(|end| header(&both.last[end]).seq);
    let sync = forge(&both.last[0], HeaderKind::Sync { ack: ours }, theirs.next(), &[]);
    let server = &mut both.ends[1];
    server.handle_datagram(NOW, sync);
    // Short enough to follow a SyncAck in a train.
    for _ in 0..2 {
        server.send(NOW, both.ids[1], Message::new(Payload::Zeros(4))).unwrap();
    }
    let mut alone = server.clone();
    let one_by_one: Vec<_> = std::iter::from_fn(|| alone.poll_transmit(NOW)).collect();
    let types: Vec<_> = one_by_one.iter().map(|d| header(d).packet_type()).collect();
    assert_eq!(types[..2], [PacketType::SyncAck, PacketType::DataAck]);
    let mut in_trains = Vec::new();
    loop {
        let train = trains::poll_train(server, NOW);
        if train.is_empty() {
            break;
        }
        in_trains.extend(train);
    }
    assert_eq!(in_trains, one_by_one);
}
