//! Lists the loads and the peers that support them.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::meter::Measured;
use crate::network::Network;
use crate::peers::{Peer, dccp, dccp_blocking, floor, quic, tcp, udp};

/// Bytes of a bulk message.
pub(crate) const BULK_BYTES: usize = 1200;
/// Messages sent at once in bulk.
pub(crate) const BULK_BATCH: usize = 128;
/// Bytes of a message for round trips.
pub(crate) const PING_BYTES: usize = 100;
/// Concurrent connections for the handshake load.
pub(crate) const HANDSHAKES_AT_ONCE: usize = 32;
/// Connections with a pending question at all times.
pub(crate) const QUESTIONS_AT_ONCE: usize = 100;
/// Bytes of a message for the load with many connections.
pub(crate) const MANY_BYTES: usize = 200;
/// Time for the last messages to arrive.
pub(crate) const SETTLE: Duration = Duration::from_millis(100);

/// A kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Work {
    /// Messages of 1,200 bytes as fast as possible.
    Bulk,
    /// A message of 100 bytes, sent back, repeatedly.
    Ping,
    /// The same on 100 connections at once.
    Questions,
    /// Connect, accept, close; 32 at once.
    Handshakes,
    /// Many connections with 100 messages of 200 bytes per second each.
    Many,
    /// Connections that do nothing.
    Idle,
}

/// A turn of one peer.
#[derive(Debug)]
pub(crate) struct Turn {
    /// The hosts.
    pub(crate) network: Network,
    /// Length in seconds.
    pub(crate) seconds: f64,
    /// Number of connections for loads with many.
    pub(crate) connections: usize,
}

impl Turn {
    /// Measures a peer with a load.
    ///
    /// # Errors
    /// The peer does not support the load, or an error of its sockets.
    pub(crate) fn measure(&self, work: Work, peer: Peer) -> Result<Measured> {
        match (work, peer) {
            (Work::Bulk, Peer::Floor) => floor::bulk(self),
            (Work::Bulk, Peer::Tcp) => tcp::bulk(self),
            (Work::Bulk, Peer::Udp) => udp::bulk(self),
            (Work::Bulk, Peer::Quinn) => quic::bulk(self),
            (Work::Bulk, Peer::UdccpBlocking) => dccp_blocking::bulk(self),
            (Work::Bulk, udccp) if udccp.is_udccp() => dccp::bulk(self, udccp),
            (Work::Ping, Peer::Udp) => udp::ping(self),
            (Work::Ping, Peer::UdpTokio) => udp::ping_tokio(self),
            (Work::Ping, Peer::Quinn) => quic::ping(self),
            (Work::Ping, Peer::Udccp) => dccp::ping(self),
            (Work::Ping, Peer::UdccpBlocking) => dccp_blocking::ping(self),
            (Work::Questions, Peer::Tcp) => tcp::questions(self),
            (Work::Questions, Peer::Quinn) => quic::questions(self),
            (Work::Questions, Peer::Udccp) => dccp::questions(self),
            (Work::Handshakes, Peer::Tcp) => tcp::handshakes(self),
            (Work::Handshakes, Peer::Quinn) => quic::handshakes(self),
            (Work::Handshakes, Peer::Udccp) => dccp::handshakes(self),
            (Work::Many, Peer::Quinn) => quic::many(self),
            (Work::Many, Peer::Udccp) => dccp::many(self),
            (Work::Idle, Peer::Quinn) => quic::idle(self),
            (Work::Idle, Peer::Udccp) => dccp::idle(self),
            _ => bail!("{work:?} is not measured of {peer:?}"),
        }
    }
}
