//! If a host is as fast as the path, packets queue in the host instead of the network.

mod common;

use udccp_scenario::FlowRecord;

/// One bulk flow.
fn run(access: &str, protocol: &str, options: &str, bottleneck: &str) -> FlowRecord {
    let flow =
        format!("protocol = \"{protocol}\"\npacket = \"1040 B\"\ntraffic = \"bulk\"\n{options}");
    common::one_flow(access, bottleneck, &flow)
}

/// A host as fast as the path has the only queue. A kernel keeps segments out of it; then an unused
/// window does not grow, except up to twice what is in flight in slow start.
#[test]
fn a_host_as_fast_as_the_path_keeps_segments_in_the_socket() {
    let path = "rate = \"10 Mbit/s\", rtt = \"40 ms\", limit = \"50 packets\"";
    let alone = |access: &str, tcp: &str| {
        let access = format!("rate = \"10 Mbit/s\", limit = \"400 packets\"{access}");
        run(&access, "tcp/newreno", &format!("tcp = {{ {tcp} }}"), path)
    };
    for access in ["", ", token_bucket = \"1514 B\"", ", loss = \"0 %\""] {
        let flow = alone(access, "offload = false");
        let (rate, delay) = (flow.throughput_mbps.expect("a rate"), flow.delay_ms.expect("one"));
        // 20 ms and three transmissions of 0.83 ms; two segments are queued in the device.
        assert!(rate > 9.9 && delay < 26.0, "{rate} Mbit/s, {delay} ms");
        assert_eq!((flow.retransmits, flow.congestion_events), (0, 0));
        let cwnd = flow.series.cwnd_packets.iter().flatten().copied().fold(0.0, f64::max);
        // 52 are in flight.
        assert!((95.0..=110.0).contains(&cwnd), "a window of {cwnd} packets");
    }
    let flow = alone("", "small_queues = false");
    assert!(flow.delay_ms.expect("a delay") > 100.0 && flow.retransmits > 0);
}

/// Queued segments leave as soon as possible: a host that is faster than the path and does not pace
/// sends the same with and without small queues.
#[test]
fn small_queues_change_nothing_of_a_path_that_is_slower_than_its_hosts() {
    let path = "rate = \"10 Mbit/s\", rtt = \"40 ms\", limit = \"50 packets\"";
    for protocol in ["tcp/newreno", "tcp/cubic-rfc9438", "tcp/bic"] {
        let [with, without] = [true, false]
            .map(|small_queues| format!("tcp = {{ small_queues = {small_queues} }}"))
            .map(|tcp| run("rate = \"1 Gbit/s\"", protocol, &tcp, path));
        let of = |f: &FlowRecord| (f.packets_sent, f.congestion_events, f.retransmits);
        assert_eq!(of(&with), of(&without), "{protocol}");
    }
}

/// On average, a packet waits for half a tick, or at the first interface for half the interrupt
/// interval. Of the packets that it gathers, the first causes an interrupt at the second interface
/// immediately, and the rest waits for the next one.
#[test]
fn ticks_and_interrupts_hold_packets_back() {
    let delay_ms = |access: &str, bottleneck: &str| {
        let access = format!("rate = \"1 Gbit/s\"{access}");
        let path =
            format!("rate = \"100 Mbit/s\", rtt = \"40 ms\", limit = \"50 packets\"{bottleneck}");
        let flow = "protocol = \"udp\"\n\
                    traffic = { kind = \"constant-rate\", rate = \"1.1 Mbit/s\", size = \"97 B\" }";
        common::one_flow(&access, &path, flow).delay_ms.expect("a delay")
    };
    let exact = delay_ms("", "");
    let ticks = delay_ms("", ", delay_tick = \"10 ms\"") - exact;
    assert!((4.0..6.0).contains(&ticks), "{ticks} ms");
    let cards = delay_ms(", interrupt_moderation = \"10 ms\"", "") - exact;
    assert!((13.0..15.0).contains(&cards), "{cards} ms");
}

/// A socket with room for 40 packets: the host's queue is never longer, and loses nothing.
#[test]
fn a_send_buffer_limits_what_waits_in_the_host() {
    let path = "rate = \"10 Mbit/s\", rtt = \"40 ms\", limit = \"50 packets\"";
    let alone = |protocol: &str, dccp: &str| {
        run("rate = \"10 Mbit/s\", limit = \"400 packets\"", protocol, dccp, path)
    };
    for protocol in ["dccp/ccid2", "dccp/ccid3"] {
        // 2,304 bytes each.
        let flow = alone(protocol, "dccp = { send_buffer = \"90 KiB\" }");
        let (rate, delay) = (flow.throughput_mbps.expect("a rate"), flow.delay_ms.expect("one"));
        assert!(rate > 9.5 && delay < 20.0 + 43.0 * 0.832, "{protocol}: {rate} Mbit/s, {delay} ms");
        assert_eq!(flow.loss_percent, Some(0.0), "{protocol}");
    }
    let flow = alone("dccp/ccid2", "");
    assert!(flow.delay_ms.expect("a delay") > 100.0);
}

/// A packet dropped by the host's own queue has left the socket. A socket with room for more than
/// the queue never blocks, and sends the same as one with unlimited room.
#[test]
fn host_drops_are_not_counted_in_the_socket() {
    let path = "rate = \"10 Mbit/s\", rtt = \"40 ms\", limit = \"50 packets\"";
    for loss in ["", ", loss = \"0 %\""] {
        let access = format!("rate = \"10 Mbit/s\", limit = \"20 packets\"{loss}");
        for protocol in ["dccp/ccid2", "dccp/ccid3"] {
            // Room for 22 packets, and for 455.
            let [small, large] = ["48 KiB", "1 MiB"]
                .map(|size| format!("dccp = {{ send_buffer = \"{size}\" }}"))
                .map(|dccp| run(&access, protocol, &dccp, path));
            assert!(small.loss_percent.expect("a loss") > 0.0, "{protocol}");
            let of = |f: &FlowRecord| (f.packets_sent, f.loss_percent, f.delay_ms);
            assert_eq!(of(&small), of(&large), "{protocol}");
        }
    }
}

/// A host that pauses and resumes, and one whose peer answers: nothing queued for the device or for
/// room in the socket waits forever, and all of it arrives.
#[test]
fn host_queue_drains_after_silence_in_both_directions() {
    let path = "rate = \"2 Mbit/s\", rtt = \"40 ms\", limit = \"500 packets\"";
    let bursts = "{ kind = \"on-off\", rate = \"8 Mbit/s\", size = \"900 B\", on = \"200 ms\", \
                  off = \"1 s\" }";
    let dialogue = "{ kind = \"request-response\", request = \"20 kB\", response = \"40 kB\", \
                    think = \"100 ms\" }";
    let dccp = |size: &str| format!("dccp = {{ send_buffer = \"{size}\" }}");
    let old =
        |size: &str| format!("tcp = {{ profile = \"linux-2.6.22\", send_buffer = \"{size}\" }}");
    // With room for two packets in the host, the window is barely used and barely grows. 64 KiB of
    // memory hold a quarter of a burst of 200 kB.
    for (protocol, waits, free, least) in [
        ("tcp/newreno", String::new(), "tcp = { small_queues = false }", 0.95),
        ("tcp/newreno", old("4 MiB"), "tcp = { profile = \"linux-2.6.22\" }", 0.95),
        ("tcp/newreno", old("64 KiB"), "tcp = { profile = \"linux-2.6.22\" }", 0.25),
        ("dccp/ccid2", dccp("208 KiB"), "", 0.95),
        ("dccp/ccid3", dccp("208 KiB"), "", 0.95),
        ("dccp/ccid2", dccp("3 KiB"), "", 0.3),
        ("dccp/ccid3", dccp("3 KiB"), "", 0.3),
    ] {
        for traffic in [bursts, dialogue] {
            let [with, without] = [&*waits, free].map(|options| {
                let flow = format!("protocol = \"{protocol}\"\ntraffic = {traffic}\n{options}");
                common::one_flow("rate = \"2 Mbit/s\"", path, &flow)
            });
            let ratio = with.goodput_bytes as f64 / without.goodput_bytes as f64;
            assert!(without.goodput_bytes > 500_000, "{protocol}, {traffic}");
            assert!(ratio >= least, "{protocol}, {traffic}: {ratio}");
            // It is still sending at the end.
            let last = with.series.goodput_mbps.iter().rev().take(50).sum::<f64>();
            assert!(last > 0.0, "{protocol}, {traffic}");
        }
    }
}

/// With 1 % loss, DCCP loses 1 % and TCP nothing.
#[test]
fn losses_of_a_dccp_host_hit_dccp_alone() {
    let path = "rate = \"100 Mbit/s\", rtt = \"40 ms\", limit = \"1000 packets\"";
    let alone = |protocol: &str| {
        let options = "dccp = { host_loss = \"1 %\", max_window = \"20 packets\" }\n\
                       tcp = { max_window = \"20 packets\" }";
        run("rate = \"1 Gbit/s\"", protocol, options, path)
    };
    let percent = alone("dccp/ccid2").loss_percent.expect("a loss");
    assert!((0.6..1.4).contains(&percent), "{percent} %");
    assert_eq!(alone("tcp/newreno").retransmits, 0);
}
