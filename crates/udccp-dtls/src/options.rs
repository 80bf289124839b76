//! Settings of protected connections.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use dimpl::crypto::{Dtls12CipherSuite, Dtls13CipherSuite};

use crate::{Error, Fingerprint, Identity};

/// Default of `handshake_timeout`.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
/// RFC 6347 section 4.2.4.1 and RFC 9147 section 5.8.2: first timeout of a flight.
const FLIGHT_TIMEOUT: Duration = Duration::from_secs(1);
/// RFC 9147 section 4.5.3: the limit of the weakest cipher suite.
const RECORDS_PER_KEY: u64 = 1 << 23;
/// Most transmissions of one flight; in practice the handshake timeout ends it earlier.
const FLIGHT_RETRIES: usize = 32;
/// A timeout of ten years, which stands for no timeout.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(3650 * 24 * 3600);
/// Most packets that the engine holds: more than a handshake with normal certificates needs.
pub(crate) const ENGINE_QUEUE_PACKETS: usize = 256;
/// The library keeps 12 records of a DTLS 1.3 flight. ServerHello, EncryptedExtensions,
/// CertificateRequest, CertificateVerify and Finished need five, and a certificate may begin in the
/// rest of a packet.
const LARGEST_CERTIFICATE_RECORDS_13: usize = 6;
/// The library assembles a DTLS 1.2 message from at most 50 parts, and the first and the last share
/// their packets with other messages.
const LARGEST_MESSAGE_RECORDS_12: usize = 48;
/// RFC 4279 section 2: the length of a key is two bytes.
const MAX_KEY_BYTES: usize = u16::MAX as usize;
/// Headers of a record and of a handshake fragment, and the overhead of protection.
const RECORD_ROOM_BYTES: usize = 64;

/// A version of DTLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// DTLS 1.2 (RFC 6347).
    Dtls12,
    /// DTLS 1.3 (RFC 9147).
    Dtls13,
}

impl Version {
    /// The version with this wire number; `None` for older ones, and for those of TLS.
    pub(crate) fn from_wire(number: &[u8]) -> Option<Self> {
        match number {
            [0xfe, 0xfd] => Some(Self::Dtls12),
            [0xfe, 0xfc] => Some(Self::Dtls13),
            _ => None,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dtls12 => "DTLS 1.2",
            Self::Dtls13 => "DTLS 1.3",
        })
    }
}

type Check = dyn Fn(&[u8]) -> Result<(), String> + Send + Sync;
type Lookup = dyn Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync;

/// How the peer's certificate is verified.
#[derive(Clone)]
enum Verification {
    Pins(Vec<Fingerprint>),
    Check(Arc<Check>),
    AcceptAny,
}

/// A pre-shared key, or several by identity.
#[derive(Clone)]
struct Psk {
    identity: Vec<u8>,
    lookup: Arc<Lookup>,
}

/// The largest message in so many records, each in a packet of its own.
fn largest(records: usize, packet_bytes: usize) -> usize {
    records * packet_bytes.saturating_sub(RECORD_ROOM_BYTES)
}

impl Psk {
    /// The key of this identity. An empty one would let in everybody.
    fn key(&self, identity: &[u8]) -> Option<Vec<u8>> {
        (self.lookup)(identity).filter(|key| (1..=MAX_KEY_BYTES).contains(&key.len()))
    }

    fn check(&self, packet_bytes: usize) -> Result<(), Error> {
        if self.identity.len() > largest(LARGEST_MESSAGE_RECORDS_12, packet_bytes) {
            let error = "the identity of a pre-shared key is longer than 48 packets of this path";
            return Err(Error::Options(error));
        }
        // A lookup has no identity of its own.
        if !self.identity.is_empty() && self.key(&self.identity).is_none() {
            return Err(Error::Options("a pre-shared key has 1 to 65535 bytes"));
        }
        Ok(())
    }
}

/// Settings of a protected connection.
///
/// ```
/// use std::time::Duration;
/// use udccp_dtls::{DtlsOptions, Identity, Version};
///
/// let server = Identity::self_signed("server.example")?;
/// let client = DtlsOptions::new()
///     .pin(server.fingerprint())
///     .versions(Version::Dtls13..=Version::Dtls13)
///     .handshake_timeout(Duration::from_secs(5));
/// # Ok::<_, udccp_dtls::Error>(())
/// ```
#[derive(Clone)]
pub struct DtlsOptions {
    identity: Option<Identity>,
    verification: Option<Verification>,
    psk: Option<Psk>,
    oldest: Version,
    newest: Version,
    cookie_exchange: bool,
    flight_timeout: Duration,
    /// Approximate number of records for one key.
    pub(crate) records_per_key: u64,
    pub(crate) handshake_timeout: Duration,
}

impl Default for DtlsOptions {
    fn default() -> Self {
        Self {
            identity: None,
            verification: None,
            psk: None,
            oldest: Version::Dtls12,
            newest: Version::Dtls13,
            cookie_exchange: false,
            flight_timeout: FLIGHT_TIMEOUT,
            records_per_key: RECORDS_PER_KEY,
            handshake_timeout: HANDSHAKE_TIMEOUT,
        }
    }
}

impl DtlsOptions {
    /// The default settings: both versions, no identity, no way to verify the peer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Our certificate and key (default: none). A client without one sends a new self-signed
    /// certificate if the server asks.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Accept the peer with this certificate. Can be called for several certificates. Replaces
    /// [`Self::verify`].
    #[must_use]
    pub fn pin(mut self, fingerprint: Fingerprint) -> Self {
        match &mut self.verification {
            Some(Verification::Pins(pins)) => pins.push(fingerprint),
            _ => self.verification = Some(Verification::Pins(vec![fingerprint])),
        }
        self
    }

    /// Verify the peer's certificate (DER) with a function; an `Err` with the reason rejects it.
    /// That the peer has the private key is verified in any case.
    #[must_use]
    pub fn verify(
        mut self,
        check: impl Fn(&[u8]) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.verification = Some(Verification::Check(Arc::new(check)));
        self
    }

    /// Accept any certificate. An attacker between the two sides can then read and change
    /// everything.
    #[must_use]
    pub fn dangerous_accept_any(mut self) -> Self {
        self.verification = Some(Verification::AcceptAny);
        self
    }

    /// Use a key that both sides have, under a name, instead of certificates. This needs DTLS 1.2
    /// (`TLS_PSK_WITH_AES_128_CCM_8`). The key has 1 to 65535 bytes, and the name has to fit in
    /// 48 packets.
    #[must_use]
    pub fn psk(mut self, identity: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        let (identity, key) = (identity.into(), key.into());
        let known = identity.clone();
        let lookup = move |asked: &[u8]| (asked == known).then(|| key.clone());
        self.psk = Some(Psk { identity, lookup: Arc::new(lookup) });
        self
    }

    /// Servers: look up pre-shared keys by identity. A key that is empty or longer than 65535 bytes
    /// counts as unknown.
    #[must_use]
    pub fn psk_lookup(
        mut self,
        lookup: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        self.psk = Some(Psk { identity: Vec::new(), lookup: Arc::new(lookup) });
        self
    }

    /// The versions allowed (default: both).
    #[must_use]
    pub fn versions(mut self, versions: std::ops::RangeInclusive<Version>) -> Self {
        (self.oldest, self.newest) = versions.into_inner();
        self
    }

    /// Longest duration of the whole handshake (default 30 s).
    #[must_use]
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.handshake_timeout = timeout;
        self
    }

    /// First retransmission timeout of a handshake flight; it doubles (default 1 s, RFC 5238
    /// section 3.2). The timer stops while the flight waits in DCCP's send queue.
    #[must_use]
    pub fn flight_timeout(mut self, timeout: Duration) -> Self {
        self.flight_timeout = timeout;
        self
    }

    /// Servers: require the client to return a cookie first (default false). This takes a round
    /// trip to verify the client's address, which the DCCP handshake has done already.
    #[must_use]
    pub fn cookie_exchange(mut self, cookie_exchange: bool) -> Self {
        self.cookie_exchange = cookie_exchange;
        self
    }

    /// Whether one of these versions is allowed.
    pub(crate) fn allows(&self, versions: &[Version]) -> bool {
        let newest = if self.psk.is_some() { Version::Dtls12 } else { self.newest };
        versions.iter().any(|version| (self.oldest..=newest).contains(version))
    }

    /// Verifies the certificate of a peer.
    pub(crate) fn check_certificate(&self, der: &[u8]) -> Result<(), Error> {
        let checked = match &self.verification {
            Some(Verification::Pins(pins)) if pins.contains(&Fingerprint::of(der)) => Ok(()),
            Some(Verification::Pins(_)) => {
                Err("it is not among the pinned fingerprints".to_owned())
            }
            Some(Verification::Check(check)) => check(der),
            // A server without verification has not requested the certificate.
            Some(Verification::AcceptAny) | None => Ok(()),
        };
        let fingerprint = Fingerprint::of(der);
        checked.map_err(|reason| Error::CertificateRefused { fingerprint, reason })
    }

    /// Whether a connection without a certificate of the peer is refused.
    pub(crate) fn needs_certificate(&self) -> bool {
        self.psk.is_none() && self.verification.is_some()
    }

    /// The DTLS state machine of one side.
    pub(crate) fn machine(
        &self,
        is_client: bool,
        packet_bytes: usize,
        now: std::time::Instant,
    ) -> Result<dimpl::Dtls, Error> {
        self.check(is_client, packet_bytes)?;
        let mut config = dimpl::Config::builder()
            .mtu(packet_bytes)
            .max_queue_rx(ENGINE_QUEUE_PACKETS)
            .max_queue_tx(ENGINE_QUEUE_PACKETS)
            .require_client_certificate(self.verification.is_some())
            .use_server_cookie(self.cookie_exchange)
            .flight_start_rto(self.flight_timeout.min(LONGEST_TIMEOUT))
            .flight_retries(FLIGHT_RETRIES)
            .aead_encryption_limit(self.records_per_key)
            // Our own timeout applies: the engine's stops with its clock.
            .handshake_timeout(LONGEST_TIMEOUT);
        if let Some(psk) = &self.psk {
            let keys = Arc::new(Keys(AssertUnwindSafe(psk.clone())));
            config = match is_client {
                true => config.with_psk_client(psk.identity.clone(), keys),
                false => config.with_psk_server(None, keys),
            };
            config = config.dtls12_cipher_suites(&[Dtls12CipherSuite::PSK_AES128_CCM_8]);
        } else if self.newest == Version::Dtls12 {
            config = config.dtls13_cipher_suites(&[] as &[Dtls13CipherSuite]);
        }
        let config = config.build().map_err(|e| Error::Handshake(e.to_string()))?;
        let mut machine = self.machine_with(Arc::new(config), now)?;
        machine.set_active(is_client);
        Ok(machine)
    }

    fn machine_with(
        &self,
        config: Arc<dimpl::Config>,
        now: std::time::Instant,
    ) -> Result<dimpl::Dtls, Error> {
        if self.psk.is_some() {
            return Ok(dimpl::Dtls::new_12_psk(config, now));
        }
        let identity = match &self.identity {
            Some(identity) => identity.clone(),
            None => Identity::self_signed("anonymous.invalid")?,
        };
        let certificate = dimpl::DtlsCertificate {
            certificate: identity.certificate_der().to_vec(),
            private_key: identity.key_der().to_vec(),
        };
        let provider = config.crypto_provider().key_provider;
        provider
            .load_private_key(&certificate.private_key)
            .map_err(|e| Error::Identity(format!("private key: {e}")))?;
        self.check_certificate_size(certificate.certificate.len(), config.mtu())?;
        //= 5238-3.7-1
        Ok(match (self.oldest, self.newest) {
            (_, Version::Dtls12) => dimpl::Dtls::new_12(config, certificate, now),
            (Version::Dtls13, _) => dimpl::Dtls::new_13(config, certificate, now),
            (Version::Dtls12, Version::Dtls13) => dimpl::Dtls::new_auto(config, certificate, now),
        })
    }

    fn check_certificate_size(&self, len: usize, packet_bytes: usize) -> Result<(), Error> {
        let most_12 = largest(LARGEST_MESSAGE_RECORDS_12, packet_bytes);
        let (most, advice) = match self.newest {
            Version::Dtls12 => (most_12, "give it fewer names".to_owned()),
            Version::Dtls13 => {
                let advice = format!("DTLS 1.2 alone carries {most_12}");
                (largest(LARGEST_CERTIFICATE_RECORDS_13, packet_bytes), advice)
            }
        };
        if len <= most {
            return Ok(());
        }
        let version = self.newest;
        Err(Error::Identity(format!(
            "a certificate of {len} bytes exceeds the {most} that {version} carries on this path; \
             {advice}"
        )))
    }

    fn check(&self, is_client: bool, packet_bytes: usize) -> Result<(), Error> {
        if self.flight_timeout.is_zero() {
            return Err(Error::Options("the timeout of a flight must be above zero"));
        }
        if self.handshake_timeout.is_zero() {
            return Err(Error::Options("the timeout of the handshake must be above zero"));
        }
        match &self.psk {
            Some(_) if self.identity.is_some() || self.verification.is_some() => {
                Err(Error::Options("pre-shared keys and certificates cannot be combined"))
            }
            Some(_) if self.oldest > Version::Dtls12 => {
                Err(Error::Options("pre-shared keys need DTLS 1.2, which is not allowed here"))
            }
            Some(psk) if is_client && psk.identity.is_empty() => {
                Err(Error::Options("a client has one pre-shared key with its identity"))
            }
            Some(psk) => psk.check(packet_bytes),
            None if self.oldest > self.newest => {
                Err(Error::Options("the range of versions is empty"))
            }
            None if is_client && self.verification.is_none() => Err(Error::NoVerification),
            None if !is_client && self.identity.is_none() => Err(Error::NoIdentity),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for DtlsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accepts = match &self.verification {
            None => "nobody",
            Some(Verification::Pins(_)) => "pinned",
            Some(Verification::Check(_)) => "by a check",
            Some(Verification::AcceptAny) => "anybody",
        };
        f.debug_struct("DtlsOptions")
            .field("identity", &self.identity)
            .field("accepts", &accepts)
            .field("psk", &self.psk.is_some())
            .field("versions", &(self.oldest..=self.newest))
            .field("handshake_timeout", &self.handshake_timeout)
            .finish_non_exhaustive()
    }
}

/// The library requires unwind-safe types. A panic in a lookup ends the task that runs it.
struct Keys(AssertUnwindSafe<Psk>);

impl dimpl::PskResolver for Keys {
    fn resolve(&self, identity: &[u8]) -> Option<Vec<u8>> {
        self.0.key(identity)
    }
}

#[cfg(test)]
mod tests {
    use dimpl::PskResolver as _;

    use super::*;

    /// Whoever knows an identity knows an empty key too.
    #[test]
    fn a_lookup_that_returns_no_key_or_one_that_is_too_long_knows_none() {
        for (len, known) in [(0, false), (1, true), (65_535, true), (65_536, false)] {
            let options = DtlsOptions::new().psk_lookup(move |_| Some(vec![7; len]));
            let keys = Keys(AssertUnwindSafe(options.psk.expect("just set")));
            assert_eq!(keys.resolve(b"anybody").is_some(), known, "{len} bytes");
        }
    }
}
