//! The event loop.

mod paced;
mod transfers;

use std::collections::BTreeMap;

use core::net::{IpAddr, SocketAddr};
use core::sync::atomic::{AtomicBool, Ordering};

use udccp_base::{Duration, Instant, Sent};
use udccp_link::Packet;

use crate::config::RunConfig;
use crate::error::SimError;
use crate::fabric::{Fabric, Hop, Outgoing, Sending};
use crate::hash::Kind;
use crate::host::{Host, Lifetime, sender_of_pair};
use crate::names::Names;
use crate::network::Node;
use crate::packet::{Meta, PacketHandle, Slot};
use crate::record::{self, FlowStep, Interval, LinkRecorder, Mark, Schedule};
use crate::result::SenderSample;
use crate::source::End;
use crate::transfers::Maker;

/// More packets and events than this at the same time indicate a livelock. The number is six
/// windows of 10 Gbit/s times 200 ms, all sent at once.
const LIVELOCK: u64 = 1 << 20;

/// Events between two checks of the flag that stops a run: well below a tenth of a second.
const STOP_CHECK_EVENTS: u64 = 1 << 12;

/// Why a run ends early. Boxed, which keeps the result of the usual case small.
type Stop = Box<SimError>;

/// A running simulation.
pub(crate) struct Engine {
    pub(crate) hosts: Vec<Host>,
    pub(crate) fabric: Fabric,
    pub(crate) addresses: BTreeMap<IpAddr, u32>,
    /// Makers of the transports of flows whose transports exist only while the flow is active.
    makers: BTreeMap<usize, Maker>,
    pub(crate) names: Names,
    pub(crate) schedule: Schedule,
    /// Recorders of the links between routers, which come first.
    pub(crate) link_recorders: Vec<LinkRecorder>,
    pub(crate) series: Vec<Vec<FlowStep>>,
    /// The intervals of all series.
    pub(crate) intervals: Vec<Interval>,
    /// For each flow, the host that has its congestion state, if there is one.
    senders: Vec<Option<usize>>,
    /// Congestion events of each flow: those before the measured window until it ends, then those
    /// in it.
    pub(crate) events: Vec<Option<u64>>,
    pub(crate) window: Duration,
    next_mark: Instant,
    /// When to leave the event loop: at the next mark, or at the end.
    horizon: Instant,
    now: Instant,
    /// Events at the time `now` so far.
    simultaneous: u64,
}

/// What happens next with a packet that reached a router.
enum Next {
    /// It waits for an event in the queue, or was dropped.
    Nothing,
    /// The next event of all is one of this link, and not in the queue.
    Link(usize),
    /// It reached this host.
    Host(u32),
}

/// What [`Engine::new`] needs.
pub(crate) struct Parts {
    pub(crate) hosts: Vec<Host>,
    pub(crate) fabric: Fabric,
    /// Names of all components, hosts first.
    pub(crate) names: Names,
    /// For each flow, the host that has its congestion state, if there is one.
    pub(crate) senders: Vec<Option<usize>>,
    /// Makers of the transports of these flows, which create them when the flow starts.
    pub(crate) makers: BTreeMap<usize, Maker>,
}

impl Engine {
    pub(crate) fn new(parts: Parts, run: &RunConfig<'_>) -> Self {
        let Parts { hosts, fabric, names, senders, makers } = parts;
        let addresses = hosts.iter().enumerate().map(|(i, h)| (h.address, i as u32)).collect();
        let link_recorders = (0..fabric.between_routers).map(|_| LinkRecorder::default()).collect();
        let schedule = Schedule::new(run.duration, run.interval, &run.measure);
        let series = senders.iter().map(|_| Vec::with_capacity(schedule.samples())).collect();
        let intervals = Vec::with_capacity(schedule.samples());
        let mut engine = Self {
            hosts,
            fabric,
            addresses,
            makers,
            names,
            schedule,
            link_recorders,
            series,
            intervals,
            senders,
            events: Vec::new(),
            window: run.measure.end - run.measure.start,
            next_mark: Instant::ZERO,
            horizon: Instant::ZERO,
            now: Instant::ZERO,
            simultaneous: 0,
        };
        engine.next_mark = engine.schedule.next();
        for host in 0..engine.hosts.len() {
            let due = engine.hosts[host].poll_timeout();
            engine.fabric.events.set(host, due);
        }
        engine
    }

    /// Processes all events before `end`.
    pub(crate) fn run(&mut self, end: Instant, stop: Option<&AtomicBool>) -> Result<(), SimError> {
        self.event_loop(end, stop).map_err(|stop| *stop)?;
        self.finish(end)
    }

    fn finish(&mut self, end: Instant) -> Result<(), SimError> {
        self.process_marks(end);
        self.now = end;
        self.fabric.observer.as_mut().map_or(Ok(()), |o| o.finish())
    }

    // Not inlined where the engine is a local variable: its fields would be read relative to the
    // stack pointer, and processors mispredict which stores such loads depend on.
    #[inline(never)]
    fn event_loop(&mut self, end: Instant, stop: Option<&AtomicBool>) -> Result<(), Stop> {
        let mut next_stop_check = stop.map_or(u64::MAX, |_| 0);
        loop {
            if self.fabric.cost.events >= next_stop_check {
                next_stop_check = self.fabric.cost.events + STOP_CHECK_EVENTS;
                if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                    return Err(Box::new(SimError::Stopped { at: self.now }));
                }
            }
            let (due, component) = self.fabric.events.earliest();
            if due >= self.horizon {
                self.check_observer()?;
                if due >= end {
                    return Ok(());
                }
                self.process_marks(due);
                // Observers are checked after every event.
                let is_observed = self.fabric.observer.is_some();
                self.horizon = if is_observed { Instant::ZERO } else { self.next_mark.min(end) };
            }
            self.advance(due, component)?;
            self.dispatch(component)?;
        }
    }

    /// Processes the event that is due, which is the first in the queue.
    #[inline(always)]
    fn dispatch(&mut self, component: usize) -> Result<(), Stop> {
        let first_link = self.fabric.first_link;
        let (link, is_queued) = match component.checked_sub(first_link) {
            Some(link) => (link, true),
            None => match self.host_event(component)? {
                Some(link) => (link as usize, false),
                None => return Ok(()),
            },
        };
        self.link_event(link, is_queued)
    }

    /// Returns the first error that observers found, if any.
    fn check_observer(&mut self) -> Result<(), Stop> {
        match &mut self.fabric.observer {
            None => Ok(()),
            Some(observer) => observer.take_failure(),
        }
    }

    /// Advances time. Fails if time would go back or stand still.
    #[inline]
    fn advance(&mut self, due: Instant, component: usize) -> Result<(), Stop> {
        if due > self.now {
            self.now = due;
            self.simultaneous = 0;
            return Ok(());
        }
        self.count_simultaneous(due, component)
    }

    /// Counts another event at this time.
    fn count_simultaneous(&mut self, due: Instant, component: usize) -> Result<(), Stop> {
        self.simultaneous += 1;
        if due < self.now {
            let what = format!("{} is due at {due}", self.names.component(component));
            return Err(Box::new(SimError::Invariant { at: self.now, what }));
        }
        self.check_livelock(component)
    }

    #[inline]
    fn check_livelock(&self, component: usize) -> Result<(), Stop> {
        if self.simultaneous < LIVELOCK { Ok(()) } else { Err(self.livelock(component)) }
    }

    #[cold]
    fn livelock(&self, component: usize) -> Stop {
        let component = self.names.component(component);
        Box::new(SimError::Livelock { at: self.now, events: self.simultaneous, component })
    }

    /// One or more packets reach the far end of a link. They travel on while no other event comes
    /// before: such events never enter the queue. The first event is the first in the queue, or, if
    /// not `is_queued`, not in the queue.
    #[inline(always)]
    fn link_event(&mut self, mut index: usize, mut is_queued: bool) -> Result<(), Stop> {
        loop {
            self.fabric.cost.events += 1;
            let (arrival, due) = self.fabric.depart(self.now, index);
            let Some((to, handle)) = arrival else {
                self.fabric.rearm(index, due);
                return Ok(());
            };
            if due <= self.now {
                return self.link_event_batch(index, to, handle);
            }
            self.fabric.rearm_first(index, due, is_queued);
            is_queued = false;
            let next = match to {
                Node::Host(host) => Next::Host(host),
                Node::Router(router) => self.forward((index, due), router, handle),
            };
            let host = match next {
                Next::Host(host) => host,
                Next::Link(link) => {
                    index = link;
                    continue;
                }
                Next::Nothing => return Ok(()),
            };
            if !self.arrive(host, handle) {
                return Ok(());
            }
            match self.drain(host as usize)? {
                Some(link) => index = link as usize,
                None => return Ok(()),
            }
        }
    }

    /// A packet reached a router. It crosses the links behind it while the next event of all is
    /// that it reaches the far end of one. For `upstream` see [`Fabric::forward`].
    #[inline(always)]
    fn forward(&mut self, upstream: (usize, Instant), router: u32, handle: PacketHandle) -> Next {
        match self.fabric.forward(self.now, router, handle, self.horizon, upstream) {
            Hop::Stays => Next::Nothing,
            Hop::Due { index, at } => {
                (self.now, self.simultaneous) = (at, 0);
                Next::Link(index)
            }
            Hop::Crosses { index, at, to } => {
                self.cross(index, at, handle);
                match to {
                    Node::Host(host) => Next::Host(host),
                    Node::Router(router) => {
                        self.forward_on(index, router, handle).map_or(Next::Nothing, Next::Host)
                    }
                }
            }
        }
    }

    /// Like [`Self::forward`], for a packet that has crossed a link between routers, as few do.
    /// Returns the host that it reaches, if it does now.
    #[cold]
    fn forward_on(
        &mut self,
        mut from: usize,
        mut router: u32,
        handle: PacketHandle,
    ) -> Option<u32> {
        loop {
            let upstream = (from, Instant::MAX);
            match self.fabric.forward(self.now, router, handle, self.horizon, upstream) {
                Hop::Stays => return None,
                Hop::Due { index, at } => {
                    // The first event of all, so nothing changes if it enters the queue.
                    self.fabric.rearm(index, at);
                    return None;
                }
                Hop::Crosses { index, at, to } => {
                    self.cross(index, at, handle);
                    match to {
                        Node::Host(host) => return Some(host),
                        Node::Router(far) => (from, router) = (index, far),
                    }
                }
            }
        }
    }

    /// A packet crosses an empty link, which no other event precedes.
    #[inline(always)]
    fn cross(&mut self, index: usize, at: Instant, handle: PacketHandle) {
        (self.now, self.simultaneous) = (at, 0);
        self.fabric.cost.events += 1;
        self.fabric.record_crossing(at, index, handle);
    }

    /// Several packets reach the far end of a link at once, which is rare.
    #[cold]
    fn link_event_batch(
        &mut self,
        index: usize,
        mut to: Node,
        mut handle: PacketHandle,
    ) -> Result<(), Stop> {
        let now = self.now;
        let mut reached = None;
        let mut due = now;
        loop {
            match to {
                Node::Router(router) => {
                    // The horizon is now, so each packet is entered on the next link and goes no
                    // further.
                    self.fabric.forward(now, router, handle, now, (index, Instant::MAX));
                }
                Node::Host(host) if self.arrive(host, handle) => reached = Some(host as usize),
                Node::Host(_) => {}
            }
            self.fabric.rearm(index, due);
            if due > now {
                break;
            }
            let (arrival, next_due) = self.fabric.depart(now, index);
            due = next_due;
            let Some(next) = arrival else {
                self.fabric.rearm(index, due);
                break;
            };
            (to, handle) = next;
        }
        match reached {
            Some(host) => self.drain_later(host),
            None => Ok(()),
        }
    }

    /// A packet reached a host. Returns whether that is its destination.
    #[inline(always)]
    fn arrive(&mut self, host: u32, handle: PacketHandle) -> bool {
        if handle.to() != host || !self.fabric.is_simple {
            return self.arrive_any(host, handle);
        }
        let (slot, path) = (handle.slot(), handle.path());
        let Fabric { packets, paths, .. } = &mut self.fabric;
        let Slot { datagram: place, meta } = packets.slot(slot);
        paths[path as usize].delivered(meta.sent, self.now, handle.len(), meta.has_data);
        if let Some(datagram) = place {
            datagram.ecn = handle.ecn();
        }
        let host = &mut self.hosts[host as usize];
        host.arrived = host.arrived.wrapping_add(1);
        host.transport.handle_datagram_in(self.now, place);
        packets.release(slot, path);
        true
    }

    /// The general case of [`Self::arrive`].
    #[cold]
    fn arrive_any(&mut self, host: u32, handle: PacketHandle) -> bool {
        if !self.fabric.arrive(self.now, host, handle) {
            return false;
        }
        let option = self.fabric.packets.options.remove(&handle.slot());
        let host = &mut self.hosts[host as usize];
        host.arrived = host.arrived.wrapping_add(1);
        let transport = host.transport.as_mut();
        let Some(mut datagram) = self.fabric.packets.take(handle.slot()) else { return true };
        datagram.ecn = handle.ecn();
        match option {
            Some(option) => {
                transport.handle_with_quick_start(self.now, datagram, option, handle.ttl());
            }
            None => transport.handle_datagram(self.now, datagram),
        }
        true
    }

    /// Runs a host's timer, or its application's. Returns the same as [`Self::drain`].
    fn host_event(&mut self, index: usize) -> Result<Option<u32>, Stop> {
        let timers = self.hosts[index].poll_timeouts();
        let due = timers[0].min(timers[1]);
        if due > self.now {
            // The timer was moved to a later time; see `drain`.
            self.fabric.events.set(index, due);
            return Ok(None);
        }
        self.fabric.cost.events += 1;
        self.fabric.hash.log(self.now, index, Kind::Wake, 0);
        if self.hosts[index].lifetime == Lifetime::NotStarted {
            self.create_transports(index)?;
        }
        self.hosts[index].handle_timeout(self.now, timers);
        self.drain(index)
    }

    /// Lets a host send everything, then sets its next wake-up. If the next event of all is one of
    /// its link, advances time to it and returns the link: that event is not in the queue.
    #[inline(always)]
    fn drain(&mut self, index: usize) -> Result<Option<u32>, Stop> {
        let now = self.now;
        let Self { hosts, fabric, addresses, simultaneous, .. } = self;
        let host = &mut hosts[index];
        if host.tracks_delivery {
            return self.drain_and_notify(index);
        }
        let bytes = host.take_delivered(now);
        if bytes > 0 {
            fabric.paths[host.path as usize ^ 1].goodput(bytes);
        }
        host.feed(now);
        while transmit(now, host, fabric, addresses, simultaneous) {
            // There is room in the transport, and the application may have more data.
            let goes_on = *simultaneous < LIVELOCK && host.feed(now);
            if !goes_on || !host.transport.may_transmit() {
                break;
            }
        }
        let due = host.poll_timeout();
        let (uplink, lifetime) = (host.uplink, host.lifetime);
        self.schedule_host(index, due, uplink, lifetime)
    }

    /// Sets the next event of a host that has sent everything and has its next timer at `due`.
    /// Returns the same as [`Self::drain`].
    #[inline(always)]
    fn schedule_host(
        &mut self,
        index: usize,
        due: Instant,
        uplink: u32,
        lifetime: Lifetime,
    ) -> Result<Option<u32>, Stop> {
        let (now, due) = (self.now, due.max(self.now));
        let fabric = &mut self.fabric;
        let mut first_departure = core::mem::replace(&mut fabric.first_departure, Instant::MAX);
        if first_departure == due && first_departure != Instant::MAX {
            // At equal times, the link comes first.
            fabric.rearm(uplink as usize, first_departure);
            first_departure = Instant::MAX;
        }
        // A timer that moves to a later time, as most do with every packet, is left where it is.
        // The host then wakes once needlessly, which is cheaper than moving it every time.
        let armed = fabric.events.due(index);
        if due < armed || armed <= now {
            fabric.events.set(index, due);
        }
        if lifetime == Lifetime::Transfer {
            self.free_if_spent(index);
        }
        self.check_livelock(index)?;
        if first_departure == Instant::MAX {
            return Ok(None);
        }
        if first_departure < self.horizon
            && first_departure > now
            && first_departure < self.fabric.events.earliest().0
        {
            (self.now, self.simultaneous) = (first_departure, 0);
            return Ok(Some(uplink));
        }
        self.fabric.rearm(uplink as usize, first_departure);
        Ok(None)
    }

    /// Like [`Self::drain`], but leaves the next event of the link in the queue.
    #[cold]
    fn drain_later(&mut self, index: usize) -> Result<(), Stop> {
        let horizon = core::mem::replace(&mut self.horizon, Instant::ZERO);
        self.drain(index)?;
        self.horizon = horizon;
        Ok(())
    }

    /// Like [`Self::drain`], for a pair whose source is notified of delivered data.
    #[inline(never)]
    fn drain_and_notify(&mut self, index: usize) -> Result<Option<u32>, Stop> {
        let arriving = self.hosts[index].path as usize ^ 1;
        let bytes = self.notify_source(index);
        if bytes > 0 {
            self.fabric.paths[arriving].goodput(bytes);
        }
        self.feed(index);
        loop {
            let Self { hosts, fabric, addresses, simultaneous, .. } = self;
            let sent = transmit(self.now, &mut hosts[index], fabric, addresses, simultaneous);
            if !sent || self.simultaneous >= LIVELOCK || !self.feed(index) {
                break;
            }
        }
        let host = &self.hosts[index];
        self.schedule_host(index, host.poll_timeout(), host.uplink, host.lifetime)
    }

    /// Lets the application at this host pass data to the transport.
    #[inline]
    fn feed(&mut self, index: usize) -> bool {
        let host = &mut self.hosts[index];
        match &host.app {
            None if host.tracks_delivery => self.answer(index),
            None => false,
            Some(_) => host.feed(self.now),
        }
    }

    /// Passes received data to the source of the pair. Returns the number of bytes.
    #[cold]
    fn notify_source(&mut self, index: usize) -> u64 {
        let sender = sender_of_pair(index);
        let end = if index == sender { End::Sender } else { End::Receiver };
        let mut app = self.hosts[sender].app.take();
        let host = &mut self.hosts[index];
        let mut bytes = 0;
        while let Some(payload) = host.transport.poll_delivered(self.now) {
            bytes += payload.len() as u64;
            if let Some(app) = &mut app {
                app.source_mut().delivered(self.now, end, &payload);
            }
        }
        host.count_delivered(self.now, bytes);
        self.hosts[sender].app = app;
        bytes
    }

    /// Lets the application at a receiver send an answer.
    #[cold]
    fn answer(&mut self, index: usize) -> bool {
        let sender = sender_of_pair(index);
        let Some(mut app) = self.hosts[sender].app.take() else { return false };
        let transport = self.hosts[index].transport.as_mut();
        let taken = app.source_mut().answer(self.now, transport);
        self.hosts[sender].app = Some(app);
        taken
    }

    /// Takes the samples of recorders up to `until`. All events before `until` are done.
    #[cold]
    fn process_marks(&mut self, until: Instant) {
        while self.next_mark <= until {
            let at = self.next_mark;
            match self.schedule.take() {
                Some(Mark::Sample(interval)) => self.sample(at, interval),
                Some(Mark::WindowBegins) => {
                    self.fabric.paths.iter_mut().for_each(record::PathRecorder::window_begins);
                    self.fabric.crossings.window_begins();
                    self.events = self.congestion_events();
                    for (link, recorder) in self.fabric.links.iter().zip(&mut self.link_recorders) {
                        recorder.window_begins(at, &link.element);
                    }
                }
                Some(Mark::WindowEnds) => {
                    self.fabric.paths.iter_mut().for_each(|p| p.window_ends(self.window));
                    self.fabric.crossings.window_ends();
                    let now = self.congestion_events();
                    for (events, now) in self.events.iter_mut().zip(now) {
                        *events = events.zip(now).map(|(before, now)| now.saturating_sub(before));
                    }
                    for (link, recorder) in self.fabric.links.iter().zip(&mut self.link_recorders) {
                        recorder.window_ends(at, &link.element);
                    }
                }
                None => return,
            }
            self.next_mark = self.schedule.next();
        }
    }

    /// Congestion events of each flow's sender so far.
    fn congestion_events(&self) -> Vec<Option<u64>> {
        let of = |host: usize| self.hosts[host].transport.probe().congestion_events;
        self.senders.iter().map(|sender| sender.map(of)).collect()
    }

    fn sample(&mut self, at: Instant, interval: Interval) {
        for (flow, series) in self.series.iter_mut().enumerate() {
            let probe = |host: usize| self.hosts[host].transport.probe().into();
            let sender = self.senders[flow].map_or(SenderSample::default(), probe);
            series.push(FlowStep::of(&mut self.fabric.paths[2 * flow], sender));
        }
        self.intervals.push(interval);
        for (link, recorder) in self.fabric.links.iter_mut().zip(&mut self.link_recorders) {
            recorder.sample(at, interval.end, &mut link.element);
        }
    }
}

/// Sends the packets that a transport has ready on its host's link. Returns whether there were any.
#[inline(always)]
fn transmit(
    now: Instant,
    host: &mut Host,
    fabric: &mut Fabric,
    addresses: &BTreeMap<IpAddr, u32>,
    simultaneous: &mut u64,
) -> bool {
    let before = *simultaneous;
    while *simultaneous < LIVELOCK {
        let (slot, Slot { datagram: place, meta }) = fabric.packets.vacant(host.path);
        let polled = host.transport.poll_transmit_into(now, place);
        let Some(datagram) = place.as_mut().filter(|_| polled != Sent::Nothing) else { break };
        let from = Sending { host: host.number as usize, uplink: host.uplink, path: host.path };
        if !is_at(&datagram.dst, &host.last_to.0) {
            host.last_to = look_up(datagram.dst.ip(), addresses);
        }
        let (len, ecn) = (datagram.ip_len() as u32, datagram.ecn);
        let has_data = !datagram.payload.is_empty();
        let uid = fabric.cost.packets as u32;
        *meta = Meta { sent: now, path: host.path, has_data, uid, ..*meta };
        let next_free = meta.next_free;
        if host.uses_quick_start {
            fabric.packets.next_option = host.transport.poll_quick_start();
        }
        let outgoing = Outgoing { slot, next_free, len, to: host.last_to.1, ecn, has_data };
        let is_taken = fabric.send(now, from, outgoing);
        if host.watches_device && has_data && is_taken {
            host.transport.on_device(now, len, fabric.empties_at(now, from.uplink));
        }
        host.sent = host.sent.wrapping_add(1);
        *simultaneous += 1;
        if polled == Sent::Last {
            break;
        }
    }
    *simultaneous > before
}

/// Whether a socket address has this IP address.
#[inline]
fn is_at(at: &SocketAddr, ip: &IpAddr) -> bool {
    match (at, ip) {
        (SocketAddr::V4(at), IpAddr::V4(ip)) => at.ip() == ip,
        (SocketAddr::V6(at), IpAddr::V6(ip)) => at.ip() == ip,
        _ => false,
    }
}

/// The host with an address, or [`u32::MAX`] if there is none.
#[cold]
fn look_up(ip: IpAddr, addresses: &BTreeMap<IpAddr, u32>) -> (IpAddr, u32) {
    (ip, addresses.get(&ip).copied().unwrap_or(u32::MAX))
}
