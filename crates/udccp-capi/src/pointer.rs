//! Checks the arguments from C. All `unsafe` dereferences of the crate are here.
//!
//! The caller in C guarantees that a pointer is NULL or points to an object of its type that lives
//! during the call, and that a length does not exceed it. Everything else is checked.

use std::ffi::{CStr, c_char, c_int};
use std::time::Duration;

use udccp::{Error, Process};

use crate::error::Failure;

/// An object that belongs to the process that created it.
pub(crate) trait Owned {
    /// The process that created it.
    fn process(&self) -> Process;
}

/// The object of a handle. An error in a forked child, where none of its locks is touched.
pub(crate) fn handle<'a, T: Owned>(handle: *const T) -> Result<&'a T, Failure> {
    // SAFETY: guaranteed by the caller in C, see above.
    let owned = unsafe { handle.as_ref() }.ok_or(Failure::NO_HANDLE)?;
    if owned.process().is_current() { Ok(owned) } else { Err(Error::Forked.into()) }
}

/// The object of a handle, for changes; only one thread at a time may call it.
pub(crate) fn handle_mut<'a, T>(handle: *mut T) -> Result<&'a mut T, Failure> {
    // SAFETY: guaranteed by the caller in C, see above.
    unsafe { handle.as_mut() }.ok_or(Failure::NO_HANDLE)
}

/// An object passed by the caller in C.
pub(crate) fn object<'a, T>(object: *const T) -> Result<&'a T, Failure> {
    // SAFETY: guaranteed by the caller in C, see above.
    unsafe { object.as_ref() }.ok_or(Failure::NO_POINTER)
}

/// An array. The pointer of an empty one is not used.
pub(crate) fn slice<'a, T>(first: *const T, n: usize) -> Result<&'a [T], Failure> {
    check_array(first, n)?;
    // SAFETY: guaranteed by the caller in C, see above; the length was checked.
    Ok(if n == 0 { &[] } else { unsafe { std::slice::from_raw_parts(first, n) } })
}

/// An array to write to.
pub(crate) fn slice_mut<'a, T>(first: *mut T, n: usize) -> Result<&'a mut [T], Failure> {
    check_array(first, n)?;
    // SAFETY: as above.
    Ok(if n == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(first, n) } })
}

/// Checks that an array of this length is possible at this address.
pub(crate) fn check_array<T>(first: *const T, n: usize) -> Result<(), Failure> {
    if n == 0 {
        return Ok(());
    }
    if first.is_null() {
        return Err(Failure::NO_POINTER);
    }
    if n > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Failure::invalid(
            "a length is larger than the address space",
            "give the true length",
        ));
    }
    Ok(())
}

/// Copies as many bytes as fit to the caller's memory, which may be uninitialized. Returns their
/// number.
pub(crate) fn copy(from: &[u8], to: *mut u8, room: usize) -> Result<usize, Failure> {
    check_array(to, room)?;
    let n = from.len().min(room);
    if n > 0 {
        // SAFETY: the caller guarantees that `to` has room for `room` bytes; its buffers do not
        // overlap ours.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, n) };
    }
    Ok(n)
}

/// A C string.
pub(crate) fn text<'a>(text: *const c_char) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::NO_POINTER);
    }
    // SAFETY: guaranteed by the caller in C, see above; a text ends with a zero byte.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Failure::invalid("a text is not UTF-8", "write it in UTF-8"))
}

/// The destination of a result, checked before the work that produces the result.
pub(crate) struct Place<T>(*mut T);

impl<T> Place<T> {
    pub(crate) fn new(place: *mut T) -> Result<Self, Failure> {
        if place.is_null() { Err(Failure::NO_POINTER) } else { Ok(Self(place)) }
    }

    pub(crate) fn put(self, value: T) {
        // SAFETY: not NULL, and guaranteed by the caller in C, see above.
        unsafe { self.0.write(value) };
    }
}

impl<T> Place<*mut T> {
    /// The destination of a handle; it is set to NULL until there is one.
    pub(crate) fn for_handle(place: *mut *mut T) -> Result<Self, Failure> {
        let place = Self::new(place)?;
        Self(place.0).put(std::ptr::null_mut());
        Ok(place)
    }

    pub(crate) fn give(self, value: T) {
        self.put(Box::into_raw(Box::new(value)));
    }
}

/// Takes a handle back from C, to drop its object.
pub(crate) fn take_back<T>(handle: *mut T) -> Option<Box<T>> {
    // SAFETY: the caller guarantees that it is NULL, or was returned by `give` and not taken back
    // yet.
    (!handle.is_null()).then(|| unsafe { Box::from_raw(handle) })
}

/// A timeout from C: negative to wait for ever, 0 not to wait.
pub(crate) fn timeout(ms: c_int) -> Option<Duration> {
    u64::try_from(ms).ok().map(Duration::from_millis)
}

/// Copies as many bytes of a plain value as fit to the caller's memory, which may be uninitialized.
/// Returns their number.
pub(crate) fn copy_value<T: Copy>(from: &T, to: *mut u8, room: usize) -> Result<usize, Failure> {
    check_array(to, room)?;
    let n = size_of::<T>().min(room);
    if n > 0 {
        // SAFETY: `from` has `n` bytes, and the caller guarantees that `to` has room for `room`
        // bytes; its buffers do not overlap ours.
        unsafe { std::ptr::copy_nonoverlapping(std::ptr::from_ref(from).cast(), to, n) };
    }
    Ok(n)
}
