//! SIGPIPE as the process was started with it. Rust ignores the signal before `main`, and
//! `udccp run` becomes a program that expects what its own caller chose.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::sys;

static IS_DEFAULT: AtomicBool = AtomicBool::new(false);

extern "C" fn remember() {
    IS_DEFAULT.store(sys::is_default(sys::SIGPIPE), Ordering::Relaxed);
}

/// Constructors run before Rust's start-up code.
#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER: extern "C" fn() = remember;

/// Undoes what Rust's start-up code did.
pub fn restore() {
    if IS_DEFAULT.load(Ordering::Relaxed) {
        sys::set_default(sys::SIGPIPE);
    }
}
