//! The options of a DCCP flow.

use core::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use udccp_base::{DataRate, DataSize, Duration};

use super::choice::{never_zero, words};
use super::quantity::{Packets, Percent, Service, StartWindow};
use crate::diagnostic::Diagnostic;
use crate::document::{DiagnosticSink, FromNode, Node, Reader};

/// RFC 4340 section 7.5.2, in packets.
const SEQUENCE_WINDOWS: RangeInclusive<u64> = 32..=(1 << 46) - 1;

/// Options of a DCCP flow. `None` keeps the protocol's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DccpOptions {
    /// The implementation from which the settings of CCID 2 are taken; by default this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<DccpProfile>,
    /// Acknowledge every this many packets; by default adapted as in RFC 4341 section 6.1.
    pub ack_ratio: Option<u64>,
    /// Initial congestion window.
    pub initial_window: Option<StartWindow>,
    /// Share of the window that a congestion event cuts (50 % in RFC 4341).
    pub window_cut: Option<Percent>,
    /// Whether packets sent before a cut let the window grow when they are acknowledged after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub growth_after_cut: Option<GrowthAfterCut>,
    /// Initial Sequence Window in packets.
    pub sequence_window: Option<u64>,
    /// Largest congestion window.
    pub max_window: Option<Packets>,
    /// Smallest retransmission timeout.
    pub min_rto: Option<Duration>,
    /// Use explicit congestion notification.
    pub ecn: Option<bool>,
    /// CCIDs 3 and 4: lower the rate while the round-trip time is above its mean.
    pub oscillation_reduction: Option<bool>,
    /// CCIDs 3 and 4: reduce the weight of old loss intervals during a long one.
    pub history_discounting: Option<bool>,
    /// The host's timers fire only at multiples of this, as in a kernel with a coarse clock.
    pub timer_tick: Option<Duration>,
    /// How the host waits for its timers; by default exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timers: Option<HostTimers>,
    /// The host also wakes at multiples of this, like one whose application fills the send queue at
    /// these times. What is due then is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wakes_every: Option<Duration>,
    /// Send buffer of the host's socket, as a kernel counts it: how much may wait in the host's own
    /// queue. By default unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<DataSize>,
    /// Share of packets lost at random on the sender's access link, which affects only DCCP if
    /// flows of several protocols share a scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_loss: Option<Percent>,
    /// Limit of the send queue in messages.
    pub send_queue: Option<Packets>,
    /// The service code to serve and to ask for (default `SC:PERF`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
    /// Which hosts are behind a NAT (RFC 5597) that filters by address and port (default none).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nat: Option<NatPlace>,
    /// Rate to request by Quick-Start (RFC 5634); all routers then take part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quick_start: Option<DataRate>,
    /// The receiver invites the sender (RFC 5596) instead of listening for any client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invite: Option<bool>,
}

words! {
    /// An implementation of DCCP whose CCID 2 behaves differently from ours.
    DccpProfile, "DCCP profile":
    /// Linux 2.6.22 of 2007.
    Linux2622 = "linux-2.6.22",
}

words! {
    /// Which packets let the window of CCID 2 grow after a cut.
    GrowthAfterCut, "growth after a cut":
    /// Only packets sent after the cut, as in TCP.
    Pauses = "pauses",
    /// Every packet that is acknowledged, as in Linux's CCID 2.
    Continues = "continues",
}

impl From<GrowthAfterCut> for udccp_cc::GrowthAfterCut {
    fn from(word: GrowthAfterCut) -> Self {
        match word {
            GrowthAfterCut::Pauses => Self::Pauses,
            GrowthAfterCut::Continues => Self::Continues,
        }
    }
}

words! {
    /// How a host waits for its timers.
    HostTimers, "wait for timers":
    /// Until their time; the same as without the key.
    Exact = "exact",
    /// Like a program on Linux with `epoll_wait`: in whole milliseconds.
    Epoll = "epoll",
}

words! {
    /// Which hosts of a flow are behind a NAT of their own.
    NatPlace, "place of NATs":
    /// The sender.
    Sender = "sender",
    /// The receiver.
    Receiver = "receiver",
    /// Both.
    Both = "both",
}

impl FromNode for DccpOptions {
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        let mut reader = Reader::new(node, "flow.dccp", errors)?;
        let options = Self {
            profile: reader.want("profile"),
            ack_ratio: reader.want("ack_ratio"),
            initial_window: reader.want("initial_window"),
            window_cut: reader.want("window_cut"),
            growth_after_cut: reader.want("growth_after_cut"),
            sequence_window: reader.want("sequence_window"),
            max_window: reader.want("max_window"),
            min_rto: reader.want("min_rto"),
            ecn: reader.want("ecn"),
            oscillation_reduction: reader.want("oscillation_reduction"),
            history_discounting: reader.want("history_discounting"),
            timer_tick: reader.want("timer_tick"),
            // A run without the key and one with the default's word are the same run.
            timers: reader.want("timers").filter(|timers| *timers != HostTimers::Exact),
            wakes_every: reader.want("wakes_every"),
            send_buffer: reader.want("send_buffer"),
            host_loss: reader.want("host_loss"),
            send_queue: reader.want("send_queue"),
            service: reader.want("service"),
            nat: reader.want("nat"),
            quick_start: reader.want("quick_start"),
            invite: reader.want("invite"),
        };
        let is_none = |time: Option<Duration>| time.is_some_and(Duration::is_zero);
        never_zero(node, errors, "timer_tick", is_none(options.timer_tick));
        never_zero(node, errors, "wakes_every", is_none(options.wakes_every));
        never_zero(node, errors, "max_window", options.max_window == Some(Packets(0)));
        let first = options.initial_window.is_some_and(StartWindow::is_empty);
        never_zero(node, errors, "initial_window", first);
        if options.send_buffer.is_some_and(|size| size.bytes() == 0) {
            let span = node.get("send_buffer").map_or(&node.span, |n| &n.span);
            let why = "a socket without a buffer cannot send: give a size, or leave it out";
            errors.push(Diagnostic::at(span, why));
        }
        if options.timer_tick.is_some() && options.timers.is_some() {
            let span = node.get("timers").map_or(&node.span, |n| &n.span);
            let why = "`timers` and `timer_tick` exclude each other: leave one out";
            errors.push(Diagnostic::at(span, why));
        }
        never_zero(node, errors, "send_queue", options.send_queue == Some(Packets(0)));
        let within = |key: &str, value: Option<u64>, range: RangeInclusive<u64>, what: &str| {
            if value.is_some_and(|value| !range.contains(&value)) {
                let span = node.get(key).map_or(&node.span, |n| &n.span);
                let (least, most) = range.into_inner();
                let error = format!("{what} is a number from {least} to {most}");
                errors.push(Diagnostic::at(span, error));
            }
        };
        within("ack_ratio", options.ack_ratio, 1..=0xffff, "an Ack Ratio");
        within("sequence_window", options.sequence_window, SEQUENCE_WINDOWS, "a Sequence Window");
        reader.finish();
        Some(options)
    }
}
