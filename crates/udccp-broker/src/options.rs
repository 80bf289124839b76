//! Every socket option: its value, and what is wrong with a call of it.

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::io::Errno;
use udccp::{Connection, ConnectionStats, EndpointOptions, ServiceCode};
use udccp_preload::protocol::{STATE_CLOSED, STATE_CONNECTING, STATE_ENDED, STATE_LISTENING};

const SOL_IP: i32 = 0;
const SOL_SOCKET: i32 = 1;
const SOL_IPV6: i32 = 41;
const SOL_DCCP: i32 = 269;

const SO_SNDBUF: i32 = 7;
const SO_RCVBUF: i32 = 8;
const SO_LINGER: i32 = 13;
const SO_REUSEADDR: i32 = 2;
const SO_REUSEPORT: i32 = 15;
const IP_TOS: i32 = 1;
const IP_TTL: i32 = 2;
const SO_BINDTODEVICE: i32 = 25;
const SO_MARK: i32 = 36;
const IPV6_UNICAST_HOPS: i32 = 16;
const IPV6_V6ONLY: i32 = 26;
const IPV6_TCLASS: i32 = 67;

/// Options of SOL_SOCKET that would have no effect, and so are refused: filters, forced buffers.
const REFUSED: [i32; 8] = [26, 27, 32, 33, 44, 50, 51, 52];
const PACKET_SIZE: i32 = 1;
const SERVICE: i32 = 2;
const CHANGE_L: i32 = 3;
const CHANGE_R: i32 = 4;
const GET_CUR_MPS: i32 = 5;
const SERVER_TIMEWAIT: i32 = 6;
const SEND_CSCOV: i32 = 10;
const RECV_CSCOV: i32 = 11;
const AVAILABLE_CCIDS: i32 = 12;
const CCID: i32 = 13;
const TX_CCID: i32 = 14;
const RX_CCID: i32 = 15;
const QPOLICY_ID: i32 = 16;
const QPOLICY_TXQLEN: i32 = 17;
const CCID_RX_INFO: i32 = 128;
const CCID_TX_INFO: i32 = 192;

/// The time that a close may take, where the program set no SO_LINGER.
pub(crate) const LINGER: Duration = Duration::from_secs(5);
/// What may wait in a connection's send queue.
pub(crate) const QUEUE_BYTES: usize = 1 << 20;
/// Services that a socket can have.
const MAX_SERVICES: usize = 32;
const NO_SERVICE: u32 = u32::MAX;
/// CCIDs that a program can choose.
const CCIDS: [u8; 3] = [2, 3, 4];
/// Options of the system that one socket keeps, at most.
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
    /// Bytes of messages that may wait to be read, where the program has set a buffer.
    recv_queue: Option<usize>,
    /// What the system took for options of its own, as it gives it back.
    kept: BTreeMap<(i32, i32), Vec<u8>>,
}

/// What an option may depend on.
#[derive(Debug)]
pub(crate) struct Around<'a> {
    /// The socket's state.
    pub(crate) state: u32,
    /// Whether it was accepted.
    pub(crate) is_server: bool,
    /// Whether it was bound.
    pub(crate) is_bound: bool,
    /// Its connection.
    pub(crate) connection: Option<&'a Connection>,
}

/// The value of an option and its true length.
pub(crate) type Value = (Vec<u8>, usize);

fn number(value: i32) -> Value {
    (value.to_ne_bytes().to_vec(), 4)
}

fn int(bytes: &[u8]) -> Result<i32, Errno> {
    let four = bytes.first_chunk().ok_or(Errno::INVAL)?;
    Ok(i32::from_ne_bytes(*four))
}

/// The size of a buffer that a program asks for, as Linux bounds and doubles it.
fn buffer(bytes: &[u8], least: u32) -> Result<i32, Errno> {
    Ok((int(bytes)?.cast_unsigned().clamp(least, 212_992) * 2).cast_signed())
}

impl SocketOptions {
    /// What a new socket has.
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
        around: &Around<'_>,
    ) -> Result<(), Errno> {
        match level {
            SOL_DCCP => self.set_dccp(name, bytes, around),
            SOL_SOCKET if name == SO_LINGER => {
                let seconds = bytes.get(4..).ok_or(Errno::INVAL).and_then(int)?;
                let is_on = int(bytes)? != 0;
                // Turned off, the time stays.
                self.linger = (is_on.into(), if is_on { seconds } else { self.linger.1 });
                Ok(())
            }
            SOL_SOCKET if name == SO_SNDBUF => {
                self.send_buffer = buffer(bytes, 2304)?;
                Ok(())
            }
            SOL_SOCKET if name == SO_RCVBUF => {
                self.recv_buffer = buffer(bytes, 1152)?;
                // The kernel doubles what the program asks for.
                self.recv_queue = Some(self.recv_buffer() / 2);
                Ok(())
            }
            SOL_IPV6 if name == IPV6_V6ONLY && around.is_bound => Err(Errno::INVAL),
            _ => self.keep(level, name, bytes),
        }
    }

    /// Keeps what the system took.
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

    fn set_dccp(&mut self, name: i32, bytes: &[u8], around: &Around<'_>) -> Result<(), Errno> {
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

    /// Reads an option into a buffer of `room` bytes.
    pub(crate) fn get(
        &self,
        level: i32,
        name: i32,
        room: usize,
        around: &Around<'_>,
    ) -> Result<Value, Errno> {
        match level {
            SOL_DCCP if room < 4 => Err(Errno::INVAL),
            SOL_DCCP => self.get_dccp(name, room, around),
            SOL_SOCKET if name == SO_LINGER => {
                let mut bytes = self.linger.0.to_ne_bytes().to_vec();
                bytes.extend(self.linger.1.to_ne_bytes());
                let len = bytes.len().min(room);
                Ok((bytes, len))
            }
            SOL_SOCKET if name == SO_SNDBUF => Ok((number(self.send_buffer).0, room.min(4))),
            SOL_SOCKET if name == SO_RCVBUF => Ok((number(self.recv_buffer).0, room.min(4))),
            _ => {
                let kept = self.kept.get(&(level, name)).ok_or(Errno::NOPROTOOPT)?;
                Ok((kept.clone(), kept.len().min(room)))
            }
        }
    }

    /// A number that the system took.
    fn number(&self, level: i32, name: i32) -> Option<i32> {
        let kept = self.kept.get(&(level, name))?;
        let mut bytes = [0; 4];
        let len = kept.len().min(4);
        bytes[..len].copy_from_slice(&kept[..len]);
        Some(i32::from_ne_bytes(bytes))
    }

    fn get_dccp(&self, name: i32, room: usize, around: &Around<'_>) -> Result<Value, Errno> {
        let stats = || around.connection.and_then(Connection::stats);
        let ccid = |of: fn(ConnectionStats) -> Option<u8>| stats().and_then(of);
        let agreed = |ccid: Option<u8>| ccid.map(|c| number(c.into())).ok_or(Errno::NOPROTOOPT);
        Ok(match name {
            // Linux returns 0 and writes nothing.
            PACKET_SIZE => (Vec::new(), room),
            SERVICE => {
                let bytes: Vec<u8> = self.services.iter().flat_map(|s| s.to_be_bytes()).collect();
                if bytes.len() > room {
                    return Err(Errno::INVAL);
                }
                let len = bytes.len();
                (bytes, len)
            }
            GET_CUR_MPS => number(around.connection.map_or(536, |c| c.max_message_size() as i32)),
            SERVER_TIMEWAIT => number(self.server_timewait.into()),
            SEND_CSCOV => number(self.send_cscov.into()),
            RECV_CSCOV => number(self.recv_cscov.into()),
            AVAILABLE_CCIDS => (CCIDS.to_vec(), CCIDS.len()),
            TX_CCID => return agreed(ccid(|s| s.tx_ccid)),
            RX_CCID => return agreed(ccid(|s| s.rx_ccid)),
            QPOLICY_ID => number(self.has_priorities.into()),
            QPOLICY_TXQLEN => number(self.tx_qlen as i32),
            CCID_RX_INFO => return rx_info(around.connection, room),
            CCID_TX_INFO => return tx_info(around.connection, room),
            _ => return Err(Errno::NOPROTOOPT),
        })
    }

    /// Service codes, the one to connect with first.
    pub(crate) fn services(&self) -> &[u32] {
        &self.services
    }

    /// What a listener serves.
    pub(crate) fn service_codes(&self) -> Vec<ServiceCode> {
        self.services.iter().map(|code| ServiceCode(*code)).collect()
    }

    /// The service code of an accepted connection.
    pub(crate) fn set_service(&mut self, code: u32) {
        self.services = vec![code];
    }

    /// Whether the queue policy has priorities.
    pub(crate) const fn has_priorities(&self) -> bool {
        self.has_priorities
    }

    /// SO_LINGER, if it is on, in seconds.
    pub(crate) fn linger(&self) -> Option<u64> {
        (self.linger.0 != 0).then_some(self.linger.1.max(0) as u64)
    }

    /// The receive buffer in bytes, as the kernel accounts it.
    pub(crate) const fn recv_buffer(&self) -> usize {
        self.recv_buffer as usize
    }

    /// Bytes of messages that may wait to be read, where the ring has room for them.
    pub(crate) fn recv_queue(&self) -> usize {
        self.recv_queue.unwrap_or(usize::MAX)
    }

    /// Whether another socket may bind the same address.
    pub(crate) fn shares_address(&self) -> bool {
        [SO_REUSEADDR, SO_REUSEPORT].iter().any(|n| self.number(SOL_SOCKET, *n).unwrap_or(0) != 0)
    }

    /// Whether another socket may listen at the same port.
    pub(crate) fn shares_port(&self) -> bool {
        self.number(SOL_SOCKET, SO_REUSEPORT).unwrap_or(0) != 0
    }

    /// Whether an IPv6 socket takes IPv6 only.
    pub(crate) fn is_v6_only(&self) -> bool {
        self.number(SOL_IPV6, IPV6_V6ONLY).unwrap_or(0) != 0
    }

    /// The network interface that the program chose.
    pub(crate) fn device(&self) -> Option<String> {
        let name = self.kept.get(&(SOL_SOCKET, SO_BINDTODEVICE))?;
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        (end > 0).then(|| String::from_utf8_lossy(&name[..end]).into_owned())
    }

    /// How packets to an address of one family leave.
    pub(crate) fn below(&self, is_v6: bool, is_raw: bool) -> EndpointOptions {
        let (level, ttl, class) = if is_v6 {
            (SOL_IPV6, IPV6_UNICAST_HOPS, IPV6_TCLASS)
        } else {
            (SOL_IP, IP_TTL, IP_TOS)
        };
        let byte = |name| self.number(level, name).and_then(|n| u8::try_from(n).ok());
        let mut below = EndpointOptions::new().raw_ip(is_raw).dscp(byte(class).unwrap_or(0) >> 2);
        if let Some(ttl) = byte(ttl).filter(|ttl| *ttl > 0) {
            below = below.ttl(ttl);
        }
        if let Some(mark) = self.number(SOL_SOCKET, SO_MARK).filter(|mark| *mark != 0) {
            below = below.mark(mark.cast_unsigned());
        }
        match self.device() {
            Some(device) => below.device(device),
            None => below,
        }
    }

    /// How many messages wait in the kernel's queue to the broker, and in the connection's.
    pub(crate) fn queues(&self) -> (usize, usize) {
        const UNBOUNDED: u32 = 1024;
        let all = if self.tx_qlen == 0 { UNBOUNDED } else { self.tx_qlen.min(UNBOUNDED) } as usize;
        if self.has_priorities {
            // Only the connection's queue knows priorities.
            return (1, all);
        }
        // A burst of `tx_qlen` messages is taken even while the broker sleeps. One more is on its
        // way from the one queue to the other.
        let in_kernel = all.min(udccp_preload::protocol::MAX_PAIR_FRAMES);
        (in_kernel, all.saturating_sub(in_kernel + 1).max(1))
    }

    /// The settings of a connection.
    pub(crate) fn connection(&self) -> udccp::Options {
        let policy = if self.has_priorities {
            udccp::QueuePolicy::DropLowest
        } else {
            udccp::QueuePolicy::Refuse
        };
        let options = udccp::Options::new()
            .tx_ccids(self.tx_ccids.clone())
            .rx_ccids(self.rx_ccids.clone())
            .send_cscov(self.send_cscov)
            .min_cscov(self.recv_cscov)
            .server_timewait(self.server_timewait)
            .queue_policy(policy)
            .send_queue(QUEUE_BYTES, self.queues().1);
        options.close_linger(self.close_linger())
    }

    /// The time that a close may take.
    fn close_linger(&self) -> Duration {
        self.linger().map_or(LINGER, |seconds| Duration::from_secs(seconds.min(3600)))
    }

    /// Passes on what may have been set since the connection began.
    pub(crate) fn apply_all(&self, connection: &Connection) {
        let live = [(SOL_SOCKET, SO_LINGER), (SOL_DCCP, QPOLICY_TXQLEN)];
        live.into_iter().for_each(|(level, name)| self.apply(level, name, connection));
    }

    /// Passes an option that was set on to the connection that lives already.
    pub(crate) fn apply(&self, level: i32, name: i32, connection: &Connection) {
        match (level, name) {
            (SOL_SOCKET, SO_LINGER) => connection.set_linger(self.close_linger()),
            (SOL_DCCP, QPOLICY_TXQLEN) => connection.set_send_queue(QUEUE_BYTES, self.queues().1),
            (SOL_DCCP, SERVER_TIMEWAIT) => connection.set_server_timewait(self.server_timewait),
            _ => {}
        }
    }
}

/// `struct tfrc_tx_info`.
fn tx_info(connection: Option<&Connection>, room: usize) -> Result<Value, Errno> {
    const BYTES: usize = 40;
    let is_tfrc = |c: &&Connection| c.stats().is_some_and(|s| s.tx_ccid.is_some_and(|c| c != 2));
    let state = connection.filter(is_tfrc).and_then(Connection::sender_state);
    let state = state.ok_or(Errno::NOPROTOOPT)?;
    if room < BYTES {
        return Err(Errno::INVAL);
    }
    let rate = |bytes_per_sec: Option<f64>| (bytes_per_sec.unwrap_or(0.0) * 64.0) as u64;
    let mut bytes = rate(state.x_bytes_per_sec).to_ne_bytes().to_vec();
    bytes.extend(rate(state.x_recv_bytes_per_sec).to_ne_bytes());
    bytes.extend((state.x_calc_bytes_per_sec.unwrap_or(0.0) as u32).to_ne_bytes());
    bytes.extend(micros(state.rtt).to_ne_bytes());
    bytes.extend(millionths(state.loss_event_rate.unwrap_or(0.0)).to_ne_bytes());
    bytes.extend(micros(state.rto).to_ne_bytes());
    bytes.extend(micros(state.packet_interval).to_ne_bytes());
    bytes.resize(BYTES, 0);
    Ok((bytes, BYTES))
}

/// `struct tfrc_rx_info`.
fn rx_info(connection: Option<&Connection>, room: usize) -> Result<Value, Errno> {
    const BYTES: usize = 12;
    let is_tfrc = |c: &&Connection| c.stats().is_some_and(|s| s.rx_ccid.is_some_and(|c| c != 2));
    let state = connection.filter(is_tfrc).and_then(Connection::receiver_state);
    let state = state.ok_or(Errno::NOPROTOOPT)?;
    if room < BYTES {
        return Err(Errno::INVAL);
    }
    let mut bytes = (state.x_recv_bytes_per_sec as u32).to_ne_bytes().to_vec();
    bytes.extend(micros(state.rtt).to_ne_bytes());
    bytes.extend(millionths(state.loss_event_rate).to_ne_bytes());
    Ok((bytes, BYTES))
}

fn micros(time: Option<Duration>) -> u32 {
    time.map_or(0, |time| u32::try_from(time.as_micros()).unwrap_or(u32::MAX))
}

fn millionths(share: f64) -> u32 {
    (share * 1e6) as u32
}

/// Whether `listen` may be called in a state.
pub(crate) const fn may_listen(state: u32) -> bool {
    matches!(state, STATE_CLOSED | STATE_LISTENING)
}

/// What `connect` says in a state, `None` where it may go on.
pub(crate) const fn connect_refusal(state: u32) -> Option<Errno> {
    match state {
        STATE_CLOSED => None,
        STATE_CONNECTING => Some(Errno::ALREADY),
        _ => Some(Errno::ISCONN),
    }
}
