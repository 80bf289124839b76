//! Reads settings from the dataclass `udccp.Options`.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use udccp::{EndpointOptions, Options, QueuePolicy, ServiceCode};

/// The fields of `udccp.Options`.
#[derive(FromPyObject)]
pub(super) struct Settings {
    tx_ccids: Vec<u8>,
    rx_ccids: Vec<u8>,
    send_queue_messages: usize,
    send_queue_bytes: usize,
    recv_queue_messages: usize,
    recv_queue_bytes: usize,
    drop_lowest: bool,
    linger_s: f64,
    keep_alive_s: Option<f64>,
    idle_limit_s: Option<f64>,
    send_coverage: u8,
    least_coverage: u8,
    data_checksum: bool,
    deliver_corrupt: bool,
    ecn: bool,
    path_mtu: u16,
    request_retries: u32,
    server_timewait: bool,
}

/// A time of Python in seconds; `None` stays.
///
/// # Errors
/// `ValueError`: it is negative, not a number or too long.
pub(super) fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err(format!("{seconds} s is not a time to wait")))
}

impl Settings {
    /// The settings of a connection, or of those that a listener accepts.
    pub(super) fn options(&self) -> PyResult<Options> {
        let policy = if self.drop_lowest { QueuePolicy::DropLowest } else { QueuePolicy::Refuse };
        Ok(Options::new()
            .tx_ccids(self.tx_ccids.clone())
            .rx_ccids(self.rx_ccids.clone())
            .send_queue(self.send_queue_bytes.max(1), self.send_queue_messages.max(1))
            .recv_queue(self.recv_queue_bytes.max(1), self.recv_queue_messages.max(1))
            .queue_policy(policy)
            .close_linger(duration(self.linger_s)?)
            .keep_alive(self.keep_alive_s.map(duration).transpose()?)
            .idle_limit(self.idle_limit_s.map(duration).transpose()?)
            .send_cscov(self.send_coverage)
            .min_cscov(self.least_coverage)
            .data_checksum(self.data_checksum)
            .deliver_corrupt(self.deliver_corrupt)
            .ecn(self.ecn)
            .path_mtu(self.path_mtu)
            .request_retries(self.request_retries)
            .server_timewait(self.server_timewait))
    }
}

/// What a socket asks of the system, from the dataclass `udccp.socket._options.Below`.
#[derive(FromPyObject)]
pub(super) struct Below {
    raw_ip: bool,
    reuse_port: bool,
    recv_buffer: Option<usize>,
    send_buffer: Option<usize>,
    ttl: Option<u8>,
    dscp: u8,
    device: Option<String>,
    mark: Option<u32>,
}

impl Below {
    /// The settings of an endpoint.
    pub(super) fn options(self) -> EndpointOptions {
        let mut options =
            EndpointOptions::new().raw_ip(self.raw_ip).reuse_port(self.reuse_port).dscp(self.dscp);
        if let Some(bytes) = self.recv_buffer {
            options = options.recv_buffer(bytes);
        }
        if let Some(bytes) = self.send_buffer {
            options = options.send_buffer(bytes);
        }
        if let Some(ttl) = self.ttl {
            options = options.ttl(ttl);
        }
        if let Some(name) = self.device {
            options = options.device(name);
        }
        if let Some(mark) = self.mark {
            options = options.mark(mark);
        }
        options
    }
}

/// The number of a service code that is written as in RFC 4340 section 8.1.2, for example `SC:echo`
/// or `SC=1701`.
#[pyfunction]
pub(super) fn service_number(text: &str) -> PyResult<u32> {
    let code: ServiceCode =
        text.parse().map_err(|e| PyValueError::new_err(format!("\"{text}\": {e}")))?;
    Ok(code.0)
}

/// A service code as RFC 4340 section 8.1.2 writes it.
#[pyfunction]
pub(super) fn service_text(number: u32) -> String {
    ServiceCode(number).to_string()
}
