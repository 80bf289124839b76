//! Returns the values of options.

use std::time::Duration;

use rustix::io::Errno;
use udccp::{Connection, ConnectionStats};

use super::names::*;
use super::{CCIDS, OptionContext, SocketOptions, Value};

fn number(value: i32) -> Value {
    (value.to_ne_bytes().to_vec(), 4)
}

impl SocketOptions {
    /// Reads an option into a buffer of `room` bytes.
    pub(crate) fn get(
        &self,
        level: i32,
        name: i32,
        room: usize,
        around: &OptionContext<'_>,
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

    fn get_dccp(&self, name: i32, room: usize, around: &OptionContext<'_>) -> Result<Value, Errno> {
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
