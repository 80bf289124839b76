//! A complete driver: two endpoints, a wire of 5 ms each way, and virtual time.
//!
//! `cargo run -p udccp-proto --example run_loop`

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};

use udccp_base::{Datagram, Duration, Instant, Machine, Message, Payload};
use udccp_proto::{
    ConnectOptions, ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, EventKind,
    ListenConfig, ListenerId,
};
use udccp_wire::ServiceCode;

const WIRE: Duration = Duration::from_millis(5);
const PORT: u16 = 5001;
const SERVICE: ServiceCode = ServiceCode(42);

/// Drives both endpoints until nothing is pending or `until` is reached.
fn run(ends: &mut [Endpoint; 2], app: &mut impl FnMut(Instant, usize, &mut Endpoint, EventKind)) {
    let until = Instant::ZERO + Duration::from_secs(10);
    let mut wire: [VecDeque<(Instant, Datagram)>; 2] = Default::default();
    let mut now = Instant::ZERO;
    loop {
        for me in 0..2 {
            while let Some(event) = ends[me].poll_event() {
                app(now, me, &mut ends[me], event.kind);
            }
            while let Some(datagram) = ends[me].poll_transmit(now) {
                wire[1 - me].push_back((now + WIRE, datagram));
            }
        }
        let arrivals = wire.iter().filter_map(|w| w.front()).map(|(at, _)| *at);
        let timers = ends.iter().filter_map(|end| end.poll_timeout());
        let Some(next) = arrivals.chain(timers).min().filter(|at| *at < until) else { break };
        now = now.max(next);
        for (me, arriving) in wire.iter_mut().enumerate() {
            while arriving.front().is_some_and(|(at, _)| *at <= now) {
                let (_, datagram) = arriving.pop_front().expect("looked at just now");
                ends[me].handle_datagram(now, datagram);
            }
            ends[me].handle_timeout(now);
        }
    }
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(192, 0, 2, host), 0))
}

fn connect(client: &mut Endpoint) -> ConnectionId {
    let options = ConnectOptions {
        local: address(1),
        local_port: None,
        remote: address(2),
        remote_port: PORT,
        service: SERVICE,
        config: ConnectionConfig::default().into(),
    };
    client.connect(Instant::ZERO, options).expect("a fresh endpoint has free ports")
}

#[expect(clippy::print_stdout, reason = "an example that shows its result")]
fn read_all(now: Instant, end: &mut Endpoint, id: Option<ConnectionId>) {
    while let Some(Ok(Some(payload))) = id.map(|id| end.recv(now, id)) {
        println!("{now}  received {:?}", payload.to_bytes());
    }
}

#[expect(clippy::print_stdout, reason = "an example that shows its result")]
fn main() {
    let mut client = Endpoint::new(EndpointConfig::new([1; 32]));
    let mut server = Endpoint::new(EndpointConfig::new([2; 32]));
    let listener: ListenerId =
        server.listen(None, PORT, ListenConfig::new(SERVICE)).expect("the port is free");
    let sending = connect(&mut client);
    let mut receiving = None;
    run(&mut [client, server], &mut |now, _, end, event| match event {
        EventKind::Connected => {
            println!("{now}  connected");
            let hello = Message::new(Payload::Bytes("hello".into()));
            end.send(now, sending, hello).expect("an empty queue takes a message");
            end.close(now, sending);
        }
        EventKind::Incoming(_) => {
            // Events of a connection start with `accept`; data that arrived before can be read now.
            receiving = end.accept(listener);
            read_all(now, end, receiving);
        }
        EventKind::Readable => read_all(now, end, receiving),
        EventKind::Closed(reason) => println!("{now}  closed: {reason}"),
        _ => {}
    });
}
