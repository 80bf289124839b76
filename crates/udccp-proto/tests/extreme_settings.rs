//! Settings that are zero, the smallest, and the largest: each is refused, or a connection with it
//! carries messages or ends with a reason. Timers never expire without end.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};

use common::pair::PORT;
use common::{CLIENT, Impairments, Net, Pair, SERVER, connect_options, listen_config};
use udccp_base::{Duration, Seed};
use udccp_cc::InitialWindow;
use udccp_proto::ccid::ccid2::AckRatioConfig;
use udccp_proto::{
    ConnectionConfig, Endpoint, EndpointConfig, InitCookies, ListenConfig, PmtuProbing, RecvError,
    State,
};
use udccp_testkit::randomised;

const SECOND: Duration = Duration::from_secs(1);
/// More than the busiest of these connections takes in one span.
const MOST_STEPS: u32 = 200_000;

type Set = fn(&mut ConnectionConfig, u64);

/// Sets a number to zero, one, or the most.
macro_rules! number {
    ($($field:ident).+) => {
        (stringify!($($field).+), (|c, to| c.$($field).+ = to as _) as Set)
    };
}

/// Sets a time to that many nanoseconds.
macro_rules! time {
    ($($field:ident).+) => {
        (stringify!($($field).+), (|c, to| c.$($field).+ = Duration::from_nanos(to)) as Set)
    };
}

fn ns(n: u64) -> Duration {
    Duration::from_nanos(n)
}

fn probing(c: &mut ConnectionConfig, change: impl FnOnce(&mut PmtuProbing)) {
    change(c.pmtu_probing.get_or_insert_with(PmtuProbing::default));
}

const SETTINGS: &[(&str, Set)] = &[
    time!(initial_rto),
    time!(sync_interval),
    time!(silence_timeout),
    time!(close_linger),
    time!(handshake_timeout),
    time!(timewait),
    time!(ccid2.delayed_ack),
    time!(ccid2.rto.initial),
    time!(ccid2.rto.min),
    time!(ccid2.rto.max),
    time!(ccid3.granularity),
    time!(ccid3.max_credit),
    time!(ccid3.min_nofeedback_timeout),
    time!(ccid4.tfrc.granularity),
    time!(ccid4.tfrc.max_credit),
    time!(ccid4.tfrc.min_nofeedback_timeout),
    ("keep_alive", |c, to| c.keep_alive = Some(ns(to))),
    ("idle_limit", |c, to| c.idle_limit = Some(ns(to))),
    ("pmtu_probing.raise", |c, to| probing(c, |p| p.raise = ns(to))),
    ("pmtu_probing.confirmation", |c, to| probing(c, |p| p.confirmation = ns(to))),
    ("pmtu_probing.base", |c, to| probing(c, |p| p.base = to as u16)),
    ("pmtu_floor", |c, to| c.pmtu_floor = Some(to as u16)),
    ("ccid2.ack_ratio.adaptive", |c, to| {
        c.ccid2.ack_ratio = AckRatioConfig::Adaptive { min: to as u16 };
    }),
    ("ccid2.ack_ratio.fixed", |c, to| c.ccid2.ack_ratio = AckRatioConfig::Fixed(to as u16)),
    ("ccid2.ack_ratio.thinned", |c, to| {
        c.ccid2.ack_ratio = AckRatioConfig::Thinned { min: to as u16, acks: to as u16 };
    }),
    ("ccid2.initial_window", |c, to| {
        c.ccid2.initial_window = InitialWindow::Packets(to as u32);
    }),
    number!(ccid2.max_window),
    number!(ccid2.max_train),
    number!(ccid2.ack_of_ack_after),
    number!(ccid4.header_bytes),
    number!(sequence_window),
    number!(send_queue_packets),
    number!(send_queue_bytes),
    number!(recv_queue_packets),
    number!(recv_queue_bytes),
    number!(path_mtu),
    number!(keep_alive_probes),
    number!(request_retries),
    number!(close_retries),
    number!(send_cscov),
    number!(min_cscov),
];

/// Zero, the smallest, the largest, and one whose multiples wrap to small numbers.
const VALUES: [u64; 4] = [0, 1, u64::MAX, (1 << 63) | (1 << 31) | (1 << 15)];

/// A span of time, in which timers expire only so often.
fn pass(pair: &mut Pair, span: Duration) {
    let until = pair.now + span;
    let mut steps = 0;
    while pair.step(until) {
        steps += 1;
        assert!(steps < MOST_STEPS, "timers never come to rest");
    }
    pair.now = until;
    pair.collect();
}

/// Both ends send a message every 50 ms, and read.
fn exchange(pair: &mut Pair, rounds: u32) -> [usize; 2] {
    let mut received = [0; 2];
    for _ in 0..rounds {
        for end in (0..2).filter(|&end| pair.ids[end].is_some()).collect::<Vec<_>>() {
            pair.try_send(end, b"a message");
        }
        pass(pair, Duration::from_millis(50));
        for end in (0..2).filter(|&end| pair.ids[end].is_some()).collect::<Vec<_>>() {
            received[end] += pair.received(end).len();
        }
    }
    received
}

/// A connection with data, losses, silence, data, and an end.
fn live(seed: u64, configs: [ConnectionConfig; 2]) {
    if configs.iter().any(|config| config.check().is_err()) {
        return;
    }
    let [client, server] = configs;
    let mut pair = Pair::starting(Net::new(seed), client, server);
    pass(&mut pair, SECOND);
    exchange(&mut pair, 40);
    pair.impairments = Impairments { loss: 0.1, ..Impairments::default() };
    exchange(&mut pair, 40);
    pair.mute(SERVER);
    exchange(&mut pair, 40);
    (pair.filter, pair.impairments) = (None, Impairments::default());
    pass(&mut pair, SECOND * 60);
    let received = exchange(&mut pair, 400);
    let open = |pair: &Pair| (0..2).all(|end| pair.state(end) == Some(State::Open));
    assert!(!open(&pair) || received.iter().all(|&n| n > 0), "open, and nothing arrives");
    for end in (0..2).filter(|&end| pair.ids[end].is_some()).collect::<Vec<_>>() {
        pair.try_send(end, b"the last");
        pair.close(end);
    }
    pass(&mut pair, SECOND * 600);
    for end in (0..2).filter(|&end| pair.ids[end].is_some()).collect::<Vec<_>>() {
        pair.received(end);
        assert!(pair.end_reason(end).is_some(), "end {end} never learns of the end");
    }
}

/// Whether a connection with these settings passes.
fn lives(seed: u64, configs: [ConnectionConfig; 2]) -> bool {
    catch_unwind(AssertUnwindSafe(|| live(seed, configs))).is_ok()
}

fn config(ccid: u8) -> ConnectionConfig {
    let ccids = vec![ccid];
    ConnectionConfig { tx_ccids: ccids.clone(), rx_ccids: ccids, ..ConnectionConfig::default() }
}

type SetHost = fn(&mut EndpointConfig, &mut ListenConfig, u64);

const HOST_SETTINGS: &[(&str, SetHost)] = &[
    ("out_of_the_blue_resets_per_sec", |end, _, to| {
        end.out_of_the_blue_resets_per_sec = to as u32;
    }),
    ("max_connections", |end, _, to| end.max_connections = to as usize),
    ("max_timewaits", |end, _, to| end.max_timewaits = to as usize),
    ("first ephemeral port", |end, _, to| end.ephemeral_ports.0 = to as u16),
    ("last ephemeral port", |end, _, to| end.ephemeral_ports.1 = to as u16),
    ("backlog", |_, listen, to| listen.backlog = to as usize),
    ("cookie_lifetime", |_, listen, to| listen.cookie_lifetime = ns(to)),
];

/// Two clients of hosts with these settings. Each connects, or is told why not.
fn meet(seed: u64, set: SetHost, to: u64, cookies: InitCookies) {
    let mut net = Net::new(seed);
    let mut listen = listen_config(ConnectionConfig::default());
    listen.init_cookies = cookies;
    for (host, end) in net.ends.iter_mut().enumerate() {
        let mut config = EndpointConfig::new([host as u8; 32]);
        set(&mut config, &mut listen, to);
        *end = Endpoint::new(config);
    }
    let listener = net.ends[SERVER].listen(None, PORT, listen).unwrap();
    for _ in 0..2 {
        let (now, options) = (net.now, connect_options(ConnectionConfig::default()));
        let Ok(id) = net.ends[CLIENT].connect(now, options) else { continue };
        net.run(SECOND * 600);
        let now = net.now;
        let is_open = net.ends[CLIENT].state(id) == Some(State::Open);
        let is_over = matches!(net.ends[CLIENT].recv(now, id), Err(RecvError::Closed(_)));
        assert!(is_open || is_over, "it waits for ever");
        assert!(is_over || net.ends[SERVER].accept(listener).is_some());
        net.ends[CLIENT].close(now, id);
        net.ends[CLIENT].release(now, id);
        net.run(SECOND * 600);
    }
}

#[test]
fn every_setting_of_a_host_of_extreme_size_is_served() {
    for (name, set) in HOST_SETTINGS {
        for value in VALUES {
            for cookies in [InitCookies::Never, InitCookies::Always] {
                let met = catch_unwind(|| meet(3, *set, value, cookies));
                assert!(met.is_ok(), "{name} = {value}, cookies {cookies:?}");
            }
        }
    }
}

#[test]
fn every_setting_of_extreme_size_is_refused_or_served() {
    let mut bad = Vec::new();
    for (name, set) in SETTINGS {
        for value in VALUES {
            let of = name.strip_prefix("ccid").and_then(|rest| rest[..1].parse().ok());
            for ccid in of.map_or(vec![2, 3, 4], |ccid| vec![ccid]) {
                let mut odd = config(ccid);
                set(&mut odd, value);
                let ends = [[odd.clone(), config(ccid)], [config(ccid), odd.clone()]];
                for (who, configs) in ["client", "server"].into_iter().zip(ends) {
                    let what = format!("{name} = {value}, CCID {ccid}, {who}");
                    if !lives(1, configs) {
                        bad.push(what);
                    }
                }
            }
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
fn several_settings_of_extreme_size_are_refused_or_served() {
    let mut bad = Vec::new();
    for seed in randomised::seeds(60) {
        let mut rng: udccp_base::Rng = Seed(seed).stream("settings");
        let ccid = 2 + rng.below(3) as u8;
        let mut what = format!("seed {seed}, CCID {ccid}");
        let configs = [0, 1].map(|_| {
            let mut odd = config(ccid);
            for _ in 0..3 {
                let (name, set) = SETTINGS[rng.below(SETTINGS.len() as u64) as usize];
                let value = VALUES[rng.below(4) as usize];
                let mut changed = odd.clone();
                set(&mut changed, value);
                if changed.check().is_ok() {
                    odd = changed;
                    what += &format!(", {name} = {value}");
                }
            }
            odd
        });
        if !lives(seed, configs) {
            bad.push(what);
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}
