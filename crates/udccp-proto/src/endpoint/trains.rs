//! Takes packets that arrived together in one buffer, and gives packets that leave in one.

use udccp_base::{Datagram, Instant, Payload};
use udccp_wire::{DataRun, PacketView};

use super::Endpoint;
use super::machine::PACKETS_PER_TURN;
use crate::connection::{Arrival, Received};

/// A place where a driver gathers packets of one path, to write them together.
pub trait Train {
    /// Whether a packet of this many bytes may be added.
    fn takes(&self, len: usize) -> bool;

    /// Adds a packet, whose length [`Self::takes`] has allowed.
    fn put(&mut self, header: &[u8], payload: &Payload);
}

impl Endpoint {
    /// After `poll_transmit` gave `last` and the driver has put it into a train: writes the packets
    /// that would follow to the train as well, as long as they are Data without options on the same
    /// path, with the same ECN codepoint. Returns how many; `poll_transmit` goes on behind them.
    pub fn poll_run(&mut self, now: Instant, last: &Datagram, train: &mut impl Train) -> u32 {
        let Some(&index) = self.ready.front().filter(|_| self.answers.is_empty()) else { return 0 };
        let most = if self.ready.len() > 1 { PACKETS_PER_TURN - self.turn } else { u32::MAX };
        let Some((connection, mut ctx)) = self.connection_at(now, index) else { return 0 };
        let count = connection.transmit_run(&mut ctx, last, most, train);
        if count > 0 {
            self.took_turn(index, count);
            self.stats.datagrams_sent += u64::from(count);
        }
        count
    }

    /// Takes datagrams of a buffer that holds several ([`udccp_base::HeaderBytes::first_of`]), from
    /// the current one of `train` on, as long as they are one connection's next Data packets
    /// without options; what [`Self::handle_borrowed`] would do for each is done once for all.
    /// `train` then stands at the first that is something else, or at its end: then the result is
    /// false. Alone, a datagram is always something else.
    pub fn handle_run(&mut self, now: Instant, train: &mut Datagram) -> bool {
        match self.take_run(now, train) {
            0 => true,
            taken => train.header.move_on(taken),
        }
    }

    /// Packets that were taken.
    fn take_run(&mut self, now: Instant, train: &Datagram) -> usize {
        let (stride, bytes) = (train.header.len(), train.header.with_following());
        let is_several = bytes.len() > stride && train.payload.is_empty();
        if !is_several || train.protocol != Datagram::DCCP || !self.is_verified(train) {
            return 0;
        }
        let Some(view) = PacketView::of_usual(&train.header, stride) else { return 0 };
        let arrival = Arrival { datagram: train, quick_start: None, pressure: self.outside };
        let first = Received::new(&view, &arrival);
        let known = self.table.last(|tuple| first.is_of(tuple));
        let Some(index) = known.or_else(|| self.table.find(&self.slots, &first.tuple())) else {
            return 0;
        };
        let Some((connection, mut ctx)) = self.connection_at(now, index) else { return 0 };
        let most = connection.run_limit(&first);
        let Some(run) = DataRun::new(view, bytes, most) else { return 0 };
        connection.take_run(&mut ctx, &arrival, &run);
        self.make_ready(index);
        self.stats.datagrams_received += run.packets() as u64;
        run.packets()
    }
}
