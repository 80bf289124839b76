//! Settings of connections.

use std::ffi::{c_int, c_void};
use std::time::Duration;

use udccp::QueuePolicy;

use crate::error::{Failure, or_return, status};
use crate::pointer;
use crate::send::copied;

/// Maximum length of a list (RFC 4340 section 6.3.1: the values of a feature must fit in one
/// option).
const MOST_CCIDS: usize = 250;

/// When the send queue is full, `udccp_send` waits (the default).
pub const UDCCP_QUEUE_REFUSE: c_int = 0;
/// When the send queue is full, the newest message of the lowest priority is dropped for one of
/// higher priority. `udccp_send` waits only if no queued message has a lower priority than the new
/// one.
pub const UDCCP_QUEUE_DROP_LOWEST: c_int = 1;

/// Settings of connections, and of the UDP or raw socket. One object can be used for any number of
/// calls, which copy what they need. NULL stands for the defaults. Only one thread at a time may
/// change it.
#[derive(Clone, Default)]
pub struct Options {
    pub(crate) connection: udccp::Options,
    pub(crate) endpoint: udccp::EndpointOptions,
}

impl Options {
    pub(crate) fn of(options: *const Self) -> Self {
        pointer::object(options).cloned().unwrap_or_default()
    }
}

/// Changes settings of connections.
fn change(
    options: *mut Options,
    with: impl FnOnce(udccp::Options) -> Result<udccp::Options, Failure>,
) -> c_int {
    status(|| {
        let options = pointer::handle_mut(options)?;
        options.connection = with(options.connection.clone())?;
        Ok(())
    })
}

/// A queue policy by its number.
pub(crate) fn policy(number: c_int) -> Result<QueuePolicy, Failure> {
    match number {
        UDCCP_QUEUE_REFUSE => Ok(QueuePolicy::Refuse),
        UDCCP_QUEUE_DROP_LOWEST => Ok(QueuePolicy::DropLowest),
        _ => Err(Failure::invalid(
            &format!("there is no queue policy {number}"),
            "use UDCCP_QUEUE_REFUSE or UDCCP_QUEUE_DROP_LOWEST",
        )),
    }
}

/// Checks the limits of a queue.
pub(crate) fn limits(bytes: usize, messages: usize) -> Result<(usize, usize), Failure> {
    if bytes == 0 || messages == 0 {
        return Err(Failure::invalid(
            "a queue needs room for at least one message",
            "give 1 or more",
        ));
    }
    Ok((bytes, messages))
}

fn ccids(first: *const u8, n: usize) -> Result<Vec<u8>, Failure> {
    if n > MOST_CCIDS {
        return Err(Failure::invalid(
            &format!("a list of {n} CCIDs is longer than {MOST_CCIDS}"),
            "give the true length",
        ));
    }
    match pointer::slice(first, n)? {
        [] => Err(Failure::invalid("the list of CCIDs is empty", "give one or more, best first")),
        ccids => Ok(ccids.to_vec()),
    }
}

/// Creates settings with the default values; NULL only if memory is exhausted.
#[unsafe(no_mangle)]
pub extern "C" fn udccp_options_new() -> *mut Options {
    or_return(std::ptr::null_mut(), || Ok(Box::into_raw(Box::default())))
}

/// Frees settings. Connections made with them keep theirs. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_free(options: *mut Options) {
    or_return((), || {
        drop(pointer::take_back(options));
        Ok(())
    });
}

/// Uses this CCID only, in both directions (default: 2, or 3 or 4 if the peer offers only that
/// one). A CCID that the library does not have fails when the settings are used: `-EOPNOTSUPP`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_ccid(options: *mut Options, ccid: u8) -> c_int {
    change(options, |o| Ok(o.ccid(ccid)))
}

/// CCIDs for the data that we send, the preferred one first (default 2, 3, 4). If both sides have
/// several in common, the server's order decides.
///
/// Errors: `-EINVAL`: the list is empty or has more than 250 entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_tx_ccids(
    options: *mut Options,
    first: *const u8,
    n: usize,
) -> c_int {
    change(options, |o| Ok(o.tx_ccids(ccids(first, n)?)))
}

/// CCIDs for the data that we receive, the preferred one first (default 2, 3, 4).
///
/// Errors: `-EINVAL`: the list is empty or has more than 250 entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_rx_ccids(
    options: *mut Options,
    first: *const u8,
    n: usize,
) -> c_int {
    change(options, |o| Ok(o.rx_ccids(ccids(first, n)?)))
}

/// Checksum coverage of the data that we send, and the smallest that we accept, each 0 to 15
/// (default 0: everything; RFC 4340 section 9.2).
///
/// Errors: `-EINVAL`: above 15.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_coverage(
    options: *mut Options,
    send: u8,
    least: u8,
) -> c_int {
    change(options, |o| match send.max(least) {
        0..=15 => Ok(o.send_cscov(send).min_cscov(least)),
        n => Err(Failure::invalid(&format!("{n} is not a checksum coverage"), "use 0 to 15")),
    })
}

/// Limits of the send queue (default 1 MiB, 512 messages).
///
/// Errors: `-EINVAL`: a limit is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_send_queue(
    options: *mut Options,
    bytes: usize,
    messages: usize,
) -> c_int {
    change(options, |o| limits(bytes, messages).map(|(bytes, n)| o.send_queue(bytes, n)))
}

/// Limits of the receive queue (default 1 MiB, 1024 messages). The peer is slowed down as the queue
/// fills.
///
/// Errors: `-EINVAL`: a limit is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_recv_queue(
    options: *mut Options,
    bytes: usize,
    messages: usize,
) -> c_int {
    change(options, |o| limits(bytes, messages).map(|(bytes, n)| o.recv_queue(bytes, n)))
}

/// What happens when the send queue is full: `UDCCP_QUEUE_REFUSE` (the default) or
/// `UDCCP_QUEUE_DROP_LOWEST`.
///
/// Errors: `-EINVAL`: neither.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_queue_policy(
    options: *mut Options,
    number: c_int,
) -> c_int {
    change(options, |o| policy(number).map(|policy| o.queue_policy(policy)))
}

/// How long a close may take to deliver what is queued, in milliseconds (default 5000), and how
/// long the end of the process waits for it. 0: a close resets the connection at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_linger_ms(options: *mut Options, ms: u32) -> c_int {
    change(options, |o| Ok(o.close_linger(millis(ms))))
}

/// Silence of the peer after which it is sent a probe, in milliseconds (default 25,000; 0: no
/// probes). Must be shorter than the idle limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_keep_alive_ms(options: *mut Options, ms: u32) -> c_int {
    change(options, |o| Ok(o.keep_alive((ms > 0).then(|| millis(ms)))))
}

/// Silence of the peer after which the connection ends with an error, in milliseconds (default
/// 120,000; 0: never).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_idle_limit_ms(options: *mut Options, ms: u32) -> c_int {
    change(options, |o| Ok(o.idle_limit((ms > 0).then(|| millis(ms)))))
}

/// Retransmissions of a Request before connecting fails (default 6), and the time before the first
/// in milliseconds (default 1000; it doubles with each).
///
/// Errors: `-EINVAL`: the time is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_request_retries(
    options: *mut Options,
    retries: u32,
    first_after_ms: u32,
) -> c_int {
    change(options, |o| match first_after_ms {
        0 => Err(Failure::invalid(
            "the first Request cannot be repeated after 0 ms",
            "give 1 ms or more",
        )),
        ms => Ok(o.request_retries(retries).initial_rto(millis(ms))),
    })
}

/// Use ECN (default true, RFC 4340 section 12).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_ecn(options: *mut Options, ecn: bool) -> c_int {
    change(options, |o| Ok(o.ecn(ecn)))
}

/// Send a CRC-32c of the data, and ask the peer for one (default false); and deliver data that it
/// shows to be corrupt, with a mark, instead of dropping it (default false; RFC 4340 section 9.3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_data_checksum(
    options: *mut Options,
    checksum: bool,
    deliver_corrupt: bool,
) -> c_int {
    change(options, |o| Ok(o.data_checksum(checksum).deliver_corrupt(deliver_corrupt)))
}

/// Upper limit of the path MTU in bytes, IP header included (default 1500).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_path_mtu(options: *mut Options, bytes: u16) -> c_int {
    change(options, |o| Ok(o.path_mtu(bytes)))
}

/// The server holds TIMEWAIT if it closes (default false: the client holds it).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_server_timewait(
    options: *mut Options,
    holds: bool,
) -> c_int {
    change(options, |o| Ok(o.server_timewait(holds)))
}

/// Listeners: how many connections may be in the handshake or wait for `udccp_accept` (default
/// 128).
///
/// Errors: `-EINVAL`: 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_backlog(options: *mut Options, n: usize) -> c_int {
    change(options, |o| match n {
        0 => Err(Failure::invalid("a backlog of 0 accepts no connections", "give 1 or more")),
        n => Ok(o.backlog(n)),
    })
}

/// Clients: our DCCP port (default: an ephemeral one).
///
/// Errors: `-EINVAL`: 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_local_port(options: *mut Options, port: u16) -> c_int {
    change(options, |o| match port {
        0 => Err(Failure::invalid("port 0 cannot be used", "leave it out for an ephemeral port")),
        port => Ok(o.local_port(port)),
    })
}

/// Clients: data to send with the Request, which arrives a round-trip time earlier (default: none).
/// It is copied.
///
/// Errors: `-EMSGSIZE`: longer than `UDCCP_MAX_MESSAGE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_request_data(
    options: *mut Options,
    data: *const c_void,
    len: usize,
) -> c_int {
    change(options, |o| Ok(o.request_data(copied(data, len)?)))
}

pub(crate) fn millis(ms: u32) -> Duration {
    Duration::from_millis(ms.into())
}
