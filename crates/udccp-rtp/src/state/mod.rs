//! The state of a session: packets sent, sources received, the next RTCP packet.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::receiver::Reception;
use crate::reports::{self, Block, Event, RtcpPart, SenderInfo};
use crate::timing::{self, Interval};

/// IPv6, UDP and DCCP headers below an RTCP packet, counted in RTCP's bandwidth.
const LOWER_HEADER_BYTES: usize = 40 + 8 + 24;
/// A source is gone if it was silent for this many intervals (RFC 3550 section 6.3.5).
const TIMEOUT_INTERVALS: u32 = 5;
/// Most blocks in one report.
const MAX_BLOCKS: usize = 31;

/// Most sources that are stored. A new one replaces the one that was silent longest.
const MAX_SOURCES: usize = 1024;
/// The reason in the BYE of an identifier that another source uses too.
const COLLISION: &str = "identifier in use";

/// Counters of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionStats {
    /// Our source identifier (SSRC). It changes after a collision.
    pub ssrc: u32,
    /// RTP packets handed to DCCP.
    pub packets_sent: u32,
    /// Bytes of payload in them.
    pub octets_sent: u32,
    /// RTP packets dropped before they were sent, because congestion control did not allow it
    /// within their lifetime.
    pub packets_expired: u64,
    /// RTCP packets sent.
    pub reports_sent: u64,
    /// RTCP packets received.
    pub reports_received: u64,
    /// How long the last RTCP packet waited for congestion control. If this comes near the interval
    /// of RTCP, the session bandwidth is more than the path carries: agree on a lower one.
    pub report_delay: Duration,
    /// Empty packets sent to keep bindings open.
    pub keep_alives_sent: u64,
    /// Packets received that are neither RTP nor RTCP.
    pub malformed: u64,
    /// Packets received with our own source identifier: from another source that chose the same, or
    /// our own, looped back.
    pub collisions: u64,
    /// The other sources that we receive.
    pub sources: Vec<SourceStats>,
}

/// What is known of another source.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceStats {
    /// The source.
    pub ssrc: u32,
    /// Its canonical name (CNAME), if it was received.
    pub name: Option<String>,
    /// RTP packets received.
    pub packets_received: u32,
    /// RTP packets lost; negative if there were duplicates.
    pub lost: i64,
    /// Interarrival jitter (RFC 3550 section 6.4.1).
    pub jitter: Duration,
    /// Its last report on what it receives from us.
    pub hears_us: Option<Block>,
}

#[derive(Debug)]
struct Source {
    reception: Option<Reception>,
    name: Option<String>,
    last_received: Instant,
    last_media: Option<Instant>,
    /// When we last reported on it.
    reported: Option<Instant>,
    /// Middle 32 bits of the NTP time of its last sender report, and when that came.
    last_report: Option<(u32, Instant)>,
    hears_us: Option<Block>,
    /// It has sent a BYE and is no longer a member, but its data are kept for a while.
    left: bool,
}

/// The start values of a session.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) ssrc: u32,
    /// Used instead of `ssrc` if that is taken.
    pub(crate) spare_ssrc: u32,
    pub(crate) sequence: u16,
    pub(crate) timestamp_offset: u32,
    pub(crate) name: String,
    pub(crate) payload_type: u8,
    pub(crate) clock_rate: u32,
    pub(crate) bandwidth: u32,
    pub(crate) minimum: Duration,
}

#[derive(Debug)]
pub(crate) struct State {
    setup: Setup,
    began: Instant,
    /// Timestamp of the last packet sent, and when that was.
    last_sent: Option<(u32, Instant)>,
    //= 5762-4.4-1
    //= 5762-4.4-2
    sources: BTreeMap<u32, Source>,
    average_bytes: f64,
    /// When the last RTCP packet was sent, and the one before.
    pub(crate) last_rtcp: Instant,
    previous_rtcp: Instant,
    /// The identifier that collided, kept until its BYE is sent.
    given_up: Option<u32>,
    has_collided: bool,
    pub(crate) counts: SessionStats,
}

impl State {
    pub(crate) fn new(setup: Setup, now: Instant) -> Self {
        // RFC 3550 section 6.3.2: the probable size of the first packet.
        let counts = SessionStats { ssrc: setup.ssrc, ..SessionStats::default() };
        let average_bytes = (LOWER_HEADER_BYTES + 28 + 12 + setup.name.len()) as f64;
        Self {
            setup,
            began: now,
            last_sent: None,
            sources: BTreeMap::new(),
            average_bytes,
            last_rtcp: now,
            previous_rtcp: now,
            given_up: None,
            has_collided: false,
            counts,
        }
    }

    //= 5762-4.1-1
    /// Builds the next RTP packet, which counts when it is sent.
    pub(crate) fn packet(&self, timestamp: u32, marker: bool, payload: &[u8]) -> Bytes {
        let setup = &self.setup;
        let timestamp = timestamp.wrapping_add(setup.timestamp_offset);
        let kind = (setup.payload_type, marker);
        reports::rtp(setup.ssrc, kind, setup.sequence, timestamp, payload)
    }

    /// Counts a packet that was passed to DCCP.
    pub(crate) fn packet_sent(&mut self, now: Instant, timestamp: u32, payload_bytes: usize) {
        let setup = &mut self.setup;
        setup.sequence = setup.sequence.wrapping_add(1);
        self.last_sent = Some((timestamp.wrapping_add(setup.timestamp_offset), now));
        self.counts.packets_sent = self.counts.packets_sent.wrapping_add(1);
        self.counts.octets_sent = self.counts.octets_sent.wrapping_add(payload_bytes as u32);
    }

    /// Whether a packet with `ssrc` is from another source. If we use that identifier too, we
    /// choose another (RFC 3550 section 8.2). Later packets with the new one are our own, looped
    /// back.
    fn accept_ssrc(&mut self, ssrc: u32) -> bool {
        if ssrc != self.setup.ssrc {
            return true;
        }
        self.counts.collisions += 1;
        if self.has_collided {
            return false;
        }
        self.has_collided = true;
        if self.has_sent() {
            self.given_up = Some(ssrc);
        }
        self.setup.ssrc = self.setup.spare_ssrc;
        // Section 6.4.1: counts belong to an identifier.
        let counts = &mut self.counts;
        (counts.ssrc, counts.packets_sent, counts.octets_sent) = (self.setup.ssrc, 0, 0);
        true
    }

    /// Whether anything was sent, so that a BYE may follow (RFC 3550 section 6.3.7).
    pub(crate) fn has_sent(&self) -> bool {
        self.last_sent.is_some() || self.counts.reports_sent > 0
    }

    fn evict_source(&mut self, ssrc: u32) {
        if self.sources.len() < MAX_SOURCES || self.sources.contains_key(&ssrc) {
            return;
        }
        let silent = self.sources.iter().min_by_key(|(_, source)| source.last_received);
        if let Some(&ssrc) = silent.map(|(ssrc, _)| ssrc) {
            self.sources.remove(&ssrc);
        }
    }

    fn source(&mut self, ssrc: u32, now: Instant) -> &mut Source {
        self.evict_source(ssrc);
        let source = self.sources.entry(ssrc).or_insert(Source {
            reception: None,
            name: None,
            last_received: now,
            last_media: None,
            reported: None,
            last_report: None,
            hears_us: None,
            left: false,
        });
        source.last_received = now;
        source
    }

    /// Counts an RTP packet and extends its sequence number.
    pub(crate) fn receive_packet(&mut self, now: Instant, bytes: &Bytes) -> Option<Event> {
        let Some(mut packet) = reports::parse_rtp(bytes) else {
            self.counts.malformed += 1;
            return None;
        };
        if !self.accept_ssrc(packet.ssrc) {
            return None;
        }
        let arrival = self.units(now - self.began);
        let seq = packet.sequence as u16;
        let source = self.source(packet.ssrc, now);
        source.last_media = Some(now);
        let reception = source.reception.get_or_insert_with(|| Reception::new(seq));
        packet.sequence = reception.packet(seq, packet.timestamp, arrival)?;
        Some(Event::Packet(packet))
    }

    /// Processes an RTCP packet.
    pub(crate) fn receive_rtcp(&mut self, now: Instant, ntp: u64, bytes: &[u8]) -> Vec<Event> {
        let Some(parts) = reports::parse_rtcp(bytes) else {
            self.counts.malformed += 1;
            return Vec::new();
        };
        self.counts.reports_received += 1;
        self.average_bytes = timing::average(self.average_bytes, bytes.len() + LOWER_HEADER_BYTES);
        let mut events = Vec::new();
        for part in parts {
            match part {
                RtcpPart::Name(ssrc, name) => self.source(ssrc, now).name = Some(name),
                RtcpPart::Event(Event::Report(report)) if !self.accept_ssrc(report.ssrc) => {
                    break;
                }
                RtcpPart::Event(mut event) => {
                    self.receive_event(now, ntp, &mut event);
                    events.push(event);
                }
            }
        }
        events
    }

    fn receive_event(&mut self, now: Instant, ntp: u64, event: &mut Event) {
        let us = self.setup.ssrc;
        match event {
            Event::Report(report) => {
                let source = self.source(report.ssrc, now);
                if let Some(info) = report.sender {
                    source.last_report = Some((ntp_middle_bits(info.ntp), now));
                }
                for block in report.blocks.iter_mut().filter(|b| b.ssrc == us) {
                    if block.last_report != 0 {
                        // RFC 3550 section 6.4.1: A - LSR - DLSR.
                        let units = ntp_middle_bits(ntp)
                            .wrapping_sub(block.last_report)
                            .wrapping_sub(block.delay);
                        // A negative value, from rounding, counts as zero.
                        let units = (units as i32).max(0) as u32;
                        block.rtt = Some(Duration::from_secs_f64(f64::from(units) / 65_536.0));
                    }
                    source.hears_us = Some(*block);
                }
            }
            Event::Bye { ssrc, .. } => {
                if let Some(source) = self.sources.get_mut(ssrc) {
                    source.left = true;
                }
            }
            Event::Packet(_) => {}
        }
    }

    /// Builds the compound packet that is due now, of at most `max_bytes` if possible.
    pub(crate) fn report(
        &mut self,
        now: Instant,
        ntp: u64,
        bye: Option<&str>,
        max_bytes: usize,
    ) -> Option<Bytes> {
        self.expire_silent(now);
        let (ssrc, sender) = (self.setup.ssrc, self.sender_info(now, ntp));
        // While we are in the session, a BYE is for an identifier that we gave up.
        let bye = bye.map(|reason| (ssrc, reason));
        let bye = bye.or_else(|| self.given_up.take().map(|given_up| (given_up, COLLISION)));
        let rest = reports::compound(ssrc, sender, Vec::new(), &self.setup.name, bye)?;
        let room = max_bytes.saturating_sub(rest.len()) / reports::BLOCK_BYTES;
        let blocks = self.blocks(now, room.min(MAX_BLOCKS));
        reports::compound(ssrc, sender, blocks, &self.setup.name, bye)
    }

    /// Blocks about up to `most` of the sources received since we last reported on them. If there
    /// are more, those that have waited longest come first.
    fn blocks(&mut self, now: Instant, most: usize) -> Vec<rtcp_types::ReportBlockBuilder> {
        let is_new = |source: &Source| match (source.last_media, source.reported) {
            (Some(received), Some(reported)) => received >= reported,
            (received, _) => received.is_some(),
        };
        let sources = self.sources.iter_mut().filter(|(_, source)| is_new(source));
        let mut sources: Vec<_> = sources.collect();
        sources.sort_by_key(|(_, source)| source.reported);
        let blocks = sources.into_iter().take(most).filter_map(|(&ssrc, source)| {
            let (last_report, at) = source.last_report.unwrap_or((0, now));
            source.reported = Some(now);
            let reception = source.reception.as_mut()?;
            let block = Block {
                ssrc,
                fraction_lost: 0.0,
                lost: reception.lost(),
                highest_sequence: reception.highest(),
                jitter: reception.jitter(),
                rtt: None,
                last_report,
                delay: ((now - at).as_secs_f64() * 65_536.0) as u32,
            };
            Some(reports::report_block(&block, reception.fraction_lost()))
        });
        blocks.collect()
    }

    /// Our sender information, while we send (RFC 3550 section 6.4).
    fn sender_info(&self, now: Instant, ntp: u64) -> Option<SenderInfo> {
        let (timestamp, at) = self.last_sent.filter(|_| self.is_sender())?;
        Some(SenderInfo {
            ntp,
            rtp_timestamp: timestamp.wrapping_add(self.units(now - at)),
            packets: self.counts.packets_sent,
            octets: self.counts.octets_sent,
        })
    }

    /// Whether we have sent media since the report before last (section 6.3.8).
    fn is_sender(&self) -> bool {
        self.last_sent.is_some_and(|(_, at)| at >= self.previous_rtcp)
    }

    //= 5762-4.2-1
    /// Records an RTCP packet that was sent now, and had been `due` earlier.
    pub(crate) fn report_left(&mut self, now: Instant, bytes: usize, due: Instant) {
        self.average_bytes = timing::average(self.average_bytes, bytes + LOWER_HEADER_BYTES);
        self.report_passed(now);
        self.counts.reports_sent += 1;
        self.counts.report_delay = now - due;
    }

    /// Ends the interval of a report, whether or not it was sent.
    pub(crate) fn report_passed(&mut self, now: Instant) {
        self.previous_rtcp = std::mem::replace(&mut self.last_rtcp, now);
    }

    //= 5762-4.2-1
    /// The parameters of RTCP's next interval.
    pub(crate) fn interval(&self) -> Interval {
        let we_sent = self.is_sender();
        let present = self.sources.values().filter(|s| !s.left);
        let sends = |s: &&Source| s.last_media.is_some_and(|at| at >= self.previous_rtcp);
        let others = present.clone().filter(sends).count();
        Interval {
            members: present.count() + 1,
            senders: others + usize::from(we_sent),
            we_sent,
            bandwidth: self.setup.bandwidth,
            average_bytes: self.average_bytes,
            minimum: self.setup.minimum,
            initial: self.counts.reports_sent == 0,
        }
    }

    fn expire_silent(&mut self, now: Instant) {
        let limit = self.interval().deterministic() * TIMEOUT_INTERVALS;
        self.sources.retain(|_, source| now - source.last_received <= limit);
    }

    pub(crate) fn stats(&self) -> SessionStats {
        let rate = f64::from(self.setup.clock_rate);
        let sources = self.sources.iter().map(|(&ssrc, source)| {
            let r = source.reception.as_ref();
            let jitter = r.map_or(0, Reception::jitter);
            SourceStats {
                ssrc,
                name: source.name.clone(),
                packets_received: r.map_or(0, Reception::received),
                lost: r.map_or(0, |r| r.lost().into()),
                jitter: Duration::from_secs_f64(f64::from(jitter) / rate),
                hears_us: source.hears_us,
            }
        });
        SessionStats { sources: sources.collect(), ..self.counts.clone() }
    }

    fn units(&self, time: Duration) -> u32 {
        units(time, self.setup.clock_rate)
    }
}

/// A time in units of the RTP clock, with wraps.
fn units(time: Duration, rate: u32) -> u32 {
    (time.as_nanos() * u128::from(rate) / 1_000_000_000) as u32
}

fn ntp_middle_bits(ntp: u64) -> u32 {
    (ntp >> 16) as u32
}

#[cfg(test)]
mod tests;
