//! The endpoint and the driver's state, under one lock.

#[cfg(all(test, target_os = "linux"))]
mod refused;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

use udccp_base::{Datagram, Duration, Instant, Machine, Sent};
use udccp_proto::{ConnectionId, Endpoint, Event, EventKind, ListenerId, PathReport};

use super::conns::Conns;
use super::driver::Driver;
use super::fragments::may_be_fragmented;
use super::log;
use super::raw::RecentConnections;
use super::signals::Signals;
use super::waiters::{Conn, Listening, WaitFor, Waiting};
use super::wakes::Wakes;
use crate::io::{Cause, Claims, Failure, Flushed, Io, NetworkReport, Report, Transmitter};
use crate::stun::Inbox;
use crate::{ConnectionEvent, IoStats};

/// A message that follows the last flush within this time is part of a burst: it waits until the
/// burst is over or fills a batch, so that the burst needs few writes.
const BURST_GAP: Duration = Duration::from_micros(50);
/// Most messages of a burst that wait.
const BURST_MESSAGES: u32 = 64;

/// Messages of a burst that are sent one by one while nobody drives: a request or an answer of few
/// packets, after which the caller usually reads, and then drives.
const SENT_AT_ONCE: u32 = 4;
/// The same after a reader was woken whose answer is expected, which is usually one message.
const ANSWERS_AT_ONCE: u32 = 1;

/// Most reads in one turn, of 32 buffers each if the system fills many per call, otherwise of one,
/// so that acknowledgements and other work are not delayed.
const READS: usize = 128 / quinn_udp::BATCH_SIZE;

/// With at most this many connections, each of them is checked.
const FEW: usize = 4;

/// What was read since the socket was last empty, in at most [`READS`] reads.
#[derive(Debug, Default)]
struct Intake {
    reads: usize,
    /// Bytes as accounted by the kernel.
    bytes: usize,
    /// Whether the receive queue of some connection is half full.
    fills: bool,
}

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) endpoint: Endpoint,
    pub(crate) conns: Conns,
    pub(crate) listeners: BTreeMap<ListenerId, Listening>,
    /// Descriptors that show what a call would return.
    pub(super) signals: Signals,
    tx: Transmitter,
    /// A datagram from the endpoint that did not fit in the batch.
    spare: Option<Datagram>,
    intake: Intake,
    /// Whether the socket has no room. Then only the driver, which waits for room, tries again.
    pub(crate) blocked: bool,
    /// Whether acknowledgements wait for woken tasks.
    pub(super) holds_acks: bool,
    /// Tasks woken in this turn because of a message.
    pub(super) readers_woken: usize,
    /// How often the socket had no room.
    times_blocked: u64,
    /// Messages queued since the last flush.
    burst: u32,
    /// When a burst was last sent, if ever.
    last_flush: Option<Instant>,
    /// Connections with tasks that wait for everything sent to be accounted for.
    pub(crate) awaiting_acks: Vec<ConnectionId>,
    /// Connections with tasks that wait for an empty send queue.
    pub(crate) flushing: Vec<ConnectionId>,
    /// Tasks waiting for the last connection to end.
    pub(crate) idle_waiters: Waiting,
    /// Over raw IP: the DCCP ports that are ours.
    pub(super) claims: Option<Claims>,
    /// Over raw IP: recent outgoing connections.
    pub(super) lately: RecentConnections,
    pub(super) ephemeral_ports: (u16, u16),
    /// Received STUN messages.
    pub(crate) stun: Inbox,
    /// Tasks to wake once the lock is free.
    pub(crate) wake: Wakes,
    pub(crate) driver: Driver,
    /// The number of the last call that can be cancelled.
    pub(super) calls: NonZeroU32,
    /// Handles that users hold. The driver ends after the last one is dropped.
    pub(crate) handles: usize,
}

impl Core {
    pub(crate) fn new(
        endpoint: Endpoint,
        claims: Option<Claims>,
        ephemeral_ports: (u16, u16),
    ) -> Self {
        Self {
            endpoint,
            conns: Conns::default(),
            listeners: BTreeMap::new(),
            signals: Signals::default(),
            tx: Transmitter::new(may_be_fragmented, claims.is_some()),
            spare: None,
            intake: Intake::default(),
            blocked: false,
            holds_acks: false,
            readers_woken: 0,
            times_blocked: 0,
            burst: 0,
            last_flush: None,
            awaiting_acks: Vec::new(),
            flushing: Vec::new(),
            idle_waiters: Waiting::default(),
            claims,
            lately: RecentConnections::default(),
            ephemeral_ports,
            stun: Inbox::default(),
            wake: Wakes::default(),
            driver: Driver::default(),
            calls: NonZeroU32::MIN,
            handles: 0,
        }
    }

    /// Passes on what arrived, before the driver flushes. If a task was waiting for it, an owed
    /// acknowledgement waits until the task has run, because an answer can carry it.
    pub(super) fn dispatch_arrived(&mut self, now: Instant) {
        self.dispatch(Some(now));
    }

    /// Passes the endpoint's events on to the tasks that wait for them.
    fn dispatch(&mut self, arrived: Option<Instant>) {
        while let Some(event) = self.endpoint.poll_event() {
            log::event(&self.endpoint, &event);
            let woken = self.wake.len();
            self.pass_on(event);
            let woke = self.wake.len() - woken;
            self.readers_woken += if event.kind == EventKind::Readable { woke } else { 0 };
            let may_answer = matches!(event.kind, EventKind::Readable | EventKind::Incoming(_));
            if let Some(now) = arrived.filter(|_| may_answer && woke > 0) {
                self.holds_acks |= self.endpoint.hold_ack(now, event.id);
            }
        }
    }

    fn pass_on(&mut self, event: Event) {
        if let EventKind::Incoming(listener) = event.kind {
            let conn = Conn { connected: true, queued_at: Some(listener), ..Conn::default() };
            self.conns.insert(event.id, conn);
            if let Some(listening) = self.listeners.get_mut(&listener) {
                listening.waiting.wake_all(&mut self.wake);
            }
            self.signals.touch_listener(listener);
            return;
        }
        self.signals.touch(event.id);
        let Some(conn) = self.conns.get_mut(event.id) else { return };
        match event.kind {
            EventKind::Readable => conn.waiting.wake(WaitFor::Message, &mut self.wake),
            EventKind::Writable => conn.waiting.wake(WaitFor::Room, &mut self.wake),
            EventKind::Connected => {
                conn.connected = true;
                conn.waiting.wake_all(&mut self.wake);
            }
            EventKind::CloseUnconfirmed => conn.waiting.wake_all(&mut self.wake),
            EventKind::Closed(reason) => {
                if !self.driver.stopped {
                    conn.ended = Some(reason);
                }
                conn.waiting.wake_all(&mut self.wake);
            }
            other => {
                if other == EventKind::PeerShutdownRead {
                    // No room will become available any more.
                    conn.waiting.wake(WaitFor::Room, &mut self.wake);
                }
                if let Some(event) = ConnectionEvent::of(other) {
                    conn.events.push(event);
                    conn.waiting.wake(WaitFor::Other, &mut self.wake);
                }
            }
        }
    }

    /// Completes a change: passes on its events. Returns the tasks to wake.
    pub(crate) fn settle(&mut self, now: Instant) -> Wakes {
        self.dispatch(None);
        self.show_changes();
        self.wake_idle_waiters();
        self.wake_driver(now);
        std::mem::take(&mut self.wake)
    }

    /// Messages sent from now on are part of a burst.
    #[cfg(test)]
    pub(crate) fn begin_burst(&mut self, now: Instant) {
        self.last_flush = Some(now + BURST_GAP * 100_000);
    }

    /// As [`Self::flush_burst`], after a connection opened or began to close. If the socket is
    /// blocked, only the driver's turn gives it a timer.
    pub(crate) fn flush_change(&mut self, io: &Io, now: Instant) {
        if self.blocked {
            self.request_driver();
        }
        self.flush_burst(io, now);
    }

    /// A message was queued. Sends it, or lets it wait for the rest of its burst.
    pub(crate) fn flush_burst(&mut self, io: &Io, now: Instant) {
        self.burst += 1;
        let at_once = if self.driver.is_away() {
            SENT_AT_ONCE
        } else if self.readers_woken > 0 {
            ANSWERS_AT_ONCE
        } else {
            0
        };
        if self.driver.sent_at_once < at_once {
            self.driver.sent_at_once += 1;
            return self.flush(io, now);
        }
        let is_quiet = self.last_flush.is_none_or(|last| now - last > BURST_GAP);
        let first = self.burst == 1 && is_quiet;
        if first || self.burst >= BURST_MESSAGES {
            self.last_flush = Some(now);
            self.flush(io, now);
        } else if self.burst == 1 {
            self.request_driver();
        }
    }

    /// A message was read, so room in the receive queue may release acknowledgements that were held
    /// back. If a burst waits for the driver, they wait with it.
    pub(crate) fn flush_released(&mut self, io: &Io, now: Instant) {
        if self.burst == 0 {
            self.flush(io, now);
        }
    }

    /// Sends everything that may be sent now.
    #[inline]
    pub(crate) fn flush(&mut self, io: &Io, now: Instant) {
        self.burst = 0;
        if self.spare.is_some() || !self.tx.is_empty() || self.endpoint.may_transmit() {
            self.flush_all(io, now);
        }
    }

    fn flush_all(&mut self, io: &Io, now: Instant) {
        while !self.blocked {
            let more = self.gather(io, now);
            match self.tx.flush(io) {
                Flushed::Done => {}
                Flushed::Blocked => {
                    self.blocked = true;
                    self.times_blocked += 1;
                    self.endpoint.transmit_blocked(now);
                    self.request_driver();
                }
                Flushed::Failed(failure) => self.sending_failed(io, now, &failure),
            }
            if !more && self.tx.is_empty() {
                return;
            }
        }
    }

    /// Fills the batches. Returns whether more is waiting.
    fn gather(&mut self, io: &Io, now: Instant) -> bool {
        let max_segments = io.max_gso_segments();
        loop {
            if self.spare.is_none()
                && self.endpoint.poll_transmit_into(now, &mut self.spare) == Sent::Nothing
            {
                return false;
            }
            if let Some(next) = &self.spare {
                if !self.tx.push(next, max_segments) {
                    return true;
                }
                self.endpoint.poll_run(now, next, &mut self.tx.following(max_segments));
            }
            self.spare = None;
        }
    }

    fn sending_failed(&mut self, io: &Io, now: Instant, failure: &Failure) {
        self.take_reports(io, now);
        io.forget_route_to(failure.dst);
        tracing::debug!("sending to {} failed: {}", failure.dst, failure.error);
        let report = match Cause::of(&failure.error) {
            // The reports about earlier packets have just been processed.
            Cause::NoRoom | Cause::EarlierPacket => return,
            // The MTU of the interface has become smaller. Reports are queued only for single
            // datagrams.
            Cause::TooBig => match io.route_to(now, failure.dst).ok().and_then(|r| r.mtu) {
                Some(mtu) => PathReport::InterfaceMtu(mtu),
                None => return,
            },
            Cause::Unreachable => PathReport::Unreachable,
        };
        self.report(io, now, (failure.dst, Some(failure.src)), &failure.quoted, report);
    }

    /// Passes the endpoint the network's reports about sent packets.
    pub(crate) fn take_reports(&mut self, io: &Io, now: Instant) {
        while let Some(Report { remote, local, quoted, network_report }) = io.take_report() {
            let report = match network_report {
                NetworkReport::TooBig(mtu) => PathReport::PathMtu(mtu),
                NetworkReport::TooBigHere(mtu) => PathReport::InterfaceMtu(mtu),
                NetworkReport::PortClosed => PathReport::PortUnreachable,
                NetworkReport::Unreachable => PathReport::Unreachable,
            };
            self.report(io, now, (remote, local), &quoted, report);
        }
    }

    /// A host may have addresses that routing would not pick, so the known local address is used if
    /// there is one.
    fn report(
        &mut self,
        io: &Io,
        now: Instant,
        (remote, local): (SocketAddr, Option<IpAddr>),
        quoted: &[u8],
        report: PathReport,
    ) {
        io.forget_route_to(remote);
        // Without a route, the packet was sent from the connection's address, which the quoted
        // ports still identify on a bound socket.
        let routed = || io.route_to(now, remote).map_or(io.local_addr(), |route| route.source);
        let local = local.map_or_else(routed, |ip| io.arrived_at(Some(ip)));
        tracing::debug!(%remote, ?report, "report of the network");
        self.endpoint.handle_path_report(now, local, remote, quoted, report);
    }

    /// Whether nothing is waiting to be sent.
    pub(crate) fn is_flushed(&self, id: ConnectionId) -> bool {
        self.endpoint.stats(id).is_none_or(|s| s.send_queue_packets == 0)
    }

    fn wake_flushed(&mut self) {
        let flushing = std::mem::take(&mut self.flushing);
        for id in flushing {
            if !self.is_flushed(id) {
                self.flushing.push(id);
            } else if let Some(conn) = self.conns.get_mut(id) {
                conn.waiting.wake(WaitFor::Flushed, &mut self.wake);
            }
        }
    }

    fn wake_acknowledged(&mut self) {
        let awaiting_acks = std::mem::take(&mut self.awaiting_acks);
        for id in awaiting_acks {
            if !self.endpoint.is_accounted_for(id) {
                self.awaiting_acks.push(id);
            } else if let Some(conn) = self.conns.get_mut(id) {
                conn.waiting.wake(WaitFor::Acknowledged, &mut self.wake);
            }
        }
    }

    /// Tells the endpoint how full the kernel's receive buffer was. What is read without a pause
    /// was waiting there.
    pub(crate) fn note_backlog(&mut self, io: &Io, bytes: usize) {
        self.intake.bytes += bytes;
        let permille = self.intake.bytes.saturating_mul(1000) / io.recv_buffer_bytes().max(1);
        self.endpoint.set_receive_backlog(u16::try_from(permille).unwrap_or(u16::MAX));
    }

    /// Called after a read; `more` is whether the socket may hold more. Returns whether to continue
    /// reading in this turn. If a receive queue fills up, the rest waits in the kernel until the
    /// reader has run.
    pub(crate) fn continues_reading(&mut self, more: bool) -> bool {
        self.intake.reads += 1;
        if !more || self.intake.reads >= READS {
            self.intake = Intake::default();
            return false;
        }
        !core::mem::take(&mut self.intake.fills)
    }

    /// Datagrams of one connection were received.
    pub(super) fn note_received(&mut self) {
        self.intake.fills |= self.endpoint.is_filling();
    }

    /// Starts a turn of the driver.
    pub(crate) fn begin_turn(&mut self, now: Instant) {
        self.driver.notified = false;
        self.driver.armed = None;
        self.driver.sent_at_once = 0;
        self.readers_woken = 0;
        if core::mem::take(&mut self.holds_acks) {
            self.endpoint.release_acks();
        }
        if self.endpoint.poll_timeout().is_some_and(|due| due <= now) {
            self.endpoint.handle_timeout(now);
        }
    }

    /// Ends a turn of the driver. Returns the tasks to wake and the time of the next turn.
    pub(crate) fn end_turn(&mut self) -> (Wakes, Option<Instant>) {
        self.dispatch(None);
        self.show_changes();
        let due = self.endpoint.poll_timeout();
        self.driver.armed = due;
        self.driver.wanted = false;
        if !self.flushing.is_empty() {
            self.wake_flushed();
        }
        if !self.awaiting_acks.is_empty() {
            self.wake_acknowledged();
        }
        self.wake_idle_waiters();
        (std::mem::take(&mut self.wake), due)
    }

    /// A reader waits again without having answered, so its acknowledgement is sent. A driver that
    /// is a task and has woken several readers runs after them, and then sends all acknowledgements
    /// together.
    pub(crate) fn reader_waits(&mut self, io: &Io, now: Instant, id: ConnectionId) {
        if self.holds_acks && (self.readers_woken <= 1 || self.driver.driven_by.is_some()) {
            self.endpoint.release_ack(id);
            self.flush(io, now);
        }
    }

    /// Whether acknowledgements wait for tasks that this turn woke, so that another turn is needed
    /// after them.
    pub(crate) fn holds_acks(&self) -> bool {
        self.holds_acks
    }

    /// Whether any task waits for the driver, or may wait. With many connections it is assumed.
    pub(super) fn has_waiters(&self) -> bool {
        self.conns.len() > FEW
            || self.signals.are_watched()
            || !self.idle_waiters.is_empty()
            || !self.stun.readers.is_empty()
            || self.listeners.values().any(|listening| !listening.waiting.is_empty())
            || self.conns.all().any(|conn| !conn.waiting.is_empty())
    }

    /// Whether no connection is open or closing, and the last packets of earlier ones have been
    /// sent. While a task waits for that, every call checks it, so it must not look at each
    /// connection.
    pub(crate) fn is_idle(&self) -> bool {
        self.endpoint.endpoint_stats().connections == 0 && !self.blocked
    }

    fn wake_idle_waiters(&mut self) {
        if !self.idle_waiters.is_empty() && self.is_idle() {
            self.idle_waiters.wake_all(&mut self.wake);
        }
    }

    /// Counters of what waits for the socket.
    pub(crate) fn io_stats(&self) -> IoStats {
        let spare = self.spare.as_ref().map_or(0, Datagram::transport_len);
        let waiting_bytes = self.tx.waiting_bytes() + spare;
        IoStats { times_blocked: self.times_blocked, waiting_bytes }
    }

    /// Whether there is no handle any more, and every connection has ended and told its peer.
    pub(crate) fn is_finished(&self) -> bool {
        self.handles == 0 && !self.blocked && self.endpoint.endpoint_stats().connections == 0
    }

    /// The driver has ended. Wakes all tasks that wait for it.
    pub(crate) fn stop(&mut self) -> Wakes {
        self.driver.stopped = true;
        for conn in self.conns.all_mut() {
            conn.waiting.wake_all(&mut self.wake);
        }
        for listening in self.listeners.values_mut() {
            listening.waiting.wake_all(&mut self.wake);
        }
        self.show_all();
        self.idle_waiters.wake_all(&mut self.wake);
        self.stun.readers.wake_all(&mut self.wake);
        std::mem::take(&mut self.wake)
    }
}
