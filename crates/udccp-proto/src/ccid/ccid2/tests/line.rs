//! A sender half, with a peer whose acknowledgements each test writes by hand.

use udccp_base::{Duration, Ecn, Instant};
use udccp_cc::{Algorithm, InitialWindow};
use udccp_wire::Seqno;

use crate::ccid::ccid2::{Ccid2Config, Ccid2Sender};
use crate::ccid::{
    AckInfo, AckOutcome, CcidMetrics, CcidSender, ReceivedInfo, SendVerdict, SentInfo,
};

/// Packets are numbered 1, 2, 3... in the order of sending.
pub(super) struct Line {
    pub(super) sender: Ccid2Sender,
    pub(super) now: Instant,
    next: u64,
}

pub(super) fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Ack Vector cells from one letter per packet, newest first: r received, m marked, x not received.
pub(super) fn cells(states: &str) -> Vec<u8> {
    let mut cells: Vec<u8> = Vec::new();
    for letter in states.bytes() {
        let state = match letter {
            b'r' => 0,
            b'm' => 1 << 6,
            b'x' => 3 << 6,
            other => panic!("no such state: {other}"),
        };
        match cells.last_mut() {
            Some(last) if *last & 0xc0 == state && *last & 63 < 63 => *last += 1,
            _ => cells.push(state),
        }
    }
    cells
}

impl Line {
    pub(super) fn new(config: &Ccid2Config) -> Self {
        Self { sender: Ccid2Sender::new(config, 1400), now: Instant::ZERO + ms(1000), next: 1 }
    }

    /// Creates a line with an initial window of this many packets and otherwise default settings.
    pub(super) fn with_window(packets: u32) -> Self {
        let initial_window = InitialWindow::Packets(packets);
        Self::new(&Ccid2Config { initial_window, ..Ccid2Config::default() })
    }

    /// As `with_window`, but out of slow start.
    pub(super) fn in_avoidance(packets: u32) -> Self {
        Self::in_avoidance_by(packets, Algorithm::CCID2)
    }

    /// As `in_avoidance`, with this window algorithm.
    pub(super) fn in_avoidance_by(packets: u32, algorithm: Algorithm) -> Self {
        let initial_window = InitialWindow::Packets(packets);
        let mut line =
            Self::new(&Ccid2Config { algorithm, initial_window, ..Ccid2Config::default() });
        line.acked(AckInfo { slow_receiver: true, ..AckInfo::default() });
        line.wait(2000);
        line
    }

    pub(super) fn wait(&mut self, millis: u64) {
        self.now += ms(millis);
    }

    pub(super) fn verdict(&mut self) -> SendVerdict {
        self.sender.poll_send(self.now, 1400)
    }

    /// Sends data while the window allows it. Returns the number of packets.
    pub(super) fn fill(&mut self) -> u32 {
        let mut sent = 0;
        while self.verdict() == SendVerdict::Now {
            self.leave(true, false);
            sent += 1;
        }
        sent
    }

    /// Sends this many data packets, then has no more data.
    pub(super) fn send(&mut self, packets: u32) {
        for _ in 0..packets {
            assert_eq!(self.verdict(), SendVerdict::Now);
            self.leave(true, false);
        }
    }

    /// Sends a packet without asking the sender half.
    pub(super) fn leave(&mut self, is_data: bool, has_ack: bool) {
        let seq = Seqno::new(self.next);
        self.next += 1;
        let size_bytes = if is_data { 1400 } else { 0 };
        let ecn = Ecn::Ect0;
        let sent = SentInfo { seq, size_bytes, is_data, has_ack, app_limited: false, ecn };
        self.sender.on_sent(self.now, sent);
    }

    /// Acknowledges `ackno` and the packets before it.
    pub(super) fn ack(&mut self, ackno: u64, states: &str) -> AckOutcome {
        let cells = cells(states);
        let ackno = Seqno::new(ackno);
        self.acked(AckInfo { ackno, ack_vector: Some((&cells, false)), ..AckInfo::default() })
    }

    /// Acknowledges `ackno` and the `cell` packets before it, the oldest in flight among them, on
    /// the short way. Returns how many were in flight.
    pub(super) fn plain_ack(&mut self, ackno: u64, cell: u8) -> u32 {
        let ackno = Seqno::new(ackno);
        let run = self.sender.plain_ack(ackno, cell).expect("nothing else is reported");
        self.sender.take_plain_ack(self.now, ackno, run, Duration::ZERO)
    }

    pub(super) fn acked(&mut self, ack: AckInfo<'_>) -> AckOutcome {
        self.sender.on_ack(self.now, &ack)
    }

    /// Acknowledges the packets `first..=last`, `per_ack` per acknowledgement.
    pub(super) fn ack_each(&mut self, first: u64, last: u64, per_ack: usize) {
        let mut from = first;
        while from <= last {
            let to = last.min(from + per_ack as u64 - 1);
            self.ack(to, &"r".repeat((to - from + 1) as usize));
            from = to + 1;
        }
    }

    /// One round-trip time of 100 ms: fills the window, and acknowledges two packets at a time.
    pub(super) fn round_trip(&mut self) -> u32 {
        let first = self.next;
        self.fill();
        self.wait(100);
        self.ack_each(first, self.next - 1, 2);
        self.cwnd()
    }

    pub(super) fn metrics(&self) -> CcidMetrics {
        self.sender.metrics()
    }

    pub(super) fn cwnd(&self) -> u32 {
        self.metrics().cwnd.unwrap()
    }

    pub(super) fn ssthresh(&self) -> Option<u32> {
        self.metrics().ssthresh
    }

    pub(super) fn pipe(&self) -> u32 {
        self.metrics().pipe.unwrap()
    }

    /// Sets the sequence number of the next packet.
    pub(super) fn jump(&mut self, next: u64) {
        self.next = next;
    }

    /// The sequence number of the next packet.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Time until the timer expires, in milliseconds.
    pub(super) fn timer_in_ms(&self) -> Option<u64> {
        self.sender.poll_timeout().map(|at| (at - self.now).as_millis())
    }

    /// Waits for the timer and lets it expire.
    pub(super) fn expire(&mut self) {
        self.now = self.sender.poll_timeout().unwrap();
        self.sender.handle_timeout(self.now);
    }
}

/// A packet as the receiver half and the peer log see it.
pub(super) fn packet(seq: u64, is_data: bool, ecn: Ecn) -> ReceivedInfo {
    let size_bytes = if is_data { 1400 } else { 0 };
    ReceivedInfo { seq: Seqno::new(seq), is_data, size_bytes, ccval: 0, ecn, ndp_count: None }
}
