//! A connection as a [`Machine`] and a [`Transport`].

use udccp_base::{
    AppPort, Datagram, Instant, Machine, Message, Payload, Probe, SendOutcome, Sent, Transport,
};

use super::{CloseReason, Connection, Control, Event, State};
use crate::send::Side;
use crate::wire::TcpHeader;

impl<S: Side> Connection<S> {
    /// Ends our stream after the written data.
    pub(super) fn end_stream(&mut self) {
        self.send.made(&self.config).close();
    }

    /// Handles the datagram in a place, and leaves none there.
    #[inline(always)]
    fn take_datagram(&mut self, now: Instant, place: &mut Option<Datagram>) {
        if let Some(datagram) = place
            && !self.on_next(now, datagram)
        {
            self.on_datagram(now, datagram);
        }
        *place = None;
    }

    /// Handles any datagram.
    #[inline(never)]
    fn on_datagram(&mut self, now: Instant, datagram: &Datagram) {
        let mut header = TcpHeader::default();
        let check = (!self.config.receive_checksum_offload).then(|| self.hosts.pseudo());
        match header.read(&datagram.header, &datagram.payload, check) {
            Ok(data) if (header.dst_port, header.src_port) == self.ports => {
                self.on_header(now, &header, data, datagram.ecn);
            }
            _ => self.bad_segments += 1,
        }
    }
}

impl<S: Side> Machine for Connection<S> {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram) {
        self.handle_datagram_in(now, &mut Some(datagram));
    }

    fn handle_datagram_in(&mut self, now: Instant, place: &mut Option<Datagram>) {
        self.take_datagram(now, place);
    }
    fn handle_timeout(&mut self, now: Instant) {
        if now >= self.state_deadline {
            match self.state {
                State::SynSent | State::SynReceived => self.on_handshake_timeout(now),
                _ => {
                    self.state_deadline = Instant::MAX;
                    self.step(now, Event::TimeWaitOver);
                }
            }
        }
        if self.state.is_synchronized() {
            if self.send.get_mut().is_some_and(|side| side.on_timeout(now)) {
                self.control = Some(Control::Probe);
            }
            if self.send.unanswered() > self.config.data_retries {
                self.abort(now, CloseReason::TimedOut);
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        let mut datagram = None;
        self.next_datagram(now, &mut datagram);
        datagram
    }

    fn poll_transmit_into(&mut self, now: Instant, out: &mut Option<Datagram>) -> Sent {
        self.next_datagram(now, out)
    }

    #[inline]
    fn may_transmit(&self) -> bool {
        let is_open = self.control.is_none() && self.state.is_synchronized();
        !is_open || self.send.may_send() || self.recv.deadline() < Instant::MAX
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let mut deadline = self.state_deadline;
        if self.state.is_synchronized() {
            deadline = deadline.min(self.send.deadline()).min(self.recv.deadline());
        }
        (deadline < Instant::MAX).then_some(deadline)
    }
}

impl<S: Side> AppPort for Connection<S> {
    fn send(&mut self, _now: Instant, message: Message) -> SendOutcome {
        if self.send.is_closing() || self.close_reason.is_some() {
            return SendOutcome::Closed(message);
        }
        match self.send.made(&self.config).write(message.payload.len() as u64) {
            true => SendOutcome::Accepted,
            false => SendOutcome::Full(message),
        }
    }

    #[inline]
    fn fill(&mut self, _now: Instant, bytes: Option<u32>, most: u32) -> (u32, u32) {
        let side = self.send.made(&self.config);
        let bytes = bytes.unwrap_or(side.segment_payload());
        let may_write = bytes > 0 && self.close_reason.is_none();
        (if may_write { side.write_several(bytes.into(), most) } else { 0 }, bytes)
    }

    fn is_writable(&self) -> bool {
        self.close_reason.is_none()
            && self.send.get().is_none_or(|side| !side.is_closing() && side.is_writable())
    }

    fn close(&mut self, now: Instant) {
        match self.state {
            State::Closed | State::Listen => {
                self.opened = true;
                self.step(now, Event::Abort);
            }
            _ => self.end_stream(),
        }
    }

    fn max_payload(&self) -> usize {
        self.send.segment_payload() as usize
    }

    fn keeps_boundaries(&self) -> bool {
        false
    }
}

impl<S: Side> Transport for Connection<S> {
    fn open(&mut self, now: Instant) {
        if !self.close_with_peer {
            self.start(now);
        }
    }

    fn poll_delivered(&mut self, _now: Instant) -> Option<Payload> {
        self.recv.read().map(Payload::Zeros)
    }

    #[inline]
    fn take_delivered(&mut self, _now: Instant) -> u64 {
        self.recv.read_all()
    }

    #[inline]
    fn receive_in(&mut self, now: Instant, place: &mut Option<Datagram>) -> (u64, Instant) {
        self.take_datagram(now, place);
        let bytes = self.recv.read_all();
        // An end that sends has nearly always something to send after an acknowledgement. The
        // others send acknowledgements; if one is due, its deadline has passed.
        let is_open = self.control.is_none() && self.state.is_synchronized();
        let idle_until = match self.send.get() {
            None if is_open => self.state_deadline.min(self.recv.deadline()),
            _ => Instant::ZERO,
        };
        (bytes, idle_until)
    }

    fn watches_device(&self) -> bool {
        self.config.small_queues
    }

    fn on_device(&mut self, now: Instant, _ip_len: u32, leaves: Instant) {
        if let Some(side) = self.send.get_mut() {
            side.on_device(now, leaves);
        }
    }

    fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    fn is_spent(&self) -> bool {
        match self.state {
            State::Closed => {
                // Before it opens, the active end counts as closed too.
                (self.opened || self.close_with_peer) && self.control.is_none()
            }
            State::TimeWait => {
                let others = self.send.deadline().min(self.recv.deadline());
                self.control.is_none() && others == Instant::MAX
            }
            _ => false,
        }
    }

    fn probe(&self) -> Probe {
        self.send.probe(&self.config)
    }
}
