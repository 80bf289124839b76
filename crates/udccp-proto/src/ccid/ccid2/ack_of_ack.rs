//! Decides when to acknowledge the peer's acknowledgements (RFC 4341 section 6.2).

/// Largest number of data packets without an Ack Number while acknowledgements arrive. If the
/// window is large, this limits the peer's Ack Vectors to little more than a window.
const LONGEST_STRETCH: u32 = 512;

/// Counts data packets since the last packet that acknowledged the peer's Ack Vectors.
#[derive(Clone, Debug, Default)]
pub(super) struct AckOfAck {
    owed: bool,
    since: u32,
}

impl AckOfAck {
    /// An Ack Vector arrived.
    pub(super) fn on_ack_vector(&mut self) {
        self.owed = true;
    }

    /// A packet was sent. `acks` tells whether it has an Ack Number.
    pub(super) fn on_sent(&mut self, is_data: bool, acks: bool) {
        if acks {
            *self = Self::default();
        } else if is_data {
            self.since = self.since.saturating_add(1);
        }
    }

    //= 4341-6.2-1
    //= 4341-6.2-2
    /// Whether the peer should get an Ack Number now: twice per window.
    pub(super) fn is_wanted(&self, cwnd: u32) -> bool {
        self.owed && self.since + 1 >= (cwnd / 2).min(LONGEST_STRETCH)
    }

    /// Whether at least `packets` data packets were sent since the last Ack Number.
    pub(super) fn has_left(&self, packets: u32) -> bool {
        self.since >= packets
    }
}
