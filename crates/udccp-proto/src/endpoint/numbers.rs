//! Creates numbers that nobody outside can guess: initial sequence numbers and ephemeral ports.

use core::hash::{BuildHasher, Hash, Hasher};

use siphasher::sip::{SipHasher13, SipHasher24};
use siphasher::sip128::{self, Hasher128};
use udccp_base::Instant;
use udccp_wire::Seqno;

use crate::ids::ListenerId;
use crate::tuple::FourTuple;

/// Keyed hashes of one endpoint. Keys are derived at each use, which is rare: when a connection
/// begins.
#[derive(Clone, Debug)]
pub(super) struct Secrets {
    secret: [u8; 32],
    /// This many port counters, which hides the number of connections (RFC 6056 section 3.3.4).
    /// Most endpoints have no ephemeral ports, so it is made with the first.
    counters: Option<Box<[u16; 16]>>,
}

/// What a key is for. Numbers are part of the keys.
#[derive(Clone, Copy)]
enum Purpose {
    Sequence = 0,
    Ports = 1,
    Table = 2,
    Cookies = 3,
}

/// Hash of the connection table. The key prevents attacks that fill one bucket, and every run with
/// the same secret has the same hashes.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableHash([u8; 16]);

impl BuildHasher for TableHash {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_key(&self.0)
    }
}

/// Ticks of 28.6 us: a 24-bit clock wraps after 8 minutes, which is 4 MSL.
const LOW_TICK_NANOS: u64 = 28_610;
const HIGH_TICK_NANOS: u64 = 1_000_000_000;
/// How long one key is used to seal Init Cookies.
const COOKIE_KEY_NANOS: u64 = 60_000_000_000;
const LOW_BITS: u64 = (1 << 24) - 1;

impl Secrets {
    /// All keys are derived from one secret.
    pub(super) fn new(secret: [u8; 32]) -> Self {
        Self { secret, counters: None }
    }

    fn key(&self, purpose: Purpose) -> [u8; 16] {
        let mut out = [0; 16];
        for (half, bytes) in out.chunks_exact_mut(8).enumerate() {
            let mut h = SipHasher24::new_with_key(first_half(&self.secret));
            h.write(&self.secret[16..]);
            h.write(&[purpose as u8, half as u8]);
            bytes.copy_from_slice(&h.finish().to_be_bytes());
        }
        out
    }

    /// The hash of the connection table.
    pub(super) fn table_hash(&self) -> TableHash {
        TableHash(self.key(Purpose::Table))
    }

    //= 4340-7.2-1
    //= 4340-7.2-2
    //= 4340-7.2-3
    //= 4340-7.2-4
    //= 4340-7.2-5
    /// The initial sequence number of a connection (RFC 4340 section 7.2). As in RFC 6528, a keyed
    /// hash gives each set of addresses and ports its own start, and clocks advance it. The lower
    /// and the upper 24 bits have separate clocks: neither short nor long numbers of an old
    /// connection repeat while its packets may still exist.
    pub(super) fn initial_seqno(&self, now: Instant, tuple: &FourTuple) -> Seqno {
        let mut h = SipHasher24::new_with_key(&self.key(Purpose::Sequence));
        tuple.hash(&mut h);
        let hash = h.finish();
        let nanos = now.as_nanos();
        let low = hash.wrapping_add(nanos / LOW_TICK_NANOS) & LOW_BITS;
        let high = (hash >> 24).wrapping_add(nanos / HIGH_TICK_NANOS) & LOW_BITS;
        Seqno::new(high << 24 | low)
    }

    //= 4340-8.1.4-7
    /// Seal of an Init Cookie for `tuple` with this content, made at `made` for `listener`. Every
    /// period has its own key, so no key is used for long.
    pub(super) fn cookie_seal(
        &self,
        made: Instant,
        listener: ListenerId,
        tuple: &FourTuple,
        content: &[u8],
    ) -> [u8; 16] {
        let mut period = sip128::SipHasher24::new_with_key(&self.key(Purpose::Cookies));
        period.write_u64(made.as_nanos() / COOKIE_KEY_NANOS);
        let mut h = sip128::SipHasher24::new_with_key(&halves(period.finish128()));
        tuple.hash(&mut h);
        h.write_u64(made.as_nanos());
        h.write_u32(listener.0);
        h.write(content);
        halves(h.finish128())
    }

    /// QS Nonce and QS TTL of a connection, which neither routers nor the peer can guess.
    pub(super) fn quick_start(&self, now: Instant, tuple: &FourTuple) -> (u32, u8) {
        let mut h = SipHasher24::new_with_key(&self.key(Purpose::Sequence));
        h.write(b"quick-start");
        h.write(&now.as_nanos().to_be_bytes());
        tuple.hash(&mut h);
        let bits = h.finish();
        ((bits >> 34) as u32, bits as u8)
    }

    /// The next ephemeral port towards the peer in `tuple` (whose local port is ignored): RFC 6056,
    /// algorithm 4, "double-hash". `None` if all in `range` are taken.
    pub(super) fn ephemeral_port(
        &mut self,
        tuple: &FourTuple,
        range: (u16, u16),
        is_free: impl Fn(u16) -> bool,
    ) -> Option<u16> {
        let mut h = SipHasher24::new_with_key(&self.key(Purpose::Ports));
        FourTuple { local_port: 0, ..*tuple }.hash(&mut h);
        let hash = h.finish();
        let (first, last) = (u32::from(range.0), u32::from(range.1.max(range.0)));
        let count = last - first + 1;
        let offset = (hash >> 32) as u32;
        let counter = &mut self.counters.get_or_insert_default()[(hash & 15) as usize];
        for _ in 0..count {
            let port = first + offset.wrapping_add(u32::from(*counter)) % count;
            *counter = counter.wrapping_add(1);
            if is_free(port as u16) {
                return Some(port as u16);
            }
        }
        None
    }
}

fn halves(hash: sip128::Hash128) -> [u8; 16] {
    (u128::from(hash.h1) << 64 | u128::from(hash.h2)).to_be_bytes()
}

fn first_half(secret: &[u8; 32]) -> &[u8; 16] {
    secret.first_chunk().unwrap_or(&[0; 16])
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use udccp_base::Duration;

    /// A tuple with this local port; everything else is the same in all.
    pub(in crate::endpoint) fn tuple(port: u16) -> FourTuple {
        FourTuple {
            local: "10.0.0.1:0".parse().unwrap(),
            local_port: port,
            remote: "10.0.0.2:0".parse().unwrap(),
            remote_port: 5001,
        }
    }

    //= 4340-7.2-1 test
    //= 4340-7.2-2 test
    //= 4340-7.2-3 test
    //= 4340-7.2-4 test
    //= 4340-7.2-5 test
    #[test]
    fn numbers_differ_by_tuple_and_secret_and_move_on_with_time() {
        let a = Secrets::new([1; 32]);
        let b = Secrets::new([2; 32]);
        let t = Instant::from_nanos(1 << 40);
        let isn = a.initial_seqno(t, &tuple(1));
        assert_eq!(isn, a.initial_seqno(t, &tuple(1)));
        assert_ne!(isn, a.initial_seqno(t, &tuple(2)));
        assert_ne!(isn, b.initial_seqno(t, &tuple(1)));
        // Four minutes later, both halves are well past an old connection's numbers.
        let later = a.initial_seqno(t + Duration::from_secs(240), &tuple(1));
        let moved = later.distance_from(isn);
        assert!(((239 << 24)..(242 << 24)).contains(&moved), "{moved}");
        let low = (later.low24().wrapping_sub(isn.low24())) & 0xff_ffff;
        assert!((8_000_000..9_000_000).contains(&low), "{low}");
    }

    #[test]
    fn ports_are_all_used_before_one_is_refused() {
        let mut secrets = Secrets::new([3; 32]);
        let mut taken = Vec::new();
        while let Some(p) =
            secrets.ephemeral_port(&tuple(0), (50_000, 50_099), |p| !taken.contains(&p))
        {
            taken.push(p);
        }
        taken.sort_unstable();
        assert_eq!(taken, (50_000..50_100).collect::<Vec<u16>>());
    }
}
