//! The schema of the file, its times, flows and flow options.

use udccp_scenario::PROTOCOLS;

use super::{
    Kind, PACKETS, PERCENT, RATE, SERVICE, SIZE, START_WINDOW, TIME, Table, one_of, optional,
    required, table,
};
use crate::schema::{
    AckCounting, DccpProfile, Direction, GrowthAfterCut, HostTimers, LossDetection, NatPlace,
    Reduction, SCHEMA, TcpProfile,
};

pub(super) fn all() -> Vec<Table> {
    vec![scenario(), time(), measure(), flow(), dccp(), tcp()]
}

fn scenario() -> Table {
    table(
        "Scenario",
        "One run, without its seed: a network, times and flows",
        vec![
            required("schema", Kind::Is(SCHEMA.into()), "Version of the format"),
            required("id", Kind::Text, "Name of the scenario"),
            optional("asks", Kind::Text, "The question in one sentence"),
            required("topology", Kind::Table("Topology"), "The network"),
            required("time", Kind::Table("Times"), "Duration and measured interval"),
            required("flow", Kind::List(Box::new(Kind::Table("Flow"))), "The flows"),
        ],
    )
}

fn time() -> Table {
    table(
        "Times",
        "Duration and measured interval",
        vec![
            required("duration", TIME, "Length of the run"),
            optional(
                "phase",
                TIME,
                "Each flow starts later by a random time below this, drawn from the seed",
            ),
            optional(
                "measure",
                Kind::Table("Measure"),
                "The measured interval; default: the whole run",
            ),
        ],
    )
}

fn measure() -> Table {
    table(
        "Measure",
        "The measured interval",
        vec![
            required("from", TIME, "Begin"),
            required("to", TIME, "End"),
            optional("every", TIME, "Length of one sample of the series; default 1 s"),
        ],
    )
}

fn flow() -> Table {
    let traffic = [
        "ConstantRate",
        "OnOff",
        "ParetoOnOff",
        "Transfer",
        "Poisson",
        "Voip",
        "Video",
        "VideoTrace",
        "RequestResponse",
    ];
    let mut traffics = vec![Kind::Word(vec!["bulk"]), Kind::Table("Bulk")];
    traffics.extend(traffic.map(Kind::Table));
    table(
        "Flow",
        "A flow from its sender to its receiver, or a group of equal flows",
        vec![
            required("name", Kind::Text, "Its name: letters, digits, - and _"),
            required(
                "protocol",
                Kind::Word(PROTOCOLS.iter().map(|p| p.name).collect()),
                "Its protocol",
            ),
            required("traffic", Kind::Either(traffics), "What its application sends"),
            optional("start", TIME, "When it starts; default 0 s"),
            optional("stop", TIME, "When its application stops; default: at the end of the run"),
            optional("count", Kind::Whole(1, Some(10_000)), "How many flows this stands for"),
            optional("every", TIME, "Time between the starts of the flows of a group"),
            optional("direction", one_of(Direction::WORDS), "Direction of its data"),
            optional("enters", Kind::Whole(1, None), "Leftmost router that it uses, from 1"),
            optional("leaves", Kind::Whole(1, None), "Rightmost router that it uses"),
            optional("access", Kind::Table("AccessLink"), "The sender's access link"),
            optional("receiver_access", Kind::Table("AccessLink"), "The receiver's access link"),
            optional("packet", SIZE, "Largest IP packet, 200 B to 65535 B; default 1500 B"),
            optional("dccp", Kind::Table("DccpOptions"), "Options if the protocol is DCCP"),
            optional("tcp", Kind::Table("TcpOptions"), "Options if the protocol is TCP"),
        ],
    )
}

fn dccp() -> Table {
    table(
        "DccpOptions",
        "Options of a DCCP flow; an option that is left out has the default of the protocol",
        vec![
            optional(
                "profile",
                one_of(DccpProfile::WORDS),
                "The implementation whose CCID 2 applies unless changed here; default: this one",
            ),
            optional(
                "ack_ratio",
                Kind::Whole(1, Some(65_535)),
                "Ack Ratio: packets per acknowledgement; default: adapted as in RFC 4341",
            ),
            optional("initial_window", START_WINDOW, "First congestion window"),
            optional(
                "window_cut",
                PERCENT,
                "Part of the window by which a congestion event reduces it",
            ),
            optional(
                "growth_after_cut",
                one_of(GrowthAfterCut::WORDS),
                "Whether packets sent before a cut let the window grow after it",
            ),
            optional("sequence_window", Kind::Whole(0, None), "First Sequence Window in packets"),
            optional("max_window", PACKETS, "Upper bound of the congestion window"),
            optional("min_rto", TIME, "Lower bound of the retransmission timeout"),
            optional("ecn", Kind::Flag, "Explicit congestion notification"),
            optional(
                "oscillation_reduction",
                Kind::Flag,
                "CCIDs 3 and 4: lower the rate while the round-trip time is above its mean",
            ),
            optional(
                "history_discounting",
                Kind::Flag,
                "CCIDs 3 and 4: old loss intervals count less during a long loss interval",
            ),
            optional("timer_tick", TIME, "Timers fire only at multiples of this"),
            optional("timers", one_of(HostTimers::WORDS), "How the host waits for its timers"),
            optional("wakes_every", TIME, "The host also wakes at multiples of this"),
            optional("send_buffer", SIZE, "Send buffer of the host's socket"),
            optional("host_loss", PERCENT, "Packets on the sender's access link lost at random"),
            optional("send_queue", PACKETS, "Length of the send queue in messages"),
            optional("service", SERVICE, "Service code; default SC:PERF"),
            optional("nat", one_of(NatPlace::WORDS), "Which hosts are behind a NAT (RFC 5597)"),
            optional("quick_start", RATE, "Rate requested by Quick-Start (RFC 5634)"),
            optional("invite", Kind::Flag, "The receiver invites the sender (RFC 5596)"),
        ],
    )
}

fn tcp() -> Table {
    table(
        "TcpOptions",
        "Options of a TCP flow; an option that is left out is that of the profile",
        vec![
            optional(
                "profile",
                one_of(TcpProfile::WORDS),
                "The host whose settings apply unless changed here",
            ),
            optional(
                "delayed_ack",
                Kind::Flag,
                "Acknowledge every second segment instead of every segment",
            ),
            optional(
                "ack_counting",
                one_of(AckCounting::WORDS),
                "How acknowledgements are counted",
            ),
            optional("window_reduction", one_of(Reduction::WORDS), "How the window is reduced"),
            optional("loss_detection", one_of(LossDetection::WORDS), "How losses are detected"),
            optional("initial_window", START_WINDOW, "First congestion window"),
            optional(
                "window_cut",
                PERCENT,
                "Part of the window by which a congestion event reduces it (NewReno only)",
            ),
            optional("max_window", PACKETS, "Upper bound of the congestion window"),
            optional(
                "initial_ssthresh",
                PACKETS,
                "Slow start threshold that the host remembers from an earlier connection",
            ),
            optional("receive_buffer", SIZE, "The largest window advertised"),
            optional("send_buffer", SIZE, "Send buffer"),
            optional("min_rto", TIME, "Lower bound of the retransmission timeout"),
            optional("timestamps", Kind::Flag, "Timestamps (RFC 7323): 12 bytes of every packet"),
            optional("offload", Kind::Flag, "Paced segments leave in trains; default true"),
            optional(
                "small_queues",
                Kind::Flag,
                "Segments wait in the socket, not in the host's queue",
            ),
            optional("ecn", Kind::Flag, "Explicit congestion notification"),
        ],
    )
}
