//! Settings of connections.

use std::ffi::{c_int, c_void};
use std::time::Duration;

use udccp::QueuePolicy;

use crate::error::{Failure, otherwise, status};
use crate::pointer;
use crate::send::copied;

/// Of one list (RFC 4340 section 6.3.1: the values of a feature fill one option).
const MOST_CCIDS: usize = 250;

/// A full send queue makes `udccp_send` wait (the default).
pub const UDCCP_QUEUE_REFUSE: c_int = 0;
/// A full send queue drops the newest message of the lowest priority for one of a higher priority.
/// `udccp_send` waits only where all that wait are as important as the new message.
pub const UDCCP_QUEUE_DROP_LOWEST: c_int = 1;

/// Settings of connections, and of the UDP or raw socket below. One object may serve any number of
/// calls, which copy what they need; NULL stands for the defaults. To be changed by one thread at a
/// time.
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

/// A limit of a queue.
pub(crate) fn limits(bytes: usize, messages: usize) -> Result<(usize, usize), Failure> {
    if bytes == 0 || messages == 0 {
        return Err(Failure::invalid("a queue needs room for one message", "give 1 or more"));
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

/// New settings with the default values; NULL only where memory is exhausted.
#[unsafe(no_mangle)]
pub extern "C" fn udccp_options_new() -> *mut Options {
    otherwise(std::ptr::null_mut(), || Ok(Box::into_raw(Box::default())))
}

/// Frees settings; connections made with them keep theirs. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_free(options: *mut Options) {
    otherwise((), || {
        drop(pointer::take_back(options));
        Ok(())
    });
}

/// One CCID and no other, both ways (default: 2, or 3 or 4 if the peer asks for it alone). Whether
/// the library has it shows when it is used: `-EOPNOTSUPP`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_ccid(options: *mut Options, ccid: u8) -> c_int {
    change(options, |o| Ok(o.ccid(ccid)))
}

/// CCIDs for the data that we send, best first (default 2, 3, 4). The listener's order counts.
///
/// Errors: `-EINVAL`: the list is empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_tx_ccids(
    options: *mut Options,
    first: *const u8,
    n: usize,
) -> c_int {
    change(options, |o| Ok(o.tx_ccids(ccids(first, n)?)))
}

/// CCIDs for the data that we receive, best first (default 2, 3, 4).
///
/// Errors: `-EINVAL`: the list is empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_rx_ccids(
    options: *mut Options,
    first: *const u8,
    n: usize,
) -> c_int {
    change(options, |o| Ok(o.rx_ccids(ccids(first, n)?)))
}

/// Checksum coverage of the data that we send, and the least that we accept, 0 to 15 (default 0:
/// everything; RFC 4340 section 9.2).
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
        n => Err(Failure::invalid(
            &format!("a checksum coverage of {n} does not exist"),
            "use 0 to 15",
        )),
    })
}

/// What may wait to be sent (default 1 MiB, 512 messages).
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

/// What may wait to be read (default 1 MiB, 1024 messages). The peer is slowed down as the queue
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

/// What a full send queue does: `UDCCP_QUEUE_REFUSE` or `UDCCP_QUEUE_DROP_LOWEST`.
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

/// Silence of the peer after which it is probed, in milliseconds (default 25,000); 0: never. Has to
/// be shorter than the idle limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_keep_alive_ms(options: *mut Options, ms: u32) -> c_int {
    change(options, |o| Ok(o.keep_alive((ms > 0).then(|| millis(ms)))))
}

/// Silence of the peer after which it is gone, in milliseconds (default 120,000); 0: never.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_idle_limit_ms(options: *mut Options, ms: u32) -> c_int {
    change(options, |o| Ok(o.idle_limit((ms > 0).then(|| millis(ms)))))
}

/// Requests sent again before a connect fails (default 6), and the time before the first of them in
/// milliseconds (default 1000, doubling).
///
/// Errors: `-EINVAL`: the time is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_request_retries(
    options: *mut Options,
    retries: u32,
    first_after_ms: u32,
) -> c_int {
    change(options, |o| match first_after_ms {
        0 => Err(Failure::invalid("a Request cannot be repeated at once", "give 1 ms or more")),
        ms => Ok(o.request_retries(retries).initial_rto(millis(ms))),
    })
}

/// Use ECN (default true).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_ecn(options: *mut Options, ecn: bool) -> c_int {
    change(options, |o| Ok(o.ecn(ecn)))
}

/// Carry a CRC-32c of the data (default false), and deliver data that it shows to be corrupt with a
/// mark instead of dropping it (default false).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_data_checksum(
    options: *mut Options,
    checksum: bool,
    deliver_corrupt: bool,
) -> c_int {
    change(options, |o| Ok(o.data_checksum(checksum).deliver_corrupt(deliver_corrupt)))
}

/// Path MTU in bytes, IP header included, at most (default 1500).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_path_mtu(options: *mut Options, bytes: u16) -> c_int {
    change(options, |o| Ok(o.path_mtu(bytes)))
}

/// Hold TIMEWAIT at the server when it closes (default false: the client holds it).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_server_timewait(
    options: *mut Options,
    holds: bool,
) -> c_int {
    change(options, |o| Ok(o.server_timewait(holds)))
}

/// Listeners: connections that may be in handshake or wait for `udccp_accept` (default 128).
///
/// Errors: `-EINVAL`: 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_backlog(options: *mut Options, n: usize) -> c_int {
    change(options, |o| match n {
        0 => Err(Failure::invalid("a backlog of 0 takes nobody", "give 1 or more")),
        n => Ok(o.backlog(n)),
    })
}

/// Clients: our DCCP port (default: an ephemeral one).
///
/// Errors: `-EINVAL`: 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_local_port(options: *mut Options, port: u16) -> c_int {
    change(options, |o| match port {
        0 => Err(Failure::invalid("port 0 is no port", "leave it out for an ephemeral port")),
        port => Ok(o.local_port(port)),
    })
}

/// Clients: data that goes with the Request and so arrives a round-trip time earlier (default:
/// none). It is copied.
///
/// Errors: `-EMSGSIZE`: longer than any message.
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
