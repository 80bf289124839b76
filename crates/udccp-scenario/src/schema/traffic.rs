//! Reads the traffic of a flow: what its application sends.

use serde::{Deserialize, Serialize};
use udccp_base::{DataRate, DataSize, Duration};

use super::choice::words;
pub use super::random_variable::RandomVariable;
use super::random_variable::read_shape;
pub use super::trace::Trace;
use crate::diagnostic::{Diagnostic, suggestion};
use crate::document::{DiagnosticSink, FromNode, Node, Reader, Value};
use crate::protocol::{Family, Protocol};

/// What an application sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Traffic {
    /// As much as the flow takes.
    Bulk,
    /// Messages of one size at regular times.
    ConstantRate {
        /// Payload rate.
        rate: DataRate,
        /// Payload of one message.
        size: DataSize,
    },
    /// The same by turns with silence.
    OnOff {
        /// Payload rate while on.
        rate: DataRate,
        /// Payload of one message.
        size: DataSize,
        /// Length of a period of being on.
        on: RandomVariable<Duration>,
        /// Length of a period of silence.
        off: RandomVariable<Duration>,
    },
    /// A number of bytes, then the end.
    Transfer {
        /// The number.
        size: DataSize,
    },
    /// Transfers that come by chance, each over a connection of its own.
    Poisson {
        /// Mean time between arrivals.
        every: Duration,
        /// Size of a transfer.
        size: RandomVariable<DataSize>,
    },
    /// A voice call.
    Voip {
        /// The codec.
        codec: CodecName,
        /// Time of speech in a packet.
        packet: Duration,
        /// How the speaker falls silent.
        silence: Silence,
        /// How long a packet may wait.
        patience: Duration,
    },
    /// Live video of a regular pattern.
    Video {
        /// Mean payload rate.
        rate: DataRate,
        /// Time between frames.
        every: Duration,
        /// Frames in a group, of which the first is an I frame.
        group: u64,
        /// Size of an I frame against that of a P frame.
        ratio: f64,
        /// How long a frame may wait.
        patience: Duration,
    },
    /// Live video with the frame sizes of a file.
    VideoTrace {
        /// The file.
        trace: Trace,
        /// Time between frames.
        every: Duration,
        /// How long a frame may wait.
        patience: Duration,
    },
    /// Requests, each with its response.
    RequestResponse {
        /// Size of a request.
        request: RandomVariable<DataSize>,
        /// Size of a response.
        response: RandomVariable<DataSize>,
        /// Time from a response to the next request.
        think: RandomVariable<Duration>,
        /// When a response is given up, where data can be lost.
        timeout: Duration,
    },
}

words! {
    /// Speech codecs.
    CodecName, "codec":
    /// 64 kbit/s (ITU-T G.711).
    G711 = "g711",
    /// 8 kbit/s (ITU-T G.729).
    G729 = "g729",
}

/// What a codec does in silence: `"none"` sends on, `"p59"` and `{ talk, pause }` send nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Silence {
    /// Nothing is suppressed.
    None,
    /// Talk-spurts and pauses of ITU-T P.59.
    P59,
    /// Exponential talk-spurts and pauses of these means.
    Means {
        /// Mean talk-spurt.
        talk: Duration,
        /// Mean pause.
        pause: Duration,
    },
}

const KINDS: [&str; 9] = [
    "bulk",
    "constant-rate",
    "on-off",
    "pareto",
    "transfer",
    "poisson",
    "voip",
    "video",
    "request-response",
];

const CONSTANT_RATE: &str =
    "write traffic = { kind = \"constant-rate\", rate = \"1 Mbit/s\", size = \"1000 B\" }";

impl FromNode for Traffic {
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        if let Value::Text(word) = &node.value {
            if word == "bulk" {
                return Some(Self::Bulk);
            }
            let error =
                Diagnostic::at(&node.span, format!("\"{word}\" alone does not describe traffic"));
            errors.push(error.hint(CONSTANT_RATE));
            return None;
        }
        let mut reader = Reader::new(node, "traffic", errors)?;
        let kind: String = reader.need("kind")?;
        let traffic = match kind.as_str() {
            "bulk" => Some(Self::Bulk),
            "constant-rate" => constant_rate(&mut reader, node),
            "on-off" => on_off(&mut reader, node),
            "pareto" => pareto(&mut reader, node),
            "transfer" => above_zero(&mut reader, node, "size").map(|size| Self::Transfer { size }),
            "poisson" => poisson(&mut reader, node),
            "voip" => voip(&mut reader, node),
            "video" => video(&mut reader, node),
            "request-response" => request_response(&mut reader, node),
            _ => {
                let span = node.get("kind").map_or(&node.span, |n| &n.span);
                let error = Diagnostic::at(span, format!("\"{kind}\" is not a kind of traffic"));
                errors.push(error.hint(suggestion(&kind, "choose from", &KINDS)));
                return None;
            }
        };
        reader.finish();
        traffic
    }
}

fn constant_rate(reader: &mut Reader<'_>, node: &Node) -> Option<Traffic> {
    let (rate, size) = regular(reader, node)?;
    Some(Traffic::ConstantRate { rate, size })
}

/// A message becomes packets all at once, so this limits how many.
const LARGEST_MESSAGE: DataSize = DataSize::from_bytes(64 << 20);

/// Rate and size of messages at regular intervals.
fn regular(reader: &mut Reader<'_>, node: &Node) -> Option<(DataRate, DataSize)> {
    let (rate, size) = (reader.need("rate"), above_zero(reader, node, "size"));
    let (rate, size): (DataRate, DataSize) = (rate?, size?);
    if size > LARGEST_MESSAGE {
        let span = node.get("size").map_or(&node.span, |n| &n.span);
        let error = format!("a message of {size} is longer than {LARGEST_MESSAGE}");
        let hint = "for more data at once, write kind = \"transfer\" or \"poisson\"";
        reader.errors().push(Diagnostic::at(span, error).hint(hint));
        return None;
    }
    // Many messages per step of the clock would keep a run in that step for a long time.
    if u128::from(rate.bits_per_sec()) > 8_000_000_000 * u128::from(size.bytes()) {
        let span = node.get("rate").map_or(&node.span, |n| &n.span);
        let error = format!("{rate} in messages of {size} is more than one per nanosecond");
        reader.errors().push(Diagnostic::at(span, error).hint("lower `rate`, or raise `size`"));
        return None;
    }
    Some((rate, size))
}

fn on_off(reader: &mut Reader<'_>, node: &Node) -> Option<Traffic> {
    let regular = regular(reader, node);
    let (on, off) = (reader.need("on"), reader.need("off"));
    bursts(reader, node, regular?, on?, off?)
}

/// Messages of this rate and size, in periods that are long enough for them.
fn bursts(
    reader: &Reader<'_>,
    node: &Node,
    (rate, size): (DataRate, DataSize),
    on: RandomVariable<Duration>,
    off: RandomVariable<Duration>,
) -> Option<Traffic> {
    long_enough(reader, node, "on", on, rate.time_for(size.bytes()))?;
    Some(Traffic::OnOff { rate, size, on, off })
}

/// The source counts the periods between two messages: a run over millions of them would not end.
fn long_enough(
    reader: &Reader<'_>,
    node: &Node,
    key: &str,
    periods: RandomVariable<Duration>,
    gap: Duration,
) -> Option<()> {
    let fits = |length: Duration| length * 1000 >= gap;
    let (mean, typical) = (periods.mean(), periods.typical());
    let (kind, length, hint) = if !fits(mean) {
        ("on average", mean, "make it at least a thousandth of that")
    } else if !fits(typical) {
        ("in most cases", typical, "make its mean or `shape` larger, or `sigma` smaller")
    } else {
        return Some(());
    };
    let span = node.get(key).map_or(&node.span, |n| &n.span);
    let error = format!("`{key}` is {length} {kind}, but messages are {gap} apart");
    reader.errors().push(Diagnostic::at(span, error).hint(hint));
    None
}

/// On and off with Pareto periods of one shape.
fn pareto(reader: &mut Reader<'_>, node: &Node) -> Option<Traffic> {
    let regular = regular(reader, node);
    let (on, off) = (reader.need("on"), reader.need("off"));
    let shape = read_shape(reader, node)?;
    let [on, off] = [on?, off?].map(|mean| RandomVariable::Pareto { mean, shape });
    bursts(reader, node, regular?, on, off)
}

fn poisson(reader: &mut Reader<'_>, node: &Node) -> Option<Traffic> {
    let (every, size) = (above_zero(reader, node, "every"), sizes(reader, node, "size"));
    Some(Traffic::Poisson { every: every?, size: size? })
}

/// Default lifetime of live media: the delay that ITU-T G.114 recommends for speech.
const VOICE_PATIENCE: Duration = Duration::from_millis(150);
/// The same for video: the largest delay that G.114 recommends for planning.
const VIDEO_PATIENCE: Duration = Duration::from_millis(400);

fn voip(reader: &mut Reader<'_>, node: &Node) -> Option<Traffic> {
    let codec = reader.need("codec");
    let packet = reader.or("packet", Duration::from_millis(20));
    let silence = reader.or("silence", Silence::None);
    let patience = reader.or("patience", VOICE_PATIENCE);
    let frames = packet.as_nanos() / 10_000_000;
    if !packet.as_nanos().is_multiple_of(10_000_000) || !(1..=20).contains(&frames) {
        let span = node.get("packet").map_or(&node.span, |n| &n.span);
        let error = Diagnostic::at(span, format!("a packet cannot hold {packet} of speech"));
        reader.errors().push(error.hint("it holds whole frames of 10 ms, 1 to 20 of them"));
    }
    if let Silence::Means { talk, .. } = silence {
        let span = node.get("silence").unwrap_or(node);
        long_enough(reader, span, "talk", RandomVariable::Exponential { mean: talk }, packet)?;
    }
    Some(Traffic::Voip { codec: codec?, packet, silence, patience })
}

fn video(reader: &mut Reader<'_>, node: &Node) -> Option<Traffic> {
    let errors = reader.errors();
    let every = above_zero(reader, node, "every");
    let patience = reader.or("patience", VIDEO_PATIENCE);
    if let Some(file) = reader.raw("trace") {
        let trace = Trace::read(file, errors);
        if file.as_text().is_none() {
            let error = Diagnostic::at(&file.span, "a trace is the name of a file in quotes");
            errors.push(error.hint("for example trace = \"frames.txt\""));
        }
        return Some(Traffic::VideoTrace { trace: trace?, every: every?, patience });
    }
    let rate = reader.need("rate");
    let (group, ratio) = (reader.or("group", 1), reader.or("ratio", 1.0));
    if group == 0 || group > 10_000 {
        let span = node.get("group").map_or(&node.span, |n| &n.span);
        errors.push(Diagnostic::at(span, "a group has 1 to 10000 frames"));
        return None;
    }
    if ratio <= 0.0 {
        let span = node.get("ratio").map_or(&node.span, |n| &n.span);
        errors.push(Diagnostic::at(span, "the ratio of I to P frames must be above 0"));
        return None;
    }
    check_frames(reader, node, rate?, every?, (group, ratio))?;
    Some(Traffic::Video { rate: rate?, every: every?, group, ratio, patience })
}

/// A frame is a message too.
fn check_frames(
    reader: &Reader<'_>,
    node: &Node,
    rate: DataRate,
    every: Duration,
    (group, ratio): (u64, f64),
) -> Option<()> {
    let p_frame = group as f64 / (ratio + (group - 1) as f64);
    let largest = p_frame * ratio.max(1.0);
    if rate.bytes_in(every).bytes() as f64 * largest <= LARGEST_MESSAGE.bytes() as f64 {
        return Some(());
    }
    let span = node.get("rate").map_or(&node.span, |n| &n.span);
    let error = format!("{rate} makes frames longer than {LARGEST_MESSAGE}");
    reader.errors().push(Diagnostic::at(span, error).hint("lower `rate`, `every` or `ratio`"));
    None
}

fn request_response(reader: &mut Reader<'_>, node: &Node) -> Option<Traffic> {
    let [request, response] = ["request", "response"].map(|key| sizes(reader, node, key));
    let think = reader.or("think", RandomVariable::Constant { value: Duration::ZERO });
    let timeout = match node.get("timeout") {
        Some(_) => above_zero(reader, node, "timeout"),
        None => Some(reader.or("timeout", Duration::from_secs(5))),
    };
    let (request, response) = (request?, response?);
    Some(Traffic::RequestResponse { request, response, think, timeout: timeout? })
}

/// Sizes that must not all be zero.
fn sizes(
    reader: &mut Reader<'_>,
    node: &Node,
    key: &'static str,
) -> Option<RandomVariable<DataSize>> {
    let size: RandomVariable<DataSize> = reader.need(key)?;
    not_zero(reader, node, key, size.mean()).map(|_| size)
}

/// A quantity that must not be zero.
fn above_zero<T: FromNode + Default + PartialEq>(
    reader: &mut Reader<'_>,
    node: &Node,
    key: &'static str,
) -> Option<T> {
    let value: T = reader.need(key)?;
    not_zero(reader, node, key, value)
}

fn not_zero<T: Default + PartialEq>(
    reader: &Reader<'_>,
    node: &Node,
    key: &'static str,
    value: T,
) -> Option<T> {
    if value == T::default() {
        let span = node.get(key).map_or(&node.span, |n| &n.span);
        reader.errors().push(Diagnostic::at(span, format!("`{key}` must be above zero")));
        return None;
    }
    Some(value)
}

impl FromNode for Silence {
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        const WORDS: [(&str, Silence); 2] = [("none", Silence::None), ("p59", Silence::P59)];
        if !matches!(node.value, Value::Table(_)) {
            return super::choice::choose(node, errors, "model of silence", &WORDS);
        }
        let mut reader = Reader::new(node, "silence", errors)?;
        let talk = above_zero(&mut reader, node, "talk");
        let pause = reader.need("pause");
        reader.finish();
        Some(Self::Means { talk: talk?, pause: pause? })
    }
}

/// Checks that traffic and protocol fit together; `flow` contains both.
pub(super) fn check(traffic: &Traffic, protocol: &Protocol, flow: &Node, errors: &DiagnosticSink) {
    if protocol.family != Family::Udp {
        return;
    }
    let error = match traffic {
        Traffic::Bulk => "UDP does not limit bulk traffic",
        Traffic::Transfer { .. } | Traffic::Poisson { .. } => {
            "UDP sends a whole transfer at once: nothing limits it"
        }
        Traffic::RequestResponse { .. } => "UDP flows have no reverse direction here",
        _ => return,
    };
    let span = flow.get("protocol").map_or(&flow.span, |n| &n.span);
    errors.push(Diagnostic::at(span, error).hint(CONSTANT_RATE));
}
