//! Samples of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation-00, section 3): the
//! state of a connection and of each packet, independent of how packets are numbered.

use udccp_base::{Duration, Instant};

use crate::delivery::RateSample;

/// The state of a connection (C of the draft).
#[derive(Clone, Debug, Default)]
pub struct RateSampler {
    /// Bytes delivered, and the time of the last delivery.
    delivered: u64,
    delivered_at: Instant,
    /// The send time of the packet that was acknowledged last.
    first_sent: Instant,
    /// The connection is app-limited until this many bytes are delivered.
    app_limited_until: Option<u64>,
}

/// The state of a packet when it was last sent (P of the draft).
#[derive(Clone, Copy, Debug)]
pub struct RateStamp {
    /// Its position among packets sent at the same time.
    order: u64,
    bytes: u32,
    app_limited: bool,
    sent: Instant,
    first_sent: Instant,
    delivered: u64,
    delivered_at: Instant,
}

impl RateStamp {
    /// Bytes of the packet.
    pub fn bytes(&self) -> u32 {
        self.bytes
    }
}

/// The sample of one acknowledgement in progress (rs of the draft); start with `default()`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateDraft(Option<(RateStamp, Duration)>);

/// Rounds down to microseconds, the unit of these times in kernels.
pub(crate) fn whole_micros(at: Instant) -> Instant {
    Instant::from_nanos((at - Instant::ZERO).as_nanos() / 1_000 * 1_000)
}

impl RateSampler {
    /// A packet of `bytes` is sent; `idle` means that nothing was in flight. `order` distinguishes
    /// packets sent at the same time: later ones have larger numbers.
    pub fn stamp(&mut self, now: Instant, order: u64, bytes: u32, idle: bool) -> RateStamp {
        let now = whole_micros(now);
        if idle {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        RateStamp {
            order,
            bytes,
            app_limited: self.app_limited_until.is_some(),
            sent: now,
            first_sent: self.first_sent,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
        }
    }

    /// The application has nothing to send, with `in_flight_bytes` outstanding.
    pub fn on_app_limited(&mut self, in_flight_bytes: u64) {
        self.app_limited_until = Some(self.delivered + in_flight_bytes);
    }

    /// The packet with this stamp was reported received for the first time.
    pub fn deliver(&mut self, now: Instant, packet: &RateStamp, draft: &mut RateDraft) {
        let now = whole_micros(now);
        self.delivered += u64::from(packet.bytes);
        self.delivered_at = now;
        let newer = draft.0.is_none_or(|(newest, _)| {
            (packet.delivered, packet.sent, packet.order)
                > (newest.delivered, newest.sent, newest.order)
        });
        if newer {
            draft.0 = Some((*packet, now - packet.delivered_at));
            self.first_sent = packet.sent;
        }
    }

    /// Completes the sample of the acknowledgement; `None` if there is no valid one.
    pub fn finish(&mut self, draft: RateDraft, min_rtt: Option<Duration>) -> Option<RateSample> {
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        let (newest, ack_elapsed) = draft.0?;
        let interval = ack_elapsed.max(newest.sent - newest.first_sent);
        // Shorter than any round trip: a retransmission whose original arrived.
        let least = min_rtt.map_or(0, |min| min.as_nanos() / 1_000 * 1_000);
        if interval.is_zero() || interval.as_nanos() < least {
            return None;
        }
        Some(RateSample {
            delivered_bytes: self.delivered - newest.delivered,
            interval,
            prior_delivered: newest.delivered,
            total_delivered: self.delivered,
            app_limited: newest.app_limited,
        })
    }
}
