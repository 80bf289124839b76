//! Support for a DLL on Windows, whose exit functions run after all other threads have ended.

#![expect(unsafe_code, reason = "no safe crate offers these two calls")]

use std::ffi::c_void;

#[link(name = "ntdll")]
unsafe extern "system" {
    fn RtlDllShutdownInProgress() -> u8;
}

#[link(name = "kernel32")]
unsafe extern "system" {
    fn GetModuleHandleExW(flags: u32, address: *const c_void, module: *mut *mut c_void) -> i32;
}

const PIN: u32 = 1;
const FROM_ADDRESS: u32 = 4;

/// Whether no other thread runs any more, so that waiting is useless.
pub(super) fn is_too_late() -> bool {
    // SAFETY: it has no arguments and reads a flag of the loader.
    unsafe { RtlDllShutdownInProgress() != 0 }
}

/// Keeps this code in memory until the process ends, because its threads run it until then.
pub(super) fn stay_loaded() {
    let mut module = std::ptr::null_mut();
    let here = std::ptr::from_ref(&PIN).cast();
    // SAFETY: `here` lies in this module, and `module` has room for a handle.
    let _ = unsafe { GetModuleHandleExW(PIN | FROM_ADDRESS, here, &raw mut module) };
}
