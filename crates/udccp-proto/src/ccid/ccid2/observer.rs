//! Counts rounds and samples the delivery rate for window algorithms that need them. Other
//! algorithms have no observer.

use std::collections::VecDeque;

use udccp_base::{DataRate, Duration, Instant};
use udccp_cc::{Delivery, Needs, RateDraft, RateSample, RateSampler, RateStamp};
use udccp_wire::Seqno;

use crate::ccid::SentInfo;
use crate::ccid::ccid2::trains::Pace;
use crate::ccid::ccid2::window::{AckContext, Tally};

/// From this size on, the buffer grows to four times its size.
const LARGE: usize = 512;

/// Observes packets and acknowledgements for a window algorithm.
#[derive(Clone, Debug)]
pub(super) struct Observer {
    /// Bytes of data in a full packet.
    full_bytes: u32,
    /// The round ends when this packet or a later one is acknowledged.
    round_end: Option<Seqno>,
    rates: Option<Rates>,
    /// The last pacing rate, packet size and result. They seldom change.
    paced: Option<(DataRate, u32, Pace)>,
}

#[derive(Clone, Debug, Default)]
struct Rates {
    sampler: RateSampler,
    draft: RateDraft,
    /// Data packets in order of sequence numbers; `None` when the state of the packet is known.
    packets: VecDeque<(Seqno, Option<RateStamp>)>,
    /// Largest number of packets. A timeout has given up older ones.
    most: usize,
    sizes: Sizes,
}

/// Mean size of the packets of a round. Windows are counted in packets, whatever their size.
#[derive(Clone, Copy, Debug, Default)]
struct Sizes {
    /// Of the last round that is over; `None` before.
    mean: Option<u32>,
    /// Bytes of data and packets sent in this round.
    bytes: u64,
    packets: u64,
}

impl Observer {
    /// Creates an observer for `needs`, or `None` if the algorithm needs nothing.
    pub(super) fn new(needs: Needs, full_bytes: u32, max_window: u32) -> Option<Box<Self>> {
        let rates = needs.rates.then(|| Rates { most: max_window as usize, ..Rates::default() });
        needs.deliveries.then(|| Box::new(Self { full_bytes, round_end: None, rates, paced: None }))
    }

    /// Returns the result of `pace`, which is only called if the rate or size has changed.
    pub(super) fn pace(
        &mut self,
        rate: DataRate,
        size_bytes: u32,
        pace: impl FnOnce() -> Pace,
    ) -> Pace {
        match self.paced {
            Some((for_rate, for_size, pace)) if (for_rate, for_size) == (rate, size_bytes) => pace,
            _ => self.paced.insert((rate, size_bytes, pace())).2,
        }
    }

    /// A data packet was sent. Before it, `pipe` packets were in the network, of `cwnd` allowed.
    pub(super) fn on_sent(&mut self, now: Instant, packet: &SentInfo, pipe: u32, cwnd: u32) {
        let Some(rates) = &mut self.rates else { return };
        rates.sizes.on_sent(packet.size_bytes);
        let order = packet.seq.value();
        let stamp = rates.sampler.stamp(now, order, packet.size_bytes, pipe == 0);
        if rates.packets.len() >= rates.most {
            rates.packets.pop_front();
        }
        let len = rates.packets.len();
        if len == rates.packets.capacity() && len >= LARGE {
            // The buffer never grows beyond `most`.
            rates.packets.reserve_exact((rates.most - len).min(3 * len));
        }
        rates.packets.push_back((packet.seq, Some(stamp)));
        if packet.app_limited && pipe + 1 < cwnd {
            let in_flight =
                u64::from(pipe + 1) * u64::from(rates.sizes.mean().unwrap_or(self.full_bytes));
            rates.sampler.on_app_limited(in_flight);
        }
    }

    /// Bytes of data in a packet on average, if that is measured, or else in a full packet.
    fn packet_bytes(&self) -> u32 {
        self.rates.as_ref().and_then(|rates| rates.sizes.mean()).unwrap_or(self.full_bytes)
    }

    /// A data packet was found to have arrived or to be lost.
    pub(super) fn on_packet_state(&mut self, now: Instant, seq: Seqno, arrived: bool) {
        if let Some(rates) = &mut self.rates {
            rates.on_packet_state(now, seq, arrived);
        }
    }

    /// Summarises an acknowledgement for the algorithm.
    pub(super) fn delivery(
        &mut self,
        tally: &Tally,
        at: &AckContext,
        in_recovery: bool,
        cwnd_limited: bool,
    ) -> Delivery {
        let is_over = self.round_end.is_none_or(|end| at.ackno.at_least(end));
        let round_start = is_over && !in_recovery && tally.received > 0;
        if in_recovery || round_start {
            self.round_end = Some(at.next);
            if let Some(rates) = &mut self.rates {
                rates.sizes.end_round();
            }
        }
        let min_rtt = at.min_rtt;
        Delivery {
            now: at.now,
            acked: tally.received,
            advanced: 0,
            delivered: tally.received,
            lost: tally.lost,
            rtt: at.sample,
            srtt: at.srtt,
            min_rtt,
            one_way_ticks: None,
            packet_bytes: self.packet_bytes(),
            in_flight: at.pipe - tally.left_pipe,
            prior_in_flight: at.pipe,
            departure: at.now,
            was_in_order: !in_recovery,
            in_recovery,
            round_start,
            cwnd_limited,
            rate: self.rates.as_mut().and_then(|rates| rates.finish(min_rtt)),
        }
    }

    /// Summarises the round-trip time that the handshake measured.
    pub(super) fn handshake(&self, now: Instant, rtt: Duration) -> Delivery {
        let rtt = Some(rtt);
        let packet_bytes = self.packet_bytes();
        Delivery { now, rtt, srtt: rtt, min_rtt: rtt, packet_bytes, ..Delivery::default() }
    }
}

impl Sizes {
    fn on_sent(&mut self, bytes: u32) {
        self.bytes += u64::from(bytes);
        self.packets += 1;
    }

    fn end_round(&mut self) {
        *self = Self { mean: self.of_round().or(self.mean), ..Self::default() };
    }

    /// The mean in this round, at least 1; `None` before its first packet.
    fn of_round(&self) -> Option<u32> {
        Some(self.bytes.checked_div(self.packets)?.max(1) as u32)
    }

    fn mean(&self) -> Option<u32> {
        self.mean.or_else(|| self.of_round())
    }
}

impl Rates {
    fn on_packet_state(&mut self, now: Instant, seq: Seqno, arrived: bool) {
        let i = self.place_of(seq);
        let found = self.packets.get_mut(i).filter(|(known, _)| *known == seq);
        let Some(stamp) = found.and_then(|(_, stamp)| stamp.take()) else { return };
        if arrived {
            self.sampler.deliver(now, &stamp, &mut self.draft);
        }
        while self.packets.front().is_some_and(|(_, stamp)| stamp.is_none()) {
            self.packets.pop_front();
        }
    }

    /// Index of the packet if it is stored. Usually sequence numbers are consecutive.
    fn place_of(&self, seq: Seqno) -> usize {
        let first = self.packets.front().map_or(seq, |(first, _)| *first);
        let guess = usize::try_from(seq.distance_from(first)).unwrap_or(0);
        match self.packets.get(guess) {
            Some((known, _)) if *known == seq => guess,
            _ => self.packets.partition_point(|(known, _)| known.is_before(seq)),
        }
    }

    fn finish(&mut self, min_rtt: Option<Duration>) -> Option<RateSample> {
        self.sampler.finish(core::mem::take(&mut self.draft), min_rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ccid::ccid2::trains::Trains;

    #[test]
    fn packets_are_found_whatever_gaps_their_numbers_have() {
        let mut rates = Rates { most: 100, ..Rates::default() };
        let numbers = [7, 8, 10, 11, 12, 20, 21].map(Seqno::new);
        for seq in numbers {
            let stamp = rates.sampler.stamp(Instant::ZERO, seq.value(), 100, false);
            rates.packets.push_back((seq, Some(stamp)));
        }
        for (i, seq) in numbers.into_iter().enumerate() {
            assert_eq!(rates.place_of(seq), i, "{seq:?}");
        }
        // Sequence numbers without data: before, between and after the others.
        for (number, place) in [(6, 0), (9, 2), (19, 5), (22, 7)] {
            assert_eq!(rates.place_of(Seqno::new(number)), place, "{number}");
            rates.on_packet_state(Instant::ZERO, Seqno::new(number), true);
        }
        assert!(rates.packets.iter().all(|(_, stamp)| stamp.is_some()), "nothing is known yet");
    }

    #[test]
    fn size_is_the_mean_of_the_last_round_that_sent() {
        let mut sizes = Sizes::default();
        assert_eq!(sizes.mean(), None);
        for (sent, during, after) in [
            (&[20, 41][..], Some(30), Some(30)),
            (&[1400], Some(30), Some(1400)),
            (&[], Some(1400), Some(1400)),
            (&[0], Some(1400), Some(1)),
        ] {
            sent.iter().for_each(|bytes| sizes.on_sent(*bytes));
            assert_eq!(sizes.mean(), during);
            sizes.end_round();
            assert_eq!(sizes.mean(), after);
        }
    }

    #[test]
    fn packets_of_another_size_or_rate_have_another_pace() {
        let needs = Needs { deliveries: true, ..Needs::default() };
        let mut observer = Observer::new(needs, 1400, 100).unwrap();
        let trains = Trains::new(1);
        let mut paces = |mbps, size: u32| {
            let rate = DataRate::from_mbps(mbps);
            let pace = trains.pace(rate.time_for(size.into()));
            let kept = observer.pace(rate, size, || pace);
            assert_eq!(format!("{kept:?}"), format!("{pace:?}"), "{mbps} Mbit/s, {size} bytes");
        };
        for (mbps, size) in [(8, 1000), (8, 1000), (8, 500), (4, 500), (4, 500), (8, 1000)] {
            paces(mbps, size);
        }
    }
}
