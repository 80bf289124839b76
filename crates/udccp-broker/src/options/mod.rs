//! Every socket option: its value and the errors of invalid calls.

mod effect;
mod names;
mod value;

use std::collections::BTreeMap;
use std::time::Duration;

use names::*;
use rustix::io::Errno;
use udccp::{Connection, ServiceCode};
use udccp_preload::protocol::{STATE_CLOSED, STATE_CONNECTING, STATE_ENDED, STATE_LISTENING};

use crate::ports::Sharing;

/// Time limit for a close, unless the program set SO_LINGER.
pub(crate) const LINGER: Duration = Duration::from_secs(5);
/// Most bytes in a connection's send queue.
pub(crate) const QUEUE_BYTES: usize = 1 << 20;
/// Most bytes queued between a connection and the ring to its program. At a quarter of it, the peer
/// is asked to slow down; messages up to there arrive in one batch.
pub(crate) const ARRIVED_BYTES: usize = 4 << 20;
/// The same limit in messages.
pub(crate) const ARRIVED: usize = 4096;
/// Most service codes of a socket.
const MAX_SERVICES: usize = 32;
const NO_SERVICE: u32 = u32::MAX;
/// CCIDs that a program can choose.
const CCIDS: [u8; 3] = [2, 3, 4];
/// Most system options that one socket keeps.
const KEPT: usize = 64;

/// The options of one socket.
#[derive(Clone, Debug)]
pub(crate) struct SocketOptions {
    services: Vec<u32>,
    tx_ccids: Vec<u8>,
    rx_ccids: Vec<u8>,
    send_cscov: u8,
    recv_cscov: u8,
    has_priorities: bool,
    tx_qlen: u32,
    server_timewait: bool,
    linger: (i32, i32),
    send_buffer: i32,
    recv_buffer: i32,
    /// Most bytes of unread messages, if the program has set a buffer size.
    recv_queue: Option<usize>,
    /// Options that the system accepted, with the values that it returned.
    kept: BTreeMap<(i32, i32), Vec<u8>>,
}

/// What an option may depend on.
#[derive(Debug)]
pub(crate) struct OptionContext<'a> {
    /// The socket's state.
    pub(crate) state: u32,
    /// Whether the socket was accepted.
    pub(crate) is_server: bool,
    /// Whether the socket is bound.
    pub(crate) is_bound: bool,
    /// The socket's connection.
    pub(crate) connection: Option<&'a Connection>,
}

impl OptionContext<'_> {
    /// Whether the socket has a local address, chosen by the program or the system.
    const fn has_address(&self) -> bool {
        self.is_bound || !matches!(self.state, STATE_CLOSED | STATE_ENDED)
    }
}

/// The value of an option and its full length.
pub(crate) type Value = (Vec<u8>, usize);

fn int(bytes: &[u8]) -> Result<i32, Errno> {
    let four = bytes.first_chunk().ok_or(Errno::INVAL)?;
    Ok(i32::from_ne_bytes(*four))
}

/// The buffer size for a program's request, clamped and doubled as in Linux.
fn buffer(bytes: &[u8], least: u32) -> Result<i32, Errno> {
    Ok((int(bytes)?.cast_unsigned().clamp(least, 212_992) * 2).cast_signed())
}

impl SocketOptions {
    /// The options of a new socket.
    pub(crate) fn new(tx_qlen: u32) -> Self {
        Self {
            services: vec![0],
            tx_ccids: vec![2, 3, 4],
            rx_ccids: vec![2, 3, 4],
            send_cscov: 0,
            recv_cscov: 0,
            has_priorities: false,
            tx_qlen,
            server_timewait: false,
            linger: (0, 0),
            send_buffer: 212_992,
            recv_buffer: 212_992,
            recv_queue: None,
            kept: BTreeMap::new(),
        }
    }

    /// Sets an option.
    pub(crate) fn set(
        &mut self,
        level: i32,
        name: i32,
        bytes: &[u8],
        around: &OptionContext<'_>,
    ) -> Result<(), Errno> {
        match level {
            SOL_DCCP => self.set_dccp(name, bytes, around),
            SOL_SOCKET if name == SO_LINGER => {
                let seconds = bytes.get(4..).ok_or(Errno::INVAL).and_then(int)?;
                let is_on = int(bytes)? != 0;
                // When SO_LINGER is turned off, its time is kept.
                self.linger = (is_on.into(), if is_on { seconds } else { self.linger.1 });
                Ok(())
            }
            SOL_SOCKET if name == SO_SNDBUF => {
                self.send_buffer = buffer(bytes, 2304)?;
                Ok(())
            }
            SOL_SOCKET if name == SO_RCVBUF => {
                self.recv_buffer = buffer(bytes, 1152)?;
                // The kernel doubles the requested size.
                self.recv_queue = Some(self.recv_buffer() / 2);
                Ok(())
            }
            SOL_IPV6 if name == IPV6_V6ONLY && around.has_address() => Err(Errno::INVAL),
            _ => self.keep(level, name, bytes),
        }
    }

    /// Keeps an option that the system accepted.
    fn keep(&mut self, level: i32, name: i32, bytes: &[u8]) -> Result<(), Errno> {
        let is_refused = level == SOL_SOCKET && REFUSED.contains(&name);
        if !matches!(level, SOL_SOCKET | SOL_IP | SOL_IPV6) || is_refused {
            return Err(Errno::NOPROTOOPT);
        }
        if self.kept.len() >= KEPT && !self.kept.contains_key(&(level, name)) {
            return Err(Errno::NOBUFS);
        }
        self.kept.insert((level, name), bytes.to_vec());
        Ok(())
    }

    fn set_dccp(
        &mut self,
        name: i32,
        bytes: &[u8],
        around: &OptionContext<'_>,
    ) -> Result<(), Errno> {
        let closed = around.state == STATE_CLOSED || around.state == STATE_ENDED;
        match name {
            PACKET_SIZE | CHANGE_L | CHANGE_R => return Ok(()),
            CCID | TX_CCID | RX_CCID => return self.set_ccids(name, bytes, closed),
            _ => {}
        }
        let value = int(bytes)?;
        match name {
            SERVICE => self.set_services(bytes),
            SERVER_TIMEWAIT if !around.is_server => Err(Errno::OPNOTSUPP),
            SERVER_TIMEWAIT => {
                self.server_timewait = value != 0;
                Ok(())
            }
            SEND_CSCOV | RECV_CSCOV => {
                let coverage = u8::try_from(value).ok().filter(|c| *c <= 15).ok_or(Errno::INVAL)?;
                match name {
                    _ if coverage == 0 => {}
                    _ if !closed => return Err(Errno::ISCONN),
                    SEND_CSCOV => self.send_cscov = coverage,
                    _ => self.recv_cscov = coverage,
                }
                Ok(())
            }
            QPOLICY_ID if !closed => Err(Errno::ISCONN),
            QPOLICY_ID if !(0..=1).contains(&value) => Err(Errno::INVAL),
            QPOLICY_ID => {
                self.has_priorities = value == 1;
                Ok(())
            }
            QPOLICY_TXQLEN => {
                self.tx_qlen = u32::try_from(value).map_err(|_| Errno::INVAL)?;
                Ok(())
            }
            _ => Err(Errno::NOPROTOOPT),
        }
    }

    fn set_ccids(&mut self, name: i32, bytes: &[u8], closed: bool) -> Result<(), Errno> {
        if bytes.is_empty() || bytes.len() > 251 {
            return Err(Errno::INVAL);
        }
        if !closed {
            return Err(Errno::ISCONN);
        }
        if bytes.iter().any(|c| !CCIDS.contains(c)) {
            return Err(Errno::INVAL);
        }
        let mut list: Vec<u8> = Vec::new();
        for ccid in bytes {
            if !list.contains(ccid) {
                list.push(*ccid);
            }
        }
        if name != RX_CCID {
            self.tx_ccids.clone_from(&list);
        }
        if name != TX_CCID {
            self.rx_ccids = list;
        }
        Ok(())
    }

    fn set_services(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        let codes: Vec<u32> =
            bytes.as_chunks().0.iter().map(|code| u32::from_be_bytes(*code)).collect();
        if codes[0] == NO_SERVICE || bytes.len() > MAX_SERVICES * 4 {
            return Err(Errno::INVAL);
        }
        if codes.contains(&NO_SERVICE) {
            return Err(Errno::FAULT);
        }
        self.services = codes;
        Ok(())
    }

    /// The value of a system option as a number.
    fn number(&self, level: i32, name: i32) -> Option<i32> {
        let kept = self.kept.get(&(level, name))?;
        let mut bytes = [0; 4];
        let len = kept.len().min(4);
        bytes[..len].copy_from_slice(&kept[..len]);
        Some(i32::from_ne_bytes(bytes))
    }

    /// The service codes; `connect` uses the first.
    pub(crate) fn services(&self) -> &[u32] {
        &self.services
    }

    /// The service codes that a listener serves.
    pub(crate) fn service_codes(&self) -> Vec<ServiceCode> {
        self.services.iter().map(|code| ServiceCode(*code)).collect()
    }

    /// Sets the service code of an accepted connection.
    pub(crate) fn set_service(&mut self, code: u32) {
        self.services = vec![code];
    }

    /// Whether the queue policy has priorities.
    pub(crate) const fn has_priorities(&self) -> bool {
        self.has_priorities
    }

    /// The time of SO_LINGER in seconds, if it is on.
    pub(crate) fn linger(&self) -> Option<u64> {
        (self.linger.0 != 0).then_some(self.linger.1.max(0) as u64)
    }

    /// The size of the receive buffer in bytes, in the kernel's accounting.
    pub(crate) const fn recv_buffer(&self) -> usize {
        self.recv_buffer as usize
    }

    /// Most bytes of unread messages, if the ring has room for them.
    pub(crate) fn recv_queue(&self) -> usize {
        self.recv_queue.unwrap_or(usize::MAX)
    }

    /// With whom it shares its address.
    pub(crate) fn sharing(&self) -> Sharing {
        let is_on = |name| self.number(SOL_SOCKET, name).unwrap_or(0) != 0;
        Sharing { address: is_on(SO_REUSEADDR), port: is_on(SO_REUSEPORT) }
    }

    /// Whether another socket may listen on the same port.
    pub(crate) fn shares_port(&self) -> bool {
        self.sharing().port
    }

    /// Makes the socket IPv6 only, like a socket bound to an IPv6 address.
    pub(crate) fn take_v6_only(&mut self) {
        self.kept.insert((SOL_IPV6, IPV6_V6ONLY), 1i32.to_ne_bytes().to_vec());
    }

    /// Whether an IPv6 socket accepts only IPv6.
    pub(crate) fn is_v6_only(&self) -> bool {
        self.number(SOL_IPV6, IPV6_V6ONLY).unwrap_or(0) != 0
    }

    /// The network interface that the program chose.
    pub(crate) fn device(&self) -> Option<String> {
        let name = self.kept.get(&(SOL_SOCKET, SO_BINDTODEVICE))?;
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        (end > 0).then(|| String::from_utf8_lossy(&name[..end]).into_owned())
    }
}

/// Whether `listen` may be called in a state.
pub(crate) const fn may_listen(state: u32) -> bool {
    matches!(state, STATE_CLOSED | STATE_LISTENING)
}

/// The error of `connect` in this state, or `None` if it may proceed.
pub(crate) const fn connect_refusal(state: u32) -> Option<Errno> {
    match state {
        STATE_CLOSED => None,
        STATE_CONNECTING => Some(Errno::ALREADY),
        _ => Some(Errno::ISCONN),
    }
}
