//! No segment allocates: headers are cut from blocks, and all other memory has reached its final
//! size.

mod common;

use common::{Fate, Pipe, ms};
use udccp_base::{Duration, Seed};
use udccp_cc::Algorithm;
use udccp_tcp::TcpConfig;
use udccp_testkit::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

#[test]
fn a_thousand_segments_cost_a_handful_of_allocations() {
    for loss in [0.0, 0.001] {
        let mut rng = Seed(3).stream("loss");
        let config = TcpConfig { max_cwnd: Some(500), ..TcpConfig::new(Algorithm::NEW_RENO) };
        let mut pipe = Pipe::new(config, ms(10))
            .with_rule(move |_, _| if rng.chance(loss) { Fate::Drop } else { Fate::Pass });
        pipe.start();
        pipe.run_for(Duration::from_secs(5));
        let (before, delivered) = (ALLOCATOR.allocations(), pipe.delivered);
        pipe.run_for(Duration::from_secs(5));
        let allocations = ALLOCATOR.allocations() - before;
        let segments = (pipe.delivered - delivered) / 1448;
        // A block of 16 KiB (two allocations) holds 500 headers of 32 bytes. With an
        // acknowledgement per two segments, that is six allocations per thousand segments.
        assert!(segments > 10_000, "{segments}");
        assert!(allocations < segments / 100, "{allocations} for {segments} segments");
    }
}
