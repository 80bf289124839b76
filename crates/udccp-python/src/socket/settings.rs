//! Reads settings from the dataclass `udccp.Options`.

use std::num::NonZeroUsize;
use std::time::Duration;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use udccp::{EndpointOptions, Options, QueuePolicy, ServiceCode};

/// The fields of `udccp.Options`.
pub(super) struct Settings {
    tx_ccids: Vec<u8>,
    rx_ccids: Vec<u8>,
    send_queue_messages: usize,
    send_queue_bytes: usize,
    recv_queue_messages: usize,
    recv_queue_bytes: usize,
    drop_lowest: bool,
    linger: Duration,
    keep_alive: Option<Duration>,
    idle_limit: Option<Duration>,
    send_coverage: u8,
    least_coverage: u8,
    data_checksum: bool,
    deliver_corrupt: bool,
    ecn: bool,
    path_mtu: u16,
    request_retries: u32,
    server_timewait: bool,
}

const CCIDS: &str = "a tuple of CCIDs, such as (2, 3)";
const COUNT: &str = "int, 1 or more";
const COVERAGE: &str = "int, 0 to 15";
const SWITCH: &str = "True or False";

impl FromPyObject<'_, '_> for Settings {
    type Error = PyErr;

    fn extract(options: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let of = &*options;
        Ok(Self {
            tx_ccids: field(of, "tx_ccids", CCIDS)?,
            rx_ccids: field(of, "rx_ccids", CCIDS)?,
            send_queue_messages: count(of, "send_queue_messages")?,
            send_queue_bytes: count(of, "send_queue_bytes")?,
            recv_queue_messages: count(of, "recv_queue_messages")?,
            recv_queue_bytes: count(of, "recv_queue_bytes")?,
            drop_lowest: field(of, "drop_lowest", SWITCH)?,
            linger: field::<Seconds>(of, "linger_s", "a time in s")?.0,
            keep_alive: time_or_none(of, "keep_alive_s")?,
            idle_limit: time_or_none(of, "idle_limit_s")?,
            send_coverage: field(of, "send_coverage", COVERAGE)?,
            least_coverage: field(of, "least_coverage", COVERAGE)?,
            data_checksum: field(of, "data_checksum", SWITCH)?,
            deliver_corrupt: field(of, "deliver_corrupt", SWITCH)?,
            ecn: field(of, "ecn", SWITCH)?,
            path_mtu: field(of, "path_mtu", "int, 0 to 65535")?,
            request_retries: field(of, "request_retries", "int, 0 or more")?,
            server_timewait: field(of, "server_timewait", SWITCH)?,
        })
    }
}

/// Reads a field of the settings. Errors name the field, because the settings may have been created
/// far from this call.
fn field<T>(options: &Bound<'_, PyAny>, name: &str, what: &str) -> PyResult<T>
where
    T: for<'a, 'py> FromPyObject<'a, 'py, Error = PyErr>,
{
    read(&options.getattr(name)?, &format!("Options.{name}"), what)
}

/// Reads a value. The error gives its name and the values that are allowed.
pub(super) fn read<T>(value: &Bound<'_, PyAny>, name: &str, what: &str) -> PyResult<T>
where
    T: for<'a, 'py> FromPyObject<'a, 'py, Error = PyErr>,
{
    value.extract().map_err(|error: PyErr| {
        let py = value.py();
        let given = value.repr().map_or_else(|_| "that".to_owned(), |text| text.to_string());
        let says = format!("{name} must be {what}, not {given}");
        if error.is_instance_of::<PyOverflowError>(py) {
            PyOverflowError::new_err(says)
        } else if error.is_instance_of::<PyValueError>(py) {
            PyValueError::new_err(says)
        } else {
            PyTypeError::new_err(says)
        }
    })
}

/// Reads a limit of at least one.
fn count(options: &Bound<'_, PyAny>, name: &str) -> PyResult<usize> {
    Ok(field::<NonZeroUsize>(options, name, COUNT)?.get())
}

fn time_or_none(options: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Duration>> {
    read_time_or_none(&options.getattr(name)?, &format!("Options.{name}"))
}

/// Reads a time in seconds or `None`, like [`read`].
pub(super) fn read_time_or_none(
    value: &Bound<'_, PyAny>,
    name: &str,
) -> PyResult<Option<Duration>> {
    let time: Option<Seconds> = read(value, name, "a time in s, or None")?;
    Ok(time.map(|time| time.0))
}

/// A time given in seconds.
struct Seconds(Duration);

impl FromPyObject<'_, '_> for Seconds {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        duration(value.extract()?).map(Self)
    }
}

/// Converts seconds to a duration.
///
/// # Errors
/// `ValueError` if the time is negative, not a number or too long.
pub(super) fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err(format!("{seconds} s is not a time to wait")))
}

impl Settings {
    /// The settings for a connection, or for those that a listener accepts.
    pub(super) fn options(&self) -> Options {
        let policy = if self.drop_lowest { QueuePolicy::DropLowest } else { QueuePolicy::Refuse };
        Options::new()
            .tx_ccids(self.tx_ccids.clone())
            .rx_ccids(self.rx_ccids.clone())
            .send_queue(self.send_queue_bytes, self.send_queue_messages)
            .recv_queue(self.recv_queue_bytes, self.recv_queue_messages)
            .queue_policy(policy)
            .close_linger(self.linger)
            .keep_alive(self.keep_alive)
            .idle_limit(self.idle_limit)
            .send_cscov(self.send_coverage)
            .min_cscov(self.least_coverage)
            .data_checksum(self.data_checksum)
            .deliver_corrupt(self.deliver_corrupt)
            .ecn(self.ecn)
            .path_mtu(self.path_mtu)
            .request_retries(self.request_retries)
            .server_timewait(self.server_timewait)
    }
}

/// The system settings of a socket, from the dataclass `udccp.socket._options.EndpointSettings`.
#[derive(FromPyObject)]
pub(super) struct EndpointSettings {
    raw_ip: bool,
    reuse_port: bool,
    recv_buffer: Option<usize>,
    send_buffer: Option<usize>,
    ttl: Option<u8>,
    dscp: u8,
    device: Option<String>,
    mark: Option<u32>,
}

impl EndpointSettings {
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

/// The number of a service code in the format of RFC 4340 section 8.1.2, for example `SC:echo` or
/// `SC=1701`.
#[pyfunction]
pub(super) fn service_number(text: &str) -> PyResult<u32> {
    let code: ServiceCode =
        text.parse().map_err(|e| PyValueError::new_err(format!("\"{text}\": {e}")))?;
    Ok(code.0)
}

/// A service code in the format of RFC 4340 section 8.1.2.
#[pyfunction]
pub(super) fn service_text(number: u32) -> String {
    ServiceCode(number).to_string()
}
