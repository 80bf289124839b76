//! Packet processing: the steps of RFC 4340 section 8.5 in their order, one file a step.
//!
//! Steps 1 to 3 need no connection and are the endpoint's (`endpoint::steps`).

mod step04_request_numbers;
mod step05_sync_numbers;
mod step06_sequence;
mod step07_type;
mod step08_options;
mod step09_reset;
mod step10_request;
mod step11_respond;
mod step12_partopen;
mod step13_closereq;
mod step14_close;
mod step15_sync;
mod step16_data;

use core::ops::ControlFlow;

use udccp_wire::PacketType;

use super::{Connection, Ctx, Received};
use crate::state::State;

/// Whether the next step follows. `Break`: the packet is done with.
pub(super) type Flow = ControlFlow<()>;

/// The packet is done with.
pub(super) const DROP: Flow = ControlFlow::Break(());

/// The next step follows.
pub(super) const GO_ON: Flow = ControlFlow::Continue(());

impl Connection {
    /// Takes a packet that passed steps 1 to 3. True where it is to be answered as one that belongs
    /// to no connection, with Reset, Packet Error.
    pub(crate) fn handle_packet(&mut self, ctx: &mut Ctx<'_>, packet: &mut Received<'_>) -> bool {
        self.credit.on_received(packet.datagram.transport_len());
        let _ = self.run_steps(ctx, packet);
        core::mem::take(&mut self.refuses_packet)
    }

    //= 4340-8.5-1
    //= 4340-11.4-5
    //= 4340-11.4-6
    //= 4340-11.4-7
    //= 4340-11.7-5
    fn run_steps(&mut self, ctx: &mut Ctx<'_>, packet: &mut Received<'_>) -> Flow {
        self.step_4_prepare_numbers_in_request(ctx, packet)?;
        self.step_5_prepare_numbers_for_sync(ctx, packet)?;
        self.step_6_check_numbers(ctx, packet)?;
        self.step_7_check_type(ctx, packet)?;
        self.step_8_process_options(ctx, packet)?;
        if self.is_plain_transfer(packet) {
            self.step_16_process_data(ctx, packet);
            return GO_ON;
        }
        self.step_9_process_reset(ctx, packet)?;
        self.step_10_leave_request(ctx)?;
        self.step_11_process_respond(ctx, packet);
        self.step_12_process_partopen(ctx, packet);
        self.step_13_process_closereq(ctx, packet);
        self.step_14_process_close(ctx, packet)?;
        self.step_15_process_sync(ctx, packet);
        self.step_16_process_data(ctx, packet);
        GO_ON
    }

    /// Whether steps 9 to 15 have nothing to do: they concern other states or other types.
    fn is_plain_transfer(&self, packet: &Received<'_>) -> bool {
        self.state == State::Open
            && matches!(packet.ty, PacketType::Data | PacketType::Ack | PacketType::DataAck)
    }
}
