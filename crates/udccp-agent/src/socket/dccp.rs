//! Our DCCP: the sockets of crate `udccp`, whose driver runs in a separate thread.

use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use udccp::ccid::CcidRegistry;
use udccp::{
    Address, Connection, ConnectionStats, Endpoint, EndpointOptions, Error, Listener, Options,
    Outgoing, ServiceCode, TryRecvError, TrySendError,
};
use udccp_base::{AppPort, DataSize, Instant, Message, Payload, Probe, SendOutcome};
use udccp_scenario::schema::DccpOptions;
use udccp_scenario::{SERVICE, dccp_config};

use super::stream::MARK;
use super::{Delivered, FlowSocket, Inbox, Interest, Listen, PAUSE, SHORT_PAUSE, ZEROS};
use crate::error::AgentError;
use crate::spec::DccpTransport;

/// Messages of a bulk application that may wait in the socket: as many as leave while the
/// application pauses.
const BULK_QUEUE: usize = 512;
/// Messages to read from a socket at once.
const READ: usize = 256;

/// Settings of the sockets.
pub(crate) struct DccpSettings {
    pub(crate) transport: DccpTransport,
    pub(crate) offload: bool,
    pub(crate) options: Options,
    pub(crate) service: ServiceCode,
    pub(crate) is_bulk: bool,
    /// Even bulk data are read at once, and room is filled at once.
    pub(crate) prompt: bool,
    pub(crate) tracks_messages: bool,
}

/// A UDP socket and the runtime that drives it.
pub(crate) struct DccpHost {
    runtime: Runtime,
    endpoint: Endpoint,
    settings: DccpSettings,
}

impl DccpSettings {
    /// Derives the settings from a flow. They equal those in simulation, except for what a real
    /// clock and a real path require.
    pub(crate) fn of(
        protocol: &str,
        packet_bytes: u64,
        flow: &DccpOptions,
        transport: DccpTransport,
        offload: bool,
        is_bulk: bool,
        tracks_messages: bool,
    ) -> Result<Self, AgentError> {
        let packet = DataSize::from_bytes(packet_bytes);
        let config = dccp_config(protocol, packet, flow).map_err(|why| AgentError::Spec { why })?;
        let mut options = Options::new();
        let real = options.protocol_config().clone();
        *options.protocol_config_mut() = config;
        let config = options.protocol_config_mut();
        config.ccid3.min_nofeedback_timeout = real.ccid3.min_nofeedback_timeout;
        config.ccid4.tfrc.min_nofeedback_timeout = real.ccid4.tfrc.min_nofeedback_timeout;
        if is_bulk && flow.send_queue.is_none() {
            config.send_queue_packets = BULK_QUEUE;
            config.send_queue_bytes = BULK_QUEUE * packet_bytes as usize;
        }
        // A pausing reader must not slow down the sender.
        config.recv_queue_packets = real.recv_queue_packets.max(8 * BULK_QUEUE);
        config.recv_queue_bytes = config.recv_queue_packets * packet_bytes as usize;
        let service = flow.service.map_or(SERVICE, |service| service.0);
        Ok(Self { transport, offload, options, service, is_bulk, prompt: false, tracks_messages })
    }
}

impl DccpHost {
    /// Binds an address.
    pub(crate) fn bind(
        settings: DccpSettings,
        local: IpAddr,
        port: u16,
    ) -> Result<Self, AgentError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|source| AgentError::Io { what: "cannot start a runtime", source })?;
        let options = EndpointOptions::new()
            .ccids(CcidRegistry::with_experiments())
            .offload(settings.offload)
            // Both ends of a run, and the path, end together.
            .close_at_exit(false);
        let entered = runtime.enter();
        let endpoint = match settings.transport {
            DccpTransport::UdpEncap { .. } => {
                Endpoint::bind_with(SocketAddr::new(local, port), &options)?
            }
            DccpTransport::Raw => {
                Endpoint::bind_with(SocketAddr::new(local, 0), &options.raw_ip(true))?
            }
        };
        drop(entered);
        Ok(Self { runtime, endpoint, settings })
    }
}

pub(crate) struct Dccp {
    host: Rc<DccpHost>,
    peer: Address,
    connecting: Option<JoinHandle<Result<Connection, Error>>>,
    connection: Option<Connection>,
    accepted: bool,
    reads: bool,
    is_full: bool,
    is_over: bool,
    inbox: Inbox,
    batch: Vec<Bytes>,
    probe: Probe,
    warnings: Vec<String>,
}

impl Dccp {
    /// The sender's end of a connection.
    pub(crate) fn sender(host: Rc<DccpHost>, remote: IpAddr, port: u16, reads: bool) -> Self {
        let peer = match host.settings.transport {
            DccpTransport::UdpEncap { port: udp } => Address::new(remote, port).over_udp_port(udp),
            DccpTransport::Raw => Address::raw(remote, port),
        };
        Self::new(host, peer, None, reads)
    }

    fn new(host: Rc<DccpHost>, peer: Address, connection: Option<Connection>, reads: bool) -> Self {
        Self {
            host,
            peer,
            connecting: None,
            accepted: connection.is_some(),
            connection,
            reads,
            is_full: false,
            is_over: false,
            inbox: Inbox::default(),
            batch: Vec::new(),
            probe: Probe::default(),
            warnings: Vec::new(),
        }
    }

    fn read(&mut self) {
        let Some(connection) = &self.connection else { return };
        loop {
            match connection.try_recv() {
                Ok(first) => self.batch.push(first),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Ended(e)) => {
                    if !matches!(e, Error::Closed) {
                        self.warnings.push(e.to_string());
                    }
                    self.is_over = true;
                    return;
                }
            }
            // One message has arrived; others that came with it are read without waiting.
            {
                let mut more = pin!(connection.recv_batch(&mut self.batch, READ));
                let _ = more.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            }
            for message in self.batch.drain(..) {
                self.inbox.bytes += message.len() as u64;
                if self.host.settings.tracks_messages {
                    self.inbox.marks.push_back(message.slice(..message.len().min(MARK)));
                }
            }
        }
    }
}

impl AppPort for Dccp {
    fn send(&mut self, now: Instant, message: Message) -> SendOutcome {
        let Some(connection) = self.connection.as_ref().filter(|_| !self.is_over) else {
            return match self.connecting {
                Some(_) => SendOutcome::Full(message),
                None => SendOutcome::Closed(message),
            };
        };
        let bytes = match &message.payload {
            Payload::Bytes(bytes) => bytes.clone(),
            Payload::Zeros(n) => Bytes::from_static(&ZEROS[..ZEROS.len().min(*n as usize)]),
        };
        let mut outgoing = Outgoing::new(bytes).priority(message.priority);
        if let Some(deadline) = message.deadline {
            outgoing = outgoing.lifetime(deadline.saturating_since(now).to_std());
        }
        match connection.try_send(outgoing) {
            Ok(()) => SendOutcome::Accepted,
            Err(TrySendError::Full(_)) => {
                self.is_full = true;
                SendOutcome::Full(message)
            }
            Err(TrySendError::Failed(e)) => {
                if !matches!(e, Error::MessageTooLarge { .. }) {
                    self.warnings.push(e.to_string());
                    self.is_over = true;
                }
                SendOutcome::Closed(message)
            }
        }
    }

    fn is_writable(&self) -> bool {
        self.connection.is_some() && !self.is_full && !self.is_over
    }

    fn close(&mut self, _now: Instant) {
        if let Some(connection) = &self.connection {
            // The first poll starts the close; the driver completes it.
            let mut close = pin!(connection.close());
            let _ = close.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        if let Some(connecting) = &self.connecting {
            connecting.abort();
        }
    }

    fn max_payload(&self) -> usize {
        // The connection does not exist yet, so assume IP, UDP and the longest generic header with
        // an acknowledgement number.
        let ip = if self.peer.ip().is_ipv4() { 20 } else { 40 };
        let guess =
            usize::from(self.host.settings.options.protocol_config().path_mtu) - ip - 8 - 24;
        self.connection.as_ref().map_or(guess, Connection::max_message_size)
    }
}

impl FlowSocket for Dccp {
    fn open(&mut self, _now: Instant) -> Result<(), AgentError> {
        if !self.accepted {
            let (endpoint, peer) = (self.host.endpoint.clone(), self.peer);
            let (service, options) =
                (self.host.settings.service, self.host.settings.options.clone());
            let connect = async move { endpoint.connect(peer, service, &options).await };
            self.connecting = Some(self.host.runtime.spawn(connect));
        }
        Ok(())
    }

    fn exchange(&mut self, _now: Instant) -> Result<(), AgentError> {
        if let Some(connecting) = self.connecting.take_if(|task| task.is_finished()) {
            let joined = self.host.runtime.block_on(connecting);
            let connection = joined.map_err(|_| AgentError::Dccp(Error::Closed))??;
            self.connection = Some(connection);
        }
        self.is_full = false;
        if self.reads && !self.is_over {
            self.read();
        }
        Ok(())
    }

    fn poll_delivered(&mut self) -> Option<Delivered> {
        self.inbox.take()
    }

    fn is_closed(&self) -> bool {
        self.is_over
    }

    fn probe(&mut self) -> Probe {
        if self.accepted {
            return self.probe;
        }
        if let Some(stats) = self.connection.as_ref().and_then(Connection::stats) {
            self.probe = probe_of(&stats);
        }
        self.probe
    }

    fn interest(&self) -> Interest<'_> {
        let idle = self.connection.is_none() && self.connecting.is_none();
        if idle || self.is_over || !(self.reads || self.is_full || self.connecting.is_some()) {
            return Interest::default();
        }
        let settings = &self.host.settings;
        let may_wait = settings.is_bulk && !settings.prompt && self.connecting.is_none();
        Interest { socket: None, within: Some(if may_wait { PAUSE } else { SHORT_PAUSE }) }
    }

    fn port(&self) -> u16 {
        match (&self.connection, self.accepted) {
            (Some(connection), false) => connection.local_addr().port,
            (Some(connection), true) => connection.peer_addr().port,
            (None, _) => 0,
        }
    }

    fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }
}

pub(crate) struct DccpListener {
    host: Rc<DccpHost>,
    listener: Listener,
}

impl DccpListener {
    pub(crate) fn bind(
        settings: DccpSettings,
        local: IpAddr,
        port: u16,
    ) -> Result<Self, AgentError> {
        let udp_port = match settings.transport {
            DccpTransport::UdpEncap { port } => port,
            DccpTransport::Raw => 0,
        };
        let host = DccpHost::bind(settings, local, udp_port)?;
        let services = vec![host.settings.service];
        let entered = host.runtime.enter();
        let listener = host.endpoint.listen(port, services, &host.settings.options)?;
        drop(entered);
        Ok(Self { host: Rc::new(host), listener })
    }
}

impl Listen for DccpListener {
    fn accept(&mut self, _now: Instant) -> Result<Option<Box<dyn FlowSocket>>, AgentError> {
        match self.listener.poll_accept(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => Ok(None),
            Poll::Ready(connection) => {
                let connection = connection?;
                let peer = connection.peer_addr();
                let flow = Dccp::new(Rc::clone(&self.host), peer, Some(connection), true);
                Ok(Some(Box::new(flow)))
            }
        }
    }

    fn interest(&self) -> Interest<'_> {
        Interest { socket: None, within: Some(PAUSE) }
    }
}

/// What a recorder samples of a connection. DCCP never retransmits data.
fn probe_of(stats: &ConnectionStats) -> Probe {
    Probe {
        cwnd_packets: stats.cwnd_packets.map(f64::from),
        ssthresh_packets: stats.ssthresh_packets.map(f64::from),
        pipe_packets: stats.pipe_packets.map(u64::from),
        srtt: stats.srtt.map(Into::into),
        rto: stats.rto.map(Into::into),
        x_bytes_per_sec: stats.x_bytes_per_sec,
        loss_event_rate: stats.loss_event_rate,
        congestion_events: stats.congestion_events,
        timeouts: stats.timeouts,
        retransmits: 0,
    }
}
