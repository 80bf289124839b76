//! Cost of one segment delivered, including both ends and the acknowledgements, over an in-memory
//! pipe in virtual time: `cargo bench -p udccp-tcp`. It should not grow with the window.
#![allow(clippy::print_stdout, reason = "a benchmark prints its numbers")]

use std::collections::VecDeque;

use udccp_base::{
    AppPort, Datagram, Duration, Instant, Machine, Message, Payload, Rng, Seed, Transport,
};
use udccp_cc::{Algorithm, InitialWindow};
use udccp_tcp::{TcpConfig, TcpReceiver, TcpSender};

const PAYLOAD: u64 = 1448;
const DELAY: Duration = Duration::from_millis(50);

/// Two ends and a first-in first-out queue each way.
struct Pipe {
    now: Instant,
    sender: TcpSender,
    receiver: TcpReceiver,
    forward: VecDeque<(Instant, Datagram)>,
    back: VecDeque<(Instant, Datagram)>,
    delivered: u64,
    rng: Rng,
    loss: f64,
}

impl Pipe {
    fn new(window: u32, loss: f64) -> Self {
        let config = TcpConfig {
            max_cwnd: Some(window),
            initial_window: InitialWindow::Packets(window),
            recv_buffer_bytes: 64 << 20,
            ..TcpConfig::new(Algorithm::NEW_RENO)
        };
        let (a, b) = (([10, 0, 0, 1], 40_001).into(), ([10, 0, 0, 2], 5001).into());
        Self {
            now: Instant::ZERO,
            sender: TcpSender::new(a, b, config.clone(), Seed(1)),
            receiver: TcpReceiver::new(b, a, config, Seed(2)),
            forward: VecDeque::new(),
            back: VecDeque::new(),
            delivered: 0,
            rng: Seed(7).stream("loss"),
            loss,
        }
    }

    fn step(&mut self) {
        let due = |queue: &VecDeque<(Instant, _)>| queue.front().map_or(Instant::MAX, |x| x.0);
        let (forward, back) = (due(&self.forward), due(&self.back));
        let timer = |t: Option<Instant>| t.unwrap_or(Instant::MAX);
        let timers = timer(self.sender.poll_timeout()).min(timer(self.receiver.poll_timeout()));
        if timers < forward.min(back) {
            self.now = timers;
            self.sender.handle_timeout(timers);
            self.receiver.handle_timeout(timers);
            self.drain_sender();
            self.drain_receiver();
        } else if forward <= back
            && let Some((at, d)) = self.forward.pop_front()
        {
            self.now = at;
            self.receiver.handle_datagram(at, d);
            self.drain_receiver();
        } else if let Some((at, d)) = self.back.pop_front() {
            self.now = at;
            self.sender.handle_datagram(at, d);
            self.drain_sender();
        }
    }

    fn drain_sender(&mut self) {
        while self.sender.is_writable() {
            self.sender.send(self.now, Message::new(Payload::Zeros(PAYLOAD as u32)));
        }
        while let Some(d) = self.sender.poll_transmit(self.now) {
            if self.loss == 0.0 || !self.rng.chance(self.loss) {
                self.forward.push_back((self.now + DELAY, d));
            }
        }
    }

    fn drain_receiver(&mut self) {
        while let Some(p) = self.receiver.poll_delivered(self.now) {
            self.delivered += p.len() as u64;
        }
        while let Some(d) = self.receiver.poll_transmit(self.now) {
            self.back.push_back((self.now + DELAY, d));
        }
    }

    fn run_until_delivered(&mut self, bytes: u64) {
        while self.delivered < bytes {
            self.step();
        }
    }
}

/// Nanoseconds and acknowledgements per segment delivered.
fn run(window: u32, loss: f64, segments: u64) -> (f64, f64) {
    let mut pipe = Pipe::new(window, loss);
    pipe.sender.open(pipe.now);
    pipe.drain_sender();
    pipe.run_until_delivered(segments / 10 * PAYLOAD);
    let acks = |pipe: &Pipe| pipe.receiver.stats().recv.pure_acks;
    let (delivered, acks_before, start) = (pipe.delivered, acks(&pipe), processor_nanos());
    pipe.run_until_delivered(delivered + segments * PAYLOAD);
    let nanos = (processor_nanos() - start) as f64;
    let delivered = (pipe.delivered - delivered) as f64 / PAYLOAD as f64;
    (nanos / delivered, (acks(&pipe) - acks_before) as f64 / delivered)
}

/// Processor time, which other load does not affect; wall-clock time on systems other than Linux.
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
            let segments = if loss > 0.0 && window == 100 { 200_000 } else { 2_000_000 };
            let runs = (0..5).map(|_| run(window, loss, segments));
            let (nanos, acks) = runs.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default();
            println!("{window:>8} {loss:>8} {nanos:>12.1} {acks:>12.2}");
        }
    }
}
