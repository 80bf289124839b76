//! What may happen to a connection, drawn at random.

use std::num::NonZeroU32;

use udccp_base::{Duration, Rng};
use udccp_cc::Algorithm;
use udccp_proto::ccid::ccid2::AckRatioConfig;
use udccp_proto::{ConnectionConfig, PmtuProbing};

use super::common::path::{Loses, Path};
use super::common::wrap::Numbers;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);
/// The bottleneck of tests at which a full send queue waits for less than a minute.
const RATES: [u64; 3] = [10_000, 30_000, 60_000];

pub(crate) fn pick<T: Clone>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize].clone()
}

/// When an application sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sends {
    Nothing,
    Every(Duration),
    /// As much as the connection takes.
    Bulk,
    /// A message for each one received.
    Answers,
}

/// When an application reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    All,
    Nothing,
    /// A message at each of its turns.
    Slowly,
}

/// A part of a connection's life.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// The applications do this for a while.
    Run([Sends; 2], [Reads; 2], Duration),
    Silence(Duration),
    /// The process of a host is stopped for a while. Its clock stands still, or goes on; its kernel
    /// keeps so many datagrams for it.
    Stopped {
        host: usize,
        span: Duration,
        stands_still: bool,
        keeps: usize,
        others: Sends,
    },
    /// The path from these hosts carries nothing for a while.
    Cut {
        from: [bool; 2],
        span: Duration,
        sends: [Sends; 2],
    },
    /// The path from a host carries packets up to each of these sizes for a while, with bulk data
    /// in both directions. A router reports larger ones, or not.
    Mtus {
        host: usize,
        mtus: [usize; 3],
        are_reported: bool,
    },
    /// The path from a host has these faults from now on.
    Faults(usize, Path),
    /// A host's driver takes this long for each turn, from now on.
    Slow(usize, Duration),
    ClockJumps(usize, Duration),
    PathChanges(usize),
    SlowReceiver(usize, bool),
    /// The messages of both ends have this size from now on.
    Size(usize),
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Closes(usize),
    BothClose,
    /// Released without reading what is left.
    Released(usize),
    /// Closes after it has stopped to read, but not to send.
    StopsReading(usize),
    /// All packets are lost, and both ends have to notice it.
    PeerGone,
    /// A NAT gives the client another UDP port, which is another connection (RFC 6773 section
    /// 3.8).
    Rebinds,
}

#[derive(Clone, Debug)]
pub(crate) struct Story {
    pub(crate) seed: u64,
    pub(crate) config: ConnectionConfig,
    pub(crate) over_udp: bool,
    pub(crate) numbers: Numbers,
    pub(crate) delay: Duration,
    pub(crate) path: Path,
    pub(crate) size: usize,
    pub(crate) parts: Vec<Part>,
    /// What the applications do in the end, to measure the rate.
    pub(crate) finally: [Sends; 2],
    pub(crate) end: End,
    /// It ends at once, without another look at the rate, and whatever faults the path has.
    pub(crate) is_abrupt: bool,
}

impl Story {
    pub(crate) fn new(seed: u64, rng: &mut Rng) -> Self {
        let numbers = pick(rng, &[Numbers::Anywhere, Numbers::Wrap24, Numbers::Wrap48]);
        let mut config = any_config(rng);
        config.short_seqnos = numbers == Numbers::Wrap24;
        let rate = Some(pick(rng, &RATES));
        // At least some full packets.
        let queue = pick(rng, &[MS * 500, SECOND]);
        let path = Path { rate, queue, ..Path::default() };
        let count = 1 + rng.below(8);
        let parts = (0..count).map(|_| any_part(rng, &path, &config)).collect();
        let to_one = [Sends::Bulk, Sends::Nothing];
        let finals = [to_one, [to_one[1], to_one[0]], [Sends::Bulk; 2]];
        let which = rng.below(2) as usize;
        let ends = [
            End::Closes(which),
            End::BothClose,
            End::Released(which),
            End::StopsReading(which),
            End::PeerGone,
        ];
        let over_udp = rng.chance(0.5);
        let mut end = pick(rng, &ends);
        if over_udp && rng.chance(0.1) {
            end = End::Rebinds;
        }
        Self {
            seed,
            config,
            over_udp,
            numbers,
            delay: pick(rng, &[MS / 10, MS * 20, MS * 100, MS * 300]),
            path,
            size: pick(rng, &[20, 300, 1000]),
            parts,
            finally: pick(rng, &finals),
            end,
            is_abrupt: rng.chance(0.2),
        }
    }
}

fn any_config(rng: &mut Rng) -> ConnectionConfig {
    let ccids = [2, 3, 4, 249, 250];
    let mut c = ConnectionConfig {
        tx_ccids: vec![pick(rng, &ccids)],
        rx_ccids: vec![pick(rng, &ccids)],
        ..ConnectionConfig::default()
    };
    if rng.chance(0.3) {
        c.rx_ccids.clone_from(&c.tx_ccids);
    }
    let (cubic, vegas) = (Algorithm::Cubic(<_>::default()), Algorithm::Vegas(<_>::default()));
    c.ccid2.algorithm = pick(rng, &[Algorithm::CCID2, Algorithm::CCID2, cubic, vegas]);
    c.ccid2.max_train = pick(rng, &[1, 16]);
    let (adapts, least) = (AckRatioConfig::Adaptive { min: 2 }, AckRatioConfig::Fixed(1));
    let thinned = AckRatioConfig::Thinned { min: 1, acks: 20 };
    c.ccid2.ack_ratio = pick(rng, &[adapts, adapts, thinned, least, AckRatioConfig::Fixed(16)]);
    c.recv_queue_packets = pick(rng, &[1024, 20]);
    c.send_queue_packets = pick(rng, &[128, 16]);
    c.send_cscov = rng.below(16) as u8;
    c.min_cscov = if rng.chance(0.5) { 0 } else { c.send_cscov };
    c.data_checksum = rng.chance(0.2);
    c.ndp_count = rng.chance(0.2);
    c.ecn = rng.chance(0.8);
    c.ecn_probe = pick(rng, &[None, None, NonZeroU32::new(20)]);
    c.pmtu_probing = rng.chance(0.3).then(PmtuProbing::default);
    c.keep_alive = pick(rng, &[None, None, Some(SECOND * 25)]);
    // No part loses all packets for longer.
    c.keep_alive_probes = 100;
    c.silence_timeout = SECOND * 100_000;
    c
}

fn any_sends(rng: &mut Rng) -> Sends {
    let every = pick(rng, &[MS * 20, MS * 200, SECOND * 3]);
    pick(rng, &[Sends::Nothing, Sends::Every(every), Sends::Bulk, Sends::Answers])
}

fn any_part(rng: &mut Rng, path: &Path, config: &ConnectionConfig) -> Part {
    let host = rng.below(2) as usize;
    let sends = [any_sends(rng), any_sends(rng)];
    match rng.below(15) {
        0..3 => {
            let reads = [Reads::All, Reads::All, Reads::All, Reads::Nothing, Reads::Slowly];
            let reads = [pick(rng, &reads), pick(rng, &reads)];
            Part::Run(sends, reads, pick(rng, &[MS * 300, SECOND * 3, SECOND * 30]))
        }
        3 => Part::Silence(pick(rng, &[SECOND, MINUTE, MINUTE * 60, DAY])),
        4 | 5 => Part::Stopped {
            host,
            span: pick(rng, &[MS * 100, SECOND, SECOND * 10, MINUTE, MINUTE * 10]),
            // With a clock that stood still, Vegas measures a round-trip time that the path never
            // reaches again, and takes what is above it for a queue.
            stands_still: rng.chance(0.3) && !matches!(config.ccid2.algorithm, Algorithm::Vegas(_)),
            keeps: pick(rng, &[0, 20, 200]),
            others: sends[0],
        },
        6 | 7 => Part::Cut {
            from: pick(rng, &[[true, true], [true, false], [false, true]]),
            span: pick(rng, &[MS * 100, SECOND, SECOND * 30, MINUTE * 5]),
            sends,
        },
        8 | 9 => Part::Faults(host, any_faults(rng, path, config)),
        10 => Part::Slow(host, pick(rng, &[Duration::ZERO, MS * 10, MS * 50, MS * 300])),
        11 => Part::ClockJumps(host, pick(rng, &[MS * 500, SECOND * 20, MINUTE * 60, DAY])),
        12 => match rng.below(3) {
            0 => Part::PathChanges(host),
            _ => Part::SlowReceiver(host, rng.chance(0.5)),
        },
        13 => Part::Mtus {
            host,
            mtus: [(); 3].map(|()| pick(rng, &[1500, 1400, 1280, 600])),
            // Without reports and probes, large packets are lost for ever.
            are_reported: config.pmtu_probing.is_none() || rng.chance(0.5),
        },
        _ => Part::Size(pick(rng, &[20, 300, 1000, 1400])),
    }
}

fn any_faults(rng: &mut Rng, path: &Path, config: &ConnectionConfig) -> Path {
    let mut faults = path.clone();
    for _ in 0..=rng.below(2) {
        match rng.below(11) {
            0 | 1 => {
                faults.loss = pick(rng, &[0.01, 0.1, 0.3, 0.9]);
                faults.loses = pick(rng, &[Loses::Any, Loses::Acks, Loses::Data]);
            }
            2 => (faults.loss, faults.loses) = (1.0, Loses::Acks),
            3 | 4 => {
                faults.reorder = pick(rng, &[0.01, 0.5]);
                // Some hundred packets of the fastest path.
                faults.detour = pick(rng, &[MS * 10, MS * 300, SECOND * 5]);
            }
            5 => faults.duplicate = pick(rng, &[0.1, 1.0]),
            6 => {
                faults.mtu = pick(rng, &[1400, 1280, 600]);
                faults.reports_mtu = config.pmtu_probing.is_none() || rng.chance(0.5);
            }
            7 => faults.marks = pick(rng, &[0.01, 0.3, 1.0]),
            8 => faults.bleaches = true,
            9 => faults.corrupts = pick(rng, &[0.01, 0.1]),
            _ => {
                faults.rate = Some(pick(rng, &[1_000, 10_000, 60_000]));
                faults.queue = pick(rng, &[MS * 200, SECOND * 2]);
            }
        }
    }
    faults
}
