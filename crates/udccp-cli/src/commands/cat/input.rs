//! Splits standard input into messages.

use std::io::{self, IsTerminal, Read};

use bytes::{Bytes, BytesMut};

use crate::exit::{CliResult, Exit, Failure};

/// Bytes to pass on at once, so that they leave in few writes.
const BATCH_BYTES: usize = 256 << 10;
/// A size that fits one packet on nearly every path.
const DEFAULT_SIZE: usize = 1400;

/// How input is split into messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// Messages of this many bytes; the last may be shorter.
    Size(usize),
    /// Messages end with a newline; longer lines are cut at this many bytes.
    Lines(usize),
}

impl Framing {
    /// The framing for these flags on a path that accepts `max` bytes.
    pub(super) fn choose(lines: bool, size: Option<usize>, max: usize) -> CliResult<Self> {
        match size {
            Some(0) => Err(Failure::new(Exit::Usage, "a message needs at least one byte")
                .hint("an empty message marks the end of the data")),
            Some(size) if size > max => Err(Failure::new(
                Exit::Usage,
                format!("messages of {size} bytes exceed the {max} bytes that fit into one packet"),
            )
            .hint(format!("use --size {max} or less"))),
            Some(size) => Ok(Self::Size(size)),
            None if lines || io::stdin().is_terminal() => Ok(Self::Lines(max)),
            None => Ok(Self::Size(max.min(DEFAULT_SIZE))),
        }
    }
}

/// Splits a stream into batches of messages.
#[derive(Debug)]
pub(super) struct Messages<R> {
    input: R,
    framing: Framing,
    /// Input that is not yet a whole message.
    pending: BytesMut,
}

impl<R: Read> Messages<R> {
    pub(super) fn new(input: R, framing: Framing) -> Self {
        Self { input, framing, pending: BytesMut::new() }
    }

    /// The next messages; `None` at the end of the input.
    pub(super) fn next_batch(&mut self) -> io::Result<Option<Vec<Bytes>>> {
        loop {
            let have = self.pending.len();
            self.pending.resize(have + BATCH_BYTES, 0);
            let read = self.input.read(&mut self.pending[have..]);
            self.pending.truncate(have + read.as_ref().map_or(0, |&n| n));
            match read {
                Ok(0) if self.pending.is_empty() => return Ok(None),
                Ok(0) => return Ok(Some(self.cut(true))),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            }
            let batch = self.cut(false);
            if !batch.is_empty() {
                return Ok(Some(batch));
            }
        }
    }

    /// Removes the whole messages from `pending`; at the end of the input, also the rest.
    fn cut(&mut self, end: bool) -> Vec<Bytes> {
        let mut batch = Vec::new();
        while let Some(len) = self.whole_message() {
            batch.push(self.pending.split_to(len).freeze());
        }
        if end && !self.pending.is_empty() {
            batch.push(self.pending.split().freeze());
        }
        batch
    }

    fn whole_message(&self) -> Option<usize> {
        let have = self.pending.len();
        match self.framing {
            Framing::Size(size) => (have >= size).then_some(size),
            Framing::Lines(max) => {
                let within = &self.pending[..have.min(max)];
                let newline = within.iter().position(|&b| b == b'\n').map(|at| at + 1);
                newline.or((have >= max).then_some(max))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &[u8], framing: Framing) -> Vec<Vec<u8>> {
        let mut messages = Messages::new(input, framing);
        let mut all = Vec::new();
        while let Some(batch) = messages.next_batch().unwrap() {
            all.extend(batch.into_iter().map(|m| m.to_vec()));
        }
        all
    }

    #[test]
    fn input_is_split_by_size_or_by_line() {
        assert_eq!(
            all(b"abcdefg", Framing::Size(3)),
            [b"abc".to_vec(), b"def".into(), b"g".into()]
        );
        assert_eq!(
            all(b"one\n\nlonger\nend", Framing::Lines(5)),
            [b"one\n".to_vec(), b"\n".into(), b"longe".into(), b"r\n".into(), b"end".into()]
        );
        assert!(all(b"", Framing::Size(3)).is_empty());
    }

    #[test]
    fn splitting_keeps_every_byte() {
        let input: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
        for framing in [Framing::Size(1400), Framing::Lines(1400)] {
            let all = all(&input, framing);
            assert!(all.iter().all(|m| m.len() <= 1400 && !m.is_empty()));
            assert!(all.concat() == input);
        }
    }
}
