//! Checks in tests that no message waits forever.

use udccp_base::{Duration, Instant, Machine};

use super::Endpoint;
use crate::ids::ConnectionId;

/// Timers that let a message be sent are at most this far ahead: the slowest sender sends a packet
/// in 64 seconds (RFC 5348 section 4.3), and timers back off to as much (RFC 4340 section 6.6.3).
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

impl Endpoint {
    /// For tests: a connection in OPEN with a message that it cannot send, and without a timer that
    /// would let it do so if nothing ever arrived. `None` if all is well. Call it after a drain.
    #[doc(hidden)]
    pub fn stalled(&self, now: Instant) -> Option<ConnectionId> {
        let wakes = self.poll_timeout();
        let is_stalled = |until: Option<Instant>| match (until, wakes) {
            (Some(until), Some(wakes)) => wakes > until || until > now + LONGEST_WAIT,
            _ => true,
        };
        self.slots.all().find_map(|connection| {
            let until = connection.message_waits_until()?;
            is_stalled(until).then_some(connection.who.id)
        })
    }
}
