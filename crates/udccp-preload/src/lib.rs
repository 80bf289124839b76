//! Gives programs that call `socket(AF_INET, SOCK_DCCP, IPPROTO_DCCP)` the DCCP of udccp, on a
//! kernel that has none.
//!
//! The crate is compiled twice. `build.rs` makes the shared library that `udccp run` preloads: the
//! C names of the socket calls, without the Rust standard library, linked to nothing. The ordinary
//! build carries that library as bytes ([`LIBRARY`]) and shares [`protocol`] with the broker.
//!
//! # How it works
//! A DCCP socket of the program is one end of a Unix socket pair (SEQPACKET); the broker holds the
//! other end and owns the protocol. So poll, select, epoll, dup, fork, exec, SCM_RIGHTS, fcntl and
//! close work without this library. It intercepts the calls whose meaning differs:
//!
//! - `socket`, `bind`, `listen`, `connect`, `accept`, `shutdown`, the options and the names: a
//!   request to the broker, over a connection of its own that ends with the call. Nothing is kept
//!   open, so a program that closes every descriptor, forks or executes another one loses nothing.
//! - Sending and receiving: messages go through shared memory ([`ring`]); the descriptor stays
//!   readable and writable as if they went through the pair. Messages also go through the pair:
//!   those of programs that cannot map the memory, and those that never came to this library
//!   (io_uring, the C library's buffered streams). To the broker they are frames of constant size,
//!   which the kernel charges all the same, so that the size of the send buffer is a number of
//!   messages. To the program each is a packet as it is; a message of length zero is a packet of
//!   length zero, and the next read goes on after it.
//!
//! Which descriptor is a DCCP socket? The kernel gives every socket a number that it never gives
//! again (`SO_COOKIE`). The library asks for it in each call and looks it up; no table of
//! descriptors can go stale, whoever closes, duplicates or inherits them.
//!
//! Unsafe code is the subject of this crate: its callers are C programs, and what a C call promises
//! about its pointers is all that is known of them.

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
#[cfg(target_os = "linux")]
pub mod start;
#[cfg(target_os = "linux")]
pub mod sys;

/// The shared library to preload, as a file's contents; empty on systems that it does not support.
#[cfg(not(udccp_shim))]
pub const LIBRARY: &[u8] = include_bytes!(env!("UDCCP_PRELOAD"));

/// A panic is a defect of this library; the program cannot go on without its sockets.
#[cfg(udccp_shim)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    sys::abort()
}

// Referenced by the precompiled `core`; nothing unwinds here. Hidden, since programs that share the
// Rust standard library would take it for the one of that name there, and could not unwind.
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
    fn no_name_of_the_rust_runtime_is_visible() {
        // The library has no other table of names than that of the visible ones.
        let visible = |name: &[u8]| super::LIBRARY.windows(name.len()).any(|part| part == name);
        assert!(super::LIBRARY.is_empty() || visible(b"\0recvmsg\0"));
        assert!(!visible(b"rust_eh_personality") && !visible(b"rust_begin_unwind"));
    }
}
