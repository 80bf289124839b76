//! The kernel's TCP.

use std::io::{ErrorKind, Read};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use nix::poll::PollFlags;
use socket2::{Domain, Protocol, Socket, Type};
use udccp_base::{AppPort, Duration, Instant, Message, Probe, SendOutcome};

use super::connected::{self, State};
use super::stream::{MessageDeframer, Outgoing, SizeOf};
use super::{Delivered, FlowSocket, Inbox, Interest, Listen, PAUSE};
use crate::error::AgentError;
use crate::kernel::set_congestion;
use crate::sys::{set_receive_low_water, tcp_info};

/// Most bytes queued here while the kernel's buffer is full.
const AHEAD: u64 = 128 << 10;
/// Bytes offered at once where messages are not tracked.
const CHUNK: usize = 64 << 10;
/// Bytes read at once.
const READ: usize = 256 << 10;
/// With this low-water mark, the kernel acknowledges at once even if up to this much is unread: it
/// assumes that the reader waits for more, and not that it is late. A default receive buffer holds
/// twice as much.
const LOW_WATER: i32 = 64 << 10;
/// IP and TCP headers without options (RFC 9293 section 3.7.1).
const HEADERS_V4: u64 = 40;
const HEADERS_V6: u64 = 60;

/// Settings of the sockets.
#[derive(Clone, Debug)]
pub(crate) struct TcpSettings {
    pub(crate) congestion: String,
    pub(crate) send_buffer: Option<u64>,
    pub(crate) receive_buffer: Option<u64>,
    pub(crate) packet_bytes: u64,
    /// Data are read as soon as they arrive.
    pub(crate) prompt: bool,
}

#[derive(Debug)]
pub(crate) struct Tcp {
    socket: Socket,
    peer: SocketAddr,
    state: State,
    out: Outgoing,
    /// Present if messages are tracked.
    deframer: Option<MessageDeframer>,
    tracks_messages: bool,
    /// Whether this end reads.
    reads: bool,
    /// Whether this is the passive end.
    accepted: bool,
    prompt: bool,
    closing: bool,
    inbox: Inbox,
    buffer: Vec<u8>,
    probe: Probe,
    warnings: Vec<String>,
}

impl TcpSettings {
    /// Creates a socket and sets all options that must be set before it connects or listens.
    fn socket(&self, local: SocketAddr, warnings: &mut Vec<String>) -> Result<Socket, AgentError> {
        let io = |what| move |source| AgentError::Io { what, source };
        let socket = Socket::new(Domain::for_address(local), Type::STREAM, Some(Protocol::TCP))
            .map_err(io("cannot open a TCP socket"))?;
        socket.set_nonblocking(true).map_err(io("cannot prepare a TCP socket"))?;
        socket.set_reuse_address(true).map_err(io("cannot prepare a TCP socket"))?;
        set_congestion(&socket, &self.congestion)?;
        if let Some(bytes) = self.send_buffer {
            let granted = |s: &Socket| s.send_buffer_size();
            buffer(&socket, "send", bytes, Socket::set_send_buffer_size, granted, warnings);
        }
        if let Some(bytes) = self.receive_buffer {
            let granted = |s: &Socket| s.recv_buffer_size();
            buffer(&socket, "receive", bytes, Socket::set_recv_buffer_size, granted, warnings);
        }
        let headers = if local.is_ipv4() { HEADERS_V4 } else { HEADERS_V6 };
        // The option takes no larger value; the MTU of the device then sets the MSS.
        if let Ok(mss) = u16::try_from(self.packet_bytes.saturating_sub(headers))
            && mss <= 32_767
            && socket.set_tcp_mss(mss.into()).is_err()
        {
            warnings.push(format!("the kernel does not take segments of {mss} bytes"));
        }
        socket.bind(&local.into()).map_err(|e| AgentError::bind(local, e))?;
        Ok(socket)
    }
}

/// Sets a buffer size. The kernel doubles the requested size and reports the doubled one.
fn buffer(
    socket: &Socket,
    which: &str,
    bytes: u64,
    set: impl Fn(&Socket, usize) -> std::io::Result<()>,
    granted: impl Fn(&Socket) -> std::io::Result<usize>,
    warnings: &mut Vec<String>,
) {
    let wanted = usize::try_from(bytes).unwrap_or(usize::MAX).min(i32::MAX as usize / 2);
    let _ = set(socket, wanted);
    let got = granted(socket).unwrap_or(0) / 2;
    if got < wanted {
        let sysctl = if which == "send" { "net.core.wmem_max" } else { "net.core.rmem_max" };
        warnings.push(format!(
            "the kernel allows a {which} buffer of {got} bytes, not {wanted} ({sysctl})"
        ));
    }
}

impl Tcp {
    /// The sender's end, bound to its address. `size_of` is present if responses are tracked;
    /// `tracks_messages` says whether messages are.
    pub(crate) fn sender(
        settings: &TcpSettings,
        [local, remote]: [IpAddr; 2],
        port: u16,
        tracks_messages: bool,
        size_of: Option<SizeOf>,
    ) -> Result<Self, AgentError> {
        let mut warnings = Vec::new();
        let socket = settings.socket(SocketAddr::new(local, 0), &mut warnings)?;
        let peer = SocketAddr::new(remote, port);
        let reads = size_of.is_some();
        let mut flow = Self::new(socket, peer, State::Idle, tracks_messages, size_of, reads);
        flow.warnings = warnings;
        flow.prompt = settings.prompt;
        Ok(flow)
    }

    fn new(
        socket: Socket,
        peer: SocketAddr,
        state: State,
        tracks_messages: bool,
        size_of: Option<SizeOf>,
        reads: bool,
    ) -> Self {
        Self {
            socket,
            peer,
            state,
            out: Outgoing::default(),
            deframer: size_of.map(MessageDeframer::new),
            tracks_messages,
            reads,
            accepted: false,
            prompt: false,
            closing: false,
            inbox: Inbox::default(),
            buffer: if reads { vec![0; READ] } else { Vec::new() },
            probe: Probe::default(),
            warnings: Vec::new(),
        }
    }

    /// Whether data may wait for a while before they are read.
    fn may_delay_reads(&self) -> bool {
        self.accepted && self.reads && !self.tracks_messages && !self.prompt
    }

    fn end_with_error(&mut self, source: &std::io::Error) {
        self.warnings.push(format!("the TCP connection ended: {source}"));
        self.state = State::Over;
    }

    fn write(&mut self) {
        while self.out.len() > 0 {
            let slices = self.out.slices();
            let offered: usize = slices.iter().map(|s| s.len()).sum();
            match self.socket.send_vectored_with_flags(&slices, libc::MSG_NOSIGNAL) {
                Ok(taken) => {
                    self.out.advance(taken);
                    if taken < offered {
                        return;
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) => return self.end_with_error(&e),
            }
        }
        if self.closing {
            let _ = self.socket.shutdown(std::net::Shutdown::Write);
            self.closing = false;
        }
    }

    fn read(&mut self) {
        loop {
            match (&self.socket).read(&mut self.buffer) {
                Ok(0) => {
                    self.state = State::Over;
                    return;
                }
                Ok(n) => {
                    self.inbox.bytes += n as u64;
                    if let Some(deframer) = &mut self.deframer {
                        let marks = &mut self.inbox.marks;
                        deframer.take(&self.buffer[..n], |mark| marks.push_back(mark));
                    }
                    if n < self.buffer.len() {
                        return;
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) => return self.end_with_error(&e),
            }
        }
    }
}

impl AppPort for Tcp {
    fn send(&mut self, _now: Instant, message: Message) -> SendOutcome {
        match self.state {
            State::Idle | State::Over => SendOutcome::Closed(message),
            State::Connecting | State::Open if !self.is_writable() => SendOutcome::Full(message),
            State::Connecting | State::Open => {
                self.out.push(message.payload);
                SendOutcome::Accepted
            }
        }
    }

    fn is_writable(&self) -> bool {
        let room = if self.tracks_messages { self.out.len() == 0 } else { self.out.len() < AHEAD };
        self.state == State::Open && !self.closing && room
    }

    fn close(&mut self, _now: Instant) {
        self.closing = true;
        if self.state == State::Idle {
            self.state = State::Over;
        }
    }

    fn max_payload(&self) -> usize {
        // A tracked message is offered in one piece, so that only its start has a mark.
        if self.tracks_messages { i32::MAX as usize } else { CHUNK }
    }
}

impl FlowSocket for Tcp {
    fn open(&mut self, _now: Instant) -> Result<(), AgentError> {
        self.state = State::Connecting;
        connected::connect(&self.socket, self.peer)
    }

    fn exchange(&mut self, _now: Instant) -> Result<(), AgentError> {
        if self.state == State::Connecting && connected::is_connected(&self.socket, self.peer)? {
            self.state = State::Open;
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
        if self.state != State::Open || self.accepted {
            return self.probe;
        }
        if let Ok(info) = tcp_info(&self.socket) {
            let known = info.tcpi_rtt > 0;
            let infinite = info.tcpi_snd_ssthresh >= i32::MAX as u32;
            self.probe = Probe {
                cwnd_packets: Some(f64::from(info.tcpi_snd_cwnd)),
                ssthresh_packets: (!infinite).then(|| f64::from(info.tcpi_snd_ssthresh)),
                srtt: known.then(|| Duration::from_micros(info.tcpi_rtt.into())),
                rto: Some(Duration::from_micros(info.tcpi_rto.into())),
                retransmits: info.tcpi_total_retrans.into(),
                ..Probe::default()
            };
        }
        self.probe
    }

    fn interest(&self) -> Interest<'_> {
        let mut flags = PollFlags::empty();
        match self.state {
            State::Idle | State::Over => return Interest::default(),
            State::Connecting => flags |= PollFlags::POLLOUT,
            State::Open => {
                if self.out.len() > 0 {
                    flags |= PollFlags::POLLOUT;
                }
                if self.may_delay_reads() && self.out.len() == 0 {
                    // After a hole was filled, more than the low-water mark may be readable. Read
                    // it at once, as the kernel does not acknowledge before.
                    let socket = Some((self.socket.as_fd(), PollFlags::POLLIN));
                    return Interest { socket, within: Some(PAUSE) };
                }
                if self.reads {
                    flags |= PollFlags::POLLIN;
                }
            }
        }
        // With no events requested, poll would report an error again and again, and nobody would
        // handle it.
        let wanted = !flags.is_empty();
        Interest { socket: wanted.then(|| (self.socket.as_fd(), flags)), within: None }
    }

    fn port(&self) -> u16 {
        if self.accepted {
            return self.peer.port();
        }
        connected::local_port(&self.socket)
    }

    fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }
}

pub(crate) struct TcpListener {
    socket: Socket,
    tracks_messages: bool,
    /// Creates the message splitter of each connection.
    size_of: Option<Box<dyn Fn() -> SizeOf>>,
    prompt: bool,
    warnings: Vec<String>,
}

impl TcpListener {
    pub(crate) fn bind(
        settings: &TcpSettings,
        local: SocketAddr,
        tracks_messages: bool,
        size_of: Option<Box<dyn Fn() -> SizeOf>>,
    ) -> Result<Self, AgentError> {
        let mut warnings = Vec::new();
        let socket = settings.socket(local, &mut warnings)?;
        socket.listen(1024).map_err(|e| AgentError::bind(local, e))?;
        Ok(Self { socket, tracks_messages, size_of, prompt: settings.prompt, warnings })
    }
}

impl Listen for TcpListener {
    fn accept(&mut self, _now: Instant) -> Result<Option<Box<dyn FlowSocket>>, AgentError> {
        let what = ["cannot accept a TCP connection", "cannot prepare a TCP socket"];
        let Some((socket, peer)) = connected::accept(&self.socket, what)? else { return Ok(None) };
        let size_of = self.size_of.as_ref().map(|make| make());
        let mut flow = Tcp::new(socket, peer, State::Open, self.tracks_messages, size_of, true);
        flow.warnings = std::mem::take(&mut self.warnings);
        flow.accepted = true;
        if flow.may_delay_reads() {
            set_receive_low_water(&flow.socket, LOW_WATER)
                .map_err(|source| AgentError::Io { what: what[1], source })?;
        }
        flow.prompt = self.prompt;
        Ok(Some(Box::new(flow)))
    }

    fn interest(&self) -> Interest<'_> {
        Interest { socket: Some((self.socket.as_fd(), PollFlags::POLLIN)), within: None }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{Ipv4Addr, TcpStream};

    use nix::poll::{PollFd, PollTimeout, poll};

    use super::*;

    /// Whether the reader's socket has an event within this time.
    fn is_ready_within(flow: &dyn FlowSocket, within_ms: u16) -> bool {
        let (fd, flags) = flow.interest().socket.expect("a socket");
        poll(&mut [PollFd::new(fd, flags)], PollTimeout::from(within_ms)).unwrap() > 0
    }

    #[test]
    fn bulk_reader_wakes_at_the_low_water_mark() {
        let settings = TcpSettings {
            congestion: "reno".into(),
            send_buffer: None,
            receive_buffer: Some(4 << 20),
            packet_bytes: 1500,
            prompt: false,
        };
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut listener = TcpListener::bind(&settings, local, false, None).unwrap();
        let address = listener.socket.local_addr().unwrap().as_socket().unwrap();
        let mut peer = TcpStream::connect(address).unwrap();
        let mut flow = loop {
            if let Some(flow) = listener.accept(Instant::ZERO).unwrap() {
                break flow;
            }
        };
        assert_eq!(flow.interest().within, Some(PAUSE));
        peer.write_all(&[0; 1000]).unwrap();
        assert!(!is_ready_within(&*flow, 50), "a little waits for the pause to end");
        peer.write_all(&[0; 2 * LOW_WATER as usize]).unwrap();
        assert!(is_ready_within(&*flow, 10_000), "much is read at once");
        let mut bytes = 0;
        while bytes < 1000 + 2 * LOW_WATER as u64 {
            flow.exchange(Instant::ZERO).unwrap();
            bytes += flow.poll_delivered().map_or(0, |delivered| delivered.bytes);
        }
        assert!(!is_ready_within(&*flow, 0));
    }
}
