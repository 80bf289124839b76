//! A transfer without end, which keeps the transport full.

use udccp_base::{AppPort, Instant, Message, Payload, SendOutcome};

use super::{Source, SourceStats};

/// Most messages offered in one call, so that a transport that is always writable still gets to
/// send.
const BATCH: u32 = 64;

/// Offers messages as long as the transport accepts them. They have a given size, or the largest
/// that fits into one packet. The total is a number of bytes, or unlimited.
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

    /// What remains of the given number of bytes.
    pub(super) const fn bytes_left(&self) -> Option<u64> {
        self.bytes_left
    }

    /// Ends after `bytes` in total; the last message may be short.
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
    /// Offers what remains of the given number of bytes.
    #[inline(never)]
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
