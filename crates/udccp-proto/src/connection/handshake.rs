//! State of the handshake: Init Cookies, data of the Request, retransmissions (RFC 4340 section
//! 8.1).

use udccp_base::{Duration, Instant, Payload};
use udccp_wire::{PacketType, Seqno};

use super::timers::Retries;

/// First timer in PARTOPEN (section 8.1.5).
pub(super) const PARTOPEN_TIMER: Duration = Duration::from_millis(200);

/// Type and length of an option, in bytes.
const OPTION_HEADER: usize = 2;

/// The handshake of one connection, at either end.
#[derive(Clone, Debug, Default)]
pub(super) struct Handshake {
    rare: Option<Box<Rare>>,
    /// A server's greatest number sent before OPEN, until the client acknowledges a greater one.
    greet_after: Option<Seqno>,
    is_data_taken: bool,
    was_open: bool,
    was_invited: bool,
    /// How often the Request, or the Ack in PARTOPEN, has been retransmitted.
    retries: Retries,
}

/// Fields that few handshakes need.
#[derive(Clone, Debug, Default)]
struct Rare {
    /// Init Cookies. A client echoes those of the Response until the server has one; a server puts
    /// them on its Response.
    cookies: Vec<Vec<u8>>,
    /// Until then, the Init Cookie that created the connection could create another.
    cookie_until: Option<Instant>,
    /// Data of the Request, until the Response arrives.
    request_data: Option<Payload>,
}

impl Handshake {
    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Forgets the Init Cookies.
    pub(super) fn drop_cookies(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.cookies = Vec::new();
        }
    }

    /// Init Cookies for the packet that is being sent.
    #[inline]
    pub(super) fn cookies(&self) -> &[Vec<u8>] {
        self.rare.as_ref().map_or(&[], |rare| &rare.cookies)
    }

    /// Bytes of options that the Init Cookies take.
    pub(super) fn cookie_bytes(&self) -> usize {
        self.cookies().iter().map(|cookie| cookie.len() + OPTION_HEADER).sum()
    }

    /// The Response has this Init Cookie, which we have to echo.
    pub(super) fn keep_cookie(&mut self, cookie: &[u8]) {
        self.rare().cookies.push(cookie.to_vec());
    }

    /// Sets the Init Cookies of the Response.
    pub(super) fn give_cookies(&mut self, cookies: Vec<Vec<u8>>) {
        self.rare().cookies = cookies;
    }

    /// The connection was created from an Init Cookie that is valid until `until`.
    pub(super) fn came_by_cookie(&mut self, until: Instant) {
        self.rare().cookie_until = Some(until);
        self.drop_cookies();
    }

    /// Until when an Init Cookie could create the connection again.
    pub(super) fn cookie_until(&self) -> Option<Instant> {
        self.rare.as_ref()?.cookie_until
    }

    /// A Request or Response has data. Returns whether it may be accepted: only from the first such
    /// packet.
    pub(super) fn takes_data(&mut self) -> bool {
        !core::mem::replace(&mut self.is_data_taken, true)
    }

    /// No data of a Request or Response may be accepted.
    pub(super) fn refuse_data(&mut self) {
        self.is_data_taken = true;
    }

    /// Sets the data of every Request.
    pub(super) fn set_request_data(&mut self, data: Payload) {
        self.rare().request_data = Some(data);
    }

    /// Data for the Request that is being sent.
    pub(super) fn request_data(&self) -> Payload {
        let data = self.rare.as_ref().and_then(|rare| rare.request_data.clone());
        data.unwrap_or(Payload::EMPTY)
    }

    /// Removes the Request's data: its fate is known, or will stay unknown.
    pub(super) fn take_request_data(&mut self) -> Option<Payload> {
        self.rare.as_mut()?.request_data.take()
    }

    /// Whether the Request has not been retransmitted yet.
    pub(super) fn is_first_request(&self) -> bool {
        self.retries.is_first()
    }

    /// Counts a retransmission of the Request. Returns false if it was retransmitted `most` times.
    pub(super) fn request_again(&mut self, most: u32) -> bool {
        self.retries.another(most)
    }

    /// A server invites us (RFC 5596 section 2.2.3). Returns whether to retransmit the Request:
    /// only for the first Listen, since a firewall may have dropped the Request before.
    pub(super) fn on_listen(&mut self) -> bool {
        let is_first = !core::mem::replace(&mut self.was_invited, true);
        if is_first {
            self.retries.add();
        }
        is_first
    }

    /// When to retransmit the Request.
    pub(super) fn request_timer(&self, now: Instant, initial: Duration) -> Instant {
        //= 4340-8.1.1-1
        now + self.retries.wait(initial)
    }

    /// The Response has arrived: the connection enters PARTOPEN.
    pub(super) fn on_response(&mut self) {
        self.retries = Retries::default();
    }

    /// Counts another Ack in PARTOPEN.
    pub(super) fn acknowledge_again(&mut self) {
        self.retries.add();
    }

    /// When to send another Ack in PARTOPEN, unless the server answers.
    pub(super) fn partopen_timer(&self, now: Instant) -> Instant {
        //= 4340-8.1.5-3
        now + self.retries.wait(PARTOPEN_TIMER)
    }

    /// The client's handshake is done.
    pub(super) fn finish_client(&mut self) {
        self.was_open = true;
        self.drop_cookies();
    }

    /// The server's handshake is done, after it sent `gss`.
    pub(super) fn finish_server(&mut self, gss: Seqno) {
        self.was_open = true;
        self.greet_after = Some(gss);
    }

    /// Whether the handshake was ever finished.
    pub(super) fn was_open(&self) -> bool {
        self.was_open
    }

    /// A packet of this type acknowledged `ackno`. Returns whether to send an Ack to the client:
    /// while it acknowledges our Response, it has seen no packet that we sent in OPEN.
    #[inline]
    pub(super) fn owes_greeting(&mut self, ty: PacketType, ackno: Seqno) -> bool {
        let Some(greet_after) = self.greet_after else { return false };
        if ackno.is_after(greet_after) {
            self.greet_after = None;
            return false;
        }
        ty == PacketType::Ack
    }
}
