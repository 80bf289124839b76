//! The send buffer of a host's socket, which limits the packets in the host's own queue.

use std::collections::VecDeque;

use udccp_base::Instant;

/// Memory that a kernel allocates with the data of a packet, in bytes: room for lower headers, and
/// `skb_shared_info`. The sum is rounded up to a power of two.
const WITH_DATA_BYTES: u64 = 352;
/// Size of a packet's descriptor (`sk_buff`), in bytes.
const DESCRIPTION_BYTES: u64 = 256;

/// Packets in the host's device queue. As with a Linux socket, packets are accepted while they use
/// less than the buffer. After that, none is accepted until less than half of the buffer is used
/// (`sock_writeable`).
#[derive(Debug)]
pub(super) struct SendBuffer {
    bytes: u64,
    /// The time at which each packet leaves, and its memory.
    packets: VecDeque<(Instant, u64)>,
    memory: u64,
    /// When packets are accepted again.
    blocked_until: Option<Instant>,
}

impl SendBuffer {
    /// An empty buffer of at least one byte.
    pub(super) fn new(bytes: u64) -> Self {
        Self { bytes, packets: VecDeque::new(), memory: 0, blocked_until: None }
    }

    /// Whether the socket accepts a packet now.
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

    /// A packet of `ip_len` bytes will leave the device at `leaves`.
    pub(super) fn on_device(&mut self, ip_len: u32, leaves: Instant) {
        let memory = (u64::from(ip_len) + WITH_DATA_BYTES).next_power_of_two() + DESCRIPTION_BYTES;
        self.packets.push_back((leaves, memory));
        self.memory += memory;
    }

    /// When packets are accepted again; `None` if they are accepted now.
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

    /// The number of 1500-byte packets that a socket with 208 KiB accepts at once; one leaves every
    /// 100 us.
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
        // 46 packets use less than half.
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
