//! Tracks the sequence number variables of RFC 4340 section 7.1, and computes the windows.

use udccp_wire::{PacketType, Seqno};

/// Beyond this distance from the first number, no window can reach back to it: windows are narrower
/// than 2^46.
const PAST_THE_BEGINNING: i64 = 1 << 46;

/// Sequence numbers of both directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequence {
    /// First number sent.
    pub(crate) iss: Seqno,
    /// Greatest number sent.
    pub(crate) gss: Seqno,
    /// First number received.
    pub(crate) isr: Seqno,
    /// Greatest valid number received.
    pub(crate) gsr: Seqno,
    /// Greatest valid acknowledgement number received, not counting Syncs.
    pub(crate) gar: Seqno,
    /// First number received in OPEN.
    pub(crate) osr: Seqno,
    /// Sequence Window/Local: width of the acknowledgement window.
    pub(crate) window_local: u64,
    /// Sequence Window/Remote: width of the window for received numbers.
    pub(crate) window_remote: u64,
    young_tx: bool,
    young_rx: bool,
}

impl Sequence {
    /// The variables of a connection whose first packet will be `iss`.
    pub(crate) fn new(iss: Seqno, window: u64) -> Self {
        Self {
            iss,
            gss: iss.prev(),
            isr: Seqno::ZERO,
            gsr: Seqno::ZERO,
            gar: iss,
            osr: Seqno::ZERO,
            window_local: window,
            window_remote: window,
            young_tx: true,
            young_rx: true,
        }
    }

    /// The first packet of the peer was `isr`.
    pub(crate) fn start_receiving(&mut self, isr: Seqno) {
        self.isr = isr;
        self.gsr = isr;
    }

    /// Takes the number of the next packet to send.
    pub(crate) fn take_next(&mut self) -> Seqno {
        self.gss = self.gss.next();
        self.gss
    }

    /// Number of packets sent.
    pub(crate) fn sent(&self) -> u64 {
        self.gss.next().sub(self.iss.value()).value()
    }

    /// Low end of the window for received numbers.
    pub(crate) fn swl(&mut self) -> Seqno {
        let low = self.gsr.next().sub(self.window_remote / 4);
        clamp_to_first(low, self.gsr, self.isr, &mut self.young_rx)
    }

    /// High end of the window for received numbers.
    pub(crate) fn swh(&self) -> Seqno {
        self.gsr.add((3 * self.window_remote).div_ceil(4))
    }

    /// Low end of the window for acknowledgement numbers.
    #[inline(always)]
    pub(crate) fn awl(&mut self) -> Seqno {
        let low = self.gss.next().sub(self.window_local);
        clamp_to_first(low, self.gss, self.iss, &mut self.young_tx)
    }

    /// High end of the window for acknowledgement numbers.
    pub(crate) fn awh(&self) -> Seqno {
        self.gss
    }

    /// Whether `ackno` lies in the acknowledgement window.
    #[inline(always)]
    pub(crate) fn ack_in_window(&mut self, ackno: Seqno) -> bool {
        let since_first = self.gss.distance_from(self.iss);
        self.young_tx &= since_first < PAST_THE_BEGINNING;
        // The distances to both ends of the window are compared, rather than `awl` computed.
        let back = self.gss.distance_from(ackno);
        let is_first_or_later = !self.young_tx || back <= since_first;
        back >= 0 && back.unsigned_abs() < self.window_local && is_first_or_later
    }

    /// Whether `ackno` lies between `awl` and the last packet sent. Before the first packet is sent
    /// the window is empty, and `awl` is after its high end.
    #[inline]
    fn acknowledges(&self, ackno: Seqno, awl: Seqno) -> bool {
        let awh = self.awh();
        awl.at_most(awh) && ackno.in_window(awl, awh)
    }

    /// The check of step 6 for a packet of this type.
    pub(crate) fn is_valid(&mut self, ty: PacketType, seq: Seqno, ackno: Option<Seqno>) -> bool {
        let ends = matches!(ty, PacketType::CloseReq | PacketType::Close | PacketType::Reset);
        let (swl, awl) = if ends { (self.gsr.next(), self.gar) } else { (self.swl(), self.awl()) };
        seq.in_window(swl, self.swh()) && ackno.is_none_or(|a| self.acknowledges(a, awl))
    }

    /// Accepts `seq` if it is the next number and the acknowledgement number is valid. Returns
    /// whether it was accepted. If so, the check of step 6 would have passed.
    #[inline(always)]
    pub(crate) fn take_next_in_order(&mut self, seq: Seqno, ackno: Option<Seqno>) -> bool {
        if seq.prev() != self.gsr || ackno.is_some_and(|ackno| !self.ack_in_window(ackno)) {
            return false;
        }
        if seq.low24() == 0 {
            // Both calls note when a window no longer reaches back to the first number, as in step
            // 6. An occasional call is enough, since that number is far further back.
            let _ = (self.swl(), self.awl());
        }
        self.gsr = seq;
        if let Some(ackno) = ackno {
            self.on_valid_ack(ackno);
        }
        true
    }

    /// Accepts the next `count` numbers.
    pub(crate) fn take_run_in_order(&mut self, count: u64) {
        self.gsr = self.gsr.add(count - 1);
        self.take_next_in_order(self.gsr.next(), None);
    }

    /// A valid packet `seq` arrived.
    pub(crate) fn on_valid(&mut self, seq: Seqno) {
        self.gsr = self.gsr.max(seq);
    }

    /// A valid packet other than a Sync acknowledged `ackno`.
    pub(crate) fn on_valid_ack(&mut self, ackno: Seqno) {
        self.gar = self.gar.max(ackno);
    }
}

//= 4340-7.5.1-1
//= 4340-7.5.1-2
/// Keeps a window from reaching back before the first number. This applies only at the beginning:
/// numbers of a long connection wrap.
#[inline(always)]
fn clamp_to_first(low: Seqno, greatest: Seqno, first: Seqno, young: &mut bool) -> Seqno {
    if !*young {
        return low;
    }
    if greatest.distance_from(first) >= PAST_THE_BEGINNING {
        *young = false;
        return low;
    }
    low.max(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(gsr: u64, gss: u64) -> Sequence {
        let mut s = Sequence::new(Seqno::new(10), 100);
        s.start_receiving(Seqno::new(1000));
        s.gsr = Seqno::new(gsr);
        s.gss = Seqno::new(gss);
        s
    }

    #[test]
    fn windows_are_a_quarter_back_and_three_quarters_ahead() {
        let mut s = at(5000, 9000);
        assert_eq!((s.swl().value(), s.swh().value()), (4976, 5075));
        assert_eq!((s.awl().value(), s.awh().value()), (8901, 9000));
        s.window_remote = 33;
        assert_eq!((s.swl().value(), s.swh().value()), (4993, 5025));
    }

    //= 4340-7.5.1-1 test
    //= 4340-7.5.1-2 test
    #[test]
    fn windows_start_at_the_first_numbers_only_at_first() {
        let mut s = at(1003, 12);
        assert_eq!((s.swl().value(), s.awl().value()), (1000, 10));
        s.gsr = s.isr.add(1 << 46);
        let _ = s.swl();
        s.gsr = Seqno::new(1003);
        assert_eq!(s.swl().value(), 979);
    }

    #[test]
    fn nothing_is_acknowledged_before_the_first_packet_has_left() {
        let mut s = Sequence::new(Seqno::new(10), 100);
        s.start_receiving(Seqno::new(1000));
        let checks = |s: &mut Sequence, ack| {
            let (seq, ackno) = (Seqno::new(1001), Seqno::new(ack));
            let mut is_valid = |ty| s.is_valid(ty, seq, Some(ackno));
            [is_valid(PacketType::Ack), is_valid(PacketType::Close), s.ack_in_window(ackno)]
        };
        for ack in [0, 9, 10, 11, 1 << 40, (1 << 48) - 1] {
            assert_eq!(checks(&mut s, ack), [false; 3], "{ack}");
        }
        s.take_next();
        assert_eq!([9, 10, 11].map(|ack| checks(&mut s, ack)), [[false; 3], [true; 3], [false; 3]]);
    }

    #[test]
    fn an_acknowledgement_is_in_the_window_where_its_low_end_says_so() {
        for since_first in [0, 1, 98, 99, 100, 5000, (1 << 46) - 1, 1 << 46] {
            let mut s = at(5000, 10 + since_first);
            for back in [-1_i64, 0, 1, 9, 10, 97, 98, 99, 100, 4999, 5000, 5001, (1 << 46) - 1] {
                let ackno = s.gss.sub(back as u64);
                for young in [true, false] {
                    s.young_tx = young;
                    let mut by_awl = s;
                    let awl = by_awl.awl();
                    assert_eq!(s.ack_in_window(ackno), by_awl.acknowledges(ackno, awl));
                    assert_eq!(s.young_tx, by_awl.young_tx);
                }
            }
        }
    }

    //= 4340-8.5-1 test
    #[test]
    fn packets_that_end_a_connection_must_be_newer_than_all_before() {
        let mut s = at(5000, 9000);
        s.gar = Seqno::new(8990);
        let mut ok = |ty, seq, ack| s.is_valid(ty, Seqno::new(seq), Some(Seqno::new(ack)));
        assert!(ok(PacketType::Ack, 5000, 8950) && ok(PacketType::Reset, 5001, 8990));
        assert!(!ok(PacketType::Reset, 5000, 8990) && !ok(PacketType::Close, 5001, 8989));
        assert!(!ok(PacketType::CloseReq, 5076, 8990) && !ok(PacketType::Ack, 5001, 9001));
    }
}
