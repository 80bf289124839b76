//! Finds the broker and starts it on demand.

use core::ffi::{c_char, c_int};
use core::ptr::null;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::abi::{AF_UNIX, SockAddrUn};
use crate::protocol::{ENV_BROKER, ENV_DIR, ENV_SETTINGS};
use crate::sys;

const LONGEST: usize = 1024;

/// An environment variable, saved at program start because programs clear their environment.
struct SavedVariable {
    bytes: core::cell::UnsafeCell<[u8; LONGEST]>,
    is_set: AtomicBool,
}

// SAFETY: written once, by the constructor, before the program has a second thread.
unsafe impl Sync for SavedVariable {}

impl SavedVariable {
    const fn new() -> Self {
        let bytes = core::cell::UnsafeCell::new([0; LONGEST]);
        Self { bytes, is_set: AtomicBool::new(false) }
    }

    fn save(&self, name: &str) {
        let mut c_name = [0u8; 64];
        c_name[..name.len()].copy_from_slice(name.as_bytes());
        let Ok(c_name) = core::ffi::CStr::from_bytes_until_nul(&c_name) else { return };
        let value = sys::environment(c_name);
        if value.is_null() {
            return;
        }
        // SAFETY: strings from getenv end with a zero byte; only the constructor calls this.
        unsafe {
            let len = sys::length(value);
            if len < LONGEST {
                core::ptr::copy_nonoverlapping(value.cast(), self.bytes.get().cast::<u8>(), len);
                self.is_set.store(true, Ordering::Release);
            }
        }
    }

    /// The value up to its first zero byte; `None` if it was not set.
    fn get(&self) -> Option<&[u8]> {
        if !self.is_set.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: nothing writes after `is_set` is true.
        let bytes = unsafe { &*self.bytes.get() };
        let len = bytes.iter().position(|b| *b == 0).unwrap_or(LONGEST);
        Some(&bytes[..len])
    }

    /// The value as a C string.
    fn as_c(&self) -> *const c_char {
        self.bytes.get().cast()
    }
}

static DIR: SavedVariable = SavedVariable::new();
static BROKER: SavedVariable = SavedVariable::new();
static SETTINGS: SavedVariable = SavedVariable::new();

/// Saves the environment before the program can change it.
pub extern "C" fn remember() {
    DIR.save(ENV_DIR);
    BROKER.save(ENV_BROKER);
    SETTINGS.save(ENV_SETTINGS);
}

#[cfg(udccp_shim)]
#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER: extern "C" fn() = remember;

/// The settings of new sockets.
pub fn settings() -> &'static [u8] {
    SETTINGS.get().unwrap_or_default()
}

/// The address of the broker for this namespace.
pub fn address() -> Option<SockAddrUn> {
    let mut address = SockAddrUn { family: AF_UNIX as u16, path: [0; 108] };
    let mut name = [0u8; 40];
    let parts: [&[u8]; 4] =
        [DIR.get()?, b"/net-", decimal(sys::network_namespace(), &mut name), b".sock"];
    let mut at = 0;
    for part in parts {
        // The last byte stays zero.
        address.path[..107].get_mut(at..at + part.len())?.copy_from_slice(part);
        at += part.len();
    }
    Some(address)
}

fn decimal(mut number: u64, into: &mut [u8; 40]) -> &[u8] {
    let mut at = into.len();
    loop {
        at -= 1;
        into[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &into[at..];
        }
    }
}

/// Starts a broker that is not a child of the program. Returns whether it could try.
pub fn broker() -> bool {
    if BROKER.get().is_none() {
        return false;
    }
    let child = sys::fork_without_signal();
    if child < 0 {
        return false;
    }
    if child == 0 {
        // The broker's parent exits at once, so no process has to wait for the broker.
        if sys::fork_without_signal() == 0 {
            exec_broker();
        }
        sys::exit(0);
    }
    sys::wait_for_child(child as c_int);
    true
}

/// Runs the broker without the program's environment, in particular without this library.
fn exec_broker() -> ! {
    sys::detach();
    let arguments = [BROKER.as_c(), c"broker".as_ptr(), DIR.as_c(), null()];
    let environment = [c"PATH=/usr/bin:/bin".as_ptr(), null()];
    // SAFETY: both lists end with null, and all strings with zero.
    unsafe { sys::execve(BROKER.as_c(), arguments.as_ptr(), environment.as_ptr()) };
    sys::exit(127)
}
