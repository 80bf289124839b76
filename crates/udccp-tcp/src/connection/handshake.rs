//! The handshake: SYN, SYN-ACK and negotiation of their options (RFC 9293 section 3.5).

use udccp_base::Instant;

use super::{Agreed, CloseReason, Connection, Control, Event, State};
use crate::config::segment_payload;
use crate::send::Side;
use crate::seq;
use crate::wire::{Flags, TcpHeader, TcpOptions};

/// Largest data segment to a peer that sends no MSS option (RFC 9293 section 3.7.1).
const DEFAULT_MSS: u16 = 536;

impl<S: Side> Connection<S> {
    /// Sends the SYN of the active end.
    pub(super) fn start(&mut self, now: Instant) {
        if self.state == State::Closed && !self.opened {
            self.opened = true;
            self.step(now, Event::Open);
            self.offer(now, Control::Syn);
        }
    }

    fn offer(&mut self, now: Instant, syn: Control) {
        self.control = Some(syn);
        self.syn_sent_at = now;
        self.state_deadline = now + self.send.rto();
    }

    /// A segment arrived in state `Listen`.
    pub(super) fn on_listen(&mut self, now: Instant, header: &TcpHeader<'_>) {
        if header.flags.has(Flags::SYN) && !header.flags.has(Flags::ACK) {
            self.step(now, Event::SynArrived);
            self.agree(header);
            self.offer(now, Control::SynAck);
        }
    }

    /// A segment arrived in state `SynSent`.
    pub(super) fn on_syn_sent(&mut self, now: Instant, header: &TcpHeader<'_>) {
        let answers_syn =
            header.flags.has(Flags::ACK) && seq::from_wire(self.isn, header.ack, 1) == Some(1);
        if !answers_syn {
            return;
        }
        if header.flags.has(Flags::RST) {
            self.abort(now, CloseReason::Reset);
        } else if header.flags.has(Flags::SYN) {
            self.agree(header);
            // The window of a SYN is never scaled (RFC 7323 section 2.2).
            self.establish(now, 1 + u64::from(header.window));
            self.control = Some(Control::Ack);
        }
    }

    /// The first acceptable acknowledgement arrived in state `SynReceived`.
    pub(super) fn on_syn_received(&mut self, now: Instant, header: &TcpHeader<'_>) {
        if seq::from_wire(self.isn, header.ack, 1).is_some_and(|ack| ack >= 1) {
            let window = u64::from(header.window) << self.agreed.peer_shift;
            self.establish(now, 1 + window);
        }
    }

    /// Applies the options of the peer's SYN.
    fn agree(&mut self, header: &TcpHeader<'_>) {
        let (peer, config) = (&header.options, &self.config);
        self.peer_isn = header.seq;
        self.last_ack_sent = 1;
        let scaling = peer.window_scale.filter(|_| config.window_scaling);
        let is_syn_ack = header.flags.has(Flags::ACK);
        let echo_asked = header.flags.has(Flags::ECE);
        // RFC 3168 section 6.1.1: a SYN carries ECE and CWR, its answer only ECE.
        let ecn = echo_asked && header.flags.has(Flags::CWR) != is_syn_ack;
        let timestamps = config.timestamps && peer.timestamps.is_some();
        self.agreed = Agreed {
            mss: config.mss.min(peer.mss.unwrap_or(DEFAULT_MSS)).max(64),
            timestamps,
            has_short_way: timestamps && config.receive_checksum_offload,
            sack: peer.sack_permitted,
            ecn: config.ecn && ecn,
            peer_shift: scaling.unwrap_or(0),
        };
        if scaling.is_some() {
            self.recv.set_shift(self.recv.wanted_shift());
        }
        self.recent_timestamp = peer.timestamps.map_or(0, |(val, _)| val);
    }

    fn establish(&mut self, now: Instant, window_end: u64) {
        self.step(now, Event::HandshakeDone);
        self.state_deadline = Instant::MAX;
        self.control = None;
        let retransmitted = self.send.unanswered() > 0;
        let rtt = (!retransmitted).then(|| now - self.syn_sent_at);
        let payload = segment_payload(self.agreed.mss, self.agreed.timestamps) as u32;
        self.send.establish(now, (payload, window_end), rtt, &self.config);
    }

    /// Repeats SYN or SYN-ACK with back-off when the handshake timer expires, and finally gives up.
    pub(super) fn on_handshake_timeout(&mut self, now: Instant) {
        self.send.back_off(&self.config);
        if self.send.unanswered() >= self.config.syn_retries {
            self.abort(now, CloseReason::TimedOut);
            self.state_deadline = Instant::MAX;
            return;
        }
        let syn = if self.state == State::SynSent { Control::Syn } else { Control::SynAck };
        self.offer(now, syn);
    }

    /// The options of our SYN or SYN-ACK.
    pub(super) fn syn_options(&self, now: Instant, kind: Control) -> TcpOptions<'static> {
        let answer = kind == Control::SynAck;
        let echo = if answer { self.recent_timestamp } else { 0 };
        let scaling = if answer { self.recv.is_scaled() } else { self.config.window_scaling };
        // In an answer, the options are the negotiated ones.
        let (mss, timestamps) = match answer {
            true => (self.agreed.mss, self.agreed.timestamps),
            false => (self.config.mss, self.config.timestamps),
        };
        TcpOptions {
            mss: Some(mss),
            window_scale: scaling.then(|| self.recv.wanted_shift()),
            sack_permitted: !answer || self.agreed.sack,
            timestamps: timestamps.then(|| (self.timestamp(now), echo)),
            ..TcpOptions::default()
        }
    }

    /// The control bits of our SYN or SYN-ACK.
    pub(super) fn syn_flags(&self, kind: Control) -> Flags {
        match kind {
            Control::SynAck if self.agreed.ecn => Flags::SYN.with(Flags::ACK).with(Flags::ECE),
            Control::SynAck => Flags::SYN.with(Flags::ACK),
            _ if self.config.ecn => Flags::SYN.with(Flags::ECE).with(Flags::CWR),
            _ => Flags::SYN,
        }
    }
}
