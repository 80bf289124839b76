//! Gathers datagrams into writes: over UDP, one datagram that the kernel segments (GSO); over raw
//! IP, one call with many packets.

use std::io;
use std::net::{IpAddr, SocketAddr};

use udccp_base::{Datagram, Payload};
use udccp_proto::Train;

use super::Io;
use super::batch::{BATCH_BYTES, Batch, segmentation_refused};

/// Batches collected at the same time. With several, connections served in turn still send in
/// batches, whatever their destinations and packet sizes.
const MAX_BATCHES: usize = 8;
/// Groups of connections within which packets stay in order: a power of two.
const GROUPS: usize = 512;

/// The result of a flush.
#[derive(Debug)]
pub(crate) enum Flushed {
    /// Everything collected was sent, or dropped because of a permanent error.
    Done,
    /// The socket has no room now; the rest is still collected.
    Blocked,
    /// The system refused a destination. Over UDP its batch is dropped, over raw IP the packet; the
    /// rest is still collected.
    Failed(Failure),
}

/// A write with a permanent error.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The datagram's destination and source.
    pub(crate) dst: SocketAddr,
    pub(crate) src: IpAddr,
    /// Its first bytes.
    pub(crate) quoted: Vec<u8>,
    /// The system's error.
    pub(crate) error: io::Error,
}

/// Copies header and payload of each datagram once, into a batch for its destination.
#[derive(Debug)]
pub(crate) struct Transmitter {
    batches: Vec<Batch>,
    /// Batches in use: the first `live` of `batches`.
    live: usize,
    /// The batch that took the last datagram; the next one is likely to go there too.
    last: usize,
    /// Whether routers may fragment a datagram.
    fragmentable: fn(&Datagram) -> bool,
    /// Raw IP: a batch may have packets of many sizes.
    trains: bool,
    /// Batches begun so far.
    begun: u64,
    /// The number of the newest batch that took a packet of each group of connections.
    newest: Box<[u64; GROUPS]>,
}

impl Transmitter {
    /// Starts empty. Routers may fragment the datagrams for which `fragmentable` returns true.
    pub(crate) fn new(fragmentable: fn(&Datagram) -> bool, is_raw: bool) -> Self {
        Self {
            batches: Vec::new(),
            live: 0,
            last: 0,
            fragmentable,
            trains: is_raw,
            begun: 0,
            newest: Box::new([0; GROUPS]),
        }
    }

    /// Whether nothing is gathered.
    pub(crate) fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Bytes gathered and not written yet.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.batches[..self.live].iter().map(Batch::waiting_bytes).sum()
    }

    /// Copies a datagram. Returns false if there is no room, so that [`Self::flush`] has to be
    /// called first.
    pub(crate) fn push(&mut self, datagram: &Datagram, max_segments: usize) -> bool {
        let fragmentable = (self.fragmentable)(datagram);
        let group = group_of(datagram);
        let Some(i) = self.place_for(datagram, fragmentable, group, max_segments) else {
            return false;
        };
        if i < self.live {
            self.batches[i].put(&datagram.header, &datagram.payload);
        } else {
            self.live += 1;
            self.begun += 1;
            self.batches[i].start(self.begun, datagram, fragmentable);
        }
        self.last = i;
        self.newest[group] = self.batches[i].number();
        true
    }

    /// The index of the batch for a datagram, which may be a new one. Packets of different
    /// connections may be reordered, so that datagrams of the same size are sent together. Packets
    /// of one connection stay in order.
    fn place_for(
        &mut self,
        datagram: &Datagram,
        fragmentable: bool,
        group: usize,
        max_segments: usize,
    ) -> Option<usize> {
        let (len, newest) = (datagram.transport_len(), self.newest[group]);
        let live = &self.batches[..self.live];
        let fits = |batch: &Batch| {
            let in_order = batch.number() >= newest;
            in_order
                && batch.takes(len, max_segments, self.trains)
                && batch.same_path(datagram, fragmentable)
        };
        if live.get(self.last).is_some_and(fits) {
            return Some(self.last);
        }
        let found = live.iter().rposition(fits);
        if found.is_some() || self.live == MAX_BATCHES || self.waiting_bytes() >= BATCH_BYTES {
            return found;
        }
        if self.batches.len() == self.live {
            self.batches.push(Batch::with_capacity());
        }
        Some(self.live)
    }

    /// Accepts further packets in the last batch, which routers must not fragment.
    pub(crate) fn following(&mut self, max_segments: usize) -> Following<'_> {
        let batch = self.batches[..self.live].get_mut(self.last);
        let batch = batch.filter(|batch| !batch.is_fragmentable() && !self.trains);
        Following { batch, max_segments }
    }

    /// Joins batches of one datagram to others: the last message of a burst is usually shorter, and
    /// should not need a write of its own.
    fn join_tails(&mut self, max_segments: usize) {
        let mut i = 0;
        while i + 1 < self.live {
            let (batches, following) = self.batches[..self.live].split_at_mut(i + 1);
            if batches[i].take_tail(&following[0], max_segments) {
                following.rotate_left(1);
                self.live -= 1;
                self.last = usize::MAX;
            }
            i += 1;
        }
    }

    /// Writes everything gathered.
    pub(crate) fn flush(&mut self, io: &Io) -> Flushed {
        if !self.trains {
            self.join_tails(io.max_gso_segments());
        }
        for i in 0..self.live {
            match self.batches[i].write(io) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.forget(i);
                    return Flushed::Blocked;
                }
                Err(error) => {
                    if segmentation_refused(&error) {
                        io.forget_refusals();
                    }
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

    /// Removes the first `n` batches.
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
            batch.put(header, payload);
        }
    }
}

/// The group of a packet's connection, by its ports.
fn group_of(datagram: &Datagram) -> usize {
    let ports = datagram.header.first_chunk::<4>().map_or(0, |ports| u32::from_ne_bytes(*ports));
    // The highest bits of the product depend on all bits of the ports.
    let mixed = u64::from(ports).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - GROUPS.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use udccp_base::Ecn;

    use super::*;
    use crate::EndpointOptions;
    use crate::io::Receiver;

    fn pair() -> (Io, Io) {
        let bind =
            || Io::bind("127.0.0.1:0".parse().unwrap(), &EndpointOptions::default()).unwrap();
        (bind(), bind())
    }

    fn datagram(from: &Io, to: &Io, fill: u8, len: usize) -> Datagram {
        of_connection(0, from, to, fill, len)
    }

    /// A datagram whose bytes are `fill`, except for the ports.
    fn of_connection(ports: u32, from: &Io, to: &Io, fill: u8, len: usize) -> Datagram {
        Datagram {
            src: from.local_addr(),
            dst: to.local_addr(),
            protocol: Datagram::DCCP,
            ecn: Ecn::Ect0,
            header: ports.to_be_bytes().to_vec().into(),
            payload: Payload::Bytes(Bytes::from(vec![fill; len - 4])),
        }
    }

    /// The last byte, length and ECN mark of each datagram.
    fn receive_all(io: &Io) -> Vec<(u8, usize, Ecn)> {
        let mut rx = Receiver::new(io);
        let mut got = Vec::new();
        while let Ok(count) = rx.read(io) {
            rx.deliver(io, count, |mut d| {
                loop {
                    got.push((*d.header.last().unwrap(), d.header.len(), d.ecn));
                    if !d.header.advance(1) {
                        break;
                    }
                }
            });
        }
        got
    }

    #[test]
    fn a_batch_arrives_as_the_datagrams_that_went_in() {
        let (a, b) = pair();
        let mut tx = Transmitter::new(|_| false, false);
        for fill in 0..40 {
            assert!(tx.push(&datagram(&a, &b, fill, 1400), 64));
        }
        assert!(tx.push(&datagram(&a, &b, 40, 100), 64), "a shorter one may end it");
        assert!(tx.push(&datagram(&a, &b, 41, 60_000), 64));
        tx.join_tails(64);
        assert_eq!(tx.live, 2, "a shorter one ends a batch");
        assert!(!tx.batches[0].takes(1400, 64, false), "nothing may follow it");
        assert!(matches!(tx.flush(&a), Flushed::Done));
        assert!(tx.is_empty());
        let got = receive_all(&b);
        let len = |fill| if fill == 40 { 100 } else { 1400 };
        let sent: Vec<_> = (0..41).map(|fill| (fill, len(fill), Ecn::Ect0)).collect();
        assert_eq!(got[..41], sent);
        assert_eq!(got[41..], [(41, 60_000, Ecn::Ect0)]);
    }

    #[test]
    fn the_shorter_end_of_a_burst_needs_no_write_of_its_own() {
        let (a, b) = pair();
        let mut tx = Transmitter::new(|_| false, false);
        let mut rx = Receiver::new(&b);
        if a.max_gso_segments() == 1 {
            // Without segmentation each datagram needs its own write.
            return;
        }
        for (fill, len) in [(0, 1400), (1, 1400), (2, 100)] {
            assert!(tx.push(&datagram(&a, &b, fill, len), 64));
        }
        assert!(matches!(tx.flush(&a), Flushed::Done));
        assert_eq!(rx.read(&b).unwrap(), 1);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_address_that_is_gone_costs_others_neither_marks_nor_batches() {
        let bind = |at: &str| Io::bind(at.parse().unwrap(), &EndpointOptions::default()).unwrap();
        let (any, six, four) = (bind("[::]:0"), bind("[::1]:0"), bind("127.0.0.1:0"));
        let most = any.max_gso_segments();
        let mut tx = Transmitter::new(|_| false, false);
        // Without segmentation, the system also returns an error for each datagram.
        let gone = "[2001:db8::1]:5".parse().unwrap();
        for packets in [1, 3] {
            for fill in 0..packets {
                let lost = Datagram { src: gone, ..datagram(&any, &six, fill, 100) };
                assert!(tx.push(&lost, most));
            }
            let flushed = tx.flush(&any);
            let Flushed::Failed(failure) = flushed else { panic!("{flushed:?}") };
            assert_eq!(failure.src, gone.ip());
            assert!(segmentation_refused(&failure.error), "{}", failure.error);
            assert_eq!(any.max_gso_segments(), most, "after {packets}");
        }
        let here = "127.0.0.1:5".parse().unwrap();
        for fill in 0..3 {
            assert!(tx.push(&Datagram { src: here, ..datagram(&any, &four, fill, 100) }, most));
        }
        assert!(matches!(tx.flush(&any), Flushed::Done));
        assert_eq!(receive_all(&four), [0, 1, 2].map(|fill| (fill, 100, Ecn::Ect0)));
    }

    #[test]
    fn packets_to_one_address_keep_their_order_across_ecn_marks() {
        let (a, b) = pair();
        let (c, _) = pair();
        let mut tx = Transmitter::new(|_| false, false);
        let marks = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect0, Ecn::NotEct, Ecn::Ect0, Ecn::Ce];
        for (fill, ecn) in (0..).zip(marks) {
            assert!(tx.push(&Datagram { ecn, ..datagram(&a, &b, fill, 100) }, 64));
            let other = of_connection(1, &a, &c, fill, 100);
            assert!(tx.push(&other, 64), "others are in between");
        }
        assert!(matches!(tx.flush(&a), Flushed::Done));
        let got: Vec<_> = receive_all(&b).into_iter().map(|(fill, _, ecn)| (fill, ecn)).collect();
        assert_eq!(got, (0..).zip(marks).collect::<Vec<_>>());
        assert_eq!(receive_all(&c).len(), marks.len());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn datagrams_leave_from_their_own_address() {
        let bind = |at: &str| Io::bind(at.parse().unwrap(), &EndpointOptions::default()).unwrap();
        let (any, b) = (bind("0.0.0.0:0"), bind("127.0.0.1:0"));
        let mut tx = Transmitter::new(|_| false, false);
        // The second has the size of the first, and the last could end its batch.
        let packets = [(1, 100), (2, 100), (1, 100), (3, 60)];
        for (host, len) in packets {
            let src = SocketAddr::from(([127, 0, 0, host], any.local_addr().port()));
            let packet = of_connection(u32::from(host), &any, &b, 0, len);
            assert!(tx.push(&Datagram { src, ..packet }, any.max_gso_segments()));
        }
        assert!(matches!(tx.flush(&any), Flushed::Done));
        let (mut rx, mut got) = (Receiver::new(&b), Vec::new());
        while let Ok(count) = rx.read(&b) {
            rx.deliver(&b, count, |mut d| {
                loop {
                    let IpAddr::V4(src) = d.src.ip() else { panic!("{}", d.src) };
                    got.push((src.octets()[3], d.header.len()));
                    if !d.header.advance(1) {
                        break;
                    }
                }
            });
        }
        got.sort_unstable();
        assert_eq!(got, [(1, 100), (1, 100), (2, 100), (3, 60)]);
    }

    #[test]
    fn connections_in_turn_leave_by_size_and_each_in_order() {
        let (a, b) = pair();
        let mut tx = Transmitter::new(|_| false, false);
        let mut writes = 0;
        let flush = |tx: &mut Transmitter| {
            let batches = tx.live;
            assert!(matches!(tx.flush(&a), Flushed::Done));
            batches
        };
        // Every fifth packet of each connection is longer and every seventh shorter, with different
        // offsets.
        let len = |ports: u32, n: u32| match (ports + n) % 35 {
            k if k % 5 == 0 => 232,
            k if k % 7 == 0 => 32,
            _ => 216,
        };
        for n in 0..20 {
            for ports in 0..40 {
                let mut packet = of_connection(ports, &a, &b, n as u8, len(ports, n));
                packet.payload = Payload::Bytes(vec![ports as u8; len(ports, n) - 5].into());
                packet.header = [&ports.to_be_bytes()[..], &[n as u8]].concat().into();
                if !tx.push(&packet, 64) {
                    writes += flush(&mut tx);
                    assert!(tx.push(&packet, 64));
                }
            }
            if n % 3 == 2 {
                writes += flush(&mut tx);
            }
        }
        writes += flush(&mut tx);
        assert!(writes <= 80, "{writes} writes of 800 packets");
        let mut next = [0; 40];
        let mut rx = Receiver::new(&b);
        while let Ok(count) = rx.read(&b) {
            rx.deliver(&b, count, |mut d| {
                loop {
                    let ports = u32::from_be_bytes(*d.header.first_chunk().unwrap());
                    let n = u32::from(d.header[4]);
                    assert_eq!(
                        (n, d.header.len()),
                        (next[ports as usize], len(ports, n)),
                        "{ports}"
                    );
                    next[ports as usize] += 1;
                    if !d.header.advance(1) {
                        break;
                    }
                }
            });
        }
        assert_eq!(next, [20; 40]);
    }

    #[test]
    fn packets_written_in_place_leave_behind_the_last_datagram() {
        let (a, b) = pair();
        let (c, _) = pair();
        let mut tx = Transmitter::new(|_| false, false);
        assert!(!tx.following(64).takes(8), "there is no batch");
        assert!(tx.push(&datagram(&a, &b, 1, 60), 64));
        assert!(tx.push(&of_connection(1, &a, &c, 9, 600), 64));
        assert!(tx.push(&datagram(&a, &b, 2, 60), 64));
        let data = Payload::Bytes(Bytes::from(vec![3; 50]));
        let mut following = tx.following(4);
        assert!(following.takes(60) && !following.takes(61) && !following.takes(59));
        following.put(&[3; 10], &data);
        assert!(following.takes(60));
        following.put(&[4; 10], &Payload::Zeros(50));
        assert!(!following.takes(60) && tx.following(64).takes(60), "as many as may be");
        assert!(matches!(tx.flush(&a), Flushed::Done));
        let got: Vec<_> = receive_all(&b).into_iter().map(|(fill, len, _)| (fill, len)).collect();
        assert_eq!(got, [(1, 60), (2, 60), (3, 60), (0, 60)]);
        assert_eq!(receive_all(&c).len(), 1);
        let mut cut = Transmitter::new(|_| true, false);
        assert!(cut.push(&datagram(&a, &b, 1, 60), 64));
        assert!(!cut.following(64).takes(60), "routers may cut what is in the batch");
    }

    #[test]
    fn destinations_served_in_turn_still_leave_in_batches() {
        let (a, b) = pair();
        let (c, _) = pair();
        let mut tx = Transmitter::new(|_| false, false);
        for fill in 0..10 {
            assert!(tx.push(&datagram(&a, &b, fill, 200), 64));
            assert!(tx.push(&of_connection(1, &a, &c, fill, 300), 64));
        }
        assert_eq!(tx.live, 2);
        assert!(matches!(tx.flush(&a), Flushed::Done));
        assert_eq!(receive_all(&b).len(), 10);
        assert_eq!(receive_all(&c).len(), 10);
    }

    #[test]
    fn without_segmentation_each_datagram_is_written_alone() {
        let (a, b) = pair();
        let mut tx = Transmitter::new(|_| false, false);
        for fill in 0..3 {
            assert!(tx.push(&datagram(&a, &b, fill, 50), 64));
        }
        // As after a refusal in the middle: the first datagram has been sent.
        tx.batches[0].set_written(50);
        assert!(matches!(tx.flush(&a), Flushed::Done));
        assert_eq!(receive_all(&b).len(), 2);
        assert!(tx.push(&datagram(&a, &b, 0, 50), 1));
        assert!(tx.push(&datagram(&a, &b, 0, 50), 1));
        assert_eq!(tx.live, 2, "one at a time");
    }
}
