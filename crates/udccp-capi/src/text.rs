//! Text: version, service codes, addresses.

use std::ffi::{c_char, c_int};

use udccp::ServiceCode;

use crate::error::{Failure, count, status};
use crate::pointer::{self, Place};

/// Version of the library in use, for example "0.1.0". `UDCCP_VERSION` is that of the header.
#[unsafe(no_mangle)]
pub extern "C" fn udccp_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Parses a service code (RFC 4340 section 8.1.2) in one of its text forms: `SC:echo` (one to four
/// characters), `SC=1717858426` or `SC=x6664707A`.
///
/// Errors: `-EINVAL`: `text` has none of these forms.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_service_code(text: *const c_char, code: *mut u32) -> c_int {
    status(|| {
        let place = Place::new(code)?;
        let parsed = pointer::text(text)?.parse::<ServiceCode>();
        let code = parsed.map_err(|e| Failure::invalid(&e.to_string(), "for example SC:echo"))?;
        place.put(code.0);
        Ok(())
    })
}

/// Writes a service code as text, as `SC:echo` if possible. Returns the length without the
/// terminating zero byte, like `snprintf`: if it is `size` or more, the text was cut.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_service_text(
    code: u32,
    buffer: *mut c_char,
    size: usize,
) -> libc::ssize_t {
    count(|| write(&ServiceCode(code).to_string(), buffer, size))
}

/// Writes a text like `snprintf`: cut if it does not fit, and with a terminating zero byte.
pub(crate) fn write(text: &str, buffer: *mut c_char, size: usize) -> Result<usize, Failure> {
    pointer::check_array(buffer, size)?;
    if size > 0 {
        let mut end = text.len().min(size - 1);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        pointer::copy(&text.as_bytes()[..end], buffer.cast(), end)?;
        pointer::copy(&[0], buffer.cast::<u8>().wrapping_add(end), 1)?;
    }
    Ok(text.len())
}
