//! The task of a socket: waits for the program's calls, connects or listens, carries messages, and
//! ends.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use udccp::{Address, Connection, Endpoint, ServiceCode};
use udccp_preload::protocol::*;

use super::{Command, Listening, Socket};
use crate::pair::Pair;
use crate::settings::Transport;
use crate::{address, errno, flow};

impl Socket {
    /// Runs from the opening of the socket until no program has it open.
    pub(super) async fn run(self: Arc<Self>, pair: Pair) {
        loop {
            tokio::select! {
                () = pair.wait_hang_up() => break,
                () = self.changed.notified() => {}
            }
            let command = self.inner().command.take();
            match command {
                None => pair.drain(),
                Some(Command::Listen(listening)) => {
                    tokio::select! {
                        () = pair.wait_hang_up() => {}
                        () = self.serve(&listening, &pair) => {}
                    }
                    break;
                }
                Some(Command::Connect(to)) => {
                    let connected = tokio::select! {
                        biased;
                        () = pair.wait_hang_up() => break,
                        () = self.wait_handshake_aborted() => {
                            pair.drain();
                            // The program's next call may have arrived already.
                            self.changed.notify_one();
                            continue;
                        }
                        connected = self.open_connection(to) => connected,
                    };
                    match connected {
                        Ok(connection) => {
                            self.carry(connection, pair).await;
                            return;
                        }
                        Err(e) => {
                            self.set_error(Some(errno::of(&e).unwrap_or(Errno::CONNREFUSED)));
                            self.set_state(STATE_CLOSED);
                            pair.drain();
                        }
                    }
                }
            }
        }
        self.end(None);
    }

    async fn open_connection(&self, to: SocketAddr) -> Result<Connection, udccp::Error> {
        let (udp_port, is_raw) = match self.settings.transport {
            Transport::Udp(port) => (port, false),
            Transport::SamePort => (to.port(), false),
            Transport::Raw => (0, true),
        };
        let (options, service, bound, below) = {
            let inner = self.inner();
            let service = ServiceCode(inner.options.services()[0]);
            let below = inner.options.endpoint_options(to.is_ipv6(), is_raw);
            (inner.options.connection(is_raw), service, inner.bound, below)
        };
        if is_raw {
            // If the host cannot answer, the caller's time limit ends the attempt.
            let _ = self.broker.endpoints.lock().expect("never poisoned").answer_for_host(to.ip());
        }
        let peer = Address::new(to.ip(), to.port()).over_udp_port(udp_port);
        let any: IpAddr = match to.ip() {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let ip = bound.map(|b| b.ip()).filter(|ip| !ip.is_unspecified()).unwrap_or(any);
        let endpoint = Endpoint::bind_with((ip, 0).into(), &below)?;
        let options = match bound {
            Some(bound) => options.local_port(bound.port()),
            None => options,
        };
        endpoint.connect(peer, service, &options).await
    }

    /// Publishes the addresses and the state of an open connection.
    pub(super) fn publish_connection(&self, connection: &Connection) {
        let name = |address: Address| SocketAddr::new(address.ip(), address.port);
        let mut local = name(connection.local_addr());
        let (bound, sharing) = {
            let inner = self.inner();
            (inner.bound, inner.options.sharing())
        };
        if let Some(bound) = bound.filter(|b| !b.ip().is_unspecified()) {
            local.set_ip(bound.ip());
        }
        let mut ports = self.broker.ports.lock().expect("never poisoned");
        ports.connect(self.cookie, address::unmap_ipv4(local), sharing);
        drop(ports);
        self.publish_local(local);
        let peer = address::write(address::unmap_ipv4(name(connection.peer_addr())), self.is_v6);
        self.broker.region.set_address(self.slot, SLOT_PEER_AT, &peer);
        self.publish(SLOT_MPS_AT, connection.max_message_size() as u32);
        self.set_state(STATE_OPEN);
    }

    /// Carries messages until either side ends the connection.
    pub(super) async fn carry(self: Arc<Self>, connection: Connection, pair: Pair) {
        self.publish_connection(&connection);
        let connection = Arc::new(connection);
        {
            let mut inner = self.inner();
            inner.options.apply_all(&connection);
            inner.connection = Some(Arc::clone(&connection));
        }
        let ending = flow::carry(&self, &connection, &pair).await;
        self.broker.count_closing(true);
        let error = match &ending {
            flow::Ending::Peer(error) => error.as_ref().and_then(errno::of),
            flow::Ending::Program | flow::Ending::ProgramLeftUnread => None,
        };
        // The program must see the error before its end hangs up.
        self.end(error);
        drop(pair);
        self.finish(&connection, &ending).await;
        self.broker.count_closing(false);
    }

    async fn finish(&self, connection: &Connection, ending: &flow::Ending) {
        /// A close to a dead peer is retried for longer, but this process does not wait for that.
        const LIMIT: Duration = Duration::from_secs(60);
        let drops = self.settings.faults & FAULT_CLOSE_DROPS != 0 && self.linger().is_none();
        match ending {
            flow::Ending::ProgramLeftUnread => connection.abort(),
            flow::Ending::Program if drops => connection.abort(),
            _ => {
                let closed = async {
                    let _ = connection.close().await;
                    let _ = connection.closed().await;
                };
                let _ = tokio::time::timeout(LIMIT, closed).await;
            }
        }
    }

    /// Marks the socket as ended and releases its address.
    pub(super) fn end(&self, error: Option<Errno>) {
        self.broker.ports.lock().expect("never poisoned").release(self.cookie);
        if error.is_some() {
            self.set_error(error);
        }
        {
            let mut inner = self.inner();
            inner.listening = Listening::default();
            inner.bound = None;
            inner.accepted.drain(..).for_each(|connection| connection.abort());
        }
        self.set_state(STATE_ENDED);
    }
}
