//! Passes the settings of `udccp run` through the program's environment.

use std::fmt;

use udccp_preload::protocol::FAULTS;

/// How packets travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// In UDP, all servers behind one port; the DCCP port tells them apart (RFC 6773).
    Udp(u16),
    /// In UDP; each server has the UDP port with the same number.
    SamePort,
    /// Raw IP.
    Raw,
}

/// Settings of a program's sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How packets travel.
    pub transport: Transport,
    /// Faults of Linux to copy, as bits of [`udccp_preload::protocol`].
    pub faults: u32,
    /// Messages that may wait to be sent, unless the program sets another number.
    pub tx_qlen: u32,
}

impl Default for Settings {
    fn default() -> Self {
        let transport = Transport::Udp(udccp::DCCP_UDP_PORT);
        Self { transport, faults: 0, tx_qlen: 5 }
    }
}

impl Settings {
    /// Parses the output of [`fmt::Display`], ignoring unknown words.
    pub(crate) fn parse(text: &str) -> Self {
        let mut settings = Self::default();
        for word in text.split(',') {
            match word.split_once('=') {
                None if word == "raw" => settings.transport = Transport::Raw,
                None if word == "same-port" => settings.transport = Transport::SamePort,
                Some(("udp", port)) => {
                    settings.transport = port.parse().map_or(settings.transport, Transport::Udp);
                }
                Some(("tx-qlen", n)) => settings.tx_qlen = n.parse().unwrap_or(settings.tx_qlen),
                Some(("faults", bits)) => settings.faults = bits.parse().unwrap_or(0),
                _ => {}
            }
        }
        settings
    }

    /// Copies a fault of Linux by name. Returns whether the name is known.
    pub fn copy_fault(&mut self, name: &str) -> bool {
        let bit = FAULTS.iter().find(|f| f.0 == name).map_or(0, |f| f.1);
        self.faults |= bit;
        bit != 0
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.transport {
            Transport::Udp(port) => write!(f, "udp={port}")?,
            Transport::SamePort => f.write_str("same-port")?,
            Transport::Raw => f.write_str("raw")?,
        }
        write!(f, ",tx-qlen={},faults={}", self.tx_qlen, self.faults)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_round_trip() {
        for transport in [Transport::Udp(7), Transport::SamePort, Transport::Raw] {
            let mut settings = Settings { transport, faults: 0, tx_qlen: 9 };
            assert!(settings.copy_fault("no-source") && !settings.copy_fault("nonsense"));
            assert_eq!(Settings::parse(&settings.to_string()), settings);
        }
    }
}
