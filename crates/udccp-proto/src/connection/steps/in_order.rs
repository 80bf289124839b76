//! A fast path through the steps.

use udccp_wire::{DataRun, PacketType, PacketView};

use super::super::options::{AckOptions, MOST_JOINED};
use super::super::{Arrival, Connection, Ctx, Received};
use crate::state::State;

impl Connection {
    /// Processes the next packet in order on an open connection, if it is Data without options, or
    /// an Ack or DataAck with the usual options. Returns whether it did. The skipped steps have
    /// nothing to do for such a packet: steps 4, 5, 7 and 9 to 15 concern other states and types,
    /// and in step 6 the next number is always valid.
    ///
    /// Everything is inlined for Data, which keeps the packet's fields in registers.
    #[inline(always)]
    pub(crate) fn take_in_order(
        &mut self,
        ctx: &mut Ctx<'_>,
        view: &PacketView<'_>,
        arrival: &Arrival<'_>,
    ) -> bool {
        let is_usual = self.state == State::Open && view.x() && arrival.quick_start.is_none();
        if !is_usual || self.config.long_way_only {
            return false;
        }
        match view.packet_type() {
            PacketType::Data if view.data_offset() == DataRun::HEADER_LEN => {
                self.take_data_in_order(ctx, view, arrival)
            }
            // Pass the addresses of copies, to keep the originals in registers.
            PacketType::Ack => {
                self.take_ack_in_order::<false>(ctx, &view.clone(), &arrival.clone())
            }
            PacketType::DataAck => {
                self.take_ack_in_order::<true>(ctx, &view.clone(), &arrival.clone())
            }
            _ => false,
        }
    }

    #[inline(always)]
    fn take_data_in_order(
        &mut self,
        ctx: &mut Ctx<'_>,
        view: &PacketView<'_>,
        arrival: &Arrival<'_>,
    ) -> bool {
        let mut packet = Received::new(view, arrival);
        if !self.seq.take_next_in_order(packet.seq, None) {
            return false;
        }
        self.note_arrival(arrival, view.total_len());
        self.note_valid(ctx, &packet, 1);
        self.mark_acknowledgeable(ctx, &mut packet, 0);
        self.take_data(ctx, &packet, false);
        true
    }

    #[inline(never)]
    fn take_ack_in_order<const WITH_DATA: bool>(
        &mut self,
        ctx: &mut Ctx<'_>,
        view: &PacketView<'_>,
        arrival: &Arrival<'_>,
    ) -> bool {
        // Other acknowledgements may change anything.
        self.forget_usual();
        match AckOptions::usual(view.option_bytes()) {
            Some(options) => self.take_ack_with::<WITH_DATA>(ctx, view, arrival, &options),
            None if AckOptions::begin_full(view.option_bytes()) => {
                self.take_long_ack_in_order::<WITH_DATA>(ctx, view, arrival)
            }
            None => false,
        }
    }

    /// Like [`Self::take_ack_in_order`], for an Ack Vector in several options.
    #[inline(never)]
    fn take_long_ack_in_order<const WITH_DATA: bool>(
        &mut self,
        ctx: &mut Ctx<'_>,
        view: &PacketView<'_>,
        arrival: &Arrival<'_>,
    ) -> bool {
        let mut room = [0; MOST_JOINED];
        let options = AckOptions::usual_of_several(view.option_bytes(), &mut room);
        options.is_some_and(|options| self.take_ack_with::<WITH_DATA>(ctx, view, arrival, &options))
    }

    #[inline(always)]
    fn take_ack_with<const WITH_DATA: bool>(
        &mut self,
        ctx: &mut Ctx<'_>,
        view: &PacketView<'_>,
        arrival: &Arrival<'_>,
        options: &AckOptions<'_>,
    ) -> bool {
        let ty = if WITH_DATA { PacketType::DataAck } else { PacketType::Ack };
        let mut packet = Received { ty, ..Received::new(view, arrival) };
        if !self.seq.take_next_in_order(packet.seq, packet.ackno) {
            return false;
        }
        self.note_arrival(arrival, view.total_len());
        self.note_valid(ctx, &packet, 1);
        self.negotiation.note_gsr(packet.seq);
        self.mark_acknowledgeable(ctx, &mut packet, 0);
        self.process_acknowledgement(ctx, &packet, options);
        if WITH_DATA {
            self.step_16_process_data(ctx, &packet);
        }
        true
    }
}
