//! The DCCP of a Linux kernel before 6.16.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use bytes::Bytes;
use nix::errno::Errno;
use nix::poll::PollFlags;
use socket2::{Domain, Protocol, Socket, Type};
use udccp_base::{AppPort, Duration, Instant, Message, Payload, Probe, SendOutcome};

use super::connected::{self, State};
use super::many::MultiMessageBuffers;
use super::{BATCH, Delivered, FlowSocket, Inbox, Interest, Listen, PAUSE, SHORT_PAUSE};
use crate::error::AgentError;
use crate::sys::{drops, tfrc_info};

/// Socket type of DCCP (`SOCK_DCCP`).
const SOCK_DCCP: i32 = 6;
/// Room for bulk data that are ready to send while this process sleeps.
const SEND_BUFFER: usize = 1 << 20;
/// Room for data that were not read yet. The kernel's default (208 KiB, some 50 packets) is less
/// than a window: the kernel then drops the rest of a burst, including acknowledgements, before
/// DCCP sees it.
const RECV_BUFFER: usize = 16 << 20;
/// Messages queued here for the kernel.
const AHEAD: usize = BATCH;
/// An IPv4 header plus the most that the kernel reserves for its own headers and options.
const HEADERS: u64 = 20 + 16 + 48;

/// Room for Change and Confirm options of Ack Ratio and Sequence Window. CCID 2 puts them on data
/// packets, but the kernel's MPS does not allow for them. A packet that they make too long is
/// counted as sent and dropped (`EMSGSIZE` inside the kernel), and nothing is sent any more.
const CHANGES: usize = 32;

/// Settings of the sockets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinuxSettings {
    pub(crate) ccid: u8,
    pub(crate) tx_queue: Option<u32>,
    pub(crate) service: u32,
    /// Send as fast as possible, instead of messages at set times.
    pub(crate) is_bulk: bool,
    pub(crate) tracks_messages: bool,
    pub(crate) packet_bytes: u64,
}

#[cfg(test)]
impl LinuxSettings {
    /// The settings of a plain test.
    pub(crate) const PLAIN: Self = Self {
        ccid: 2,
        tx_queue: None,
        service: 0,
        is_bulk: false,
        tracks_messages: false,
        packet_bytes: 1500,
    };
}

/// Creates a DCCP socket, if the kernel supports DCCP.
pub(crate) fn socket(address: IpAddr) -> Result<Socket, AgentError> {
    let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    Socket::new(domain, Type::from(SOCK_DCCP), Some(Protocol::DCCP))
        .map_err(|source| AgentError::NoDccp { source })
}

impl LinuxSettings {
    fn socket(self, local: SocketAddr) -> Result<Socket, AgentError> {
        let io = |what| move |source| AgentError::Io { what, source };
        let socket = socket(local.ip())?;
        socket.set_nonblocking(true).map_err(io("cannot prepare a DCCP socket"))?;
        socket.set_reuse_address(true).map_err(io("cannot prepare a DCCP socket"))?;
        socket.set_dccp_ccid(self.ccid).map_err(io("the kernel's DCCP has not this CCID"))?;
        socket.set_dccp_service(self.service.to_be()).map_err(io("cannot set a service code"))?;
        self.set_buffers(&socket);
        // With a length of 0, only the send buffer limits the queue.
        let queue = if self.is_bulk { Some(0) } else { self.tx_queue };
        if let Some(packets) = queue {
            socket.set_dccp_qpolicy_txqlen(packets).map_err(io("cannot set the send queue"))?;
        }
        socket.bind(&local.into()).map_err(|e| AgentError::bind(local, e))?;
        Ok(socket)
    }

    /// Requests the buffer sizes; the kernel grants less if its limits are lower.
    fn set_buffers(self, socket: &Socket) {
        let _ = socket.set_recv_buffer_size(RECV_BUFFER);
        if self.is_bulk {
            let _ = socket.set_send_buffer_size(SEND_BUFFER);
        }
    }
}

#[derive(Debug)]
pub(crate) struct Linux {
    settings: LinuxSettings,
    socket: Socket,
    peer: SocketAddr,
    accepted: bool,
    reads: bool,
    state: State,
    /// The kernel accepted no more.
    is_full: bool,
    read_some: bool,
    max_payload: usize,
    queue: VecDeque<Payload>,
    many: MultiMessageBuffers,
    inbox: Inbox,
    probe: Probe,
    cut: u64,
    warnings: Vec<String>,
}

impl Linux {
    /// The sender's end of a connection.
    pub(crate) fn sender(
        settings: LinuxSettings,
        [local, remote]: [IpAddr; 2],
        port: u16,
        reads: bool,
    ) -> Result<Self, AgentError> {
        let socket = settings.socket(SocketAddr::new(local, 0))?;
        Ok(Self::new(settings, socket, SocketAddr::new(remote, port), reads))
    }

    fn new(settings: LinuxSettings, socket: Socket, peer: SocketAddr, reads: bool) -> Self {
        Self {
            settings,
            socket,
            peer,
            accepted: false,
            reads,
            state: State::Idle,
            is_full: false,
            read_some: false,
            max_payload: (settings.packet_bytes.saturating_sub(HEADERS) as usize)
                .saturating_sub(CHANGES)
                .max(1),
            queue: VecDeque::new(),
            many: MultiMessageBuffers::new(),
            inbox: Inbox::default(),
            probe: Probe::default(),
            cut: 0,
            warnings: Vec::new(),
        }
    }

    /// The receiver's end of an accepted connection.
    pub(crate) fn accepted(settings: LinuxSettings, socket: Socket, peer: SocketAddr) -> Self {
        let mut flow = Self::new(settings, socket, peer, true);
        flow.accepted = true;
        flow.state = State::Open;
        flow.update_mps();
        flow
    }

    fn update_mps(&mut self) {
        if let Ok(mps) = self.socket.dccp_cur_mps() {
            self.max_payload = (mps as usize).saturating_sub(CHANGES).max(1);
        }
    }

    fn end_with_error(&mut self, why: &str) {
        self.warnings.push(format!("the kernel's DCCP connection ended: {why}"));
        self.state = State::Over;
        self.queue.clear();
    }

    fn write(&mut self) {
        self.is_full = false;
        while !self.queue.is_empty() {
            let count = self.queue.len().min(BATCH);
            match self.many.send(self.socket.as_fd(), &self.queue) {
                Ok(taken) => {
                    self.queue.drain(..taken.min(count));
                    if taken < count {
                        self.is_full = true;
                        return;
                    }
                }
                Err(Errno::EAGAIN) => {
                    self.is_full = true;
                    return;
                }
                Err(Errno::EMSGSIZE) => self.fit_to_mps(),
                Err(e) => return self.end_with_error(e.desc()),
            }
        }
    }

    /// Handles a smaller MPS: shortens untracked messages and drops tracked ones.
    fn fit_to_mps(&mut self) {
        let before = self.max_payload;
        self.update_mps();
        let most = self.max_payload;
        for payload in &mut self.queue {
            if let Payload::Zeros(n) = payload
                && *n as usize > most
            {
                *n = most as u32;
                self.cut += 1;
            }
        }
        self.queue.retain(|payload| payload.len() <= most);
        if most >= before {
            // The size cannot be the reason. Drop the message that causes the error.
            self.queue.pop_front();
        }
    }

    fn read(&mut self) {
        self.read_some = false;
        loop {
            let (inbox, tracks_messages) = (&mut self.inbox, self.settings.tracks_messages);
            let mut ended = false;
            let found = self.many.receive(self.socket.as_fd(), |length, head| {
                inbox.bytes += length as u64;
                ended |= length == 0;
                if tracks_messages && length > 0 {
                    inbox.marks.push_back(Bytes::copy_from_slice(head));
                }
            });
            match found {
                Ok(n) => {
                    self.read_some |= n > 0;
                    if ended {
                        self.state = State::Over;
                    }
                    if n < BATCH || ended {
                        return;
                    }
                }
                Err(Errno::EAGAIN) => return,
                Err(e) => return self.end_with_error(e.desc()),
            }
        }
    }
}

impl AppPort for Linux {
    fn send(&mut self, _now: Instant, message: Message) -> SendOutcome {
        match self.state {
            State::Idle | State::Over => SendOutcome::Closed(message),
            _ if self.queue.len() >= AHEAD || self.is_full => SendOutcome::Full(message),
            _ => {
                self.queue.push_back(message.payload);
                SendOutcome::Accepted
            }
        }
    }

    fn is_writable(&self) -> bool {
        self.state == State::Open && !self.is_full && self.queue.len() < AHEAD
    }

    fn close(&mut self, _now: Instant) {
        // Without SO_LINGER, closing discards what the kernel has queued.
        let _ = self.socket.set_linger(None);
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        self.state = State::Over;
    }

    fn max_payload(&self) -> usize {
        self.max_payload
    }
}

impl FlowSocket for Linux {
    fn open(&mut self, _now: Instant) -> Result<(), AgentError> {
        if self.accepted {
            return Ok(());
        }
        self.state = State::Connecting;
        connected::connect(&self.socket, self.peer)
    }

    fn exchange(&mut self, _now: Instant) -> Result<(), AgentError> {
        if self.state == State::Connecting && connected::is_connected(&self.socket, self.peer)? {
            self.state = State::Open;
            self.update_mps();
        }
        if self.state == State::Open {
            self.write();
            if self.reads && self.state == State::Open {
                self.read();
            }
        }
        Ok(())
    }

    fn poll_delivered(&mut self) -> Option<Delivered> {
        self.inbox.take()
    }

    fn is_closed(&self) -> bool {
        self.state == State::Over
    }

    fn probe(&mut self) -> Probe {
        if self.settings.ccid == 3
            && !self.accepted
            && self.state == State::Open
            && let Ok(info) = tfrc_info(&self.socket)
        {
            self.probe = Probe {
                srtt: (info.rtt > 0).then(|| Duration::from_micros(info.rtt.into())),
                rto: Some(Duration::from_micros(info.rto.into())),
                x_bytes_per_sec: Some(info.x as f64 / 64.0),
                loss_event_rate: Some(f64::from(info.p) / 1e6),
                ..Probe::default()
            };
        }
        self.probe
    }

    fn interest(&self) -> Interest<'_> {
        let socket = |flags| Interest { socket: Some((self.socket.as_fd(), flags)), within: None };
        match self.state {
            State::Idle | State::Over => Interest::default(),
            State::Connecting => socket(PollFlags::POLLOUT),
            // The kernel reports a socket as writable even if its queue is full, so poll it after a
            // pause.
            State::Open if !self.queue.is_empty() || self.is_full => {
                let pause = if self.settings.is_bulk { PAUSE } else { SHORT_PAUSE };
                Interest { socket: None, within: Some(pause) }
            }
            State::Open if self.reads && self.read_some && !self.settings.tracks_messages => {
                Interest { socket: None, within: Some(PAUSE) }
            }
            State::Open if self.reads => socket(PollFlags::POLLIN),
            State::Open => Interest::default(),
        }
    }

    fn port(&self) -> u16 {
        if self.accepted {
            return self.peer.port();
        }
        connected::local_port(&self.socket)
    }

    fn buffer_drops(&self) -> u64 {
        drops(&self.socket).map_or(0, u64::from)
    }

    fn take_warnings(&mut self) -> Vec<String> {
        if self.cut > 0 {
            let cut = std::mem::take(&mut self.cut);
            self.warnings.push(format!("{cut} messages were cut to the kernel's packet size"));
        }
        std::mem::take(&mut self.warnings)
    }
}

pub(crate) struct LinuxListener {
    socket: Socket,
    settings: LinuxSettings,
}

impl LinuxListener {
    pub(crate) fn bind(settings: LinuxSettings, local: SocketAddr) -> Result<Self, AgentError> {
        let socket = settings.socket(local)?;
        socket.listen(1024).map_err(|e| AgentError::bind(local, e))?;
        Ok(Self { socket, settings })
    }
}

impl Listen for LinuxListener {
    fn accept(&mut self, _now: Instant) -> Result<Option<Box<dyn FlowSocket>>, AgentError> {
        let what = ["cannot accept a DCCP connection", "cannot prepare a DCCP socket"];
        let Some((socket, peer)) = connected::accept(&self.socket, what)? else { return Ok(None) };
        Ok(Some(Box::new(Linux::accepted(self.settings, socket, peer))))
    }

    fn interest(&self) -> Interest<'_> {
        Interest { socket: Some((self.socket.as_fd(), PollFlags::POLLIN)), within: None }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn receive_buffers_are_larger_than_the_default() {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        LinuxSettings::PLAIN.set_buffers(&socket);
        let most = fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap();
        let most: usize = most.trim().parse().unwrap();
        // The kernel doubles the requested size.
        assert_eq!(socket.recv_buffer_size().unwrap(), 2 * most.min(RECV_BUFFER));
    }
}
