//! The parameters of a test, as client and server exchange them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use udccp::Options;

use super::messages::HEADER_BYTES;

/// Version of the protocol between client and server.
pub(super) const PROTOCOL: u32 = 2;
/// Most bytes in the send queue of each stream.
pub(super) const SEND_QUEUE_BYTES: usize = 1 << 20;

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Direction {
    /// The client.
    Forward,
    /// The server.
    Reverse,
    /// Both.
    Both,
}

impl Direction {
    pub(super) fn client_sends(self) -> bool {
        self != Self::Reverse
    }

    pub(super) fn server_sends(self) -> bool {
        self != Self::Forward
    }
}

/// A test, as requested by the client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Spec {
    pub(super) protocol: u32,
    pub(super) direction: Direction,
    pub(super) streams: u16,
    /// 0 means until stopped.
    pub(super) duration_s: f64,
    pub(super) length: usize,
    pub(super) bits_per_s: Option<u64>,
    pub(super) ccid: u8,
}

/// Longest test that a server accepts.
const MAX_SECONDS: f64 = 86_400.0;

impl Spec {
    /// How long to send; `None` until stopped.
    pub(super) fn duration(&self) -> Option<Duration> {
        let duration = Duration::from_secs_f64(self.duration_s.clamp(0.0, MAX_SECONDS));
        (!duration.is_zero()).then_some(duration)
    }

    /// The direction, from the server's point of view.
    pub(super) const fn who(&self) -> &'static str {
        match self.direction {
            Direction::Forward => "receiving",
            Direction::Reverse => "sending",
            Direction::Both => "both ways",
        }
    }

    /// Describes the test.
    pub(super) fn describe(&self, who: &str) -> String {
        let rate = self.bits_per_s.map_or("as fast as possible".into(), |bits| {
            format!("at {:.2} Mbit/s each", bits as f64 / 1e6)
        });
        let time = match self.duration() {
            Some(_) => format!("for {} s", self.duration_s),
            None => "until stopped".to_owned(),
        };
        format!(
            "{who} {time} in {} stream(s) of {}-byte messages, {rate}, CCID {}",
            self.streams, self.length, self.ccid
        )
    }

    /// Why a server would refuse this test, if its packets hold `max` bytes.
    pub(super) fn refusal_reason(&self, max: usize) -> Option<String> {
        if self.protocol != PROTOCOL {
            let theirs = self.protocol;
            return Some(format!(
                "the client has protocol version {theirs}, the server {PROTOCOL}"
            ));
        }
        if self.streams == 0 || self.streams > 1000 {
            return Some(format!("{} streams: the number must be from 1 to 1000", self.streams));
        }
        if self.length < HEADER_BYTES {
            return Some(format!("a message needs at least {HEADER_BYTES} bytes"));
        }
        if self.direction.server_sends() && self.length > max {
            let length = self.length;
            return Some(format!("its packets hold {max} bytes, not {length}: use -l {max}"));
        }
        if !(0.0..=MAX_SECONDS).contains(&self.duration_s) {
            return Some(format!("a test lasts at most {MAX_SECONDS} seconds"));
        }
        None
    }
}

/// Adds queues large enough for a fast path that still empty quickly on a slow one.
pub(super) fn with_queues(options: Options) -> Options {
    options.send_queue(SEND_QUEUE_BYTES, 1024).recv_queue(4 << 20, 4096)
}

/// Parses a rate in bits per second: `20M`, `1.5G`, or with its unit written out.
pub(super) fn rate(text: &str) -> Result<u64, String> {
    if let Ok(rate) = text.parse::<udccp_base::DataRate>() {
        return nonzero(rate.bits_per_sec());
    }
    let wrong = || format!("\"{text}\" is not a rate; write 20M, 1.5G, 800K or \"20 Mbit/s\"");
    let (number, factor) = match text.as_bytes().last().map(u8::to_ascii_uppercase) {
        Some(b'K') => (&text[..text.len() - 1], 1e3),
        Some(b'M') => (&text[..text.len() - 1], 1e6),
        Some(b'G') => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    if !number.is_finite() || number < 0.0 {
        return Err(wrong());
    }
    nonzero((number * factor) as u64)
}

fn nonzero(bits_per_s: u64) -> Result<u64, String> {
    if bits_per_s == 0 {
        return Err("the rate is zero; leave the flag out to send as fast as possible".into());
    }
    Ok(bits_per_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_in_common_forms() {
        assert_eq!(rate("20M"), Ok(20_000_000));
        assert_eq!(rate("1.5g"), Ok(1_500_000_000));
        assert_eq!(rate("20 Mbit/s"), Ok(20_000_000));
        assert_eq!(rate("64000"), Ok(64_000));
        for wrong in ["", "fast", "M", "-1M", "0", "NaN", "20Q", "é"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }
}
