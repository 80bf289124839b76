//! What a server would keep of a handshake, sealed and handed to the client (RFC 4340 section
//! 8.1.4).
//!
//! Nothing in it is secret: the client sent it, or reads it in the Response. The seal keeps it from
//! being changed, or used from elsewhere.

use udccp_base::Instant;
use udccp_wire::{Seqno, ServiceCode, option_kind as kind};

use super::FourTuple;
use super::numbers::Secrets;
use crate::config::ListenerId;

/// Most data of one option.
const OPTION_BYTES: usize = 253;
/// Options that a cookie may fill.
const MAX_OPTIONS: usize = 2;
const SEAL_BYTES: usize = 16;
const FIXED_BYTES: usize = 30;
const HAD_DATA: u8 = 1;

/// All that it takes to answer a Request again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cookie {
    /// When the Response left.
    pub(super) made: Instant,
    /// Who serves it.
    pub(super) listener: ListenerId,
    pub(super) service: ServiceCode,
    /// The Request's number.
    pub(super) isr: Seqno,
    /// The Response's number.
    pub(super) iss: Seqno,
    /// Whether the Request had data, which was refused.
    pub(super) had_data: bool,
    /// The Request's feature negotiation options as they came.
    pub(super) options: Vec<u8>,
}

impl Cookie {
    /// The sealed cookie, in pieces that fit in one option each; `None` where it would be too long.
    pub(super) fn seal(&self, secrets: &Secrets, tuple: &FourTuple) -> Option<Vec<Vec<u8>>> {
        let mut bytes = Vec::with_capacity(FIXED_BYTES + self.options.len() + SEAL_BYTES);
        bytes.push(if self.had_data { HAD_DATA } else { 0 });
        bytes.extend_from_slice(&self.made.as_nanos().to_be_bytes());
        bytes.extend_from_slice(&self.listener.0.to_be_bytes());
        bytes.extend_from_slice(&self.service.0.to_be_bytes());
        for number in [self.isr, self.iss] {
            bytes.extend_from_slice(&number.value().to_be_bytes()[2..]);
        }
        bytes.push(0);
        debug_assert_eq!(bytes.len(), FIXED_BYTES);
        bytes.extend_from_slice(&self.options);
        let seal = secrets.cookie_seal(self.made, tuple, &bytes);
        bytes.extend_from_slice(&seal);
        let fits = bytes.len() <= MAX_OPTIONS * OPTION_BYTES;
        fits.then(|| bytes.chunks(OPTION_BYTES).map(<[u8]>::to_vec).collect())
    }

    /// The content of a cookie that was sealed here for `tuple`.
    pub(super) fn open(secrets: &Secrets, tuple: &FourTuple, sealed: &[u8]) -> Option<Self> {
        let (content, seal) = sealed.split_last_chunk::<SEAL_BYTES>()?;
        let (fixed, options) = content.split_first_chunk::<FIXED_BYTES>()?;
        let number = |from: usize, len: usize| {
            fixed[from..from + len].iter().fold(0, |n, &b| n << 8 | u64::from(b))
        };
        let made = Instant::from_nanos(number(1, 8));
        let expected = secrets.cookie_seal(made, tuple, content);
        // Without a branch on where they differ: how long this takes says nothing.
        let differs = expected.iter().zip(seal).fold(0, |all, (a, b)| all | (a ^ b));
        (differs == 0).then(|| Self {
            made,
            listener: ListenerId(number(9, 4) as u32),
            service: ServiceCode(number(13, 4) as u32),
            isr: Seqno::new(number(17, 6)),
            iss: Seqno::new(number(23, 6)),
            had_data: fixed[0] & HAD_DATA != 0,
            options: options.to_vec(),
        })
    }
}

/// The options of a Request that its Response answers: Changes, and Mandatory before them.
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
            made: Instant::from_nanos(77_000_000_123),
            listener: ListenerId(3),
            service: ServiceCode(42),
            isr: Seqno::new(0xabcd_1234_5678),
            iss: Seqno::new(0x1111_2222_3333),
            had_data: true,
            options: vec![32, 4, 1, 2],
        }
    }

    //= 4340-8.1.4-7 test
    #[test]
    fn a_cookie_opens_only_unchanged_at_the_same_addresses_with_the_same_secret() {
        let (ours, _) = Secrets::new(&[1; 32]);
        let (others, _) = Secrets::new(&[2; 32]);
        let sealed = cookie().seal(&ours, &tuple(9)).unwrap().concat();
        assert_eq!(Cookie::open(&ours, &tuple(9), &sealed), Some(cookie()));
        assert_eq!(Cookie::open(&ours, &tuple(8), &sealed), None);
        assert_eq!(Cookie::open(&others, &tuple(9), &sealed), None);
        for bit in 0..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Cookie::open(&ours, &tuple(9), &changed), None, "bit {bit}");
        }
        for len in 0..sealed.len() {
            assert_eq!(Cookie::open(&ours, &tuple(9), &sealed[..len]), None, "{len} bytes");
        }
    }

    #[test]
    fn a_long_cookie_takes_two_options_and_a_longer_one_is_refused() {
        let (secrets, _) = Secrets::new(&[1; 32]);
        let with = |n| Cookie { options: vec![0; n], ..cookie() }.seal(&secrets, &tuple(1));
        assert_eq!(with(207).unwrap().len(), 1);
        assert_eq!(with(208).unwrap().iter().map(Vec::len).collect::<Vec<_>>(), [253, 1]);
        assert!(with(460).is_some() && with(461).is_none());
    }

    #[test]
    fn only_changes_and_their_mandatory_are_kept() {
        let options = [1, 41, 6, 0, 0, 0, 9, 1, 32, 4, 1, 2, 0, 34, 5, 1, 3, 2];
        assert_eq!(worth_keeping(&options), [1, 32, 4, 1, 2, 34, 5, 1, 3, 2]);
    }
}
