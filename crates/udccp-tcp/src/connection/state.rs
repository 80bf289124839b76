//! The states of a connection and the events that change them (RFC 9293 section 3.3.2).

/// The state of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Not opened yet, or ended.
    Closed,
    /// Waits for a SYN.
    Listen,
    /// Sent a SYN.
    SynSent,
    /// Received a SYN and answered it.
    SynReceived,
    /// Open in both directions.
    Established,
    /// Sent a FIN.
    FinWait1,
    /// Our FIN is acknowledged; the peer may still send.
    FinWait2,
    /// The peer sent its FIN; we may still send.
    CloseWait,
    /// Both sent a FIN; ours is not acknowledged.
    Closing,
    /// Like `Closing`, but the peer sent its FIN first.
    LastAck,
    /// Both FINs are acknowledged; late segments are still answered.
    TimeWait,
}

/// An event that changes the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The application opens the active end.
    Open,
    /// A SYN arrived at the passive end.
    SynArrived,
    /// The answer to our SYN arrived (SYN with ACK at the active end, ACK at the passive one).
    HandshakeDone,
    /// Our FIN was sent.
    FinSent,
    /// Our FIN was acknowledged.
    FinAcked,
    /// The peer's FIN and all data before it have arrived.
    PeerFinished,
    /// TIME-WAIT is over.
    TimeWaitOver,
    /// A reset arrived, or the peer does not answer.
    Abort,
}

impl State {
    /// The state after `event`; `None` if the event does not apply.
    pub(crate) const fn after(self, event: Event) -> Option<Self> {
        use State::{
            CloseWait, Closed, Closing, Established, FinWait1, FinWait2, LastAck, Listen,
            SynReceived, SynSent, TimeWait,
        };
        Some(match (self, event) {
            (Closed, Event::Open) => SynSent,
            (Listen, Event::SynArrived) => SynReceived,
            (SynSent | SynReceived, Event::HandshakeDone) => Established,
            (Established, Event::FinSent) => FinWait1,
            (CloseWait, Event::FinSent) => LastAck,
            (FinWait1, Event::FinAcked) => FinWait2,
            (Closing, Event::FinAcked) => TimeWait,
            (LastAck, Event::FinAcked) => Closed,
            (Established, Event::PeerFinished) => CloseWait,
            (FinWait1, Event::PeerFinished) => Closing,
            (FinWait2, Event::PeerFinished) => TimeWait,
            (TimeWait, Event::TimeWaitOver) => Closed,
            (_, Event::Abort) => Closed,
            _ => return None,
        })
    }

    /// Whether both sequence numbers are known to both ends.
    pub(crate) const fn is_synchronized(self) -> bool {
        !matches!(self, Self::Closed | Self::Listen | Self::SynSent | Self::SynReceived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_of_closing_end_in_the_right_wait() {
        let walk = |events: &[Event]| {
            events.iter().try_fold(State::Established, |state, event| state.after(*event))
        };
        let first = [Event::FinSent, Event::FinAcked, Event::PeerFinished];
        assert_eq!(walk(&first), Some(State::TimeWait));
        let second = [Event::PeerFinished, Event::FinSent, Event::FinAcked];
        assert_eq!(walk(&second), Some(State::Closed));
        let crossing = [Event::FinSent, Event::PeerFinished, Event::FinAcked];
        assert_eq!(walk(&crossing), Some(State::TimeWait));
        assert_eq!(walk(&[Event::FinAcked]), None);
    }
}
