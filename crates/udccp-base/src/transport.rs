//! One end of a flow, as traffic sources and recorders see it, for any protocol.

use crate::datagram::{Datagram, Message, Payload};
use crate::machine::Machine;
use crate::quick_start::QuickStart;
use crate::time::{Duration, Instant};

/// The result of offering a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// Accepted. It is sent when congestion control allows.
    Accepted,
    /// No room. Contains the message; offer it again when `is_writable` is true.
    Full(Message),
    /// The flow has ended, or was never open. Contains the message.
    Closed(Message),
}

/// Congestion state at one time, for recorders. Values that a protocol does not have are `None`.
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
    /// Retransmission timeout, or nofeedback timeout of CCIDs 3 and 4.
    pub rto: Option<Duration>,
    /// Allowed sending rate in bytes per second (rate-based protocols).
    pub x_bytes_per_sec: Option<f64>,
    /// Loss event rate, 0 to 1 (rate-based protocols).
    pub loss_event_rate: Option<f64>,
    /// Congestion events so far that reduced the window or rate.
    pub congestion_events: u64,
    /// Timeouts so far.
    pub timeouts: u64,
    /// Packets retransmitted so far.
    pub retransmits: u64,
}

/// The application's interface to a flow, of a simulated transport or of a socket of the operating
/// system.
pub trait AppPort {
    /// Offers a message.
    fn send(&mut self, now: Instant, message: Message) -> SendOutcome;

    /// Whether a message would be accepted now.
    fn is_writable(&self) -> bool;

    /// Offers messages of `bytes` zero bytes (`None`: as many as fit in one packet) while there is
    /// room, at most `most`. Returns how many were accepted, and the bytes of each.
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

    /// Closes the flow. What was accepted is still sent, within the protocol's limits.
    fn close(&mut self, now: Instant);

    /// Largest message (or segment payload) in bytes that fits in one packet.
    fn max_payload(&self) -> usize;

    /// Whether each message arrives as one message, or not at all. `false` for a byte stream, which
    /// delivers everything in order but without message boundaries.
    fn keeps_boundaries(&self) -> bool {
        true
    }
}

/// One end of a flow: a [`Machine`] with an interface for its application.
pub trait Transport: Machine + AppPort {
    /// Opens the flow: the active end sends its first packet; a passive end does nothing.
    fn open(&mut self, now: Instant);

    /// Data delivered to the application: a message, or a part of a byte stream.
    fn poll_delivered(&mut self, now: Instant) -> Option<Payload>;

    /// Takes all data that [`Self::poll_delivered`] would return; returns its length in bytes.
    fn take_delivered(&mut self, now: Instant) -> u64 {
        let mut bytes = 0;
        while let Some(payload) = self.poll_delivered(now) {
            bytes += payload.len() as u64;
        }
        bytes
    }

    /// As [`Machine::handle_datagram_in`] and then [`Self::take_delivered`], whose result it
    /// returns, with a time before which there surely is nothing to send. If that is later than
    /// `now`, it is the time of `poll_timeout` ([`Instant::MAX`] for none), and only new data of
    /// the application makes a drain necessary.
    fn receive_in(&mut self, now: Instant, place: &mut Option<Datagram>) -> (u64, Instant) {
        self.handle_datagram_in(now, place);
        (self.take_delivered(now), Instant::ZERO)
    }

    /// Whether [`Self::on_device`] must be called. Read once, at the start.
    fn watches_device(&self) -> bool {
        false
    }

    /// The packet with data that `poll_transmit` returned at `now` is in the queue of this host's
    /// device, and will leave it at `leaves`; `ip_len` is its IP length in bytes.
    fn on_device(&mut self, now: Instant, ip_len: u32, leaves: Instant) {
        let _ = (now, ip_len, leaves);
    }

    /// Whether the flow has ended, except for TIMEWAIT.
    fn is_closed(&self) -> bool;

    /// Whether this end is closed and has nothing more to send. Unless something arrives, nothing
    /// then happens except at most one timer, that of `poll_timeout`, at which nothing is sent.
    /// Valid after a drain. False if the end cannot tell.
    fn is_spent(&self) -> bool {
        false
    }

    /// The current congestion state.
    fn probe(&self) -> Probe;

    /// Whether packets of this end may have the Quick-Start option of IP. Read once, at the start;
    /// the two methods below are called only if it is true.
    fn uses_quick_start(&self) -> bool {
        false
    }

    /// The Quick-Start option of the datagram that `poll_transmit` returned last.
    fn poll_quick_start(&mut self) -> Option<QuickStart> {
        None
    }

    /// A datagram arrived with this option and time to live.
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
