//! Writes segments: header bytes, options, acknowledgements.

use udccp_base::{Datagram, Ecn, HeaderBytes, Instant, Payload, Sent};

use super::{Connection, Control, Event};
use crate::send::{Segment, SendSide, Side};
use crate::seq;
use crate::wire::{Flags, SackBuffer, TcpHeader, TcpOptions};

impl<S: Side> Connection<S> {
    /// The next segment, if one may leave.
    #[inline]
    pub(super) fn next_datagram(&mut self, now: Instant, out: &mut Option<Datagram>) -> Sent {
        let is_open = self.control.is_none() && self.state.is_synchronized();
        if !is_open {
            return self.next_control(now, out);
        }
        if !self.send.is_quiet(now) {
            return self.choose_datagram(now, out);
        }
        if !self.recv.ack_due(now) {
            return Sent::Nothing;
        }
        self.due_ack(now, out);
        Sent::Last
    }

    /// Chooses the next segment of a synchronised connection, and writes it.
    #[inline(never)]
    fn choose_datagram(&mut self, now: Instant, out: &mut Option<Datagram>) -> Sent {
        let Some(side) = self.send.get_mut() else { return self.lone_ack(now, out) };
        let full = side.next_full(now);
        let (offset, data, (flags, ecn)) = match full {
            Some((offset, data)) => (offset, data, self.congestion_marks(Flags::ACK)),
            None => match side.next_segment(now) {
                Some(segment) => (segment.range.start, segment.data, self.marks(now, &segment)),
                None => return self.lone_ack(now, out),
            },
        };
        self.acknowledge(now, offset, flags, (data, ecn), out);
        let is_blocked = self.send.get().is_some_and(SendSide::is_blocked);
        if is_blocked { Sent::Last } else { Sent::One }
    }

    /// Writes an acknowledgement without data, if one is due.
    #[inline(never)]
    fn lone_ack(&mut self, now: Instant, out: &mut Option<Datagram>) -> Sent {
        if !self.recv.ack_due(now) {
            return Sent::Nothing;
        }
        self.due_ack(now, out);
        Sent::One
    }

    #[cold]
    fn next_control(&mut self, now: Instant, out: &mut Option<Datagram>) -> Sent {
        let Some(control) = self.control.take() else { return Sent::Nothing };
        self.control_segment(now, control, out);
        Sent::One
    }

    /// Writes the acknowledgement that is due.
    #[inline(never)]
    fn due_ack(&mut self, now: Instant, out: &mut Option<Datagram>) {
        self.recv.pure_acks += 1;
        self.acknowledge(now, self.send.edges().1, Flags::ACK, (0, Ecn::NotEct), out);
    }

    #[inline(never)]
    fn pure_ack(&mut self, now: Instant, offset: u64, out: &mut Option<Datagram>) {
        self.acknowledge(now, offset, Flags::ACK, (0, Ecn::NotEct), out);
    }

    fn control_segment(&mut self, now: Instant, control: Control, out: &mut Option<Datagram>) {
        match control {
            Control::Ack => return self.pure_ack(now, self.send.edges().1, out),
            // An old number without data: the peer must answer with its window.
            Control::Probe => {
                return self.pure_ack(now, self.send.edges().0.saturating_sub(1), out);
            }
            Control::Syn | Control::SynAck => {}
        }
        let flags = self.syn_flags(control);
        // The window of a SYN is never scaled (RFC 7323 section 2.2).
        let window = self.config.recv_buffer_bytes.min(0xffff) as u16;
        self.recv.promise(window);
        let header = TcpHeader {
            src_port: self.ports.0,
            dst_port: self.ports.1,
            seq: self.isn,
            ack: if flags.has(Flags::ACK) { seq::to_wire(self.peer_isn, 1) } else { 0 },
            flags,
            window,
            options: self.syn_options(now, control),
        };
        self.emit(&header, 0, Ecn::NotEct, out);
    }

    /// The flags of a segment with data, and the ECN codepoint of its packet.
    #[inline]
    fn marks(&mut self, now: Instant, segment: &Segment) -> (Flags, Ecn) {
        let mut flags = Flags::ACK;
        if segment.push {
            flags = flags.with(Flags::PSH);
        }
        let mut ecn = Ecn::NotEct;
        if segment.data > 0 && !segment.retransmission {
            // Only new data is ECN-capable (RFC 3168 sections 6.1.4 and 6.1.5).
            (flags, ecn) = self.congestion_marks(flags);
        }
        if segment.fin {
            flags = flags.with(Flags::FIN);
            self.step(now, Event::FinSent);
        }
        (flags, ecn)
    }

    /// The flags of new data with those for its congestion control, and its ECN codepoint.
    #[inline(always)]
    fn congestion_marks(&mut self, flags: Flags) -> (Flags, Ecn) {
        if !self.agreed.ecn {
            return (flags, Ecn::NotEct);
        }
        let owes_cwr = self.send.get_mut().is_some_and(SendSide::take_cwr);
        (if owes_cwr { flags.with(Flags::CWR) } else { flags }, Ecn::Ect0)
    }

    /// Writes a segment of a synchronised connection; all of them acknowledge.
    #[inline(always)]
    fn acknowledge(
        &mut self,
        now: Instant,
        offset: u64,
        flags: Flags,
        (data, ecn): (u32, Ecn),
        out: &mut Option<Datagram>,
    ) {
        if !self.agreed.timestamps || (self.agreed.sack && self.recv.has_blocks()) {
            return self.acknowledge_any(now, offset, flags, (data, ecn), out);
        }
        let header = self.header(now, offset, flags);
        if let Some(bytes) = header.usual_bytes(self.pseudo_number, data as usize) {
            self.put(HeaderBytes::of(bytes), data, ecn, out);
        }
    }

    /// The header of such a segment, without SACK blocks.
    #[inline(always)]
    fn header(&mut self, now: Instant, offset: u64, flags: Flags) -> TcpHeader<'static> {
        let echo = if self.echo_congestion { Flags::ECE } else { Flags::default() };
        let timestamps = self.agreed.timestamps;
        let timestamps = timestamps.then(|| (self.timestamp(now), self.recent_timestamp));
        let expected = self.recv.nxt();
        self.last_ack_sent = expected;
        TcpHeader {
            src_port: self.ports.0,
            dst_port: self.ports.1,
            seq: seq::to_wire(self.isn, offset),
            ack: seq::to_wire(self.peer_isn, expected),
            flags: flags.with(echo),
            window: self.recv.acknowledge(),
            options: TcpOptions { timestamps, ..TcpOptions::default() },
        }
    }

    /// The general case of [`Self::acknowledge`]. It makes its own header, which is in memory.
    #[inline(never)]
    fn acknowledge_any(
        &mut self,
        now: Instant,
        offset: u64,
        flags: Flags,
        (data, ecn): (u32, Ecn),
        out: &mut Option<Datagram>,
    ) {
        // Before the header is made, which takes them as reported.
        let blocks = if self.agreed.sack { self.blocks() } else { SackBuffer::default() };
        let usual = self.header(now, offset, flags);
        let options = TcpOptions { sack: blocks.blocks(), ..usual.options };
        let header = TcpHeader { options, ..usual };
        self.emit(&header, data, ecn, out);
    }

    /// The SACK blocks to report.
    fn blocks(&self) -> SackBuffer {
        let mut sack = SackBuffer::default();
        self.recv.for_each_block(|r| {
            let edge = |offset| seq::to_wire(self.peer_isn, offset);
            sack.push(edge(r.start), edge(r.end));
        });
        sack
    }

    /// Writes the datagram with this header.
    #[inline(always)]
    fn put(&self, header: HeaderBytes, data: u32, ecn: Ecn, out: &mut Option<Datagram>) {
        // So that there is nothing to drop, and the datagram is written to its place.
        if out.is_some() {
            *out = None;
        }
        let (protocol, payload) = (Datagram::TCP, Payload::Zeros(data));
        let Some((src, dst)) = self.hosts.v4() else {
            *out = self.hosts.datagram(header, payload, ecn);
            return;
        };
        *out = Some(Datagram { src, dst, protocol, ecn, header, payload });
    }

    /// Writes a datagram with any header.
    #[inline(never)]
    fn emit(&self, header: &TcpHeader<'_>, data: u32, ecn: Ecn, out: &mut Option<Datagram>) {
        let pseudo = self.hosts.pseudo();
        let header = self.config.header(|block| header.emit(block, pseudo, data as usize));
        self.put(header, data, ecn, out);
    }
}
