//! Starts a Quick-Start window with pacing, and ends it (RFC 5634 section 3.1).

use udccp_base::{DataRate, Instant};

use super::sender::Ccid2Sender;
use crate::ccid::{QUICK_START_HEADER_BYTES, QuickStartStep};

impl Ccid2Sender {
    pub(super) fn take_quick_start(&mut self, now: Instant, step: QuickStartStep) -> bool {
        match step {
            QuickStartStep::Approved(rate) => return self.enter_quick_start(now, rate),
            QuickStartStep::Validated => {
                //= 5634-3.1.4-2
                if let Some(paced) = self.quick_start.take() {
                    let cwnd = self.pipe.max(paced.1).min(self.window.cwnd());
                    self.window.set_window(now, cwnd, false);
                }
            }
            QuickStartStep::Congested | QuickStartStep::Silent => {
                //= 5634-3.1.5-1
                if let Some(paced) = self.quick_start.take() {
                    self.window.set_window(now, (paced.1 / 2).max(1), true);
                }
            }
        }
        true
    }

    //= 5634-3.1.3-2
    //= 5634-3.1.3-3
    //= 5634-3.1.3-4
    /// QS_cwnd = R T/(s + H), paced. Does not reduce the window.
    fn enter_quick_start(&mut self, now: Instant, rate: DataRate) -> bool {
        let Some(rtt) = self.rtt.srtt() else { return false };
        let packet = u64::from(self.packet_size_bytes) + QUICK_START_HEADER_BYTES;
        let packets = rate.bytes_in(rtt).bytes() / packet;
        let (cwnd, before) = (u32::try_from(packets).unwrap_or(u32::MAX), self.window.cwnd());
        if cwnd <= before {
            return false;
        }
        self.quick_start = Some(Box::new((rate.time_for(packet), before)));
        self.window.set_window(now, cwnd, false);
        true
    }
}
