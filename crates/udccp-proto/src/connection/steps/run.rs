//! Processes packets that arrived together in one step.

use udccp_wire::DataRun;

use super::super::recv_side::Packets;
use super::super::{Arrival, Connection, Ctx, Received};
use crate::ccid::ReceivedRun;
use crate::event::EventKind;
use crate::state::State;

impl Connection {
    /// How many packets of a run that begins with `first` can be processed at once: those that
    /// would all take the fast path and be delivered unchanged.
    pub(crate) fn run_limit(&mut self, first: &Received<'_>) -> usize {
        self.recv.set_outside(first.arrival.pressure);
        let is_usual = self.state == State::Open
            && !self.config.long_way_only
            && first.seq == self.seq.gsr.next()
            && !self.waits_for_ecn_confirm();
        if is_usual { self.recv.room_before_mark(first.view.data_len()) } else { 0 }
    }

    /// Processes a run of at most [`Self::run_limit`] packets: does once what the steps would do
    /// for each packet. `arrival` is that of the first one.
    pub(crate) fn take_run(&mut self, ctx: &mut Ctx<'_>, arrival: &Arrival<'_>, run: &DataRun<'_>) {
        let (first, count) = (Received::new(run.first(), arrival), run.packets() as u64);
        self.seq.take_run_in_order(count);
        self.credit.on_received(run.total_len());
        self.note_valid(ctx, &first, count);
        self.acks.on_run(first.seq, count, first.ecn);
        let info = self.received_info(&first, 0);
        self.cc.on_run(&self.config, ctx.now, &ReceivedRun::new(info, run));
        self.counters.data_bytes_received += run.data_len() as u64;
        let packets = Packets {
            bytes: arrival.datagram.header.slice_through(run.total_len()),
            stride: first.view.total_len() as u16,
            header_len: DataRun::HEADER_LEN as u16,
        };
        if self.recv.push_packets(packets, run.data_len()) {
            self.emit(ctx, EventKind::Readable);
        }
    }
}
