//! UDP: datagrams as they come.

use core::net::SocketAddr;

use udccp_sim::PairAddresses;
use udccp_tcp::{UdpSender, UdpSink};

use super::{CLIENT_PORT, Ends, SERVER_PORT};
use crate::schema::Flow;

pub(super) fn build(flow: &Flow, at: PairAddresses) -> Ends {
    let client = SocketAddr::new(at.sender, CLIENT_PORT);
    let server = SocketAddr::new(at.receiver, SERVER_PORT);
    let payload = flow.packet.bytes().saturating_sub(28) as usize;
    Ends {
        sender: Box::new(UdpSender::new(client, server, payload)),
        receiver: Box::new(UdpSink::new(server, client)),
    }
}
