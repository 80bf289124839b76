//! Window algorithms count packets, whatever their size: small messages fill a path as large ones
//! do.

mod common;

use common::path::Path;
use common::world::{Host, World};
use common::{CLIENT, SERVER, connect_options};
use udccp_base::{Duration, Instant, Seed};
use udccp_proto::ccid::CcidRegistry;
use udccp_proto::{ConnectionConfig, EndpointConfig};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
/// Bytes a second: 10 Mbit/s.
const RATE: u64 = 1_250_000;

fn world(ccid: u8) -> World {
    let hosts = ["client", "server"].map(|name| {
        let ccids = CcidRegistry::with_experiments();
        let secret = Seed(1).stream(name).bytes32();
        let config = EndpointConfig { ccids, ..EndpointConfig::new(secret) };
        Host::with(config, Instant::ZERO + SECOND)
    });
    let config = ConnectionConfig {
        tx_ccids: vec![ccid],
        rx_ccids: vec![ccid],
        send_queue_packets: 10_000,
        ..ConnectionConfig::default()
    };
    let rng = Seed(1).stream("network");
    let mut world = World::between(1, rng, hosts, connect_options(config), MS * 25);
    let path = Path { rate: Some(RATE), queue: MS * 50, ..Path::default() };
    world.paths = [path.clone(), path];
    world
}

/// Sends all that may be sent. Returns the share of the path that was used.
fn use_of_path(world: &mut World, size: usize, span: Duration) -> f64 {
    world.size = size;
    let before = world.hosts[SERVER].received;
    let until = world.now + span;
    while world.now < until {
        while world.offer(CLIENT) {}
        world.pass(MS * 10);
        world.read(SERVER);
    }
    // With IP header and the header of Data.
    let bytes = (world.hosts[SERVER].received - before) * (size as u64 + 20 + 16);
    bytes as f64 / RATE as f64 / span.as_secs_f64()
}

#[test]
fn messages_of_any_size_fill_a_path() {
    for ccid in [2, 249, 250] {
        for size in [20, 100, 1400] {
            let mut world = world(ccid);
            use_of_path(&mut world, size, SECOND * 10);
            let used = use_of_path(&mut world, size, SECOND * 10);
            assert!(used > 0.95, "CCID {ccid}, {size} bytes: {used}");
        }
    }
}

/// BBR knows what the path carries, in bytes.
#[test]
fn bbr_fills_a_path_when_the_size_changes() {
    let mut world = world(250);
    use_of_path(&mut world, 1400, SECOND * 10);
    let used = use_of_path(&mut world, 20, SECOND * 10);
    assert!(used > 0.9, "{used}");
    let lost = |world: &World| {
        let stats = world.hosts[CLIENT].end.stats(world.id(CLIENT)).unwrap();
        stats.counters.data_packets_lost
    };
    let before = lost(&world);
    use_of_path(&mut world, 1400, SECOND * 10);
    let lost = lost(&world) - before;
    assert!(lost < 100, "{lost} lost");
}
