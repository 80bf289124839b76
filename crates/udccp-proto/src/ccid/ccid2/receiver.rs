//! The receiver half.

use udccp_base::{Duration, Instant};
use udccp_wire::Seqno;

use crate::ccid::ccid2::{Ccid2Config, NUMBER};
use crate::ccid::{CcidReceiver, Feedback, ReceivedInfo};

/// The receiver half of CCID 2.
#[derive(Debug)]
pub struct Ccid2Receiver {
    delayed_ack: Duration,
    ack_ratio: u16,
    pending: u32,
    deadline: Option<Instant>,
}

impl Ccid2Receiver {
    /// A receiver with nothing to acknowledge and Ack Ratio 2.
    pub fn new(config: &Ccid2Config) -> Self {
        Self { delayed_ack: config.delayed_ack, ack_ratio: 2, pending: 0, deadline: None }
    }
}

impl CcidReceiver for Ccid2Receiver {
    fn ccid(&self) -> u8 {
        NUMBER
    }

    fn on_packet(&mut self, now: Instant, packet: &ReceivedInfo) {
        if packet.is_data {
            self.pending += 1;
            self.deadline.get_or_insert(now + self.delayed_ack);
        }
    }

    fn feedback(&self, now: Instant) -> Feedback {
        match self.deadline {
            None => Feedback::None,
            Some(at) if at <= now || self.pending >= u32::from(self.ack_ratio) => Feedback::Due,
            Some(at) => Feedback::At(at),
        }
    }

    fn on_feedback_sent(&mut self, _now: Instant, _seq: Seqno) {
        self.pending = 0;
        self.deadline = None;
    }

    fn set_ack_ratio(&mut self, ack_ratio: u16) {
        self.ack_ratio = ack_ratio;
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }

    fn handle_timeout(&mut self, _now: Instant) {}
}
