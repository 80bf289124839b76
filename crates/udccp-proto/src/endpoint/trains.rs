//! Receives packets that arrived together in one buffer, and sends packets together.

use udccp_base::{Datagram, Instant, Payload};
use udccp_wire::{DataRun, PacketView};

use super::Endpoint;
use super::machine::PACKETS_PER_TURN;
use crate::connection::{Arrival, Received};

/// A buffer in which a driver collects packets of one path, to write them together.
pub trait Train {
    /// Whether there is room for a packet of this many bytes.
    fn takes(&self, len: usize) -> bool;

    /// Adds a packet, for whose length [`Self::takes`] has returned true.
    fn put(&mut self, header: &[u8], payload: &Payload);
}

impl Endpoint {
    /// After `poll_transmit` returned `last` and the driver has put it into a train: writes the
    /// following packets to the train too, while they are Data packets without options on the same
    /// path, with the same ECN codepoint. Returns how many; `poll_transmit` continues after them.
    pub fn poll_run(&mut self, now: Instant, last: &Datagram, train: &mut impl Train) -> u32 {
        let Some(index) = self.ready.front().filter(|_| self.answers.is_empty()) else { return 0 };
        let most =
            if self.ready.has_others() { PACKETS_PER_TURN - self.ready.turn } else { u32::MAX };
        let Some((connection, mut ctx)) = self.as_usual_at(now, index) else { return 0 };
        let count = connection.transmit_run(&mut ctx, last, most, train);
        if count > 0 {
            self.took_turn(index, count);
            self.counters.datagrams_sent += u64::from(count);
        }
        count
    }

    /// Processes datagrams in a buffer with several
    /// ([`udccp_base::HeaderBytes::first_in_buffer`]), from the current one of `train` on, while
    /// they are the next Data packets of one connection, without options. The work of
    /// [`Self::handle_borrowed`] is then done once for all of them. Afterwards `train` is at the
    /// first datagram that was not processed, or at its end, and the result is whether there is
    /// one. A single datagram is never processed here.
    pub fn handle_run(&mut self, now: Instant, train: &mut Datagram) -> bool {
        match self.take_run(now, train) {
            0 => true,
            taken => train.header.advance(taken),
        }
    }

    /// Returns the number of packets processed.
    fn take_run(&mut self, now: Instant, train: &Datagram) -> usize {
        let (stride, bytes) = (train.header.len(), train.header.with_following());
        let is_several = bytes.len() > stride && train.payload.is_empty();
        if !is_several || train.protocol != Datagram::DCCP || !self.is_verified(train) {
            return 0;
        }
        let Some(view) = PacketView::of_usual(&train.header, stride) else { return 0 };
        let arrival = Arrival { datagram: train, quick_start: None, pressure: self.outside };
        let first = Received::new(&view, &arrival);
        let known = self.table.last(&self.slots, |tuple| first.is_of(tuple));
        let Some(index) = known.or_else(|| self.table.find(&self.slots, &first.tuple())) else {
            return 0;
        };
        let Some((connection, mut ctx)) = self.as_usual_at(now, index) else { return 0 };
        let most = connection.run_limit(&first);
        let Some(run) = DataRun::new(view, bytes, most) else { return 0 };
        connection.take_run(&mut ctx, &arrival, &run);
        self.make_ready(index);
        self.counters.datagrams_received += run.packets() as u64;
        run.packets()
    }
}
