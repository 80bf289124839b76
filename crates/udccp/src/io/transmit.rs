//! Gathering datagrams into writes: over UDP one that the kernel segments (GSO), over raw IP one
//! that takes many packets.

use std::io;
use std::net::{IpAddr, SocketAddr};

use quinn_udp::{Transmit, UdpSockRef};
use udccp_base::{Datagram, Ecn, Payload};
use udccp_proto::Train;

use super::{Io, ecn_into, raw};

/// One write holds at most this much: the largest UDP payload over IPv4.
const BATCH_BYTES: usize = 65_507;
/// The same over raw IP, where packets of a batch need not be of one size.
const TRAIN_BYTES: usize = 128 << 10;
/// Destinations gathered for at once, so that connections served in turn still leave in batches.
const MAX_BATCHES: usize = 8;

/// Enough of a datagram to find its connection by.
const QUOTE_BYTES: usize = 32;

/// What became of a flush.
#[derive(Debug)]
pub(crate) enum Flushed {
    /// Everything gathered is out (or was given up with an error that retrying cannot mend).
    Done,
    /// The socket takes no more now; what is left stays gathered.
    Blocked,
    /// The system refused a destination. Over UDP its batch is gone, over raw IP the packet; the
    /// rest is still gathered.
    Failed(Failure),
}

/// A write that retrying cannot mend.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Where the datagram was going, and from where.
    pub(crate) dst: SocketAddr,
    pub(crate) src: IpAddr,
    /// Its first bytes.
    pub(crate) quoted: Vec<u8>,
    /// What the system said.
    pub(crate) error: io::Error,
}

/// Copies header and payload of each datagram once, into a batch for its destination.
#[derive(Debug, Default)]
pub(crate) struct Transmitter {
    batches: Vec<Batch>,
    /// Batches in use: the first `live` of `batches`.
    live: usize,
    /// The batch that took the last datagram; the next one is likely to go there too.
    last: usize,
    /// Which datagrams routers may cut to pieces; none where it is missing.
    fragmentable: Option<fn(&Datagram) -> bool>,
    /// Raw IP: a batch may have packets of many sizes.
    trains: bool,
}

/// Datagrams for one destination: over UDP of one size, but that the last may be shorter.
#[derive(Debug)]
struct Batch {
    dst: SocketAddr,
    src: IpAddr,
    ecn: Ecn,
    /// Routers may cut its datagrams to pieces.
    fragmentable: bool,
    segment: usize,
    /// Where each datagram ends.
    ends: Vec<usize>,
    /// A shorter datagram went in: nothing may follow it.
    sealed: bool,
    bytes: Vec<u8>,
    /// How much was written already, where segments had to go one by one.
    sent: usize,
    /// How many packets were written already over raw IP.
    sent_packets: usize,
}

impl Transmitter {
    /// Nothing gathered; routers may cut the datagrams to pieces that `fragmentable` says.
    pub(crate) fn new(fragmentable: fn(&Datagram) -> bool, is_raw: bool) -> Self {
        Self { fragmentable: Some(fragmentable), trains: is_raw, ..Self::default() }
    }

    /// Whether nothing is gathered.
    pub(crate) fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Bytes that are gathered and not written yet.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.batches[..self.live].iter().map(Batch::waiting_bytes).sum()
    }

    /// Copies a datagram; false where there is no room for it: then [`Self::flush`] comes first.
    pub(crate) fn push(&mut self, datagram: &Datagram, max_segments: usize) -> bool {
        let fragmentable = self.fragmentable.is_some_and(|is| is(datagram));
        let same_path = |batch: &Batch| batch.same_path(datagram, fragmentable);
        let fits_last = self.last < self.live && same_path(&self.batches[self.last]);
        let found = if fits_last { Some(self.last) } else { self.newest_to(datagram) };
        let found = found.filter(|&i| same_path(&self.batches[i]));
        match found {
            Some(i) => {
                self.last = i;
                self.batches[i].append(datagram, max_segments, self.trains)
            }
            None if self.live < MAX_BATCHES => {
                if self.batches.len() == self.live {
                    self.batches.push(Batch::with_capacity());
                }
                self.batches[self.live].start(datagram, fragmentable);
                self.last = self.live;
                self.live += 1;
                true
            }
            None => false,
        }
    }

    /// The newest batch between the addresses of a datagram. Nothing is added to an older one: it
    /// would overtake, as a Close its data.
    fn newest_to(&self, datagram: &Datagram) -> Option<usize> {
        self.batches[..self.live].iter().rposition(|batch| batch.same_ends(datagram))
    }

    /// Takes more packets for where the last one went, which routers may not cut to pieces.
    pub(crate) fn following(&mut self, max_segments: usize) -> Following<'_> {
        let batch = self.batches[..self.live].get_mut(self.last);
        let batch = batch.filter(|batch| !batch.fragmentable && !self.trains);
        Following { batch, max_segments }
    }

    /// Writes everything gathered.
    pub(crate) fn flush(&mut self, io: &Io) -> Flushed {
        for i in 0..self.live {
            match self.batches[i].write(io) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.forget(i);
                    return Flushed::Blocked;
                }
                Err(error) => {
                    let failure = self.batches[i].failed(error);
                    let more = self.batches[i].skip_packet(self.trains);
                    self.forget(if more { i } else { i + 1 });
                    return Flushed::Failed(failure);
                }
            }
        }
        self.forget(self.live);
        Flushed::Done
    }

    /// The first `n` batches are done with.
    fn forget(&mut self, n: usize) {
        self.batches[..self.live].rotate_left(n);
        self.live -= n;
        self.last = self.last.checked_sub(n).unwrap_or(usize::MAX);
    }
}

/// The end of a batch over UDP, where packets are written in place.
#[derive(Debug)]
pub(crate) struct Following<'a> {
    batch: Option<&'a mut Batch>,
    max_segments: usize,
}

impl Train for Following<'_> {
    #[inline]
    fn takes(&self, len: usize) -> bool {
        self.batch.as_ref().is_some_and(|batch| batch.takes(len, self.max_segments, false))
    }

    #[inline]
    fn put(&mut self, header: &[u8], payload: &Payload) {
        if let Some(batch) = &mut self.batch {
            batch.sealed = header.len() + payload.len() < batch.segment;
            batch.put(header, payload);
        }
    }
}

impl Batch {
    fn with_capacity() -> Self {
        Self {
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

    fn same_ends(&self, d: &Datagram) -> bool {
        self.dst == d.dst && self.src == d.src.ip()
    }

    fn same_path(&self, d: &Datagram, fragmentable: bool) -> bool {
        self.same_ends(d) && self.ecn == d.ecn && self.fragmentable == fragmentable
    }

    fn start(&mut self, d: &Datagram, fragmentable: bool) {
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

    /// Whether a packet of this many bytes may follow: of the right size, or of any in a train.
    #[inline]
    fn takes(&self, len: usize, max_segments: usize, is_train: bool) -> bool {
        let max_bytes = if is_train { TRAIN_BYTES } else { BATCH_BYTES };
        let has_room = self.ends.len() < max_segments && self.bytes.len() + len <= max_bytes;
        !self.sealed && has_room && (len <= self.segment || is_train)
    }

    /// Adds a datagram; false where it does not fit.
    fn append(&mut self, d: &Datagram, max_segments: usize, is_train: bool) -> bool {
        let len = d.transport_len();
        if !self.takes(len, max_segments, is_train) {
            return false;
        }
        self.sealed = len < self.segment && !is_train;
        self.put(&d.header, &d.payload);
        true
    }

    #[inline]
    fn put(&mut self, header: &[u8], payload: &Payload) {
        self.bytes.extend_from_slice(header);
        match payload {
            Payload::Bytes(bytes) => self.bytes.extend_from_slice(bytes),
            Payload::Zeros(n) => self.bytes.resize(self.bytes.len() + *n as usize, 0),
        }
        self.ends.push(self.bytes.len());
    }

    fn waiting_bytes(&self) -> usize {
        let packets = self.sent_packets.checked_sub(1).map_or(0, |n| self.ends[n]);
        self.bytes.len() - self.sent.max(packets)
    }

    /// Leaves out the packet that was refused; whether more of a train is left.
    fn skip_packet(&mut self, is_train: bool) -> bool {
        self.sent_packets += 1;
        is_train && self.sent_packets < self.ends.len()
    }

    /// What the system refused.
    fn failed(&self, error: io::Error) -> Failure {
        let first = self.sent_packets.checked_sub(1).map_or(self.sent, |n| self.ends[n]);
        let from = first.min(self.bytes.len());
        let to = (from + QUOTE_BYTES).min(self.bytes.len());
        Failure { dst: self.dst, src: self.src, quoted: self.bytes[from..to].to_vec(), error }
    }

    /// One write, or, where the system refuses to segment, one for each datagram.
    fn write(&mut self, io: &Io) -> io::Result<()> {
        if self.fragmentable {
            return io.while_fragmenting(|| self.write_all(io));
        }
        self.write_all(io)
    }

    fn write_all(&mut self, io: &Io) -> io::Result<()> {
        // quinn-udp writes the ECN bits alone, and the rest of the byte as zero.
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

    /// As many packets a call as the system takes.
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

    /// A report about an earlier packet makes the next write fail once without sending; so a
    /// failure counts only when it stays.
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
        io.state.try_send(UdpSockRef::from(&io.socket), &transmit)
    }
}

/// EIO and EINVAL are how Linux says that a device or path cannot segment.
fn segmentation_refused(e: &io::Error) -> bool {
    const EIO: i32 = 5;
    const EINVAL: i32 = 22;
    cfg!(target_os = "linux") && matches!(e.raw_os_error(), Some(EIO | EINVAL))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::EndpointOptions;
    use crate::io::Receiver;

    fn pair() -> (Io, Io) {
        let bind =
            || Io::bind("127.0.0.1:0".parse().unwrap(), &EndpointOptions::default()).unwrap();
        (bind(), bind())
    }

    fn datagram(from: &Io, to: &Io, fill: u8, len: usize) -> Datagram {
        Datagram {
            src: from.local_addr(),
            dst: to.local_addr(),
            protocol: Datagram::DCCP,
            ecn: Ecn::Ect0,
            header: vec![fill; 4].into(),
            payload: Payload::Bytes(Bytes::from(vec![fill; len - 4])),
        }
    }

    fn receive_all(io: &Io) -> Vec<(Vec<u8>, Ecn)> {
        let mut rx = Receiver::new(io);
        let mut got = Vec::new();
        while let Ok(count) = rx.read(io) {
            rx.deliver(io, count, |mut d| {
                got.push((d.header.to_vec(), d.ecn));
                while d.header.move_on(1) {
                    got.push((d.header.to_vec(), d.ecn));
                }
            });
        }
        got
    }

    #[test]
    fn a_batch_arrives_as_the_datagrams_that_went_in() {
        let (a, b) = pair();
        let mut tx = Transmitter::default();
        for fill in 0..40 {
            assert!(tx.push(&datagram(&a, &b, fill, 1400), 64));
        }
        assert!(tx.push(&datagram(&a, &b, 40, 100), 64), "a shorter one may end it");
        let is_taken = tx.push(&datagram(&a, &b, 41, 1400), 64);
        assert!(!is_taken, "nothing may follow a shorter one");
        assert!(matches!(tx.flush(&a), Flushed::Done));
        assert!(tx.is_empty());
        let got = receive_all(&b);
        assert_eq!(got.len(), 41);
        for (i, (bytes, ecn)) in got.iter().enumerate() {
            let len = if i == 40 { 100 } else { 1400 };
            assert_eq!(bytes, &vec![i as u8; len]);
            assert_eq!(*ecn, Ecn::Ect0);
        }
    }

    #[test]
    fn what_goes_to_one_place_leaves_in_order_whatever_its_marks() {
        let (a, b) = pair();
        let (c, _) = pair();
        let mut tx = Transmitter::default();
        let marks = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect0, Ecn::NotEct, Ecn::Ect0, Ecn::Ce];
        for (fill, ecn) in (0..).zip(marks) {
            assert!(tx.push(&Datagram { ecn, ..datagram(&a, &b, fill, 100) }, 64));
            assert!(tx.push(&datagram(&a, &c, fill, 100), 64), "others are in between");
        }
        assert!(matches!(tx.flush(&a), Flushed::Done));
        let got: Vec<_> = receive_all(&b).into_iter().map(|(bytes, ecn)| (bytes[0], ecn)).collect();
        assert_eq!(got, (0..).zip(marks).collect::<Vec<_>>());
        assert_eq!(receive_all(&c).len(), marks.len());
    }

    #[test]
    fn packets_written_in_place_leave_behind_the_last_datagram() {
        let (a, b) = pair();
        let (c, _) = pair();
        let mut tx = Transmitter::default();
        assert!(!tx.following(64).takes(8), "there is no batch");
        assert!(tx.push(&datagram(&a, &b, 1, 60), 64) && tx.push(&datagram(&a, &c, 9, 600), 64));
        assert!(tx.push(&datagram(&a, &b, 2, 60), 64));
        let data = Payload::Bytes(Bytes::from(vec![3; 50]));
        let mut following = tx.following(4);
        assert!(following.takes(60) && !following.takes(61));
        following.put(&[3; 10], &data);
        assert!(following.takes(20));
        following.put(&[4; 10], &Payload::Zeros(10));
        assert!(!following.takes(20) && !tx.following(64).takes(20), "full, and shorter");
        assert!(matches!(tx.flush(&a), Flushed::Done));
        let got: Vec<_> = receive_all(&b).into_iter().map(|(bytes, _)| bytes).collect();
        assert_eq!(got, [vec![1; 60], vec![2; 60], vec![3; 60], [[4; 10], [0; 10]].concat()]);
        assert_eq!(receive_all(&c).len(), 1);
        let mut cut = Transmitter::new(|_| true, false);
        assert!(cut.push(&datagram(&a, &b, 1, 60), 64));
        assert!(!cut.following(64).takes(60), "routers may cut what is in the batch");
    }

    #[test]
    fn destinations_served_in_turn_still_leave_in_batches() {
        let (a, b) = pair();
        let (c, _) = pair();
        let mut tx = Transmitter::default();
        for fill in 0..10 {
            assert!(tx.push(&datagram(&a, &b, fill, 200), 64));
            assert!(tx.push(&datagram(&a, &c, fill, 300), 64));
        }
        assert_eq!(tx.live, 2);
        assert!(matches!(tx.flush(&a), Flushed::Done));
        assert_eq!(receive_all(&b).len(), 10);
        assert_eq!(receive_all(&c).len(), 10);
    }

    #[test]
    fn without_segmentation_each_datagram_is_written_alone() {
        let (a, b) = pair();
        let mut tx = Transmitter::default();
        for fill in 0..3 {
            assert!(tx.push(&datagram(&a, &b, fill, 50), 64));
        }
        // As after a refusal in the middle: the first datagram is out already.
        tx.batches[0].sent = 50;
        assert!(matches!(tx.flush(&a), Flushed::Done));
        assert_eq!(receive_all(&b).len(), 2);
        assert!(tx.push(&datagram(&a, &b, 0, 50), 1));
        assert!(!tx.push(&datagram(&a, &b, 0, 50), 1), "one at a time");
    }
}
