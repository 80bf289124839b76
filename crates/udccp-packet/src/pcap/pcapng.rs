//! Reads the pcapng format: sections of blocks, with the length of a block at both ends.

use std::io::Read;
use std::vec::Vec;

use super::{CaptureError, Frame, MAX_FRAME_BYTES, Order, Source};

/// Type of a Section Header Block; it reads the same in both byte orders.
pub(super) const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
/// The interface option with the unit of timestamps.
const IF_TSRESOL: u16 = 9;

/// The state of the current section.
#[derive(Debug)]
pub(super) struct Pcapng {
    order: Order,
    interfaces: Vec<Interface>,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: u32,
    units_per_second: u64,
}

impl Pcapng {
    /// Reads the rest of the first Section Header Block, after its type.
    pub(super) fn open<R: Read>(source: &mut Source<R>) -> Result<Self, CaptureError> {
        let mut this = Self { order: Order::Little, interfaces: Vec::new() };
        this.section(source)?;
        Ok(this)
    }

    /// Reads the rest of a Section Header Block: byte order, and a new list of interfaces.
    fn section<R: Read>(&mut self, source: &mut Source<R>) -> Result<(), CaptureError> {
        let began = source.at - 4;
        let start = source.take(8, began)?;
        self.order = match start[4..8] {
            [0x1a, 0x2b, 0x3c, 0x4d] => Order::Big,
            [0x4d, 0x3c, 0x2b, 0x1a] => Order::Little,
            _ => {
                return Err(CaptureError::Damaged {
                    at: began,
                    what: "a section of unknown byte order",
                });
            }
        };
        self.interfaces.clear();
        let length = self.order.u32(&start, 0) as usize;
        let rest = body_len(length, 12, began)?;
        source.take(rest, began)?;
        Ok(())
    }

    pub(super) fn next<R: Read>(
        &mut self,
        source: &mut Source<R>,
    ) -> Result<Option<Frame>, CaptureError> {
        loop {
            let began = source.at;
            let mut kind = [0; 4];
            if !source.fill(&mut kind)? {
                return Ok(None);
            }
            if kind == SECTION_HEADER {
                self.section(source)?;
                continue;
            }
            let length = source.take(4, began)?;
            let length = self.order.u32(&length, 0) as usize;
            let mut body = source.take(body_len(length, 8, began)?, began)?;
            // The block's length again, for reading backwards.
            body.truncate(body.len() - 4);
            match self.order.u32(&kind, 0) {
                INTERFACE_DESCRIPTION => self.interface(&body, began)?,
                ENHANCED_PACKET | OBSOLETE_PACKET => {
                    return self.enhanced(self.order.u32(&kind, 0), body, began).map(Some);
                }
                SIMPLE_PACKET => return self.simple(body, began).map(Some),
                // Skip names, statistics, comments and secrets.
                _ => {}
            }
        }
    }

    fn interface(&mut self, body: &[u8], began: u64) -> Result<(), CaptureError> {
        if body.len() < 8 {
            return Err(too_short(began));
        }
        let link = u32::from(self.order.u16(body, 0));
        let mut units_per_second = 1_000_000;
        let mut options = &body[8..];
        while options.len() >= 4 {
            let (code, len) = (self.order.u16(options, 0), self.order.u16(options, 2));
            let value = options.get(4..4 + usize::from(len)).unwrap_or(&[]);
            if let (IF_TSRESOL, [resolution, ..]) = (code, value) {
                let power = u32::from(resolution & 0x7f);
                let base: u64 = if resolution & 0x80 == 0 { 10 } else { 2 };
                units_per_second = base.checked_pow(power).unwrap_or(1_000_000_000);
            }
            options = options.get(4 + usize::from(len).next_multiple_of(4)..).unwrap_or(&[]);
        }
        self.interfaces.push(Interface { link, units_per_second });
        Ok(())
    }

    fn enhanced(&self, kind: u32, body: Vec<u8>, began: u64) -> Result<Frame, CaptureError> {
        if body.len() < 20 {
            return Err(too_short(began));
        }
        let number = match kind {
            ENHANCED_PACKET => self.order.u32(&body, 0),
            _ => u32::from(self.order.u16(&body, 0)),
        };
        let interface = self.interface_of(number, began)?;
        let units = u64::from(self.order.u32(&body, 4)) << 32 | u64::from(self.order.u32(&body, 8));
        let epoch_ns = u128::from(units) * 1_000_000_000 / u128::from(interface.units_per_second);
        let bytes = captured(&body, 20, self.order.u32(&body, 12) as usize, began)?;
        Ok(Frame { epoch_ns: u64::try_from(epoch_ns).ok(), link: interface.link, bytes })
    }

    fn simple(&self, body: Vec<u8>, began: u64) -> Result<Frame, CaptureError> {
        if body.len() < 4 {
            return Err(too_short(began));
        }
        let interface = self.interface_of(0, began)?;
        let original = self.order.u32(&body, 0) as usize;
        let bytes = captured(&body, 4, original.min(body.len() - 4), began)?;
        Ok(Frame { epoch_ns: None, link: interface.link, bytes })
    }

    fn interface_of(&self, number: u32, began: u64) -> Result<Interface, CaptureError> {
        let found = self.interfaces.get(number as usize).copied();
        found.ok_or(CaptureError::Damaged { at: began, what: "a frame of an unknown interface" })
    }
}

/// The number of bytes of a block after the first `read` ones.
fn body_len(length: usize, read: usize, began: u64) -> Result<usize, CaptureError> {
    if length < read + 4 || length > MAX_FRAME_BYTES || length % 4 != 0 {
        return Err(CaptureError::Damaged { at: began, what: "a block of impossible length" });
    }
    Ok(length - read)
}

fn captured(body: &[u8], from: usize, len: usize, began: u64) -> Result<Vec<u8>, CaptureError> {
    let bytes = body.get(from..).and_then(|rest| rest.get(..len));
    bytes.map(<[u8]>::to_vec).ok_or_else(|| too_short(began))
}

fn too_short(at: u64) -> CaptureError {
    CaptureError::Damaged { at, what: "a block too short for what it holds" }
}
