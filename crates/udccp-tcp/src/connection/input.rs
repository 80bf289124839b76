//! Handles a segment at a synchronised end (RFC 9293 section 3.10.7.4).

use udccp_base::{Datagram, Duration, Ecn, Instant};

use super::{CloseReason, Connection, Event, State, timestamp_at};
use crate::ranges::Range;
use crate::send::{AckInfo, Side};
use crate::seq;
use crate::wire::{Flags, TcpHeader, UsualHeader};

impl<S: Side> Connection<S> {
    /// Dispatches an intact segment with `data` bytes by state.
    pub(super) fn on_header(
        &mut self,
        now: Instant,
        header: &TcpHeader<'_>,
        data: usize,
        ecn: Ecn,
    ) {
        match self.state {
            State::Closed => {}
            State::Listen => self.on_listen(now, header),
            State::SynSent => self.on_syn_sent(now, header),
            _ => self.on_segment(now, header, data, ecn),
        }
    }

    /// Handles a segment that is next in order, of an open connection, with the usual header: most
    /// segments are. Returns false, and does nothing, if it is another.
    #[inline(always)]
    pub(super) fn on_next(&mut self, now: Instant, datagram: &Datagram) -> bool {
        if self.state != State::Established || !self.agreed.has_short_way {
            return false;
        }
        let Some(header) = UsualHeader::of(&datagram.header, (self.ports.1, self.ports.0)) else {
            return false;
        };
        let (start, (una, nxt)) = (self.recv.nxt(), self.send.edges());
        let ahead = header.ack.wrapping_sub(seq::to_wire(self.isn, una));
        let is_next = header.seq == seq::to_wire(self.peer_isn, start)
            && !seq::timestamp_before(header.timestamps.0, self.recent_timestamp)
            && u64::from(ahead) <= nxt - una;
        if !is_next {
            return false;
        }
        if start <= self.last_ack_sent {
            self.recent_timestamp = header.timestamps.0;
        }
        let ack = una + u64::from(ahead);
        let window_end = ack + (u64::from(header.window) << self.agreed.peer_shift);
        if una < nxt || !self.send.on_idle_ack(window_end) {
            self.on_plain_ack(now, header.timestamps, ack, window_end);
        }
        let len = datagram.payload.len() as u64;
        if len > 0 {
            self.note_congestion(datagram.ecn, Flags::ACK);
            if !self.recv.on_next(now, len) {
                self.recv.on_segment(now, Range::new(start, start + len), false, &self.send);
            }
            if self.recv.is_finished() {
                self.after_data(now);
            }
        }
        true
    }

    /// Passes an acknowledgement with no options but timestamps on to the sending side.
    #[inline(never)]
    fn on_plain_ack(&mut self, now: Instant, timestamps: (u32, u32), ack: u64, window_end: u64) {
        let offset = self.timestamp_offset;
        let timestamp_rtt = || rtt_of(timestamp_at(now, offset), timestamps.1);
        if let Some(side) = self.send.get_mut()
            && side.on_next_ack(now, (ack, window_end), timestamp_rtt)
        {
            return self.note_fin_acked(now);
        }
        let info = AckInfo {
            ack,
            window_end,
            blocks: &[],
            timestamp_rtt: timestamp_rtt(),
            peer_timestamp: Some(timestamps.0),
            congestion_echo: false,
        };
        self.send.on_ack(now, &info, &self.config);
        self.note_fin_acked(now);
    }

    fn on_segment(&mut self, now: Instant, header: &TcpHeader<'_>, data: usize, ecn: Ecn) {
        let flags = header.flags;
        let Some(start) = seq::from_wire(self.peer_isn, header.seq, self.recv.nxt()) else {
            return;
        };
        let fin = flags.has(Flags::FIN);
        let space = data as u64 + u64::from(fin) + u64::from(flags.has(Flags::SYN));
        let range = Range::new(start, start + space);
        if self.is_stale(header) || !self.recv.is_acceptable(range) {
            if !flags.has(Flags::RST) {
                self.on_unacceptable(now, header, range);
            }
            return;
        }
        if flags.has(Flags::RST) {
            // Only an exact match resets; a near one is challenged (RFC 9293 section 3.10.7.4).
            match start == self.recv.nxt() {
                true => self.abort(now, CloseReason::Reset),
                false => self.recv.owe_ack(),
            }
            return;
        }
        if !flags.has(Flags::ACK) || flags.has(Flags::SYN) {
            self.recv.owe_ack();
            return;
        }
        self.take_timestamp(header, start);
        if self.state == State::SynReceived {
            self.on_syn_received(now, header);
        }
        if !self.on_acknowledgement(now, header) {
            return;
        }
        if range.start < range.end {
            self.note_congestion(ecn, flags);
            self.recv.on_segment(now, range, fin, &self.send);
            self.after_data(now);
        }
    }

    /// Protection against wrapped sequence numbers (RFC 7323 section 5.3).
    fn is_stale(&self, header: &TcpHeader<'_>) -> bool {
        self.agreed.timestamps
            && header
                .options
                .timestamps
                .is_some_and(|(val, _)| seq::timestamp_before(val, self.recent_timestamp))
    }

    fn on_unacceptable(&mut self, now: Instant, header: &TcpHeader<'_>, range: Range) {
        if self.state == State::SynReceived && header.flags.has(Flags::SYN) {
            // Our answer to the SYN was lost.
            self.control = Some(super::Control::SynAck);
            return;
        }
        if self.state == State::TimeWait {
            self.state_deadline = now + self.config.time_wait;
        }
        self.recv.on_unacceptable(range);
    }

    /// Updates TS.Recent if the next acknowledgement will cover this segment.
    #[inline]
    fn take_timestamp(&mut self, header: &TcpHeader<'_>, start: u64) {
        if let Some((val, _)) = header.options.timestamps
            && start <= self.last_ack_sent
        {
            self.recent_timestamp = val;
        }
    }

    /// Processes the acknowledgement field; false drops the rest of the segment.
    #[inline(always)]
    fn on_acknowledgement(&mut self, now: Instant, header: &TcpHeader<'_>) -> bool {
        let (una, nxt) = self.send.edges();
        let Some(ack) = seq::from_wire(self.isn, header.ack, una) else { return false };
        if ack > nxt {
            // It acknowledges data that was never sent.
            self.recv.owe_ack();
            return false;
        }
        if ack < una {
            return true;
        }
        let window_end = ack + (u64::from(header.window) << self.agreed.peer_shift);
        let is_idle = una == nxt && header.options.sack.is_empty();
        if !is_idle || !self.send.on_idle_ack(window_end) {
            self.on_ack(now, header, ack, window_end);
        }
        true
    }

    /// Passes an acknowledgement up to `ack` on to the sending side.
    #[inline(never)]
    fn on_ack(&mut self, now: Instant, header: &TcpHeader<'_>, ack: u64, window_end: u64) {
        let (una, nxt) = self.send.edges();
        let mut blocks = [Range::new(0, 0); 4];
        let mut count = 0;
        if self.agreed.sack {
            for (left, right) in header.options.sack.iter().take(blocks.len()) {
                let edges =
                    (seq::from_wire(self.isn, left, una), seq::from_wire(self.isn, right, una));
                if let (Some(left), Some(right)) = edges
                    && left < right
                    && right <= nxt
                {
                    blocks[count] = Range::new(left, right);
                    count += 1;
                }
            }
        }
        self.send.on_ack(
            now,
            &AckInfo {
                ack,
                window_end,
                blocks: &blocks[..count],
                timestamp_rtt: self.timestamp_rtt(now, header),
                peer_timestamp: header.options.timestamps.map(|(val, _)| val),
                congestion_echo: self.agreed.ecn && header.flags.has(Flags::ECE),
            },
            &self.config,
        );
        self.note_fin_acked(now);
    }

    #[inline]
    fn note_fin_acked(&mut self, now: Instant) {
        if self.send.get().is_some_and(|side| side.is_closing() && side.fin_acked()) {
            self.step(now, Event::FinAcked);
        }
    }

    /// The time since the segment with the echoed timestamp left, at least one tick.
    fn timestamp_rtt(&self, now: Instant, header: &TcpHeader<'_>) -> Option<Duration> {
        let (_, echo) = header.options.timestamps.filter(|_| self.agreed.timestamps)?;
        rtt_of(self.timestamp(now), echo)
    }

    /// RFC 3168 section 6.1.3: echo a mark until the sender reports that it has cut its window.
    fn note_congestion(&mut self, ecn: Ecn, flags: Flags) {
        if !self.agreed.ecn {
            return;
        }
        if flags.has(Flags::CWR) {
            self.echo_congestion = false;
        }
        if ecn == Ecn::Ce && !self.echo_congestion {
            self.echo_congestion = true;
            self.recv.owe_ack();
        }
    }

    fn after_data(&mut self, now: Instant) {
        if self.recv.is_finished() {
            self.step(now, Event::PeerFinished);
            if self.close_with_peer {
                self.end_stream();
            }
        }
    }
}

/// The time since our timestamp `echo`, which the peer returned, if that is now `timestamp`.
fn rtt_of(timestamp: u32, echo: u32) -> Option<Duration> {
    let ticks = timestamp.wrapping_sub(echo);
    // An echo of the future, or of no timestamp of ours, is ignored.
    (ticks < 1 << 30).then(|| Duration::from_millis(u64::from(ticks.max(1))))
}
