//! Settings of a connection by name.

use udccp_base::Duration;
use udccp_proto::{ConnectionConfig, ConnectionStats, InitCookies, PmtuProbing, QueuePolicy};

use crate::error::ScriptError;
use crate::script::Setting;
use crate::tokens::{span, whole};

const NAMES: [&str; 42] = [
    "ccids",
    "init_cookies",
    "cookie_lifetime",
    "deliver_corrupt",
    "pmtu_probing",
    "tx_ccids",
    "rx_ccids",
    "sequence_window",
    "send_queue_packets",
    "send_queue_bytes",
    "queue_policy",
    "recv_queue_bytes",
    "recv_queue_packets",
    "hold_acks_when_full",
    "ecn",
    "short_seqnos",
    "send_cscov",
    "min_cscov",
    "data_checksum",
    "ndp_count",
    "handshake_timestamps",
    "path_mtu",
    "keep_alive",
    "keep_alive_probes",
    "idle_limit",
    "pmtu_floor",
    "silence_timeout",
    "close_linger",
    "initial_rto",
    "request_retries",
    "handshake_timeout",
    "close_retries",
    "timewait",
    "server_timewait",
    "sync_interval",
    "udp",
    "ip",
    "service",
    "backlog",
    "resets",
    "connections",
    "timewaits",
];

/// Applies a setting of a connection. Returns true if the name is not one.
pub(crate) fn apply(
    config: &mut ConnectionConfig,
    line: usize,
    (name, values): &Setting,
) -> Result<bool, ScriptError> {
    let v = Value { line, name, values };
    match name.as_str() {
        "tx_ccids" => config.tx_ccids = v.list()?,
        "rx_ccids" => config.rx_ccids = v.list()?,
        "ccids" => {
            config.tx_ccids = v.list()?;
            config.rx_ccids = v.list()?;
        }
        "sequence_window" => config.sequence_window = v.number()?,
        "send_queue_packets" => config.send_queue_packets = v.number()?,
        "send_queue_bytes" => config.send_queue_bytes = v.number()?,
        "queue_policy" => {
            config.queue_policy = match v.word() {
                "refuse" => QueuePolicy::Refuse,
                "drop-lowest" => QueuePolicy::DropLowest,
                other => {
                    let known = ["refuse", "drop-lowest"];
                    return Err(ScriptError::unknown(line, "queue policy", other, &known));
                }
            }
        }
        "recv_queue_bytes" => config.recv_queue_bytes = v.number()?,
        "recv_queue_packets" => config.recv_queue_packets = v.number()?,
        "hold_acks_when_full" => config.hold_acks_when_full = v.flag()?,
        "ecn" => config.ecn = v.flag()?,
        "short_seqnos" => config.short_seqnos = v.flag()?,
        "send_cscov" => config.send_cscov = v.number()?,
        "min_cscov" => config.min_cscov = v.number()?,
        "data_checksum" => config.data_checksum = v.flag()?,
        "deliver_corrupt" => config.deliver_corrupt = v.flag()?,
        "pmtu_probing" => config.pmtu_probing = v.flag()?.then(PmtuProbing::default),
        "ndp_count" => config.ndp_count = v.flag()?,
        "handshake_timestamps" => config.handshake_timestamps = v.flag()?,
        "path_mtu" => config.path_mtu = v.number()?,
        "keep_alive" => config.keep_alive = Some(v.time()?),
        "keep_alive_probes" => config.keep_alive_probes = v.number()?,
        "idle_limit" => config.idle_limit = Some(v.time()?),
        "pmtu_floor" => config.pmtu_floor = Some(v.number()?),
        "silence_timeout" => config.silence_timeout = v.time()?,
        "close_linger" => config.close_linger = v.time()?,
        "initial_rto" => config.initial_rto = v.time()?,
        "request_retries" => config.request_retries = v.number()?,
        "handshake_timeout" => config.handshake_timeout = v.time()?,
        "close_retries" => config.close_retries = v.number()?,
        "timewait" => config.timewait = v.time()?,
        "server_timewait" => config.server_timewait = v.flag()?,
        "sync_interval" => config.sync_interval = v.time()?,
        _ => return Ok(true),
    }
    Ok(false)
}

/// Parses when a listener uses Init Cookies.
pub(crate) fn init_cookies(v: &Value<'_>) -> Result<InitCookies, ScriptError> {
    match v.word() {
        "never" => Ok(InitCookies::Never),
        "under-load" => Ok(InitCookies::UnderLoad),
        "always" => Ok(InitCookies::Always),
        other => {
            let known = ["never", "under-load", "always"];
            Err(ScriptError::unknown(v.line, "use of Init Cookies", other, &known))
        }
    }
}

/// The error for an unknown setting.
pub(crate) fn unknown(line: usize, name: &str) -> ScriptError {
    ScriptError::unknown(line, "setting", name, &NAMES)
}

/// The value of a setting.
pub(crate) struct Value<'a> {
    pub(crate) line: usize,
    pub(crate) name: &'a str,
    pub(crate) values: &'a [String],
}

impl Value<'_> {
    pub(crate) fn word(&self) -> &str {
        self.values.first().map_or("", |v| v)
    }

    fn wrong<T>(&self, what: &str) -> Result<T, ScriptError> {
        Err(ScriptError::new(
            self.line,
            format!("{} must be {what}, not {:?}", self.name, self.word()),
        ))
    }

    pub(crate) fn number<T: TryFrom<i128>>(&self) -> Result<T, ScriptError> {
        let value = whole(self.word()).and_then(|n| T::try_from(n).ok());
        value.map_or_else(|| self.wrong("a number that fits"), Ok)
    }

    fn flag(&self) -> Result<bool, ScriptError> {
        match self.word() {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => self.wrong("on or off"),
        }
    }

    pub(crate) fn time(&self) -> Result<Duration, ScriptError> {
        span(self.word()).map_or_else(|| self.wrong("a time"), |n| Ok(Duration::from_nanos(n)))
    }

    fn list(&self) -> Result<Vec<u8>, ScriptError> {
        let all: Option<Vec<u8>> = self.values.iter().map(|v| v.parse().ok()).collect();
        all.map_or_else(|| self.wrong("CCIDs with commas between"), Ok)
    }
}

const STATISTICS: [&str; 26] = [
    "cwnd",
    "ssthresh",
    "pipe",
    "rate",
    "tx_ccid",
    "rx_ccid",
    "mps",
    "srtt_us",
    "rto_us",
    "queued",
    "unread",
    "acked",
    "lost",
    "ce",
    "congestion_events",
    "timeouts",
    "syncs_limited",
    "sequence_invalid",
    "unexpected_type",
    "coverage_too_small",
    "bad_options",
    "duplicates",
    "corrupt",
    "receive_queue_full",
    "not_listening",
    "constraints",
];

/// A statistic by name; `None` if the connection does not have it now.
pub(crate) fn statistic(
    s: &ConnectionStats,
    line: usize,
    name: &str,
) -> Result<Option<i128>, ScriptError> {
    let (c, d) = (&s.counters, &s.counters.drops);
    let of = |n: Option<u32>| n.map(i128::from);
    let us = |d: Option<Duration>| d.map(|d| i128::from(d.as_nanos() / 1000));
    Ok(match name {
        "cwnd" => of(s.cwnd_packets),
        "ssthresh" => of(s.ssthresh_packets),
        "pipe" => of(s.pipe_packets),
        "rate" => s.x_bytes_per_sec.map(|x| x as i128),
        "tx_ccid" => s.tx_ccid.map(i128::from),
        "rx_ccid" => s.rx_ccid.map(i128::from),
        "mps" => Some(s.max_message_size as i128),
        "srtt_us" => us(s.srtt),
        "rto_us" => us(s.rto),
        "queued" => Some(s.send_queue_packets as i128),
        "unread" => Some(s.recv_queue_packets as i128),
        "acked" => Some(c.data_packets_acked.into()),
        "lost" => Some(c.data_packets_lost.into()),
        "ce" => Some(c.ecn_ce_received.into()),
        "congestion_events" => Some(s.congestion_events.into()),
        "timeouts" => Some(s.timeouts.into()),
        "syncs_limited" => Some(c.syncs_limited.into()),
        "sequence_invalid" => Some(d.sequence_invalid.into()),
        "unexpected_type" => Some(d.unexpected_type.into()),
        "coverage_too_small" => Some(d.coverage_too_small.into()),
        "bad_options" => Some(d.bad_options.into()),
        "duplicates" => Some(d.duplicates.into()),
        "corrupt" => Some(d.corrupt_payload.into()),
        "receive_queue_full" => Some(d.receive_queue_full.into()),
        "not_listening" => Some(d.not_listening.into()),
        "constraints" => Some(d.protocol_constraints.into()),
        other => return Err(ScriptError::unknown(line, "statistic", other, &STATISTICS)),
    })
}
