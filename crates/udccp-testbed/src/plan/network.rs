//! Joins namespaces and gives them addresses and routes. Formatted as text, a step is the
//! equivalent command of the program `ip`.

use core::fmt;
use core::net::IpAddr;

use serde::{Deserialize, Serialize};

/// A connection between namespaces, or a device that must be created before them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Wire {
    /// A cable.
    Cable(WireEnd, WireEnd),
    /// A device whose queue shapes what arrives.
    Ifb { name: String, namespace: String },
}

/// One end of a cable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WireEnd {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) hardware: Option<[u8; 6]>,
    pub(crate) mtu: Option<u32>,
}

/// A configuration step inside a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum IpStep {
    /// Switches a device on; without `arp`, it does not resolve hardware addresses.
    Up { device: String, arp: bool },
    /// Gives a device an address with the full prefix length.
    Address { device: String, address: IpAddr },
    /// Adds a route to an address, or the IPv4 default route.
    Route { to: Option<IpAddr>, device: String, metrics: RouteMetrics },
}

/// Parameters of a route for TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RouteMetrics {
    pub(crate) least_rto_ms: Option<u32>,
    pub(crate) initial_window: Option<u32>,
    pub(crate) max_window: Option<u32>,
}

impl IpStep {
    pub(crate) fn up(device: &str, arp: bool) -> Self {
        Self::Up { device: device.to_owned(), arp }
    }
}

impl fmt::Display for WireEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} netns {}", self.name, self.namespace)?;
        if let Some([a, b, c, d, e, last]) = self.hardware {
            write!(f, " address {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{last:02x}")?;
        }
        if let Some(mtu) = self.mtu {
            write!(f, " mtu {mtu}")?;
        }
        f.write_str(" gso_max_segs 1")
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cable(one, other) => write!(f, "link add name {one} type veth peer name {other}"),
            Self::Ifb { name, namespace } => {
                write!(f, "link add name {name} netns {namespace} type ifb")
            }
        }
    }
}

impl fmt::Display for IpStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Up { device, arp: true } => write!(f, "link set dev {device} up"),
            Self::Up { device, arp: false } => write!(f, "link set dev {device} arp off up"),
            Self::Address { device, address } => write!(f, "address add {address}/32 dev {device}"),
            Self::Route { to: Some(to), device, metrics } => {
                write!(f, "route add {to}/32 dev {device}{metrics}")
            }
            Self::Route { to: None, device, metrics } => {
                write!(f, "route add default dev {device}{metrics}")
            }
        }
    }
}

impl fmt::Display for RouteMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(rto) = self.least_rto_ms {
            write!(f, " rto_min {rto}ms")?;
        }
        if let Some(window) = self.initial_window {
            write!(f, " initcwnd {window}")?;
        }
        if let Some(window) = self.max_window {
            write!(f, " cwnd lock {window}")?;
        }
        Ok(())
    }
}
