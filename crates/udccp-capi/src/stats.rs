//! State and counters of connections.

use std::ffi::c_int;
use std::time::Duration;

use udccp::blocking::Connection;

use crate::error::{Failure, status};
use crate::pointer;
use crate::socket::Socket;

/// A value that is not known, or that the CCID does not have.
pub const UDCCP_UNKNOWN: u64 = u64::MAX;

/// State and counters of a connection. Counters start at 0 with the connection. A value that is not
/// known is `UDCCP_UNKNOWN`, or NaN for `loss_event_rate`. Later versions add members at the end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Stats {
    /// CCID of the data that we send.
    pub tx_ccid: u64,
    /// CCID of the data that we receive.
    pub rx_ccid: u64,
    /// Congestion window in packets (CCID 2).
    pub cwnd_packets: u64,
    /// Slow start threshold in packets (CCID 2); unknown while it is unlimited.
    pub ssthresh_packets: u64,
    /// Packets believed to be in the network (CCID 2).
    pub pipe_packets: u64,
    /// Allowed sending rate in bytes per second (CCIDs 3 and 4). CCID 4 also sends at most one
    /// message in 10 ms, whatever the rate.
    pub x_bytes_per_sec: u64,
    /// Receive rate that the peer last reported, in bytes per second (CCIDs 3 and 4).
    pub x_recv_bytes_per_sec: u64,
    /// Loss event rate, 0 to 1 (CCIDs 3 and 4).
    pub loss_event_rate: f64,
    /// Smoothed round-trip time in nanoseconds.
    pub srtt_ns: u64,
    /// Variation of the round-trip time in nanoseconds.
    pub rttvar_ns: u64,
    /// Smallest round-trip time measured, in nanoseconds.
    pub min_rtt_ns: u64,
    /// Retransmission (or nofeedback) timeout in nanoseconds.
    pub rto_ns: u64,
    /// Congestion events that cut the window or rate.
    pub congestion_events: u64,
    /// Retransmission (or nofeedback) timeouts.
    pub timeouts: u64,
    /// The largest message in bytes that fits in one packet now.
    pub max_message_size: u64,
    /// Messages waiting to be sent.
    pub send_queue_messages: u64,
    /// Their bytes.
    pub send_queue_bytes: u64,
    /// Messages waiting to be read.
    pub recv_queue_messages: u64,
    /// Their bytes.
    pub recv_queue_bytes: u64,
    /// Packets sent, of every type.
    pub packets_sent: u64,
    /// Valid packets received, of every type.
    pub packets_received: u64,
    /// Messages sent.
    pub messages_sent: u64,
    /// Messages received.
    pub messages_received: u64,
    /// Bytes of messages sent.
    pub bytes_sent: u64,
    /// Bytes of messages received.
    pub bytes_received: u64,
    /// Messages that the peer reported received.
    pub messages_acked: u64,
    /// Messages that count as lost on the way.
    pub messages_lost: u64,
    /// Packets received with a congestion mark.
    pub ecn_ce_received: u64,
    /// Messages dropped here because their lifetime was over.
    pub dropped_expired: u64,
    /// Messages dropped here for others of higher priority.
    pub dropped_displaced: u64,
    /// Messages dropped here because the connection ended first.
    pub dropped_ended: u64,
    /// Messages dropped here because the path's packets became too small for them.
    pub dropped_too_large: u64,
    /// Messages received and dropped because the receive queue was full.
    pub dropped_recv_queue_full: u64,
    /// Messages received and dropped because they were damaged.
    pub dropped_corrupt: u64,
}

/// Programs pass a size in steps of a member: all members have 8 bytes, and there is no padding.
const _: () = assert!(size_of::<Stats>() == 34 * 8);

fn nanos(time: Option<Duration>) -> u64 {
    time.map_or(UDCCP_UNKNOWN, |t| u64::try_from(t.as_nanos()).unwrap_or(UDCCP_UNKNOWN))
}

fn known(n: Option<impl Into<u64>>) -> u64 {
    n.map_or(UDCCP_UNKNOWN, Into::into)
}

fn rate(bytes_per_sec: Option<f64>) -> u64 {
    bytes_per_sec.map_or(UDCCP_UNKNOWN, |x| x.round() as u64)
}

impl Stats {
    fn of(connection: &Connection) -> Result<Self, Failure> {
        let s = connection.stats().ok_or(udccp::Error::Forked)?;
        let sender = connection.sender_state().unwrap_or_default();
        let (c, drops) = (s.counters, s.counters.drops);
        Ok(Self {
            tx_ccid: known(s.tx_ccid),
            rx_ccid: known(s.rx_ccid),
            cwnd_packets: known(s.cwnd_packets),
            ssthresh_packets: known(s.ssthresh_packets),
            pipe_packets: known(s.pipe_packets),
            x_bytes_per_sec: rate(s.x_bytes_per_sec),
            x_recv_bytes_per_sec: rate(sender.x_recv_bytes_per_sec),
            loss_event_rate: s.loss_event_rate.unwrap_or(f64::NAN),
            srtt_ns: nanos(s.srtt),
            rttvar_ns: nanos(s.rttvar),
            min_rtt_ns: nanos(sender.min_rtt),
            rto_ns: nanos(s.rto),
            congestion_events: s.congestion_events,
            timeouts: s.timeouts,
            max_message_size: s.max_message_size as u64,
            send_queue_messages: s.send_queue_packets as u64,
            send_queue_bytes: s.send_queue_bytes as u64,
            recv_queue_messages: s.recv_queue_packets as u64,
            recv_queue_bytes: s.recv_queue_bytes as u64,
            packets_sent: c.packets_sent,
            packets_received: c.packets_received,
            messages_sent: c.data_packets_sent,
            messages_received: c.data_packets_received,
            bytes_sent: c.data_bytes_sent,
            bytes_received: c.data_bytes_received,
            messages_acked: c.data_packets_acked,
            messages_lost: c.data_packets_lost,
            ecn_ce_received: c.ecn_ce_received,
            dropped_expired: drops.send_expired,
            dropped_displaced: drops.send_displaced,
            dropped_ended: drops.send_ended,
            dropped_too_large: drops.send_too_large,
            dropped_recv_queue_full: drops.receive_queue_full,
            dropped_corrupt: drops.corrupt_payload,
        })
    }
}

/// Writes the connection's state and counters to `stats`. `size` is `sizeof *stats`; it tells the
/// library which version of the structure the program was compiled with. Members that the library
/// does not know get `UDCCP_UNKNOWN`.
///
/// Errors: `-EAGAIN`: the handshake is in progress. `-EINVAL`: `size` is 0 or not a multiple of 8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_socket_stats(
    socket: *const Socket,
    stats: *mut Stats,
    size: usize,
) -> c_int {
    status(|| {
        let socket = pointer::handle(socket)?;
        if size == 0 || !size.is_multiple_of(8) {
            return Err(Failure::invalid(
                "no version of this structure has this size",
                "give sizeof *stats",
            ));
        }
        pointer::check_array(stats.cast::<u8>(), size)?;
        let known = Stats::of(socket.connection(Some(Duration::ZERO))?)?;
        let n = pointer::copy_value(&known, stats.cast(), size)?;
        let unknown = [0xff; 8];
        for at in (n..size).step_by(8) {
            pointer::copy(&unknown, stats.cast::<u8>().wrapping_add(at), 8)?;
        }
        Ok(())
    })
}
