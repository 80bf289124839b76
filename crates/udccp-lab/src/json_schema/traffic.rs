//! The schema of traffic and of random variables.

use super::{Key, Kind, RATE, SIZE, TIME, Table, kind, one_of, optional, required, table};
use crate::schema::CodecName;

pub(super) fn all() -> Vec<Table> {
    let mut all = Vec::new();
    all.extend(steady());
    all.extend(live());
    all.push(request_response());
    all.push(table(
        "Silence",
        "Exponential talk-spurts and pauses",
        vec![required("talk", TIME, "Mean talk-spurt"), required("pause", TIME, "Mean pause")],
    ));
    all.extend(drawn(["ConstantTime", "ExponentialTime", "ParetoTime", "LognormalTime"], &TIME));
    all.extend(drawn(["ConstantSize", "ExponentialSize", "ParetoSize", "LognormalSize"], &SIZE));
    all
}

/// A constant or random time.
fn random_time() -> Kind {
    let drawn = ["ConstantTime", "ExponentialTime", "ParetoTime", "LognormalTime"];
    Kind::Either(core::iter::once(TIME).chain(drawn.map(Kind::Table)).collect())
}

/// A constant or random size.
fn random_size() -> Kind {
    let drawn = ["ConstantSize", "ExponentialSize", "ParetoSize", "LognormalSize"];
    Kind::Either(core::iter::once(SIZE).chain(drawn.map(Kind::Table)).collect())
}

fn drawn(names: [&'static str; 4], of: &Kind) -> [Table; 4] {
    let mean = || required("mean", of.clone(), "Its mean");
    let [constant, exponential, pareto, lognormal] = names;
    [
        table(
            constant,
            "A constant",
            vec![kind("constant"), required("value", of.clone(), "The value")],
        ),
        table(exponential, "Exponentially distributed", vec![kind("exponential"), mean()]),
        table(pareto, "Pareto distributed", vec![kind("pareto"), mean(), shape()]),
        table(
            lognormal,
            "Log-normally distributed",
            vec![
                kind("lognormal"),
                mean(),
                required("sigma", Kind::Number, "Standard deviation of the logarithm"),
            ],
        ),
    ]
}

fn shape() -> Key {
    required("shape", Kind::Number, "Its shape, above 1")
}

fn steady() -> [Table; 6] {
    let rate = || required("rate", RATE, "Payload rate while it sends");
    let size = || required("size", SIZE, "Payload of one message");
    [
        table("Bulk", "As much as the flow can send", vec![kind("bulk")]),
        table(
            "ConstantRate",
            "Messages of one size at regular intervals",
            vec![kind("constant-rate"), rate(), size()],
        ),
        table(
            "OnOff",
            "Constant rate alternating with silence",
            vec![
                kind("on-off"),
                rate(),
                size(),
                required("on", random_time(), "Length of an on period"),
                required("off", random_time(), "Length of a silent period"),
            ],
        ),
        table(
            "ParetoOnOff",
            "Constant rate alternating with silence, both Pareto distributed",
            vec![
                kind("pareto"),
                rate(),
                size(),
                required("on", TIME, "Mean length of an on period"),
                required("off", TIME, "Mean length of a silent period"),
                shape(),
            ],
        ),
        table(
            "Transfer",
            "A fixed number of bytes",
            vec![kind("transfer"), required("size", SIZE, "How much")],
        ),
        table(
            "Poisson",
            "Transfers that arrive at random, each over its own connection",
            vec![
                kind("poisson"),
                required("every", TIME, "Mean time between arrivals"),
                required("size", random_size(), "Size of a transfer"),
            ],
        ),
    ]
}

fn live() -> [Table; 3] {
    let patience = |about| optional("patience", TIME, about);
    [
        table(
            "Voip",
            "A voice call",
            vec![
                kind("voip"),
                required("codec", one_of(CodecName::WORDS), "The codec"),
                optional(
                    "packet",
                    TIME,
                    "Speech in a packet, in whole frames of 10 ms; default 20 ms",
                ),
                optional(
                    "silence",
                    Kind::Either(vec![Kind::Word(vec!["none", "p59"]), Kind::Table("Silence")]),
                    "Model of the speaker's pauses; default none",
                ),
                patience("How long a packet may wait; default 150 ms"),
            ],
        ),
        table(
            "Video",
            "Live video with a regular pattern",
            vec![
                kind("video"),
                required("every", TIME, "Time between frames"),
                required("rate", RATE, "Mean payload rate"),
                optional("group", Kind::Whole(1, Some(10_000)), "Frames in a group; default 1"),
                optional(
                    "ratio",
                    Kind::Number,
                    "Size of an I frame relative to a P frame; default 1",
                ),
                patience("How long a frame may wait; default 400 ms"),
            ],
        ),
        table(
            "VideoTrace",
            "Live video with the frame sizes of a file",
            vec![
                kind("video"),
                required("every", TIME, "Time between frames"),
                required("trace", Kind::Text, "File of frame sizes in bytes, one per line"),
                patience("How long a frame may wait; default 400 ms"),
            ],
        ),
    ]
}

fn request_response() -> Table {
    table(
        "RequestResponse",
        "Requests, each followed by its response",
        vec![
            kind("request-response"),
            required("request", random_size(), "Size of a request"),
            required("response", random_size(), "Size of a response"),
            optional(
                "think",
                random_time(),
                "Time from a response to the next request; default 0 s",
            ),
            optional(
                "timeout",
                TIME,
                "When a response is given up, if data can be lost; default 5 s",
            ),
        ],
    )
}
