//! The event loop.

mod crossing;
mod marks;
mod paced;
mod transfers;

use std::collections::BTreeMap;

use core::sync::atomic::{AtomicBool, Ordering};

use udccp_base::{Datagram, Duration, Instant, Sent};
use udccp_link::Packet;

use crate::address::{Directory, IpVersion};
use crate::config::RunConfig;
use crate::error::SimError;
use crate::fabric::{Fabric, Outgoing, Sending};
use crate::hash::Kind;
use crate::host::{Destination, Host, Lifetime, sender_of_pair};
use crate::names::Names;
use crate::packet::{Meta, PacketHandle, Slot};
use crate::record::{Interval, LinkRecorder, Schedule, Series};
use crate::source::End;
use crate::transfers::Maker;

/// More packets and events than this at the same time indicate a livelock. The number is six
/// windows of 10 Gbit/s times 200 ms, all sent at once.
const LIVELOCK: u64 = 1 << 20;

/// Simulated time between two checks of the flag that stops a run: at 10 Gbit/s some milliseconds.
const STOP_CHECK: Duration = Duration::from_millis(5);

/// Why a run ends early. Boxed, which keeps the result of the usual case small.
type Stop = Box<SimError>;

/// A running simulation.
pub(crate) struct Engine {
    pub(crate) hosts: Vec<Host>,
    pub(crate) fabric: Fabric,
    directory: Directory,
    /// Makers of the transports of flows whose transports exist only while the flow is active.
    makers: BTreeMap<usize, Maker>,
    pub(crate) names: Names,
    pub(crate) schedule: Schedule,
    /// Recorders of the links between routers, which come first.
    pub(crate) link_recorders: Vec<LinkRecorder>,
    /// One for each flow, so that each is freed when it has become a result.
    pub(crate) series: Vec<Series>,
    /// The intervals of all series.
    pub(crate) intervals: Vec<Interval>,
    /// For each flow, the host that has its congestion state, if there is one.
    senders: Vec<Option<u32>>,
    /// Congestion events of each flow: those before the measured window until it ends, then those
    /// in it.
    pub(crate) events: Vec<Option<u64>>,
    pub(crate) window: Duration,
    /// The end of the run.
    end: Instant,
    next_mark: Instant,
    /// Why the run ends early, until the event loop sees that [`Fabric::horizon`] is now.
    failure: Option<Stop>,
    now: Instant,
    /// Events at the time `now` so far.
    simultaneous: u64,
}

/// What [`Engine::new`] needs.
pub(crate) struct Parts {
    pub(crate) hosts: Vec<Host>,
    pub(crate) fabric: Fabric,
    /// Names of all components, hosts first.
    pub(crate) names: Names,
    /// For each flow, the host that has its congestion state, if there is one.
    pub(crate) senders: Vec<Option<u32>>,
    /// Makers of the transports of these flows, which create them when the flow starts.
    pub(crate) makers: BTreeMap<usize, Maker>,
    /// The IP version of the hosts' addresses.
    pub(crate) ip: IpVersion,
}

impl Engine {
    pub(crate) fn new(parts: Parts, run: &RunConfig<'_>) -> Self {
        let Parts { hosts, fabric, names, senders, makers, ip } = parts;
        let directory = Directory { ip, hosts: hosts.len() };
        let link_recorders = (0..fabric.between_routers).map(|_| LinkRecorder::default()).collect();
        let schedule = Schedule::new(run.duration, run.interval, &run.measure);
        let series = senders.iter().map(|_| Series::with_capacity(schedule.samples())).collect();
        let intervals = Vec::with_capacity(schedule.samples());
        let mut engine = Self {
            hosts,
            fabric,
            directory,
            makers,
            names,
            schedule,
            link_recorders,
            series,
            intervals,
            senders,
            events: Vec::new(),
            window: run.measure.end - run.measure.start,
            end: Instant::ZERO + run.duration,
            next_mark: Instant::ZERO,
            failure: None,
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
        loop {
            let (due, component) = self.fabric.events.earliest();
            if due >= self.fabric.horizon {
                self.check()?;
                if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                    return Err(Box::new(SimError::Stopped { at: self.now }));
                }
                if due >= end {
                    return Ok(());
                }
                self.process_marks(due);
                let next_check = if stop.is_some() { due + STOP_CHECK } else { end };
                // Observers are checked after every event.
                self.fabric.horizon = match self.fabric.observer {
                    Some(_) => Instant::ZERO,
                    None => self.next_mark.min(next_check).min(end),
                };
            }
            if self.advance(due, component) {
                self.dispatch(component);
            }
        }
    }

    /// Ends the run before the next event.
    #[cold]
    fn fail(&mut self, stop: Stop) {
        self.failure.get_or_insert(stop);
        self.fabric.horizon = Instant::ZERO;
    }

    /// Processes the event that is due, which is the first in the queue.
    #[inline(always)]
    fn dispatch(&mut self, component: usize) {
        let first_link = self.fabric.first_link;
        let (link, is_queued) = match component.checked_sub(first_link) {
            Some(link) => (link, true),
            None => match self.host_event(component) {
                Some(link) => (link as usize, false),
                None => return,
            },
        };
        self.link_event(link, is_queued);
    }

    /// Returns the first error that the run or its observers found, if any.
    fn check(&mut self) -> Result<(), Stop> {
        match (self.failure.take(), &mut self.fabric.observer) {
            (Some(failure), _) => Err(failure),
            (None, Some(observer)) => observer.take_failure(),
            (None, None) => Ok(()),
        }
    }

    /// Advances time. Returns false, and fails, if time would go back or stand still.
    #[inline]
    fn advance(&mut self, due: Instant, component: usize) -> bool {
        if due > self.now {
            self.now = due;
            self.simultaneous = 0;
            return true;
        }
        self.count_simultaneous(due, component)
    }

    /// Counts another event at this time.
    fn count_simultaneous(&mut self, due: Instant, component: usize) -> bool {
        self.simultaneous += 1;
        if due < self.now {
            let what = format!("{} is due at {due}", self.names.component(component));
            self.fail(Box::new(SimError::Invariant { at: self.now, what }));
            return false;
        }
        self.check_livelock(component)
    }

    #[inline]
    fn check_livelock(&mut self, component: usize) -> bool {
        let is_alive = self.simultaneous < LIVELOCK;
        if !is_alive {
            self.livelock(component);
        }
        is_alive
    }

    #[cold]
    fn livelock(&mut self, component: usize) {
        let component = self.names.component(component);
        let (at, events) = (self.now, self.simultaneous);
        self.fail(Box::new(SimError::Livelock { at, events, component }));
    }

    /// Sets the horizon to what it was, unless the run is to end now.
    fn restore(&mut self, horizon: Instant) {
        if self.failure.is_none() {
            self.fabric.horizon = horizon;
        }
    }

    /// A packet reached a host, which then sends what it has. Returns the same as [`Self::drain`].
    #[inline(always)]
    fn arrive(&mut self, index: u32, handle: PacketHandle) -> Option<u32> {
        if handle.to() != index || !self.fabric.is_simple {
            return self.arrive_and_drain(index, handle);
        }
        let now = self.now;
        let Self { hosts, fabric, directory, simultaneous, .. } = self;
        let (slot, path) = (handle.slot(), handle.path());
        // The slot is free from here on, but nothing is sent before its packet has been read.
        let Slot { datagram: place, meta } = fabric.packets.release(slot, path);
        let recorder = &mut fabric.paths[path as usize];
        recorder.delivered(meta.sent, now, handle.len(), meta.has_data);
        if let Some(datagram) = place {
            datagram.ecn = handle.ecn();
        }
        let index = index as usize;
        let host = &mut hosts[index];
        host.arrived = host.arrived.wrapping_add(1);
        if host.tracks_delivery {
            host.transport.handle_datagram_in(now, place);
            return self.drain_and_notify(index);
        }
        let (bytes, idle_until) = host.transport.receive_in(now, place);
        if bytes > 0 {
            host.count_delivered(now, bytes);
            recorder.goodput(bytes);
        }
        if idle_until > now && host.app.is_none() {
            debug_assert!(host.is_idle_until(now, idle_until));
            let lifetime = host.lifetime;
            self.wake_host(index, idle_until, lifetime);
            return None;
        }
        let due = exchange(now, (index, host), fabric, *directory, simultaneous);
        let (uplink, lifetime) = (host.uplink, host.lifetime);
        self.schedule_host(index, due, uplink, lifetime)
    }

    /// The general case of [`Self::arrive`].
    #[cold]
    fn arrive_and_drain(&mut self, index: u32, handle: PacketHandle) -> Option<u32> {
        if self.arrive_any(index, handle) { self.drain(index as usize) } else { None }
    }

    /// A packet reached a host, which is to be drained. Returns whether that is its destination.
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
    fn host_event(&mut self, index: usize) -> Option<u32> {
        let timers = self.hosts[index].poll_timeouts();
        let due = timers[0].min(timers[1]);
        if due > self.now {
            // The timer was moved to a later time; see `drain`.
            self.fabric.events.set(index, due);
            return None;
        }
        self.fabric.cost.events += 1;
        self.fabric.hash.log(self.now, index, Kind::Wake, 0);
        if self.hosts[index].lifetime == Lifetime::NotStarted {
            self.create_transports(index);
        }
        self.hosts[index].handle_timeout(self.now, timers);
        self.drain(index)
    }

    /// Lets a host send everything, then sets its next wake-up. If the next event of all is one of
    /// its link, advances time to it and returns the link: that event is not in the queue.
    #[inline(always)]
    fn drain(&mut self, index: usize) -> Option<u32> {
        let now = self.now;
        let Self { hosts, fabric, directory, simultaneous, .. } = self;
        let host = &mut hosts[index];
        if host.tracks_delivery {
            return self.drain_and_notify(index);
        }
        let bytes = host.take_delivered(now);
        if bytes > 0 {
            fabric.paths[host.path as usize ^ 1].goodput(bytes);
        }
        let due = exchange(now, (index, host), fabric, *directory, simultaneous);
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
    ) -> Option<u32> {
        let (now, due) = (self.now, due.max(self.now));
        let first_departure = self.fabric.first_departure;
        if first_departure == Instant::MAX {
            self.wake_host(index, due, lifetime);
            self.check_livelock(index);
            return None;
        }
        self.fabric.first_departure = Instant::MAX;
        if first_departure == due {
            // At equal times, the link comes first.
            self.fabric.rearm(uplink as usize, first_departure);
        }
        self.wake_host(index, due, lifetime);
        if !self.check_livelock(index) || first_departure == due {
            return None;
        }
        let is_next = first_departure > now && first_departure < self.fabric.events.earliest().0;
        if is_next && first_departure < self.fabric.horizon {
            (self.now, self.simultaneous) = (first_departure, 0);
            return Some(uplink);
        }
        self.fabric.rearm(uplink as usize, first_departure);
        None
    }

    /// Sets the next event of a host that has sent everything, and frees it if it is over.
    #[inline(always)]
    fn wake_host(&mut self, index: usize, due: Instant, lifetime: Lifetime) {
        // A timer that moves to a later time, as most do with every packet, is left where it is.
        // The host then wakes once needlessly, which is cheaper than moving it every time.
        let armed = self.fabric.events.due(index);
        if due < armed || armed <= self.now {
            self.fabric.events.set(index, due);
        }
        if lifetime == Lifetime::Transfer {
            self.free_if_spent(index);
        }
    }

    /// Like [`Self::drain`], but leaves the next event of the link in the queue.
    #[cold]
    fn drain_later(&mut self, index: usize) {
        let horizon = core::mem::replace(&mut self.fabric.horizon, Instant::ZERO);
        self.drain(index);
        self.restore(horizon);
    }

    /// Like [`Self::drain`], for a pair whose source is notified of delivered data.
    #[inline(never)]
    fn drain_and_notify(&mut self, index: usize) -> Option<u32> {
        let arriving = self.hosts[index].path as usize ^ 1;
        let bytes = self.notify_source(index);
        if bytes > 0 {
            self.fabric.paths[arriving].goodput(bytes);
        }
        self.feed(index);
        loop {
            let Self { hosts, fabric, directory, simultaneous, .. } = self;
            let most = LIVELOCK.saturating_sub(*simultaneous);
            let sent = transmit(self.now, (index, &mut hosts[index]), fabric, *directory, most);
            *simultaneous += sent;
            if sent == 0 || sent == most || !self.feed(index) {
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
}

/// Lets a host send everything that it has, and returns when it has something to do again.
#[inline(always)]
fn exchange(
    now: Instant,
    (index, host): (usize, &mut Host),
    fabric: &mut Fabric,
    directory: Directory,
    simultaneous: &mut u64,
) -> Instant {
    host.feed(now);
    loop {
        let most = LIVELOCK.saturating_sub(*simultaneous);
        let sent = transmit(now, (index, host), fabric, directory, most);
        *simultaneous += sent;
        // There is room in the transport, and the application may have more data.
        let goes_on = 0 < sent && sent < most && host.feed(now);
        if !goes_on || !host.transport.may_transmit() {
            break;
        }
    }
    host.poll_timeout()
}

/// Sends the packets that a transport has ready on its host's link, at most `most`. Returns how
/// many there were.
#[inline(always)]
fn transmit(
    now: Instant,
    (index, host): (usize, &mut Host),
    fabric: &mut Fabric,
    directory: Directory,
    most: u64,
) -> u64 {
    let mut sent = 0;
    while sent < most {
        let (slot, Slot { datagram: place, meta }) = fabric.packets.vacant(host.path);
        let polled = host.transport.poll_transmit_into(now, place);
        let Some(datagram) = place.as_mut().filter(|_| polled != Sent::Nothing) else { break };
        let from = Sending { host: index, uplink: host.uplink, path: host.path };
        if !host.last_to.is_of(&datagram.dst) {
            host.last_to = look_up(datagram, directory);
        }
        let to = host.last_to;
        let (data, ecn) = (datagram.payload.len(), datagram.ecn);
        let (len, has_data) = ((to.headers() + datagram.header.len() + data) as u32, data > 0);
        *meta = Meta { sent: now, path: host.path, has_data, ..*meta };
        let next_free = meta.next_free;
        if host.uses_quick_start {
            fabric.packets.next_option = host.transport.poll_quick_start();
        }
        let watches = host.watches_device && has_data;
        let outgoing = Outgoing { slot, next_free, len, to: to.host, ecn, has_data, watches };
        if let Some(leaves) = fabric.send(now, from, outgoing) {
            host.transport.on_device(now, len, leaves);
        }
        host.sent = host.sent.wrapping_add(1);
        sent += 1;
        if polled == Sent::Last {
            break;
        }
    }
    sent
}

/// The destination of a datagram; its host is [`u32::MAX`] if no host has the address.
#[cold]
fn look_up(datagram: &Datagram, directory: Directory) -> Destination {
    let host = directory.host(datagram.dst.ip()).map_or(u32::MAX, |host| host as u32);
    Destination::new(datagram, host)
}
