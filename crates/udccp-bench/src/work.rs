//! Lists the loads and the peers that support them.

use anyhow::{Result, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::meter::Measured;
use crate::peers::{Peer, dccp, dccp_blocking, floor, quic, tcp, udp};
use crate::turn::Turn;

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

impl Work {
    /// Measures a peer with this load.
    ///
    /// # Errors
    /// The peer does not support the load, or an error of its sockets.
    pub(crate) fn measure(self, peer: Peer, turn: &Turn) -> Result<Measured> {
        match (self, peer) {
            (Self::Bulk, Peer::Floor) => floor::bulk(turn),
            (Self::Bulk, Peer::Tcp) => tcp::bulk(turn),
            (Self::Bulk, Peer::Udp) => udp::bulk(turn),
            (Self::Bulk, Peer::Quinn) => quic::bulk(turn),
            (Self::Bulk, Peer::UdccpBlocking) => dccp_blocking::bulk(turn),
            (Self::Bulk, udccp) if udccp.is_udccp() => dccp::bulk(turn, udccp),
            (Self::Ping, Peer::Udp) => udp::ping(turn),
            (Self::Ping, Peer::UdpTokio) => udp::ping_tokio(turn),
            (Self::Ping, Peer::Quinn) => quic::ping(turn),
            (Self::Ping, Peer::Udccp) => dccp::ping(turn),
            (Self::Ping, Peer::UdccpBlocking) => dccp_blocking::ping(turn),
            (Self::Questions, Peer::Tcp) => tcp::questions(turn),
            (Self::Questions, Peer::Quinn) => quic::questions(turn),
            (Self::Questions, Peer::Udccp) => dccp::questions(turn),
            (Self::Handshakes, Peer::Tcp) => tcp::handshakes(turn),
            (Self::Handshakes, Peer::Quinn) => quic::handshakes(turn),
            (Self::Handshakes, Peer::Udccp) => dccp::handshakes(turn),
            (Self::Many, Peer::Quinn) => quic::many(turn),
            (Self::Many, Peer::Udccp) => dccp::many(turn),
            (Self::Idle, Peer::Quinn) => quic::idle(turn),
            (Self::Idle, Peer::Udccp) => dccp::idle(turn),
            _ => bail!("{self:?} is not measured of {peer:?}"),
        }
    }
}
