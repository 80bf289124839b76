//! Limits what may be sent to an address that nobody has proven to be there (as RFC 9000 section
//! 8.1 has it for QUIC): who forges Requests of a victim must not have us flood it.

/// Bytes that may leave for each byte that came, UDP payloads or DCCP packets.
const FACTOR: usize = 3;

/// The bytes that may still leave, options and data included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Credit(Option<u32>);

impl Credit {
    /// We chose the address ourselves, or it is proven.
    pub(crate) const UNLIMITED: Self = Self(None);

    /// Nothing has come from there yet.
    pub(crate) const NONE: Self = Self(Some(0));

    /// What packets of this many bytes together are worth.
    pub(crate) const fn of(received: usize) -> Self {
        Self::NONE.and(received)
    }

    /// A packet of this many bytes came from there.
    #[inline]
    pub(crate) fn on_received(&mut self, len: usize) {
        *self = self.and(len);
    }

    const fn and(self, received: usize) -> Self {
        // A datagram is far shorter than what 32 bits count.
        match self.0 {
            Some(left) => Self(Some(left.saturating_add((received * FACTOR) as u32))),
            None => self,
        }
    }

    /// A packet of this many bytes left.
    #[inline]
    pub(crate) fn on_sent(&mut self, len: usize) {
        if let Some(left) = &mut self.0 {
            debug_assert!(
                len <= *left as usize,
                "{len} bytes to an unproven address, where {left} may leave"
            );
            *left = left.saturating_sub(len as u32);
        }
    }

    /// Whether a packet of this many bytes may leave.
    pub(crate) const fn allows(self, len: usize) -> bool {
        match self.0 {
            Some(left) => len <= left as usize,
            None => true,
        }
    }

    /// Room for options and data in a packet, of which `len` bytes are taken and `room` bytes are
    /// left by the path. Options are padded to whole words.
    #[inline]
    pub(crate) fn room(self, len: usize, room: usize) -> usize {
        self.0.map_or(room, |left| room.min((left as usize).saturating_sub(len) & !3))
    }

    /// Whether the address is still to be proven.
    pub(crate) const fn is_limited(self) -> bool {
        self.0.is_some()
    }
}
