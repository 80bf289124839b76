//! Quantities of scenarios: queue limits, numbers of packets, percentages, windows.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use udccp_base::{DataRate, DataSize, Duration};

use crate::document::from_text;

/// The limit of a queue: `"1.0 bdp"`, `"1.0 bdp bytes"`, `"0.5 bdp + 128 packets"`,
/// `"100 packets"`, `"64 kB"` or `"unlimited"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// A multiple of the path's bandwidth-delay product, in whole packets of 1500 bytes.
    Bdp(f64),
    /// The same in bytes, for a queue that counts bytes.
    BdpBytes(f64),
    /// The first plus this many packets, as if a queue of that length feeds a device.
    BdpAndPackets(f64, u32),
    /// A number of packets.
    Packets(u32),
    /// A number of bytes.
    Bytes(DataSize),
    /// No limit.
    Unlimited,
}

/// The size of an IP packet, in bytes, in which a bandwidth-delay product is counted.
pub const BDP_PACKET_BYTES: u64 = 1500;

impl Limit {
    /// The limit on a path with this rate and round-trip time: packets, bytes, or none.
    pub fn resolve(self, rate: DataRate, rtt: Duration) -> udccp_link::QueueLimit {
        use udccp_link::QueueLimit;
        let bytes = |factor: f64| rate.bytes_in(rtt).bytes() as f64 * factor;
        let packets = |factor: f64| (bytes(factor) / BDP_PACKET_BYTES as f64) as u32;
        match self {
            Self::Bdp(factor) => QueueLimit::Packets(packets(factor)),
            Self::BdpAndPackets(factor, more) => {
                QueueLimit::Packets(packets(factor).saturating_add(more))
            }
            Self::BdpBytes(factor) => QueueLimit::Bytes(bytes(factor) as u64),
            Self::Packets(n) => QueueLimit::Packets(n),
            Self::Bytes(size) => QueueLimit::Bytes(size.bytes()),
            Self::Unlimited => QueueLimit::Unlimited,
        }
    }
}

/// A number of packets: `"100 packets"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packets(pub u32);

/// A percentage: `"1.5 %"`, 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percent(pub f64);

/// An initial congestion window: `"rfc3390"`, `"rfc6928"` or `"3 packets"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartWindow(pub udccp_cc::InitialWindow);

impl StartWindow {
    /// Whether no packet fits.
    pub(super) const fn is_empty(self) -> bool {
        matches!(self.0, udccp_cc::InitialWindow::Packets(0))
    }
}

/// A Service Code: `"SC:fdpz"`, `"SC=1717858426"` or `"SC=x6664707A"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service(pub udccp_wire::ServiceCode);

/// Splits `"1.5 bdp"` into its number and its unit.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let (number, unit) = text.trim().split_once(' ')?;
    let number: f64 = number.parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some((number, unit.trim()))
}

fn whole(number: f64) -> Option<u32> {
    (number.fract() == 0.0 && number <= f64::from(u32::MAX)).then_some(number as u32)
}

impl FromStr for Limit {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        if s.trim() == "unlimited" {
            return Ok(Self::Unlimited);
        }
        // The largest number of packets also limits the multiples: beyond it all would be equal.
        let parts = s.split('+').filter_map(number_and_unit);
        let is_count = |unit: &str| matches!(unit, "bdp" | "bdp bytes" | "packet" | "packets");
        let mut counts = parts.filter(|(_, unit)| is_count(unit));
        if counts.any(|(n, _)| n > f64::from(u32::MAX)) {
            let most = u32::MAX;
            return Err(format!(
                "\"{s}\" is too large for a queue limit; write at most {most} packets or {most} \
                 bdp, or \"unlimited\""
            ));
        }
        let packets = |n| whole(n).map(Self::Packets);
        let and_packets = |s: &str| {
            let (bdp, more) = s.split_once('+')?;
            let (n, _) = number_and_unit(bdp).filter(|(_, unit)| *unit == "bdp")?;
            Some(Self::BdpAndPackets(n, more.parse::<Packets>().ok()?.0))
        };
        let limit = match number_and_unit(s) {
            Some((n, "bdp")) => Some(Self::Bdp(n)),
            Some((n, "bdp bytes")) => Some(Self::BdpBytes(n)),
            Some((n, "packet" | "packets")) => packets(n),
            _ => and_packets(s).or_else(|| s.parse().ok().map(Self::Bytes)),
        };
        limit.ok_or_else(|| {
            format!(
                "\"{s}\" is not a queue limit; write for example \"1.0 bdp\", \"1.0 bdp bytes\", \
                 \"0.5 bdp + 128 packets\", \"100 packets\", \"64 kB\" or \"unlimited\""
            )
        })
    }
}

impl FromStr for Packets {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        match number_and_unit(s) {
            Some((n, "packet" | "packets")) => whole(n).map(Self),
            _ => None,
        }
        .ok_or_else(|| format!("\"{s}\" is not a number of packets; write \"100 packets\""))
    }
}

impl FromStr for Percent {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        match number_and_unit(s) {
            Some((n, "%")) if n <= 100.0 => Ok(Self(n)),
            _ => {
                Err(format!("\"{s}\" is not a percentage; write for example \"1.5 %\" (0 to 100)"))
            }
        }
    }
}

impl FromStr for StartWindow {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        use udccp_cc::InitialWindow;
        let window = match s {
            "rfc3390" => Some(InitialWindow::Rfc3390),
            "rfc6928" => Some(InitialWindow::Rfc6928),
            _ => s.parse::<Packets>().ok().map(|p| InitialWindow::Packets(p.0)),
        };
        window.map(Self).ok_or_else(|| {
            format!(
                "\"{s}\" is not an initial window; write \"rfc3390\", \"rfc6928\" or \"3 packets\""
            )
        })
    }
}

impl FromStr for Service {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        s.parse().map(Self).map_err(|e| format!("\"{s}\" is not a service code: {e}"))
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bdp(x) => write!(f, "{x} bdp"),
            Self::BdpBytes(x) => write!(f, "{x} bdp bytes"),
            Self::BdpAndPackets(x, packets) => write!(f, "{x} bdp + {packets} packets"),
            Self::Packets(n) => write!(f, "{n} packets"),
            Self::Bytes(size) => size.fmt(f),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

impl fmt::Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} packets", self.0)
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.0)
    }
}

impl fmt::Display for StartWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use udccp_cc::InitialWindow;
        match self.0 {
            InitialWindow::Rfc3390 => f.write_str("rfc3390"),
            InitialWindow::Rfc6928 => f.write_str("rfc6928"),
            InitialWindow::Packets(n) => write!(f, "{n} packets"),
        }
    }
}

macro_rules! as_text {
    ($type:ty, $form:expr) => {
        from_text!($type, $form);

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
as_text!(Limit, "a queue limit such as \"1.0 bdp\" or \"100 packets\"");
as_text!(Packets, "a number of packets such as \"100 packets\"");
as_text!(Percent, "a percentage such as \"1.5 %\"");
as_text!(Service, "a service code such as \"SC:fdpz\"");
as_text!(StartWindow, "an initial window such as \"rfc3390\" or \"3 packets\"");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bdp_is_counted_in_whole_packets_of_1500_bytes() {
        let limit: Limit = "1.0 bdp".parse().unwrap();
        let path = (DataRate::from_mbps(100), Duration::from_millis(25));
        assert_eq!(limit.resolve(path.0, path.1), udccp_link::QueueLimit::Packets(208));
        let limit: Limit = "0.25 bdp bytes".parse().unwrap();
        assert_eq!(limit.resolve(path.0, path.1), udccp_link::QueueLimit::Bytes(78_125));
        let limit: Limit = "0.5 bdp + 128 packets".parse().unwrap();
        assert_eq!(limit.resolve(path.0, path.1), udccp_link::QueueLimit::Packets(232));
    }

    #[test]
    fn a_limit_beyond_counting_is_too_large() {
        for text in [
            "4294967296 packets",
            "4294967296 bdp",
            "1e30 bdp",
            "1e30 bdp bytes",
            "1e30 bdp + 1 packet",
            "1 bdp + 1e30 packets",
        ] {
            let error = text.parse::<Limit>().unwrap_err();
            assert!(error.starts_with(&format!("\"{text}\" is too large")), "{error}");
            assert!(error.contains("; write at most 4294967295 packets"), "{error}");
        }
        for text in ["4294967295 packets", "4294967295 bdp", "1 bdp + 4294967295 packets"] {
            assert!(text.parse::<Limit>().is_ok(), "{text}");
        }
    }

    #[test]
    fn quantities_print_as_they_are_written() {
        for text in [
            "0.5 bdp",
            "0.5 bdp bytes",
            "0.5 bdp + 128 packets",
            "100 packets",
            "64 kB",
            "unlimited",
        ] {
            assert_eq!(text.parse::<Limit>().unwrap().to_string(), text);
        }
        for text in ["rfc3390", "rfc6928", "3 packets"] {
            assert_eq!(text.parse::<StartWindow>().unwrap().to_string(), text);
        }
        assert_eq!("SC=x6664707A".parse::<Service>().unwrap().to_string(), "SC:fdpz");
        assert!("fdpz".parse::<Service>().unwrap_err().contains("SC:abcd"));
        assert_eq!("2.5 %".parse::<Percent>().unwrap(), Percent(2.5));
    }

    #[test]
    fn errors_for_wrong_quantities_show_the_right_form() {
        assert!("1 BDP".parse::<Limit>().unwrap_err().contains("1.0 bdp"));
        for text in ["-1 bdp", "1 bdp +", "1 bdp + 64 kB", "1 bdp + 1.5 packets"] {
            assert!(text.parse::<Limit>().is_err(), "{text}");
        }
        assert!("101 %".parse::<Percent>().is_err());
        assert!("1.5 packets".parse::<Packets>().is_err());
    }
}
