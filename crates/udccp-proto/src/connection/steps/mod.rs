//! Processes packets: the steps of RFC 4340 section 8.5 in their order, one file per step.
//!
//! Steps 1 to 3 need no connection, and belong to the endpoint (`endpoint::steps`).

mod in_order;
mod plain_ack;
mod plain_data;
mod run;
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

use super::{Arrival, Connection, Ctx, Handled, Received};
use crate::state::State;

/// Whether to continue with the next step. `Break` ends the processing of the packet.
pub(super) type Flow = ControlFlow<Handled>;

/// Ends the processing of the packet.
pub(super) const DROP: Flow = ControlFlow::Break(Handled::Done);

/// Continues with the next step.
pub(super) const GO_ON: Flow = ControlFlow::Continue(());

impl Connection {
    /// Processes a packet that passed steps 1 to 3.
    pub(crate) fn handle_packet(
        &mut self,
        ctx: &mut Ctx<'_>,
        packet: &mut Received<'_>,
    ) -> Handled {
        if self.take_in_order(ctx, packet.view, packet.arrival) {
            return Handled::Done;
        }
        self.note_arrival(packet.arrival, packet.arrival.datagram.transport_len());
        match self.run_steps(ctx, packet) {
            ControlFlow::Continue(handled) | ControlFlow::Break(handled) => handled,
        }
    }

    /// A packet of `len` bytes arrived, valid or not.
    #[inline(always)]
    fn note_arrival(&mut self, arrival: &Arrival<'_>, len: usize) {
        self.recv.set_outside(arrival.pressure);
        if self.credit.is_limited() {
            self.credit.on_received(len);
        }
    }

    //= 4340-8.5-1
    //= 4340-11.4-5
    //= 4340-11.4-6
    //= 4340-11.4-7
    //= 4340-11.7-5
    fn run_steps(
        &mut self,
        ctx: &mut Ctx<'_>,
        packet: &mut Received<'_>,
    ) -> ControlFlow<Handled, Handled> {
        self.step_4_prepare_numbers_in_request(ctx, packet)?;
        self.step_5_prepare_numbers_for_sync(ctx, packet)?;
        self.step_6_check_numbers(ctx, packet)?;
        self.step_7_check_type(ctx, packet)?;
        self.step_8_process_options(ctx, packet)?;
        if self.is_plain_transfer(packet) {
            self.step_16_process_data(ctx, packet);
            return ControlFlow::Continue(Handled::Done);
        }
        self.step_9_process_reset(ctx, packet)?;
        self.step_10_leave_request(ctx)?;
        let handled = self.step_11_process_respond(ctx, packet);
        self.step_12_process_partopen(ctx, packet);
        self.step_13_process_closereq(ctx, packet);
        if self.step_14_process_close(ctx, packet).is_continue() {
            self.step_15_process_sync(ctx, packet);
            self.step_16_process_data(ctx, packet);
        }
        ControlFlow::Continue(handled)
    }

    /// Whether steps 9 to 15 have nothing to do, since they concern other states or other types.
    fn is_plain_transfer(&self, packet: &Received<'_>) -> bool {
        self.state == State::Open
            && matches!(packet.ty, PacketType::Data | PacketType::Ack | PacketType::DataAck)
    }
}
