//! Decides how a connection ends, and remembers why it did (RFC 4340 section 8.3).

mod refusals;

use udccp_base::Duration;
use udccp_wire::ResetCode;

use super::timers::Retries;
use crate::error::CloseReason;
use crate::state::State;
use refusals::Refusals;
pub(super) use refusals::{Refusal, Refused};

/// Bytes of Error Text that are kept.
const LONGEST_TEXT: usize = 256;

/// The end of one connection: what both applications want, and what was sent and received last.
#[derive(Clone, Debug, Default)]
pub(super) struct Ending {
    /// The application has called `close`.
    closes: bool,
    /// The application has let go of the id.
    is_released: bool,
    /// The peer's application reads no more.
    peer_stopped_reading: bool,
    /// The peer has had its time to confirm a close.
    is_unconfirmed: bool,
    retries: Retries,
    reason: Option<CloseReason>,
    /// Code and data of the Reset that we ended the connection with.
    reset_sent: Option<(ResetCode, [u8; 3])>,
    /// Error Text of the peer's Reset.
    #[expect(clippy::box_collection, reason = "few connections get one, and there are many")]
    reset_text: Option<Box<String>>,
    refusals: Refusals,
}

impl Ending {
    /// The application closes; false where it had before.
    pub(super) fn close(&mut self) -> bool {
        !core::mem::replace(&mut self.closes, true)
    }

    /// Whether the application has closed.
    #[inline]
    pub(super) fn is_closed_by_us(&self) -> bool {
        self.closes
    }

    /// The application lets go of the id.
    pub(super) fn release(&mut self) {
        self.is_released = true;
    }

    /// Whether the application has let go of the id.
    #[inline]
    pub(super) fn is_released(&self) -> bool {
        self.is_released
    }

    /// The peer's application reads no more; false where that was known.
    pub(super) fn peer_stops_reading(&mut self) -> bool {
        !core::mem::replace(&mut self.peer_stopped_reading, true)
    }

    /// Whether neither end has stopped the flow of data from here.
    #[inline]
    pub(super) fn lets_send(&self) -> bool {
        !self.closes && !self.peer_stopped_reading
    }

    /// Why the connection ended, once it has.
    #[inline]
    pub(super) fn reason(&self) -> Option<CloseReason> {
        self.reason
    }

    /// The connection ended for this reason.
    pub(super) fn end(&mut self, reason: CloseReason) {
        self.reason = Some(reason);
    }

    /// A first Close or CloseReq is to leave.
    pub(super) fn begin_closing(&mut self) {
        self.retries = Retries::default();
    }

    /// The peer has had its time to confirm.
    pub(super) fn stays_unconfirmed(&mut self) {
        self.is_unconfirmed = true;
    }

    /// Whether the peer has had its time to confirm.
    pub(super) fn is_unconfirmed(&self) -> bool {
        self.is_unconfirmed
    }

    /// Another Close or CloseReq is to leave; false where `most` have been sent again.
    pub(super) fn close_again(&mut self, most: u32) -> bool {
        self.retries.another(most)
    }

    /// When to send Close or CloseReq again: after the first wait, doubling to 64 s.
    pub(super) fn close_wait(&self, first: Duration) -> Duration {
        //= 4340-8.3-4
        self.retries.wait(first)
    }

    /// A Reset with this code and data left.
    pub(super) fn on_reset_sent(&mut self, code: ResetCode, data: [u8; 3]) {
        self.reset_sent = Some((code, data));
    }

    /// Code and data of the Reset that ended the connection, if it was ours.
    pub(super) fn reset_sent(&self) -> Option<(ResetCode, [u8; 3])> {
        self.reset_sent
    }

    /// The peer's Reset arrived in `state`, with this Error Text. Returns why the connection ends.
    pub(super) fn on_reset(
        &mut self,
        state: State,
        code: ResetCode,
        data: [u8; 3],
        text: &[u8],
    ) -> CloseReason {
        if !text.is_empty() {
            let text = String::from_utf8_lossy(&text[..text.len().min(LONGEST_TEXT)]);
            self.reset_text = Some(Box::new(text.into_owned()));
        }
        match code {
            // The peer forgot the connection when it answered our Close, and the answer was lost.
            ResetCode::NoConnection if matches!(state, State::Closing | State::CloseReq) => {
                self.who_closed()
            }
            ResetCode::Closed => self.who_closed(),
            code => CloseReason::PeerReset { code, data },
        }
    }

    /// Error Text of the Reset that ended the connection, if it was the peer's.
    pub(super) fn reset_text(&self) -> Option<&str> {
        self.reset_text.as_ref().map(|text| text.as_str())
    }

    /// The peer's Close arrived in `state`. Returns why the connection ends.
    pub(super) fn on_close(&self, state: State) -> CloseReason {
        if state.is_before_closereq() { CloseReason::PeerClose } else { self.who_closed() }
    }

    fn who_closed(&self) -> CloseReason {
        if self.closes { CloseReason::LocalClose } else { CloseReason::PeerClose }
    }

    /// The peer's host reports that nobody there takes a packet of ours.
    pub(super) fn on_refusal(&mut self, refused: Refused) -> Refusal {
        self.refusals.add(refused)
    }
}
