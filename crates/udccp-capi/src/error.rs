//! Errors as numbers and as text.

use std::any::Any;
use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use libc::ssize_t;
use udccp::{Error, errno};

/// The connection was closed in order and everything was read. Not an error, but no length either:
/// an empty message has length 0.
pub const UDCCP_EOF: c_int = -4095;

/// The failure of a call.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// A negative error number.
    code: c_int,
    text: Cow<'static, CStr>,
    advice: Cow<'static, CStr>,
}

impl Failure {
    /// There is nothing to read, no room, or a handshake in progress.
    pub(crate) const AGAIN: Self =
        Self::fixed(libc::EAGAIN, c"timed out", c"try again, or allow more time");
    /// The end of the messages.
    pub(crate) const EOF: Self = Self {
        code: UDCCP_EOF,
        text: Cow::Borrowed(c"the connection was closed in order"),
        advice: Cow::Borrowed(c"free the socket"),
    };
    pub(crate) const NO_HANDLE: Self = Self::fixed(
        libc::EBADF,
        c"the handle is NULL",
        c"check what the call that makes it returned",
    );
    pub(crate) const NO_POINTER: Self =
        Self::fixed(libc::EFAULT, c"a pointer is NULL", c"give the address of an object");

    const fn fixed(errno: c_int, text: &'static CStr, advice: &'static CStr) -> Self {
        Self { code: -errno, text: Cow::Borrowed(text), advice: Cow::Borrowed(advice) }
    }

    /// An invalid argument.
    pub(crate) fn invalid(text: &str, advice: &str) -> Self {
        Self { code: -libc::EINVAL, text: c_text(text), advice: c_text(advice) }
    }

    #[cfg(not(windows))]
    pub(crate) fn bad_descriptor() -> Self {
        Self::fixed(
            libc::EBADF,
            c"not a file descriptor of this process",
            c"give the descriptor of a UDP socket",
        )
    }

    /// The lookup of a name failed.
    pub(crate) fn unknown_host(host: &str, why: &str) -> Self {
        let text = c_text(&format!("cannot find the address of {host}: {why}"));
        Self { code: -libc::ENOENT, text, advice: c_text("check the name of the host") }
    }

    pub(crate) fn is_again(&self) -> bool {
        self.code == -libc::EAGAIN
    }

    fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let text = text.unwrap_or_else(|| "no message".to_owned());
        Self {
            code: -libc::ENOTRECOVERABLE,
            text: c_text(&format!("a defect of libudccp, not of your program: {text}")),
            advice: Cow::Borrowed(c"please report it, with the call and its arguments"),
        }
    }
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        match e {
            Error::TimedOut => Self::AGAIN,
            e => {
                Self { code: -e.errno(), text: c_text(&e.to_string()), advice: c_text(e.advice()) }
            }
        }
    }
}

/// Longest error text in bytes. Text from the program can be any length.
const LONGEST: usize = 1000;

/// Shortens a text that is too long: keeps its beginning, and its end, which describes the error.
fn shortened(text: &str) -> Cow<'_, str> {
    const GAP: &str = " ... ";
    if text.len() <= LONGEST {
        return Cow::Borrowed(text);
    }
    let part = (LONGEST - GAP.len()) / 2;
    let (mut head, mut tail) = (part, text.len() - part);
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    Cow::Owned(format!("{}{GAP}{}", &text[..head], &text[tail..]))
}

/// Converts to a C string, without inner zero bytes, which would end it early.
fn c_text(text: &str) -> Cow<'static, CStr> {
    Cow::Owned(CString::new(shortened(text).replace('\0', "?")).unwrap_or_default())
}

thread_local! {
    static LAST: RefCell<Option<Failure>> = const { RefCell::new(None) };
}

fn remember(failure: Failure) -> c_int {
    let code = failure.code;
    // Fails only in a thread that is ending; the error text is then lost.
    let _ = LAST.try_with(|last| last.replace(Some(failure)));
    code
}

/// Calls `work`. A failure is stored for this thread. A panic is a failure too; none unwinds into
/// C.
fn catch_failure<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, c_int> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(remember),
        Err(panic) => Err(remember(Failure::of_panic(panic.as_ref()))),
    }
}

/// For calls that return 0 or an error.
pub(crate) fn status(work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    number(|| work().map(|()| 0))
}

/// For calls that return a small number or an error.
pub(crate) fn number(work: impl FnOnce() -> Result<c_int, Failure>) -> c_int {
    catch_failure(work).unwrap_or_else(|code| code)
}

/// For calls that return a length, a count or an error.
pub(crate) fn count(work: impl FnOnce() -> Result<usize, Failure>) -> ssize_t {
    let counted = catch_failure(work).map(|n| ssize_t::try_from(n).unwrap_or(ssize_t::MAX));
    counted.unwrap_or_else(|code| code as ssize_t)
}

/// For calls without an error result: returns `other` on failure.
pub(crate) fn or_return<T>(other: T, work: impl FnOnce() -> Result<T, Failure>) -> T {
    catch_failure(work).unwrap_or(other)
}

fn last(part: impl FnOnce(&Failure) -> *const c_char) -> *const c_char {
    let none = c"".as_ptr();
    LAST.try_with(|last| last.try_borrow().map_or(none, |last| last.as_ref().map_or(none, part)))
        .unwrap_or(none)
}

/// The error text of this thread's last failed call, with names and numbers. Valid until another
/// call of this thread fails. Empty if none has failed; never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn udccp_last_error() -> *const c_char {
    last(|failure| failure.text.as_ptr())
}

/// What to do about that error, in one sentence for a user. Valid as long as `udccp_last_error`.
#[unsafe(no_mangle)]
pub extern "C" fn udccp_last_advice() -> *const c_char {
    last(|failure| failure.advice.as_ptr())
}

/// The general meaning of an error number of this library, negative as calls return it or positive
/// as in `errno`. Never NULL, and always valid.
#[unsafe(no_mangle)]
pub extern "C" fn udccp_strerror(error: c_int) -> *const c_char {
    meaning(error.saturating_abs()).as_ptr()
}

/// The error numbers of the library. Any others come from the system.
const MEANINGS: &[(c_int, &CStr)] = &[
    (0, c"no error"),
    (-UDCCP_EOF, c"the connection was closed in order"),
    (libc::EAGAIN, c"timed out"),
    (libc::EPIPE, c"the connection has ended; nothing more can be sent"),
    (libc::EBADF, c"the handle is NULL, or belongs to the parent of this process"),
    (libc::EFAULT, c"a pointer is NULL"),
    (libc::EINVAL, c"a value cannot be used"),
    (libc::ENOTRECOVERABLE, c"a defect of the library"),
    (libc::EMSGSIZE, c"the message is larger than one packet of this path"),
    (libc::ECONNREFUSED, c"nothing serves this port"),
    #[cfg(target_os = "linux")]
    (libc::EBADRQC, c"the service code is not served there"),
    (errno::EUSERS, c"the server accepts no more connections now"),
    (libc::ECONNRESET, c"the connection was aborted"),
    (libc::ETIMEDOUT, c"the peer does not answer, or closing timed out"),
    (libc::EHOSTUNREACH, c"the peer cannot be reached"),
    (libc::ENETUNREACH, c"the address or its network cannot be reached"),
    (libc::EOPNOTSUPP, c"the CCID is unknown here or not offered by the peer"),
    (libc::EADDRINUSE, c"the port is in use"),
    (libc::EADDRNOTAVAIL, c"not an address of this machine, or no free port"),
    (libc::EACCES, c"no permission to bind there"),
    (libc::EPERM, c"no permission to open raw sockets"),
    (libc::EAFNOSUPPORT, c"the address is of another family"),
    (libc::ENOBUFS, c"too many connections"),
    (libc::EPROTO, c"the peer broke a rule of the protocol"),
    (libc::ENOMSG, c"the peer reported a wrong packet"),
    (libc::EILSEQ, c"the peer reported a wrong option"),
    #[cfg(target_os = "linux")]
    (libc::EBADR, c"the peer refused our Init Cookie"),
    (errno::EDQUOT, c"the peer reset the connection because it suspects an attack"),
    (libc::ENOENT, c"not found"),
    (libc::EMFILE, c"this process has no free file descriptors"),
    (libc::EIO, c"the system refused a resource that a socket needs"),
];

fn meaning(errno: c_int) -> &'static CStr {
    let known = MEANINGS.iter().find(|(number, _)| *number == errno);
    known.map_or(c"an error of the system; udccp_last_error() has its text", |(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(of: *const c_char) -> &'static str {
        // SAFETY: the functions return C strings that outlive their use in this test.
        unsafe { CStr::from_ptr(of) }.to_str().expect("UTF-8")
    }

    #[test]
    fn a_panic_is_an_error_with_its_message() {
        let code = status(|| panic!("number {}", 7));
        assert_eq!(code, -libc::ENOTRECOVERABLE);
        assert!(text(udccp_last_error()).ends_with("number 7"));
        assert!(text(udccp_last_advice()).contains("report"));
        assert_eq!(count(|| panic!("here")), -(libc::ENOTRECOVERABLE as ssize_t));
        assert_eq!(or_return(5, || panic!("there")), 5);
    }

    #[test]
    fn each_thread_has_its_own_last_error() {
        assert_eq!(status(|| Err(Failure::NO_HANDLE)), -libc::EBADF);
        let other = std::thread::scope(|s| s.spawn(|| text(udccp_last_error())).join());
        assert_eq!(other.expect("no panic"), "");
        assert_eq!(text(udccp_last_error()), "the handle is NULL");
    }

    #[test]
    fn error_text_ignores_the_sign_of_the_number() {
        assert_eq!(text(udccp_strerror(-libc::EAGAIN)), text(udccp_strerror(libc::EAGAIN)));
        assert_eq!(text(udccp_strerror(c_int::MIN)), text(udccp_strerror(123_456)));
        let mut numbers: Vec<_> = MEANINGS.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), MEANINGS.len(), "one line each");
    }

    #[test]
    fn long_text_is_shortened_in_the_middle() {
        for letter in ["x", "é", "€", "🦀"] {
            for shift in 0..4 {
                let long = format!("{}{}", "a".repeat(shift), letter.repeat(1_000_000));
                status(|| Err(Failure::invalid(&format!("\"{long}\" is no address"), "c")));
                let says = text(udccp_last_error());
                assert!(says.starts_with("\"") && says.ends_with("\" is no address"), "{says}");
                assert!(says.len() <= LONGEST && says.contains(" ... "), "{says}");
            }
        }
        let fits = "€".repeat(LONGEST / 3);
        status(|| Err(Failure::invalid(&fits, "c")));
        assert_eq!(text(udccp_last_error()), fits);
    }

    #[test]
    fn text_with_nul_bytes_is_not_truncated() {
        status(|| Err(Failure::invalid("a\0b", "c")));
        assert_eq!(text(udccp_last_error()), "a?b");
    }
}
