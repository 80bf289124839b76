//! Collects samples for congestion controls that need every acknowledgement. Other senders do not
//! have an observer.

use udccp_base::{Duration, Instant};
use udccp_cc::{Delivery, Needs};

use super::rate::RateSampler;
use super::{AckInfo, Phase, SendSide};
use crate::send::rack::Sending;
use crate::send::times::Acked;

/// The part of the sending side that measures acknowledgements.
#[derive(Clone, Debug)]
pub(super) struct Observer {
    one_way: bool,
    /// The round ends when more than this is acknowledged.
    round_end: u64,
    pub(super) rates: Option<RateSampler>,
}

impl Observer {
    /// Creates an observer if `needs` requires one.
    pub(super) fn new(needs: Needs) -> Option<Box<Self>> {
        let rates = needs.rates.then(RateSampler::default);
        needs.deliveries.then(|| Box::new(Self { one_way: needs.one_way, round_end: 0, rates }))
    }
}

/// The state of the sending side before an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub(super) una: u64,
    pub(super) pipe: u64,
    /// Nothing was lost or out of order.
    pub(super) in_order: bool,
}

impl SendSide {
    /// The round-trip time of the handshake is known. As in kernels, it is reported only to
    /// congestion controls that use rates. A SYN is short, so compared with its time, delays of
    /// full segments would include their transmission time.
    pub(super) fn observe_handshake(&mut self, now: Instant) {
        if self.observer.as_ref().is_some_and(|o| o.rates.is_some()) {
            let srtt = self.rtt.srtt();
            let packet_bytes = self.mss;
            let known = Delivery { now, rtt: srtt, srtt, min_rtt: srtt, ..Delivery::default() };
            let delivery = Delivery { packet_bytes, ..known };
            self.cc.on_delivery(&delivery);
        }
    }

    /// Reports an acknowledgement of `delivered` new bytes to the congestion control. `sacked` is
    /// the newest segment, sent once, that it SACKed.
    pub(super) fn observe(
        &mut self,
        now: Instant,
        info: &AckInfo<'_>,
        before: Before,
        delivered: u64,
        (acked, sacked): (Acked, Option<Sending>),
    ) {
        let Some(observer) = self.observer.as_mut() else { return };
        let in_recovery = matches!(self.phase, Phase::Recovery(_) | Phase::Loss { .. });
        let (una, mss) = (self.board.una(), u64::from(self.mss));
        let round_start = !in_recovery && una > before.una && una > observer.round_end;
        if in_recovery || round_start {
            observer.round_end = self.board.nxt();
        }
        let min_rtt = self.rtt.min_rtt();
        let rates = observer.rates.as_mut();
        let rate = rates.and_then(|r| r.on_ack(now, una, info.blocks, min_rtt));
        let looks_at_rates = observer.rates.is_some();
        let rtt = acked.rtt.map(|(_, newest)| newest);
        let times = info.peer_timestamp.zip(rtt).filter(|_| observer.one_way);
        let one_way_ticks = times.map(|(theirs, rtt)| {
            let ours = ((now - rtt).as_nanos() / 1_000_000) as u32;
            theirs.wrapping_sub(ours)
        });
        let rtt = if looks_at_rates {
            self.rtt_of_last(now, info, before.una, (acked, sacked))
        } else {
            rtt
        };
        let pipe = self.board.pipe();
        let lost = before.pipe.saturating_sub(pipe + delivered);
        let cwnd_limited = self.fills_window(before.una);
        let departure = self.paced_until();
        self.cc.on_delivery(&Delivery {
            now,
            acked: acked.segments,
            advanced: (una - before.una).div_ceil(mss) as u32,
            delivered: delivered.div_ceil(mss) as u32,
            lost: lost.div_ceil(mss) as u32,
            rtt,
            srtt: self.rtt.srtt(),
            min_rtt,
            one_way_ticks,
            packet_bytes: self.mss,
            in_flight: pipe.div_ceil(mss) as u32,
            prior_in_flight: before.pipe.div_ceil(mss) as u32,
            departure,
            was_in_order: before.in_order,
            in_recovery,
            round_start,
            cwnd_limited,
            rate,
        });
    }

    /// The round-trip time of the last segment reported, whether SACKed or not. If that segment was
    /// retransmitted, the time from its timestamp (`tcp_ack_update_rtt`). Without detection by
    /// time, as in older kernels, only that of segments acknowledged in order.
    fn rtt_of_last(
        &self,
        now: Instant,
        info: &AckInfo<'_>,
        una_before: u64,
        (acked, sacked): (Acked, Option<Sending>),
    ) -> Option<Duration> {
        let in_order = acked.rtt.map(|(_, newest)| newest);
        if self.detection.is_none() {
            return in_order;
        }
        let advanced = info.ack > una_before;
        let sacked = sacked.map(|sending| now - sending.at);
        sacked.or(in_order).or(info.timestamp_rtt.filter(|_| advanced))
    }

    /// The application has nothing to send: rate samples then measure the application and not the
    /// path (draft-cheng-iccrg-delivery-rate-estimation section 3.4).
    pub(super) fn observe_silence(&mut self) {
        let Some(rates) = self.observer.as_mut().and_then(|o| o.rates.as_mut()) else { return };
        let pipe = self.board.pipe();
        if pipe < u64::from(self.cc.cwnd()) * u64::from(self.mss) {
            rates.on_app_limited(pipe);
        }
    }
}
