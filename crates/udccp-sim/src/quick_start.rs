//! Answers Quick-Start requests as a router (RFC 4782 section 3.3).

use udccp_base::{DataRate, Duration, Instant, QuickStart, QuickStartFunction};

/// How long an approval counts: senders use it within a round-trip time or two.
const APPROVAL_LASTS: Duration = Duration::from_millis(500);
/// The period over which use of the link is measured.
const MEASURED_OVER: Duration = Duration::from_millis(100);
/// The share of a link's rate for traffic and approvals together, in percent.
const TARGET_PERCENT: u64 = 90;

/// The Quick-Start state of the router at the near end of a link.
#[derive(Debug)]
pub(crate) struct QuickStartLink {
    /// `None` if the link has no rate.
    capacity: Option<DataRate>,
    period: Instant,
    bytes: u64,
    /// Bytes per second in the last whole period.
    used: u64,
    approved: Vec<(Instant, u64)>,
}

impl QuickStartLink {
    pub(crate) const fn new(capacity: Option<DataRate>) -> Self {
        Self { capacity, period: Instant::ZERO, bytes: 0, used: 0, approved: Vec::new() }
    }

    /// A packet enters the link.
    pub(crate) fn on_packet(&mut self, now: Instant, len: u32) {
        self.turn(now);
        self.bytes += u64::from(len);
    }

    /// A packet with the option is forwarded to the link.
    pub(crate) fn on_option(&mut self, now: Instant, option: &mut QuickStart) {
        if option.function != QuickStartFunction::Request {
            return;
        }
        option.ttl = option.ttl.wrapping_sub(1);
        let Some(capacity) = self.capacity else { return };
        self.turn(now);
        self.approved.retain(|(at, _)| now.saturating_since(*at) < APPROVAL_LASTS);
        let promised: u64 = self.approved.iter().map(|(_, rate)| rate).sum();
        let target = capacity.bytes_per_sec() * TARGET_PERCENT / 100;
        let free = target.saturating_sub(self.used + promised);
        option.lower_to(QuickStart::number_below(DataRate::from_bytes_per_sec(free)));
        self.approved.push((now, QuickStart::rate_of(option.rate).bytes_per_sec()));
    }

    fn turn(&mut self, now: Instant) {
        let passed = now.saturating_since(self.period);
        if passed >= MEASURED_OVER {
            let whole = self.bytes * 1_000_000_000 / passed.as_nanos().max(1);
            (self.used, self.bytes, self.period) = (whole, 0, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(rate: u8) -> QuickStart {
        QuickStart { function: QuickStartFunction::Request, rate, ttl: 9, nonce: 0 }
    }

    #[test]
    fn a_router_approves_what_is_free_once() {
        let mut link = QuickStartLink::new(Some(DataRate::from_mbps(10)));
        let (now, mut option) = (Instant::ZERO, request(9));
        link.on_option(now, &mut option);
        assert_eq!((option.rate, option.ttl), (7, 8), "5.1 of 10 Mbit/s, at most 9");
        let mut second = request(9);
        link.on_option(now, &mut second);
        assert_eq!(second.rate, 6, "2.6 of the 3.9 Mbit/s that are left");
        let mut later = request(9);
        link.on_option(now + APPROVAL_LASTS, &mut later);
        assert_eq!(later.rate, 7, "approvals are over");
    }

    #[test]
    fn traffic_counts_and_reports_pass() {
        let mut link = QuickStartLink::new(Some(DataRate::from_mbps(10)));
        let mut now = Instant::ZERO;
        for _ in 0..1000 {
            now += Duration::from_micros(1250);
            link.on_packet(now, 1500);
        }
        let mut option = request(9);
        link.on_option(now, &mut option);
        assert_eq!(option.rate, 0, "9.6 Mbit/s are in use");
        let mut report = QuickStart { function: QuickStartFunction::Report, ..request(5) };
        link.on_option(now, &mut report);
        assert_eq!((report.rate, report.ttl), (5, 9));
        let mut free = request(15);
        QuickStartLink::new(None).on_option(now, &mut free);
        assert_eq!((free.rate, free.ttl), (15, 8), "a link without a rate has enough");
    }
}
