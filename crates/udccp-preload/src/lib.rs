//! Gives programs that call `socket(AF_INET, SOCK_DCCP, IPPROTO_DCCP)` the DCCP of udccp, on
//! kernels without DCCP.
//!
//! The crate is compiled twice. `build.rs` builds the shared library that `udccp run` preloads: the
//! C names of the socket calls, without the Rust standard library and without linked libraries. The
//! ordinary build embeds that library ([`LIBRARY`]) and shares [`protocol`] with the broker.
//!
//! # How it works
//! A DCCP socket of the program is one end of a Unix socket pair (SEQPACKET); the broker holds the
//! other end and runs the protocol. So poll, select, epoll, dup, fork, exec, SCM_RIGHTS, fcntl and
//! close work without this library. It intercepts the calls whose meaning differs:
//!
//! - `socket`, `bind`, `listen`, `connect`, `accept`, `shutdown`, options and addresses: a request
//!   to the broker, over a separate connection that ends with the call. No connection is kept open,
//!   so a program that closes every descriptor, forks or executes another program loses nothing.
//! - Sending and receiving: messages go through shared memory ([`ring`]), while the descriptor
//!   stays readable and writable as if they went through the pair. Some messages do go through the
//!   pair: those of programs that cannot map the memory, and those that bypass this library
//!   (io_uring, the C library's buffered streams). Toward the broker they are frames of constant
//!   size. The kernel charges the same for each frame, so the send buffer holds a fixed number of
//!   messages. Toward the program each message is a plain packet. A message of length zero is an
//!   empty packet, and the next read continues after it.
//!
//! To tell DCCP sockets apart, the library uses the number that the kernel gives every socket and
//! never reuses (`SO_COOKIE`). Each call reads the cookie and looks it up. No table of descriptors
//! can become stale, whoever closes, duplicates or inherits them.
//!
//! This crate cannot avoid unsafe code: its callers are C programs, and all it knows of their
//! pointers is what the C interface promises.

#![cfg_attr(udccp_shim, no_std)]

#[cfg(target_os = "linux")]
pub mod abi;
#[cfg(target_os = "linux")]
pub mod calls;
#[cfg(target_os = "linux")]
pub mod data;
#[cfg(target_os = "linux")]
pub mod find;
#[cfg(target_os = "linux")]
pub mod names;
#[cfg(target_os = "linux")]
pub mod options;
#[cfg(target_os = "linux")]
pub mod probe;
pub mod protocol;
#[cfg(target_os = "linux")]
pub mod receive;
#[cfg(target_os = "linux")]
pub mod ring;
#[cfg(target_os = "linux")]
pub mod rings;
#[cfg(target_os = "linux")]
pub mod rpc;
#[cfg(all(target_os = "linux", not(udccp_shim)))]
pub mod sigpipe;
#[cfg(target_os = "linux")]
pub mod start;
#[cfg(target_os = "linux")]
pub mod sys;

/// The shared library to preload, as file contents; empty on unsupported systems.
#[cfg(not(udccp_shim))]
pub const LIBRARY: &[u8] = include_bytes!(env!("UDCCP_PRELOAD"));

/// A panic is a bug in this library; the program cannot go on without its sockets.
#[cfg(udccp_shim)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    sys::abort()
}

// The precompiled `core` refers to this symbol, but nothing unwinds here. It is hidden: otherwise
// programs that share the Rust standard library would use it in place of the real one, and could
// not unwind.
#[cfg(udccp_shim)]
core::arch::global_asm!(
    ".globl rust_eh_personality",
    ".hidden rust_eh_personality",
    "rust_eh_personality:",
    "ret",
);

#[cfg(test)]
mod tests {
    #[test]
    fn rust_runtime_symbols_are_hidden() {
        // The only symbol names in the library are those of its visible symbols.
        let visible = |name: &[u8]| super::LIBRARY.windows(name.len()).any(|part| part == name);
        assert!(super::LIBRARY.is_empty() || visible(b"\0recvmsg\0"));
        assert!(!visible(b"rust_eh_personality") && !visible(b"rust_begin_unwind"));
    }
}
