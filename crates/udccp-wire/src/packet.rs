//! A packet as an owned value, for tests, tools and other uses outside the fast path.

use alloc::vec::Vec;

use bytes::BytesMut;

use crate::checksum::{PseudoHeader, Sum};
use crate::emit::{Emitter, Header, HeaderFull};
use crate::error::{OptionError, WireError};
use crate::option::{OptionRef, Out, RawOption};
use crate::options::RawOptions;
use crate::view::PacketView;

/// An option as owned type and data bytes, so that its encoding is preserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionValue {
    /// Option type.
    pub kind: u8,
    /// Option data, at most 253 bytes; empty for types below 32.
    pub data: Vec<u8>,
}

/// A whole packet.
///
/// `Packet::parse(&p.emit(..)?, ..)` returns `p` for every packet in normal form: `x` is true
/// unless the type may have short sequence numbers, which then are below 2^24; Checksum Coverage is
/// within the data; the options do not end with Padding. Conversely, emitting a parsed packet gives
/// the same bytes if its reserved bits are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Fixed header.
    pub header: Header,
    /// Options in order, with the Padding before and between them, but without the final Padding
    /// that emission adds.
    pub options: Vec<OptionValue>,
    /// Application data area.
    pub payload: Vec<u8>,
}

impl OptionValue {
    /// The decoded option.
    pub fn as_ref(&self) -> Result<OptionRef<'_>, OptionError> {
        OptionRef::from_raw(RawOption { kind: self.kind, data: &self.data })
    }
}

impl From<RawOption<'_>> for OptionValue {
    fn from(raw: RawOption<'_>) -> Self {
        Self { kind: raw.kind, data: raw.data.to_vec() }
    }
}

impl From<OptionRef<'_>> for OptionValue {
    /// The option in its shortest encoding; data beyond 253 bytes is cut.
    fn from(option: OptionRef<'_>) -> Self {
        let mut buf = BytesMut::new();
        let len = u8::try_from(option.encoded_len()).unwrap_or(u8::MAX);
        option.put(len, &mut Out { buf: &mut buf, sum: &mut Sum::new() });
        let data = buf.get(2..buf.len().min(255)).unwrap_or(&[]).to_vec();
        Self { kind: option.kind(), data }
    }
}

impl Packet {
    /// Parses a whole packet. With a pseudo-header the checksum is verified; without one it is
    /// not (inside UDP it is ignored, RFC 6773 section 3.3).
    pub fn parse(bytes: &[u8], pseudo: Option<&PseudoHeader>) -> Result<Self, WireError> {
        let view = PacketView::new(bytes, bytes.len())?;
        if pseudo.is_some_and(|pseudo| !view.verify_checksum(pseudo, &[], 0)) {
            return Err(WireError::Checksum);
        }
        let mut options = Vec::new();
        for option in RawOptions::new(view.option_bytes()) {
            options.push(OptionValue::from(option?));
        }
        drop_final_padding(&mut options);
        let payload = view.payload_in_header().to_vec();
        Ok(Self { header: view.header(), options, payload })
    }

    /// The bytes of the packet, with the header checksum for these addresses.
    pub fn emit(&self, pseudo: &PseudoHeader) -> Result<Vec<u8>, HeaderFull> {
        let mut buf = BytesMut::new();
        self.emitter(&mut buf)?.finish(pseudo, &self.payload, 0);
        buf.extend_from_slice(&self.payload);
        Ok(buf.into())
    }

    /// The bytes of the packet for use inside UDP, with the Checksum field zero.
    pub fn emit_encapsulated(&self) -> Result<Vec<u8>, HeaderFull> {
        let mut buf = BytesMut::new();
        self.emitter(&mut buf)?.finish_encapsulated(self.payload.len());
        buf.extend_from_slice(&self.payload);
        Ok(buf.into())
    }

    fn emitter<'b>(&self, buf: &'b mut BytesMut) -> Result<Emitter<'b>, HeaderFull> {
        let mut emitter = Emitter::new(buf, &self.header);
        for option in &self.options {
            emitter.raw_option(option.kind, &option.data)?;
        }
        Ok(emitter)
    }
}

/// Removes the Padding that emission will add: only what fills the last word.
fn drop_final_padding(options: &mut Vec<OptionValue>) {
    let padding = options.iter().rev().take_while(|o| o.kind == crate::option_kind::PADDING);
    let dropped = padding.count() % 4;
    options.truncate(options.len() - dropped);
}
