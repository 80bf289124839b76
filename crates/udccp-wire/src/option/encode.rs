//! Encodes options in the fewest bytes.

use bytes::BytesMut;

use super::OptionRef;
use crate::checksum::Sum;

/// The output of encoding: a buffer, and the sum of the bytes appended. Summing values as they are
/// appended is cheaper than reading back the stored bytes.
pub(crate) struct Out<'a> {
    pub(crate) buf: &'a mut BytesMut,
    pub(crate) sum: &'a mut Sum,
}

impl Out<'_> {
    #[inline]
    fn put<const N: usize>(&mut self, head: [u8; N], data: &[u8]) {
        self.buf.extend_from_slice(&head);
        self.sum.add(&head);
        self.buf.extend_from_slice(data);
        self.sum.add(data);
    }
}

impl OptionRef<'_> {
    /// Length on the wire in bytes, type and length bytes included. Above 255 the option cannot
    /// be sent.
    #[inline]
    pub const fn encoded_len(&self) -> usize {
        match *self {
            Self::Padding | Self::Mandatory | Self::SlowReceiver => 1,
            Self::ChangeL { value, .. }
            | Self::ConfirmL { value, .. }
            | Self::ChangeR { value, .. }
            | Self::ConfirmR { value, .. } => 3 + value.len(),
            Self::InitCookie(d) | Self::DataDropped(d) | Self::DroppedPackets(d) => 2 + d.len(),
            Self::AckVector { cells, .. } => 2 + cells.len(),
            //= 4340-7.7-2
            Self::NdpCount(n) => 2 + ndp_len(n),
            Self::Timestamp(_)
            | Self::DataChecksum(_)
            | Self::LossEventRate(_)
            | Self::ReceiveRate(_) => 6,
            Self::QuickStartResponse { .. } => 8,
            //= 4340-13.3-4
            Self::TimestampEcho { elapsed: None, .. } => 6,
            Self::TimestampEcho { elapsed: Some(0..=0xffff), .. } => 8,
            Self::TimestampEcho { .. } => 10,
            //= 4340-13.2-2
            //= 4340-13.2-3
            Self::ElapsedTime(0..=0xffff) => 4,
            Self::ElapsedTime(_) => 6,
            Self::LossIntervals { intervals, .. } => 3 + intervals.len(),
            Self::Unknown { kind: 0..32, .. } => 1,
            Self::CcidSpecific { data, .. } | Self::Unknown { data, .. } => 2 + data.len(),
        }
    }

    /// Appends the option, whose encoded length is at most 255.
    #[inline]
    pub(crate) fn put(&self, len: u8, out: &mut Out<'_>) {
        let kind = self.kind();
        match *self {
            Self::AckVector { cells, .. } => out.put([kind, len], cells),
            Self::ElapsedTime(n) => put_number(out, [kind, len], n.into()),
            _ => self.put_rare(len, out),
        }
    }

    /// Appends options that are rare, so their encoding need not be fast.
    #[inline(never)]
    fn put_rare(&self, len: u8, out: &mut Out<'_>) {
        let kind = self.kind();
        match *self {
            Self::Padding | Self::Mandatory | Self::SlowReceiver => out.put([kind], &[]),
            Self::Unknown { kind: 0..32, .. } => out.put([kind], &[]),
            Self::ChangeL { feature, value }
            | Self::ConfirmL { feature, value }
            | Self::ChangeR { feature, value }
            | Self::ConfirmR { feature, value } => out.put([kind, len, feature.0], value),
            Self::InitCookie(data)
            | Self::DataDropped(data)
            | Self::DroppedPackets(data)
            | Self::AckVector { cells: data, .. }
            | Self::CcidSpecific { data, .. }
            | Self::Unknown { data, .. } => out.put([kind, len], data),
            Self::LossIntervals { skip_length, intervals } => {
                out.put([kind, len, skip_length], intervals);
            }
            Self::Timestamp(n)
            | Self::LossEventRate(n)
            | Self::ReceiveRate(n)
            | Self::ElapsedTime(n) => put_number(out, [kind, len], n.into()),
            Self::QuickStartResponse { rate, ttl_diff, nonce } => {
                let [a, b, c, d] = (nonce << 2).to_be_bytes();
                out.put([kind, len, rate & 15, ttl_diff], &[a, b, c, d]);
            }
            // As in SCTP, which uses the same CRC: least significant byte first.
            Self::DataChecksum(n) => out.put([kind, len], &n.to_le_bytes()),
            Self::TimestampEcho { timestamp, elapsed } => {
                out.put([kind, len], &timestamp.to_be_bytes());
                let elapsed = elapsed.unwrap_or(0).to_be_bytes();
                out.put([], &elapsed[10_usize.saturating_sub(len.into())..]);
            }
            Self::NdpCount(n) => put_number(out, [kind, len], n.min(NDP_MAX)),
        }
    }
}

const NDP_MAX: u64 = (1 << 48) - 1;

/// Bytes needed for an NDP Count, 1 to 6.
const fn ndp_len(n: u64) -> usize {
    let bytes = (u64::BITS - n.leading_zeros()).div_ceil(8) as usize;
    match bytes {
        0 => 1,
        1..=6 => bytes,
        _ => 6,
    }
}

/// Appends a number in the option's remaining bytes, at most eight.
#[inline]
fn put_number(out: &mut Out<'_>, [kind, len]: [u8; 2], n: u64) {
    let skip = 10_usize.saturating_sub(usize::from(len));
    out.put([kind, len], n.to_be_bytes().get(skip..).unwrap_or(&[]));
}
