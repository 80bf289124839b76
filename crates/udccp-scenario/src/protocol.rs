//! The protocols that a flow can use.

use serde::{Serialize, Serializer};
use udccp_proto::ccid::{ccid2, ccid3, ccid4, experimental};

use crate::diagnostic::{Diagnostic, suggestion};
use crate::document::{DiagnosticSink, FromNode, Node};

/// The family of a protocol, which determines its options and its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// The deployed DCCP endpoint.
    Dccp,
    /// The TCP model.
    Tcp,
    /// Datagrams without congestion control.
    Udp,
}

/// One protocol.
#[derive(Debug, PartialEq)]
pub struct Protocol {
    /// The name in files: `family/variant`.
    pub name: &'static str,
    /// The name in a CSV and a short label.
    pub short: &'static str,
    /// The name in reports.
    pub title: &'static str,
    /// What it is and where it is defined.
    pub about: &'static str,
    /// Its family.
    pub family: Family,
    /// The CCID that carries it over DCCP. Every DCCP protocol has one.
    pub ccid: Option<u8>,
}

/// All protocols. To add one, add a row here; a TCP also needs an arm where its transport is built.
pub const PROTOCOLS: &[Protocol] = &[
    dccp(
        ["dccp/ccid2", "ccid2", "DCCP CCID 2"],
        "TCP-like congestion control (RFC 4341), the protocol code of this project",
        ccid2::NUMBER,
    ),
    dccp(
        ["dccp/ccid3", "ccid3", "DCCP CCID 3"],
        "TCP-friendly rate control (RFC 4342, RFC 5348), the protocol code of this project",
        ccid3::NUMBER,
    ),
    dccp(
        ["dccp/cubic", "ccid-cubic", "DCCP CUBIC (CCID 249)"],
        "experimental: Ack Vectors of CCID 2, the window of RFC 9438 with HyStart",
        experimental::CUBIC,
    ),
    dccp(
        ["dccp/bbr", "ccid-bbr", "DCCP BBR (CCID 250)"],
        "experimental: Ack Vectors of CCID 2, BBR v1 (draft-romo-iccrg-ccid5-00)",
        experimental::BBR,
    ),
    dccp(
        ["dccp/ccid4", "ccid4", "DCCP CCID 4"],
        "TCP-friendly rate control for small packets (RFC 5622, RFC 4828), the protocol \
                code of this project",
        ccid4::NUMBER,
    ),
    tcp(
        ["tcp/newreno", "newreno", "TCP NewReno"],
        "SACK TCP with RFC 5681 congestion control (RFC 6582, RFC 6675)",
    ),
    tcp(
        ["tcp/bic", "bic", "TCP BIC"],
        "BIC as in Linux 2.6: S_max = 16, B = 4, 0.8 kept (Xu, Harfoush and Rhee 2004)",
    ),
    tcp(
        ["tcp/cubic", "cubic", "TCP CUBIC (2007)"],
        "CUBIC as in Linux 2.6.22: C = 0.4, beta = 0.2, no HyStart (Xu and Rhee 2005)",
    ),
    tcp(
        ["tcp/cubic-rfc9438", "cubic-rfc9438", "TCP CUBIC (RFC 9438)"],
        "CUBIC of today (RFC 9438) with HyStart (Ha and Rhee 2011)",
    ),
    tcp(
        ["tcp/highspeed", "highspeed", "HighSpeed TCP"],
        "growth and cut that depend on the window (RFC 3649)",
    ),
    tcp(
        ["tcp/htcp", "htcp", "H-TCP"],
        "growth that rises with the time since the last loss (Leith and Shorten 2004)",
    ),
    tcp(
        ["tcp/hybla", "hybla", "TCP Hybla"],
        "long paths grow as fast as one of 25 ms (Caini and Firrincieli 2004)",
    ),
    tcp(
        ["tcp/illinois", "illinois", "TCP Illinois"],
        "growth and cut that depend on the delay (Liu, Basar and Srikant 2008)",
    ),
    tcp(
        ["tcp/lp", "lp", "TCP-LP"],
        "low priority: yields when the one-way delay rises (Kuzmanovic and Knightly 2006)",
    ),
    tcp(
        ["tcp/scalable", "scalable", "Scalable TCP"],
        "growth of 1 % and cut of 1/8 of the window (Kelly 2003)",
    ),
    tcp(
        ["tcp/vegas", "vegas", "TCP Vegas"],
        "two to four packets in the queue (Brakmo and Peterson 1995)",
    ),
    tcp(
        ["tcp/veno", "veno", "TCP Veno"],
        "a smaller cut where the queue is short (Fu and Liew 2003)",
    ),
    tcp(
        ["tcp/westwood", "westwood", "TCP Westwood+"],
        "a loss leaves what the measured bandwidth fills (Grieco and Mascolo 2004)",
    ),
    tcp(
        ["tcp/yeah", "yeah", "YeAH-TCP"],
        "fast while the queue is short, NewReno otherwise (Baiocchi et al. 2007)",
    ),
    tcp(
        ["tcp/compound", "compound", "Compound TCP"],
        "NewReno's window and one that delay governs (Tan et al. 2006; Windows)",
    ),
    tcp(
        ["tcp/bbr", "bbr", "TCP BBR v1"],
        "paces at the measured bandwidth, one path's worth in flight (Cardwell et al. 2016)",
    ),
    Protocol {
        name: "udp",
        short: "udp",
        title: "UDP",
        about: "datagrams without congestion control (RFC 768)",
        family: Family::Udp,
        ccid: None,
    },
];

/// A row of the TCP family: name, short name and title; what it is.
const fn tcp([name, short, title]: [&'static str; 3], about: &'static str) -> Protocol {
    Protocol { name, short, title, about, family: Family::Tcp, ccid: None }
}

/// A row of the DCCP family: the same, with its CCID.
const fn dccp([name, short, title]: [&'static str; 3], about: &'static str, ccid: u8) -> Protocol {
    Protocol { name, short, title, about, family: Family::Dccp, ccid: Some(ccid) }
}

/// The protocol of this name in files; `None` if there is none.
pub fn find(name: &str) -> Option<&'static Protocol> {
    PROTOCOLS.iter().find(|p| p.name == name)
}

/// The title of a protocol, or the label itself if it is not a protocol.
pub fn title_of(label: &str) -> &str {
    find(label).map_or(label, |p| p.title)
}

impl FromNode for &'static Protocol {
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        let name = String::from_node(node, errors)?;
        let found = find(&name);
        if found.is_none() {
            let names: Vec<&str> = PROTOCOLS.iter().map(|p| p.name).collect();
            let error = Diagnostic::at(&node.span, format!("unknown protocol \"{name}\""));
            errors.push(error.hint(suggestion(&name, "protocols", &names)));
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
    fn no_two_protocols_share_a_name() {
        for (i, a) in PROTOCOLS.iter().enumerate() {
            for b in &PROTOCOLS[..i] {
                assert_ne!(a.name, b.name);
                assert_ne!(a.short, b.short);
            }
        }
    }

    /// A row must not omit the CCID: the flow would then run with another one.
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

    /// The fourteen protocols of the study of Bhatti and Bateman on stability.
    #[test]
    fn the_protocols_of_the_stability_study_exist() {
        let fourteen = "newreno bic cubic highspeed htcp hybla illinois lp scalable vegas veno \
                        westwood yeah compound";
        let found: Vec<&str> = fourteen
            .split(' ')
            .filter(|short| find(&format!("tcp/{short}")).is_some_and(|p| p.short == *short))
            .collect();
        assert_eq!(found.len(), 14, "{found:?}");
    }
}
