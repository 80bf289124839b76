//! The options of a TCP flow.

use serde::Serialize;
use udccp_base::{DataSize, Duration};

use super::choice::{never_zero, words};
use super::quantity::{Packets, Percent, StartWindow};
use crate::document::{DiagnosticSink, FromNode, Node, Reader};

words! {
    /// The profile from which the settings of a TCP host are taken.
    TcpProfile, "TCP profile":
    /// A current host.
    Modern = "modern",
    /// Linux 2.6.22 of 2007 with its defaults.
    Linux2622 = "linux-2.6.22",
    /// The RFCs to the letter.
    Rfc = "rfc",
}

words! {
    /// How much an acknowledgement lets the window grow.
    AckCounting, "way of counting acknowledgements":
    /// As many segments as it acknowledges.
    Segments = "segments",
    /// As many, but at most two (RFC 3465).
    AtMostTwo = "at-most-two",
    /// One.
    OnePerAck = "one-per-ack",
    /// One in slow start, as many as it acknowledges in congestion avoidance.
    OneInSlowStart = "one-in-slow-start",
    /// As many as it acknowledges in slow start, one in congestion avoidance.
    OneInAvoidance = "one-in-avoidance",
}

words! {
    /// How the window is reduced when recovery begins.
    Reduction, "window reduction":
    /// At once (RFC 6675).
    AtOnce = "at-once",
    /// In proportion to deliveries (RFC 6937).
    Proportional = "proportional",
    /// One segment every two acknowledgements.
    RateHalving = "rate-halving",
}

words! {
    /// How losses are detected before the retransmission timer expires.
    LossDetection, "loss detection":
    /// Three segments above were SACKed (RFC 6675).
    Sack = "sack",
    /// By time, with tail loss probes (RFC 8985).
    RackTlp = "rack-tlp",
}

/// Options of a TCP flow. `None` keeps the value of the profile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TcpOptions {
    /// The profile.
    pub profile: TcpProfile,
    /// Acknowledge every second segment instead of every one.
    pub delayed_ack: Option<bool>,
    /// How acknowledgements are counted.
    pub ack_counting: Option<AckCounting>,
    /// How the window is reduced.
    pub window_reduction: Option<Reduction>,
    /// How losses are detected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_detection: Option<LossDetection>,
    /// Initial congestion window.
    pub initial_window: Option<StartWindow>,
    /// Share of the window that a congestion event cuts (NewReno only; 50 %).
    pub window_cut: Option<Percent>,
    /// Largest congestion window.
    pub max_window: Option<Packets>,
    /// Slow start threshold from an earlier connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_ssthresh: Option<Packets>,
    /// Receive buffer: the largest window advertised.
    pub receive_buffer: Option<DataSize>,
    /// Send buffer.
    pub send_buffer: Option<DataSize>,
    /// Smallest retransmission timeout.
    pub min_rto: Option<Duration>,
    /// Use timestamps (RFC 7323), which take 12 bytes of every packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<bool>,
    /// Whether paced segments are sent in bursts, as with segmentation offload, or one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offload: Option<bool>,
    /// Whether segments wait in the socket instead of the host's own queue (TCP Small Queues).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub small_queues: Option<bool>,
    /// Use explicit congestion notification.
    pub ecn: Option<bool>,
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self {
            profile: TcpProfile::Modern,
            delayed_ack: None,
            ack_counting: None,
            window_reduction: None,
            loss_detection: None,
            initial_window: None,
            window_cut: None,
            max_window: None,
            initial_ssthresh: None,
            receive_buffer: None,
            send_buffer: None,
            min_rto: None,
            timestamps: None,
            offload: None,
            small_queues: None,
            ecn: None,
        }
    }
}

impl FromNode for TcpOptions {
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        let mut reader = Reader::new(node, "flow.tcp", errors)?;
        let options = Self {
            profile: reader.or("profile", TcpProfile::Modern),
            delayed_ack: reader.want("delayed_ack"),
            ack_counting: reader.want("ack_counting"),
            window_reduction: reader.want("window_reduction"),
            loss_detection: reader.want("loss_detection"),
            initial_window: reader.want("initial_window"),
            window_cut: reader.want("window_cut"),
            max_window: reader.want("max_window"),
            initial_ssthresh: reader.want("initial_ssthresh"),
            receive_buffer: reader.want("receive_buffer"),
            send_buffer: reader.want("send_buffer"),
            min_rto: reader.want("min_rto"),
            timestamps: reader.want("timestamps"),
            offload: reader.want("offload"),
            small_queues: reader.want("small_queues"),
            ecn: reader.want("ecn"),
        };
        let is_none = |size: Option<DataSize>| size.is_some_and(|size| size.bytes() == 0);
        never_zero(node, errors, "receive_buffer", is_none(options.receive_buffer));
        never_zero(node, errors, "send_buffer", is_none(options.send_buffer));
        never_zero(node, errors, "max_window", options.max_window == Some(Packets(0)));
        let first = options.initial_window.is_some_and(StartWindow::is_empty);
        never_zero(node, errors, "initial_window", first);
        reader.finish();
        Some(options)
    }
}
