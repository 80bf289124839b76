//! Messages in a byte stream: a queue of bytes to write, and a splitter for bytes that were read.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::Bytes;
use udccp_base::Payload;

use super::ZEROS;

/// Length of the mark at the start of a tracked message: its number, creation time and piece count.
pub(crate) const MARK: usize = 16;
/// Most slices written by one call.
const SLICES: usize = 32;

/// Bytes to be written to the kernel.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    waiting: VecDeque<Payload>,
    bytes: u64,
}

impl Outgoing {
    pub(super) const fn len(&self) -> u64 {
        self.bytes
    }

    pub(super) fn push(&mut self, payload: Payload) {
        self.bytes += payload.len() as u64;
        if let (Payload::Zeros(more), Some(Payload::Zeros(n))) = (&payload, self.waiting.back_mut())
            && let Some(sum) = n.checked_add(*more)
        {
            *n = sum;
            return;
        }
        self.waiting.push_back(payload);
    }

    /// The first queued bytes as slices.
    pub(super) fn slices(&self) -> Vec<IoSlice<'_>> {
        let mut slices = Vec::with_capacity(SLICES);
        for payload in &self.waiting {
            match payload {
                Payload::Bytes(bytes) => slices.push(IoSlice::new(bytes)),
                Payload::Zeros(n) => {
                    let mut left = *n as usize;
                    while left > 0 && slices.len() < SLICES {
                        let some = left.min(ZEROS.len());
                        slices.push(IoSlice::new(&ZEROS[..some]));
                        left -= some;
                    }
                }
            }
            if slices.len() >= SLICES {
                break;
            }
        }
        slices
    }

    /// Removes bytes that were written.
    pub(super) fn advance(&mut self, mut bytes: usize) {
        self.bytes -= bytes as u64;
        while bytes > 0
            && let Some(first) = self.waiting.front_mut()
        {
            let some = bytes.min(first.len());
            bytes -= some;
            match first {
                Payload::Bytes(rest) => *rest = rest.slice(some..),
                Payload::Zeros(n) => *n -= some as u32,
            }
            if first.is_empty() {
                self.waiting.pop_front();
            }
        }
    }
}

/// Returns the length of the message with a given number.
pub(crate) type SizeOf = Box<dyn FnMut(u32) -> u32 + Send>;

/// Splits a stream into messages.
pub(super) struct MessageDeframer {
    size_of: SizeOf,
    mark: Vec<u8>,
    /// Bytes of the current message that are still to come after its mark.
    left: u64,
}

impl MessageDeframer {
    pub(super) fn new(size_of: SizeOf) -> Self {
        Self { size_of, mark: Vec::with_capacity(MARK), left: 0 }
    }

    /// Takes received bytes and calls `whole` with the mark of each message that ends in them.
    pub(super) fn take(&mut self, mut bytes: &[u8], mut whole: impl FnMut(Bytes)) {
        while !bytes.is_empty() {
            if self.mark.len() < MARK {
                let some = bytes.len().min(MARK - self.mark.len());
                self.mark.extend_from_slice(&bytes[..some]);
                bytes = &bytes[some..];
                if self.mark.len() < MARK {
                    return;
                }
                let id =
                    u32::from_be_bytes([self.mark[0], self.mark[1], self.mark[2], self.mark[3]]);
                self.left = u64::from((self.size_of)(id)).saturating_sub(MARK as u64);
            }
            let some = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
            self.left -= some as u64;
            bytes = &bytes[some..];
            if self.left == 0 {
                whole(Bytes::from(std::mem::take(&mut self.mark)));
            }
        }
    }
}

impl std::fmt::Debug for MessageDeframer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MessageDeframer").field("left", &self.left).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_deframed_however_the_stream_is_segmented() {
        let sizes = [40_u32, 16, 25];
        let mut stream = Vec::new();
        for (id, size) in (0_u32..).zip(sizes) {
            let mut message = vec![7; size as usize];
            message[..4].copy_from_slice(&id.to_be_bytes());
            stream.extend(message);
        }
        for step in [1, 3, 17, 81] {
            let mut deframer = MessageDeframer::new(Box::new(move |id| sizes[id as usize]));
            let mut whole = Vec::new();
            for part in stream.chunks(step) {
                deframer.take(part, |mark| whole.push(mark[3]));
            }
            assert_eq!(whole, [0, 1, 2], "in steps of {step}");
        }
    }

    #[test]
    fn written_bytes_equal_pushed_bytes() {
        let mut out = Outgoing::default();
        out.push(Payload::Bytes(Bytes::from_static(&[1; 10])));
        out.push(Payload::Zeros(100_000));
        out.push(Payload::Zeros(50_000));
        let mut total = 0;
        while out.len() > 0 {
            let ready: usize = out.slices().iter().map(|s| s.len()).sum();
            let some = ready.min(33_333);
            out.advance(some);
            total += some;
        }
        assert_eq!(total, 150_010);
        assert!(out.slices().is_empty());
    }
}
