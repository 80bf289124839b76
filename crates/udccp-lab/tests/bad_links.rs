//! An error in a link's description names its line, the problem, and the valid form.

use udccp_lab::document;
use udccp_lab::schema::Scenario;

const GOOD: &str = r#"schema = 1

[topology]
shape = "dumbbell"
access = { rate = "100 Mbit/s", delay = "1 ms" }

[topology.bottleneck]
rate = "10 Mbit/s"
rtt = "40 ms"
queue = "drop-tail"
limit = "1.0 bdp"
loss = "1 %"

[[topology.change]]
at = "20 s"
link = "bottleneck"
rate = "5 Mbit/s"

[time]
duration = "60 s"

[[flow]]
name = "first"
protocol = "dccp/ccid2"
traffic = "bulk"
"#;

/// The error if `from` is replaced by `to`.
fn error(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "the test no longer changes anything: {from}");
    errors_of(GOOD.replacen(from, to, 1))
}

/// The errors of a scenario. Files are looked for next to it.
fn errors_of(text: String) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/records/");
    let name = format!("{folder}wireless.toml");
    let tree = document::parse(&name, text).expect("TOML");
    let message = match Scenario::read(&tree) {
        Ok(_) => "accepted".to_owned(),
        Err(errors) => errors.to_string(),
    };
    message.replace(folder, "")
}

#[test]
fn the_good_file_is_good() {
    assert_eq!(error("drop-tail", "drop-tail"), "accepted");
}

#[test]
fn a_token_bucket_may_be_as_small_as_a_packet() {
    let own = "delay = \"1 ms\", token_bucket = \"1500 B\" }";
    assert_eq!(error("delay = \"1 ms\" }", own), "accepted");
}

/// It drops longer packets, which is its purpose.
#[test]
fn an_mtu_may_be_as_small_as_the_packets_of_some_flow() {
    assert_eq!(error("rtt = \"40 ms\"", "rtt = \"40 ms\"\nmtu = \"200 B\""), "accepted");
}

/// Packets that find the transmitter idle need no queue.
#[test]
fn a_link_may_have_no_queue() {
    for limit in ["0 packets", "0 B", "0 bdp", "0 bdp bytes"] {
        assert_eq!(error("1.0 bdp", limit), "accepted", "{limit}");
    }
}

#[test]
fn a_change_may_stop_a_link() {
    assert_eq!(error("rate = \"5 Mbit/s\"", "rate = \"0 bit/s\""), "accepted");
}

#[test]
fn a_hop_has_no_rtt_in_either_direction() {
    let hop = |delay: &str| {
        let chain = GOOD
            .replace("\"dumbbell\"", "\"chain\"")
            .replace("[topology.bottleneck]", "[[topology.hop]]");
        errors_of(chain.replace("rtt = \"40 ms\"", delay))
    };
    assert_eq!(hop("delay = \"20 ms\"\nreverse = { delay = \"1 ms\" }"), "accepted");
    insta::assert_snapshot!(hop("rtt = \"40 ms\""));
    insta::assert_snapshot!(hop("delay = \"20 ms\"\nreverse = { rtt = \"40 ms\" }"));
}

macro_rules! says {
    ($($name:ident: $from:expr => $to:expr;)*) => {$(
        #[test]
        fn $name() {
            insta::assert_snapshot!(error($from, $to));
        }
    )*};
}

says! {
    unknown_queue: "\"drop-tail\"" => "\"drop-tale\"";
    a_queue_without_its_kind: "\"drop-tail\"" => "{ ecn = true }";
    unknown_key_of_a_queue: "\"drop-tail\"" => "{ kind = \"codel\", tarket = \"5 ms\" }";
    red_without_thresholds: "\"drop-tail\"" => "\"red\"";
    red_with_min_above_max: "\"drop-tail\"" =>
        "{ kind = \"red\", min = \"15 packets\", max = \"5 packets\" }";
    red_with_thresholds_and_a_target: "\"drop-tail\"" =>
        "{ kind = \"red\", min = \"5 packets\", max = \"15 packets\", target = \"5 ms\" }";
    red_with_an_impossible_weight: "\"drop-tail\"" =>
        "{ kind = \"red\", min = \"5 packets\", max = \"15 packets\", weight = 2.0 }";
    red_with_wrong_units_and_right_keys: "\"drop-tail\"" => "{ kind = \"red\", min = 5, \
        max = \"15 packets\", max_probability = \"1 %\", gentle = true, unit = \"byte\", \
        ecn = true }";
    red_with_packets_of_no_size: "\"drop-tail\"" =>
        "{ kind = \"red\", adaptive = true, mean_packet = \"0 B\" }";
    no_flow_queues_of_a_known_quantum: "\"drop-tail\"" =>
        "{ kind = \"fq-codel\", flows = 0, quantum = \"300 B\" }";
    a_gain_below_zero: "\"drop-tail\"" => "{ kind = \"pie\", alpha = -1.0 }";
    reordering_of_none: "rtt = \"40 ms\"" =>
        "rtt = \"40 ms\"\nreorder = { share = \"1 %\", by = \"5 ms\", gap = 0 }";
    no_flow_queues: "\"drop-tail\"" => "{ kind = \"fq-codel\", flows = 0 }";
    unknown_loss_model: "\"1 %\"" => "{ kind = \"gilbert-eliot\" }";
    bursts_that_cannot_be: "\"1 %\"" =>
        "{ kind = \"gilbert-elliott\", share = \"90 %\", burst = \"2 packets\" }";
    bursts_described_twice: "\"1 %\"" =>
        "{ kind = \"gilbert-elliott\", share = \"1 %\", burst = \"2 packets\", p = \"1 %\" }";
    a_period_of_nothing: "\"1 %\"" => "{ kind = \"periodic\", every = \"0 packets\" }";
    losses_at_no_time: "\"1 %\"" => "{ kind = \"periodic\", at = [] }";
    a_record_of_losses_with_a_wrong_mark: "\"1 %\"" =>
        "{ kind = \"trace\", file = \"flags.txt\" }";
    a_record_of_losses_that_does_not_rise: "\"1 %\"" =>
        "{ kind = \"trace\", file = \"numbers.txt\", lists = \"numbers\" }";
    a_delay_and_an_rtt: "rtt = \"40 ms\"" => "rtt = \"40 ms\"\ndelay = \"5 ms\"";
    jitter_beside_a_distribution: "rtt = \"40 ms\"" =>
        "rtt = \"40 ms\"\njitter = \"1 ms\"\n\
         delay_distribution = { kind = \"normal\", deviation = \"1 ms\" }";
    unknown_distribution: "rtt = \"40 ms\"" =>
        "rtt = \"40 ms\"\ndelay_distribution = { kind = \"norml\", deviation = \"1 ms\" }";
    a_bad_line_of_delays: "rtt = \"40 ms\"" =>
        "rtt = \"40 ms\"\ndelay_distribution = { kind = \"trace\", file = \"delays.txt\" }";
    a_token_bucket_with_another_queue: "queue = \"drop-tail\"" =>
        "queue = \"codel\"\ntoken_bucket = \"3000 B\"";
    a_token_bucket_on_a_link_that_changes: "rtt = \"40 ms\"" =>
        "rtt = \"40 ms\"\ntoken_bucket = \"3000 B\"";
    a_token_bucket_smaller_than_a_packet: "delay = \"1 ms\" }" =>
        "delay = \"1 ms\", token_bucket = \"1499 B\" }";
    a_token_bucket_smaller_than_a_packet_of_its_flow: "traffic = \"bulk\"" =>
        "traffic = \"bulk\"\npacket = \"600 B\"\naccess = { token_bucket = \"599 B\" }";
    delays_in_ticks_of_packets_that_overtake: "rtt = \"40 ms\"" =>
        "rtt = \"40 ms\"\ndelay_tick = \"4 ms\"\nreorder = { share = \"1 %\", by = \"5 ms\" }";
    an_rtt_below_that_of_the_access_links_with_a_reverse: "delay = \"1 ms\" }" =>
        "delay = \"15 ms\" }\nreverse = { rate = \"1 Mbit/s\" }";
    an_rtt_of_a_reverse_below_that_of_the_access_links: "delay = \"1 ms\" }" =>
        "delay = \"1 ms\" }\nreverse = { rtt = \"3 ms\" }";
    a_rate_and_a_trace: "rtt = \"40 ms\"" => "rtt = \"40 ms\"\ntrace = \"steady.trace\"";
    a_trace_that_is_missing: "rate = \"10 Mbit/s\"" => "trace = \"nowhere.trace\"";
    a_trace_that_is_empty: "rate = \"10 Mbit/s\"" => "trace = \"empty.trace\"";
    a_trace_that_falls: "rate = \"10 Mbit/s\"" => "trace = \"falling.trace\"";
    a_trace_without_an_end: "rate = \"10 Mbit/s\"" => "trace = \"zero.trace\"";
    a_change_of_the_rate_of_a_trace: "rate = \"10 Mbit/s\"" => "trace = \"steady.trace\"";
    a_change_of_an_unknown_link: "link = \"bottleneck\"" => "link = \"botleneck\"";
    a_change_of_nothing: "rate = \"5 Mbit/s\"\n" => "";
    a_change_after_the_end: "at = \"20 s\"" => "at = \"60 s\"";
    two_changes_of_one_thing: "[time]" =>
        "[[topology.change]]\nat = \"20 s\"\nlink = \"bottleneck reverse\"\n\
         rate = \"1 Mbit/s\"\n\n[time]";
    unknown_key_of_a_change: "rate = \"5 Mbit/s\"" => "rat = \"5 Mbit/s\"";
    a_link_of_rate_zero: "rate = \"10 Mbit/s\"" => "rate = \"0 Mbit/s\"";
    a_link_of_less_than_a_bit: "rate = \"10 Mbit/s\"" => "rate = \"0.4 bit/s\"";
    two_losses_of_one_link: "delay = \"1 ms\" }" =>
        "delay = \"1 ms\", loss = \"1 %\" }\n\n[[flow]]\nname = \"second\"\n\
         protocol = \"dccp/ccid2\"\ntraffic = \"bulk\"\ndccp = { host_loss = \"1 %\" }";
    an_mtu_without_unit: "rtt = \"40 ms\"" => "rtt = \"40 ms\"\nmtu = 1500";
    an_mtu_of_nothing: "rtt = \"40 ms\"" => "rtt = \"40 ms\"\nmtu = \"0 B\"";
    an_mtu_below_every_packet: "rtt = \"40 ms\"" => "rtt = \"40 ms\"\nmtu = \"199 B\"";
    a_queue_of_a_trace_without_room: "rate = \"10 Mbit/s\"\nrtt = \"40 ms\"\n\
        queue = \"drop-tail\"\nlimit = \"1.0 bdp\"" =>
        "trace = \"steady.trace\"\nrtt = \"40 ms\"\nlimit = \"0 packets\"";
    a_queue_of_a_trace_of_less_than_one_packet: "rate = \"10 Mbit/s\"\nrtt = \"40 ms\"\n\
        queue = \"drop-tail\"\nlimit = \"1.0 bdp\"" =>
        "trace = \"steady.trace\"\nrtt = \"40 ms\"\nlimit = \"0.001 bdp\"";
    a_queue_of_a_trace_smaller_than_a_packet: "rate = \"10 Mbit/s\"\nrtt = \"40 ms\"\n\
        queue = \"drop-tail\"\nlimit = \"1.0 bdp\"" =>
        "trace = \"steady.trace\"\nrtt = \"40 ms\"\nlimit = \"1499 B\"";
}
