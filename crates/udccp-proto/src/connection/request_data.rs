//! Sends data on the Request. That saves a round-trip time, but the data may be refused (RFC 4340
//! section 5.1).

use core::ops::ControlFlow;

use udccp_base::Payload;

use super::options::ParsedOptions;
use super::{Connection, Ctx};
use crate::ackvec::{DropState, for_each_drop};
use crate::ccid::PeerDrops;
use crate::event::{DropReason, EventKind};

/// Bytes reserved for the options of a Request.
const OPTION_ROOM: usize = 256;

/// Longest fixed header of a Request.
const REQUEST_HEADER: usize = 20;

impl Connection {
    /// The longest data that a Request of this connection may carry, in bytes.
    pub(crate) fn request_data_max(&self) -> usize {
        self.path.max_transport_len().saturating_sub(REQUEST_HEADER + OPTION_ROOM)
    }

    /// Sets the data of every Request.
    pub(crate) fn set_request_data(&mut self, data: Payload) {
        self.handshake.set_request_data(data);
    }

    /// The Response shows that the Request arrived, and whether its data was dropped.
    pub(super) fn on_request_answered(&mut self, ctx: &mut Ctx<'_>, parsed: &ParsedOptions<'_>) {
        let Some(data) = self.handshake.take_request_data() else { return };
        self.counters.data_bytes_sent += data.len() as u64;
        let blocks = parsed.data_dropped.get().unwrap_or_default();
        let mut drops = PeerDrops::default();
        // If the server took the data of the first Request, it refuses that of copies. So a report
        // counts only if there was a single Request.
        if self.seq.gss == self.seq.iss {
            for_each_drop(self.seq.iss, blocks, |state, _, _| {
                if let DropState::Dropped(code) = state {
                    drops.add(code, 1);
                }
                ControlFlow::Break(())
            });
        }
        self.report_peer_drops(ctx, drops);
    }

    /// The handshake failed: the data is reported as not sent.
    pub(super) fn drop_request_data(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(data) = self.handshake.take_request_data() {
            self.counters.rare().drops.send_ended += 1;
            let (reason, bytes) = (DropReason::ConnectionEnded, data.len() as u32);
            self.emit(ctx, EventKind::MessageDropped { reason, bytes });
        }
    }
}
