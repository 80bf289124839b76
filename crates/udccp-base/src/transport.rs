//! Gives traffic sources and recorders one end of one flow, whatever the protocol.

use crate::datagram::{Datagram, Message, Payload};
use crate::machine::Machine;
use crate::quick_start::QuickStart;
use crate::time::{Duration, Instant};

/// What became of a message that was offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// Taken; it leaves when congestion control allows.
    Accepted,
    /// No room; the message comes back. Offer again after `is_writable` turns true.
    Full(Message),
    /// The flow is over (or was never open); the message comes back.
    Closed(Message),
}

/// Congestion state at one instant, for recorders. A protocol leaves out what it does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Probe {
    /// Congestion window in packets.
    pub cwnd_packets: Option<f64>,
    /// Slow start threshold in packets.
    pub ssthresh_packets: Option<f64>,
    /// Packets believed to be in the network.
    pub pipe_packets: Option<u64>,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Retransmission (or no-feedback) timeout.
    pub rto: Option<Duration>,
    /// Allowed sending rate in bytes per second (rate-based protocols).
    pub x_bytes_per_sec: Option<f64>,
    /// Loss event rate, 0..=1 (rate-based protocols).
    pub loss_event_rate: Option<f64>,
    /// Congestion events that cut the window or rate so far.
    pub congestion_events: u64,
    /// Timeouts so far.
    pub timeouts: u64,
    /// Packets retransmitted so far.
    pub retransmits: u64,
}

/// The side of a flow that faces its application: a simulated transport has one, and so has a
/// socket of the operating system.
pub trait AppPort {
    /// Offers a message.
    fn send(&mut self, now: Instant, message: Message) -> SendOutcome;

    /// Whether a message offered now would be taken.
    fn is_writable(&self) -> bool;

    /// Offers messages of `bytes` bytes of zeros (`None`: as many as leave in one packet) for as
    /// long as there is room, at most `most` of them. Returns how many were taken, and the bytes of
    /// one.
    fn fill(&mut self, now: Instant, bytes: Option<u32>, most: u32) -> (u32, u32) {
        let bytes = bytes.unwrap_or(self.max_payload() as u32);
        let mut taken = 0;
        while taken < most && bytes > 0 && self.is_writable() {
            match self.send(now, Message::new(Payload::Zeros(bytes))) {
                SendOutcome::Accepted => taken += 1,
                SendOutcome::Full(_) | SendOutcome::Closed(_) => break,
            }
        }
        (taken, bytes)
    }

    /// Ends the flow; what was accepted is still sent, within the protocol's bound.
    fn close(&mut self, now: Instant);

    /// Largest message (or segment payload) in bytes that leaves in one packet.
    fn max_payload(&self) -> usize;

    /// Whether each message arrives as a message, or not at all. `false` is a byte stream, which
    /// delivers everything in order, but not where messages begin and end.
    fn keeps_boundaries(&self) -> bool {
        true
    }
}

/// One end of one flow: a [`Machine`] with a port for its application.
pub trait Transport: Machine + AppPort {
    /// Starts the flow (the active end sends its first packet; a passive end does nothing).
    fn open(&mut self, now: Instant);

    /// Data delivered to the application: a message, or a stretch of a byte stream.
    fn poll_delivered(&mut self, now: Instant) -> Option<Payload>;

    /// Takes all data that [`Self::poll_delivered`] has; returns how many bytes it is.
    fn take_delivered(&mut self, now: Instant) -> u64 {
        let mut bytes = 0;
        while let Some(payload) = self.poll_delivered(now) {
            bytes += payload.len() as u64;
        }
        bytes
    }

    /// Whether [`Self::on_device`] is to be called. Asked once, at the start.
    fn watches_device(&self) -> bool {
        false
    }

    /// The packet with data that `poll_transmit` gave at `now` is in the queue of this host's
    /// device, and leaves it at `leaves`; `ip_len` is its IP length in bytes.
    fn on_device(&mut self, now: Instant, ip_len: u32, leaves: Instant) {
        let _ = (now, ip_len, leaves);
    }

    /// Whether the flow is over; at most TIMEWAIT is left of it.
    fn is_closed(&self) -> bool;

    /// Whether this end is closed and has said all: unless something arrives, nothing will happen
    /// here any more but at most one timer, that of `poll_timeout`, at which nothing is sent.
    /// Valid after a drain. An end that cannot tell says no.
    fn is_spent(&self) -> bool {
        false
    }

    /// Congestion state now.
    fn probe(&self) -> Probe;

    /// Whether packets of this end may have the Quick-Start option of IP. Asked once, at the start;
    /// the two methods below are called where the answer is yes.
    fn uses_quick_start(&self) -> bool {
        false
    }

    /// The Quick-Start option of the datagram that `poll_transmit` gave last.
    fn poll_quick_start(&mut self) -> Option<QuickStart> {
        None
    }

    /// A datagram arrived with this option, and with this time to live.
    fn handle_with_quick_start(
        &mut self,
        now: Instant,
        datagram: Datagram,
        option: QuickStart,
        ttl: u8,
    ) {
        let _ = (option, ttl);
        self.handle_datagram(now, datagram);
    }
}
