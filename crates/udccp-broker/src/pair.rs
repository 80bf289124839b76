//! The broker's end of a program's socket.
//!
//! The kernel queues the program's packets until the broker reads them, and charges them to the
//! program's send buffer. Every frame is charged the same amount, and a socket is writable while at
//! most a quarter of its buffer is in use. So a buffer size corresponds to a number of frames. The
//! broker reads a frame only when the connection can take it.

use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{
    AddressFamily, MMsgHdr, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    SocketFlags, SocketType, recv, send, sendmmsg, sendmsg, socketpair,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use udccp_preload::protocol::{FRAME_BELL, FRAME_BYTES, MAX_PAIR_FRAMES, frame_header};
use udccp_preload::sys;

/// Buffer for one packet: more than the largest message of any connection.
pub(crate) const PACKET_BYTES: usize = 4096;

/// What arrives from the program's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    /// A packet of this length.
    Bytes(usize),
    /// The program sends no more, or has closed.
    End,
    /// The program has closed and left messages unread.
    Reset,
}

/// The broker's end.
#[derive(Debug)]
pub(crate) struct Pair {
    // Not watched for writability: each packet that the program reads would wake the broker.
    fd: AsyncFd<OwnedFd>,
    /// Whether packets may have arrived since the queue was last found empty.
    has_come: AtomicBool,
}

fn open_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

#[expect(deprecated, reason = "without unsafe; an owned descriptor never changes")]
fn watched(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, interest)
}

impl Pair {
    /// Opens a pair whose program's end is writable while fewer than `frames` are queued.
    pub(crate) fn open(frames: usize) -> io::Result<(Self, OwnedFd)> {
        let (ours, programs) = open_pair()?;
        set_socket_send_buffer_size(&programs, buffer_for(frames)?)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let has_come = AtomicBool::new(true);
        let fd = watched(ours, Interest::READABLE)?;
        Ok((Self { fd, has_come }, programs))
    }

    /// Waits until no program has the other end open, or it was shut down both ways.
    pub(crate) async fn wait_hang_up(&self) {
        // Errors only occur when the runtime shuts down.
        while let Ok(mut guard) = self.fd.ready(Interest::WRITABLE).await {
            if guard.ready().is_write_closed() {
                return;
            }
            guard.clear_ready();
        }
    }

    fn try_recv(&self, into: &mut [u8]) -> Result<Packet, Errno> {
        match recv(&self.fd, into, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => Ok(Packet::End),
            Ok((_, len)) => Ok(Packet::Bytes(len)),
            Err(Errno::CONNRESET) => Ok(Packet::Reset),
            Err(e) => Err(e),
        }
    }

    /// Returns the next packet, if one has arrived. Another task must wait for [`Self::news`].
    pub(crate) fn recv_now(&self, into: &mut [u8]) -> Option<Packet> {
        if !self.may_have_packets() {
            return None;
        }
        let packet = self.try_recv(into).ok();
        self.has_come.store(packet.is_some(), Ordering::Relaxed);
        packet
    }

    /// Whether there may be a packet to read, or the end of the stream.
    pub(crate) fn may_have_packets(&self) -> bool {
        self.has_come.load(Ordering::Relaxed)
    }

    /// Waits for the next arrival of a packet, even if it has been read since. At the end of the
    /// stream it returns once, with `has_ended` set, and never again.
    pub(crate) async fn news(&self, has_ended: &mut bool) {
        // Errors only occur when the runtime shuts down.
        match self.fd.ready(Interest::READABLE).await {
            Ok(mut guard) if !*has_ended => {
                *has_ended = guard.ready().is_read_closed();
                guard.clear_ready();
                self.has_come.store(true, Ordering::Relaxed);
            }
            _ => std::future::pending().await,
        }
    }

    /// Whether the program has left sent packets unread.
    pub(crate) fn has_unread(&self) -> bool {
        sys::unread_bytes(self.fd.as_raw_fd()) > 0
    }

    /// Sends the program a bell.
    ///
    /// # Errors
    /// As [`Self::send_all`].
    pub(crate) async fn ring(&self, key: u64, number: u32) -> io::Result<()> {
        let bell = Bytes::copy_from_slice(&frame_header(key, FRAME_BELL, number, 0));
        self.send_all(&[bell]).await
    }

    /// Reads and discards all queued packets.
    pub(crate) fn drain(&self) {
        let mut nothing = [0; PACKET_BYTES];
        while let Ok(Packet::Bytes(_)) = self.try_recv(&mut nothing) {}
    }

    /// Sends the program messages in order, one packet each, and waits while its queue is full.
    ///
    /// # Errors
    /// The program has closed or reads no more.
    pub(crate) async fn send_all(&self, messages: &[Bytes]) -> io::Result<()> {
        let mut sent = 0;
        while sent < messages.len() {
            sent += self.send_with(|to| put(to, &messages[sent..])).await?;
        }
        Ok(())
    }

    /// Sends the program one packet with a descriptor.
    ///
    /// # Errors
    /// As [`Self::send_all`].
    pub(crate) async fn send_descriptor(&self, bytes: &[u8], fd: &OwnedFd) -> io::Result<()> {
        self.send_with(|to| send_with_descriptor(to, bytes, fd.as_fd(), SendFlags::DONTWAIT))
            .await
            .map(|_| ())
    }

    async fn send_with(
        &self,
        send: impl Fn(&OwnedFd) -> Result<usize, Errno>,
    ) -> io::Result<usize> {
        let to = self.fd.get_ref();
        match send(to) {
            Err(Errno::AGAIN) => {}
            other => return Ok(other?),
        }
        let room = watched(to.try_clone()?, Interest::WRITABLE)?;
        room.async_io(Interest::WRITABLE, |to| Ok(send(to)?)).await
    }

    /// Limits the bytes that are queued for the program.
    pub(crate) fn set_queue_bytes(&self, bytes: usize) {
        let _ = set_socket_send_buffer_size(&self.fd, bytes);
    }
}

/// Writes messages with one system call. Returns how many were written.
fn put(to: impl AsFd, messages: &[Bytes]) -> Result<usize, Errno> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    if let [message] = messages {
        return send(to, message, flags).map(|_| 1);
    }
    let pieces: Vec<[IoSlice<'_>; 1]> = messages.iter().map(|m| [IoSlice::new(m)]).collect();
    let mut controls: Vec<_> = messages.iter().map(|_| SendAncillaryBuffer::default()).collect();
    let mut headers: Vec<MMsgHdr<'_>> =
        pieces.iter().zip(&mut controls).map(|(p, control)| MMsgHdr::new(p, control)).collect();
    sendmmsg(to, &mut headers, flags)
}

/// Sends bytes with a descriptor.
pub(crate) fn send_with_descriptor(
    to: impl AsFd,
    bytes: &[u8],
    fd: BorrowedFd<'_>,
    flags: SendFlags,
) -> Result<usize, Errno> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut room);
    let fds = [fd];
    control.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(to, &[IoSlice::new(bytes)], &mut control, flags | SendFlags::NOSIGNAL)
}

fn is_ready(fd: BorrowedFd<'_>, events: PollFlags) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(fd, events)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&at_once)).is_ok() && polled[0].revents().intersects(events)
}

/// The send buffer with which a socket holds `frames` and is then no longer writable. Kernels
/// charge different amounts for a frame, so it is measured once for each number.
pub(crate) fn buffer_for(frames: usize) -> io::Result<usize> {
    static FOUND: OnceLock<Mutex<HashMap<usize, usize>>> = OnceLock::new();
    let found = FOUND.get_or_init(Mutex::default);
    let frames = frames.clamp(1, MAX_PAIR_FRAMES);
    if let Some(bytes) = found.lock().expect("never poisoned").get(&frames) {
        return Ok(*bytes);
    }
    let bytes = find_buffer(frames)?;
    found.lock().expect("never poisoned").insert(frames, bytes);
    Ok(bytes)
}

/// What the kernel charges for a frame, in bytes of send buffer.
pub(crate) fn frame_charge() -> io::Result<usize> {
    // A socket is writable while a quarter of its buffer is in use, and the kernel doubles
    // requested sizes.
    Ok(buffer_for(MAX_PAIR_FRAMES)? / (2 * (MAX_PAIR_FRAMES - 1)))
}

/// The smallest buffer with which the socket is still writable after one frame less.
fn find_buffer(frames: usize) -> io::Result<usize> {
    const MOST: usize = 1 << 18;
    let (from, _to) = open_pair()?;
    set_socket_send_buffer_size(&from, MOST)?;
    for _ in 1..frames {
        send(&from, &[0; FRAME_BYTES], SendFlags::DONTWAIT)?;
    }
    let (mut least, mut most) = (1, MOST);
    while least < most {
        let middle = usize::midpoint(least, most);
        set_socket_send_buffer_size(&from, middle)?;
        if is_ready(from.as_fd(), PollFlags::OUT) { most = middle } else { least = middle + 1 }
    }
    Ok(least)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use udccp_preload::protocol::{FRAME_HEADER, RING_PAIR_FRAMES, RING_PLUG_BYTES};

    use super::*;

    #[test]
    fn a_send_buffer_is_a_number_of_frames() {
        for frames in [1, 2, 3, 17, MAX_PAIR_FRAMES] {
            let (from, to) = open_pair().unwrap();
            set_socket_send_buffer_size(&from, buffer_for(frames).unwrap()).unwrap();
            for sent in 0..frames {
                assert!(is_ready(from.as_fd(), PollFlags::OUT), "{sent} of {frames}");
                send(&from, &[0; FRAME_BYTES], SendFlags::DONTWAIT).unwrap();
            }
            assert!(!is_ready(from.as_fd(), PollFlags::OUT), "{frames} are held");
            recv(&to, &mut [0; FRAME_BYTES], RecvFlags::empty()).unwrap();
            assert!(is_ready(from.as_fd(), PollFlags::OUT), "one of {frames} was read");
        }
    }

    #[test]
    fn ring_plug_fills_the_socket_pair_and_bells_do_not() {
        let (from, _to) = open_pair().unwrap();
        set_socket_send_buffer_size(&from, buffer_for(RING_PAIR_FRAMES).unwrap()).unwrap();
        for _ in 0..3 {
            assert!(is_ready(from.as_fd(), PollFlags::OUT));
            send(&from, &[0; FRAME_HEADER], SendFlags::DONTWAIT).unwrap();
        }
        let (from, to) = open_pair().unwrap();
        set_socket_send_buffer_size(&from, buffer_for(RING_PAIR_FRAMES).unwrap()).unwrap();
        send(&from, &[0; RING_PLUG_BYTES], SendFlags::DONTWAIT).unwrap();
        assert!(!is_ready(from.as_fd(), PollFlags::OUT));
        recv(&to, &mut [0; PACKET_BYTES], RecvFlags::empty()).unwrap();
        assert!(is_ready(from.as_fd(), PollFlags::OUT));
    }

    #[tokio::test]
    async fn reads_by_the_program_do_not_wake_the_broker() {
        let (pair, programs) = Pair::open(1).unwrap();
        let frame = Bytes::from_static(&[0; FRAME_BYTES]);
        pair.send_all(std::slice::from_ref(&frame)).await.unwrap();
        recv(&programs, &mut [0; FRAME_BYTES], RecvFlags::empty()).unwrap();
        let wake = tokio::time::timeout(Duration::from_millis(50), pair.fd.writable());
        assert!(wake.await.is_err());
    }

    #[tokio::test]
    async fn send_waits_while_the_queue_is_full() {
        let (pair, programs) = Pair::open(1).unwrap();
        let frames = vec![Bytes::from_static(&[0; FRAME_BYTES]); 2000];
        let reader = tokio::task::spawn_blocking(move || {
            for _ in 0..2000 {
                recv(&programs, &mut [0; FRAME_BYTES], RecvFlags::empty()).unwrap();
            }
        });
        // So long that only a deadlock exceeds it.
        let sent = tokio::time::timeout(Duration::from_secs(30), pair.send_all(&frames)).await;
        sent.expect("there is room").unwrap();
        reader.await.unwrap();
    }

    #[test]
    fn charge_equals_what_the_kernel_accounts_for_a_frame() {
        let charge = frame_charge().unwrap();
        for frames in 2..=MAX_PAIR_FRAMES {
            let buffer = 2 * buffer_for(frames).unwrap();
            assert_eq!(buffer / 4 / charge, frames - 1, "{frames} of {charge}");
        }
    }
}
