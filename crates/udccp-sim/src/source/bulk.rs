//! A transfer without end: the transport is kept full.

use udccp_base::{AppPort, Instant, Message, Payload, SendOutcome};

use super::{Source, SourceStats};

/// Messages offered in one go, so that a transport which is always writable still gets to send.
const BATCH: u32 = 64;

/// Offers messages as long as the transport takes them: of the largest size that leaves in one
/// packet, or of a given size; without end, or up to a number of bytes.
#[derive(Clone, Debug, Default)]
pub struct Bulk {
    message_bytes: Option<u32>,
    bytes_left: Option<u64>,
    stats: SourceStats,
}

impl Bulk {
    /// Full packets, without end.
    pub fn new() -> Self {
        Self::default()
    }

    /// Messages of `bytes`.
    #[must_use]
    pub const fn with_message_bytes(mut self, bytes: u32) -> Self {
        self.message_bytes = Some(bytes);
        self
    }

    /// What is left of a given number of bytes.
    pub(super) const fn bytes_left(&self) -> Option<u64> {
        self.bytes_left
    }

    /// Ends after `bytes` in all; the last message may be short.
    #[must_use]
    pub const fn with_total_bytes(mut self, bytes: u64) -> Self {
        self.bytes_left = Some(bytes);
        self
    }
}

impl Source for Bulk {
    fn start(&mut self, _now: Instant) {}

    fn feed(&mut self, now: Instant, port: &mut dyn AppPort) -> bool {
        if self.bytes_left.is_some() {
            return self.feed_rest(now, port);
        }
        let (taken, bytes) = port.fill(now, self.message_bytes, BATCH);
        self.stats.accepted += u64::from(taken);
        self.stats.accepted_bytes += u64::from(taken) * u64::from(bytes);
        taken > 0
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn stats(&self) -> SourceStats {
        self.stats
    }
}

impl Bulk {
    /// Offers what is left of a number of bytes.
    fn feed_rest(&mut self, now: Instant, port: &mut dyn AppPort) -> bool {
        let mut taken = false;
        for _ in 0..BATCH {
            if !port.is_writable() {
                break;
            }
            let full = self.message_bytes.unwrap_or(port.max_payload() as u32);
            let left = self.bytes_left.unwrap_or(u64::MAX).min(u64::from(full)) as u32;
            if left == 0 {
                break;
            }
            match port.send(now, Message::new(Payload::Zeros(left))) {
                SendOutcome::Accepted => {}
                SendOutcome::Full(_) | SendOutcome::Closed(_) => break,
            }
            taken = true;
            self.stats.accepted += 1;
            self.stats.accepted_bytes += u64::from(left);
            if let Some(bytes_left) = &mut self.bytes_left {
                *bytes_left -= u64::from(left);
            }
        }
        taken
    }
}
