//! The schema of the network: links, queues, losses, changes.

use super::{
    Key, Kind, LIMIT, PACKETS, PERCENT, RATE, SIZE, TIME, Table, kind, one_of, optional, required,
    table,
};
use crate::schema::Shape;

pub(super) fn all() -> Vec<Table> {
    let mut all =
        vec![topology(), access_link(), link(), reverse_link(), hop(), change(), reorder()];
    all.extend(variations());
    all.extend(losses());
    all.extend(queues());
    all
}

fn topology() -> Table {
    table(
        "Topology",
        "The network between the hosts",
        vec![
            required("shape", one_of(Shape::WORDS), "Its shape"),
            required(
                "access",
                Kind::Table("AccessLink"),
                "The link between each host and its router",
            ),
            optional(
                "bottleneck",
                Kind::Table("Link"),
                "The link between the routers, or each of them",
            ),
            optional(
                "reverse",
                Kind::Table("ReverseLink"),
                "The direction from right to left, where it differs from `bottleneck`",
            ),
            optional("hops", Kind::Whole(1, Some(32)), "Number of equal hops of a chain"),
            optional("hop", Kind::List(Box::new(Kind::Table("Hop"))), "Hops that differ"),
            optional(
                "change",
                Kind::List(Box::new(Kind::Table("Change"))),
                "What changes, and when",
            ),
        ],
    )
}

/// The keys of every link except rate, delay and limit.
fn common() -> Vec<Key> {
    let either = |tables: &[&'static str], other: Kind| {
        let mut kinds = vec![other];
        kinds.extend(tables.iter().map(|name| Kind::Table(name)));
        Kind::Either(kinds)
    };
    let queues = ["DropTail", "DropHead", "Red", "CoDel", "FqCoDel", "Pie"];
    let disciplines = Kind::Word(vec!["drop-tail", "drop-head", "red", "codel", "fq-codel", "pie"]);
    vec![
        optional("trace", Kind::Text, "File of transmission opportunities, instead of `rate`"),
        optional("queue", either(&queues, disciplines), "Queue discipline; default drop-tail"),
        optional("loss", either(&LOSSES, PERCENT), "Random loss, forward only"),
        optional("jitter", TIME, "Each packet is delayed by a uniformly random time below this"),
        optional(
            "delay_distribution",
            Kind::Either(VARIATIONS.map(Kind::Table).to_vec()),
            "How the delay of a packet differs from that of the link",
        ),
        optional("reorder", Kind::Table("Reorder"), "Packets that overtake others"),
        optional("duplicate", PERCENT, "Packets that arrive twice"),
        optional("corrupt", PERCENT, "Packets that are damaged, and so dropped"),
        optional("mtu", SIZE, "Larger packets are dropped"),
        optional(
            "token_bucket",
            SIZE,
            "Size of a token bucket, which limits the rate instead of a transmitter",
        ),
        optional("delay_tick", TIME, "Delays end at multiples of this"),
        optional(
            "interrupt_moderation",
            TIME,
            "Least time between two interrupts of the network card at the far end",
        ),
    ]
}

const VARIATIONS: [&str; 3] = ["UniformDelay", "NormalDelay", "TraceDelay"];
const LOSSES: [&str; 4] = ["RandomLoss", "GilbertElliott", "PeriodicLoss", "TraceLoss"];

fn access_link() -> Table {
    let mut keys = vec![
        optional("rate", RATE, "Its rate"),
        optional("delay", TIME, "Its propagation delay, one way; default 0 s"),
        optional("limit", LIMIT, "The limit of its queue; default unlimited"),
    ];
    keys.extend(common());
    table("AccessLink", "The link between a host and its router", keys)
}

fn between_routers(limit: Key) -> Vec<Key> {
    let mut keys = vec![
        optional("rate", RATE, "Its rate"),
        optional("rtt", TIME, "Round-trip time of the whole path, instead of `delay`"),
        optional("delay", TIME, "Its propagation delay, one way, instead of `rtt`"),
        limit,
    ];
    keys.extend(common());
    keys
}

fn link() -> Table {
    let limit = required("limit", LIMIT, "The limit of its queue");
    table("Link", "A link between two routers", between_routers(limit))
}

fn reverse_link() -> Table {
    let limit = optional("limit", LIMIT, "The limit of its queue, where it differs");
    table("ReverseLink", "What differs from right to left", between_routers(limit))
}

fn hop() -> Table {
    let mut keys = between_routers(required("limit", LIMIT, "The limit of its queue"));
    keys.retain(|key| key.name != "rtt");
    keys.push(optional("reverse", Kind::Table("ReverseLink"), "What differs from right to left"));
    table("Hop", "One hop of a chain", keys)
}

fn change() -> Table {
    let mut losses = vec![PERCENT];
    losses.extend(LOSSES.map(Kind::Table));
    table(
        "Change",
        "A change of a link during the run",
        vec![
            required("at", TIME, "When"),
            required("link", Kind::Text, "bottleneck, hop 2 reverse, access, first sender, ..."),
            optional("rate", RATE, "The new rate; 0 bit/s stops the link"),
            optional("delay", TIME, "The new delay, one way"),
            optional("loss", Kind::Either(losses), "The new loss"),
            optional("down", Kind::Flag, "Whether the link is down"),
        ],
    )
}

fn reorder() -> Table {
    table(
        "Reorder",
        "Packets that overtake others",
        vec![
            required("share", PERCENT, "Share of packets that overtake"),
            optional("gap", Kind::Whole(1, None), "Only every n-th packet can overtake"),
            optional("by", TIME, "By how much; default: past all packets that are being delayed"),
        ],
    )
}

fn variations() -> [Table; 3] {
    let order =
        || optional("in_order", Kind::Flag, "Whether packets keep their order; default true");
    [
        table(
            VARIATIONS[0],
            "A uniformly distributed time is added",
            vec![kind("uniform"), required("below", TIME, "Its upper bound"), order()],
        ),
        table(
            VARIATIONS[1],
            "A normally distributed time is added",
            vec![kind("normal"), required("deviation", TIME, "Its standard deviation"), order()],
        ),
        table(
            VARIATIONS[2],
            "The delay follows a file",
            vec![
                kind("trace"),
                required("file", Kind::Text, "Lines of time and delay in ms"),
                order(),
            ],
        ),
    ]
}

fn losses() -> [Table; 4] {
    [
        table(
            LOSSES[0],
            "Packets are lost independently of each other",
            vec![kind("random"), required("share", PERCENT, "Share that is lost")],
        ),
        table(
            LOSSES[1],
            "Losses in bursts: `share` and `burst`, or the four probabilities",
            vec![
                kind("gilbert-elliott"),
                optional("share", PERCENT, "Share that is lost"),
                optional("burst", PACKETS, "Mean length of a burst"),
                optional("p", PERCENT, "Probability of a change from good to bad, per packet"),
                optional("r", PERCENT, "Probability of a change from bad to good, per packet"),
                optional("h", PERCENT, "Share that arrives in the bad state; default 0 %"),
                optional("k", PERCENT, "Share that arrives in the good state; default 100 %"),
            ],
        ),
        table(
            LOSSES[2],
            "Losses at regular or given times: `every` or `at`",
            vec![
                kind("periodic"),
                optional(
                    "every",
                    Kind::Either(vec![PACKETS, TIME]),
                    "Every n-th packet, or a period",
                ),
                optional("at", Kind::List(Box::new(TIME)), "The times"),
            ],
        ),
        table(
            LOSSES[3],
            "Losses from a file",
            vec![
                kind("trace"),
                required("file", Kind::Text, "The file"),
                optional("lists", Kind::Word(vec!["flags", "numbers"]), "What it lists; flags"),
            ],
        ),
    ]
}

fn queues() -> [Table; 6] {
    let ecn = || optional("ecn", Kind::Flag, "Mark ECN-capable packets instead of dropping them");
    let codel = || {
        vec![
            optional("target", TIME, "Acceptable standing delay"),
            optional("interval", TIME, "Time in which the delay has to fall below it once"),
            optional("max_packet", SIZE, "Largest packet"),
            ecn(),
        ]
    };
    let with = |word: &'static str, more: Vec<Key>| {
        let mut keys = vec![kind(word)];
        keys.extend(more);
        keys
    };
    let mut fq = codel();
    fq.push(optional("flows", Kind::Whole(1, Some(65_536)), "Number of flow queues"));
    fq.push(optional("quantum", SIZE, "Bytes that a flow sends per turn"));
    [
        table("DropTail", "Drops packets that do not fit", with("drop-tail", vec![])),
        table(
            "DropHead",
            "Drops the oldest packets to make room for new ones",
            with("drop-head", vec![]),
        ),
        table("Red", "Random early detection (Floyd and Jacobson 1993)", with("red", red())),
        table("CoDel", "CoDel (RFC 8289)", with("codel", codel())),
        table("FqCoDel", "FQ-CoDel (RFC 8290)", with("fq-codel", fq)),
        table("Pie", "PIE (RFC 8033)", with("pie", pie())),
    ]
}

fn red() -> Vec<Key> {
    vec![
        optional("min", PACKETS, "Mean queue length at which early drops begin"),
        optional(
            "max",
            PACKETS,
            "Mean queue length at which all packets are dropped, or gentle RED begins",
        ),
        optional("target", TIME, "Mean delay that determines `min` and `max`"),
        optional("max_probability", PERCENT, "Drop probability at `max`; default 10 %"),
        optional("weight", Kind::Number, "Weight of a sample in the mean, above 0, at most 1"),
        optional("gentle", Kind::Flag, "Rise to 100 % between `max` and its double; default true"),
        optional("unit", Kind::Word(vec!["packets", "bytes"]), "Unit of the queue length"),
        optional("mean_packet", SIZE, "Mean packet size"),
        optional("ecn", Kind::Flag, "Mark ECN-capable packets instead of dropping them"),
        optional("adaptive", Kind::Flag, "Adaptive RED (Floyd, Gummadi and Shenker 2001)"),
    ]
}

fn pie() -> Vec<Key> {
    vec![
        optional("target", TIME, "Target delay"),
        optional("update", TIME, "Time between two computations of the probability"),
        optional("alpha", Kind::Number, "Weight of the difference from the target"),
        optional("beta", Kind::Number, "Weight of the change of the delay"),
        optional("max_burst", TIME, "Burst that is let through at the start"),
        optional("mean_packet", SIZE, "Mean packet size"),
        optional("ecn", Kind::Flag, "Mark ECN-capable packets instead of dropping them"),
        optional(
            "mark_below",
            PERCENT,
            "Above this probability, packets are dropped even if they can be marked",
        ),
    ]
}
