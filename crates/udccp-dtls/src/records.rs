//! Splits a packet into its records (RFC 6347 section 4.1, RFC 9147 section 4).

use bytes::Bytes;

use crate::{Alert, Version};

/// Content type of handshake messages, and the type of a ClientHello.
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const HANDSHAKE_HEADER_BYTES: usize = 12;
/// Number of the extension supported_versions.
const SUPPORTED_VERSIONS: [u8; 2] = [0, 43];
/// Header of an unencrypted record, or of any record of DTLS 1.2.
const HEADER_BYTES: usize = 13;
/// DTLS 1.2: the record header, 8 bytes of nonce and 16 of tag (AES-GCM); other suites need less.
const OVERHEAD_12: usize = HEADER_BYTES + 8 + 16;
/// DTLS 1.3: a header of 5 bytes, the content type, 16 bytes of tag.
const OVERHEAD_13: usize = 5 + 1 + 16;

/// The most that protection adds to a message, in bytes.
pub(crate) fn overhead(version: Version) -> usize {
    match version {
        Version::Dtls12 => OVERHEAD_12,
        Version::Dtls13 => OVERHEAD_13,
    }
}

/// Length of the first record.
fn first_record(packet: &[u8]) -> Option<usize> {
    let first = *packet.first()?;
    if first >> 5 != 0b001 {
        let length = packet.get(11..HEADER_BYTES)?;
        return Some(HEADER_BYTES + usize::from(u16::from_be_bytes([length[0], length[1]])));
    }
    // RFC 9147 section 4: 001CSLEE, here without a connection id.
    let seq_bytes = if first & 0b1000 != 0 { 2 } else { 1 };
    if first & 0b100 == 0 {
        return Some(packet.len());
    }
    let length = packet.get(1 + seq_bytes..3 + seq_bytes)?;
    Some(3 + seq_bytes + usize::from(u16::from_be_bytes([length[0], length[1]])))
}

/// The records of a packet. A remainder that is not a record is returned as it is.
pub(crate) fn each(packet: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = packet;
    std::iter::from_fn(move || {
        let len = first_record(rest).map_or(rest.len(), |len| len.min(rest.len()));
        let (record, after) = rest.split_at(len);
        rest = after;
        (!record.is_empty()).then_some(record)
    })
}

/// Packs the records of `packet`, in order, into packets of at most `max` bytes. Records are not
/// split: a larger one becomes a packet by itself.
pub(crate) fn repack(packet: Bytes, max: usize) -> Vec<Bytes> {
    let mut packets = Vec::new();
    let mut rest = packet;
    while rest.len() > max {
        let mut end = 0;
        while let Some(len) = first_record(&rest[end..]).filter(|&len| len > 0) {
            if end > 0 && end + len > max {
                break;
            }
            end = (end + len).min(rest.len());
            if end > max || end == rest.len() {
                break;
            }
        }
        if end == 0 {
            break;
        }
        packets.push(rest.split_to(end));
    }
    if !rest.is_empty() {
        packets.push(rest);
    }
    packets
}

/// Whether a packet begins with a ServerHello or a HelloVerifyRequest, the only messages that tell
/// a client which version the server chose.
pub(crate) fn names_server_version(packet: &[u8]) -> bool {
    packet.first() == Some(&HANDSHAKE) && matches!(packet.get(HEADER_BYTES), Some(2 | 3))
}

/// The versions that a client offers, if the packet begins with a complete ClientHello. Without the
/// extension supported_versions, the legacy version counts (RFC 8446 section 4.2.1).
pub(crate) fn offered_versions(packet: &[u8]) -> Option<Vec<Version>> {
    let record = packet.get(HEADER_BYTES..first_record(packet)?)?;
    let length = usize::from(u16::from_be_bytes([*record.get(2)?, *record.get(3)?]));
    let fragment = usize::from(u16::from_be_bytes([*record.get(10)?, *record.get(11)?]));
    let is_hello = packet[0] == HANDSHAKE && record[0] == CLIENT_HELLO;
    if !is_hello || length != fragment || record[1] != 0 || record[9] != 0 {
        return None;
    }
    let mut body = Fields(record.get(HANDSHAKE_HEADER_BYTES..HANDSHAKE_HEADER_BYTES + length)?);
    // Skip version and random, then session, cookie, cipher suites and compression.
    body.take(2 + 32)?;
    for length_bytes in [1, 1, 2, 1] {
        body.vector(length_bytes)?;
    }
    let mut extensions = Fields(body.vector(2).unwrap_or_default());
    while let Some(kind) = extensions.take(2) {
        let mut value = Fields(extensions.vector(2)?);
        if kind == SUPPORTED_VERSIONS {
            let offered = value.vector(1)?.chunks(2);
            return Some(offered.filter_map(Version::from_wire).collect());
        }
    }
    Some(vec![Version::Dtls12])
}

/// Reads a message field by field.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(field)
    }

    /// Reads a field that is preceded by its length.
    fn vector(&mut self, length_bytes: usize) -> Option<&'a [u8]> {
        let length = self.take(length_bytes)?.iter().fold(0, |n, &b| n << 8 | usize::from(b));
        self.take(length)
    }
}

/// The alert at the start of a packet, if there is one and it is not encrypted.
pub(crate) fn clear_alert(packet: &[u8]) -> Option<Alert> {
    let is_alert = packet.first() == Some(&21) && packet.get(3..5) == Some(&[0, 0]);
    let fatal = packet.get(HEADER_BYTES) == Some(&2);
    packet.get(HEADER_BYTES + 1).filter(|_| is_alert && fatal).map(|&d| Alert(d))
}

/// A fatal unencrypted alert, as sent before there are keys. Its sequence number is above those of
/// a handshake, so that it does not count as a replay.
pub(crate) fn alert(alert: Alert) -> Bytes {
    let mut record = vec![21, 0xfe, 0xfd, 0, 0];
    record.extend_from_slice(&[0, 0, 0, 0xff, 0, 0]);
    record.extend_from_slice(&[0, 2, 2, alert.0]);
    record.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clear(len: u16) -> Vec<u8> {
        let mut record = vec![22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0];
        record.extend_from_slice(&len.to_be_bytes());
        record.resize(HEADER_BYTES + usize::from(len), 7);
        record
    }

    fn ciphertext(len: u16) -> Vec<u8> {
        let mut record = vec![0b0010_1110, 0, 1];
        record.extend_from_slice(&len.to_be_bytes());
        record.resize(5 + usize::from(len), 7);
        record
    }

    //= 5238-3-2 test
    //= 5238-3-3 test
    #[test]
    fn packets_are_split_between_records_and_never_within() {
        let packet = Bytes::from([clear(87), clear(87), ciphertext(95), ciphertext(200)].concat());
        let lens = |max| repack(packet.clone(), max).iter().map(Bytes::len).collect::<Vec<_>>();
        assert_eq!(lens(1000), [505]);
        assert_eq!(lens(300), [300, 205]);
        assert_eq!(lens(299), [200, 100, 205]);
        assert_eq!(lens(100), [100, 100, 100, 205], "a record that does not fit stays whole");
        let all: Vec<u8> = repack(packet.clone(), 250).concat();
        assert_eq!(all, packet);
        assert_eq!(each(&packet).map(<[u8]>::len).collect::<Vec<_>>(), [100, 100, 100, 205]);
        assert_eq!(each(&packet[..350]).map(<[u8]>::len).collect::<Vec<_>>(), [100, 100, 100, 50]);
    }

    #[test]
    fn bytes_that_are_not_records_pass_unchanged() {
        for bytes in [&b""[..], b"\x16", b"\x2f\xff", b"\xff\xff\xff\xff", &[0x2c; 40]] {
            let packets = repack(Bytes::copy_from_slice(bytes), 3);
            assert_eq!(packets.concat(), bytes);
            assert_eq!(each(bytes).collect::<Vec<_>>().concat(), bytes);
            assert!(!names_server_version(bytes));
            assert_eq!(offered_versions(bytes), None);
            assert_eq!(clear_alert(bytes), None);
        }
    }

    #[test]
    fn versions_of_a_complete_client_hello_are_read() {
        use crate::{DtlsOptions, engine::Engine, engine::Event};
        use Version::{Dtls12, Dtls13};
        let offered = |options: DtlsOptions| {
            let mut events = Vec::new();
            let options = options.dangerous_accept_any();
            let mut engine = Engine::new(&options, true, 2000).unwrap();
            engine.tick(&mut events).unwrap();
            let Event::Packet(packet) = &events[0] else { panic!("{events:?}") };
            for len in 0..packet.len() {
                let _ = offered_versions(&packet[..len]);
            }
            let mut part = packet.to_vec();
            part[HEADER_BYTES + 11] -= 1;
            assert_eq!(offered_versions(&part), None, "a fragment");
            // Both lengths have 24 bits.
            for high in [1, 9] {
                let mut long = packet.to_vec();
                long[HEADER_BYTES + high] = 1;
                assert_eq!(offered_versions(&long), None, "64 KiB longer");
            }
            offered_versions(packet)
        };
        let options = DtlsOptions::new;
        assert_eq!(offered(options().versions(Dtls12..=Dtls12)), Some(vec![Dtls12]));
        assert_eq!(offered(options().versions(Dtls13..=Dtls13)), Some(vec![Dtls13]));
        let both = offered(options()).unwrap();
        assert!(both.len() == 2 && both.contains(&Dtls12) && both.contains(&Dtls13), "{both:?}");
    }

    /// RFC 9147 section 4: a record without a length is the last of its packet, and a sequence
    /// number has one byte or two.
    #[test]
    fn short_headers_of_dtls_1_3_are_read() {
        let mut short = vec![0b0010_0110, 0, 0, 20];
        short.resize(4 + 20, 7);
        let mut last = vec![0b0010_1010, 0, 1];
        last.resize(60, 0);
        let packet = [short, ciphertext(95), last].concat();
        assert_eq!(each(&packet).map(<[u8]>::len).collect::<Vec<_>>(), [24, 100, 60]);
    }

    #[test]
    fn only_fatal_alerts_in_clear_end_a_handshake() {
        let fatal = alert(Alert::BAD_CERTIFICATE).to_vec();
        let changed = |at: usize, to: u8| {
            let mut packet = fatal.clone();
            packet[at] = to;
            clear_alert(&packet)
        };
        assert_eq!(changed(4, 1), None, "epoch 1 is encrypted");
        assert_eq!(changed(HEADER_BYTES, 1), None, "a warning");
        assert_eq!(changed(0, 22), None, "no alert");
    }

    #[test]
    fn alerts_round_trip() {
        assert_eq!(clear_alert(&alert(Alert::BAD_CERTIFICATE)), Some(Alert::BAD_CERTIFICATE));
        assert_eq!(clear_alert(&clear(20)), None);
    }
}
