//! A client and a server with one connection between them.

use std::ops::{Deref, DerefMut};

use bytes::Bytes;
use udccp_base::{Duration, Message, Payload};
use udccp_proto::{
    CloseReason, ConnectOptions, ConnectionConfig, ConnectionId, ConnectionStats, Event, EventKind,
    ListenConfig, ListenerId, RecvError, State,
};
use udccp_wire::ServiceCode;

use super::Net;

pub const CLIENT: usize = 0;
pub const SERVER: usize = 1;
pub const PORT: u16 = 5001;

pub fn service() -> ServiceCode {
    "SC:test".parse().unwrap()
}

pub fn connect_options(config: ConnectionConfig) -> ConnectOptions {
    ConnectOptions {
        local: "10.0.0.1:0".parse().unwrap(),
        local_port: None,
        remote: "10.0.0.2:0".parse().unwrap(),
        remote_port: PORT,
        service: service(),
        config: config.into(),
    }
}

pub fn listen_config(config: ConnectionConfig) -> ListenConfig {
    ListenConfig { connection: config.into(), ..ListenConfig::new(service()) }
}

/// Settings with one CCID in both directions, and connections that survive any silence.
pub fn lasting(ccid: u8, keep_alive: Option<Duration>) -> ConnectionConfig {
    let ages = Duration::from_secs(1_000_000);
    ConnectionConfig {
        tx_ccids: vec![ccid],
        rx_ccids: vec![ccid],
        keep_alive,
        idle_limit: Some(ages),
        silence_timeout: ages,
        recv_queue_packets: 100_000,
        ..ConnectionConfig::default()
    }
}

/// A network, a listener on the server, and a connection that the client started.
pub struct Pair {
    pub net: Net,
    pub listener: ListenerId,
    pub ids: [Option<ConnectionId>; 2],
    pub events: [Vec<EventKind>; 2],
}

impl Deref for Pair {
    type Target = Net;
    fn deref(&self) -> &Net {
        &self.net
    }
}

impl DerefMut for Pair {
    fn deref_mut(&mut self) -> &mut Net {
        &mut self.net
    }
}

impl Pair {
    /// A client that has just begun to connect.
    pub fn starting(net: Net, client: ConnectionConfig, server: ConnectionConfig) -> Self {
        let mut net = net;
        let listener = net.ends[SERVER].listen(None, PORT, listen_config(server)).unwrap();
        let now = net.now;
        let id = net.ends[CLIENT].connect(now, connect_options(client)).unwrap();
        Self { net, listener, ids: [Some(id), None], events: Default::default() }
    }

    /// Both ends connected, with default settings.
    pub fn connected(seed: u64) -> Self {
        Self::connected_with(Net::new(seed), ConnectionConfig::default())
    }

    /// Both ends connected.
    pub fn connected_with(net: Net, config: ConnectionConfig) -> Self {
        let span = (net.delay * 10).max(Duration::from_millis(100));
        let mut pair = Self::starting(net, config.clone(), config);
        pair.run(span);
        pair.collect();
        assert_eq!(pair.state(SERVER), Some(State::Open));
        pair
    }

    pub fn id(&self, end: usize) -> ConnectionId {
        self.ids[end].expect("the server has accepted")
    }

    pub fn state(&self, end: usize) -> Option<State> {
        self.net.ends[end].state(self.ids[end]?)
    }

    pub fn stats(&self, end: usize) -> ConnectionStats {
        self.net.ends[end].stats(self.id(end)).unwrap()
    }

    /// Accepts a connection unless one is held, and reads all events.
    pub fn collect(&mut self) {
        // A second accepted connection would have no owner.
        if self.ids[SERVER].is_none() {
            self.ids[SERVER] = self.net.ends[SERVER].accept(self.listener);
        }
        for end in 0..2 {
            while let Some(Event { id, kind }) = self.net.ends[end].poll_event() {
                if self.ids[end] == Some(id) {
                    self.events[end].push(kind);
                }
            }
        }
    }

    pub fn pass(&mut self, span: Duration) {
        self.net.run(span);
        self.collect();
    }

    pub fn try_send(&mut self, end: usize, text: &[u8]) -> bool {
        let message = Message::new(Payload::Bytes(Bytes::copy_from_slice(text)));
        let (now, id) = (self.now, self.id(end));
        self.net.ends[end].send(now, id, message).is_ok()
    }

    pub fn send(&mut self, end: usize, text: &[u8]) {
        assert!(self.try_send(end, text), "the message was not taken");
    }

    /// All messages waiting to be read.
    pub fn received(&mut self, end: usize) -> Vec<Vec<u8>> {
        let (now, id) = (self.now, self.id(end));
        let mut all = Vec::new();
        while let Ok(Some(payload)) = self.net.ends[end].recv(now, id) {
            all.push(payload.to_bytes().to_vec());
        }
        all
    }

    /// Why the connection ended, once everything was read.
    pub fn end_reason(&mut self, end: usize) -> Option<CloseReason> {
        let (now, id) = (self.now, self.id(end));
        match self.net.ends[end].recv(now, id) {
            Err(RecvError::Closed(reason)) => Some(reason),
            _ => None,
        }
    }

    pub fn close(&mut self, end: usize) {
        let (now, id) = (self.now, self.id(end));
        self.net.ends[end].close(now, id);
    }
}
