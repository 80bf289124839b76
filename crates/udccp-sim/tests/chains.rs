//! Routers in a row: the hops that each flow crosses, and the counters of each hop.

mod toy;

use toy::{ToyReceiver, ToySender};
use udccp_base::{DataRate, Duration, Seed};
use udccp_sim::{
    BottleneckConfig, Bulk, Chain, ConstantRate, HopConfig, IpVersion, PairAddresses, PairConfig,
    QueueLimit, RunConfig, RunResult,
};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A hop of 8 Mbit/s and 5 ms: 1000 B take 1 ms.
fn hop() -> HopConfig {
    HopConfig::symmetric(DataRate::from_mbps(8), ms(10), QueueLimit::Packets(20))
}

/// Sends `tens` times ten packets of 1000 B (968 of data) per second.
fn cbr(at: PairAddresses, name: &str, tens: u64, way: (usize, usize)) -> PairConfig {
    let rate = DataRate::from_bytes_per_sec(9_680 * tens);
    let source = Box::new(ConstantRate::new(rate, 968));
    let pair = PairConfig::new(name, ToySender::udp(at), ToyReceiver::udp(at), source);
    PairConfig { enters: Some(way.0), leaves: Some(way.1), ..pair }
}

fn run(chain: Chain, seconds: u64) -> RunResult {
    let mut run = RunConfig::new(Duration::from_secs(seconds), Seed(1));
    run.check = true;
    chain.run(run).unwrap()
}

#[test]
fn a_flow_crosses_the_hops_between_its_routers_and_no_other() {
    let mut chain = Chain::new(vec![hop(); 3]);
    for (name, packets, way) in
        [("long", 1, (0, 3)), ("middle", 2, (1, 2)), ("back", 3, (3, 1)), ("last", 4, (2, 3))]
    {
        let at = chain.next_addresses();
        chain.add_pair(cbr(at, name, packets, way));
    }
    let result = run(chain, 20);
    let delays: Vec<u64> =
        result.flows.iter().map(|f| f.measured.delay.max().unwrap().as_millis()).collect();
    // Each hop takes 5 ms plus 1 ms of serialisation; a packet of another flow may be ahead.
    assert!((18..=21).contains(&delays[0]) && (6..=8).contains(&delays[1]), "{delays:?}");
    assert!((12..=13).contains(&delays[2]), "{delays:?}");
    let hops = |i: usize| result.flows[i].crossings.iter().map(|c| c.hop).collect::<Vec<_>>();
    assert_eq!([hops(0), hops(1), hops(2), hops(3)], [vec![0, 1, 2], vec![1], vec![2, 1], vec![2]]);
    let used = |link: &udccp_sim::LinkResult| (link.utilisation * 1000.0).round() as i64;
    let found: Vec<[i64; 2]> = result.system.hops().map(|hop| hop.map(used)).collect();
    // Of 1000 packets per second: 10; 10 + 20; 10 + 40; and 30 in the other direction.
    assert_eq!(found, [[10, 0], [30, 30], [50, 30]]);
    let names: Vec<&str> = result.system.hops().flatten().map(|l| l.name.as_str()).collect();
    assert_eq!(names[..3], ["hop 1 forward", "hop 1 reverse", "hop 2 forward"]);
}

#[test]
fn what_crosses_a_hop_is_counted_by_flow_and_direction() {
    let mut chain = Chain::new(vec![hop()]);
    let at = chain.next_addresses();
    let (sender, receiver) = (ToySender::new(at, 4), ToyReceiver::new(at));
    chain.add_pair(PairConfig::new("acked", sender, receiver, Box::new(Bulk::new())));
    let at = chain.next_addresses();
    chain.add_pair(cbr(at, "alone", 10, (0, 1)));
    let at = chain.next_addresses();
    chain.add_pair(cbr(at, "back", 20, (1, 0)));
    let result = run(chain, 10);
    let [acked, alone, back] = [0, 1, 2].map(|i| result.flows[i].crossings[0]);
    assert_eq!(alone.acks.packets + back.acks.packets, 0);
    assert!(acked.acks.packets * 2 >= acked.data.packets - 4, "{acked:?}");
    assert!((990..=1000).contains(&alone.data.packets), "{alone:?}");
    assert!((1990..=2000).contains(&back.data.packets), "{back:?}");
    let system = &result.system;
    let forward = acked.data.bytes + alone.data.bytes + back.acks.bytes;
    assert_eq!(system.forward.whole.departed.bytes, forward);
    assert_eq!(system.reverse.whole.departed.bytes, acked.acks.bytes + back.data.bytes);
}

#[test]
fn a_narrow_way_back_throttles_a_flow_that_waits_for_acks() {
    let goodput = |reverse_kbps: u64| {
        let reverse = BottleneckConfig {
            rate: Some(DataRate::from_bits_per_sec(reverse_kbps * 1_000)),
            limit: QueueLimit::Packets(10),
            ..hop().reverse
        };
        let mut chain = Chain::new(vec![HopConfig { reverse, ..hop() }]);
        let at = chain.next_addresses();
        let (sender, receiver) = (ToySender::new(at, 20), ToyReceiver::new(at));
        chain.add_pair(PairConfig::new("one", sender, receiver, Box::new(Bulk::new())));
        run(chain, 20).flows[0].measured.goodput().as_mbps()
    };
    let (wide, narrow) = (goodput(8_000), goodput(10));
    // 10 kbit/s carry 39 acks of 32 B per second, each of which acknowledges about two of 1468 B.
    assert!(wide > 7.5, "{wide}");
    assert!((0.4..2.0).contains(&narrow), "{narrow}");
}

#[test]
fn pairs_that_make_up_a_flow_are_counted_together() {
    let together = |grouped: bool| {
        let mut chain = Chain::new(vec![hop()]);
        let pairs = (0..3).map(|i| PairConfig {
            start: ms(1_000 * i),
            ..cbr(PairAddresses::of(i as usize, IpVersion::V4), &format!("part {i}"), 10, (0, 1))
        });
        if grouped {
            chain.add_flow("parts", pairs.collect());
        } else {
            pairs.for_each(|pair| {
                chain.add_pair(pair);
            });
        }
        run(chain, 5)
    };
    let (apart, grouped) = (together(false), together(true));
    assert_eq!(apart.hash, grouped.hash);
    assert_eq!((apart.flows.len(), grouped.flows.len()), (3, 1));
    let flow = &grouped.flows[0];
    assert_eq!(flow.goodput_bytes, apart.flows.iter().map(|f| f.goodput_bytes).sum::<u64>());
    assert_eq!(flow.source.accepted, apart.flows.iter().map(|f| f.source.accepted).sum::<u64>());
    let crossed = |r: &RunResult| r.flows.iter().map(|f| f.crossings[0].data.bytes).sum::<u64>();
    assert_eq!(crossed(&apart), crossed(&grouped));
}

#[test]
fn an_invalid_path_through_the_routers_is_refused() {
    for way in [(1, 1), (0, 4), (7, 0)] {
        let mut chain = Chain::new(vec![hop(); 3]);
        let at = chain.next_addresses();
        chain.add_pair(cbr(at, "lost", 1, way));
        let error = chain.run(RunConfig::new(ms(10), Seed(1))).unwrap_err().to_string();
        assert!(error.contains("flow \"lost\"") && error.contains("0 to 3"), "{error}");
    }
}
