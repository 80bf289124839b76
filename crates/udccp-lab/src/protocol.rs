//! The protocols that a flow can name, with the one look that each has in every figure.

use serde::{Serialize, Serializer};

use crate::diagnostic::{Diagnostic, suggestion};
use crate::document::{Faults, FromNode, Node};

/// Which options a protocol takes, and which adapter carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// The DCCP endpoint, deployed code.
    Dccp,
    /// The TCP model.
    Tcp,
    /// Datagrams without congestion control.
    Udp,
}

/// A mark of a point in a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// ●
    Circle,
    /// ■
    Square,
    /// ▲
    Triangle,
    /// ▼
    TriangleDown,
    /// ◆
    Diamond,
    /// ✚
    Plus,
    /// ✕
    Cross,
}

/// One protocol.
#[derive(Debug, PartialEq)]
pub struct Protocol {
    /// The name in files: `family/variant`.
    pub name: &'static str,
    /// The name in a CSV and a short label.
    pub short: &'static str,
    /// The name in a report.
    pub title: &'static str,
    /// What it is and where it is defined.
    pub about: &'static str,
    /// Its family.
    pub family: Family,
    /// Its colour (told apart also by readers who see few colours).
    pub colour: &'static str,
    /// Its marker.
    pub marker: Marker,
}

/// All protocols. Adding one is a row here and an arm where its adapter is built.
pub const PROTOCOLS: [Protocol; 7] = [
    Protocol {
        name: "dccp/ccid2",
        short: "ccid2",
        title: "DCCP CCID 2",
        about: "TCP-like congestion control (RFC 4341), the protocol code of this project",
        family: Family::Dccp,
        colour: "#0072b2",
        marker: Marker::Circle,
    },
    Protocol {
        name: "dccp/ccid3",
        short: "ccid3",
        title: "DCCP CCID 3",
        about: "TCP-friendly rate control (RFC 4342, RFC 5348), the protocol code of this project",
        family: Family::Dccp,
        colour: "#cc79a7",
        marker: Marker::Plus,
    },
    Protocol {
        name: "tcp/newreno",
        short: "newreno",
        title: "TCP NewReno",
        about: "SACK TCP with RFC 5681 congestion control (RFC 6582, RFC 6675)",
        family: Family::Tcp,
        colour: "#d55e00",
        marker: Marker::Square,
    },
    Protocol {
        name: "tcp/bic",
        short: "bic",
        title: "TCP BIC",
        about: "BIC as in Linux 2.6: S_max = 16, B = 4, 0.8 kept (Xu, Harfoush and Rhee 2004)",
        family: Family::Tcp,
        colour: "#e69f00",
        marker: Marker::TriangleDown,
    },
    Protocol {
        name: "tcp/cubic",
        short: "cubic",
        title: "TCP CUBIC (2007)",
        about: "CUBIC as in Linux 2.6.22: C = 0.4, beta = 0.2, no HyStart (Xu and Rhee 2005)",
        family: Family::Tcp,
        colour: "#009e73",
        marker: Marker::Triangle,
    },
    Protocol {
        name: "tcp/cubic-rfc9438",
        short: "cubic-rfc9438",
        title: "TCP CUBIC (RFC 9438)",
        about: "CUBIC of today (RFC 9438)",
        family: Family::Tcp,
        colour: "#882255",
        marker: Marker::Diamond,
    },
    Protocol {
        name: "udp",
        short: "udp",
        title: "UDP",
        about: "datagrams without congestion control (RFC 768)",
        family: Family::Udp,
        colour: "#6b6b6b",
        marker: Marker::Cross,
    },
];

/// The protocol of this name in files.
pub(crate) fn find(name: &str) -> Option<&'static Protocol> {
    PROTOCOLS.iter().find(|p| p.name == name)
}

/// A protocol's title, or the label itself where it names none.
pub(crate) fn title_of(label: &str) -> &str {
    find(label).map_or(label, |p| p.title)
}

impl FromNode for &'static Protocol {
    fn from_node(node: &Node, faults: &Faults) -> Option<Self> {
        let name = String::from_node(node, faults)?;
        let found = find(&name);
        if found.is_none() {
            let names: Vec<&str> = PROTOCOLS.iter().map(|p| p.name).collect();
            let fault = Diagnostic::at(&node.span, format!("unknown protocol \"{name}\""));
            faults.push(fault.hint(suggestion(&name, "protocols", &names)));
        }
        found
    }
}

impl Serialize for Protocol {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_has_a_look_of_its_own() {
        for (i, a) in PROTOCOLS.iter().enumerate() {
            for b in &PROTOCOLS[..i] {
                assert_ne!(a.name, b.name);
                assert_ne!(a.colour, b.colour);
                assert_ne!(a.marker, b.marker, "{} and {}", a.name, b.name);
            }
        }
    }
}
