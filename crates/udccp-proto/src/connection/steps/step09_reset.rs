//! Step 9: process Reset.

use udccp_wire::{PacketType, ResetCode};

use super::super::{Connection, Ctx, Received};
use super::{DROP, Flow, GO_ON};
use crate::error::CloseReason;
use crate::state::State;

/// Bytes of Error Text that are kept.
const LONGEST_TEXT: usize = 256;

impl Connection {
    /// The receiver of a Reset holds TIMEWAIT.
    pub(super) fn step_9_process_reset(
        &mut self,
        ctx: &mut Ctx<'_>,
        packet: &Received<'_>,
    ) -> Flow {
        if packet.ty != PacketType::Reset {
            return GO_ON;
        }
        let code = packet.view.reset_code().unwrap_or(ResetCode::Unspecified);
        let data = packet.view.reset_data().unwrap_or_default();
        let text = packet.payload().to_bytes();
        if !text.is_empty() {
            let text = String::from_utf8_lossy(&text[..text.len().min(LONGEST_TEXT)]);
            self.reset_text = Some(text.into());
        }
        let reason = match code {
            // The peer forgot the connection when it answered our Close, and the answer was lost.
            ResetCode::NoConnection if matches!(self.state, State::Closing | State::CloseReq) => {
                if self.wishes.closes {
                    CloseReason::LocalClose
                } else {
                    CloseReason::PeerClose
                }
            }
            ResetCode::Closed if self.wishes.closes => CloseReason::LocalClose,
            ResetCode::Closed => CloseReason::PeerClose,
            code => CloseReason::PeerReset { code, data },
        };
        //= 4340-8.3-3
        self.tear_down(ctx, State::TimeWait, reason);
        DROP
    }
}
