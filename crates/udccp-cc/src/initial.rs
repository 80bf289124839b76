//! The initial window of a connection.

/// The size of the initial congestion window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InitialWindow {
    /// RFC 3390: 4380 bytes, but two to four packets. The default, as in RFC 4341 section 5.
    #[default]
    Rfc3390,
    /// RFC 6928: 14,600 bytes, but two to ten packets.
    Rfc6928,
    /// This many packets (at least 1).
    Packets(u32),
}

impl InitialWindow {
    /// The window in packets of `mss_bytes` of data each.
    pub fn packets(self, mss_bytes: u32) -> u32 {
        let (most, bytes) = match self {
            Self::Rfc3390 => (4, 4380),
            Self::Rfc6928 => (10, 14_600),
            Self::Packets(n) => return n.max(1),
        };
        (bytes / mss_bytes.max(1)).clamp(2, most)
    }
}
