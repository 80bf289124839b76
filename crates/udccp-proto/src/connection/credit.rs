//! Limits what may be sent to an address that is not validated, as QUIC does (RFC 9000 section
//! 8.1). Otherwise Requests with a forged source address would make us flood a victim.

/// Bytes that may be sent for each byte received, counted in UDP payloads or DCCP packets.
const FACTOR: usize = 3;

/// The bytes that may still be sent, options and data included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Credit(Option<u32>);

impl Credit {
    /// We chose the address ourselves, or it is validated.
    pub(crate) const UNLIMITED: Self = Self(None);

    /// Nothing has been received from the address yet.
    pub(crate) const NONE: Self = Self(Some(0));

    /// The credit for `received` bytes.
    pub(crate) const fn of(received: usize) -> Self {
        Self::NONE.and(received)
    }

    /// A packet of `len` bytes was received from the address.
    #[inline]
    pub(crate) fn on_received(&mut self, len: usize) {
        *self = self.and(len);
    }

    const fn and(self, received: usize) -> Self {
        // A datagram is far shorter than 2^32 bytes.
        match self.0 {
            Some(left) => Self(Some(left.saturating_add((received * FACTOR) as u32))),
            None => self,
        }
    }

    /// A packet of `len` bytes was sent.
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

    /// Whether a packet of `len` bytes may be sent.
    pub(crate) const fn allows(self, len: usize) -> bool {
        match self.0 {
            Some(left) => len <= left as usize,
            None => true,
        }
    }

    /// Room for options and data in a packet of which `len` bytes are used, where the path allows
    /// `room` more. Options are padded to whole words.
    #[inline]
    pub(crate) fn room(self, len: usize, room: usize) -> usize {
        self.0.map_or(room, |left| room.min((left as usize).saturating_sub(len) & !3))
    }

    /// Whether the address has yet to be validated.
    pub(crate) const fn is_limited(self) -> bool {
        self.0.is_some()
    }
}
