//! Init Cookies: seals a server's state of a handshake, and gives it to the client (RFC 4340
//! section 8.1.4).
//!
//! Nothing in a cookie is secret: the client sent it, or reads it in the Response. The seal keeps
//! it from being changed, or used from elsewhere. A cookie is short, since the answer to a Request
//! must not be much longer than the Request: what the server can determine again is covered by the
//! seal but not included.

use udccp_base::Instant;
use udccp_wire::{Seqno, ServiceCode, option_kind as kind};

use super::numbers::Secrets;
use crate::ids::ListenerId;
use crate::tuple::FourTuple;

/// Maximum number of data bytes of one option.
pub(super) const OPTION_BYTES: usize = 253;
/// Maximum number of options that a cookie fills.
const MAX_OPTIONS: usize = 2;
/// A guess is right with a chance of 2^-64, and each try takes a packet.
const SEAL_BYTES: usize = 8;
const FIXED_BYTES: usize = 15;
/// Resolution of `made`: that of Timestamp options.
const TICK_NANOS: u64 = 10_000;
/// Flag in the first byte, next to the Request's length in words.
const HAD_DATA: u8 = 0x80;

/// The state needed to answer a Request again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cookie {
    /// When the Response was sent, in whole ticks.
    pub(super) made: Instant,
    /// The listener that serves it.
    pub(super) listener: ListenerId,
    pub(super) service: ServiceCode,
    /// The Request's sequence number.
    pub(super) isr: Seqno,
    /// Whether the Request had data, which was refused.
    pub(super) had_data: bool,
    /// The Request's length in words, 127 at most.
    pub(super) request_words: u8,
    /// The Request's feature negotiation options, unchanged.
    pub(super) options: Vec<u8>,
}

/// The time, rounded to what a cookie stores.
pub(super) fn tick_of(now: Instant) -> Instant {
    Instant::from_nanos(now.as_nanos() / TICK_NANOS * TICK_NANOS)
}

/// The Request's length, as a cookie stores it.
pub(super) fn words_of(len: usize) -> u8 {
    (len / 4).min(0x7f) as u8
}

impl Cookie {
    /// The sealed cookie, in pieces that each fit in one option; `None` if it would be too long.
    pub(super) fn seal(&self, secrets: &Secrets, tuple: &FourTuple) -> Option<Vec<Vec<u8>>> {
        let mut bytes = Vec::with_capacity(FIXED_BYTES + self.options.len() + SEAL_BYTES);
        bytes.push(self.request_words | if self.had_data { HAD_DATA } else { 0 });
        let ticks = (self.made.as_nanos() / TICK_NANOS) as u32;
        bytes.extend_from_slice(&ticks.to_be_bytes());
        bytes.extend_from_slice(&self.service.0.to_be_bytes());
        bytes.extend_from_slice(&self.isr.value().to_be_bytes()[2..]);
        debug_assert_eq!(bytes.len(), FIXED_BYTES);
        bytes.extend_from_slice(&self.options);
        let seal = self.seal_of(secrets, tuple, &bytes);
        bytes.extend_from_slice(&seal);
        let fits = bytes.len() <= MAX_OPTIONS * OPTION_BYTES;
        fits.then(|| bytes.chunks(OPTION_BYTES).map(<[u8]>::to_vec).collect())
    }

    /// The seal of these bytes, and of the state that they do not include.
    fn seal_of(&self, secrets: &Secrets, tuple: &FourTuple, bytes: &[u8]) -> [u8; SEAL_BYTES] {
        let seal = secrets.cookie_seal(self.made, self.listener, tuple, bytes);
        *seal.first_chunk().unwrap_or(&[0; SEAL_BYTES])
    }

    /// The content of a cookie that was sealed here for `tuple` not long before `now`.
    /// `listener_of` returns the listener that serves a service code.
    pub(super) fn open(
        secrets: &Secrets,
        now: Instant,
        tuple: &FourTuple,
        sealed: &[u8],
        listener_of: impl FnOnce(ServiceCode) -> Option<ListenerId>,
    ) -> Option<Self> {
        let (content, seal) = sealed.split_last_chunk::<SEAL_BYTES>()?;
        let (fixed, options) = content.split_first_chunk::<FIXED_BYTES>()?;
        let number = |from: usize, len: usize| {
            fixed[from..from + len].iter().fold(0, |n, &b| n << 8 | u64::from(b))
        };
        let service = ServiceCode(number(5, 4) as u32);
        let cookie = Self {
            made: latest(now, number(1, 4) as u32),
            listener: listener_of(service)?,
            service,
            isr: Seqno::new(number(9, 6)),
            had_data: fixed[0] & HAD_DATA != 0,
            request_words: fixed[0] & !HAD_DATA,
            options: options.to_vec(),
        };
        let expected = cookie.seal_of(secrets, tuple, content);
        // No branch depends on where they differ: the time this takes reveals nothing.
        let differs = expected.iter().zip(seal).fold(0, |all, (a, b)| all | (a ^ b));
        (differs == 0).then_some(cookie)
    }
}

/// The latest time up to `now` with these low bits. A cookie is valid for far less than the twelve
/// hours after which they repeat, and the seal covers the whole time.
fn latest(now: Instant, low: u32) -> Instant {
    let ticks = now.as_nanos() / TICK_NANOS;
    let age = (ticks as u32).wrapping_sub(low);
    Instant::from_nanos(ticks.saturating_sub(u64::from(age)) * TICK_NANOS)
}

/// Returns the options of a Request that its Response answers: Changes, with the Mandatory before
/// them.
pub(super) fn worth_keeping(options: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut mandatory = false;
    for raw in udccp_wire::RawOptions::new(options).map_while(Result::ok) {
        if matches!(raw.kind, kind::CHANGE_L | kind::CHANGE_R) {
            kept.extend(mandatory.then_some(kind::MANDATORY));
            kept.extend_from_slice(&[raw.kind, raw.data.len() as u8 + 2]);
            kept.extend_from_slice(raw.data);
        }
        mandatory = raw.kind == kind::MANDATORY;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use udccp_base::Duration;

    fn tuple(remote_port: u16) -> FourTuple {
        FourTuple {
            local: "10.0.0.1:0".parse().unwrap(),
            local_port: 5001,
            remote: "10.0.0.2:0".parse().unwrap(),
            remote_port,
        }
    }

    fn cookie() -> Cookie {
        Cookie {
            made: Instant::from_nanos(77_000_010_000),
            listener: ListenerId(3),
            service: ServiceCode(42),
            isr: Seqno::new(0xabcd_1234_5678),
            had_data: true,
            request_words: 9,
            options: vec![32, 4, 1, 2],
        }
    }

    fn open(
        secrets: &Secrets,
        tuple: &FourTuple,
        sealed: &[u8],
        after_secs: u64,
    ) -> Option<Cookie> {
        let now = cookie().made + Duration::from_secs(after_secs);
        Cookie::open(secrets, now, tuple, sealed, |service| {
            (service == ServiceCode(42)).then_some(ListenerId(3))
        })
    }

    //= 4340-8.1.4-7 test
    #[test]
    fn a_cookie_opens_only_unchanged_at_the_same_addresses_with_the_same_secret() {
        let ours = Secrets::new([1; 32]);
        let others = Secrets::new([2; 32]);
        let sealed = cookie().seal(&ours, &tuple(9)).unwrap().concat();
        assert_eq!(open(&ours, &tuple(9), &sealed, 0), Some(cookie()));
        assert_eq!(open(&ours, &tuple(9), &sealed, 3600), Some(cookie()), "its age is not hidden");
        assert_eq!(open(&ours, &tuple(8), &sealed, 1), None);
        assert_eq!(open(&others, &tuple(9), &sealed, 1), None);
        for bit in 0..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(&ours, &tuple(9), &changed, 1), None, "bit {bit}");
        }
        for len in 0..sealed.len() {
            assert_eq!(open(&ours, &tuple(9), &sealed[..len], 1), None, "{len} bytes");
        }
    }

    #[test]
    fn a_cookie_is_bound_to_its_listener_and_time() {
        let ours = Secrets::new([1; 32]);
        let sealed = cookie().seal(&ours, &tuple(9)).unwrap().concat();
        let at = |now, listener| Cookie::open(&ours, now, &tuple(9), &sealed, |_| listener);
        let made = cookie().made;
        assert_eq!(at(made, Some(ListenerId(4))), None, "another listener");
        assert_eq!(at(made, None), None, "nobody listens");
        // The low bits repeat after 2^32 ticks.
        let again = made + Duration::from_nanos(TICK_NANOS << 32);
        assert_eq!(at(again, Some(ListenerId(3))), None);
        assert!(at(again - Duration::from_secs(1), Some(ListenerId(3))).is_some());
    }

    #[test]
    fn a_long_cookie_takes_two_options_and_a_longer_one_is_refused() {
        let secrets = Secrets::new([1; 32]);
        let with = |n| Cookie { options: vec![0; n], ..cookie() }.seal(&secrets, &tuple(1));
        assert_eq!(with(230).unwrap().len(), 1);
        assert_eq!(with(231).unwrap().iter().map(Vec::len).collect::<Vec<_>>(), [253, 1]);
        assert!(with(483).is_some() && with(484).is_none());
    }

    #[test]
    fn only_changes_and_their_mandatory_are_kept() {
        let options = [1, 41, 6, 0, 0, 0, 9, 1, 32, 4, 1, 2, 0, 34, 5, 1, 3, 2];
        assert_eq!(worth_keeping(&options), [1, 32, 4, 1, 2, 34, 5, 1, 3, 2]);
    }
}
