//! Decides when to acknowledge the peer's acknowledgements (RFC 4341 section 6.2).

/// Counts data packets since the last packet that acknowledged the peer's Ack Vectors.
#[derive(Clone, Debug)]
pub(super) struct AckOfAck {
    /// Largest number of data packets without an Ack Number while acknowledgements arrive.
    longest_stretch: u16,
    owed: bool,
    since: u16,
}

impl AckOfAck {
    pub(super) fn new(longest_stretch: u16) -> Self {
        Self { longest_stretch, owed: false, since: 0 }
    }

    /// An Ack Vector arrived.
    pub(super) fn on_ack_vector(&mut self) {
        self.owed = true;
    }

    /// A packet was sent. `acks` tells whether it has an Ack Number.
    pub(super) fn on_sent(&mut self, is_data: bool, acks: bool) {
        if acks {
            *self = Self::new(self.longest_stretch);
        } else if is_data {
            self.since = self.since.saturating_add(1);
        }
    }

    //= 4341-6.2-1
    //= 4341-6.2-2
    /// Whether the peer should get an Ack Number now: twice per window.
    pub(super) fn is_wanted(&self, cwnd: u32) -> bool {
        self.owed && u32::from(self.since) + 1 >= (cwnd / 2).min(self.longest_stretch.into())
    }

    /// How many data packets may be sent before an Ack Number is wanted.
    pub(super) fn left(&self, cwnd: u32) -> u32 {
        let stretch = (cwnd / 2).min(self.longest_stretch.into());
        if self.owed { stretch.saturating_sub(u32::from(self.since) + 1) } else { u32::MAX }
    }

    /// Whether at least `packets` data packets were sent since the last Ack Number.
    pub(super) fn has_left(&self, packets: u32) -> bool {
        u32::from(self.since) >= packets
    }
}
