//! A host behind a NAT.

use std::collections::VecDeque;

use udccp_base::{
    AppPort, Datagram, Instant, Machine, Message, Payload, Probe, SendOutcome, Transport,
};

use crate::nat::{Nat, Side};

/// A transport whose packets pass a NAT: from outside, the two are one host at the NAT's external
/// address. Passing the NAT takes no time.
pub struct HostBehindNat {
    inner: Box<dyn Transport>,
    nat: Nat,
    /// Packets that leave the NAT to the outside.
    leaving: VecDeque<Datagram>,
}

impl HostBehindNat {
    /// Puts `inner`, which knows only its private address, behind `nat`.
    pub fn new(inner: Box<dyn Transport>, nat: Nat) -> Self {
        Self { inner, nat, leaving: VecDeque::new() }
    }

    /// The NAT.
    pub const fn nat(&self) -> &Nat {
        &self.nat
    }

    /// Passes on all packets that the NAT has ready.
    fn pump(&mut self, now: Instant) {
        while let Some((side, datagram)) = self.nat.poll_transmit() {
            match side {
                Side::Inside => self.inner.handle_datagram(now, datagram),
                Side::Outside => self.leaving.push_back(datagram),
            }
        }
    }
}

impl core::fmt::Debug for HostBehindNat {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HostBehindNat").field("nat", &self.nat).finish_non_exhaustive()
    }
}

impl Machine for HostBehindNat {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram) {
        self.nat.handle_datagram(now, Side::Outside, datagram);
        self.pump(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.nat.handle_timeout(now);
        self.pump(now);
        self.inner.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        loop {
            if let Some(datagram) = self.leaving.pop_front() {
                return Some(datagram);
            }
            let said = self.inner.poll_transmit(now)?;
            self.nat.handle_datagram(now, Side::Inside, said);
            self.pump(now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match (self.inner.poll_timeout(), self.nat.poll_timeout()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

impl AppPort for HostBehindNat {
    fn send(&mut self, now: Instant, message: Message) -> SendOutcome {
        self.inner.send(now, message)
    }

    fn is_writable(&self) -> bool {
        self.inner.is_writable()
    }

    fn close(&mut self, now: Instant) {
        self.inner.close(now);
    }

    fn max_payload(&self) -> usize {
        self.inner.max_payload()
    }

    fn keeps_boundaries(&self) -> bool {
        self.inner.keeps_boundaries()
    }
}

impl Transport for HostBehindNat {
    fn open(&mut self, now: Instant) {
        self.inner.open(now);
    }

    fn poll_delivered(&mut self, now: Instant) -> Option<Payload> {
        self.inner.poll_delivered(now)
    }

    fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }

    fn probe(&self) -> Probe {
        self.inner.probe()
    }
}
