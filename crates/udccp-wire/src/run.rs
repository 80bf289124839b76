//! Recognizes consecutive packets that differ in little but their numbers.

use crate::types::PacketType;
use crate::usual::DATA_LEN;
use crate::view::{PacketView, SEQ_MASK};

/// Bits of the first eight bytes that may differ within a run: CCVal and Checksum.
const VARIES: u64 = 0x00f0_ffff;

/// Data packets without options of one connection, with consecutive numbers, as in a buffer of
/// packets that the network merged.
#[derive(Clone, Copy, Debug)]
pub struct DataRun<'a> {
    first: PacketView<'a>,
    bytes: &'a [u8],
    stride: usize,
    packets: usize,
}

impl<'a> DataRun<'a> {
    /// Length of the header of each packet in bytes.
    pub const HEADER_LEN: usize = DATA_LEN;

    /// The run of at most `most` packets at the beginning of `bytes`, of which `first` is a view.
    /// The packets are as long as the first, except that the last may be shorter. `None` if there
    /// are fewer than two. Checksums are not verified.
    #[inline]
    pub fn new(first: PacketView<'a>, bytes: &'a [u8], most: usize) -> Option<Self> {
        let stride = first.total_len();
        if first.packet_type() != PacketType::Data || first.data_offset() != DATA_LEN {
            return None;
        }
        let (usual, number) = words(bytes)?;
        let is_next = |packet: &[u8], n: u64| {
            words(packet).is_some_and(|(other, next)| {
                let follows = (number + n) & SEQ_MASK == next & SEQ_MASK;
                follows && (usual ^ other) & !VARIES == 0 && (number ^ next) & !SEQ_MASK == 0
            })
        };
        let behind = bytes.get(stride..)?.chunks(stride).zip(1..);
        let packets =
            1 + behind.take_while(|(packet, n)| is_next(packet, *n)).take(most.max(1) - 1).count();
        let bytes = bytes.get(..packets * stride).unwrap_or(bytes);
        (packets > 1).then_some(Self { first, bytes, stride, packets })
    }

    /// The first packet.
    #[inline]
    pub const fn first(&self) -> &PacketView<'a> {
        &self.first
    }

    /// Number of packets, at least two.
    #[inline]
    pub const fn packets(&self) -> usize {
        self.packets
    }

    /// Length of all packets in bytes.
    #[inline]
    pub const fn total_len(&self) -> usize {
        self.bytes.len()
    }

    /// Length of the data of all packets in bytes.
    #[inline]
    pub const fn data_len(&self) -> usize {
        self.bytes.len() - self.packets * DATA_LEN
    }

    /// CCVal and length of the data in bytes of each packet.
    pub fn each(&self) -> impl Iterator<Item = (u8, usize)> + 'a {
        let packets = self.bytes.chunks(self.stride);
        packets.map(|p| (p.get(5).map_or(0, |b| b >> 4), p.len().saturating_sub(DATA_LEN)))
    }
}

/// The 16 bytes of a header as numbers.
#[inline]
fn words(packet: &[u8]) -> Option<(u64, u64)> {
    let words = u128::from_be_bytes(*packet.first_chunk()?);
    Some(((words >> 64) as u64, words as u64))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::{Emitter, Header, HeaderKind, Seqno};

    fn packet(seq: u64, ccval: u8, data: usize) -> Vec<u8> {
        let (src_port, dst_port, seq) = (5001, 5002, Seqno::new(seq));
        let kind = HeaderKind::Data;
        let header = Header { src_port, dst_port, ccval, cscov: 0, x: true, seq, kind };
        let mut bytes = Default::default();
        Emitter::new(&mut bytes, &header).finish_encapsulated(data);
        bytes.resize(bytes.len() + data, 7);
        bytes.to_vec()
    }

    /// Packets of the run in a buffer of these.
    fn run(packets: &[Vec<u8>], most: usize) -> usize {
        let bytes = packets.concat();
        let stride = packets[0].len();
        let first = PacketView::of_usual(&bytes[..stride], stride).unwrap();
        DataRun::new(first, &bytes, most).map_or(1, |run| run.packets())
    }

    #[test]
    fn data_run_continues_while_only_seq_ccval_and_checksum_differ() {
        let end = (1 << 48) - 2;
        let good: Vec<_> = (0..5).map(|n| packet((end + n) & SEQ_MASK, n as u8, 20)).collect();
        assert_eq!((run(&good, 100), run(&good, 3), run(&good, 1), run(&good, 0)), (5, 3, 1, 1));
        assert_eq!(run(&good[..1], 100), 1);
        for byte in 0..16 {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[3][byte] ^= 1 << bit;
                let varies = byte == 5 && bit >= 4 || byte == 6 || byte == 7;
                assert_eq!(run(&bad, 100), if varies { 5 } else { 3 }, "byte {byte}, bit {bit}");
            }
        }
        let mut gap = good;
        gap.remove(2);
        assert_eq!(run(&gap, 100), 2);
    }

    #[test]
    fn the_last_packet_may_be_shorter_but_not_than_its_header() {
        let mut packets: Vec<_> = (0..4).map(|n| packet(n, 15 - n as u8, 20)).collect();
        packets[3].truncate(16);
        let bytes = packets.concat();
        let first = PacketView::of_usual(&bytes[..36], 36).unwrap();
        let run = DataRun::new(first, &bytes, 100).unwrap();
        assert_eq!((run.packets(), run.total_len(), run.data_len()), (4, 124, 60));
        let each: Vec<_> = run.each().collect();
        assert_eq!(each, [(15, 20), (14, 20), (13, 20), (12, 0)]);
        assert_eq!(DataRun::new(first, &bytes[..123], 100).unwrap().packets(), 3);
    }

    #[test]
    fn only_data_without_options_makes_a_run() {
        let mut packets: Vec<_> = (0..3).map(|n| packet(n, 0, 24)).collect();
        packets.iter_mut().for_each(|p| p[4] = 5);
        assert_eq!(run(&packets, 100), 1);
        packets.iter_mut().for_each(|p| (p[4], p[8]) = (6, 3 << 1 | 1));
        assert_eq!(run(&packets, 100), 1);
    }
}
