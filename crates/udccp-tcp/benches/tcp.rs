//! Cost of one segment delivered, both ends and the acknowledgements included, over an in-memory
//! pipe in virtual time: `cargo bench -p udccp-tcp`. Flat in the window is the point.
#![allow(clippy::print_stdout, reason = "a benchmark prints its numbers")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Fate, Pipe, ms};
use udccp_base::Seed;
use udccp_cc::{Algorithm, InitialWindow};
use udccp_tcp::TcpConfig;

fn config(window: u32) -> TcpConfig {
    TcpConfig {
        max_cwnd: Some(window),
        initial_window: InitialWindow::Packets(window),
        recv_buffer_bytes: 64 << 20,
        ..TcpConfig::new(Algorithm::NEW_RENO)
    }
}

fn run(window: u32, loss: f64, segments: u64) -> (f64, f64) {
    let mut rng = Seed(7).stream("loss");
    let mut pipe = Pipe::new(config(window), ms(50));
    if loss > 0.0 {
        pipe = pipe.with_rule(move |_, _| if rng.chance(loss) { Fate::Drop } else { Fate::Pass });
    }
    pipe.start();
    let payload = 1448;
    while pipe.delivered < segments * payload / 10 {
        pipe.run_for(ms(10));
    }
    let before = (pipe.delivered, pipe.receiver.stats().recv.pure_acks);
    let start = processor_nanos();
    while pipe.delivered - before.0 < segments * payload {
        pipe.run_for(ms(10));
    }
    let nanos = (processor_nanos() - start) as f64;
    let delivered = (pipe.delivered - before.0) as f64 / payload as f64;
    let acks = (pipe.receiver.stats().recv.pure_acks - before.1) as f64;
    (nanos / delivered, acks / delivered)
}

/// Time on the processor, which other programs do not lengthen; elsewhere than on Linux the time
/// of the clock.
fn processor_nanos() -> u64 {
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").ok();
    let on_cpu = schedstat.and_then(|s| s.split(' ').next()?.parse().ok());
    on_cpu.unwrap_or_else(|| {
        #[expect(clippy::disallowed_methods, reason = "a benchmark owns a clock")]
        let now = std::time::SystemTime::now();
        now.duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64)
    })
}

fn main() {
    println!("{:>8} {:>8} {:>12} {:>12}", "window", "loss", "ns/segment", "acks/segment");
    for window in [100, 1000, 10_000] {
        for loss in [0.0, 0.001] {
            // A lossy window of 100 is some 30 segments, and the flow idles most of the time.
            let segments = if loss > 0.0 && window == 100 { 200_000 } else { 2_000_000 };
            let runs = (0..3).map(|_| run(window, loss, segments));
            let (nanos, acks) = runs.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default();
            println!("{window:>8} {loss:>8} {nanos:>12.1} {acks:>12.2}");
        }
    }
}
