//! Nanoseconds per data packet delivered, for both endpoints together: data in one direction, its
//! acknowledgements in the other, over a link that holds a window of packets. The cost of the link
//! and the loop is included. `WINDOW=100 PACKETS=3000000` measures one window for longer.

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Instant as WallClock;

use udccp_base::{Datagram, Duration, Instant, Machine, Message, Payload};
use udccp_proto::ccid::Ccid2Config;
use udccp_proto::{
    ConnectOptions, ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, EventKind,
    ListenConfig,
};
use udccp_wire::ServiceCode;

/// Time from one departure to the next: 1500 bytes at 100 Mbit/s.
const SERIALISATION: Duration = Duration::from_micros(120);

struct Pump {
    now: Instant,
    ends: [Endpoint; 2],
    ids: [ConnectionId; 2],
    /// Both directions, in order of arrival.
    wires: [VecDeque<(Instant, Datagram)>; 2],
    one_way: Duration,
    link_free: Instant,
    delivered: u64,
}

impl Pump {
    /// Two endpoints connected by a link whose round-trip time holds `window` packets.
    fn new(window: u32) -> Self {
        let config = ConnectionConfig {
            ccid2: Ccid2Config { max_window: window, ..Ccid2Config::default() },
            ..ConnectionConfig::default()
        };
        let service: ServiceCode = "SC:perf".parse().unwrap();
        let mut ends = [1, 2].map(|n| Endpoint::new(EndpointConfig::new([n; 32])));
        let listen =
            ListenConfig { connection: config.clone().into(), ..ListenConfig::new(service) };
        let listener = ends[1].listen(None, 5001, listen).unwrap();
        let options = ConnectOptions {
            local: "10.0.0.1:0".parse().unwrap(),
            local_port: None,
            remote: "10.0.0.2:0".parse().unwrap(),
            remote_port: 5001,
            service,
            config: config.into(),
        };
        let id = ends[0].connect(Instant::ZERO, options).unwrap();
        let one_way = SERIALISATION * u64::from(window) / 2;
        let (wires, now) = ([VecDeque::new(), VecDeque::new()], Instant::ZERO);
        let ids = [id, id];
        let link_free = now;
        let mut pump = Self { now, ends, ids, wires, one_way, link_free, delivered: 0 };
        while pump.ids[1] == id && pump.ends[1].endpoint_stats().accepts == 0 {
            pump.step();
        }
        pump.ids[1] = pump.ends[1].accept(listener).unwrap();
        pump.read();
        pump
    }

    fn step(&mut self) {
        self.fill();
        for end in 0..2 {
            while let Some(d) = self.ends[end].poll_transmit(self.now) {
                let mut leaves = self.now;
                if end == 0 && !d.payload.is_empty() {
                    leaves = self.now.max(self.link_free);
                    self.link_free = leaves + SERIALISATION;
                }
                self.wires[end].push_back((leaves + self.one_way, d));
            }
        }
        let timers = self.ends.iter().filter_map(|e| e.poll_timeout());
        let arrivals = self.wires.iter().filter_map(|w| w.front().map(|(at, _)| *at));
        self.now = self.now.max(timers.chain(arrivals).min().expect("something goes on"));
        for end in 0..2 {
            while self.wires[end].front().is_some_and(|(at, _)| *at <= self.now) {
                let (_, d) = self.wires[end].pop_front().unwrap();
                self.ends[1 - end].handle_datagram(self.now, d);
            }
            if self.ends[end].poll_timeout().is_some_and(|at| at <= self.now) {
                self.ends[end].handle_timeout(self.now);
            }
        }
        while let Some(event) = self.ends[1].poll_event() {
            if event.kind == EventKind::Readable {
                self.read();
            }
        }
        while self.ends[0].poll_event().is_some() {}
    }

    fn read(&mut self) {
        while let Ok(Some(payload)) = self.ends[1].recv(self.now, self.ids[1]) {
            black_box(payload);
            self.delivered += 1;
        }
    }

    fn fill(&mut self) {
        let message = || Message::new(Payload::Zeros(1400));
        while self.ends[0].is_writable(self.ids[0]) {
            self.ends[0].send(self.now, self.ids[0], message()).unwrap();
        }
    }

    fn deliver(&mut self, packets: u64) {
        let until = self.delivered + packets;
        while self.delivered < until {
            self.step();
        }
    }
}

/// The value of an environment variable, if it is a number.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Processor time of this thread where the system provides it (Linux), which other load on the
/// machine affects less; otherwise the wall clock.
#[expect(clippy::disallowed_methods, reason = "a benchmark owns a clock")]
fn clock_nanos(start: WallClock) -> u64 {
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let spent = spent.and_then(|s| s.split_whitespace().next()?.parse().ok());
    spent.unwrap_or_else(|| WallClock::now().duration_since(start).as_nanos() as u64)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark owns a clock")]
#[expect(clippy::print_stdout, reason = "a benchmark prints its result")]
fn main() {
    let start = WallClock::now();
    let packets = number("PACKETS").unwrap_or(500_000);
    let windows = match number("WINDOW") {
        Some(window) => vec![window as u32],
        None => vec![10, 100, 1000, 10_000],
    };
    for window in windows {
        let mut pump = Pump::new(window);
        pump.deliver(u64::from(window) * 40 + 10_000);
        let before = clock_nanos(start);
        pump.deliver(packets);
        let nanos = (clock_nanos(start) - before) as f64 / packets as f64;
        let stats = pump.ends[0].stats(pump.ids[0]).unwrap();
        let (cwnd, c) = (stats.cwnd_packets.unwrap_or(0), stats.counters);
        let acks = c.acks_received as f64 / c.data_packets_sent as f64;
        println!(
            "cwnd {cwnd:6}: {nanos:6.1} ns for each data packet delivered, {acks:.2} acks each"
        );
    }
}
