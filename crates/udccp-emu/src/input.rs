//! Reads packets that a host's kernel sends, and queues them for the network.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use bytes::BytesMut;
use udccp_base::{Datagram, Instant};

use crate::clock::Clock;
use crate::packet;
use crate::timing::Meter;
use crate::tun::Tun;

/// Most packets read in one call, so that a host that sends without pause does not block the
/// others.
const BATCH: usize = 256;
/// Buffer for packets, allocated at once.
const ARENA: usize = 256 << 10;
/// The longest IP packet.
const LONGEST: usize = 65_535;

/// Packets of one TUN device. None enters the network before the time at which the reading ended;
/// otherwise a packet that came during the reading would enter too early.
#[derive(Debug)]
pub(crate) struct TunInput {
    tun: Arc<Tun>,
    meter: Rc<RefCell<Meter>>,
    /// UDP port of encapsulated DCCP, if the flow has one. It is needed only to tell data from
    /// acknowledgements.
    dccp_udp_port: Option<u16>,
    buffer: Box<[u8]>,
    arena: BytesMut,
    waiting: VecDeque<Datagram>,
    /// When the last of them was read.
    read_at: Instant,
}

impl TunInput {
    pub(crate) fn new(
        tun: Arc<Tun>,
        dccp_udp_port: Option<u16>,
        meter: Rc<RefCell<Meter>>,
    ) -> Self {
        Self {
            tun,
            meter,
            dccp_udp_port,
            buffer: vec![0; LONGEST].into(),
            arena: BytesMut::new(),
            waiting: VecDeque::new(),
            read_at: Instant::ZERO,
        }
    }

    pub(crate) fn tun(&self) -> &Tun {
        &self.tun
    }

    /// Reads the packets waiting in the device, unless packets of an earlier call are still queued.
    /// Returns the time after reading, or `None` if there is no packet.
    pub(crate) fn read(&mut self, clock: Clock) -> Option<Instant> {
        if self.waiting.is_empty() {
            for _ in 0..BATCH {
                let Ok(Some(len)) = self.tun.read(&mut self.buffer) else { break };
                self.store(len);
            }
            self.read_at = clock.now();
        }
        (!self.waiting.is_empty()).then_some(self.read_at)
    }

    /// The next packet, if it was read by `now`.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Datagram> {
        if self.read_at > now {
            return None;
        }
        self.waiting.pop_front()
    }

    fn store(&mut self, len: usize) {
        if self.arena.capacity() < len {
            self.arena.reserve(ARENA);
        }
        self.arena.extend_from_slice(&self.buffer[..len]);
        let packet = self.arena.split().freeze();
        match packet::datagram(packet, self.dccp_udp_port) {
            Some(datagram) => self.waiting.push_back(datagram),
            None => self.meter.borrow_mut().refused(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixDatagram;
    use std::thread;

    use udccp_base::{Duration, Payload};

    use super::*;
    use crate::packet::tests::packet;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the host sends while the device is read")]
    fn packets_enter_the_network_after_their_send_time() {
        const PACKETS: usize = 20_000;
        let clock = Clock::in_future(Duration::ZERO);
        let (host, device) = UnixDatagram::pair().unwrap();
        device.set_nonblocking(true).unwrap();
        let tun = Arc::new(Tun::of_file(File::from(OwnedFd::from(device))));
        let meter = Rc::new(RefCell::new(Meter::new(1)));
        let mut input = TunInput::new(tun, None, meter);
        let sender = thread::spawn(move || {
            for _ in 0..PACKETS {
                let sent_at = clock.now().as_nanos().to_be_bytes();
                // UDP; the payload is the time of sending.
                let udp = [[0, 1, 0, 2, 0, 16, 0, 0], sent_at].concat();
                host.send(&packet(17, &udp)).unwrap();
            }
        });
        let mut arrived = 0;
        while arrived < PACKETS {
            let Some(at) = input.read(clock) else { continue };
            assert!(input.next(Instant::from_nanos(at.as_nanos() - 1)).is_none());
            while let Some(datagram) = input.next(at) {
                let Payload::Bytes(sent_at) = &datagram.payload else { panic!("{datagram:?}") };
                let sent_at = u64::from_be_bytes(sent_at[..].try_into().unwrap());
                assert!(sent_at <= at.as_nanos(), "sent at {sent_at} ns, entered at {at:?}");
                arrived += 1;
            }
        }
        sender.join().unwrap();
    }
}
