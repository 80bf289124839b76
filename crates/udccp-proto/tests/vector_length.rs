//! Ack Vectors stay as short as the peer's acknowledgements of them allow. Once losses are over,
//! nothing of before is reported again and again.

mod common;

use common::path::{Loses, Path};
use common::world::World;
use udccp_base::Duration;
use udccp_cc::Algorithm;
use udccp_proto::ConnectionConfig;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Both ends send as many messages of 20 bytes as they may. Returns the length of the longest
/// header in flight, with its options, and how many Syncs were sent.
fn run(world: &mut World, span: Duration) -> (usize, u64) {
    let syncs = |world: &World| -> u64 {
        let of = |host: usize| world.hosts[host].end.stats(world.id(host)).unwrap();
        [0, 1].map(|host| of(host).counters.syncs_sent).iter().sum()
    };
    let (until, before) = (world.now + span, syncs(world));
    let mut longest = 0;
    while world.now < until {
        for host in [0, 1] {
            while world.offer(host) {}
            world.read(host);
        }
        world.pass(MS * 20);
        longest = world.travelling.values().map(|(_, d)| d.header.len()).fold(longest, usize::max);
    }
    (longest, syncs(world) - before)
}

/// Regression: an acknowledgement whose fate was not reported in time was waited for without end.
/// Both ends then reported more and more packets, in 500 bytes of options a packet, and asked for
/// an acknowledgement of them with eight Syncs a second.
#[test]
fn losses_of_the_past_are_not_reported_for_ever() {
    for delay in [100, 300] {
        for loss in [0.0, 0.1] {
            let config =
                ConnectionConfig { send_queue_packets: 1000, ..ConnectionConfig::default() };
            let mut world = World::with(1, &config, MS * delay);
            let path = Path { rate: Some(60_000), queue: MS * 500, ..Path::default() };
            world.paths = [path.clone(), path.clone()];
            world.size = 20;
            // Slow start ends with many losses.
            run(&mut world, SECOND * 30);
            let lossy = Path { loss, loses: Loses::Data, ..world.paths[0].clone() };
            world.paths[0] = lossy;
            run(&mut world, SECOND * 30);
            world.paths[0] = path.clone();
            run(&mut world, SECOND * 40);
            let (longest, syncs) = run(&mut world, SECOND * 10);
            let case = format!("{delay} ms, {loss} lost");
            assert!(longest <= 100 && syncs == 0, "{case}: {longest} bytes, {syncs} Syncs");
        }
    }
}

/// Regression: of several hundred acknowledgements in flight between data, most were not recorded,
/// and confirmed nothing. Vectors reached back 17 round-trip times, without any loss. They reach
/// back one or two: a cell for 64 packets, and two for each loss in that time.
#[test]
fn vectors_cover_two_round_trip_times() {
    // BBR fills the path without the losses with which another slow start ends.
    let bbr = Algorithm::Bbr(<_>::default());
    for (ms, loss, algorithm, most) in [
        (40, 0.0, &bbr, 70),
        (100, 0.0, &bbr, 100),
        (300, 0.0, &bbr, 100),
        (100, 0.01, &bbr, 140),
        (40, 0.05, &bbr, 100),
        (100, 0.01, &Algorithm::CCID2, 60),
        (300, 0.05, &Algorithm::CCID2, 60),
    ] {
        let mut config =
            ConnectionConfig { send_queue_packets: 1000, ..ConnectionConfig::default() };
        config.ccid2.algorithm = algorithm.clone();
        let mut world = World::with(1, &config, MS * ms / 2);
        let path = Path { rate: Some(500_000), queue: MS * 500, loss, ..Path::default() };
        world.paths = [path.clone(), path];
        world.size = 20;
        let (longest, syncs) = run(&mut world, SECOND * 10);
        let case = format!("{ms} ms, {loss} lost, {algorithm:?}");
        assert!(longest <= most && syncs == 0, "{case}: {longest} bytes, {syncs} Syncs");
    }
}
