//! The schema of the network: links, queues, losses, changes.

use super::{
    Key, Kind, LIMIT, PACKETS, PERCENT, RATE, SIZE, TIME, Table, kind, may, need, table, words,
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
            need("shape", words(Shape::WORDS), "Its shape"),
            need("access", Kind::Table("AccessLink"), "The link between each host and its router"),
            may("bottleneck", Kind::Table("Link"), "The link between the routers, or each of them"),
            may(
                "reverse",
                Kind::Table("ReverseLink"),
                "The direction from right to left, where it differs from `bottleneck`",
            ),
            may("hops", Kind::Whole(1, Some(32)), "Number of equal hops of a chain"),
            may("hop", Kind::List(Box::new(Kind::Table("Hop"))), "Hops that differ"),
            may("change", Kind::List(Box::new(Kind::Table("Change"))), "What changes, and when"),
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
    let words = Kind::Word(vec!["drop-tail", "drop-head", "red", "codel", "fq-codel", "pie"]);
    vec![
        may("trace", Kind::Text, "File of transmission opportunities, instead of `rate`"),
        may("queue", either(&queues, words), "Queue discipline; default drop-tail"),
        may("loss", either(&LOSSES, PERCENT), "Random loss, forward only"),
        may("jitter", TIME, "Each packet is delayed by a uniformly random time below this"),
        may(
            "delay_distribution",
            Kind::Either(VARIATIONS.map(Kind::Table).to_vec()),
            "How the delay of a packet differs from that of the link",
        ),
        may("reorder", Kind::Table("Reorder"), "Packets that overtake others"),
        may("duplicate", PERCENT, "Packets that arrive twice"),
        may("corrupt", PERCENT, "Packets that are damaged, and so dropped"),
        may("mtu", SIZE, "Larger packets are dropped"),
        may(
            "token_bucket",
            SIZE,
            "Size of a token bucket, which limits the rate instead of a transmitter",
        ),
        may("delay_tick", TIME, "Delays end at multiples of this"),
        may(
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
        may("rate", RATE, "Its rate"),
        may("delay", TIME, "Its propagation delay, one way; default 0 s"),
        may("limit", LIMIT, "The limit of its queue; default unlimited"),
    ];
    keys.extend(common());
    table("AccessLink", "The link between a host and its router", keys)
}

fn between_routers(limit: Key) -> Vec<Key> {
    let mut keys = vec![
        may("rate", RATE, "Its rate"),
        may("rtt", TIME, "Round-trip time of the whole path, instead of `delay`"),
        may("delay", TIME, "Its propagation delay, one way, instead of `rtt`"),
        limit,
    ];
    keys.extend(common());
    keys
}

fn link() -> Table {
    let limit = need("limit", LIMIT, "The limit of its queue");
    table("Link", "A link between two routers", between_routers(limit))
}

fn reverse_link() -> Table {
    let limit = may("limit", LIMIT, "The limit of its queue, where it differs");
    table("ReverseLink", "What differs from right to left", between_routers(limit))
}

fn hop() -> Table {
    let mut keys = between_routers(need("limit", LIMIT, "The limit of its queue"));
    keys.retain(|key| key.name != "rtt");
    keys.push(may("reverse", Kind::Table("ReverseLink"), "What differs from right to left"));
    table("Hop", "One hop of a chain", keys)
}

fn change() -> Table {
    let mut losses = vec![PERCENT];
    losses.extend(LOSSES.map(Kind::Table));
    table(
        "Change",
        "A change of a link during the run",
        vec![
            need("at", TIME, "When"),
            need("link", Kind::Text, "bottleneck, hop 2 reverse, access, first sender, ..."),
            may("rate", RATE, "The new rate; 0 bit/s stops the link"),
            may("delay", TIME, "The new delay, one way"),
            may("loss", Kind::Either(losses), "The new loss"),
            may("down", Kind::Flag, "Whether the link is down"),
        ],
    )
}

fn reorder() -> Table {
    table(
        "Reorder",
        "Packets that overtake others",
        vec![
            need("share", PERCENT, "Share of packets that overtake"),
            may("gap", Kind::Whole(1, None), "Only every n-th packet can overtake"),
            may("by", TIME, "By how much; default: past all packets that are being delayed"),
        ],
    )
}

fn variations() -> [Table; 3] {
    let order = || may("in_order", Kind::Flag, "Whether packets keep their order; default true");
    [
        table(
            VARIATIONS[0],
            "A uniformly distributed time is added",
            vec![kind("uniform"), need("below", TIME, "Its upper bound"), order()],
        ),
        table(
            VARIATIONS[1],
            "A normally distributed time is added",
            vec![kind("normal"), need("deviation", TIME, "Its standard deviation"), order()],
        ),
        table(
            VARIATIONS[2],
            "The delay follows a file",
            vec![kind("trace"), need("file", Kind::Text, "Lines of time and delay in ms"), order()],
        ),
    ]
}

fn losses() -> [Table; 4] {
    [
        table(
            LOSSES[0],
            "Packets are lost independently of each other",
            vec![kind("random"), need("share", PERCENT, "Share that is lost")],
        ),
        table(
            LOSSES[1],
            "Losses in bursts: `share` and `burst`, or the four probabilities",
            vec![
                kind("gilbert-elliott"),
                may("share", PERCENT, "Share that is lost"),
                may("burst", PACKETS, "Mean length of a burst"),
                may("p", PERCENT, "Probability of a change from good to bad, per packet"),
                may("r", PERCENT, "Probability of a change from bad to good, per packet"),
                may("h", PERCENT, "Share that arrives in the bad state; default 0 %"),
                may("k", PERCENT, "Share that arrives in the good state; default 100 %"),
            ],
        ),
        table(
            LOSSES[2],
            "Losses at regular or given times: `every` or `at`",
            vec![
                kind("periodic"),
                may("every", Kind::Either(vec![PACKETS, TIME]), "Every n-th packet, or a period"),
                may("at", Kind::List(Box::new(TIME)), "The times"),
            ],
        ),
        table(
            LOSSES[3],
            "Losses from a file",
            vec![
                kind("trace"),
                need("file", Kind::Text, "The file"),
                may("lists", Kind::Word(vec!["flags", "numbers"]), "What it lists; flags"),
            ],
        ),
    ]
}

fn queues() -> [Table; 6] {
    let ecn = || may("ecn", Kind::Flag, "Mark ECN-capable packets instead of dropping them");
    let codel = || {
        vec![
            may("target", TIME, "Acceptable standing delay"),
            may("interval", TIME, "Time in which the delay has to fall below it once"),
            may("max_packet", SIZE, "Largest packet"),
            ecn(),
        ]
    };
    let with = |word: &'static str, more: Vec<Key>| {
        let mut keys = vec![kind(word)];
        keys.extend(more);
        keys
    };
    let mut fq = codel();
    fq.push(may("flows", Kind::Whole(1, Some(65_536)), "Number of flow queues"));
    fq.push(may("quantum", SIZE, "Bytes that a flow sends per turn"));
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
        may("min", PACKETS, "Mean queue length at which early drops begin"),
        may(
            "max",
            PACKETS,
            "Mean queue length at which all packets are dropped, or gentle RED begins",
        ),
        may("target", TIME, "Mean delay that determines `min` and `max`"),
        may("max_probability", PERCENT, "Drop probability at `max`; default 10 %"),
        may("weight", Kind::Number, "Weight of a sample in the mean, above 0, at most 1"),
        may("gentle", Kind::Flag, "Rise to 100 % between `max` and its double; default true"),
        may("unit", Kind::Word(vec!["packets", "bytes"]), "Unit of the queue length"),
        may("mean_packet", SIZE, "Mean packet size"),
        may("ecn", Kind::Flag, "Mark ECN-capable packets instead of dropping them"),
        may("adaptive", Kind::Flag, "Adaptive RED (Floyd, Gummadi and Shenker 2001)"),
    ]
}

fn pie() -> Vec<Key> {
    vec![
        may("target", TIME, "Target delay"),
        may("update", TIME, "Time between two computations of the probability"),
        may("alpha", Kind::Number, "Weight of the difference from the target"),
        may("beta", Kind::Number, "Weight of the change of the delay"),
        may("max_burst", TIME, "Burst that is let through at the start"),
        may("mean_packet", SIZE, "Mean packet size"),
        may("ecn", Kind::Flag, "Mark ECN-capable packets instead of dropping them"),
        may(
            "mark_below",
            PERCENT,
            "Above this probability, packets are dropped even if they can be marked",
        ),
    ]
}
