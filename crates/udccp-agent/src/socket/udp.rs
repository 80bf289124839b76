//! The kernel's UDP.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use bytes::Bytes;
use nix::errno::Errno;
use nix::poll::PollFlags;
use socket2::{Domain, Protocol, Socket, Type};
use udccp_base::{AppPort, Instant, Message, Payload, Probe, SendOutcome};

use super::many::MultiMessageBuffers;
use super::{BATCH, Delivered, FlowSocket, Inbox, Interest, Listen, PAUSE};
use crate::error::AgentError;

/// IP and UDP headers.
const HEADERS_V4: u64 = 28;
const HEADERS_V6: u64 = 48;
/// Receive buffer, for a receiver that pauses.
const RECEIVE_BUFFER: usize = 8 << 20;

/// A pair of ports.
#[derive(Debug)]
pub(crate) struct Udp {
    socket: Socket,
    peer: Option<SocketAddr>,
    max_payload: usize,
    tracks_messages: bool,
    is_open: bool,
    read_some: bool,
    queue: VecDeque<Payload>,
    many: MultiMessageBuffers,
    inbox: Inbox,
    /// How many messages the kernel refused, and its first error.
    refused: Option<(u64, Errno)>,
}

impl Udp {
    fn bound(
        local: SocketAddr,
        packet_bytes: u64,
        tracks_messages: bool,
    ) -> Result<Self, AgentError> {
        let io = |what| move |source| AgentError::Io { what, source };
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))
            .map_err(io("cannot open a UDP socket"))?;
        socket.set_nonblocking(true).map_err(io("cannot prepare a UDP socket"))?;
        // If the system allows only a smaller buffer, that is enough for most flows.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        socket.bind(&local.into()).map_err(|e| AgentError::bind(local, e))?;
        let headers = if local.is_ipv4() { HEADERS_V4 } else { HEADERS_V6 };
        Ok(Self {
            socket,
            peer: None,
            max_payload: packet_bytes.saturating_sub(headers).clamp(1, 65_507) as usize,
            tracks_messages,
            is_open: false,
            read_some: false,
            queue: VecDeque::new(),
            many: MultiMessageBuffers::new(),
            inbox: Inbox::default(),
            refused: None,
        })
    }

    /// The sender's end.
    pub(crate) fn sender(
        [local, remote]: [IpAddr; 2],
        port: u16,
        packet_bytes: u64,
        tracks_messages: bool,
    ) -> Result<Self, AgentError> {
        let mut flow = Self::bound(SocketAddr::new(local, 0), packet_bytes, tracks_messages)?;
        flow.peer = Some(SocketAddr::new(remote, port));
        Ok(flow)
    }

    fn write(&mut self) {
        while !self.queue.is_empty() {
            let taken = match self.many.send(self.socket.as_fd(), &self.queue) {
                Ok(taken) => taken.max(1),
                // UDP has no flow control: a message that finds no room is lost, as in a full
                // queue.
                Err(reason) => {
                    let (count, _) = self.refused.unwrap_or((0, reason));
                    self.refused = Some((count + 1, reason));
                    1
                }
            };
            self.queue.drain(..taken.min(self.queue.len()));
        }
    }

    fn read(&mut self) {
        self.read_some = false;
        loop {
            let (inbox, tracks_messages) = (&mut self.inbox, self.tracks_messages);
            let found = self.many.receive(self.socket.as_fd(), |length, head| {
                inbox.bytes += length as u64;
                if tracks_messages {
                    inbox.marks.push_back(Bytes::copy_from_slice(head));
                }
            });
            match found {
                Ok(n) => {
                    self.read_some |= n > 0;
                    if n < BATCH {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    }
}

impl AppPort for Udp {
    fn send(&mut self, _now: Instant, message: Message) -> SendOutcome {
        if !self.is_open {
            return SendOutcome::Closed(message);
        }
        self.queue.push_back(message.payload);
        SendOutcome::Accepted
    }

    fn is_writable(&self) -> bool {
        self.is_open
    }

    fn close(&mut self, _now: Instant) {
        self.is_open = false;
    }

    fn max_payload(&self) -> usize {
        self.max_payload
    }
}

impl FlowSocket for Udp {
    fn open(&mut self, _now: Instant) -> Result<(), AgentError> {
        if let Some(peer) = self.peer {
            self.socket.connect(&peer.into()).map_err(|e| AgentError::connect(peer, e))?;
            self.is_open = true;
        }
        Ok(())
    }

    fn exchange(&mut self, _now: Instant) -> Result<(), AgentError> {
        match self.peer {
            Some(_) => self.write(),
            None => self.read(),
        }
        Ok(())
    }

    fn poll_delivered(&mut self) -> Option<Delivered> {
        self.inbox.take()
    }

    fn is_closed(&self) -> bool {
        false
    }

    fn probe(&mut self) -> Probe {
        Probe::default()
    }

    fn interest(&self) -> Interest<'_> {
        if self.peer.is_some() {
            return Interest::default();
        }
        if self.read_some && !self.tracks_messages {
            return Interest { socket: None, within: Some(PAUSE) };
        }
        Interest { socket: Some((self.socket.as_fd(), PollFlags::POLLIN)), within: None }
    }

    fn port(&self) -> u16 {
        0
    }

    fn take_warnings(&mut self) -> Vec<String> {
        let refused = self.refused.take();
        refused
            .map(|(n, why)| format!("the kernel would not send {n} UDP datagrams: {}", why.desc()))
            .into_iter()
            .collect()
    }
}

/// The receiver's end, which exists from the start.
pub(crate) struct UdpListener(Option<Udp>);

impl UdpListener {
    pub(crate) fn bind(
        local: SocketAddr,
        packet_bytes: u64,
        tracks_messages: bool,
    ) -> Result<Self, AgentError> {
        Udp::bound(local, packet_bytes, tracks_messages).map(|flow| Self(Some(flow)))
    }
}

impl Listen for UdpListener {
    fn accept(&mut self, _now: Instant) -> Result<Option<Box<dyn FlowSocket>>, AgentError> {
        Ok(self.0.take().map(|flow| Box::new(flow) as Box<dyn FlowSocket>))
    }

    fn interest(&self) -> Interest<'_> {
        Interest::default()
    }
}
