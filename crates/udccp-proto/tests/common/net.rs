//! A network of two hosts with delay and seeded random loss, reordering, duplication and
//! corruption.

use std::collections::{BTreeMap, VecDeque};

use bytes::BytesMut;
use udccp_base::{Datagram, Duration, Ecn, Instant, Machine, Payload, QuickStart, Rng, Seed};
use udccp_proto::ccid::CcidRegistry;
use udccp_proto::{Endpoint, EndpointConfig};

use super::{packet, trains};

/// What the network does to datagrams, as probabilities.
#[derive(Clone, Copy, Debug, Default)]
pub struct Impairments {
    pub loss: f64,
    pub duplicate: f64,
    /// Delays a datagram by up to three times the delay.
    pub reorder: f64,
    /// A datagram takes a microsecond instead of the delay, and overtakes all others.
    pub overtake: f64,
    /// Flips one bit.
    pub corrupt: f64,
}

type Filter = Box<dyn FnMut(usize, &Datagram) -> bool>;

/// How endpoints receive the datagrams of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffers {
    AsTrains,
    OneByOne,
}

/// Two endpoints and the datagrams in flight between them.
pub struct Net {
    pub now: Instant,
    pub ends: [Endpoint; 2],
    pub delay: Duration,
    /// Minimum time between two datagrams in one direction.
    pub spacing: Duration,
    pub impairments: Impairments,
    /// Returns false for datagrams from host `.0` that are to be lost.
    pub filter: Option<Filter>,
    /// Removes all congestion marks.
    pub clears_marks: bool,
    /// Marks every ECN-capable datagram.
    pub marks_all: bool,
    /// Datagrams that arrive at the same time come in buffers. Endpoints receive and send whole
    /// buffers, or single datagrams.
    pub buffers: Option<Buffers>,
    /// Datagrams received together with others, and those sent so.
    pub taken_at_once: usize,
    pub sent_at_once: usize,
    /// The rest of the train that each host is sending.
    in_train: [VecDeque<Datagram>; 2],
    /// One line for each datagram sent, if enabled.
    pub trace: Option<Vec<String>>,
    pub sent: u64,
    /// The latest datagram that each host sent, lost or not.
    pub last: [Option<Datagram>; 2],
    travelling: BTreeMap<(Instant, u64), (usize, Datagram)>,
    /// Quick-Start options, by serial numbers of their packets. Routers do not change them.
    options: BTreeMap<u64, QuickStart>,
    /// The last such option sent.
    pub last_option: Option<QuickStart>,
    serial: u64,
    wire_free: [Instant; 2],
    rng: Rng,
    seed: u64,
}

impl Net {
    /// A network without impairments. Random numbers come from `seed`.
    pub fn new(seed: u64) -> Self {
        Self::with_ccids(seed, CcidRegistry::default())
    }

    /// A network between hosts with these CCIDs.
    pub fn with_ccids(seed: u64, ccids: CcidRegistry) -> Self {
        let end = |name| {
            let config = EndpointConfig::new(Seed(seed).stream(name).bytes32());
            Endpoint::new(EndpointConfig { ccids: ccids.clone(), ..config })
        };
        Self {
            now: Instant::from_nanos(1_000_000_000),
            ends: [end("client"), end("server")],
            delay: Duration::from_millis(10),
            spacing: Duration::ZERO,
            impairments: Impairments::default(),
            filter: None,
            clears_marks: false,
            marks_all: false,
            buffers: None,
            taken_at_once: 0,
            sent_at_once: 0,
            in_train: Default::default(),
            trace: None,
            sent: 0,
            last: [None, None],
            travelling: BTreeMap::new(),
            options: BTreeMap::new(),
            last_option: None,
            serial: 0,
            wire_free: [Instant::ZERO; 2],
            rng: Seed(seed).stream("network"),
            seed,
        }
    }

    /// Sends everything that the endpoints have ready.
    pub fn drain(&mut self) {
        for from in 0..2 {
            let mut said = 0;
            while let Some(d) = self.next_of(from) {
                said += 1;
                assert!(said < 1_000_000, "host {from} never stops talking");
                if let Some(option) = self.ends[from].poll_quick_start() {
                    self.options.insert(self.serial + 1, option);
                    self.last_option = Some(option);
                }
                self.put(from, d);
            }
            let stalled = self.ends[from].stalled(self.now);
            assert_eq!(stalled, None, "a message of host {from} waits for nothing");
        }
    }

    /// The next datagram that host `from` sends.
    fn next_of(&mut self, from: usize) -> Option<Datagram> {
        if self.buffers != Some(Buffers::AsTrains) {
            return self.ends[from].poll_transmit(self.now);
        }
        if self.in_train[from].is_empty() {
            self.in_train[from].extend(trains::poll_train(&mut self.ends[from], self.now));
            self.sent_at_once += self.in_train[from].len().saturating_sub(1);
        }
        self.in_train[from].pop_front()
    }

    /// Host `from` sends a datagram.
    pub fn put(&mut self, from: usize, mut d: Datagram) {
        self.sent += 1;
        self.last[from] = Some(d.clone());
        if self.clears_marks && d.ecn == Ecn::Ce {
            d.ecn = Ecn::Ect0;
        }
        if self.marks_all && d.ecn.is_capable() {
            d.ecn = Ecn::Ce;
        }
        let lost = self.filter.as_mut().is_some_and(|keep| !keep(from, &d))
            || self.rng.chance(self.impairments.loss);
        if let Some(trace) = &mut self.trace {
            let ms = (self.now - Instant::from_nanos(1_000_000_000)).as_millis_f64();
            let arrow = if from == 0 { "C > S" } else { "S > C" };
            let fate = if lost { "   (lost)" } else { "" };
            trace.push(format!("{ms:10.3} {arrow} {}{fate}", packet::describe(&d)));
        }
        if lost {
            return;
        }
        if self.rng.chance(self.impairments.duplicate) {
            self.travel(from, d.clone());
        }
        let d = if self.rng.chance(self.impairments.corrupt) { self.corrupted(d) } else { d };
        self.travel(from, d);
    }

    fn travel(&mut self, from: usize, d: Datagram) {
        let mut delay = self.delay;
        if self.rng.chance(self.impairments.reorder) {
            delay += Duration::from_nanos(self.rng.below(3 * self.delay.as_nanos()));
        }
        if self.impairments.overtake > 0.0 && self.rng.chance(self.impairments.overtake) {
            delay = Duration::from_micros(1);
        }
        let leaves = self.now.max(self.wire_free[from]);
        self.wire_free[from] = leaves + self.spacing;
        self.serial += 1;
        self.travelling.insert((leaves + delay, self.serial), (1 - from, d));
    }

    fn corrupted(&mut self, d: Datagram) -> Datagram {
        let mut all = BytesMut::from(&d.header[..]);
        all.extend_from_slice(&d.payload.to_bytes());
        let bit = self.rng.below(all.len() as u64 * 8) as usize;
        all[bit / 8] ^= 1 << (bit % 8);
        Datagram { header: all.freeze().into(), payload: Payload::EMPTY, ..d }
    }

    /// The time of the next event.
    pub fn next(&self) -> Option<Instant> {
        let arrival = self.travelling.first_key_value().map(|((at, _), _)| *at);
        let timers = self.ends.iter().filter_map(|e| e.poll_timeout());
        timers.chain(arrival).min()
    }

    /// Processes the next event unless it is after `until`. Returns whether there was one.
    pub fn step(&mut self, until: Instant) -> bool {
        self.drain();
        let Some(at) = self.next().filter(|at| *at <= until) else { return false };
        self.now = self.now.max(at);
        if let Some(buffers) = self.buffers {
            self.arrive_in_buffers(buffers);
        }
        while let Some(first) = self.travelling.first_entry().filter(|f| f.key().0 <= self.now) {
            let option = self.options.remove(&first.key().1);
            let (to, d) = first.remove();
            match option {
                None => self.ends[to].handle_datagram(self.now, d),
                Some(option) => {
                    self.ends[to].handle_with_quick_start(self.now, d, option, Datagram::TTL);
                }
            }
        }
        for end in &mut self.ends {
            if end.poll_timeout().is_some_and(|at| at <= self.now) {
                end.handle_timeout(self.now);
            }
        }
        self.drain();
        true
    }

    /// Delivers due datagrams in buffers, without Quick-Start options.
    fn arrive_in_buffers(&mut self, buffers: Buffers) {
        let later = self.travelling.split_off(&(self.now, u64::MAX));
        let due = std::mem::replace(&mut self.travelling, later);
        for to in 0..2 {
            let for_host = due.values().filter(|(host, _)| *host == to).map(|(_, d)| d.clone());
            for buffer in trains::merged(for_host) {
                match buffers {
                    Buffers::AsTrains => {
                        let end = &mut self.ends[to];
                        self.taken_at_once += trains::take_train(end, self.now, &buffer);
                    }
                    Buffers::OneByOne => {
                        trains::take_one_by_one(&mut self.ends[to], self.now, &buffer);
                    }
                }
            }
        }
    }

    /// Lets `span` pass.
    pub fn run(&mut self, span: Duration) {
        let until = self.now + span;
        let mut steps = 0_u64;
        while self.step(until) {
            steps += 1;
            assert!(steps < 50_000_000, "the network never comes to rest");
        }
        self.now = until;
    }

    /// From now on, everything that host `from` sends is lost.
    pub fn mute(&mut self, from: usize) {
        self.filter = Some(Box::new(move |host, _| host != from));
    }

    /// Passes a datagram to host `to` at once, and drains.
    pub fn deliver(&mut self, to: usize, d: Datagram) {
        self.ends[to].handle_datagram(self.now, d);
        self.drain();
    }

    /// Takes the trace so far, as text.
    pub fn take_trace(&mut self) -> String {
        self.trace.replace(Vec::new()).unwrap_or_default().join("\n")
    }
}

#[expect(clippy::print_stderr, reason = "a red test says how to repeat it")]
impl Drop for Net {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the network's seed was {}", self.seed);
        }
    }
}
