//! Steps 1 to 3 of RFC 4340 section 8.5: those that need no connection, or create one.

use udccp_base::{Datagram, Instant, Payload, QuickStart};
use udccp_wire::{
    PacketType, PacketView, PlainAck, PlainData, PseudoHeader, ResetCode, ServiceCode,
};

use super::listeners::{Intake, Served};
use super::ready::Ready;
use super::slots::Slot;
use super::timers::Timers;
use super::{Endpoint, out_of_the_blue};
use crate::connection::{Arrival, Connection, Handled, Identity, Received};
use crate::count::count;
use crate::features::{Negotiator, Role};
use crate::ids::{ConnectionId, ListenerId};
use crate::tuple::FourTuple;

/// Destination of a packet after step 3.
pub(super) enum Route {
    /// This connection.
    Connection(u32),
    /// None; the packet may have been answered.
    Nowhere,
}

impl Endpoint {
    /// Processes a datagram. `quick_start` has its Quick-Start option and its time to live.
    #[inline]
    pub(super) fn take_datagram(
        &mut self,
        now: Instant,
        datagram: &Datagram,
        quick_start: Option<(QuickStart, u8)>,
    ) {
        self.counters.datagrams_received += 1;
        if quick_start.is_none() && datagram.protocol == Datagram::DCCP {
            let taken = match &datagram.payload {
                Payload::Zeros(0) => self.take_plain_ack(now, datagram),
                Payload::Zeros(size) => self.take_plain_data(now, datagram, *size),
                Payload::Bytes(_) => false,
            };
            if taken {
                return;
            }
        }
        self.take_any(now, datagram, quick_start);
    }

    /// Like [`Self::take_datagram`]. Not inlined, so that the shorter paths have all registers.
    #[inline(never)]
    fn take_any(
        &mut self,
        now: Instant,
        datagram: &Datagram,
        quick_start: Option<(QuickStart, u8)>,
    ) {
        if datagram.protocol != Datagram::DCCP {
            self.counters.rare().malformed += 1;
            return;
        }
        let arrival = Arrival { datagram, quick_start, pressure: self.outside };
        match PacketView::of_usual(&datagram.header, datagram.transport_len()) {
            Some(view) if self.take_in_order(now, &view, &arrival) => {}
            Some(view) => self.run_steps(now, &view.clone(), &arrival.clone()),
            None => self.take_unusual(now, &arrival),
        }
    }

    /// Like [`Self::take_datagram`], for a packet with an unusual or invalid header.
    #[cold]
    fn take_unusual(&mut self, now: Instant, arrival: &Arrival<'_>) {
        let (header, len) = (&arrival.datagram.header, arrival.datagram.transport_len());
        match PacketView::new(header, len) {
            Ok(view) => self.run_steps(now, &view, arrival),
            Err(_) => self.counters.rare().malformed += 1,
        }
    }

    /// Processes the next packet in order, if it is of the same connection as the last packet.
    /// Returns whether it did. This suffices for nearly all packets, so it is all inlined.
    #[inline(always)]
    fn take_in_order(
        &mut self,
        now: Instant,
        view: &PacketView<'_>,
        arrival: &Arrival<'_>,
    ) -> bool {
        let ports = (view.src_port(), view.dst_port());
        let Some(index) = self.last_index(ports, arrival.datagram) else { return false };
        let Some((connection, mut ctx)) = self.as_usual_at(now, index) else { return false };
        if !connection.take_in_order(&mut ctx, view, arrival) {
            return false;
        }
        if let Some(Slot { connection: Some(connection), is_ready, .. }) = self.slots.slot(index) {
            let (timers, ready) = (&mut self.timers, &mut self.ready);
            follow_up::<false>(connection, is_ready, timers, ready, (now, index));
        }
        true
    }

    /// The same for Data of zeros, in fewer steps.
    #[inline(always)]
    fn take_plain_data(&mut self, now: Instant, datagram: &Datagram, size: u32) -> bool {
        let Some(data) = PlainData::read(&datagram.header) else { return false };
        let ports = (data.src_port, data.dst_port);
        let Some(index) = self.last_index(ports, datagram) else { return false };
        let (ecn, outside) = (datagram.ecn, self.outside);
        let Some(Slot { connection: Some(connection), is_ready, .. }) = self.slots.slot(index)
        else {
            return false;
        };
        let taken = connection.take_plain_data(now, &mut self.events, data, size, ecn, outside);
        if taken {
            let (timers, ready) = (&mut self.timers, &mut self.ready);
            follow_up::<true>(connection, is_ready, timers, ready, (now, index));
        }
        taken
    }

    /// The same for an Ack.
    #[inline(never)]
    fn take_plain_ack(&mut self, now: Instant, datagram: &Datagram) -> bool {
        let Some(ack) = PlainAck::read(&datagram.header) else { return false };
        let ports = (ack.src_port, ack.dst_port);
        let Some(index) = self.last_index(ports, datagram) else { return false };
        let (ecn, outside) = (datagram.ecn, self.outside);
        let Some(Slot { connection: Some(connection), is_ready, .. }) = self.slots.slot(index)
        else {
            return false;
        };
        let taken = connection.take_plain_ack(now, &ack, ecn, outside);
        if taken {
            let (timers, ready) = (&mut self.timers, &mut self.ready);
            follow_up::<false>(connection, is_ready, timers, ready, (now, index));
        }
        taken
    }

    /// The connection of the last packet, if this one belongs to it and needs no checksum.
    #[inline(always)]
    fn last_index(&self, ports: (u16, u16), datagram: &Datagram) -> Option<u32> {
        if !self.is_verified(datagram) {
            return None;
        }
        self.table.last(&self.slots, |tuple| is_of(ports, datagram, tuple))
    }

    fn run_steps(&mut self, now: Instant, view: &PacketView<'_>, arrival: &Arrival<'_>) {
        if !self.step_1_check_header(view, arrival.datagram) {
            return;
        }
        let mut packet = Received::new(view, arrival);
        if packet.ty == PacketType::Listen {
            return self.take_listen(now, &packet);
        }
        let index = match self.step_2_find_connection(now, &packet) {
            Route::Connection(index) => index,
            Route::Nowhere => return,
        };
        let Some((connection, mut ctx)) = self.connection_at(now, index) else { return };
        let handled = connection.handle_packet(&mut ctx, &mut packet);
        let id = connection.who.id;
        self.make_ready(index);
        match handled {
            Handled::Done => {}
            Handled::Accepted(listener) => self.accepted(listener, id),
            Handled::Refused(code) => {
                self.refuse(now, &packet, code);
            }
        }
    }

    /// Puts a connection into the accept queue of this listener.
    fn accepted(&mut self, listener: ListenerId, id: ConnectionId) {
        if let Some(listener) = self.listeners.get_mut(listener) {
            listener.ready.push_back(id);
            count!(self.counters, accepts += 1);
        }
    }

    /// Step 1: check header basics. `view` shows that the checks without checksum passed. Packets
    /// that fail are ignored, not answered.
    #[inline]
    fn step_1_check_header(&mut self, view: &PacketView<'_>, datagram: &Datagram) -> bool {
        //= 6773-3.3-2
        //= 6773-3.3-5
        //= 6773-3.3-7
        let is_right = self.is_verified(datagram) || has_right_checksum(view, datagram);
        //= 4340-9.1-1
        //= 4340-9.1-2
        if !is_right {
            self.counters.rare().bad_checksum += 1;
        }
        is_right
    }

    /// Whether the checksum was checked before: inside UDP, that of UDP serves instead (RFC 6773
    /// section 3.3).
    #[inline]
    pub(super) fn is_verified(&self, datagram: &Datagram) -> bool {
        self.receive_checksum_offload || datagram.dst.port() != 0
    }

    /// Step 2: check ports and process TIMEWAIT state.
    fn step_2_find_connection(&mut self, now: Instant, packet: &Received<'_>) -> Route {
        if let Some(index) = self.table.last(&self.slots, |tuple| packet.is_of(tuple)) {
            // The normal case: the same connection as for the packet before.
            if self.slots.at(index).is_some_and(|c| c.is_alive()) {
                return Route::Connection(index);
            }
        }
        let tuple = packet.tuple();
        match self.table.find(&self.slots, &tuple) {
            Some(index) if self.slots.at(index).is_some_and(|c| c.is_alive()) => {
                Route::Connection(index)
            }
            // The Close was sent again before the Reset that answers it. Another Reset would
            // overtake that one, with different content.
            Some(index) if self.slots.at(index).is_some_and(|c| c.has_reset_to_send()) => {
                Route::Nowhere
            }
            // The connection has just ended, and the endpoint has not been drained since.
            Some(index) if self.slots.at(index).is_some_and(|c| c.leaves_its_ports()) => {
                self.table.remove(&tuple, index);
                self.step_3_process_listen(now, packet, tuple)
            }
            Some(_) => self.refuse(now, packet, ResetCode::NoConnection),
            None if self.table.is_taken(&self.slots, &tuple) => {
                self.refuse(now, packet, ResetCode::NoConnection)
            }
            None => self.step_3_process_listen(now, packet, tuple),
        }
    }

    /// Step 3: process LISTEN state.
    fn step_3_process_listen(
        &mut self,
        now: Instant,
        packet: &Received<'_>,
        tuple: FourTuple,
    ) -> Route {
        let Some(service) = packet.view.service_code().filter(|_| packet.ty == PacketType::Request)
        else {
            return self.resume(now, packet, tuple);
        };
        let listener = match self.listeners.find(&tuple, service) {
            Served::By(listener) => listener,
            //= 4340-8.1.2-4
            //= 4340-8.1.2-8
            //= 4340-8.1.3-1
            //= 5595-3.3.1-4
            Served::BadService => {
                self.counters.rare().bad_service += 1;
                return self.refuse(now, packet, ResetCode::BadServiceCode);
            }
            //= 5595-3.3.1-1
            Served::Nobody => return self.refuse(now, packet, ResetCode::ConnectionRefused),
        };
        let is_full = self.is_full();
        let Some(listener_entry) = self.listeners.get_mut(listener) else { return Route::Nowhere };
        match listener_entry.intake() {
            Intake::Keep if !is_full => {}
            Intake::Cookie if !is_full => {
                self.answer_without_state(now, packet, tuple, listener);
                return Route::Nowhere;
            }
            _ => {
                self.counters.rare().too_busy += 1;
                return self.refuse(now, packet, ResetCode::TooBusy);
            }
        }
        listener_entry.pending += 1;
        let is_invited = listener_entry.invitation.is_some();
        let features = Negotiator::new(Role::Server, listener_entry.preferences.clone());
        let config = listener_entry.config.clone();
        let who = self.identity(tuple, Role::Server, service, Some(listener));
        let iss = self.secrets.initial_seqno(now, &tuple);
        let mut connection = Connection::new(who, config, features, iss, now);
        connection.start_receiving(packet.seq);
        if is_invited {
            //= 5596-2.2.2-1
            self.listeners.end_invitation(listener);
            self.note_rare_wake();
        }
        Route::Connection(self.admit(now, connection))
    }

    /// Answers a packet without a connection, within the rate limit, unless it is a Reset.
    pub(super) fn refuse(&mut self, now: Instant, packet: &Received<'_>, code: ResetCode) -> Route {
        if code != ResetCode::PacketError {
            self.counters.rare().no_connection += 1;
        }
        if packet.ty == PacketType::Reset && code != ResetCode::PacketError {
            return Route::Nowhere;
        }
        //= 4340-8.1.3-2
        if !self.resets.allow(now, self.resets_per_sec) && !self.owes_answer(packet) {
            self.counters.rare().out_of_the_blue_resets_limited += 1;
            return Route::Nowhere;
        }
        self.counters.rare().out_of_the_blue_resets_sent += 1;
        let (code, data) = match code {
            ResetCode::PacketError => (code, [packet.ty.number(), 0, 0]),
            //= 4340-7.5.4-14
            ResetCode::NoConnection if packet.ty == PacketType::Sync => {
                self.resets.sent_to(&packet.tuple()).unwrap_or((code, [0; 3]))
            }
            _ => (code, [0; 3]),
        };
        if !matches!(code, ResetCode::NoConnection | ResetCode::PacketError) {
            self.resets.note(packet.tuple(), code, data);
        }
        let reset = out_of_the_blue::reset_for(packet, code, data, &mut self.arena);
        self.answer(reset);
        Route::Nowhere
    }

    /// Whether the packet is from a peer that may not know yet that our connection has ended.
    fn owes_answer(&mut self, packet: &Received<'_>) -> bool {
        use PacketType::{Close, CloseReq, Response, Sync};
        let may_be = matches!(packet.ty, Response | Sync | Close | CloseReq);
        may_be && self.resets.take_owed(&packet.tuple())
    }

    pub(super) fn identity(
        &self,
        tuple: FourTuple,
        role: Role,
        service: ServiceCode,
        listener: Option<ListenerId>,
    ) -> Identity {
        Identity { id: self.slots.next_id(), tuple, role, service, listener }
    }
}

/// A connection has processed a packet in order, and may have something to send. If it has not, it
/// need not wait for its turn to find that out, unless more packets are likely to come first: those
/// that are not `ALONE` come in buffers, and one turn serves them all.
#[inline(always)]
fn follow_up<const ALONE: bool>(
    connection: &Connection,
    is_ready: &mut bool,
    timers: &mut Timers,
    ready: &mut Ready,
    (now, index): (Instant, u32),
) {
    if *is_ready {
        return;
    }
    let may_settle = ALONE || connection.reports_rarely();
    if may_settle && connection.has_nothing_to_send(now) {
        let at = connection.usual_timeout().unwrap_or_else(|| connection.poll_timeout().into());
        timers.set(index, at);
        return;
    }
    *is_ready = true;
    ready.push_back(index);
}

/// Whether a packet with these ports belongs to the connection with this tuple.
#[inline(always)]
fn is_of((src, dst): (u16, u16), datagram: &Datagram, tuple: &FourTuple) -> bool {
    // Both ports in one comparison.
    let both = |src: u16, dst: u16| u32::from(src) << 16 | u32::from(dst);
    both(src, dst) == both(tuple.remote_port, tuple.local_port)
        && datagram.src == tuple.remote
        && datagram.dst == tuple.local
}

fn has_right_checksum(view: &PacketView<'_>, datagram: &Datagram) -> bool {
    let pseudo = PseudoHeader::new(datagram.src.ip(), datagram.dst.ip());
    let (rest, zeros): (&[u8], _) = match &datagram.payload {
        Payload::Bytes(b) => (b, 0),
        Payload::Zeros(n) => (&[], *n as usize),
    };
    view.verify_checksum(&pseudo, rest, zeros)
}
