//! How a socket's options affect its connection.

use std::time::Duration;

use udccp::ccid::ccid2::AckRatioConfig;
use udccp::{Ccid2Options, Connection, EndpointOptions};

use super::names::*;
use super::{ARRIVED, ARRIVED_BYTES, LINGER, QUEUE_BYTES, SocketOptions};

/// Most acknowledgements per window. One acknowledgement answers a batch of data and lets the
/// window grow by half the Ack Ratio: with a ratio of two, a window of hundreds of packets would
/// grow one by one. Linux, too, raises its ratio with the window. Over raw IP, the peer may be a
/// Linux, whose receiver has no timer for the last packets of a burst, so the ratio stays low
/// there.
const WINDOW_ACKS: u16 = 5;

impl SocketOptions {
    /// Options of the socket below, for addresses of one family.
    pub(crate) fn endpoint_options(&self, is_v6: bool, is_raw: bool) -> EndpointOptions {
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

    /// How many messages may wait in the kernel's queue to the broker, and in the connection's
    /// queue.
    pub(crate) fn queues(&self) -> (usize, usize) {
        const UNBOUNDED: u32 = 1024;
        let all = if self.tx_qlen == 0 { UNBOUNDED } else { self.tx_qlen.min(UNBOUNDED) } as usize;
        if self.has_priorities {
            // Only the connection's queue has priorities.
            return (1, all);
        }
        // Even while the broker sleeps, the kernel's queue takes a burst of `tx_qlen` messages. One
        // more may be moving between the two queues.
        let in_kernel = all.min(udccp_preload::protocol::MAX_PAIR_FRAMES);
        (in_kernel, all.saturating_sub(in_kernel + 1).max(1))
    }

    /// The options for a new connection.
    pub(crate) fn connection(&self, is_raw: bool) -> udccp::Options {
        let policy = if self.has_priorities {
            udccp::QueuePolicy::DropLowest
        } else {
            udccp::QueuePolicy::Refuse
        };
        let mut ccid2 = Ccid2Options::new();
        if !is_raw {
            ccid2 = ccid2.ack_ratio(AckRatioConfig::Thinned { min: 1, acks: WINDOW_ACKS });
        }
        let options = udccp::Options::new()
            .ccid2(ccid2)
            .tx_ccids(self.tx_ccids.clone())
            .rx_ccids(self.rx_ccids.clone())
            .send_cscov(self.send_cscov)
            .min_cscov(self.recv_cscov)
            .server_timewait(self.server_timewait)
            .queue_policy(policy)
            .send_queue(QUEUE_BYTES, self.queues().1)
            .recv_queue(ARRIVED_BYTES, ARRIVED);
        options.close_linger(self.close_linger())
    }

    /// Time limit for a close.
    fn close_linger(&self) -> Duration {
        self.linger().map_or(LINGER, |seconds| Duration::from_secs(seconds.min(3600)))
    }

    /// Applies options that may have been set since the connection was opened.
    pub(crate) fn apply_all(&self, connection: &Connection) {
        let live = [(SOL_SOCKET, SO_LINGER), (SOL_DCCP, QPOLICY_TXQLEN)];
        live.into_iter().for_each(|(level, name)| self.apply(level, name, connection));
    }

    /// Applies a changed option to an open connection.
    pub(crate) fn apply(&self, level: i32, name: i32, connection: &Connection) {
        match (level, name) {
            (SOL_SOCKET, SO_LINGER) => connection.set_linger(self.close_linger()),
            (SOL_DCCP, QPOLICY_TXQLEN) => connection.set_send_queue(QUEUE_BYTES, self.queues().1),
            (SOL_DCCP, SERVER_TIMEWAIT) => connection.set_server_timewait(self.server_timewait),
            _ => {}
        }
    }
}
