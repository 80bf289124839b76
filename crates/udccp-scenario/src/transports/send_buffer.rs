//! The send buffer of a host's socket: what waits in the host's own queue is limited by it.

use std::collections::VecDeque;

use udccp_base::Instant;

/// What a kernel allocates with the data of a packet, in bytes: room for lower headers, and
/// `skb_shared_info`. The sum is a power of two.
const WITH_DATA_BYTES: u64 = 352;
/// What describes a packet (`sk_buff`), in bytes.
const DESCRIPTION_BYTES: u64 = 256;

/// Packets that were given to the host's device and have not left it. As with a socket of Linux, a
/// packet is taken while there is less than the buffer; else the next is taken when less than half
/// of the buffer is in use (`sock_writeable`).
#[derive(Debug)]
pub(super) struct SendBuffer {
    bytes: u64,
    /// When each packet leaves, and its memory.
    packets: VecDeque<(Instant, u64)>,
    memory: u64,
    /// When there is room again.
    blocked_until: Option<Instant>,
}

impl SendBuffer {
    /// An empty buffer of at least one byte.
    pub(super) fn new(bytes: u64) -> Self {
        Self { bytes, packets: VecDeque::new(), memory: 0, blocked_until: None }
    }

    /// Whether the socket takes a packet now.
    pub(super) fn takes(&mut self, now: Instant) -> bool {
        while let Some((_, memory)) = self.packets.pop_front_if(|(leaves, _)| *leaves <= now) {
            self.memory -= memory;
        }
        if self.blocked_until.is_some_and(|until| now < until) {
            return false;
        }
        self.blocked_until = (self.memory >= self.bytes).then(|| self.half_empty_at());
        self.blocked_until.is_none()
    }

    /// A packet of so many bytes leaves the device then.
    pub(super) fn on_device(&mut self, ip_len: u32, leaves: Instant) {
        let memory = (u64::from(ip_len) + WITH_DATA_BYTES).next_power_of_two() + DESCRIPTION_BYTES;
        self.packets.push_back((leaves, memory));
        self.memory += memory;
    }

    /// When there is room again, where there is none.
    pub(super) fn blocked_until(&self) -> Option<Instant> {
        self.blocked_until
    }

    fn half_empty_at(&self) -> Instant {
        let mut left = self.memory;
        let last = self.packets.iter().find(|(_, memory)| {
            left -= memory;
            left < (self.bytes / 2).max(1)
        });
        last.map_or(Instant::MAX, |(leaves, _)| *leaves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1000)
    }

    /// Packets of 1500 bytes that a socket with 208 KiB takes at once; each leaves 100 us later.
    fn fill(buffer: &mut SendBuffer, now: u64) -> u64 {
        let mut sent = 0;
        while buffer.takes(at(now)) {
            sent += 1;
            buffer.on_device(1500, at(now + 100 * sent));
        }
        sent
    }

    #[test]
    fn a_socket_takes_what_its_buffer_holds_and_then_waits_for_half_of_it() {
        let mut buffer = SendBuffer::new(208 << 10);
        // 2,304 bytes each.
        assert_eq!(fill(&mut buffer, 0), 93);
        // 46 packets have less than half.
        assert_eq!(buffer.blocked_until(), Some(at(4_700)));
        assert!(!buffer.takes(at(4_699)));
        assert!(buffer.takes(at(4_700)) && buffer.blocked_until().is_none());
        assert_eq!(buffer.memory, 46 * 2_304);
        buffer.on_device(100, at(9_400));
        assert_eq!(buffer.memory, 46 * 2_304 + 768);
    }

    #[test]
    fn what_has_left_is_room_for_more() {
        let mut buffer = SendBuffer::new(208 << 10);
        for n in 0..500 {
            assert!(buffer.takes(at(100 * n)));
            buffer.on_device(1500, at(100 * n + 150));
        }
        assert_eq!(fill(&mut buffer, 60_000), 93);
    }

    #[test]
    fn the_smallest_buffer_has_room_for_one_packet_at_a_time() {
        for bytes in 1..4 {
            let mut buffer = SendBuffer::new(bytes);
            assert_eq!(fill(&mut buffer, 0), 1);
            assert_eq!(buffer.blocked_until(), Some(at(100)), "{bytes} bytes");
            assert_eq!(fill(&mut buffer, 100), 1);
        }
    }
}
