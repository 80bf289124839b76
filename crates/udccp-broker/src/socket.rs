//! A program's socket in the broker: its state, its options, and the task that lives with it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rustix::io::Errno;
use tokio::sync::Notify;
use udccp::{Address, Connection, Endpoint, Listener, ServiceCode};
use udccp_preload::protocol::*;

use crate::broker::Broker;
use crate::options::{self, Around, SocketOptions, Value};
use crate::pair::{self, Pair};
use crate::requests::errno_of;
use crate::settings::{Settings, Transport};
use crate::{address, errno, flow, ports};

/// What a request leaves to the socket's task.
#[derive(Debug)]
enum Command {
    Connect(SocketAddr),
    Listen(Arc<Listener>),
}

#[derive(Debug)]
struct Inner {
    state: u32,
    options: SocketOptions,
    bound: Option<SocketAddr>,
    error: Option<Errno>,
    connection: Option<Arc<Connection>>,
    is_server: bool,
    reads_no_more: bool,
    listener: Option<(Arc<Listener>, SocketAddr)>,
    command: Option<Command>,
}

/// A program's socket.
#[derive(Debug)]
pub(crate) struct Socket {
    broker: Arc<Broker>,
    cookie: u64,
    inode: u64,
    slot: usize,
    is_v6: bool,
    settings: Settings,
    inner: Mutex<Inner>,
    changed: Notify,
}

impl Socket {
    /// A new socket with the options of another one, and the program's end of it.
    pub(crate) fn open(
        broker: &Arc<Broker>,
        is_v6: bool,
        settings: Settings,
        like: Option<&Self>,
    ) -> Result<(Arc<Self>, OwnedFd), Errno> {
        let options = like.map_or_else(
            || SocketOptions::new(settings.tx_qlen),
            |other| other.inner().options.clone(),
        );
        let (socket, pair, programs) = Self::make(broker, is_v6, settings, options)?;
        tokio::spawn(Arc::clone(&socket).live(pair));
        Ok((socket, programs))
    }

    fn make(
        broker: &Arc<Broker>,
        is_v6: bool,
        settings: Settings,
        options: SocketOptions,
    ) -> Result<(Arc<Self>, Pair, OwnedFd), Errno> {
        let (pair, programs) = Pair::open(options.queues().0).map_err(errno_of)?;
        pair.set_queue_bytes(options.recv_buffer() / 2);
        let cookie = rustix::net::sockopt::socket_cookie(&programs)?;
        let inode = rustix::fs::fstat(&programs)?.st_ino;
        let slot = broker.region.take().or_else(|| {
            broker.sweep();
            broker.region.take()
        });
        let slot = slot.ok_or(Errno::NFILE)?;
        let inner = Inner {
            state: STATE_CLOSED,
            options,
            bound: None,
            error: None,
            connection: None,
            is_server: false,
            reads_no_more: false,
            listener: None,
            command: None,
        };
        let socket = Arc::new(Self {
            broker: Arc::clone(broker),
            cookie,
            inode,
            slot,
            is_v6,
            settings,
            inner: Mutex::new(inner),
            changed: Notify::new(),
        });
        socket.publish(SLOT_V6_AT, is_v6.into());
        socket.publish(SLOT_FAULTS_AT, settings.faults);
        socket.publish(SLOT_MPS_AT, 536);
        socket.publish_queue();
        socket.publish_local(SocketAddr::new(socket.any_ip(), 0));
        broker.region.set_cookie(slot, cookie);
        broker.add(&socket);
        Ok((socket, pair, programs))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("never poisoned")
    }

    /// The kernel's number of the program's end.
    pub(crate) const fn cookie(&self) -> u64 {
        self.cookie
    }

    /// The inode of the program's end.
    pub(crate) const fn inode(&self) -> u64 {
        self.inode
    }

    /// Its slot in the region.
    pub(crate) const fn slot(&self) -> usize {
        self.slot
    }

    /// Whether nothing will happen to it any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.inner().state == STATE_ENDED
    }

    /// The UDP address of the endpoint it listens at.
    pub(crate) fn listens_at(&self) -> Option<SocketAddr> {
        self.inner().listener.as_ref().map(|(_, at)| *at)
    }

    /// Whether the queue policy has priorities.
    pub(crate) fn has_priorities(&self) -> bool {
        self.inner().options.has_priorities()
    }

    /// How many messages wait in the connection itself.
    pub(crate) fn queued_messages(&self) -> usize {
        self.inner().options.queues().1
    }

    /// What the broker shares.
    pub(crate) fn broker(&self) -> &Arc<Broker> {
        &self.broker
    }

    /// SO_LINGER, if it is on, in seconds.
    pub(crate) fn linger(&self) -> Option<u64> {
        self.inner().options.linger()
    }

    pub(crate) fn publish(&self, at: usize, value: u32) {
        self.broker.region.set(self.slot, at, value);
    }

    fn publish_local(&self, local: SocketAddr) {
        let bytes = address::write(address::plain(local), self.is_v6);
        self.broker.region.set_address(self.slot, SLOT_LOCAL_AT, &bytes);
    }

    /// Publishes what sending has to know of the queue.
    fn publish_queue(&self) {
        let (has_priorities, frames) = {
            let inner = self.inner();
            (inner.options.has_priorities(), inner.options.queues().0)
        };
        self.publish(SLOT_PRIO_AT, has_priorities.into());
        self.publish(SLOT_FRAMES_AT, frames as u32);
    }

    fn set_state(&self, state: u32) {
        self.inner().state = state;
        self.publish(SLOT_STATE_AT, state);
    }

    /// Has an error wait for the program.
    fn set_error(&self, error: Option<Errno>) {
        self.inner().error = error;
        self.publish(SLOT_ERROR_AT, error.map_or(0, |e| e.raw_os_error().unsigned_abs()));
    }

    const fn any_ip(&self) -> IpAddr {
        if self.is_v6 {
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        } else {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        }
    }

    /// Takes the pending error; 0 where there is none.
    pub(crate) fn take_error(&self) -> i32 {
        let error = self.inner().error.take();
        self.publish(SLOT_ERROR_AT, 0);
        error.map_or(0, Errno::raw_os_error)
    }

    /// `bind`.
    pub(crate) fn bind(&self, bytes: &[u8]) -> Result<(), Errno> {
        let local = address::plain(address::read_to_bind(bytes, self.is_v6)?);
        ports::may_bind(local)?;
        let (is_free, is_shared) = {
            let inner = self.inner();
            (inner.state == STATE_CLOSED && inner.bound.is_none(), inner.options.shares_address())
        };
        if !is_free {
            return Err(Errno::INVAL);
        }
        let mut ports = self.broker.ports.lock().expect("never poisoned");
        let local = ports.bind(self.cookie, local, is_shared)?;
        self.inner().bound = Some(local);
        self.publish_local(local);
        Ok(())
    }

    fn bind_if_unbound(&self) -> Result<SocketAddr, Errno> {
        if let Some(local) = self.inner().bound {
            return Ok(local);
        }
        self.bind(&address::write(SocketAddr::new(self.any_ip(), 0), self.is_v6))?;
        self.inner().bound.ok_or(Errno::INVAL)
    }

    /// `listen`.
    pub(crate) fn listen(&self, backlog: i32) -> Result<(), Errno> {
        let state = self.inner().state;
        if !options::may_listen(state) || self.inner().error.is_some() {
            return Err(Errno::INVAL);
        }
        if state == STATE_LISTENING {
            return Ok(());
        }
        let local = self.bind_if_unbound()?;
        let refused = |e: udccp::Error| errno::of(&e).unwrap_or(Errno::IO);
        let device = self.inner().options.device();
        let endpoint = self.broker.gate(self.settings.transport, local, device).map_err(refused)?;
        let (services, options) = {
            let inner = self.inner();
            (inner.options.service_codes(), inner.options.connection())
        };
        let options = options.backlog(usize::try_from(backlog).unwrap_or(0).clamp(1, 4096));
        let listener = endpoint.listen(local.port(), services, &options).map_err(refused)?;
        let listener = Arc::new(listener);
        self.inner().listener = Some((Arc::clone(&listener), endpoint.local_addr()));
        self.set_state(STATE_LISTENING);
        self.command(Command::Listen(listener));
        Ok(())
    }

    /// `connect`: EINPROGRESS where it goes on.
    pub(crate) fn connect(&self, bytes: &[u8]) -> Errno {
        let state = self.inner().state;
        if let Some(e) = options::connect_refusal(state) {
            return e;
        }
        let to = match address::read(bytes, self.is_v6) {
            Ok(to) => to,
            Err(e) => return self.refuse(state, e),
        };
        let is_mapped = address::plain(to) != to;
        let mut to = address::plain(to);
        if to.ip().is_unspecified() {
            // As Linux: this host.
            to.set_ip(match to.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        let is_broadcast = matches!(to.ip(), IpAddr::V4(ip) if ip.is_broadcast());
        let is_v6_only = is_mapped && self.inner().options.is_v6_only();
        if to.ip().is_multicast() || is_broadcast || is_v6_only {
            return self.refuse(state, Errno::NETUNREACH);
        }
        if to.port() == 0 {
            return self.refuse(state, Errno::CONNREFUSED);
        }
        let (from, is_chosen) = {
            let inner = self.inner();
            (inner.bound, inner.options.device().is_some())
        };
        if !is_chosen && let Err(e) = address::route(from, to) {
            return self.refuse(state, e);
        }
        self.set_error(None);
        self.set_state(STATE_CONNECTING);
        self.command(Command::Connect(to));
        Errno::INPROGRESS
    }

    /// A `connect` that cannot begin.
    fn refuse(&self, state: u32, e: Errno) -> Errno {
        if state == STATE_CLOSED {
            self.unplug();
        }
        e
    }

    /// Makes the program's end writable again, which it plugged for a call that did not succeed.
    pub(crate) fn unplug(&self) {
        self.changed.notify_one();
    }

    fn command(&self, command: Command) {
        self.inner().command = Some(command);
        self.changed.notify_one();
    }

    fn with_around<T>(&self, run: impl FnOnce(&mut SocketOptions, &Around<'_>) -> T) -> T {
        let mut inner = self.inner();
        let connection = inner.connection.clone();
        let around = Around {
            state: inner.state,
            is_server: inner.is_server,
            is_bound: inner.bound.is_some(),
            connection: connection.as_deref(),
        };
        run(&mut inner.options, &around)
    }

    /// `getsockopt`.
    pub(crate) fn option(&self, level: i32, name: i32, room: usize) -> Result<Value, Errno> {
        self.with_around(|options, around| options.get(level, name, room, around))
    }

    /// `setsockopt`: the send buffer that the program's end needs now, if it is another.
    pub(crate) fn set_option(
        &self,
        level: i32,
        name: i32,
        bytes: &[u8],
    ) -> Result<Option<usize>, Errno> {
        let (before, after) = self.with_around(|options, around| {
            let before = options.queues();
            options.set(level, name, bytes, around)?;
            if let Some(connection) = around.connection {
                options.apply(level, name, connection);
            }
            Ok::<_, Errno>((before, options.queues()))
        })?;
        self.publish_queue();
        let (services, listener) = {
            let inner = self.inner();
            (inner.options.service_codes(), inner.listener.clone())
        };
        if let Some((listener, _)) = listener {
            listener.set_services(services).map_err(|_| Errno::INVAL)?;
        }
        if before.0 == after.0 {
            Ok(None)
        } else {
            pair::buffer_for(after.0).map(Some).map_err(errno_of)
        }
    }

    /// Reads no more.
    pub(crate) fn shutdown_read(&self) -> Result<(), Errno> {
        let mut inner = self.inner();
        inner.reads_no_more = true;
        if let Some(connection) = &inner.connection {
            connection.shutdown_read();
        }
        Ok(())
    }

    /// Whether the program has shut down reading.
    pub(crate) fn reads_no_more(&self) -> bool {
        self.inner().reads_no_more
    }

    /// Bytes that have not left yet.
    pub(crate) fn unsent_bytes(&self) -> usize {
        let inner = self.inner();
        inner.connection.as_ref().and_then(|c| c.stats()).map_or(0, |s| s.send_queue_bytes)
    }

    /// The socket's life, from its opening until nobody has it open any more.
    async fn live(self: Arc<Self>, pair: Pair) {
        loop {
            tokio::select! {
                () = pair.hung_up() => break,
                () = self.changed.notified() => {}
            }
            let command = self.inner().command.take();
            match command {
                None => pair.drain(),
                Some(Command::Listen(listener)) => {
                    tokio::select! {
                        () = pair.hung_up() => {}
                        () = self.serve(&listener, &pair) => {}
                    }
                    break;
                }
                Some(Command::Connect(to)) => {
                    let connected = tokio::select! {
                        () = pair.hung_up() => break,
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
            let below = inner.options.below(to.is_ipv6(), is_raw);
            (inner.options.connection(), service, inner.bound, below)
        };
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

    /// Passes each new connection to the program through the listener's pair.
    async fn serve(&self, listener: &Listener, pair: &Pair) {
        let only = self.inner().bound.map(|b| b.ip()).filter(|ip| !ip.is_unspecified());
        while let Ok(connection) = listener.accept().await {
            let peer = address::plain(connection.peer_addr().udp).ip();
            let local = address::plain(connection.local_addr().udp).ip();
            let is_mine = only.is_none_or(|ip| ip == local || local.is_unspecified());
            let is_family = if self.is_v6 {
                peer.is_ipv6() || !self.inner().options.is_v6_only()
            } else {
                peer.is_ipv4()
            };
            if !is_mine || !is_family {
                connection.abort();
                continue;
            }
            if let Err(e) = self.hand_over(connection, pair).await {
                tracing::warn!("an accepted connection is lost: {e}");
            }
        }
    }

    async fn hand_over(&self, connection: Connection, pair: &Pair) -> Result<(), Errno> {
        let options = self.inner().options.clone();
        let (child, own, programs) = Self::make(&self.broker, self.is_v6, self.settings, options)?;
        {
            let mut inner = child.inner();
            inner.is_server = true;
            inner.options.set_service(connection.service_code().0);
            inner.bound = self.inner().bound;
        }
        // Before the program has it, so that its first calls find it connected.
        child.show(&connection);
        let slot = (child.slot as i32).to_ne_bytes();
        tokio::spawn(Arc::clone(&child).carry(connection, own));
        pair.send_descriptor(&slot, &programs).await.map_err(errno_of)
    }

    /// Publishes what an open connection is.
    fn show(&self, connection: &Connection) {
        let name = |address: Address| SocketAddr::new(address.ip(), address.port);
        let mut local = name(connection.local_addr());
        if let Some(bound) = self.inner().bound.filter(|b| !b.ip().is_unspecified()) {
            local.set_ip(bound.ip());
        }
        self.publish_local(local);
        let peer = address::write(address::plain(name(connection.peer_addr())), self.is_v6);
        self.broker.region.set_address(self.slot, SLOT_PEER_AT, &peer);
        self.publish(SLOT_MPS_AT, connection.max_message_size() as u32);
        self.set_state(STATE_OPEN);
    }

    /// Carries messages until either side ends it.
    async fn carry(self: Arc<Self>, connection: Connection, pair: Pair) {
        self.show(&connection);
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
        // The program must know why before its end hangs up.
        self.end(error);
        drop(pair);
        self.finish(&connection, &ending).await;
        self.broker.count_closing(false);
    }

    async fn finish(&self, connection: &Connection, ending: &flow::Ending) {
        /// Longer than a close takes, whatever the peer does.
        const LIMIT: Duration = Duration::from_secs(60);
        let drops = self.settings.faults & FAULT_CLOSE_DROPS != 0 && self.linger().is_none();
        match ending {
            flow::Ending::ProgramLeftUnread => connection.abort(),
            flow::Ending::Program if drops => connection.abort(),
            _ => {
                let _ = tokio::time::timeout(LIMIT, connection.close()).await;
            }
        }
    }

    /// Nothing happens to it any more.
    fn end(&self, error: Option<Errno>) {
        self.broker.ports.lock().expect("never poisoned").release(self.cookie);
        if error.is_some() {
            self.set_error(error);
        }
        {
            let mut inner = self.inner();
            inner.listener = None;
            inner.bound = None;
        }
        self.set_state(STATE_ENDED);
    }
}
