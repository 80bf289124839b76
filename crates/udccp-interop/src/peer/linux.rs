//! The kernel's DCCP.

use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::{Connection, Listener, Read, Side, TIMEOUT};

struct Open {
    socket: Arc<Socket>,
    has_sent: Arc<AtomicBool>,
}

struct Port(Socket);

/// Longer than any message.
const BUFFER_BYTES: usize = 2048;
/// Time limit for sending queued data, in guest time.
const DRAIN: Duration = Duration::from_secs(10);
/// Time limit for accepting: a refused server may leave its client waiting in the kernel.
const ACCEPT: Duration = Duration::from_secs(5);

fn socket(side: &Side, is_client: bool) -> io::Result<Socket> {
    let domain = if side.local.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let socket = Socket::new(domain, Type::DCCP, Some(Protocol::DCCP))?;
    socket.set_reuse_address(true)?;
    socket.set_dccp_service(side.service.to_be())?;
    socket.set_dccp_ccid(side.ccid)?;
    // Let the send buffer limit the queue: a full buffer blocks the caller, a full queue does not.
    socket.set_dccp_qpolicy_txqlen(0)?;
    if side.is_bulk {
        socket.set_send_buffer_size(64 << 10)?;
    }
    if side.coverage > 0 && is_client {
        socket.set_dccp_send_cscov(side.coverage.into())?;
    } else if side.coverage > 0 {
        socket.set_dccp_recv_cscov(side.coverage.into())?;
    }
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.set_write_timeout(Some(TIMEOUT))?;
    Ok(socket)
}

pub(super) fn listen(side: &Side) -> Result<Box<dyn Listener>, String> {
    let open = || {
        let socket = socket(side, false)?;
        socket.bind(&SocketAddr::new(side.local, side.port).into())?;
        socket.listen(5)?;
        socket.set_read_timeout(Some(ACCEPT))?;
        Ok(socket)
    };
    open().map(|s| Box::new(Port(s)) as Box<dyn Listener>).map_err(|e: io::Error| text(&e))
}

pub(super) fn connect(side: &Side) -> Result<Box<dyn Connection>, String> {
    let open = || {
        let socket = socket(side, true)?;
        socket.bind(&SocketAddr::new(side.local, 0).into())?;
        socket.connect(&SocketAddr::new(side.remote, side.port).into())?;
        Ok(socket)
    };
    let socket = open().map_err(|e: io::Error| text(&e))?;
    Ok(Box::new(Open::new(socket)))
}

impl Open {
    fn new(socket: Socket) -> Self {
        Self { socket: Arc::new(socket), has_sent: Arc::default() }
    }
}

impl Listener for Port {
    fn accept(&self) -> Option<Box<dyn Connection>> {
        let (socket, _) = self.0.accept().ok()?;
        let ready = socket
            .set_read_timeout(Some(TIMEOUT))
            .and_then(|()| socket.set_write_timeout(Some(TIMEOUT)));
        ready.ok()?;
        Some(Box::new(Open::new(socket)))
    }
}

impl Connection for Open {
    fn send(&self, message: &[u8]) -> Result<(), String> {
        self.has_sent.store(true, Ordering::Relaxed);
        loop {
            match self.socket.send(message) {
                Ok(_) => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(text(&e)),
            }
        }
    }

    fn recv(&self) -> Read {
        let mut bytes = vec![0; BUFFER_BYTES];
        match (&*self.socket).read(&mut bytes) {
            // Every end reads as zero bytes; the pending error tells the reason.
            Ok(0) => match self.socket.take_error() {
                Ok(None) => Read::Closed,
                Ok(Some(e)) | Err(e) => Read::Lost(text(&e)),
            },
            Ok(len) => {
                bytes.truncate(len);
                Read::Message(bytes)
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Read::Silence,
            Err(e) => Read::Lost(text(&e)),
        }
    }

    fn set_timeout(&mut self, timeout: Duration) {
        let _ = self.socket.set_read_timeout(Some(timeout));
    }

    fn close(self: Box<Self>) -> Result<(), String> {
        // A close drops queued data: at once, or, with SO_LINGER, if CCID 2 does not allow it to be
        // sent just then. So give the data time to leave first.
        if self.has_sent.load(Ordering::Relaxed) {
            super::wait(DRAIN);
        }
        self.socket.set_linger(Some(Duration::from_secs(20))).map_err(|e| text(&e))
    }

    fn abort(self: Box<Self>) {
        let _ = self.socket.set_linger(Some(Duration::ZERO));
    }

    fn handle(&self) -> Box<dyn Connection> {
        let (socket, has_sent) = (Arc::clone(&self.socket), Arc::clone(&self.has_sent));
        Box::new(Self { socket, has_sent })
    }
}

/// The error by its errno name, if that is clearer than its text.
fn text(e: &io::Error) -> String {
    let name = match e.raw_os_error() {
        Some(32) => "EPIPE",
        Some(56) => "EBADRQC",
        Some(70) => "ECOMM",
        Some(84) => "EILSEQ",
        Some(95) => "EOPNOTSUPP",
        Some(115) => "EINPROGRESS",
        Some(87) => "EUSERS",
        Some(104) => "ECONNRESET",
        Some(110) => "ETIMEDOUT",
        Some(111) => "ECONNREFUSED",
        _ => return e.to_string(),
    };
    name.to_owned()
}
