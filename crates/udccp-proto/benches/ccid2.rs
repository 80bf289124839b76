//! Cost of CCID 2 for a packet that is sent and acknowledged, at several congestion windows. It
//! must not grow with the window. `cargo bench -p udccp-proto --bench ccid2`
//!
//! Each round sends and acknowledges 1,000 packets, two per acknowledgement, so the microseconds
//! printed for a round are the nanoseconds per packet.

use divan::Bencher;
use divan::counter::ItemsCount;
use udccp_base::{Duration, Ecn, Instant};
use udccp_cc::{Algorithm, Cut, GrowthAfterCut, InitialWindow};
use udccp_proto::ccid::ccid2::{Ccid2Config, Ccid2Receiver, Ccid2Sender};
use udccp_proto::ccid::{
    AckInfo, CcidReceiver, CcidSender, Feedback, ReceivedInfo, SendVerdict, SentInfo,
};
use udccp_wire::Seqno;

const PACKETS: u64 = 1000;
const WINDOWS: [u32; 4] = [100, 1000, 10_000, 100_000];

fn main() {
    divan::main();
}

/// A sender in steady state with a full window, and the Ack Vectors that it receives.
struct Flow {
    sender: Ccid2Sender,
    now: Instant,
    next: u64,
    acked: u64,
    cells: Vec<u8>,
    step: Duration,
    /// Whether one packet in a thousand is lost.
    lossy: bool,
}

impl Flow {
    fn new(window: u32, lossy: bool) -> Self {
        let config = Ccid2Config {
            // Losses are processed as usual, but the window does not change.
            algorithm: Algorithm::NewReno {
                cut: Cut::drop_percent(0),
                after_cut: GrowthAfterCut::Pauses,
            },
            initial_window: InitialWindow::Packets(window),
            max_window: window,
            ..Ccid2Config::default()
        };
        let mut flow = Self {
            sender: Ccid2Sender::new(&config, 1400),
            now: Instant::ZERO,
            next: 1,
            acked: 0,
            // Vectors cover one and a half windows.
            cells: vec![63; window as usize * 3 / 2 / 64 + 1],
            step: Duration::from_millis(100) / u64::from(window),
            lossy,
        };
        flow.fill();
        for _ in 0..window / 250 + 1 {
            flow.round();
        }
        flow
    }

    fn fill(&mut self) {
        while self.sender.poll_send(self.now, 1400) == SendVerdict::Now {
            let sent = SentInfo {
                seq: Seqno::new(self.next),
                size_bytes: 1400,
                is_data: true,
                has_ack: self.sender.wants_ack_of_ack(),
                app_limited: false,
                ecn: Ecn::Ect0,
            };
            self.sender.on_sent(self.now, sent);
            self.next += 1;
        }
    }

    /// Marks the newest lost packet in the vector.
    fn cut_hole(&mut self) {
        let since_hole = ((self.acked - 1) % PACKETS) as usize;
        let full = since_hole / 64;
        let end = self.cells.len().min(full + 3);
        self.cells[full.saturating_sub(1).min(end)..end].fill(63);
        if since_hole % 64 != 0 && full + 1 < self.cells.len() {
            self.cells[full] = (since_hole % 64) as u8 - 1;
            self.cells[full + 1] = 0xc0;
        }
    }

    fn round(&mut self) {
        for _ in 0..PACKETS / 2 {
            self.now += self.step * 2;
            self.acked += 2;
            if self.lossy {
                self.cut_hole();
            }
            let ack = AckInfo {
                ackno: Seqno::new(self.acked),
                ack_vector: Some((&self.cells, false)),
                ..AckInfo::default()
            };
            self.sender.on_ack(self.now, &ack);
            self.fill();
        }
        assert!(self.next - self.acked > u64::from(self.sender.metrics().cwnd.unwrap_or(0)));
    }
}

/// The sender half: poll, send, acknowledge.
#[divan::bench(args = WINDOWS)]
fn sender(bencher: Bencher<'_, '_>, window: u32) {
    let mut flow = Flow::new(window, false);
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| flow.round());
}

/// The sender half with a loss of one packet in a thousand.
#[divan::bench(args = WINDOWS)]
fn sender_with_losses(bencher: Bencher<'_, '_>, window: u32) {
    let mut flow = Flow::new(window, true);
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| flow.round());
    let metrics = flow.sender.metrics();
    assert!(metrics.packets_lost > 0 && metrics.cwnd == Some(window), "{metrics:?}");
}

/// The receiver half: receive a packet, decide about an acknowledgement.
#[divan::bench]
fn receiver(bencher: Bencher<'_, '_>) {
    let mut receiver = Ccid2Receiver::new(&Ccid2Config::default());
    let mut now = Instant::ZERO;
    let mut seq = Seqno::new(1);
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| {
        for _ in 0..PACKETS {
            now += Duration::from_micros(120);
            let packet = ReceivedInfo {
                seq,
                is_data: true,
                size_bytes: 1400,
                ccval: 0,
                ecn: Ecn::Ect0,
                ndp_count: None,
            };
            receiver.on_packet(now, &packet);
            if receiver.feedback(now) == Feedback::Due {
                receiver.on_feedback_sent(now, seq);
            }
            seq = seq.next();
        }
    });
}
