//! Reads the classic libpcap format: a header, then frames with a header each.

use std::io::Read;

use super::{CaptureError, Frame, MAX_FRAME_BYTES, Order, Source};

/// The fields of the file's header.
#[derive(Debug)]
pub(super) struct Pcap {
    order: Order,
    nanoseconds_per_unit: u64,
    link: u32,
}

impl Pcap {
    /// Reads the rest of the header, after its magic number.
    pub(super) fn open<R: Read>(
        magic: [u8; 4],
        source: &mut Source<R>,
    ) -> Result<Self, CaptureError> {
        let (order, nanoseconds_per_unit) = match magic {
            [0xa1, 0xb2, 0xc3, 0xd4] => (Order::Big, 1_000),
            [0xd4, 0xc3, 0xb2, 0xa1] => (Order::Little, 1_000),
            [0xa1, 0xb2, 0x3c, 0x4d] => (Order::Big, 1),
            [0x4d, 0x3c, 0xb2, 0xa1] => (Order::Little, 1),
            _ => return Err(CaptureError::NotACapture),
        };
        let rest = source.take(20, 0)?;
        // The upper bits tell whether each frame ends with a frame check sequence.
        let link = order.u32(&rest, 16) & 0xffff;
        Ok(Self { order, nanoseconds_per_unit, link })
    }

    pub(super) fn next<R: Read>(
        &mut self,
        source: &mut Source<R>,
    ) -> Result<Option<Frame>, CaptureError> {
        let began = source.at;
        let mut header = [0; 16];
        if !source.fill(&mut header)? {
            return Ok(None);
        }
        let [seconds, fraction, captured] = [0, 4, 8].map(|at| self.order.u32(&header, at));
        let captured = captured as usize;
        if captured > MAX_FRAME_BYTES {
            return Err(CaptureError::Damaged { at: began, what: "a frame of impossible length" });
        }
        let bytes = source.take(captured, began)?;
        let epoch_ns =
            u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * self.nanoseconds_per_unit;
        Ok(Some(Frame { epoch_ns: Some(epoch_ns), link: self.link, bytes }))
    }
}
