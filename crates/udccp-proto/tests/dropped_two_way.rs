//! Data Dropped between two ends that both send: a report is repeated until the other end is known
//! to have it, and not much longer, although nearly all other packets are data.

mod common;

use common::path::Path;
use common::world::World;
use common::{CLIENT, SERVER};
use udccp_base::{Duration, Instant};
use udccp_proto::ConnectionConfig;
use udccp_wire::{OptionRef, PacketView};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
/// Several round-trip times, in which reports or acknowledgements of them may be lost.
const BOUND: Duration = Duration::from_secs(4);

/// When each end last dropped data, and when it last reported that.
struct Times {
    dropped: [Instant; 2],
    reported: [Instant; 2],
}

/// Both ends send for half a minute. For four seconds of it, their applications do not read.
fn tell(world: &mut World, answers: bool) -> Times {
    let start = world.now;
    let (mut times, mut drops) = (Times { dropped: [start; 2], reported: [start; 2] }, [0; 2]);
    while world.now < start + SECOND * 30 {
        let past = (world.now - start).as_millis();
        for host in [CLIENT, SERVER] {
            match answers && host == SERVER {
                true if past % 100 == 0 => world.send(host),
                true => {}
                false => while world.offer(host) {},
            }
            if !(5_000..9_000).contains(&past) {
                world.read(host);
            }
            let stats = world.hosts[host].end.stats(world.id(host)).unwrap();
            let dropped = stats.counters.drops.receive_queue_full;
            if dropped > drops[host] {
                (drops[host], times.dropped[host]) = (dropped, world.now);
            }
        }
        world.pass(MS * 20);
        for (to, d) in world.travelling.values() {
            let view = PacketView::new(&d.header, d.transport_len()).unwrap();
            if view.options().any(|o| matches!(o, Ok(OptionRef::DataDropped(_)))) {
                times.reported[1 - to] = world.now;
            }
        }
    }
    assert!(drops[SERVER] > 0, "nothing was dropped: {}", world.stats());
    times
}

//= 4340-11.7-12 test
/// Regression: without Ack Vectors (CCID 3 and 4), a report was known to have arrived only when the
/// other end happened to acknowledge just its packet. Between data that was rare: it was repeated
/// until it was 3,968 packets old, for 40 s.
#[test]
fn reports_end_soon_after_the_last_drop() {
    for (ccid, delay, loss, reorder, answers) in [
        (2, 150, 0.0, 0.0, false),
        (3, 150, 0.0, 0.0, false),
        (3, 150, 0.0, 0.0, true),
        (3, 20, 0.0, 0.2, false),
        (4, 150, 0.0, 0.0, false),
        (4, 150, 0.05, 0.0, true),
        (4, 20, 0.05, 0.0, false),
    ] {
        let config = ConnectionConfig {
            tx_ccids: vec![ccid],
            rx_ccids: vec![ccid],
            send_queue_packets: 1000,
            recv_queue_packets: 100,
            hold_acks_when_full: false,
            ..ConnectionConfig::default()
        };
        let mut world = World::with(1, &config, MS * delay);
        let (rate, queue, detour) = (Some(100_000), MS * 300, MS * 30);
        let path = Path { rate, queue, loss, reorder, detour, ..Path::default() };
        world.paths = [path.clone(), path];
        let times = tell(&mut world, answers);
        for host in [CLIENT, SERVER] {
            let span = times.reported[host].saturating_since(times.dropped[host]);
            assert!(span <= BOUND, "host {host}, CCID {ccid}, {delay} ms, {loss} lost: {span:?}");
        }
    }
}
