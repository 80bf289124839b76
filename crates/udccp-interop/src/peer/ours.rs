//! Our DCCP, over a raw socket.

use std::net::SocketAddr;
use std::time::Duration;

use udccp::blocking::{self, Endpoint};
use udccp::{Address, AnswerForHost, EndpointOptions, Error, Options, ServiceCode};

use super::{Connection, Listener, Read, Side, TIMEOUT};

struct Open(blocking::Connection);

struct Port(blocking::Listener);

fn options(side: &Side, is_client: bool) -> Options {
    let options = Options::new()
        .ccid(side.ccid)
        .close_linger(Duration::from_secs(20))
        .timewait(Duration::from_secs(1));
    match (side.coverage, is_client) {
        (0, _) => options,
        (coverage, true) => options.send_cscov(coverage),
        (coverage, false) => options.min_cscov(coverage),
    }
}

fn endpoint(side: &Side) -> Result<Endpoint, String> {
    // The kernel has DCCP too, but its answers are filtered: our stack answers for this host.
    let raw = EndpointOptions::new().raw_ip(true).answer_for_host(AnswerForHost::Always);
    Endpoint::bind_with(SocketAddr::new(side.local, 0), &raw).map_err(|e| e.to_string())
}

pub(super) fn listen(side: &Side) -> Result<Box<dyn Listener>, String> {
    let service = [ServiceCode(side.service)];
    let listener = endpoint(side)?.listen(side.port, service, &options(side, false));
    Ok(Box::new(Port(listener.map_err(|e| e.to_string())?)))
}

pub(super) fn connect(side: &Side) -> Result<Box<dyn Connection>, String> {
    let (peer, service) = (Address::raw(side.remote, side.port), ServiceCode(side.service));
    let connected = endpoint(side)?.connect(peer, service, &options(side, true), Some(TIMEOUT));
    Ok(Box::new(Open::new(connected.map_err(|e| e.to_string())?)))
}

impl Open {
    fn new(connection: blocking::Connection) -> Self {
        connection.set_read_timeout(Some(TIMEOUT));
        connection.set_write_timeout(Some(TIMEOUT));
        Self(connection)
    }
}

impl Listener for Port {
    fn accept(&self) -> Option<Box<dyn Connection>> {
        let connection = self.0.accept_within(Some(TIMEOUT)).ok()?;
        Some(Box::new(Open::new(connection)))
    }
}

impl Connection for Open {
    fn send(&self, message: &[u8]) -> Result<(), String> {
        self.0.send(message.to_vec()).map_err(|e| text(&e))
    }

    fn recv(&self) -> Read {
        match self.0.recv() {
            Ok(Some(bytes)) => Read::Message(bytes.to_vec()),
            Ok(None) => Read::Closed,
            Err(Error::TimedOut) => Read::Silence,
            Err(e) => Read::Lost(text(&e)),
        }
    }

    fn set_timeout(&mut self, timeout: Duration) {
        self.0.set_read_timeout(Some(timeout));
    }

    fn close(self: Box<Self>) -> Result<(), String> {
        self.0.close().map_err(|e| text(&e))
    }

    fn abort(self: Box<Self>) {
        self.0.abort();
    }

    fn handle(&self) -> Box<dyn Connection> {
        Box::new(Self(self.0.clone()))
    }
}

fn text(e: &Error) -> String {
    match e {
        Error::Closed => "closed".into(),
        other => other.to_string(),
    }
}
