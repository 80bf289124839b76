//! A program's socket in the broker: its state, and the part that is published.

mod calls;
mod lifecycle;
mod listening;

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::io::Errno;
use tokio::sync::Notify;
use udccp::Connection;
use udccp_preload::protocol::*;

use crate::broker::Broker;
use crate::options::SocketOptions;
use crate::pair::Pair;
use crate::settings::Settings;
use crate::shared::SharedRing;
use crate::{address, errno};
use listening::Listening;

/// Work that a request passes to the socket's task.
#[derive(Debug)]
enum Command {
    Connect(SocketAddr),
    Listen(Listening),
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
    sends_no_more: bool,
    listening: Listening,
    /// Connections of a listening socket that its program has not accepted yet.
    accepted: VecDeque<Connection>,
    command: Option<Command>,
    ring: Option<Arc<SharedRing>>,
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
    /// Opens a socket with the options of `like`, if given. Returns it with the program's end.
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
        tokio::spawn(Arc::clone(&socket).run(pair));
        Ok((socket, programs))
    }

    fn make(
        broker: &Arc<Broker>,
        is_v6: bool,
        settings: Settings,
        options: SocketOptions,
    ) -> Result<(Arc<Self>, Pair, OwnedFd), Errno> {
        let (pair, programs) = Pair::open(options.queues().0).map_err(errno::of_io)?;
        pair.set_queue_bytes(options.recv_buffer() / 2);
        let cookie = rustix::net::sockopt::socket_cookie(&programs)?;
        let inode = rustix::fs::fstat(&programs)?.st_ino;
        let slot = broker.region.take().or_else(|| {
            broker.make_room();
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
            sends_no_more: false,
            listening: Listening::default(),
            accepted: VecDeque::new(),
            command: None,
            ring: None,
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

    /// The cookie of the program's end: the kernel's number for it.
    pub(crate) const fn cookie(&self) -> u64 {
        self.cookie
    }

    /// The inode of the program's end.
    pub(crate) const fn inode(&self) -> u64 {
        self.inode
    }

    /// The socket's slot in the region.
    pub(crate) const fn slot(&self) -> usize {
        self.slot
    }

    /// Whether the socket has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.inner().state == STATE_ENDED
    }

    /// Whether it listens at the endpoint with this UDP address.
    pub(crate) fn listens_at(&self, at: SocketAddr) -> bool {
        self.inner().listening.is_at(at)
    }

    /// Whether the queue policy has priorities.
    pub(crate) fn has_priorities(&self) -> bool {
        self.inner().options.has_priorities()
    }

    /// Capacity of the connection's queue in messages.
    pub(crate) fn queued_messages(&self) -> usize {
        self.inner().options.queues().1
    }

    /// Capacity of the kernel's queue to the broker in messages.
    pub(crate) fn pair_messages(&self) -> usize {
        self.inner().options.queues().0
    }

    /// The shared memory of its messages, once the program has requested it.
    pub(crate) fn ring(&self) -> Option<Arc<SharedRing>> {
        self.inner().ring.clone()
    }

    /// Most bytes of messages that may wait for the program to read them.
    pub(crate) fn recv_queue_bytes(&self) -> usize {
        self.inner().options.recv_queue()
    }

    /// The broker's shared state.
    pub(crate) fn broker(&self) -> &Arc<Broker> {
        &self.broker
    }

    /// The time of SO_LINGER in seconds, if it is on.
    pub(crate) fn linger(&self) -> Option<u64> {
        self.inner().options.linger()
    }

    pub(crate) fn publish(&self, at: usize, value: u32) {
        self.broker.region.set(self.slot, at, value);
    }

    fn publish_local(&self, local: SocketAddr) {
        let bytes = address::write(address::unmap_ipv4(local), self.is_v6);
        self.broker.region.set_address(self.slot, SLOT_LOCAL_AT, &bytes);
    }

    /// Publishes what the program must know of the queue to send.
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

    /// Sets the pending error.
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
}
