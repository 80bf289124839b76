//! Settings of CCID 4. Defaults are the RFCs' values.

use udccp_base::Duration;

use crate::ccid::ccid3::Ccid3Config;
use crate::ccid::tfrc::SmallPackets;

/// IPv4 header, and DCCP-Data header with 48-bit numbers (RFC 5622 section 5).
const LONG_HEADER_BYTES: u32 = 36;
/// Largest s of the throughput equation (RFC 5622 section 5.3).
const NOMINAL_SEGMENT: u32 = 1460;
/// Shortest time between packets (RFC 4828 section 4.3).
const MIN_INTERVAL: Duration = Duration::from_millis(10);
/// Difference between a TCP segment and our largest packet, which leaves space for options.
const SEGMENT_OVER_PACKET: u32 = 20;

/// Settings of CCID 4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ccid4Config {
    /// The settings that CCID 4 shares with CCID 3. `segment_size` has no effect.
    pub tfrc: Ccid3Config,
    /// Bytes of headers that count against the allowed rate with each packet (default 36, RFC 5622
    /// section 5; 32 with short sequence numbers).
    pub header_bytes: u32,
}

impl Default for Ccid4Config {
    fn default() -> Self {
        Self { tfrc: Ccid3Config::default(), header_bytes: LONG_HEADER_BYTES }
    }
}

impl Ccid4Config {
    //= 4828-3-1
    //= 4828-3-2
    //= 4828-3-3
    //= 4828-3-6
    //= 4828-3-7
    /// The differences from CCID 3, on a path whose packets hold up to this many bytes of data.
    pub(super) fn small_packets(&self, packet_size_bytes: u32) -> SmallPackets {
        let mss = packet_size_bytes.saturating_add(SEGMENT_OVER_PACKET);
        SmallPackets {
            nominal: mss.min(NOMINAL_SEGMENT),
            // No packet is longer, and the sums that contain it have 32 bits.
            header: self.header_bytes.min(u32::from(u16::MAX)),
            min_interval: MIN_INTERVAL,
        }
    }
}
