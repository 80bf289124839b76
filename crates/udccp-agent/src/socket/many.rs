//! Sends and receives many messages with one system call.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, recvmmsg, sendmmsg};
use udccp_base::Payload;

use super::stream::MARK;
use super::{BATCH, ZEROS};

/// Buffers of these system calls.
pub(super) struct MultiMessageBuffers {
    headers: MultiHeaders<()>,
    /// The first bytes of each message; the rest is not needed.
    heads: Vec<[u8; MARK]>,
}

impl MultiMessageBuffers {
    pub(super) fn new() -> Self {
        Self { headers: MultiHeaders::preallocate(BATCH, None), heads: vec![[0; MARK]; BATCH] }
    }

    /// Passes the first messages of a queue to the kernel. Returns how many it accepted.
    pub(super) fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        queue: &VecDeque<Payload>,
    ) -> nix::Result<usize> {
        let memory = |payload| -> [IoSlice<'_>; 1] {
            [match payload {
                &Payload::Zeros(n) => IoSlice::new(&ZEROS[..ZEROS.len().min(n as usize)]),
                Payload::Bytes(bytes) => IoSlice::new(bytes),
            }]
        };
        let messages: Vec<_> = queue.iter().take(BATCH).map(memory).collect();
        let no_address = vec![None; messages.len()];
        let no_control: [ControlMessage<'_>; 0] = [];
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        let headers = &mut self.headers;
        let fd = socket.as_raw_fd();
        sendmmsg(fd, headers, &messages, no_address, no_control, flags).map(Iterator::count)
    }

    /// Receives messages from the kernel and calls `each` with the length and the first bytes of
    /// each. Returns how many there were.
    pub(super) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        mut each: impl FnMut(usize, &[u8]),
    ) -> nix::Result<usize> {
        let mut lengths = [0; BATCH];
        let mut count = 0;
        {
            let mut memory: Vec<[IoSliceMut<'_>; 1]> =
                self.heads.iter_mut().map(|head| [IoSliceMut::new(head)]).collect();
            // With this flag, the kernel reports the full length of a truncated message.
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
            let found =
                recvmmsg(socket.as_raw_fd(), &mut self.headers, memory.iter_mut(), flags, None)?;
            for message in found {
                lengths[count] = message.bytes;
                count += 1;
            }
        }
        for (&length, head) in lengths[..count].iter().zip(&self.heads) {
            each(length, &head[..length.min(MARK)]);
        }
        Ok(count)
    }
}

impl std::fmt::Debug for MultiMessageBuffers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MultiMessageBuffers").finish_non_exhaustive()
    }
}
