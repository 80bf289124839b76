//! The protocols that a flow can name, with the one look that each has in every figure.

use serde::{Serialize, Serializer};
use udccp_proto::ccid::{ccid2, ccid3, ccid4, experimental};

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
    /// ◀
    TriangleLeft,
    /// ▶
    TriangleRight,
    /// ◆
    Diamond,
    /// ✚
    Plus,
    /// ⬧, taller than wide
    TallDiamond,
    /// ✕
    Cross,
    /// ⌃, filled
    Chevron,
    /// ⬟
    Pentagon,
    /// ⬢
    Hexagon,
    /// ★
    Star,
    /// ⧓
    Bowtie,
    /// ⧗
    Hourglass,
    /// ▬
    Bar,
    /// ▮
    Pillar,
    /// ◓
    Arch,
    /// An arrow up.
    Arrow,
    /// An arrow down.
    ArrowDown,
    /// ▰
    Slanted,
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
    /// The CCID that carries it over DCCP; every row of that family has one.
    pub ccid: Option<u8>,
    /// Its colour (told apart also by readers who see few colours).
    pub colour: &'static str,
    /// Its marker.
    pub marker: Marker,
}

/// All protocols. Adding one is a row here; a TCP needs an arm where its adapter is built, too.
pub const PROTOCOLS: &[Protocol] = &[
    dccp(
        ["dccp/ccid2", "ccid2", "DCCP CCID 2"],
        "TCP-like congestion control (RFC 4341), the protocol code of this project",
        ccid2::NUMBER,
        ("#0072b2", Marker::Circle),
    ),
    dccp(
        ["dccp/ccid3", "ccid3", "DCCP CCID 3"],
        "TCP-friendly rate control (RFC 4342, RFC 5348), the protocol code of this project",
        ccid3::NUMBER,
        ("#cc79a7", Marker::Plus),
    ),
    dccp(
        ["dccp/cubic", "ccid-cubic", "DCCP CUBIC (CCID 249)"],
        "experimental: Ack Vectors of CCID 2, the window of RFC 9438 with HyStart",
        experimental::CUBIC,
        ("#0b3d6b", Marker::Arrow),
    ),
    dccp(
        ["dccp/bbr", "ccid-bbr", "DCCP BBR (CCID 250)"],
        "experimental: Ack Vectors of CCID 2, BBR v1 (draft-romo-iccrg-ccid5-00)",
        experimental::BBR,
        ("#b8860b", Marker::ArrowDown),
    ),
    dccp(
        ["dccp/ccid4", "ccid4", "DCCP CCID 4"],
        "TCP-friendly rate control for small packets (RFC 5622, RFC 4828), the protocol \
                code of this project",
        ccid4::NUMBER,
        ("#9d6bd6", Marker::Slanted),
    ),
    tcp(
        ["tcp/newreno", "newreno", "TCP NewReno"],
        "SACK TCP with RFC 5681 congestion control (RFC 6582, RFC 6675)",
        ("#d55e00", Marker::Square),
    ),
    tcp(
        ["tcp/bic", "bic", "TCP BIC"],
        "BIC as in Linux 2.6: S_max = 16, B = 4, 0.8 kept (Xu, Harfoush and Rhee 2004)",
        ("#e69f00", Marker::TriangleDown),
    ),
    tcp(
        ["tcp/cubic", "cubic", "TCP CUBIC (2007)"],
        "CUBIC as in Linux 2.6.22: C = 0.4, beta = 0.2, no HyStart (Xu and Rhee 2005)",
        ("#009e73", Marker::Triangle),
    ),
    tcp(
        ["tcp/cubic-rfc9438", "cubic-rfc9438", "TCP CUBIC (RFC 9438)"],
        "CUBIC of today (RFC 9438) with HyStart (Ha and Rhee 2011)",
        ("#882255", Marker::Diamond),
    ),
    tcp(
        ["tcp/highspeed", "highspeed", "HighSpeed TCP"],
        "growth and cut that depend on the window (RFC 3649)",
        ("#56b4e9", Marker::TriangleRight),
    ),
    tcp(
        ["tcp/htcp", "htcp", "H-TCP"],
        "growth that rises with the time since the last loss (Leith and Shorten 2004)",
        ("#00a5c8", Marker::Pentagon),
    ),
    tcp(
        ["tcp/hybla", "hybla", "TCP Hybla"],
        "long paths grow as fast as one of 25 ms (Caini and Firrincieli 2004)",
        ("#117733", Marker::Hexagon),
    ),
    tcp(
        ["tcp/illinois", "illinois", "TCP Illinois"],
        "growth and cut that depend on the delay (Liu, Basar and Srikant 2008)",
        ("#332288", Marker::Star),
    ),
    tcp(
        ["tcp/lp", "lp", "TCP-LP"],
        "low priority: yields when the one-way delay rises (Kuzmanovic and Knightly 2006)",
        ("#999933", Marker::Bar),
    ),
    tcp(
        ["tcp/scalable", "scalable", "Scalable TCP"],
        "growth of 1 % and cut of 1/8 of the window (Kelly 2003)",
        ("#aa4499", Marker::TriangleLeft),
    ),
    tcp(
        ["tcp/vegas", "vegas", "TCP Vegas"],
        "two to four packets in the queue (Brakmo and Peterson 1995)",
        ("#44aa99", Marker::Hourglass),
    ),
    tcp(
        ["tcp/veno", "veno", "TCP Veno"],
        "a smaller cut where the queue is short (Fu and Liew 2003)",
        ("#8c564b", Marker::Bowtie),
    ),
    tcp(
        ["tcp/westwood", "westwood", "TCP Westwood+"],
        "a loss leaves what the measured bandwidth fills (Grieco and Mascolo 2004)",
        ("#661100", Marker::Pillar),
    ),
    tcp(
        ["tcp/yeah", "yeah", "YeAH-TCP"],
        "fast while the queue is short, NewReno otherwise (Baiocchi et al. 2007)",
        ("#6677cc", Marker::Arch),
    ),
    tcp(
        ["tcp/compound", "compound", "Compound TCP"],
        "NewReno's window and one that delay governs (Tan et al. 2006; Windows)",
        ("#222222", Marker::Chevron),
    ),
    tcp(
        ["tcp/bbr", "bbr", "TCP BBR v1"],
        "paces at the measured bandwidth, one path's worth in flight (Cardwell et al. 2016)",
        ("#e7298a", Marker::TallDiamond),
    ),
    Protocol {
        name: "udp",
        short: "udp",
        title: "UDP",
        about: "datagrams without congestion control (RFC 768)",
        family: Family::Udp,
        ccid: None,
        colour: "#6b6b6b",
        marker: Marker::Cross,
    },
];

/// A row of the TCP family: name, short name and title; what it is; its look.
const fn tcp(
    [name, short, title]: [&'static str; 3],
    about: &'static str,
    (colour, marker): (&'static str, Marker),
) -> Protocol {
    Protocol { name, short, title, about, family: Family::Tcp, ccid: None, colour, marker }
}

/// A row of the DCCP family: the same, with its CCID.
const fn dccp(
    [name, short, title]: [&'static str; 3],
    about: &'static str,
    ccid: u8,
    (colour, marker): (&'static str, Marker),
) -> Protocol {
    Protocol { name, short, title, about, family: Family::Dccp, ccid: Some(ccid), colour, marker }
}

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

    /// The marker alone tells any two apart, for readers who see few colours or none; colours are
    /// not so near each other that lines without markers look the same.
    #[test]
    fn every_protocol_has_a_look_of_its_own() {
        for (i, a) in PROTOCOLS.iter().enumerate() {
            for b in &PROTOCOLS[..i] {
                assert_ne!(a.name, b.name);
                assert_ne!(a.short, b.short);
                assert_ne!(a.marker, b.marker, "{} and {}", a.name, b.name);
                let apart = distance(a.colour, b.colour);
                assert!(apart >= 40.0, "{} and {}: {apart:.0}", a.name, b.name);
            }
        }
    }

    /// Distance of two colours in the RGB cube of side 255.
    fn distance(a: &str, b: &str) -> f64 {
        let part = |text: &str, i: usize| {
            f64::from(u8::from_str_radix(&text[2 * i + 1..2 * i + 3], 16).expect("a colour"))
        };
        (0..3).map(|i| (part(a, i) - part(b, i)).powi(2)).sum::<f64>().sqrt()
    }

    /// No DCCP flow runs with another CCID than its own because a row forgot to say.
    #[test]
    fn the_table_has_the_ccid_of_every_protocol_over_dccp_and_no_two_share_one() {
        let registry = udccp_proto::ccid::CcidRegistry::with_experiments();
        let mut found: Vec<u8> = Vec::new();
        for p in PROTOCOLS {
            assert_eq!(p.ccid.is_some(), p.family == Family::Dccp, "{}", p.name);
            assert_eq!(p.name.starts_with("dccp/"), p.family == Family::Dccp, "{}", p.name);
            found.extend(p.ccid);
        }
        assert!(found.iter().all(|ccid| registry.get(*ccid).is_some()), "{found:?}");
        let unlike: std::collections::BTreeSet<&u8> = found.iter().collect();
        assert_eq!(unlike.len(), found.len(), "{found:?}");
    }

    /// The fourteen of the study of Bhatti and Bateman on stability.
    #[test]
    fn the_fourteen_of_the_last_study_are_here() {
        let fourteen = "newreno bic cubic highspeed htcp hybla illinois lp scalable vegas veno \
                        westwood yeah compound";
        let found: Vec<&str> = fourteen
            .split(' ')
            .filter(|short| find(&format!("tcp/{short}")).is_some_and(|p| p.short == *short))
            .collect();
        assert_eq!(found.len(), 14, "{found:?}");
    }
}
