//! RTP and RTCP packets: parsing and building.

use std::time::Duration;

use bytes::Bytes;
use rtcp_types::prelude::*;
use rtcp_types::{
    Bye, Compound, Packet as Rtcp, ReceiverReport, ReportBlock, Sdes, SdesChunk, SdesItem,
    SenderReport,
};
use rtp_types::{RtpPacket, RtpPacketBuilder};

/// Something that was received.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// Media.
    Packet(Packet),
    /// A report by another participant on what it sends and receives.
    Report(Report),
    /// A source leaves the session.
    Bye {
        /// The source.
        ssrc: u32,
        /// The reason, if it gave one.
        reason: Option<String>,
    },
}

/// An RTP packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The source. A connection may carry several.
    pub ssrc: u32,
    /// Sequence number, extended by wraps to 32 bits (RFC 3550 appendix A.1).
    pub sequence: u32,
    /// Timestamp in units of the RTP clock.
    pub timestamp: u32,
    /// The marker bit; its meaning depends on the payload format.
    pub marker: bool,
    /// Payload type, 0 to 127.
    pub payload_type: u8,
    /// The sources that a mixer combined (CSRC).
    pub contributors: Vec<u32>,
    /// The payload.
    pub payload: Bytes,
}

/// A sender or receiver report.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The participant that reports.
    pub ssrc: u32,
    /// What it has sent; `None` if it only receives.
    pub sender: Option<SenderInfo>,
    /// What it receives, one block per source.
    pub blocks: Vec<Block>,
}

/// Sender information in a report (RFC 3550 section 6.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderInfo {
    /// Wall-clock time as an NTP timestamp (32 bits of seconds since 1900, 32 bits of fraction).
    pub ntp: u64,
    /// The same time in units of the RTP clock.
    pub rtp_timestamp: u32,
    /// Packets sent since it started.
    pub packets: u32,
    /// Payload bytes sent since it started.
    pub octets: u32,
}

/// Reception report on one source (RFC 3550 section 6.4.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// The source.
    pub ssrc: u32,
    /// Fraction lost since its last report, 0 to 1.
    pub fraction_lost: f64,
    /// Packets lost since it started; negative if there were duplicates.
    pub lost: i32,
    /// Highest sequence number received, extended by wraps.
    pub highest_sequence: u32,
    /// Interarrival jitter, in units of the RTP clock.
    pub jitter: u32,
    /// Round-trip time, if the block is about us and answers one of our reports.
    pub rtt: Option<Duration>,
    /// Middle 32 bits of the NTP time of the last sender report.
    pub(crate) last_report: u32,
    /// Time since then, in 1/65536 s.
    pub(crate) delay: u32,
}

//= 5762-4.3-1
/// Whether a packet on a shared connection is RTCP (RFC 5761 section 4).
pub(crate) fn is_rtcp(packet: &[u8]) -> bool {
    packet.get(1).is_some_and(|&second| (192..=223).contains(&second))
}

//= 5762-4.1-2
//= 5762-4.1-5
/// Builds an RTP packet with a header of 12 bytes: no extension, no contributors.
pub(crate) fn rtp(
    ssrc: u32,
    (payload_type, marker): (u8, bool),
    sequence: u16,
    timestamp: u32,
    payload: &[u8],
) -> Bytes {
    let builder: RtpPacketBuilder<&[u8], &[u8]> = RtpPacketBuilder::new()
        .payload_type(payload_type)
        .marker_bit(marker)
        .sequence_number(sequence)
        .timestamp(timestamp)
        .ssrc(ssrc)
        .payload(payload);
    // The payload type was checked earlier; nothing else can be invalid.
    builder.write_vec_unchecked().into()
}

/// Parses a packet. The wraps of the sequence number are not included. `None` if it is not RTP.
pub(crate) fn parse_rtp(bytes: &Bytes) -> Option<Packet> {
    let parsed = RtpPacket::parse(bytes).ok()?;
    Some(Packet {
        ssrc: parsed.ssrc(),
        sequence: u32::from(parsed.sequence_number()),
        timestamp: parsed.timestamp(),
        marker: parsed.marker_bit(),
        payload_type: parsed.payload_type(),
        contributors: parsed.csrc().collect(),
        payload: bytes.slice_ref(parsed.payload()),
    })
}

/// Parses a compound packet; `None` if it is not RTCP.
pub(crate) fn parse_rtcp(bytes: &[u8]) -> Option<Vec<RtcpPart>> {
    let mut parts = Vec::new();
    for packet in Compound::parse(bytes).ok()? {
        match packet.ok()? {
            Rtcp::Sr(sr) => parts.push(RtcpPart::Event(Event::Report(Report {
                ssrc: sr.ssrc(),
                sender: Some(SenderInfo {
                    ntp: sr.ntp_timestamp(),
                    rtp_timestamp: sr.rtp_timestamp(),
                    packets: sr.packet_count(),
                    octets: sr.octet_count(),
                }),
                blocks: sr.report_blocks().map(|b| block(&b)).collect(),
            }))),
            Rtcp::Rr(rr) => parts.push(RtcpPart::Event(Event::Report(Report {
                ssrc: rr.ssrc(),
                sender: None,
                blocks: rr.report_blocks().map(|b| block(&b)).collect(),
            }))),
            Rtcp::Sdes(sdes) => {
                for chunk in sdes.chunks() {
                    let name = chunk.items().find(|item| item.type_() == SdesItem::CNAME);
                    let name = name.and_then(|item| item.get_value_string().ok());
                    parts.extend(name.map(|name| RtcpPart::Name(chunk.ssrc(), name)));
                }
            }
            Rtcp::Bye(bye) => {
                let reason = bye.get_reason_string().and_then(Result::ok);
                parts.extend(
                    bye.ssrcs()
                        .map(|ssrc| RtcpPart::Event(Event::Bye { ssrc, reason: reason.clone() })),
                );
            }
            // Unknown types are skipped (RFC 3550 section 6.1).
            _ => {}
        }
    }
    Some(parts)
}

/// A part of a compound packet.
pub(crate) enum RtcpPart {
    Event(Event),
    Name(u32, String),
}

fn block(b: &ReportBlock<'_>) -> Block {
    // A signed 24-bit number.
    let lost = (b.cumulative_lost() << 8) as i32 >> 8;
    Block {
        ssrc: b.ssrc(),
        fraction_lost: f64::from(b.fraction_lost()) / 256.0,
        lost,
        highest_sequence: b.extended_sequence_number(),
        jitter: b.interarrival_jitter(),
        rtt: None,
        last_report: b.last_sender_report_timestamp(),
        delay: b.delay_since_last_sender_report_timestamp(),
    }
}

/// Builds a report block about a source that we receive.
pub(crate) fn report_block(b: &Block, fraction: u8) -> rtcp_types::ReportBlockBuilder {
    let lost = b.lost.clamp(-0x80_0000, 0x7f_ffff) as u32 & 0xff_ffff;
    ReportBlock::builder(b.ssrc)
        .fraction_lost(fraction)
        .cumulative_lost(lost)
        .extended_sequence_number(b.highest_sequence)
        .interarrival_jitter(b.jitter)
        .last_sender_report_timestamp(b.last_report)
        .delay_since_last_sender_report_timestamp(b.delay)
}

/// Bytes of a block in a report.
pub(crate) const BLOCK_BYTES: usize = 24;

//= 5762-4.2-3
/// Builds a compound packet: our sender or receiver report, our name, and optionally a BYE for us
/// or for an identifier that we gave up. It has no extended reports, since DCCP's acknowledgements
/// contain that information (RFC 5762 section 4.2).
pub(crate) fn compound(
    ssrc: u32,
    sender: Option<SenderInfo>,
    blocks: Vec<rtcp_types::ReportBlockBuilder>,
    name: &str,
    bye: Option<(u32, &str)>,
) -> Option<Bytes> {
    let builder = Compound::builder();
    let mut builder = match sender {
        Some(s) => {
            let sr = SenderReport::builder(ssrc)
                .ntp_timestamp(s.ntp)
                .rtp_timestamp(s.rtp_timestamp)
                .packet_count(s.packets)
                .octet_count(s.octets);
            builder.add_packet(blocks.into_iter().fold(sr, |sr, b| sr.add_report_block(b)))
        }
        None => {
            let rr = ReceiverReport::builder(ssrc);
            builder.add_packet(blocks.into_iter().fold(rr, |rr, b| rr.add_report_block(b)))
        }
    };
    let cname = SdesItem::builder(SdesItem::CNAME, name);
    builder =
        builder.add_packet(Sdes::builder().add_chunk(SdesChunk::builder(ssrc).add_item(cname)));
    if let Some((leaving, reason)) = bye {
        builder = builder.add_packet(Bye::builder().add_source(leaving).reason(reason));
    }
    let mut packet = vec![0; builder.calculate_size().ok()?];
    builder.write_into(&mut packet).ok()?;
    Some(packet.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    //= 5762-4.1-2 test
    #[test]
    fn packets_round_trip() {
        let bytes = rtp(7, (96, true), 65_535, 1 << 31, b"media");
        assert_eq!(bytes.len(), 12 + 5);
        let packet = parse_rtp(&bytes).unwrap();
        assert_eq!((packet.ssrc, packet.sequence, packet.timestamp), (7, 65_535, 1 << 31));
        assert_eq!((packet.marker, packet.payload_type), (true, 96));
        assert_eq!(packet.payload, &b"media"[..]);
        assert!(packet.contributors.is_empty());
    }

    //= 5762-4.1-5 test
    #[test]
    fn no_extension_is_ever_sent() {
        let bytes = rtp(7, (0, false), 1, 1, b"media");
        assert!(RtpPacket::parse(&bytes).unwrap().extension().is_none());
    }

    //= 5762-4.3-1 test
    //= 5762-4.2-3 test
    #[test]
    fn compound_packet_holds_only_report_sdes_and_bye() {
        let info = SenderInfo { ntp: 5 << 32, rtp_timestamp: 9, packets: 3, octets: 480 };
        let block = Block {
            ssrc: 4,
            fraction_lost: 0.25,
            lost: -2,
            highest_sequence: 70_000,
            jitter: 19,
            rtt: None,
            last_report: 1,
            delay: 2,
        };
        let bytes =
            compound(7, Some(info), vec![report_block(&block, 64)], "me@here", Some((7, "done")));
        let bytes = bytes.unwrap();
        assert!(is_rtcp(&bytes) && !is_rtcp(&rtp(7, (96, true), 1, 1, b"x")));
        let types: Vec<u8> = Compound::parse(&bytes)
            .unwrap()
            .map(|p| match p.unwrap() {
                Rtcp::Sr(_) => 200,
                Rtcp::Rr(_) => 201,
                Rtcp::Sdes(_) => 202,
                Rtcp::Bye(_) => 203,
                _ => 0,
            })
            .collect();
        assert_eq!(types, [200, 202, 203]);
        let parsed = parse_rtcp(&bytes).unwrap();
        let [RtcpPart::Event(Event::Report(report)), RtcpPart::Name(7, me), RtcpPart::Event(bye)] =
            &parsed[..]
        else {
            panic!("{} parts", parsed.len());
        };
        assert_eq!((report.sender, &report.blocks[..]), (Some(info), &[block][..]));
        assert_eq!(me, "me@here");
        assert_eq!(*bye, Event::Bye { ssrc: 7, reason: Some("done".into()) });
    }

    /// RFC 5761 section 4: what follows the version and the padding tells RTCP from RTP.
    #[test]
    fn packet_types_192_to_223_are_rtcp() {
        let is = |second: u8| is_rtcp(&[0x80, second]);
        assert!((192..=223).all(is), "with feedback (205, 206) and what may come");
        assert!(!(0..192).chain(224..=255).any(is));
        assert!(!is_rtcp(&[0x80]));
    }

    /// RFC 3550 appendix A.3: the count has 24 bits and a sign, and stays at its ends.
    #[test]
    fn the_cumulative_loss_stays_within_its_24_bits() {
        let ends = [(i32::MAX, 0x7f_ffff), (i32::MIN, -0x80_0000), (-1, -1)];
        for (lost, read) in ends {
            let block = Block {
                ssrc: 4,
                fraction_lost: 0.0,
                lost,
                highest_sequence: 1,
                jitter: 0,
                rtt: None,
                last_report: 0,
                delay: 0,
            };
            let bytes = compound(7, None, vec![report_block(&block, 0)], "me", None).unwrap();
            let parts = parse_rtcp(&bytes).unwrap();
            let RtcpPart::Event(Event::Report(report)) = &parts[0] else { panic!("no report") };
            assert_eq!(report.blocks[0].lost, read);
        }
    }

    #[test]
    fn damaged_packets_are_rejected() {
        let whole = compound(7, None, Vec::new(), "me", Some((7, "x"))).unwrap();
        for len in 0..whole.len() {
            let _ = parse_rtcp(&whole[..len]);
            let _ = parse_rtp(&whole.slice(..len));
        }
        assert!(parse_rtcp(&whole[..whole.len() - 1]).is_none());
        assert!(parse_rtp(&Bytes::from_static(b"short")).is_none());
    }

    #[test]
    fn randomly_damaged_packets_are_parsed_or_rejected() {
        let rtcp = compound(7, None, Vec::new(), "me@here", Some((7, "done"))).unwrap();
        let rtp = rtp(7, (96, true), 1, 1, b"media and more media");
        let mut rng: udccp_base::Rng = udccp_base::Seed(1).stream("damage");
        let mut below = |n: usize| rng.below(n as u64) as usize;
        for _ in 0..100_000 {
            for whole in [&rtcp, &rtp] {
                let mut packet = whole[..below(whole.len()) + 1].to_vec();
                for _ in 0..below(4) {
                    let at = below(packet.len());
                    packet[at] = below(256) as u8;
                }
                let _ = parse_rtcp(&packet);
                let _ = parse_rtp(&packet.into());
            }
        }
    }
}
