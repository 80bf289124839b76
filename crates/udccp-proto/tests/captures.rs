//! Captures of the Linux kernel as one side: its packets, with the numbers of the side that we
//! replace translated to ours.

mod common;

use std::collections::BTreeSet;
use std::net::SocketAddr;

use common::capture::{self, Captured};
use common::net::Buffers;
use common::packet::numbers;
use common::trains;
use udccp_base::{Datagram, Duration, Ecn, Instant, Machine, Message, Payload};
use udccp_proto::{
    CloseReason, ConnectOptions, ConnectionConfig, ConnectionId, Endpoint, EndpointConfig,
    ListenConfig, ListenerId, RecvError, State,
};
use udccp_wire::{
    HeaderKind, OptionRef, Packet, PacketType, PacketView, ResetCode, Seqno, ServiceCode,
};

const CCID2: [&str; 4] =
    ["ccid2-basic.pcap", "ccid2-ipv6.pcap", "ccid2-loss2.pcap", "ccid2-serverclose.pcap"];

/// Our endpoint in place of one side of a capture.
struct Stage {
    now: Instant,
    end: Endpoint,
    id: Option<ConnectionId>,
    /// Our packets so far.
    sent: Vec<Datagram>,
    /// The first sequence number of each side, in the capture or now.
    first: [Option<Seqno>; 2],
    ports: [u16; 2],
    addresses: [SocketAddr; 2],
}

impl Stage {
    fn drain(&mut self) {
        while let Some(d) = self.end.poll_transmit(self.now) {
            let (_, seq, _) = numbers(&d);
            self.first[1].get_or_insert(seq);
            self.sent.push(d);
        }
    }

    /// Passes in a packet of the other side.
    fn replay(&mut self, captured: &Captured) {
        let datagram = self.moved(captured);
        self.now += Duration::from_millis(10);
        self.end.handle_datagram(self.now, datagram);
        self.after_arrival();
    }

    /// Passes in packets that arrive together. Returns how many were processed at once.
    fn replay_merged(&mut self, captured: &[Captured], buffers: Buffers) -> usize {
        let mut at_once = 0;
        self.now += Duration::from_millis(10);
        let datagrams: Vec<_> = captured.iter().map(|c| self.moved(c)).collect();
        for buffer in trains::merged(datagrams) {
            match buffers {
                Buffers::AsTrains => {
                    at_once += trains::take_train(&mut self.end, self.now, &buffer);
                }
                Buffers::OneByOne => trains::take_one_by_one(&mut self.end, self.now, &buffer),
            }
        }
        self.after_arrival();
        at_once
    }

    /// A packet of the other side that acknowledges our packets instead of the captured ones, but
    /// never packets that we have not sent.
    fn moved(&self, captured: &Captured) -> Datagram {
        let mut packet = captured.packet.clone();
        if let ([Some(theirs), Some(ours)], Some(ack)) = (self.first, packet.header.kind.ack()) {
            let newest = numbers(self.sent.last().unwrap()).1;
            let moved = ours.add(ack.distance_from(theirs) as u64).min(newest);
            set_ack(&mut packet.header.kind, moved);
            if moved == newest {
                // The vector covers the captured numbers; we may have sent fewer.
                packet.options.retain(|o| !matches!(o.kind, 38 | 39));
            }
        }
        packet.header.dst_port = self.ports[0];
        packet.header.src_port = self.ports[1];
        Datagram {
            src: self.addresses[1],
            dst: self.addresses[0],
            protocol: Datagram::DCCP,
            ecn: Ecn::NotEct,
            header: packet.emit(&captured.pseudo).unwrap().into(),
            payload: Payload::EMPTY,
        }
    }

    fn after_arrival(&mut self) {
        if self.end.poll_timeout().is_some_and(|at| at <= self.now) {
            self.end.handle_timeout(self.now);
        }
        self.drain();
    }
}

fn set_ack(kind: &mut HeaderKind, new: Seqno) {
    match kind {
        HeaderKind::Request { .. } | HeaderKind::Data | HeaderKind::Listen { .. } => {}
        HeaderKind::Response { ack, .. }
        | HeaderKind::Ack { ack }
        | HeaderKind::DataAck { ack }
        | HeaderKind::CloseReq { ack }
        | HeaderKind::Close { ack }
        | HeaderKind::Reset { ack, .. }
        | HeaderKind::Sync { ack }
        | HeaderKind::SyncAck { ack } => *ack = new,
    }
}

fn linux_like() -> ConnectionConfig {
    ConnectionConfig::default()
}

/// Runs our client against the captured server.
fn play_client(name: &str, config: ConnectionConfig) -> (Stage, CloseOutcome) {
    let packets = capture::read(name);
    let request = packets.iter().find(|p| p.from_client).expect("a Request");
    let header = request.packet.header;
    let HeaderKind::Request { service } = header.kind else { panic!("no Request") };
    let (local, remote) = addresses(request);
    let mut end = Endpoint::new(EndpointConfig::new([7; 32]));
    let now = Instant::from_nanos(1_000_000);
    let options = ConnectOptions {
        local,
        local_port: Some(header.src_port),
        remote,
        remote_port: header.dst_port,
        service,
        config: config.into(),
    };
    let id = end.connect(now, options).unwrap();
    let mut stage = Stage {
        now,
        end,
        id: Some(id),
        sent: Vec::new(),
        first: [Some(header.seq), None],
        ports: [header.src_port, header.dst_port],
        addresses: [local, remote],
    };
    stage.drain();
    for captured in &packets {
        if !captured.from_client {
            stage.replay(captured);
            continue;
        }
        match captured.packet.header.packet_type() {
            PacketType::Data | PacketType::DataAck => {
                let data = Payload::Zeros(captured.packet.payload.len() as u32);
                let _ = stage.end.send(stage.now, id, Message::new(data));
            }
            PacketType::Close => stage.end.close(stage.now, id),
            _ => {}
        }
        stage.drain();
    }
    let outcome = stage.end.recv(stage.now, id).err();
    (stage, outcome)
}

type CloseOutcome = Option<RecvError>;

fn addresses(captured: &Captured) -> (SocketAddr, SocketAddr) {
    let at = |ip| SocketAddr::new(ip, 0);
    (at(captured.pseudo.src), at(captured.pseudo.dst))
}

#[test]
fn our_client_completes_each_captured_connection() {
    for name in CCID2 {
        let (stage, outcome) = play_client(name, linux_like());
        let stats = stage.end.stats(stage.id.unwrap()).unwrap();
        let drops = stats.counters.drops;
        assert_eq!((drops.bad_options, drops.unexpected_type), (0, 0), "{name}");
        assert_eq!(stage.end.endpoint_stats().bad_checksum, 0, "{name}");
        assert!(stats.counters.data_packets_sent > 3, "{name}: {stats:?}");
        assert!(stats.counters.packets_received > 3, "{name}");
        let orderly = matches!(outcome, Some(RecvError::Closed(r)) if r.is_orderly());
        let unfinished = outcome.is_none() && stats.state == State::Open;
        assert!(orderly || unfinished, "{name}: {outcome:?} {stats:?}");
    }
}

/// The datagrams sent and the endpoint's state, except for the setting that disables the fast path.
fn observable(stage: &Stage) -> (&[Datagram], String) {
    let known = format!("{:?}", stage.end);
    (&stage.sent, known.replace("long_way_only: true", "long_way_only: false"))
}

#[test]
fn fast_and_slow_path_agree_on_every_capture() {
    let config = |long_way_only| ConnectionConfig { long_way_only, ..linux_like() };
    for name in CCID2 {
        let [short, long] = [false, true].map(|long| play_client(name, config(long)).0);
        assert_eq!(observable(&short), observable(&long), "{name}, client");
        let [short, long] = [false, true].map(|long| play_server(name, config(long)).0);
        assert_eq!(observable(&short), observable(&long), "{name}, server");
    }
}

#[test]
fn our_client_is_told_of_a_bad_service_code() {
    let (_, outcome) = play_client("ccid2-badservice.pcap", linux_like());
    let (code, data) = (ResetCode::BadServiceCode, [0; 3]);
    assert_eq!(outcome, Some(RecvError::Closed(CloseReason::PeerReset { code, data })));
}

/// The client's packets between two packets of the server arrive in buffers. Their checksums are
/// not verified again.
#[test]
fn captured_trains_equal_single_packets() {
    for (name, config, least) in [
        ("ccid2-basic.pcap", linux_like(), 0),
        ("ccid2-loss2.pcap", linux_like(), 0),
        ("ccid3-basic.pcap", ccid3(), 30),
    ] {
        let [trains, packets] = [Buffers::AsTrains, Buffers::OneByOne].map(|buffers| {
            let (mut stage, _) = server_stage(name, config.clone(), true);
            let captured = capture::read(name);
            let mut at_once = 0;
            for run in captured.chunk_by(|a, b| a.from_client == b.from_client) {
                if run[0].from_client {
                    at_once += stage.replay_merged(run, buffers);
                }
            }
            (stage, at_once)
        });
        assert_eq!(observable(&trains.0), observable(&packets.0), "{name}");
        assert!(trains.1 >= least, "{name}: {} taken at once", trains.1);
    }
}

/// Our server in place of the captured one.
fn server_stage(
    name: &str,
    connection: ConnectionConfig,
    receive_checksum_offload: bool,
) -> (Stage, ListenerId) {
    let packets = capture::read(name);
    let request = packets.iter().find(|p| p.from_client).unwrap();
    let response = packets.iter().find(|p| !p.from_client).unwrap();
    let header = request.packet.header;
    let config = EndpointConfig { receive_checksum_offload, ..EndpointConfig::new([8; 32]) };
    let mut end = Endpoint::new(config);
    let listen =
        ListenConfig { connection: connection.into(), ..ListenConfig::new(ServiceCode(42)) };
    let listener = end.listen(None, header.dst_port, listen).unwrap();
    let (remote, local) = addresses(request);
    let stage = Stage {
        now: Instant::from_nanos(1_000_000),
        end,
        id: None,
        sent: Vec::new(),
        first: [Some(response.packet.header.seq), None],
        ports: [header.dst_port, header.src_port],
        addresses: [local, remote],
    };
    (stage, listener)
}

/// Runs our server against the captured client.
fn play_server(name: &str, connection: ConnectionConfig) -> (Stage, ConnectionId, u64) {
    let packets = capture::read(name);
    let (mut stage, listener) = server_stage(name, connection, false);
    let mut accepted = None;
    for captured in packets.iter().filter(|p| p.from_client) {
        stage.replay(captured);
        if accepted.is_none() {
            accepted = stage.end.accept(listener);
        }
    }
    let id = accepted.unwrap_or_else(|| panic!("{name}: no connection"));
    let sent_data =
        |p: &&Captured| p.from_client && p.packet.header.kind.packet_type().carries_app_data();
    let messages = packets.iter().filter(sent_data).count() as u64 - 1;
    (stage, id, messages)
}

#[test]
fn our_server_completes_captured_handshakes_and_feature_requests() {
    for name in CCID2 {
        let (stage, id, messages) = play_server(name, linux_like());
        let stats = stage.end.stats(id).unwrap();
        assert_eq!(stats.counters.drops.bad_options, 0, "{name}");
        assert!(stats.counters.data_packets_received + 2 >= messages, "{name}: {stats:?}");
        assert!(stats.counters.acks_sent > 1, "{name}");
    }
}

fn ccid3() -> ConnectionConfig {
    ConnectionConfig { tx_ccids: vec![3], rx_ccids: vec![3], ..ConnectionConfig::default() }
}

#[test]
fn our_ccid_3_sender_takes_the_kernels_feedback() {
    let (stage, _) = play_client("ccid3-basic.pcap", ccid3());
    let stats = stage.end.stats(stage.id.unwrap()).unwrap();
    assert_eq!((stats.tx_ccid, stats.rx_ccid), (Some(3), Some(3)));
    assert_eq!(stats.counters.drops.bad_options, 0);
    assert!(stats.counters.data_packets_acked > 10, "{stats:?}");
    assert_eq!(stats.loss_event_rate, Some(0.0));
}

#[test]
fn our_ccid_3_receiver_answers_the_kernels_data_with_what_it_reads() {
    let (stage, id, messages) = play_server("ccid3-basic.pcap", ccid3());
    let stats = stage.end.stats(id).unwrap();
    assert_eq!((stats.tx_ccid, stats.rx_ccid), (Some(3), Some(3)));
    assert_eq!(stats.counters.drops.bad_options, 0);
    assert!(stats.counters.data_packets_received + 2 >= messages, "{stats:?}");
    // Linux expects these two on acknowledgements about a round-trip time apart.
    let reports = stage.sent.iter().filter(|d| {
        let view = PacketView::new(&d.header, d.transport_len()).unwrap();
        let options: Vec<_> = view.options().flatten().collect();
        options.iter().any(|o| matches!(o, OptionRef::ReceiveRate(_)))
            && options.iter().any(|o| matches!(o, OptionRef::LossEventRate(_)))
    });
    assert!((8..60).contains(&reports.count()));
}

#[test]
fn client_that_requires_ccid_3_is_refused_with_a_reason() {
    let packets = capture::read("ccid3-basic.pcap");
    let request = packets.iter().find(|p| p.from_client).unwrap();
    let header = request.packet.header;
    let HeaderKind::Request { service } = header.kind else { panic!("no Request") };
    let mut end = Endpoint::new(EndpointConfig::new([9; 32]));
    let listen = ListenConfig { connection: linux_like().into(), ..ListenConfig::new(service) };
    end.listen(None, header.dst_port, listen).unwrap();
    let (remote, local) = addresses(request);
    let mut stage = Stage {
        now: Instant::from_nanos(1_000_000),
        end,
        id: None,
        sent: Vec::new(),
        first: [None, None],
        ports: [header.dst_port, header.src_port],
        addresses: [local, remote],
    };
    stage.replay(request);
    let (kind, _, _) = numbers(&stage.sent[0]);
    // The kernel requests Mandatory features of CCID 3, which a server without CCID 3 cannot have.
    assert!(matches!(kind, HeaderKind::Reset { .. } | HeaderKind::Response { .. }), "{kind:?}");
}

/// The Confirms of a packet: option type, feature and value.
fn confirmed(packet: &Packet) -> BTreeSet<(u8, u8, Option<u8>)> {
    let confirms = packet.options.iter().filter(|o| matches!(o.kind, 33 | 35));
    confirms.map(|o| (o.kind, o.data[0], o.data.get(1).copied())).collect()
}

fn parsed(d: &Datagram) -> Packet {
    let mut all = d.header.to_vec();
    all.extend_from_slice(&d.payload.to_bytes());
    Packet::parse(&all, None).unwrap()
}

fn settings(name: &str) -> ConnectionConfig {
    let ccids = if name.starts_with("ccid3") { vec![3, 2] } else { vec![2, 3] };
    let rx_ccids = ccids.clone();
    ConnectionConfig { tx_ccids: ccids, rx_ccids, ..ConnectionConfig::default() }
}

const HANDSHAKES: [&str; 5] = [
    "ccid2-basic.pcap",
    "ccid2-ipv6.pcap",
    "ccid2-loss2.pcap",
    "ccid2-serverclose.pcap",
    "ccid3-basic.pcap",
];

#[test]
fn our_server_confirms_what_the_kernels_server_confirmed() {
    for name in HANDSHAKES {
        let packets = capture::read(name);
        let theirs = packets.iter().find(|p| !p.from_client).expect("a Response");
        let (stage, ..) = play_server(name, settings(name));
        let (ours, theirs) = (confirmed(&parsed(&stage.sent[0])), confirmed(&theirs.packet));
        assert!(!theirs.is_empty(), "{name}");
        let missing: Vec<_> = theirs.difference(&ours).collect();
        assert!(missing.is_empty(), "{name}: the kernel confirms {missing:?}, we {ours:?}");
    }
}

#[test]
fn our_client_agrees_to_what_the_kernels_client_agreed_to() {
    for name in HANDSHAKES {
        let packets = capture::read(name);
        // The Confirms that either client sends until it is in OPEN.
        let theirs: BTreeSet<_> =
            packets.iter().filter(|p| p.from_client).flat_map(|p| confirmed(&p.packet)).collect();
        let (stage, _) = play_client(name, settings(name));
        let ours: BTreeSet<_> = stage.sent.iter().flat_map(|d| confirmed(&parsed(d))).collect();
        assert!(!theirs.is_empty(), "{name}");
        // The Sequence Windows of the kernel's server depend on its client, which we replace.
        let missing: Vec<_> =
            theirs.difference(&ours).filter(|(_, feature, _)| !matches!(feature, 3 | 5)).collect();
        assert!(missing.is_empty(), "{name}: the kernel confirms {missing:?}, we {ours:?}");
    }
}

#[test]
fn both_roles_come_to_the_values_of_the_capture() {
    for name in HANDSHAKES {
        let ccid = if name.starts_with("ccid3") { 3 } else { 2 };
        let (client, _) = play_client(name, settings(name));
        let (server, id, _) = play_server(name, settings(name));
        for (stage, id) in [(&client, client.id.unwrap()), (&server, id)] {
            let stats = stage.end.stats(id).unwrap();
            assert_eq!((stats.tx_ccid, stats.rx_ccid), (Some(ccid), Some(ccid)), "{name}");
            // The kernel declares itself ECN Incapable, so no packet to it may be ECN-capable.
            assert!(stage.sent.iter().skip(2).all(|d| d.ecn == Ecn::NotEct), "{name}");
            let vectors = stage
                .sent
                .iter()
                .filter(|d| parsed(d).options.iter().any(|o| matches!(o.kind, 38 | 39)));
            assert!(ccid == 3 || vectors.count() > 0, "{name}: CCID 2 has Ack Vectors");
        }
    }
}
