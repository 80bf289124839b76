//! Lines of the trace: packets as written by ns-2, and lines that the script adds.

use core::str::{self, FromStr};

/// A line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Line {
    /// An event of a packet.
    Packet(Packet),
    /// The state of a sender at the end of an interval.
    Flow(Sender),
    /// The counters of a queue.
    Queue(Counters),
    /// The end of the run.
    End,
}

/// The kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// The packet entered the queue of the sending host's link.
    Sent,
    /// It reached the far end of a link.
    Arrived,
    /// A queue dropped it.
    Dropped,
}

/// An event of a packet at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) happened: EventKind,
    pub(crate) at_ns: u64,
    /// Number of its flow.
    pub(crate) flow: usize,
    /// The node that sent it.
    pub(crate) source: usize,
    pub(crate) bytes: u32,
    pub(crate) has_data: bool,
    /// Number of a TCP segment; the SYN has 0.
    pub(crate) segment: u64,
    /// A number that no other packet of the run has.
    pub(crate) number: u64,
}

/// The state of a sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sender {
    pub(crate) flow: usize,
    /// Number of the interval that ends, from 0.
    pub(crate) interval: usize,
    pub(crate) cwnd_packets: Option<f64>,
    pub(crate) cuts: u64,
    pub(crate) timeouts: u64,
    pub(crate) retransmits: u64,
    pub(crate) srtt_s: Option<f64>,
}

/// The counters of a queue since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) link: usize,
    pub(crate) at_ns: u64,
    /// Packets and bytes. ns-2's counters have 32 bits and wrap to negative numbers.
    pub(crate) arrived: [i64; 2],
    pub(crate) departed: [i64; 2],
    pub(crate) dropped: [i64; 2],
    pub(crate) waiting: [i64; 2],
}

/// Parses a line without its newline.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn parse(line: &[u8]) -> Result<Line, String> {
    let text = str::from_utf8(line).map_err(|_| "it is not text".to_owned())?;
    let mut fields = Fields { rest: text.split_ascii_whitespace(), text };
    match fields.next("kind")? {
        "+" => fields.packet(EventKind::Sent).map(Line::Packet),
        "r" => fields.packet(EventKind::Arrived).map(Line::Packet),
        "d" => fields.packet(EventKind::Dropped).map(Line::Packet),
        "F" => fields.sender().map(Line::Flow),
        "L" => fields.counters().map(Line::Queue),
        "E" => Ok(Line::End),
        _ => Err(fields.missing("kind")),
    }
}

struct Fields<'a> {
    rest: str::SplitAsciiWhitespace<'a>,
    text: &'a str,
}

impl<'a> Fields<'a> {
    fn missing(&self, what: &str) -> String {
        format!("no {what} in \"{}\"", self.text)
    }

    fn next(&mut self, what: &str) -> Result<&'a str, String> {
        self.rest.next().ok_or_else(|| self.missing(what))
    }

    fn number<T: FromStr>(&mut self, what: &str) -> Result<T, String> {
        self.next(what)?.parse().map_err(|_| self.missing(what))
    }

    /// A number, or `-` for none. Before the first sample, ns-2 prints negative numbers.
    fn optional_number(&mut self, what: &str) -> Result<Option<f64>, String> {
        match self.next(what)? {
            "-" => Ok(None),
            text => {
                let number: f64 = text.parse().map_err(|_| self.missing(what))?;
                Ok(Some(number).filter(|number| number.is_finite() && *number >= 0.0))
            }
        }
    }

    fn time_ns(&mut self) -> Result<u64, String> {
        let text = self.next("time")?;
        time_ns(text).ok_or_else(|| self.missing("time"))
    }

    /// `+ 10.001007 2 3 DCCP_Data 516 ------- 1 1.0 5.0 -1 499`
    fn packet(mut self, happened: EventKind) -> Result<Packet, String> {
        let at_ns = self.time_ns()?;
        let _from_node = self.next("node")?;
        let _to_node = self.next("node")?;
        let name = self.next("type")?;
        let bytes = self.number("size")?;
        let _flags = self.next("flags")?;
        let flow = self.number("flow")?;
        let source = self.next("source")?;
        let source = source.split_once('.').and_then(|(node, _)| node.parse().ok());
        let source = source.ok_or_else(|| self.missing("source"))?;
        let _destination = self.next("destination")?;
        let segment: i64 = self.number("sequence number")?;
        let number = self.number("packet number")?;
        let has_data = match name {
            "tcp" => segment > 0,
            "DCCP_Data" | "DCCP_DataAck" | "cbr" | "udp" => true,
            _ => false,
        };
        let segment = u64::try_from(segment).unwrap_or(0);
        Ok(Packet { happened, at_ns, flow, source, bytes, has_data, segment, number })
    }

    /// `F flow interval window cuts timeouts retransmits rtt`
    fn sender(mut self) -> Result<Sender, String> {
        Ok(Sender {
            flow: self.number("flow")?,
            interval: self.number("interval")?,
            cwnd_packets: self.optional_number("window")?,
            cuts: self.number("cuts")?,
            timeouts: self.number("timeouts")?,
            retransmits: self.number("retransmits")?,
            srtt_s: self.optional_number("round-trip time")?,
        })
    }

    /// `L link time`, then packets and bytes that arrived, left, were dropped, and are queued.
    fn counters(mut self) -> Result<Counters, String> {
        let (link, at_ns) = (self.number("link")?, self.time_ns()?);
        let mut pair = |what: &str| -> Result<[i64; 2], String> {
            Ok([self.number(what)?, self.number(what)?])
        };
        let arrived = pair("arrivals")?;
        let departed = pair("departures")?;
        let dropped = pair("drops")?;
        let waiting = pair("waiting packets")?;
        Ok(Counters { link, at_ns, arrived, departed, dropped, waiting })
    }
}

/// Converts ns-2's seconds to nanoseconds: digits, or (below 0.1 ms) with an exponent.
fn time_ns(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(part) || part.len() > 9 {
        let seconds: f64 = text.parse().ok()?;
        return (0.0..1e9).contains(&seconds).then_some((seconds * 1e9).round() as u64);
    }
    let fraction = part.bytes().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    let fraction = fraction * 10_u64.pow(9 - part.len() as u32);
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests;
