//! Runs the same loads on each of the peers.

pub(crate) mod dccp;
pub(crate) mod dccp_blocking;
pub(crate) mod floor;
pub(crate) mod pace;
pub(crate) mod quic;
pub(crate) mod tcp;
pub(crate) mod udp;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The programs that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Peer {
    /// UDP with segmentation offload, acknowledged once per batch.
    Floor,
    /// The kernel's TCP.
    Tcp,
    /// Plain UDP, one system call per datagram.
    Udp,
    /// The same in tokio.
    UdpTokio,
    /// The async sockets with CCID 2.
    Udccp,
    /// The blocking sockets with CCID 2.
    UdccpBlocking,
    /// The async sockets with CCID 3.
    UdccpCcid3,
    /// The async sockets with CUBIC.
    UdccpCubic,
    /// The async sockets with BBR.
    UdccpBbr,
    /// QUIC datagrams of quinn, encrypted.
    Quinn,
}

impl Peer {
    /// The label in tables.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Floor => "floor program: UDP in batches, acknowledged once a batch",
            Self::Tcp => "kernel TCP",
            Self::Udp => "plain UDP",
            Self::UdpTokio => "plain UDP in tokio",
            Self::Udccp => "**udccp**, async, CCID 2",
            Self::UdccpBlocking => "**udccp**, blocking, CCID 2",
            Self::UdccpCcid3 => "**udccp**, async, CCID 3",
            Self::UdccpCubic => "**udccp**, async, CUBIC",
            Self::UdccpBbr => "**udccp**, async, BBR",
            Self::Quinn => "quinn (QUIC with TLS)",
        }
    }

    /// Whether it uses udccp.
    pub(crate) fn is_udccp(self) -> bool {
        use Peer::{Udccp, UdccpBbr, UdccpBlocking, UdccpCcid3, UdccpCubic};
        matches!(self, Udccp | UdccpBlocking | UdccpCcid3 | UdccpCubic | UdccpBbr)
    }
}

/// A single-threaded runtime.
pub(crate) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
