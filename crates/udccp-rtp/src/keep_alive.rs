//! When an idle connection sends something (RFC 5762 section 4.1).

use std::time::Duration;

use tokio::time::Instant;

/// How often one looks in an idle time: often enough that what is sent is only slightly late.
const LOOKS: u32 = 16;

/// Watches how much a connection has sent.
#[derive(Debug)]
pub(crate) struct KeepAlive {
    idle: Duration,
    sent: u64,
    since: Instant,
}

impl KeepAlive {
    /// Watches from now on for `idle` times without a packet.
    pub(crate) fn new(idle: Duration, now: Instant) -> Self {
        Self { idle, sent: 0, since: now }
    }

    /// Whether an empty packet is due, if the connection has sent so many packets by now.
    pub(crate) fn is_due(&mut self, sent: u64, now: Instant) -> bool {
        if sent != self.sent {
            (self.sent, self.since) = (sent, now);
            return false;
        }
        let is_due = now - self.since >= self.idle;
        if is_due {
            // Even if this one has to wait: one is enough.
            self.since = now;
        }
        is_due
    }

    /// Time until one should look again.
    pub(crate) fn pause(&self) -> Duration {
        self.idle / LOOKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Seconds at which empty packets are due, within a minute. Each is sent at once, or waits.
    fn due(leaves: bool, media_until: u64) -> Vec<u64> {
        let begin = Instant::now();
        let mut watch = KeepAlive::new(16 * SECOND, begin);
        assert_eq!(watch.pause(), SECOND);
        let (mut sent, mut due) = (0, Vec::new());
        for second in 0..60 {
            sent += u64::from(second < media_until);
            if watch.is_due(sent, begin + watch.pause() * second as u32) {
                due.push(second);
                sent += u64::from(leaves);
            }
        }
        due
    }

    //= 5762-4.1-3 test
    #[test]
    fn one_is_due_after_every_idle_time() {
        // What was sent is noticed one look later.
        assert_eq!(due(true, 0), [16, 33, 50]);
        assert_eq!(due(true, 20), [35, 52], "the last media left at 19 s");
    }

    #[test]
    fn none_is_added_at_every_look_while_one_waits() {
        assert_eq!(due(false, 0), [16, 32, 48]);
    }
}
