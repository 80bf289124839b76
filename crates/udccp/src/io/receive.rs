//! Reads many datagrams with one call, into buffers that are reused after they are read.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};

use bytes::{Bytes, BytesMut};
use quinn_udp::{BATCH_SIZE, RecvMeta, UdpSockRef};
use udccp_base::{Datagram, HeaderBytes, Instant, Payload};

use super::gathering::Gathering;
use super::{Io, canonical, ecn_from, raw};

/// The largest run of datagrams that the kernel merges into one buffer (GRO).
const GRO_BYTES: usize = 65_536;
/// A buffer with less data than this is copied, so that one small message waiting for a slow reader
/// does not keep 64 KiB alive.
const HAND_OVER_BYTES: usize = 8_192;
/// Small datagrams are copied into pieces of a chunk of this size.
const CHUNK_BYTES: usize = 65_536;
/// The least that the kernel accounts for a received buffer besides its data.
pub(crate) const KERNEL_OVERHEAD_BYTES: usize = 768;
/// Buffers offered by a read while little arrives; each one costs time, filled or not. Windows and
/// macOS fill one per call, however many are offered.
const FEW_BUFFERS: usize = if BATCH_SIZE < 4 { BATCH_SIZE } else { 4 };
/// Consecutive reads for which few buffers would have sufficed, after which few are offered.
const READS_OF_FEW: u32 = 8;
/// Among consecutive reads that return one datagram, one in this many offers few buffers.
const READS_BEFORE_FEW: u32 = 16;
/// Consecutive reads for which few buffers would have sufficed, after which the others are freed.
const READS_OF_QUIET: u32 = 1024;
/// Buffers remembered while slices of them are in use elsewhere.
const LENT_MAX: usize = 64;

/// The reading half of a driver.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// Empty where the buffer was handed over.
    slots: Vec<BytesMut>,
    metas: [RecvMeta; BATCH_SIZE],
    slot_bytes: usize,
    /// Consecutive reads so far for which few buffers would have sufficed.
    reads_of_few: u32,
    /// Consecutive reads so far that returned one datagram, not several merged ones.
    reads_of_one: u32,
    /// Whether the reader checks again for data before it sleeps, as `poll` does.
    looks_again: bool,
    /// Buffers that the last read offered.
    offered: usize,
    gathering: Gathering,
    /// Buffers in use elsewhere, oldest first. They are reused once nobody reads them.
    lent: VecDeque<Bytes>,
    chunk: BytesMut,
}

impl Receiver {
    /// Buffers for one call: up to 32 of 64 KiB if the kernel merges datagrams. Each is allocated
    /// when it is first offered, because most sockets are quiet.
    pub(crate) fn new(io: &Io) -> Self {
        // Over raw IP, packets are as large as merged ones if the interface allows it (loopback).
        let slot_bytes = if io.gro_segments() > 1 || io.is_raw() { GRO_BYTES } else { 16_384 };
        Self {
            slots: Vec::new(),
            metas: [RecvMeta::default(); BATCH_SIZE],
            slot_bytes,
            reads_of_few: READS_OF_FEW,
            reads_of_one: 0,
            looks_again: false,
            offered: 0,
            gathering: Gathering::default(),
            lent: VecDeque::new(),
            chunk: BytesMut::new(),
        }
    }

    /// For a reader that checks again for data before it sleeps, as `poll` does, and so may read
    /// less. While messages come one by one, a read offers a single buffer, so that the kernel does
    /// not look for a second datagram.
    pub(crate) fn looking_again(self) -> Self {
        Self { looks_again: true, ..self }
    }

    /// Whether the last read filled all buffers that it offered, so that there may be more. A
    /// single buffer is no evidence if several could have been offered.
    pub(crate) fn was_full(&self, count: usize) -> bool {
        count == self.offered && (self.offered > 1 || BATCH_SIZE == 1)
    }

    /// Before the first read of a turn: if the last read brought much, lets other threads run
    /// first, because they may deliver more.
    pub(crate) fn let_gather(&mut self, now: impl Fn() -> Instant) {
        if self.gathering.is_due() {
            let before = now();
            std::thread::yield_now();
            self.gathering.waited(now().saturating_since(before));
        }
    }

    /// Reads with one system call. Returns the number of buffers filled. Few are offered while
    /// little arrives.
    ///
    /// # Errors
    /// `WouldBlock` if there is nothing; otherwise the system's error.
    pub(crate) fn read(&mut self, io: &Io) -> io::Result<usize> {
        let read = if self.reads_of_few < READS_OF_FEW {
            self.read_up_to::<BATCH_SIZE>(io)
        } else if self.offers_one() {
            self.read_up_to::<1>(io)
        } else {
            self.read_up_to::<FEW_BUFFERS>(io)
        };
        if let Ok(count) = read {
            let is_much = self.metas[0].len >= HAND_OVER_BYTES;
            self.gathering.note(count, is_much && !self.was_full(count));
            let is_few = count < FEW_BUFFERS;
            self.reads_of_few = if is_few { self.reads_of_few.saturating_add(1) } else { 0 };
            let is_one = count == 1 && self.metas[0].len <= self.metas[0].stride;
            self.reads_of_one = if is_one { self.reads_of_one.wrapping_add(1) } else { 0 };
            if self.reads_of_few == READS_OF_QUIET {
                self.slots.truncate(FEW_BUFFERS);
                self.lent.clear();
            }
        }
        read
    }

    /// Whether the next read should offer a single buffer. Now and then it offers few, to find out
    /// whether datagrams come together again.
    fn offers_one(&self) -> bool {
        let is_quiet = self.looks_again && self.reads_of_one >= READS_OF_FEW;
        is_quiet && !self.reads_of_one.is_multiple_of(READS_BEFORE_FEW)
    }

    fn read_up_to<const N: usize>(&mut self, io: &Io) -> io::Result<usize> {
        self.offered = N;
        self.fill_slots(N);
        let mut next = self.slots.iter_mut();
        let mut slices: [IoSliceMut<'_>; N] = std::array::from_fn(|_| {
            IoSliceMut::new(next.next().map_or(&mut [], |slot| &mut slot[..]))
        });
        io.state.recv(UdpSockRef::from(&io.socket), &mut slices, &mut self.metas[..N])
    }

    /// Approximately the bytes that the kernel accounted for the buffers of the last read.
    pub(crate) fn kernel_bytes(&self, count: usize) -> usize {
        self.metas[..count].iter().map(|m| m.len + KERNEL_OVERHEAD_BYTES).sum()
    }

    /// Passes the datagrams of the last read to `deliver`, in order of arrival. Those of one buffer
    /// come as one; [`HeaderBytes::advance`] moves to the next.
    pub(crate) fn deliver(&mut self, io: &Io, count: usize, mut deliver: impl FnMut(Datagram)) {
        for i in 0..count {
            let meta = self.metas[i];
            if meta.len > 0 {
                let bytes = self.take(i, meta.len);
                deliver_all(io, &meta, bytes, &mut deliver);
            }
        }
    }

    /// Gives buffers to the first `count` slots. This happens just before a read: by then most
    /// buffers that were handed over have been read, and are still in the processor's cache.
    fn fill_slots(&mut self, count: usize) {
        self.slots.resize_with(count.max(self.slots.len()), BytesMut::new);
        for i in 0..count {
            if self.slots[i].is_empty() {
                let reclaimed = self.reclaim();
                self.slots[i] = reclaimed.unwrap_or_else(|| BytesMut::zeroed(self.slot_bytes));
            }
        }
    }

    /// The `len` bytes that arrived in slot `i`, which is left empty if they are many.
    fn take(&mut self, i: usize, len: usize) -> Bytes {
        if len < HAND_OVER_BYTES {
            return self.copy(i, len);
        }
        let whole = std::mem::take(&mut self.slots[i]).freeze();
        let bytes = whole.slice(..len);
        if self.lent.len() == LENT_MAX {
            self.lent.pop_front();
        }
        self.lent.push_back(whole);
        bytes
    }

    fn copy(&mut self, i: usize, len: usize) -> Bytes {
        if self.chunk.capacity() < len && !self.chunk.try_reclaim(CHUNK_BYTES) {
            self.chunk = BytesMut::with_capacity(CHUNK_BYTES);
        }
        self.chunk.extend_from_slice(&self.slots[i][..len]);
        self.chunk.split().freeze()
    }

    /// A lent buffer that nobody reads any more. Messages are usually read in order, so only the
    /// oldest few are checked.
    fn reclaim(&mut self) -> Option<BytesMut> {
        for _ in 0..self.lent.len().min(2) {
            match self.lent.pop_front()?.try_into_mut() {
                Ok(buffer) => return Some(buffer),
                Err(in_use) => self.lent.push_back(in_use),
            }
        }
        None
    }
}

/// Delivers the datagrams of one buffer.
fn deliver_all(io: &Io, meta: &RecvMeta, bytes: Bytes, deliver: &mut impl FnMut(Datagram)) {
    if io.is_raw() {
        return raw::unwrap(meta, &bytes).into_iter().for_each(deliver);
    }
    let (src, dst) = (canonical(meta.addr), io.arrived_at(meta.dst_ip));
    //= 6773-3.5-1
    let ecn = ecn_from(meta.ecn);
    // UDP datagrams are shorter than 64 KiB.
    let stride = u16::try_from(meta.stride.clamp(1, bytes.len())).unwrap_or(u16::MAX);
    let (header, payload) = (HeaderBytes::first_in_buffer(bytes, stride), Payload::EMPTY);
    deliver(Datagram { src, dst, protocol: Datagram::DCCP, ecn, header, payload });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EndpointOptions;

    fn bound() -> Io {
        Io::bind("127.0.0.1:0".parse().unwrap(), &EndpointOptions::default()).unwrap()
    }

    fn receive_one(rx: &mut Receiver, io: &Io) -> Datagram {
        let mut got = None;
        let count = rx.read(io).unwrap();
        rx.deliver(io, count, |d| got = Some(d));
        got.unwrap()
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_socket_of_one_address_knows_it_and_need_not_be_told() {
        use nix::sys::socket::{getsockopt, sockopt};
        let bind = |at: &str| Io::bind(at.parse().unwrap(), &EndpointOptions::default()).unwrap();
        for (at, is_told) in [("127.0.0.1:0", false), ("[::1]:0", false), ("0.0.0.0:0", true)] {
            let (io, from) = (bind(at), bind(at));
            let ip = if is_told { [127, 0, 0, 1].into() } else { io.local_addr().ip() };
            let to = std::net::SocketAddr::new(ip, io.local_addr().port());
            from.socket.send_to(&[7; 100], &to.into()).unwrap();
            assert_eq!(receive_one(&mut Receiver::new(&io), &io).dst, to);
            let told = match ip.is_ipv4() {
                true => getsockopt(&io.socket, sockopt::Ipv4PacketInfo),
                false => getsockopt(&io.socket, sockopt::Ipv6RecvPacketInfo),
            };
            assert_eq!(told, Ok(is_told), "{at}");
        }
    }

    #[test]
    fn an_empty_socket_returns_would_block() {
        let io = bound();
        let mut rx = Receiver::new(&io);
        let e = rx.read(&io).unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn few_buffers_are_offered_while_little_arrives() {
        let (a, b) = (bound(), bound());
        let mut rx = Receiver::new(&b);
        let send = |count| {
            for _ in 0..count {
                a.socket.send_to(&[7; 100], &b.local.into()).unwrap();
            }
        };
        let mut read = || rx.read(&b).map(|count| (count, rx.was_full(count)));
        send(FEW_BUFFERS);
        assert_eq!(read().unwrap(), (FEW_BUFFERS, true), "few at first");
        for _ in 0..READS_OF_FEW {
            send(FEW_BUFFERS);
            // More than few would have been used, so many are offered again.
            assert_eq!(read().unwrap(), (FEW_BUFFERS, false));
            send(1);
            assert_eq!(read().unwrap(), (1, false));
        }
        for _ in 0..READS_OF_FEW {
            send(1);
            assert_eq!(read().unwrap(), (1, false));
        }
        send(FEW_BUFFERS + BATCH_SIZE);
        assert_eq!(read().unwrap(), (FEW_BUFFERS, true), "there may be more");
        assert_eq!(read().unwrap(), (BATCH_SIZE, true), "many are offered again");
        assert_eq!(read().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        for _ in 0..READS_OF_QUIET {
            assert_eq!(rx.slots.len(), BATCH_SIZE);
            send(1);
            assert_eq!(rx.read(&b).unwrap(), 1);
        }
        assert_eq!(rx.slots.len(), FEW_BUFFERS, "the others are given back");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn one_buffer_is_offered_where_datagrams_come_one_by_one() {
        let (a, b) = (bound(), bound());
        let send = |count| {
            for _ in 0..count {
                a.socket.send_to(&[7; 100], &b.local.into()).unwrap();
            }
        };
        for looks_again in [false, true] {
            let rx = Receiver::new(&b);
            let mut rx = if looks_again { rx.looking_again() } else { rx };
            for _ in 0..READS_OF_FEW {
                send(1);
                assert_eq!(rx.read(&b).unwrap(), 1);
            }
            send(3);
            let counts = [(); 3].map(|()| rx.read(&b).unwrap_or(0));
            assert_eq!(counts, if looks_again { [1, 1, 1] } else { [3, 0, 0] });
            assert!(!rx.was_full(1), "who looks again need not be told");
            let mut reads = 0;
            // Within this many reads, datagrams that come together are read together again.
            send(40);
            while rx.read(&b).is_ok() {
                reads += 1;
            }
            assert!(reads <= READS_BEFORE_FEW + 7, "{reads} reads");
        }
    }

    #[test]
    fn merged_datagrams_are_not_taken_for_one() {
        let (a, b) = (bound(), bound());
        if a.max_gso_segments() < 2 || b.gro_segments() < 2 {
            return;
        }
        let mut rx = Receiver::new(&b).looking_again();
        let run = quinn_udp::Transmit {
            destination: b.local,
            ecn: None,
            contents: &[7; 200],
            segment_size: Some(100),
            src_ip: None,
        };
        let send = || a.sending().try_send(UdpSockRef::from(&a.socket), &run).unwrap();
        for _ in 0..READS_OF_FEW + 3 {
            send();
            assert_eq!(rx.read(&b).unwrap(), 1);
            assert!(rx.metas[0].stride < rx.metas[0].len, "loopback merges");
        }
        (0..3).for_each(|_| send());
        assert_eq!(rx.read(&b).unwrap(), 3);
    }

    #[test]
    fn a_large_buffer_is_handed_over_and_comes_back() {
        let (a, b) = (bound(), bound());
        let mut rx = Receiver::new(&b);
        a.socket.send_to(&[7; 9000], &b.local.into()).unwrap();
        let first = receive_one(&mut rx, &b);
        assert_eq!(first.header, vec![7; 9000]);
        let at = first.header.as_ptr();
        a.socket.send_to(&[8; 9000], &b.local.into()).unwrap();
        let second = receive_one(&mut rx, &b);
        assert_ne!(second.header.as_ptr(), at, "still being read");
        drop(first);
        a.socket.send_to(&[9; 9000], &b.local.into()).unwrap();
        let third = receive_one(&mut rx, &b);
        assert_eq!(third.header.as_ptr(), at, "the first buffer is read into again");
        assert_eq!((second.header, third.header), (vec![8; 9000].into(), vec![9; 9000].into()));
    }

    #[test]
    fn reader_that_keeps_up_uses_one_buffer() {
        let (a, b) = (bound(), bound());
        let mut rx = Receiver::new(&b);
        let mut receive = |fill| {
            a.socket.send_to(&[fill; 9000], &b.local.into()).unwrap();
            let one = receive_one(&mut rx, &b);
            assert_eq!(one.header, vec![fill; 9000]);
            one.header.as_ptr()
        };
        let at = receive(0);
        assert!((1..100).all(|fill| receive(fill) == at));
        assert_eq!(rx.lent.len(), 1);
    }

    #[test]
    fn number_of_retained_large_buffers_is_bounded() {
        let (a, b) = (bound(), bound());
        let mut rx = Receiver::new(&b);
        let receive = |_| {
            a.socket.send_to(&[7; 9000], &b.local.into()).unwrap();
            receive_one(&mut rx, &b)
        };
        let kept: Vec<_> = (0..LENT_MAX + 20).map(receive).collect();
        assert_eq!(rx.lent.len(), LENT_MAX);
        assert!(kept.iter().all(|one| one.header == vec![7; 9000]));
    }

    #[test]
    fn small_datagrams_do_not_hold_large_buffers() {
        let (a, b) = (bound(), bound());
        let mut rx = Receiver::new(&b);
        a.socket.send_to(&[1; 100], &b.local.into()).unwrap();
        let first = receive_one(&mut rx, &b);
        a.socket.send_to(&[2; 100], &b.local.into()).unwrap();
        let second = receive_one(&mut rx, &b);
        assert!(rx.lent.is_empty());
        let distance = second.header.as_ptr() as usize - first.header.as_ptr() as usize;
        assert_eq!(distance, 100, "both lie in one chunk");
    }
}
