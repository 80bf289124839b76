//! Amplification: bytes sent to an unproven address against bytes received from it, by UDP payload
//! as RFC 9000 section 8.1 counts.

use std::collections::BTreeSet;

use bytes::Bytes;
use udccp_base::{Datagram, Duration, Ecn, HeaderBytes, Instant, Machine, Payload, Seed};
use udccp_proto::{
    ConnectionConfig, Endpoint, EndpointConfig, InitCookies, ListenConfig, PmtuProbing,
};
use udccp_wire::PacketType::{
    self, Ack, Close, CloseReq, Data, DataAck, Request, Reset, Response, Sync, SyncAck,
};
use udccp_wire::{
    FeatureNumber, Header, HeaderKind, OptionRef, OptionValue, Packet, ResetCode, Seqno,
    option_kind as kind,
};

use crate::common::packet::{finished, in_one_piece};
use crate::common::pair::PORT;
use crate::common::{capture, listen_config, service};
use crate::spec_support::{Harness, parse, plain};

/// Most bytes sent for each byte received.
const LIMIT: usize = 3;

/// A server, and the bytes exchanged with one unproven address.
struct Server {
    end: Endpoint,
    now: Instant,
    received_bytes: usize,
    sent_bytes: usize,
    sent: Vec<Datagram>,
}

impl Server {
    fn new(config: &ConnectionConfig, init_cookies: InitCookies) -> Self {
        let mut end = Endpoint::new(EndpointConfig::new([9; 32]));
        let listen = ListenConfig { init_cookies, ..listen_config(config.clone()) };
        end.listen(None, PORT, listen).unwrap();
        let now = Instant::from_nanos(1_000_000_000);
        Self { end, now, received_bytes: 0, sent_bytes: 0, sent: Vec::new() }
    }

    fn deliver(&mut self, d: &Datagram) {
        self.take(d);
        self.drain();
    }

    /// Receives a datagram without sending yet.
    fn take(&mut self, d: &Datagram) {
        self.received_bytes += d.transport_len();
        self.end.handle_datagram(self.now, in_one_piece(d));
    }

    fn drain(&mut self) {
        while let Some(d) = self.end.poll_transmit(self.now) {
            self.sent_bytes += d.transport_len();
            self.sent.push(d);
            assert!(
                self.sent_bytes <= LIMIT * self.received_bytes,
                "{} of {}: {:?}",
                self.sent_bytes,
                self.received_bytes,
                { self.sent.iter().map(crate::common::packet::describe).collect::<Vec<_>>() }
            );
        }
    }

    /// Lets this much time pass, with all its timers.
    fn wait(&mut self, span: Duration) {
        let until = self.now + span;
        while let Some(at) = self.end.poll_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.end.handle_timeout(self.now);
            self.drain();
        }
        self.now = until;
    }
}

fn settings() -> Vec<ConnectionConfig> {
    let all = ConnectionConfig {
        tx_ccids: vec![2, 3, 4],
        rx_ccids: vec![2, 3, 4],
        pmtu_probing: Some(PmtuProbing::default()),
        keep_alive: Some(Duration::from_secs(5)),
        ..ConnectionConfig::default()
    };
    let most = ConnectionConfig {
        tx_ccids: vec![3],
        rx_ccids: vec![4, 3],
        short_seqnos: true,
        data_checksum: true,
        ndp_count: true,
        ecn: false,
        send_cscov: 9,
        min_cscov: 2,
        sequence_window: 5000,
        ..all.clone()
    };
    vec![ConnectionConfig::default(), plain(), all, most]
}

fn stranger() -> Datagram {
    let header = Header {
        src_port: 50_000,
        dst_port: PORT,
        ccval: 0,
        cscov: 0,
        x: true,
        seq: Seqno::new(77),
        kind: HeaderKind::Request { service: service() },
    };
    let like = Datagram {
        src: "10.0.0.1:6000".parse().unwrap(),
        dst: "10.0.0.2:6511".parse().unwrap(),
        protocol: Datagram::DCCP,
        ecn: Ecn::NotEct,
        header: HeaderBytes::default(),
        payload: Payload::EMPTY,
    };
    finished(&like, &header, &[], Payload::EMPTY)
}

fn packet(ty: PacketType, seq: u64, x: bool, options: &[OptionRef<'_>], data: &[u8]) -> Datagram {
    let like = stranger();
    let kind = HeaderKind::of(ty, Seqno::new(seq ^ 0x5555), service());
    let kind = kind.with_reset(ResetCode::Aborted, [0; 3]);
    let header = Header { x, seq: Seqno::new(seq), kind, ..parse(&like).header };
    finished(&like, &header, options, Payload::Bytes(Bytes::copy_from_slice(data)))
}

fn requests() -> Vec<Datagram> {
    use OptionRef::{ChangeL, ChangeR, Mandatory, SlowReceiver, Timestamp};
    let (ccid, unknown) = (FeatureNumber::CCID, FeatureNumber(77));
    let change = |value| ChangeR { feature: ccid, value };
    let all: [&[OptionRef<'_>]; 9] = [
        &[],
        &[Timestamp(1)],
        &[Mandatory, SlowReceiver, Mandatory],
        &[Mandatory, ChangeL { feature: unknown, value: &[] }],
        &[ChangeL { feature: unknown, value: &[] }, ChangeR { feature: unknown, value: &[] }],
        &[change(&[3, 2])],
        &[Mandatory, change(&[200])],
        &[ChangeL { feature: ccid, value: &[4, 3, 2] }, change(&[4, 3, 2]), Timestamp(9)],
        &[ChangeR { feature: FeatureNumber::SEND_ACK_VECTOR, value: &[1] }],
    ];
    let mut made: Vec<_> = all.iter().map(|o| packet(Request, 77, true, o, &[])).collect();
    made.push(packet(Request, 77, true, &[], b"x"));
    made.push(packet(Request, 77, true, &[Timestamp(1)], &[7; 300]));
    made
}

//= 4340-8.1.3-2 test
#[test]
fn an_unproven_address_gets_at_most_three_times_what_came_in_its_name() {
    for config in settings() {
        for cookies in [InitCookies::Never, InitCookies::Always, InitCookies::UnderLoad] {
            for request in requests() {
                let mut server = Server::new(&config, cookies);
                // Once, and then repeatedly; finally the server gives up by itself.
                for _ in 0..5 {
                    server.deliver(&request);
                    server.wait(Duration::from_millis(300));
                }
                assert!(!server.sent.is_empty(), "{}", parse(&request).header.packet_type());
                server.wait(Duration::from_secs(1200));
            }
        }
    }
}

#[test]
fn out_of_the_blue_answers_stay_below_three_times_the_bytes() {
    let types = [Request, Response, Data, Ack, DataAck, CloseReq, Close, Reset, Sync, SyncAck];
    for ty in types {
        for x in [true, false] {
            if !x && !matches!(ty, Data | Ack | DataAck) {
                continue;
            }
            let mut server = Server::new(&ConnectionConfig::default(), InitCookies::Never);
            let mut stray = packet(ty, 3000, x, &[], &[]);
            if ty == Request {
                // From another port.
                let mut bytes = stray.header.to_vec();
                bytes[3] ^= 1;
                stray.header = bytes.into();
            }
            server.deliver(&stray);
            server.wait(Duration::from_secs(60));
            assert_eq!(server.sent.len(), usize::from(ty != Reset), "{ty:?}");
        }
        // With a cookie that we did not issue.
        let mut server = Server::new(&ConnectionConfig::default(), InitCookies::Always);
        server.deliver(&packet(ty, 3000, true, &[OptionRef::InitCookie(&[1])], &[]));
    }
}

#[test]
fn no_mixture_of_packets_from_an_unproven_address_draws_more_than_three_times_their_bytes() {
    let types = [Request, Request, Data, Ack, DataAck, Close, Sync, SyncAck, Response];
    for (number, config) in settings().iter().enumerate() {
        for seed in 0..20 {
            let mut rng = Seed(seed).stream("mixture");
            let cookies = if rng.chance(0.5) { InitCookies::Always } else { InitCookies::Never };
            let mut server = Server::new(config, cookies);
            let known = requests();
            for n in 0..30 {
                let ty = types[rng.below(types.len() as u64) as usize];
                let d = match rng.chance(0.4) {
                    true => known[rng.below(known.len() as u64) as usize].clone(),
                    false => packet(
                        ty,
                        70 + rng.below(20) + n,
                        rng.chance(0.9) || !matches!(ty, Data | Ack | DataAck),
                        &[],
                        &[],
                    ),
                };
                server.deliver(&d);
                if rng.chance(0.3) {
                    server.wait(Duration::from_millis(rng.below(3000)));
                }
            }
            server.wait(Duration::from_secs(1200));
            assert!(!server.sent.is_empty(), "settings {number}, seed {seed}");
        }
    }
}

/// A driver whose socket is blocked continues to read, so waiting answers add up: a long Response
/// may leave no room for the Sync or SyncAck after it.
#[test]
fn answers_that_wait_together_are_at_most_three_times_what_came() {
    let (mut crowded, mut both) = (0, 0);
    for config in settings() {
        for request in requests() {
            for ty in [Data, Ack, Close, Sync, SyncAck] {
                for seq in [78, 9000] {
                    let mut server = Server::new(&config, InitCookies::Never);
                    server.take(&request);
                    server.take(&packet(ty, seq, true, &[], &[]));
                    server.drain();
                    let sent = server.sent.iter().map(|d| parse(d).header.packet_type());
                    let is_answered = sent.clone().any(|ty| matches!(ty, Sync | SyncAck));
                    if sent.clone().any(|ty| ty == Response) {
                        both += u32::from(is_answered);
                        crowded += u32::from(!is_answered);
                    }
                }
            }
        }
    }
    assert!(both > 0 && crowded > 0, "{both} with both answers, {crowded} with the Response");
}

/// A bare Request leaves little room for options in the Response.
#[test]
fn features_beyond_the_response_limit_are_negotiated_later() {
    let config = settings().pop().unwrap();
    let config = ConnectionConfig { tx_ccids: vec![2], rx_ccids: vec![2], ..config };
    let mut harness = Harness::listening(config);
    let response = harness.deliver(Request, &[], &[]);
    let mut sent = harness.deliver(Ack, &[], &[]);
    sent.extend(harness.wait(Duration::from_secs(2)));
    let about = |sent: &[Packet]| -> BTreeSet<u8> {
        let changes = |o: &&OptionValue| matches!(o.kind, kind::CHANGE_L | kind::CHANGE_R);
        sent.iter().flat_map(|p| &p.options).filter(changes).map(|o| o.data[0]).collect()
    };
    let all = [2, 3, 4, 6, 7, 8, 9].into();
    assert!(about(&response).len() < 4, "{:?}", about(&response));
    assert!(about(&sent).is_superset(&all), "{:?}", about(&sent));
}

/// The type and options of the answer to this Request, which also has this many bytes of data.
fn answer(
    config: &ConnectionConfig,
    cookies: InitCookies,
    d: &Datagram,
    rest: usize,
) -> (PacketType, Vec<OptionValue>) {
    let mut server = Server::new(config, cookies);
    let mut bytes = d.header.to_vec();
    bytes.extend(std::iter::repeat_n(7, rest));
    server.deliver(&Datagram { header: bytes.into(), ..d.clone() });
    let first = parse(&server.sent[0]);
    let is_news = |o: &OptionValue| !matches!(o.kind, kind::DATA_DROPPED | kind::INIT_COOKIE);
    let ty = first.header.packet_type();
    (ty, first.options.into_iter().filter(is_news).collect())
}

/// The Requests of real programs leave room for the whole answer.
#[test]
fn the_requests_of_linux_and_our_own_are_answered_in_full() {
    let like = stranger();
    let mut all = Vec::new();
    for name in ["ccid2-basic.pcap", "ccid3-basic.pcap"] {
        let captured = capture::read(name);
        let mut first = captured[0].packet.clone();
        assert_eq!(first.header.packet_type(), Request);
        first.header.dst_port = PORT;
        first.header.kind = HeaderKind::Request { service: service() };
        all.push(Datagram {
            header: first.emit(&captured[0].pseudo).unwrap().into(),
            ..like.clone()
        });
    }
    for config in settings() {
        let mut client = Endpoint::new(EndpointConfig::new([1; 32]));
        let options = udccp_proto::ConnectOptions {
            local: like.src,
            remote: like.dst,
            ..crate::common::connect_options(config)
        };
        let now = Instant::from_nanos(1_000_000_000);
        client.connect(now, options).unwrap();
        let request = client.poll_transmit(now).unwrap();
        // With a Timestamp, which is sent unless it is disabled.
        all.extend((request.transport_len() > 28).then_some(request));
    }
    let mut responses = 0;
    for (number, config) in settings().into_iter().enumerate() {
        // Lists of coverages are long, so they may be negotiated after the handshake.
        let config = ConnectionConfig { send_cscov: 0, min_cscov: 0, ..config };
        for request in &all {
            let full = answer(&config, InitCookies::Never, request, 500);
            responses += u32::from(full.0 == Response);
            // With a cookie this holds except for a server that negotiates every feature.
            let all = [InitCookies::Never, InitCookies::Always];
            for cookies in all.into_iter().take(if number < 3 { 2 } else { 1 }) {
                let sent = answer(&config, cookies, request, 0);
                assert_eq!(sent, full, "{} bytes, {cookies:?}", request.transport_len());
            }
        }
    }
    assert!(responses > 12, "only {responses} Requests were taken");
}
