//! Looks at queues by netlink: what waits in them, and what they have dropped so far.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

use crate::played::Look;

const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const FLAGS: u16 = 0x1 | 0x300;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
/// Lengths of `nlmsghdr` and `tcmsg`.
const HEADER: usize = 16;
const MESSAGE: usize = 20;

/// The devices of one namespace that are watched.
pub(super) struct Queues {
    socket: OwnedFd,
    /// Number of the device in the namespace, and of the queue in the plan.
    devices: Vec<(u32, usize)>,
    buffer: Vec<u8>,
}

/// Counters of one discipline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    bytes: u64,
    packets: u64,
    waiting: u64,
    waiting_bytes: u64,
    drops: u64,
}

impl Queues {
    /// Opens it in the namespace of this thread.
    pub(super) fn open(devices: &[(String, usize)]) -> io::Result<Self> {
        let route = Some(SockProtocol::NetlinkRoute);
        let flags = SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, route)?;
        let numbered =
            |(name, queue): &(String, usize)| Ok((if_nametoindex(name.as_str())?, *queue));
        let devices = devices.iter().map(numbered).collect::<nix::Result<_>>()?;
        Ok(Self { socket, devices, buffer: vec![0; 1 << 17] })
    }

    /// One look at each: the number of the queue in the plan, and what was seen.
    pub(super) fn look(&mut self, at_ns: u64) -> io::Result<Vec<(usize, Look)>> {
        let mut request = [0; HEADER + MESSAGE];
        request[..4].copy_from_slice(&((HEADER + MESSAGE) as u32).to_ne_bytes());
        request[4..6].copy_from_slice(&RTM_GETQDISC.to_ne_bytes());
        request[6..8].copy_from_slice(&FLAGS.to_ne_bytes());
        let fd = self.socket.as_raw_fd();
        send(fd, &request, MsgFlags::empty())?;
        let begin = |&(_, queue): &(u32, usize)| (queue, Look { at_ns, ..Look::default() });
        let mut found: Vec<(usize, Look)> = self.devices.iter().map(begin).collect();
        loop {
            let length = recv(fd, &mut self.buffer, MsgFlags::empty())?;
            let mut rest = &self.buffer[..length];
            while let Some((kind, body, after)) = message(rest) {
                rest = after;
                match kind {
                    NLMSG_DONE => return Ok(found),
                    NLMSG_ERROR => return Err(io::Error::other("the kernel has no queues")),
                    RTM_NEWQDISC => {
                        let Some((device, handle, counters)) = discipline(body) else { continue };
                        let at = self.devices.iter().position(|(index, _)| *index == device);
                        if let Some(at) = at {
                            note(&mut found[at].1, handle, counters);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}

/// netem is 1, the token bucket 2, the queue 3 (see the plan).
fn note(look: &mut Look, handle: u32, counters: Counters) {
    match handle >> 16 {
        1 => look.line_drops = Some(counters.drops),
        2 => {
            (look.sent_bytes, look.sent_packets) = (counters.bytes, counters.packets);
            look.bucket_drops = counters.drops;
        }
        3 => {
            (look.waiting, look.waiting_bytes) = (counters.waiting, counters.waiting_bytes);
            look.queue_drops = counters.drops;
        }
        _ => {}
    }
}

/// The first message of what came: its kind, its body, and what follows it.
fn message(data: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(*data.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes(*data.get(4..)?.first_chunk()?);
    let body = data.get(HEADER..length)?;
    Some((kind, body, data.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// Device, handle and counters of a discipline.
fn discipline(body: &[u8]) -> Option<(u32, u32, Counters)> {
    let word = |at: usize| body.get(at..)?.first_chunk().map(|b| u32::from_ne_bytes(*b));
    let (device, handle) = (word(4)?, word(8)?);
    let stats = attribute(body.get(MESSAGE..)?, TCA_STATS2)?;
    let mut counters = Counters::default();
    if let Some(basic) = attribute(stats, TCA_STATS_BASIC) {
        counters.bytes = u64::from_ne_bytes(*basic.first_chunk()?);
        counters.packets = u64::from(u32::from_ne_bytes(*basic.get(8..)?.first_chunk()?));
    }
    if let Some(queue) = attribute(stats, TCA_STATS_QUEUE) {
        let word = |at: usize| queue.get(4 * at..)?.first_chunk().map(|b| u32::from_ne_bytes(*b));
        counters.waiting = word(0)?.into();
        counters.waiting_bytes = word(1)?.into();
        counters.drops = word(2)?.into();
    }
    Some((device, handle, counters))
}

/// The value of an attribute.
fn attribute(mut data: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(*data.first_chunk()?));
        let kind = u16::from_ne_bytes(*data.get(2..)?.first_chunk()?) & 0x3fff;
        let value = data.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        data = data.get(length.next_multiple_of(4)..)?;
    }
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
        let queue: Vec<u8> =
            [7_u32, 10_500, 42, 0, 0].iter().flat_map(|w| w.to_ne_bytes()).collect();
        let stats = [emit(1, &basic), emit(3, &queue)].concat();
        let mut body = vec![0; MESSAGE];
        body[4..8].copy_from_slice(&5_u32.to_ne_bytes());
        body[8..12].copy_from_slice(&0x0003_0000_u32.to_ne_bytes());
        body.extend([emit(1, b"pfifo\0"), emit(7 | 0x8000, &stats)].concat());
        let (device, handle, counters) = discipline(&body).unwrap();
        assert_eq!((device, handle >> 16), (5, 3));
        assert_eq!((counters.bytes, counters.packets), (1_500_000, 1000));
        assert_eq!((counters.waiting, counters.waiting_bytes, counters.drops), (7, 10_500, 42));
        let mut look = Look::default();
        note(&mut look, handle, counters);
        assert_eq!((look.waiting, look.queue_drops), (7, 42));
    }

    #[test]
    fn what_is_cut_short_has_no_counters() {
        assert_eq!(discipline(&[0; 12]), None);
        assert_eq!(attribute(&[8, 0, 1], 1), None);
        assert!(message(&[200, 0, 0, 0, 3, 0]).is_none());
    }
}
