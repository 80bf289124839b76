//! Datagrams that are sent in one write.

use std::io;
use std::net::{IpAddr, SocketAddr};

use quinn_udp::{Transmit, UdpSockRef};
use udccp_base::{Datagram, Ecn, Payload};

use super::transmit::Failure;
use super::{Io, ecn_into, raw};

/// Most bytes in one write: the largest UDP payload over IPv4.
pub(super) const BATCH_BYTES: usize = 65_507;
/// The same over raw IP, where packets of a batch may differ in size.
const TRAIN_BYTES: usize = 128 << 10;
/// Bytes quoted of a datagram, enough to find its connection.
const QUOTE_BYTES: usize = 32;

/// Datagrams for one destination. Over UDP they have the same size, but the last may be shorter.
#[derive(Debug)]
pub(super) struct Batch {
    /// Later batches have greater numbers.
    number: u64,
    dst: SocketAddr,
    src: IpAddr,
    ecn: Ecn,
    /// Whether routers may fragment its datagrams.
    fragmentable: bool,
    segment: usize,
    /// The end of each datagram.
    ends: Vec<usize>,
    /// Whether the last datagram is shorter, so that none may follow.
    sealed: bool,
    bytes: Vec<u8>,
    /// Bytes written already, if segments had to be sent one by one.
    sent: usize,
    /// Packets written already over raw IP.
    sent_packets: usize,
}

impl Batch {
    pub(super) fn with_capacity() -> Self {
        Self {
            number: 0,
            dst: SocketAddr::from(([0, 0, 0, 0], 0)),
            src: IpAddr::from([0, 0, 0, 0]),
            ecn: Ecn::NotEct,
            fragmentable: false,
            segment: 0,
            ends: Vec::with_capacity(raw::MAX_MESSAGES),
            sealed: false,
            bytes: Vec::with_capacity(BATCH_BYTES),
            sent: 0,
            sent_packets: 0,
        }
    }

    /// Greater for a batch that was started later.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn is_fragmentable(&self) -> bool {
        self.fragmentable
    }

    pub(super) fn same_path(&self, d: &Datagram, fragmentable: bool) -> bool {
        let same_ends = self.dst == d.dst && self.src == d.src.ip();
        same_ends && self.ecn == d.ecn && self.fragmentable == fragmentable
    }

    pub(super) fn start(&mut self, number: u64, d: &Datagram, fragmentable: bool) {
        self.number = number;
        self.fragmentable = fragmentable;
        self.dst = d.dst;
        self.src = d.src.ip();
        self.ecn = d.ecn;
        self.segment = d.transport_len();
        self.ends.clear();
        self.sealed = false;
        self.bytes.clear();
        (self.sent, self.sent_packets) = (0, 0);
        self.put(&d.header, &d.payload);
    }

    /// Whether a packet of this length may be added: one of the right size, or any in a train.
    #[inline]
    pub(super) fn takes(&self, len: usize, max_segments: usize, is_train: bool) -> bool {
        let max_bytes = if is_train { TRAIN_BYTES } else { BATCH_BYTES };
        self.has_room(len, max_segments, max_bytes) && (len == self.segment || is_train)
    }

    #[inline]
    fn has_room(&self, len: usize, max_segments: usize, max_bytes: usize) -> bool {
        !self.sealed && self.ends.len() < max_segments && self.bytes.len() + len <= max_bytes
    }

    /// Takes over the datagram of the next batch, if that holds only one and it is shorter, as the
    /// last of a batch may be. Returns whether it did.
    pub(super) fn take_tail(&mut self, next: &Self, max_segments: usize) -> bool {
        let path = |batch: &Self| (batch.dst, batch.src, batch.ecn, batch.fragmentable);
        let len = next.bytes.len();
        let is_tail = next.ends.len() == 1 && len < self.segment && path(self) == path(next);
        let takes = is_tail && self.has_room(len, max_segments, BATCH_BYTES);
        if takes {
            self.bytes.extend_from_slice(&next.bytes);
            self.ends.push(self.bytes.len());
            self.sealed = true;
        }
        takes
    }

    /// Adds a datagram for which [`Self::takes`] returned true.
    #[inline]
    pub(super) fn put(&mut self, header: &[u8], payload: &Payload) {
        self.bytes.extend_from_slice(header);
        match payload {
            Payload::Bytes(bytes) => self.bytes.extend_from_slice(bytes),
            Payload::Zeros(n) => self.bytes.resize(self.bytes.len() + *n as usize, 0),
        }
        self.ends.push(self.bytes.len());
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        let packets = self.sent_packets.checked_sub(1).map_or(0, |n| self.ends[n]);
        self.bytes.len() - self.sent.max(packets)
    }

    /// Skips the packet that was refused. Returns whether more of a train is left.
    pub(super) fn skip_packet(&mut self, is_train: bool) -> bool {
        self.sent_packets += 1;
        is_train && self.sent_packets < self.ends.len()
    }

    /// Describes a write that the system refused.
    pub(super) fn failed(&self, error: io::Error) -> Failure {
        let first = self.sent_packets.checked_sub(1).map_or(self.sent, |n| self.ends[n]);
        let from = first.min(self.bytes.len());
        let to = (from + QUOTE_BYTES).min(self.bytes.len());
        Failure { dst: self.dst, src: self.src, quoted: self.bytes[from..to].to_vec(), error }
    }

    /// Writes the batch in one call, or one per datagram if the system refuses to segment.
    pub(super) fn write(&mut self, io: &Io) -> io::Result<()> {
        if self.fragmentable {
            return io.while_fragmenting(|| self.write_all(io));
        }
        self.write_all(io)
    }

    fn write_all(&mut self, io: &Io) -> io::Result<()> {
        // quinn-udp writes only the ECN bits, and the rest of the byte as zero.
        if io.is_raw() || io.dscp != 0 {
            return self.write_train(io);
        }
        if self.sent == 0 && self.ends.len() <= io.max_gso_segments().max(1) {
            match self.write_range(io, 0, self.bytes.len()) {
                Err(e) if self.ends.len() > 1 && segmentation_refused(&e) => {}
                done => return done,
            }
        }
        while self.sent < self.bytes.len() {
            let end = (self.sent + self.segment).min(self.bytes.len());
            self.write_range(io, self.sent, end)?;
            self.sent = end;
        }
        Ok(())
    }

    /// Writes as many packets per call as the system accepts.
    fn write_train(&mut self, io: &Io) -> io::Result<()> {
        let (src, dst, tos) = (self.src, self.dst, io.dscp << 2 | self.ecn as u8);
        let mut failures = 0;
        while self.sent_packets < self.ends.len() {
            let train = raw::Train { src, dst, tos, bytes: &self.bytes, ends: &self.ends };
            match raw::send(&io.socket, train, self.sent_packets) {
                Ok(count) => self.sent_packets += count.max(1),
                // As in `write_range`.
                Err(e) if e.kind() != io::ErrorKind::WouldBlock && failures < 2 => failures += 1,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// A report about an earlier packet makes the next write fail once without sending. So a
    /// failure counts only if it is repeated.
    fn write_range(&self, io: &Io, from: usize, to: usize) -> io::Result<()> {
        for _ in 0..2 {
            match self.write_once(io, from, to) {
                Err(e) if e.kind() != io::ErrorKind::WouldBlock && !segmentation_refused(&e) => {}
                done => return done,
            }
        }
        self.write_once(io, from, to)
    }

    fn write_once(&self, io: &Io, from: usize, to: usize) -> io::Result<()> {
        #[cfg(test)]
        if io.is_stuck.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let bound_to_wildcard = io.local.ip().is_unspecified();
        let transmit = Transmit {
            destination: io.in_family(self.dst),
            ecn: ecn_into(self.ecn),
            contents: &self.bytes[from..to],
            segment_size: (to - from > self.segment).then_some(self.segment),
            src_ip: bound_to_wildcard.then_some(self.src),
        };
        io.sending().try_send(UdpSockRef::from(&io.socket), &transmit)
    }
}

/// Linux returns EIO or EINVAL if a device or path cannot segment.
pub(super) fn segmentation_refused(e: &io::Error) -> bool {
    const EIO: i32 = 5;
    const EINVAL: i32 = 22;
    cfg!(target_os = "linux") && matches!(e.raw_os_error(), Some(EIO | EINVAL))
}

#[cfg(test)]
impl Batch {
    /// Records that this many bytes were written.
    pub(super) fn set_written(&mut self, bytes: usize) {
        self.sent = bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(fill: u8, len: usize) -> Datagram {
        Datagram {
            src: ([10, 0, 0, 1], 0).into(),
            dst: ([10, 0, 0, 2], 0).into(),
            protocol: Datagram::DCCP,
            ecn: Ecn::NotEct,
            header: vec![fill; len].into(),
            payload: Payload::EMPTY,
        }
    }

    #[test]
    fn a_shorter_packet_ends_a_batch_of_its_own_path_with_room_alone() {
        let takes = |next: &Datagram, fragmentable, max_segments| {
            let (mut batch, mut tail) = (Batch::with_capacity(), Batch::with_capacity());
            batch.start(1, &packet(1, 20), false);
            tail.start(2, next, fragmentable);
            batch.take_tail(&tail, max_segments)
        };
        let (shorter, elsewhere) = (packet(2, 10), ([10, 0, 0, 3], 0).into());
        assert!(takes(&shorter, false, 2));
        assert!(!takes(&shorter, false, 1), "no room");
        assert!(!takes(&packet(2, 20), false, 2), "as long");
        assert!(!takes(&shorter, true, 2), "routers may cut it");
        assert!(!takes(&Datagram { ecn: Ecn::Ect0, ..shorter.clone() }, false, 2));
        assert!(!takes(&Datagram { src: elsewhere, ..shorter.clone() }, false, 2));
        assert!(!takes(&Datagram { dst: elsewhere, ..shorter }, false, 2));
    }

    #[test]
    fn one_refused_packet_of_a_train_does_not_stop_the_others() {
        let mut train = Batch::with_capacity();
        train.start(1, &packet(1, 20), false);
        train.put(&[2; 30], &Payload::EMPTY);
        train.put(&[3; 10], &Payload::EMPTY);
        let quoted = |train: &Batch| train.failed(io::ErrorKind::Other.into()).quoted[0];
        // The system accepted the first.
        train.sent_packets = 1;
        assert_eq!((quoted(&train), train.waiting_bytes()), (2, 40));
        assert!(train.skip_packet(true));
        assert_eq!((quoted(&train), train.waiting_bytes()), (3, 10));
        assert!(!train.skip_packet(true), "that was the last");
        train.start(2, &packet(4, 20), false);
        train.put(&[5; 20], &Payload::EMPTY);
        assert!(!train.skip_packet(false), "over UDP the write was one");
    }
}
