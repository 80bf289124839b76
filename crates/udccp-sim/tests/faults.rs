//! Configurations that cannot run, and errors during a run, give clear messages.

mod toy;

use toy::{ToyReceiver, ToySender};
use udccp_base::{
    AppPort, DataRate, Datagram, Duration, Instant, Machine, Message, Payload, Probe, Seed,
    SendOutcome, Transport,
};
use udccp_sim::{
    Bulk, DropReason, Dumbbell, DumbbellConfig, PairAddresses, PairConfig, QueueLimit, RunConfig,
    SimError,
};

fn net() -> Dumbbell {
    let rate = DataRate::from_mbps(10);
    let rtt = Duration::from_millis(10);
    Dumbbell::new(DumbbellConfig::symmetric(rate, rtt, QueueLimit::Unlimited))
}

fn pair(net: &Dumbbell, name: &str) -> PairConfig {
    let at = net.next_addresses();
    PairConfig::new(name, ToySender::new(at, 4), ToyReceiver::new(at), Box::new(Bulk::new()))
}

fn second() -> RunConfig<'static> {
    RunConfig::new(Duration::from_secs(1), Seed(1))
}

/// Runs with a change and returns the error.
fn complaint(change: impl FnOnce(&mut Dumbbell, &mut RunConfig<'static>)) -> String {
    let mut net = net();
    let pair = pair(&net, "first");
    net.add_pair(pair);
    let mut run = second();
    change(&mut net, &mut run);
    match net.run(run) {
        Err(error @ SimError::Config { .. }) => error.to_string(),
        other => panic!("not refused: {:?}", other.map(|r| r.hash)),
    }
}

#[test]
fn invalid_configurations_are_refused_with_a_message() {
    let said = [
        complaint(|_, run| run.duration = Duration::ZERO),
        complaint(|_, run| run.interval = Duration::ZERO),
        complaint(|_, run| run.measure = Duration::ZERO..Duration::from_secs(2)),
        complaint(|_, run| run.measure = Duration::from_secs(1)..Duration::from_secs(1)),
        complaint(|net, _| *net = self::net()),
        complaint(|net, _| {
            let again = pair(net, "first");
            net.add_pair(again);
        }),
        complaint(|net, _| {
            let late = PairConfig { start: Duration::from_secs(1), ..pair(net, "late") };
            net.add_pair(late);
        }),
        complaint(|net, _| {
            let stop = Some(Duration::from_millis(10));
            let start = Duration::from_millis(10);
            let early = PairConfig { start, stop, ..pair(net, "early") };
            net.add_pair(early);
        }),
        complaint(|net, _| {
            let mut config = DumbbellConfig::default();
            config.reverse.loss = udccp_sim::LossConfig::Random(1.5);
            *net = Dumbbell::new(config);
            let first = pair(net, "first");
            net.add_pair(first);
        }),
    ];
    let expected = [
        "the duration is zero",
        "the interval of the series is zero",
        "measured from 0 ns to 2 s; it must begin before it ends, and end by 1 s",
        "measured from 1 s to 1 s; it must begin before it ends, and end by 1 s",
        "0 flows; a run has 1 to",
        "two flows are called \"first\"",
        "flow \"late\" starts as late as 1 s, after the end",
        "flow \"early\" stops at 10 ms, before it starts",
        "hop 1 reverse: loss is 1.5; a probability must be between 0 and 1",
    ];
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.contains(expected), "{said}");
    }
}

/// A transport with one fault.
struct Broken {
    at: PairAddresses,
    fault: Fault,
    said: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// Its timer is always due.
    Timer,
    /// It never stops sending.
    Flood,
    /// It sends to a host that does not exist.
    Stranger,
}

impl Machine for Broken {
    fn handle_datagram(&mut self, _now: Instant, _datagram: Datagram) {}

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, _now: Instant) -> Option<Datagram> {
        if self.fault == Fault::Timer || (self.fault == Fault::Stranger && self.said) {
            return None;
        }
        self.said = true;
        let mut dst = self.at.receiver;
        if self.fault == Fault::Stranger {
            dst = "192.0.2.1".parse().unwrap();
        }
        Some(Datagram {
            src: (self.at.sender, 0).into(),
            dst: (dst, 0).into(),
            protocol: 253,
            ecn: udccp_base::Ecn::NotEct,
            header: vec![0; 12].into(),
            payload: Payload::Zeros(100),
        })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (self.fault == Fault::Timer).then_some(Instant::ZERO)
    }
}

impl AppPort for Broken {
    fn send(&mut self, _now: Instant, message: Message) -> SendOutcome {
        SendOutcome::Closed(message)
    }

    fn is_writable(&self) -> bool {
        false
    }

    fn close(&mut self, _now: Instant) {}

    fn max_payload(&self) -> usize {
        100
    }
}

impl Transport for Broken {
    fn open(&mut self, _now: Instant) {}

    fn poll_delivered(&mut self, _now: Instant) -> Option<Payload> {
        None
    }

    fn is_closed(&self) -> bool {
        false
    }

    fn probe(&self) -> Probe {
        Probe::default()
    }
}

fn broken(fault: Fault) -> Result<udccp_sim::RunResult, SimError> {
    let mut net = net();
    let at = net.next_addresses();
    let sender = Box::new(Broken { at, fault, said: false });
    net.add_pair(PairConfig::new("bad", sender, ToyReceiver::new(at), Box::new(Bulk::new())));
    net.run(second())
}

#[test]
fn a_timer_that_is_always_due_is_reported_as_a_livelock() {
    let error = broken(Fault::Timer).unwrap_err();
    assert!(error.to_string().contains("time stands still at 0.000000000 s"), "{error}");
    assert!(error.to_string().contains("bad sender"), "{error}");
}

#[test]
fn a_transport_that_never_stops_sending_is_reported_as_a_livelock() {
    let error = broken(Fault::Flood).unwrap_err();
    assert!(matches!(&error, SimError::Livelock { component, .. } if component == "bad sender"));
}

#[test]
fn a_packet_to_nobody_is_dropped_for_want_of_a_route() {
    let flow = broken(Fault::Stranger).unwrap().flows.remove(0);
    assert_eq!(flow.forward.sent.packets, 1);
    assert_eq!(flow.forward.dropped[DropReason::NoRoute as usize], 1);
    assert_eq!(flow.forward.in_flight, 0);
}
