//! UDP: plain datagrams.

use core::net::SocketAddr;

use udccp_sim::PairAddresses;
use udccp_tcp::{UdpSender, UdpSink};

use super::{CLIENT_PORT, Ends, SERVER_PORT};

pub(super) fn build(at: PairAddresses) -> Ends {
    let client = SocketAddr::new(at.sender, CLIENT_PORT);
    let server = SocketAddr::new(at.receiver, SERVER_PORT);
    Ends {
        sender: Box::new(UdpSender::new(client, server)),
        receiver: Box::new(UdpSink::new(server, client)),
    }
}
