//! The receiver half of a CCID: when an acknowledgement is due, and what it carries.

use core::fmt;

use udccp_base::{Duration, Ecn, Instant};
use udccp_wire::{DataRun, OptionRef, Seqno};

/// A valid packet that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedInfo {
    /// Its sequence number.
    pub seq: Seqno,
    /// Whether its type carries application data (Data, DataAck; Request and Response with data).
    pub is_data: bool,
    /// Bytes of application data.
    pub size_bytes: u32,
    /// Its CCVal.
    pub ccval: u8,
    /// Its ECN codepoint.
    pub ecn: Ecn,
    /// Its NDP Count, 0 if the option is missing; `None` while Send NDP Count is off.
    pub ndp_count: Option<u64>,
}

/// Data packets that arrived together, with consecutive sequence numbers.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedRun<'a> {
    first: ReceivedInfo,
    packets: &'a DataRun<'a>,
}

impl<'a> ReceivedRun<'a> {
    /// These packets, of which `first` is the first.
    pub(crate) fn new(first: ReceivedInfo, packets: &'a DataRun<'a>) -> Self {
        Self { first, packets }
    }

    /// The first packet.
    pub fn first(&self) -> &ReceivedInfo {
        &self.first
    }

    /// Number of packets, at least two.
    pub fn count(&self) -> u32 {
        self.packets.packets() as u32
    }

    /// The sequence number of the last packet.
    pub fn last(&self) -> Seqno {
        self.first.seq.add(self.packets.packets() as u64 - 1)
    }

    /// All packets, in order.
    pub fn each(&self) -> impl Iterator<Item = ReceivedInfo> + 'a {
        let first = self.first;
        self.packets.each().zip(0..).map(move |((ccval, size), n)| {
            let size_bytes = size as u32;
            ReceivedInfo { seq: first.seq.add(n), ccval, size_bytes, ..first }
        })
    }
}

/// Whether an acknowledgement is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// Nothing to acknowledge.
    None,
    /// Send one now, alone or with data.
    Due,
    /// Send one by this time, or earlier with data.
    At(Instant),
}

/// Receives options while a packet is built.
pub trait OptionSink {
    /// Appends an option. Returns `false` if it does not fit any more.
    fn option(&mut self, option: &OptionRef<'_>) -> bool;

    /// Bytes that further options may take.
    fn room_bytes(&self) -> usize;
}

/// Measurements of a receiver half, for statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReceiverMetrics {
    /// Receive rate since the last report, X_recv (RFC 5348 section 6.2).
    pub x_recv_bytes_per_sec: f64,
    /// Round-trip time, if the receiver knows it.
    pub rtt: Option<Duration>,
    /// Loss event rate p, 0 to 1.
    pub loss_event_rate: f64,
}

/// The receiver half of a CCID. Implementations derive `Clone`.
pub trait CcidReceiver: super::CloneReceiver + Send + fmt::Debug {
    /// The CCID's number.
    fn ccid(&self) -> u8;

    /// A valid packet was received that can be acknowledged. Called for every packet type, but not
    /// for duplicates.
    fn on_packet(&mut self, now: Instant, packet: &ReceivedInfo);

    /// Several data packets arrived together. By default, `on_packet` for each.
    fn on_run(&mut self, now: Instant, run: &ReceivedRun<'_>) {
        run.each().for_each(|packet| self.on_packet(now, &packet));
    }

    /// Whether an acknowledgement is due. Called when the connection is drained, so that packets
    /// received together are acknowledged together.
    fn feedback(&self, now: Instant) -> Feedback;

    /// Bytes of this CCID's options in the next acknowledgement. If they do not fit together with
    /// data, the acknowledgement is sent alone.
    fn feedback_len_bytes(&self) -> usize {
        0
    }

    /// Writes this CCID's options of an acknowledgement. (The connection writes Ack Vector and Data
    /// Dropped.)
    fn write_options(&mut self, now: Instant, sink: &mut dyn OptionSink) {
        let _ = (now, sink);
    }

    /// Packet `seq` was sent and acknowledges everything that arrived so far.
    fn on_feedback_sent(&mut self, now: Instant, seq: Seqno);

    /// The peer acknowledged our packet `seq`, and thereby knows what that packet acknowledged.
    fn on_ack_of_ack(&mut self, seq: Seqno) {
        let _ = seq;
    }

    /// The Ack Ratio that the peer asked for.
    fn set_ack_ratio(&mut self, ack_ratio: u16) {
        let _ = ack_ratio;
    }

    /// The round-trip time, if the other half-connection knows it.
    fn set_rtt(&mut self, rtt: Duration) {
        let _ = rtt;
    }

    /// The path has changed, and this half replaces one whose newest packet was `newest`.
    /// Acknowledgements name that packet until a newer one arrives, with an Elapsed Time since its
    /// arrival.
    fn on_path_changed(&mut self, now: Instant, newest: Option<(Seqno, Instant)>) {
        let _ = (now, newest);
    }

    /// The newest packet that arrived, and when; `None` before the first.
    fn newest(&self) -> Option<(Seqno, Instant)> {
        None
    }

    /// Whether the peer has stopped sending data, so that we have to acknowledge its
    /// acknowledgements (RFC 4340 section 11.1).
    fn peer_is_quiescent(&self, now: Instant) -> bool {
        let _ = now;
        false
    }

    /// Measurements for statistics; `None` if the CCID measures nothing.
    fn metrics(&self, now: Instant) -> Option<ReceiverMetrics> {
        let _ = now;
        None
    }

    /// When to call `handle_timeout`; `None`: not at all.
    fn poll_timeout(&self) -> Option<Instant>;

    /// The time of `poll_timeout` may have come.
    fn handle_timeout(&mut self, now: Instant);
}
