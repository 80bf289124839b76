//! Writes a scenario as a script of ns-2.

use core::fmt::Write as _;

use udccp_agent::start_of;
use udccp_base::{Duration, Seed};
use udccp_link::{LinkConfig, QueueConfig, QueueLimit, RedConfig, RedUnit};
use udccp_scenario::schema::{Flow, Scenario, Traffic};
use udccp_scenario::{access_links, hop_configs, routers_of};

use crate::flow::{
    Player, ccid2_threshold, delays_acks, initial_window, max_window, min_rto, packet_size, player,
    timestamps,
};

const PRELUDE: &str = include_str!("prelude.tcl");
/// A number of packets that stands for no limit.
const UNLIMITED: u64 = 1_000_000;
/// Longest time between two samples of a queue.
const LOOK: Duration = Duration::from_millis(50);
/// Seconds between two polls of CCID 2's window: to count cuts, and to change them.
const POLL_S: [&str; 2] = ["0.01", "0.001"];
/// Delay of a delayed acknowledgement in seconds, as in the TCP model.
const DELAYED_ACK_S: &str = "0.04";
/// Seeds of ns-2's generator are in `1..=SEEDS`.
const SEEDS: u64 = (1 << 31) - 2;

/// The node of a flow's sender or receiver; routers are 0 and 1.
pub(crate) const fn host(flow: usize, is_receiver: bool) -> usize {
    2 + 2 * flow + is_receiver as usize
}

/// Number of samples of the series.
pub(crate) const fn samples(scenario: &Scenario) -> u64 {
    let time = &scenario.time;
    time.duration.as_nanos().div_ceil(time.measure.every.as_nanos())
}

/// The script for a scenario that [`crate::check_supported`] accepts, with this seed.
pub fn script(scenario: &Scenario, seed: u64) -> String {
    let mut text = String::from(PRELUDE);
    let number = 1 + Seed(seed).stream("ns-2").below(SEEDS);
    let nodes = 2 + 2 * scenario.flows.len();
    let _ = writeln!(text, "\n# The scenario.\n$defaultRNG seed {number}");
    let _ =
        writeln!(text, "for {{set i 0}} {{$i < {nodes}}} {{incr i}} {{set node($i) [$ns node]}}");
    for hop in hop_configs(scenario).iter().take(1) {
        wire(&mut text, 0, 1, &hop.forward);
        wire(&mut text, 1, 0, &hop.reverse);
    }
    let _ = writeln!(text, "watch 0 0 1\nwatch 1 1 0");
    let mut looks = Vec::new();
    for (i, flow) in scenario.flows.iter().enumerate() {
        let Some(player) = player(flow) else { continue };
        hosts(&mut text, scenario, i, flow);
        agents(&mut text, scenario, i, flow, player);
        times(&mut text, scenario, i, flow, (player, seed));
        looks.push(sample(player));
    }
    let _ = writeln!(text, "set looks {{{}}}", looks.join(" "));
    let time = &scenario.time;
    let every = time.measure.every;
    let step = every / every.as_nanos().div_ceil(LOOK.as_nanos());
    let end = seconds(time.duration);
    let _ = writeln!(text, "$ns at 0 \"look_at_queues 0 {} {end}\"", seconds(step));
    for mark in [time.measure.from, time.measure.to] {
        let _ = writeln!(text, "$ns at {} look_queues", seconds(mark));
    }
    if every < time.duration {
        let every = seconds(every);
        let _ = writeln!(text, "$ns at {every} \"sample 1 {every} {end}\"");
    }
    let _ = writeln!(text, "$ns at {end} \"finish {}\"\n$ns run", samples(scenario) - 1);
    text
}

/// A time in seconds to the nanosecond.
fn seconds(time: Duration) -> String {
    let ns = time.as_nanos();
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

fn wire(text: &mut String, from: usize, to: usize, link: &LinkConfig) {
    let rate = link.rate.map_or(0, udccp_base::DataRate::bits_per_sec);
    let delay = seconds(link.delay);
    let (kind, limit, settings) = queue(link);
    let _ = writeln!(text, "wire {from} {to} {rate} {delay} {kind} {limit} {{{settings}}}");
}

/// Class, limit and settings of a link's queue. ns-2's drop-tail queues hold one packet (or byte)
/// less than their limit.
fn queue(link: &LinkConfig) -> (&'static str, u64, String) {
    match (&link.queue, link.limit) {
        (QueueConfig::Red(red), limit) => {
            let limit = match limit {
                QueueLimit::Packets(packets) => packets.into(),
                _ => UNLIMITED,
            };
            ("RED", limit, red_settings(red))
        }
        (_, QueueLimit::Unlimited) => ("DropTail", UNLIMITED, String::new()),
        (_, QueueLimit::Packets(packets)) => ("DropTail", u64::from(packets) + 1, String::new()),
        (_, QueueLimit::Bytes(bytes)) => {
            ("DropTail", bytes + 1, "queue_in_bytes_ true mean_pktsize_ 1".to_owned())
        }
    }
}

fn red_settings(red: &RedConfig) -> String {
    let (min, max, weight) = (red.min, red.max, red.weight);
    let inverse = 1.0 / red.max_probability;
    let in_bytes = red.unit == RedUnit::Bytes;
    let mean = red.mean_packet;
    let (gentle, ecn) = (red.gentle, red.ecn);
    let adaptive = u8::from(red.adaptive.is_some());
    format!(
        "thresh_ {min} maxthresh_ {max} q_weight_ {weight} linterm_ {inverse} gentle_ {gentle} \
         bytes_ {in_bytes} queue_in_bytes_ {in_bytes} mean_pktsize_ {mean} setbit_ {ecn} \
         adaptive_ {adaptive}"
    )
}

/// The hosts of a flow and their links.
fn hosts(text: &mut String, scenario: &Scenario, i: usize, flow: &Flow) {
    let (enters, leaves) = routers_of(scenario, flow);
    let links = access_links(scenario, flow);
    for (is_receiver, router, link) in [(false, enters, &links[0]), (true, leaves, &links[1])] {
        let host = host(i, is_receiver);
        wire(text, host, router, link);
        wire(text, router, host, link);
        let _ = writeln!(text, "tap_host {host} {router}");
    }
}

fn agents(text: &mut String, scenario: &Scenario, i: usize, flow: &Flow, player: Player) {
    let (sender, receiver) = (host(i, false), host(i, true));
    let (from, to) = match player {
        Player::Sack => ("Agent/TCP/Sack1", sink(flow)),
        Player::Linux(_) => ("Agent/TCP/Linux", sink(flow)),
        Player::Ccid2 => ("Agent/DCCP/TCPlike", "Agent/DCCP/TCPlike"),
        Player::Ccid3 => ("Agent/DCCP/TFRC", "Agent/DCCP/TFRC"),
        Player::Udp => ("Agent/UDP", "Agent/Null"),
    };
    let settings = sender_settings(scenario, flow, player);
    let peer = receiver_settings(flow, player);
    let (source, traffic) = match *flow.traffic {
        Traffic::ConstantRate { rate, .. } => {
            // The rate is that of the payload; the size is what ns-2's application sends.
            let payload = crate::flow::payload_bytes(flow).max(1);
            let size = packet_size(flow);
            let bits = rate.bits_per_sec() as f64 * size as f64 / payload as f64;
            ("Application/Traffic/CBR", format!("packetSize_ {size} rate_ {bits}"))
        }
        _ => ("Application/FTP", String::new()),
    };
    let _ = writeln!(
        text,
        "flow {i} {sender} {receiver} {from} {{{settings}}} {to} {{{peer}}} {source} {{{traffic}}}"
    );
    if let Player::Linux(name) = player {
        let _ = writeln!(text, "$ns at 0 \"$agent({i}) select_ca {name}\"");
    }
}

fn sink(flow: &Flow) -> &'static str {
    if delays_acks(flow) { "Agent/TCPSink/Sack1/DelAck" } else { "Agent/TCPSink/Sack1" }
}

fn sender_settings(scenario: &Scenario, flow: &Flow, player: Player) -> String {
    let size = packet_size(flow);
    let mut settings = format!("packetSize_ {size}");
    let dccp = &flow.dccp;
    match player {
        Player::Sack | Player::Linux(_) => {
            let window = max_window(scenario, flow, player);
            let first = initial_window(flow);
            let (stamps, rto) = (timestamps(flow), seconds(min_rto(flow)));
            let ecn = u8::from(flow.tcp.ecn == Some(true));
            let _ = write!(
                settings,
                " window_ {window} windowInit_ {first} timestamps_ {stamps} minrto_ {rto} \
                 ecn_ {ecn}"
            );
        }
        Player::Ccid2 => {
            if let Some(window) = dccp.initial_window {
                let bytes = u32::try_from(size).unwrap_or(u32::MAX);
                let _ = write!(settings, " initial_cwnd_ {}", window.0.packets(bytes));
            }
            if let Some(threshold) = ccid2_threshold(scenario, flow) {
                let _ = write!(settings, " initial_ssthresh_ {threshold}");
            }
            if let Some(rto) = dccp.min_rto {
                let _ = write!(settings, " min_rto_ {}", seconds(rto));
            }
        }
        Player::Ccid3 => {
            let _ = write!(settings, " s_s_ {size} r_s_ {size}");
            if let Some(reduces) = dccp.oscillation_reduction {
                let _ = write!(settings, " s_use_osc_prev_ {}", u8::from(reduces));
            }
        }
        Player::Udp => {}
    }
    if let (Player::Ccid2 | Player::Ccid3, Some(queue)) = (player, dccp.send_queue) {
        let _ = write!(settings, " sb_size_ {}", queue.0);
    }
    settings
}

fn receiver_settings(flow: &Flow, player: Player) -> String {
    let size = packet_size(flow);
    match player {
        Player::Sack | Player::Linux(_) => {
            let stamps = format!("ts_echo_rfc1323_ {}", timestamps(flow));
            if delays_acks(flow) { format!("{stamps} interval_ {DELAYED_ACK_S}") } else { stamps }
        }
        Player::Ccid3 => format!("packetSize_ {size} s_s_ {size} r_s_ {size}"),
        Player::Ccid2 | Player::Udp => String::new(),
    }
}

/// When a flow starts and stops, and when its window is polled.
fn times(text: &mut String, scenario: &Scenario, i: usize, flow: &Flow, of: (Player, u64)) {
    let (player, seed) = of;
    let start = start_of(scenario, flow, Seed(seed));
    let _ = writeln!(text, "$ns at {} \"$source_of({i}) start\"", seconds(start));
    if let Some(stop) = flow.stop {
        let _ = writeln!(text, "$ns at {} \"$source_of({i}) stop\"", seconds(stop));
    }
    if player == Player::Ccid2 {
        let keep = flow.dccp.window_cut.map_or(0.5, |cut| 1.0 - cut.0 / 100.0);
        let changes = (keep - 0.5_f64).abs() > f64::EPSILON;
        let step = POLL_S[usize::from(changes)];
        let _ = writeln!(text, "set cuts({i}) 0; set timeouts({i}) 0");
        // Not before the connection is set up, which resets the window.
        let begin = seconds(start + scenario.topology.rtt());
        let _ = writeln!(text, "$ns at {begin} \"poll_ccid2 {i} {step} {keep}\"");
    }
}

const fn sample(player: Player) -> &'static str {
    match player {
        Player::Sack | Player::Linux(_) => "look_tcp",
        Player::Ccid2 => "look_ccid2",
        Player::Ccid3 => "look_ccid3",
        Player::Udp => "look_udp",
    }
}
