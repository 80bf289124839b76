//! Decides how a connection ends, and remembers why it did (RFC 4340 section 8.3).

mod refusals;

use udccp_base::Duration;
use udccp_wire::ResetCode;

use super::timers::Retries;
use crate::error::CloseReason;
use crate::state::State;
use refusals::Refusals;
pub(super) use refusals::{Refusal, Refused};

/// Maximum number of bytes of Error Text that are kept.
const LONGEST_TEXT: usize = 256;

/// State of a connection's end: what both applications want, and what was last sent and received.
#[derive(Clone, Debug, Default)]
pub(super) struct Ending {
    /// The application has called `close`.
    closes: bool,
    /// The application has released the id.
    is_released: bool,
    /// The peer's application has stopped reading.
    peer_stopped_reading: bool,
    /// The peer's time to confirm a close is over.
    is_unconfirmed: bool,
    /// Allocated when the connection ends, or seems to.
    late: Option<Box<Late>>,
}

/// Fields that a connection needs at its end.
#[derive(Clone, Debug, Default)]
struct Late {
    retries: Retries,
    reason: Option<CloseReason>,
    /// Code and data of the Reset with which we ended the connection.
    reset_sent: Option<(ResetCode, [u8; 3])>,
    /// Error Text of the peer's Reset.
    reset_text: String,
    refusals: Refusals,
}

impl Ending {
    fn late(&mut self) -> &mut Late {
        self.late.get_or_insert_default()
    }

    /// The application closes. Returns false if it already had.
    pub(super) fn close(&mut self) -> bool {
        !core::mem::replace(&mut self.closes, true)
    }

    /// Whether the application has closed.
    #[inline]
    pub(super) fn is_closed_by_us(&self) -> bool {
        self.closes
    }

    /// The application releases the id.
    pub(super) fn release(&mut self) {
        self.is_released = true;
    }

    /// Whether the application has released the id.
    #[inline]
    pub(super) fn is_released(&self) -> bool {
        self.is_released
    }

    /// The peer's application stops reading. Returns false if that was known.
    pub(super) fn peer_stops_reading(&mut self) -> bool {
        !core::mem::replace(&mut self.peer_stopped_reading, true)
    }

    /// Whether data may still be sent: we have not closed, and the peer's application still reads.
    #[inline]
    pub(super) fn lets_send(&self) -> bool {
        !self.closes && !self.peer_stopped_reading
    }

    /// Why the connection ended, once it has.
    #[inline]
    pub(super) fn reason(&self) -> Option<CloseReason> {
        self.late.as_ref().and_then(|late| late.reason)
    }

    /// The connection ended for this reason.
    pub(super) fn end(&mut self, reason: CloseReason) {
        self.late().reason = Some(reason);
    }

    /// The first Close or CloseReq is about to be sent.
    pub(super) fn begin_closing(&mut self) {
        self.late().retries = Retries::default();
    }

    /// The peer's time to confirm is over.
    pub(super) fn stays_unconfirmed(&mut self) {
        self.is_unconfirmed = true;
    }

    /// Whether the peer's time to confirm is over.
    pub(super) fn is_unconfirmed(&self) -> bool {
        self.is_unconfirmed
    }

    /// Counts another Close or CloseReq. Returns false if it was retransmitted `most` times.
    pub(super) fn close_again(&mut self, most: u32) -> bool {
        self.late().retries.another(most)
    }

    /// Wait before the next Close or CloseReq: at first `first`, then doubling up to 64 s.
    pub(super) fn close_wait(&self, first: Duration) -> Duration {
        //= 4340-8.3-4
        let retries = self.late.as_ref().map(|late| late.retries);
        retries.unwrap_or_default().wait(first)
    }

    /// A Reset with this code and data was sent.
    pub(super) fn on_reset_sent(&mut self, code: ResetCode, data: [u8; 3]) {
        self.late().reset_sent = Some((code, data));
    }

    /// Code and data of the Reset that ended the connection, if we sent it.
    pub(super) fn reset_sent(&self) -> Option<(ResetCode, [u8; 3])> {
        self.late.as_ref().and_then(|late| late.reset_sent)
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
            self.late().reset_text = text.into_owned();
        }
        match code {
            // The peer answered our Close and forgot the connection, but its answer was lost.
            ResetCode::NoConnection if matches!(state, State::Closing | State::CloseReq) => {
                self.who_closed()
            }
            ResetCode::Closed => self.who_closed(),
            code => CloseReason::PeerReset { code, data },
        }
    }

    /// Error Text of the Reset that ended the connection, if the peer sent it.
    pub(super) fn reset_text(&self) -> Option<&str> {
        self.late.as_ref().map(|late| late.reset_text.as_str()).filter(|text| !text.is_empty())
    }

    /// The peer's Close arrived in `state`. Returns why the connection ends.
    pub(super) fn on_close(&self, state: State) -> CloseReason {
        if state.is_before_closereq() { CloseReason::PeerClose } else { self.who_closed() }
    }

    fn who_closed(&self) -> CloseReason {
        if self.closes { CloseReason::LocalClose } else { CloseReason::PeerClose }
    }

    /// The peer's host reports by ICMP that nothing there accepts our packets.
    pub(super) fn on_refusal(&mut self, refused: Refused) -> Refusal {
        self.late().refusals.add(refused)
    }
}
