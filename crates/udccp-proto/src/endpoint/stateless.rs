//! Answers Requests without keeping state (RFC 4340 section 8.1.4). A temporary connection writes
//! the answer, and is created again when the client returns its Init Cookie.

use bytes::BytesMut;
use udccp_base::{Datagram, Ecn, Instant, Payload};
use udccp_wire::{
    Emitter, Header, HeaderKind, OptionRef, Options, PacketType, PacketView, PseudoHeader,
    ResetCode,
};

use super::Endpoint;
use super::cookie::{Cookie, OPTION_BYTES, tick_of, words_of, worth_keeping};
use super::listeners::Served;
use super::steps::Route;
use crate::connection::{Arrival, Connection, Credit, Ctx, Received};
use crate::features::{Negotiator, Role};
use crate::ids::ListenerId;
use crate::state::State;
use crate::tuple::FourTuple;

impl Endpoint {
    //= 4340-8.1.4-3
    /// Answers a Request with an Init Cookie, and keeps no state.
    pub(super) fn answer_without_state(
        &mut self,
        now: Instant,
        packet: &Received<'_>,
        tuple: FourTuple,
        listener: ListenerId,
    ) {
        let Some(service) = packet.view.service_code() else { return };
        let cookie = Cookie {
            made: tick_of(now),
            listener,
            service,
            isr: packet.seq,
            had_data: packet.view.data_len() > 0,
            request_words: words_of(packet.arrival.datagram.transport_len()),
            options: worth_keeping(packet.view.option_bytes()),
        };
        let Some(sealed) = cookie.seal(&self.secrets, &tuple) else {
            self.counters.rare().too_busy += 1;
            self.refuse(now, packet, ResetCode::TooBusy);
            return;
        };
        let mut again = Received::new(packet.view, packet.arrival);
        let Some((_, Some(answer))) = self.respond(&cookie, tuple, &mut again, sealed) else {
            return;
        };
        self.counters.rare().cookies_sent += 1;
        self.answer(answer);
    }

    /// Handles a packet of an unknown client: its Init Cookie may restore the connection.
    pub(super) fn resume(
        &mut self,
        now: Instant,
        packet: &Received<'_>,
        tuple: FourTuple,
    ) -> Route {
        use PacketType::{Ack, Close, DataAck, Sync, SyncAck};
        //= 4340-8.1.4-2
        let may_bring_one = matches!(packet.ty, Ack | DataAck | Close | Sync | SyncAck)
            && self.listeners.is_port_open(tuple.local, tuple.local_port);
        let sealed = if may_bring_one { cookie_of(packet) } else { Vec::new() };
        if sealed.is_empty() {
            return self.refuse(now, packet, ResetCode::NoConnection);
        }
        let listener_of = |service| match self.listeners.find(&tuple, service) {
            Served::By(listener) => Some(listener),
            _ => None,
        };
        let opened = Cookie::open(&self.secrets, now, &tuple, &sealed, listener_of);
        let Some(cookie) = opened.filter(|cookie| self.is_fresh(now, cookie)) else {
            self.counters.rare().bad_cookies += 1;
            return self.refuse(now, packet, ResetCode::BadInitCookie);
        };
        let is_full = self.is_full();
        let Some(listener) = self.listeners.get_mut(cookie.listener) else { return Route::Nowhere };
        if is_full || listener.is_accept_queue_full() {
            // Too Busy only answers Requests. The client retries by itself.
            self.counters.rare().too_busy += 1;
            return Route::Nowhere;
        }
        let lifetime = listener.cookie_lifetime;
        let request = request_of(&cookie, &tuple);
        let view = PacketView::new(&request.header, request.transport_len());
        let Ok(view) = &view else { return Route::Nowhere };
        let arrival = Arrival { datagram: &request, ..*packet.arrival };
        let mut again = Received::new(view, &arrival);
        let pieces = sealed.chunks(OPTION_BYTES).map(<[u8]>::to_vec).collect();
        let Some((mut connection, _)) = self.respond(&cookie, tuple, &mut again, pieces) else {
            return Route::Nowhere;
        };
        debug_assert_eq!(connection.state(), State::Respond, "only a Response has a cookie");
        connection.came_by_cookie(cookie.made + lifetime);
        if let Some(listener) = self.listeners.get_mut(cookie.listener) {
            listener.pending += 1;
        }
        self.counters.rare().cookies_taken += 1;
        Route::Connection(self.admit(cookie.made, connection))
    }

    /// Whether the cookie has not expired.
    fn is_fresh(&self, now: Instant, cookie: &Cookie) -> bool {
        let lifetime = self.listeners.get(cookie.listener).map(|l| l.cookie_lifetime);
        lifetime.is_some_and(|longest| now.saturating_since(cookie.made) <= longest)
    }

    /// A temporary connection that has received the cookie's Request, with its answer.
    fn respond(
        &mut self,
        cookie: &Cookie,
        tuple: FourTuple,
        request: &mut Received<'_>,
        sealed: Vec<Vec<u8>>,
    ) -> Option<(Connection, Option<Datagram>)> {
        let listener = self.listeners.get_mut(cookie.listener)?;
        let features = Negotiator::new(Role::Server, listener.preferences.clone());
        let config = listener.config.clone();
        let who = self.identity(tuple, Role::Server, cookie.service, Some(cookie.listener));
        let iss = self.secrets.initial_seqno(cookie.made, &tuple);
        let mut connection = Connection::new(who, config, features, iss, cookie.made);
        connection.start_receiving(cookie.isr);
        connection.refuse_handshake_data();
        let mut out = None;
        let mut ctx = Ctx {
            now: cookie.made,
            events: &mut self.events,
            arena: &mut self.arena,
            registry: &self.ccids,
        };
        connection.handle_packet(&mut ctx, request);
        // Count the length of the Request that arrived, even if it is rebuilt here: the answer is
        // then the same.
        connection.set_credit(Credit::of(4 * usize::from(cookie.request_words)));
        if connection.state() == State::Respond {
            connection.give_cookies(sealed);
        }
        connection.poll_any(&mut ctx, &mut out);
        Some((connection, out))
    }
}

/// The data of a packet's Init Cookie options, joined.
fn cookie_of(packet: &Received<'_>) -> Vec<u8> {
    let mut sealed = Vec::new();
    for option in packet.view.options().map_while(Result::ok) {
        if let OptionRef::InitCookie(part) = option {
            sealed.extend_from_slice(part);
        }
    }
    sealed
}

/// Rebuilds the relevant parts of the Request.
fn request_of(cookie: &Cookie, tuple: &FourTuple) -> Datagram {
    let header = Header {
        src_port: tuple.remote_port,
        dst_port: tuple.local_port,
        ccval: 0,
        cscov: 0,
        x: true,
        seq: cookie.isr,
        kind: HeaderKind::Request { service: cookie.service },
    };
    let mut buffer = BytesMut::new();
    let mut emitter = Emitter::new(&mut buffer, &header);
    for option in Options::new(&cookie.options).map_while(Result::ok) {
        // They fitted in a Request before.
        let _ = emitter.option(&option);
    }
    let payload = Payload::Zeros(u32::from(cookie.had_data));
    let (src, dst) = (tuple.remote, tuple.local);
    emitter.finish(&PseudoHeader::new(src.ip(), dst.ip()), &[], payload.len());
    let (protocol, ecn, header) = (Datagram::DCCP, Ecn::NotEct, buffer.freeze().into());
    Datagram { src, dst, protocol, ecn, header, payload }
}
