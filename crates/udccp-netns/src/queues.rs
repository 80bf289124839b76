//! Reads the counters of queueing disciplines by netlink.

use std::io;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkMessage, NlaBuffer, NlasIterator,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcHeader, TcMessage, TcStatsBasic, TcStatsQueue};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use nix::libc;

/// Length of the header of a traffic control message; attributes follow.
const HEADER_LEN: usize = size_of::<netlink_packet_route::tc::TcMessageBuffer>();
/// The attributes to read (linux/rtnetlink.h, linux/gen_stats.h).
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;

/// A queueing discipline of a device, with its counters since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Discipline {
    /// Number of its device in the namespace.
    pub device: u32,
    /// The major number of its handle: `3` of `3:`.
    pub handle: u16,
    /// IP bytes sent.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets in the queue.
    pub waiting: u64,
    /// Bytes in the queue.
    pub waiting_bytes: u64,
    /// Packets dropped.
    pub drops: u64,
}

/// Reads the disciplines of the namespace in which it was opened.
pub struct QueueReader {
    socket: Socket,
    request: Vec<u8>,
}

impl QueueReader {
    /// Opens a reader in this thread's namespace.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        let all = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
        let mut message = NetlinkMessage::from(all);
        message.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        message.finalize();
        let mut request = vec![0; message.buffer_len()];
        message.serialize(&mut request);
        Ok(Self { socket, request })
    }

    /// Calls `take` for each discipline.
    ///
    /// # Errors
    /// The kernel's error, or an invalid answer.
    pub fn read(&mut self, mut take: impl FnMut(Discipline)) -> io::Result<()> {
        self.socket.send(&self.request, 0)?;
        loop {
            let (answer, _) = self.socket.recv_from_full()?;
            let mut rest = &answer[..];
            while !rest.is_empty() {
                let message = NetlinkBuffer::new_checked(rest).map_err(io::Error::other)?;
                match i32::from(message.message_type()) {
                    libc::NLMSG_DONE => return Ok(()),
                    libc::NLMSG_ERROR => return Err(io::Error::other("the kernel has no queues")),
                    kind if kind == i32::from(libc::RTM_NEWQDISC) => {
                        if let Some(found) = discipline(message.payload()) {
                            take(found);
                        }
                    }
                    _ => {}
                }
                let len = (message.length() as usize).next_multiple_of(4);
                rest = rest.get(len..).unwrap_or_default();
            }
        }
    }
}

/// Parses a message; `None` if it has no counters.
fn discipline(message: &[u8]) -> Option<Discipline> {
    let header = TcHeader::parse(message).ok()?;
    let device = u32::try_from(header.index).ok()?;
    let mut found = Discipline { device, handle: header.handle.major, ..Discipline::default() };
    let stats = attribute(message.get(HEADER_LEN..)?, TCA_STATS2)?;
    if let Some(basic) = attribute(stats.value(), TCA_STATS_BASIC) {
        let TcStatsBasic { bytes, packets, .. } = TcStatsBasic::parse(basic.value()).ok()?;
        (found.sent_bytes, found.sent_packets) = (bytes, packets.into());
    }
    if let Some(queue) = attribute(stats.value(), TCA_STATS_QUEUE) {
        let TcStatsQueue { qlen, backlog, drops, .. } = TcStatsQueue::parse(queue.value()).ok()?;
        (found.waiting, found.waiting_bytes) = (qlen.into(), backlog.into());
        found.drops = drops.into();
    }
    Some(found)
}

fn attribute(attributes: &[u8], wanted: u16) -> Option<NlaBuffer<&[u8]>> {
    NlasIterator::new(attributes).filter_map(Result::ok).find(|one| one.kind() == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emit(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut out = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
        out.extend(kind.to_ne_bytes());
        out.extend(value);
        out.resize(out.len().next_multiple_of(4), 0);
        out
    }

    #[test]
    fn counters_of_a_discipline_are_found_among_its_attributes() {
        let mut basic = 1_500_000_u64.to_ne_bytes().to_vec();
        basic.extend(1000_u32.to_ne_bytes());
        basic.extend([0; 4]);
        let queue: Vec<u8> =
            [7_u32, 10_500, 42, 0, 0].iter().flat_map(|w| w.to_ne_bytes()).collect();
        let stats = [emit(1, &basic), emit(3, &queue)].concat();
        let mut body = vec![0; HEADER_LEN];
        body[4..8].copy_from_slice(&5_u32.to_ne_bytes());
        body[8..12].copy_from_slice(&0x0003_0000_u32.to_ne_bytes());
        body.extend([emit(1, b"pfifo\0"), emit(7 | 0x8000, &stats)].concat());
        let found = discipline(&body).unwrap();
        assert_eq!((found.device, found.handle), (5, 3));
        assert_eq!((found.sent_bytes, found.sent_packets), (1_500_000, 1000));
        assert_eq!((found.waiting, found.waiting_bytes, found.drops), (7, 10_500, 42));
    }

    #[test]
    fn truncated_attributes_have_no_counters() {
        assert_eq!(discipline(&[0; 12]), None);
        assert_eq!(discipline(&[0; HEADER_LEN]), None);
        assert!(attribute(&[8, 0, 1], 1).is_none());
    }
}
