//! What the application of a flow sends.

use serde::Serialize;
use udccp_base::{DataRate, DataSize};

use crate::diagnostic::{Diagnostic, suggestion};
use crate::document::{Faults, FromNode, Node, Reader, Value};
use crate::protocol::{Family, Protocol};

/// What an application sends.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
}

const CONSTANT_RATE: &str =
    "write traffic = { kind = \"constant-rate\", rate = \"1 Mbit/s\", size = \"1000 B\" }";

impl FromNode for Traffic {
    fn from_node(node: &Node, faults: &Faults) -> Option<Self> {
        const KINDS: [&str; 2] = ["bulk", "constant-rate"];
        if let Value::Text(word) = &node.value {
            if word == "bulk" {
                return Some(Self::Bulk);
            }
            let fault = Diagnostic::at(&node.span, format!("\"{word}\" is no traffic by itself"));
            faults.push(fault.hint(CONSTANT_RATE));
            return None;
        }
        let mut reader = Reader::new(node, "traffic", faults)?;
        let kind: String = reader.need("kind")?;
        let traffic = match kind.as_str() {
            "bulk" => Some(Self::Bulk),
            "constant-rate" => {
                let rate: Option<DataRate> = reader.need("rate");
                let size: Option<DataSize> = reader.need("size");
                rate.zip(size).map(|(rate, size)| Self::ConstantRate { rate, size })
            }
            _ => {
                let span = node.get("kind").map_or(&node.span, |n| &n.span);
                let fault = Diagnostic::at(span, format!("\"{kind}\" is no kind of traffic"));
                faults.push(fault.hint(suggestion(&kind, "there are", &KINDS)));
                return None;
            }
        };
        reader.finish();
        traffic
    }
}

/// What traffic and protocol cannot say alone; `flow` is where both stand.
pub(super) fn check(traffic: &Traffic, protocol: &Protocol, flow: &Node, faults: &Faults) {
    if *traffic == Traffic::Bulk && protocol.family == Family::Udp {
        let span = flow.get("protocol").map_or(&flow.span, |n| &n.span);
        let fault = Diagnostic::at(span, "UDP takes bulk traffic without end");
        faults.push(fault.hint(CONSTANT_RATE));
    }
}
