//! Keeps what the handshake needs: Init Cookies, data of the Request, retransmissions (RFC 4340
//! section 8.1).

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
    /// How often the Request, or the Ack in PARTOPEN, has been sent again.
    retries: Retries,
}

/// What few handshakes have.
#[derive(Clone, Debug, Default)]
struct Rare {
    /// Init Cookies: of the Response, to be echoed until the server has one; or to be put on it.
    cookies: Vec<Vec<u8>>,
    /// Until then the Init Cookie that made the connection could make another.
    cookie_until: Option<Instant>,
    /// Data of the Request, until the Response.
    request_data: Option<Payload>,
}

impl Handshake {
    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    fn drop_cookies(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.cookies = Vec::new();
        }
    }

    /// Init Cookies to be put on the packet that leaves.
    #[inline]
    pub(super) fn cookies(&self) -> &[Vec<u8>] {
        self.rare.as_ref().map_or(&[], |rare| &rare.cookies)
    }

    /// Bytes of options that they take.
    pub(super) fn cookie_bytes(&self) -> usize {
        self.cookies().iter().map(|cookie| cookie.len() + OPTION_HEADER).sum()
    }

    /// The Response has this Init Cookie, which is to be echoed.
    pub(super) fn keep_cookie(&mut self, cookie: &[u8]) {
        self.rare().cookies.push(cookie.to_vec());
    }

    /// The Response carries these Init Cookies.
    pub(super) fn give_cookies(&mut self, cookies: Vec<Vec<u8>>) {
        self.rare().cookies = cookies;
    }

    /// An Init Cookie, good until then, made the connection.
    pub(super) fn came_by_cookie(&mut self, until: Instant) {
        self.rare().cookie_until = Some(until);
        self.drop_cookies();
    }

    /// Until when an Init Cookie could make the connection again.
    pub(super) fn cookie_until(&self) -> Option<Instant> {
        self.rare.as_ref()?.cookie_until
    }

    /// A Request or Response has data. Whether it may be taken: once, from the first such packet.
    pub(super) fn takes_data(&mut self) -> bool {
        !core::mem::replace(&mut self.is_data_taken, true)
    }

    /// No data of a Request or Response may be taken.
    pub(super) fn refuse_data(&mut self) {
        self.is_data_taken = true;
    }

    /// Every Request carries this data.
    pub(super) fn set_request_data(&mut self, data: Payload) {
        self.rare().request_data = Some(data);
    }

    /// Data of the Request that leaves.
    pub(super) fn request_data(&self) -> Payload {
        let data = self.rare.as_ref().and_then(|rare| rare.request_data.clone());
        data.unwrap_or(Payload::EMPTY)
    }

    /// What became of the Request's data is known, or nobody will know; it is needed no longer.
    pub(super) fn take_request_data(&mut self) -> Option<Payload> {
        self.rare.as_mut()?.request_data.take()
    }

    /// Whether no Request has left but the first.
    pub(super) fn is_first_request(&self) -> bool {
        self.retries.is_first()
    }

    /// The Request is to leave again, unless it has `most` times.
    pub(super) fn request_again(&mut self, most: u32) -> bool {
        self.retries.another(most)
    }

    /// A server invites us (RFC 5596 section 2.2.3). Whether the Request is to leave again: the
    /// first such packet makes it, since the Request before may have met a closed door.
    pub(super) fn on_listen(&mut self) -> bool {
        let is_first = !core::mem::replace(&mut self.was_invited, true);
        if is_first {
            self.retries.add();
        }
        is_first
    }

    /// When to send the Request again.
    pub(super) fn request_timer(&self, now: Instant, initial: Duration) -> Instant {
        //= 4340-8.1.1-1
        now + self.retries.wait(initial)
    }

    /// The Response is here: PARTOPEN.
    pub(super) fn on_response(&mut self) {
        self.retries = Retries::default();
    }

    /// Another Ack leaves in PARTOPEN.
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

    /// Whether it was ever done.
    pub(super) fn was_open(&self) -> bool {
        self.was_open
    }

    /// A packet of this type acknowledged `ackno`. Whether an Ack should greet the client: one that
    /// goes on acknowledging our Response has not seen us in OPEN yet.
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
