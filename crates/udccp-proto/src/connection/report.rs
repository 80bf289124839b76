//! Statistics and state of a connection, for the application.

use udccp_base::Instant;

use super::Connection;
use crate::ccid::{CcidMetrics, ReceiverMetrics};
use crate::state::State;
use crate::stats::{ConnectionCounters, ConnectionStats};
use crate::tuple::FourTuple;

impl Connection {
    /// All statistics of the connection.
    pub(crate) fn stats(&self) -> ConnectionStats {
        let m = self.cc.sender_metrics(&self.config).unwrap_or_default();
        let (recv_queue_packets, recv_queue_bytes) = self.recv.waiting();
        ConnectionStats {
            state: self.state,
            tx_ccid: self.cc.sender_ccid(),
            rx_ccid: self.cc.receiver_ccid(),
            cwnd_packets: m.cwnd,
            ssthresh_packets: m.ssthresh,
            pipe_packets: m.pipe,
            x_bytes_per_sec: m.x_bytes_per_sec,
            loss_event_rate: m.loss_event_rate,
            srtt: m.srtt,
            rttvar: m.rttvar,
            rto: m.rto,
            congestion_events: m.congestion_events,
            timeouts: m.timeouts,
            max_message_size: self.max_message_size(),
            send_queue_packets: self.send.queue().packets(),
            send_queue_bytes: self.send.queue().bytes(),
            recv_queue_packets,
            recv_queue_bytes,
            counters: self.counters(),
        }
    }

    /// Whether every queued message was sent, and then reported or given up.
    pub(crate) fn is_accounted_for(&self) -> bool {
        let awaits_reports = self.cc.awaits_reports().unwrap_or_else(|| {
            let c = self.counters();
            c.data_packets_acked + c.data_packets_lost < c.data_packets_sent
        });
        self.send.queue().is_empty() && !awaits_reports
    }

    /// State of the sender half of congestion control.
    pub(crate) fn sender_metrics(&self) -> Option<CcidMetrics> {
        self.cc.sender_metrics(&self.config)
    }

    /// State of the receiver half of congestion control.
    pub(crate) fn receiver_metrics(&self, now: Instant) -> Option<ReceiverMetrics> {
        self.cc.receiver_metrics(now)
    }

    /// The counters, without the state of congestion control.
    pub(crate) fn counters(&self) -> ConnectionCounters {
        self.counters.all(self.seq.sent())
    }

    /// Largest payload in bytes.
    pub(crate) fn max_message_size(&self) -> usize {
        self.path.max_message_size()
    }

    /// Addresses and ports.
    pub(crate) fn tuple(&self) -> &FourTuple {
        &self.who.tuple
    }

    /// Whether the connection still answers packets (TIMEWAIT and CLOSED do not).
    pub(crate) fn is_alive(&self) -> bool {
        !matches!(self.state, State::TimeWait | State::Closed)
    }
}
