//! Settings of the UDP or raw socket that carries the connections.

use std::ffi::{c_char, c_int};

use udccp::EndpointOptions;

use crate::error::{Failure, status};
use crate::options::Options;
use crate::pointer;

/// Changes settings of the socket.
fn change(
    options: *mut Options,
    with: impl FnOnce(EndpointOptions) -> Result<EndpointOptions, Failure>,
) -> c_int {
    status(|| {
        let options = pointer::handle_mut(options)?;
        options.endpoint = with(options.endpoint.clone())?;
        Ok(())
    })
}

/// Time to live (IPv4) or hop limit (IPv6) of packets, 1 to 255 (default: the system's, usually
/// 64).
///
/// Errors: `-EINVAL`: 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_ttl(options: *mut Options, ttl: u8) -> c_int {
    change(options, |o| match ttl {
        0 => Err(Failure::invalid("a time to live of 0 cannot be used", "use 1 to 255")),
        ttl => Ok(o.ttl(ttl)),
    })
}

/// Differentiated services code point of packets, 0 to 63 (RFC 2474; default 0). 46 is expedited
/// forwarding, as for voice. UDP packets are then sent without segmentation offload.
///
/// Errors: `-EINVAL`: above 63.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_dscp(options: *mut Options, code_point: u8) -> c_int {
    change(options, |o| match code_point {
        0..=63 => Ok(o.dscp(code_point)),
        n => Err(Failure::invalid(&format!("{n} is not a code point"), "use 0 to 63")),
    })
}

/// Firewall mark of packets, for routing and filter rules (Linux; needs CAP_NET_ADMIN; default:
/// none).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_mark(options: *mut Options, mark: u32) -> c_int {
    change(options, |o| Ok(o.mark(mark)))
}

/// Send and receive only on this network interface, for example "eth0" (Linux; default: the routes
/// decide).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_device(
    options: *mut Options,
    name: *const c_char,
) -> c_int {
    change(options, |o| match pointer::text(name)? {
        "" => Err(Failure::invalid("the name of an interface is empty", "for example \"eth0\"")),
        name => Ok(o.device(name)),
    })
}

/// Share the UDP port with other sockets that set this too (default false). The kernel distributes
/// clients among them by address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_reuse_port(options: *mut Options, reuse: bool) -> c_int {
    change(options, |o| Ok(o.reuse_port(reuse)))
}

/// Sizes of the kernel's buffers in bytes (default 4 MiB to receive). A `send_bytes` of 0, the
/// default, stands for the system's.
///
/// Errors: `-EINVAL`: nothing could be received.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_kernel_buffers(
    options: *mut Options,
    recv_bytes: usize,
    send_bytes: usize,
) -> c_int {
    change(options, |o| {
        if recv_bytes == 0 {
            return Err(Failure::invalid(
                "a receive buffer of 0 bytes cannot be used",
                "give 1 or more",
            ));
        }
        let o = o.recv_buffer(recv_bytes);
        Ok(if send_bytes == 0 { o } else { o.send_buffer(send_bytes) })
    })
}

/// Whether the end of the process closes open connections and waits for it (default true). With
/// false, they end without any packet to their peers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_options_set_close_at_exit(
    options: *mut Options,
    close: bool,
) -> c_int {
    change(options, |o| Ok(o.close_at_exit(close)))
}
