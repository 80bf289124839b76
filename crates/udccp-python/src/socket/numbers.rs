//! Statistics of a connection for Python.

use std::time::Duration;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rustix::io::Errno;
use udccp::blocking::Connection;

/// The fields of `udccp.ConnectionStats`.
pub(super) fn connection<'py>(
    py: Python<'py>,
    connection: &Connection,
) -> PyResult<Bound<'py, PyDict>> {
    let parents = || {
        PyOSError::new_err((
            Errno::BADF.raw_os_error(),
            "this socket belongs to the parent process",
        ))
    };
    let stats = connection.stats().ok_or_else(parents)?;
    let state = connection.sender_state().unwrap_or_default();
    let all = PyDict::new(py);
    all.set_item("state", format!("{:?}", stats.state))?;
    all.set_item("tx_ccid", stats.tx_ccid)?;
    all.set_item("rx_ccid", stats.rx_ccid)?;
    all.set_item("cwnd_packets", stats.cwnd_packets)?;
    all.set_item("in_flight_packets", stats.pipe_packets)?;
    all.set_item("rate_bytes_per_s", stats.x_bytes_per_sec)?;
    all.set_item("loss_event_rate", stats.loss_event_rate)?;
    all.set_item("rtt_s", seconds(stats.srtt))?;
    all.set_item("min_rtt_s", seconds(state.min_rtt))?;
    all.set_item("rto_s", seconds(stats.rto))?;
    all.set_item("max_message_bytes", stats.max_message_size)?;
    all.set_item("send_queue_messages", stats.send_queue_packets)?;
    all.set_item("send_queue_bytes", stats.send_queue_bytes)?;
    all.set_item("recv_queue_messages", stats.recv_queue_packets)?;
    all.set_item("recv_queue_bytes", stats.recv_queue_bytes)?;
    all.set_item("messages_sent", stats.counters.data_packets_sent)?;
    all.set_item("bytes_sent", stats.counters.data_bytes_sent)?;
    all.set_item("messages_received", stats.counters.data_packets_received)?;
    all.set_item("bytes_received", stats.counters.data_bytes_received)?;
    all.set_item("messages_acknowledged", stats.counters.data_packets_acked)?;
    all.set_item("messages_lost", stats.counters.data_packets_lost)?;
    all.set_item("messages_expired", stats.counters.drops.send_expired)?;
    all.set_item("messages_displaced", stats.counters.drops.send_displaced)?;
    all.set_item("messages_unsent", stats.counters.drops.send_ended)?;
    all.set_item("congestion_events", stats.congestion_events)?;
    all.set_item("timeouts", stats.timeouts)?;
    Ok(all)
}

fn micros(time: Option<Duration>) -> [u8; 4] {
    let micros = time.map_or(0, |time| u32::try_from(time.as_micros()).unwrap_or(u32::MAX));
    micros.to_ne_bytes()
}

/// Linux's `struct tfrc_tx_info` (`linux/tfrc.h`); CCID 2 does not have it.
pub(super) fn tx_info(connection: &Connection) -> Option<Vec<u8>> {
    let state = connection.sender_state()?;
    let x = state.x_bytes_per_sec?;
    let received = state.x_recv_bytes_per_sec.unwrap_or(0.0);
    // X and X_recv are in units of 1/64 byte per second.
    let mut info = ((x * 64.0) as u64).to_ne_bytes().to_vec();
    info.extend(((received * 64.0) as u64).to_ne_bytes());
    info.extend((state.x_calc_bytes_per_sec.unwrap_or(0.0) as u32).to_ne_bytes());
    info.extend(micros(state.rtt));
    info.extend(((state.loss_event_rate.unwrap_or(0.0) * 1e6) as u32).to_ne_bytes());
    info.extend(micros(state.rto));
    info.extend(micros(state.packet_interval));
    info.resize(40, 0);
    Some(info)
}

/// Linux's `struct tfrc_rx_info`.
pub(super) fn rx_info(connection: &Connection) -> Option<Vec<u8>> {
    let state = connection.receiver_state()?;
    let mut info = (state.x_recv_bytes_per_sec as u32).to_ne_bytes().to_vec();
    info.extend(micros(state.rtt));
    info.extend(((state.loss_event_rate * 1e6) as u32).to_ne_bytes());
    Some(info)
}

/// A time in seconds.
fn seconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64())
}
