//! Errors of protected connections, and what to do about each.

use std::fmt;

use crate::Fingerprint;

/// An error of a protected connection. Its text says what happened; [`Error::advice`] says what to
/// do.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The client has no way to verify its server: no pin, no check and no shared key.
    #[error("the client has no way to verify the server")]
    NoVerification,
    /// The server has neither a certificate nor a shared key.
    #[error("the server has neither an identity nor a pre-shared key")]
    NoIdentity,
    /// A setting is invalid, or settings contradict each other.
    #[error("{0}")]
    Options(&'static str),
    /// A certificate or key cannot be read, or they do not belong together.
    #[error("unusable certificate or key: {0}")]
    Identity(String),
    /// The peer's certificate was rejected.
    #[error("the peer's certificate {fingerprint} is refused: {reason}")]
    CertificateRefused {
        /// The fingerprint of that certificate.
        fingerprint: Fingerprint,
        /// Why it was rejected.
        reason: String,
    },
    /// The peer sent no certificate.
    #[error("the peer presented no certificate")]
    NoCertificate,
    /// The peer ended the handshake or connection with an alert.
    #[error("the peer refused: {0}")]
    PeerAlert(Alert),
    /// The two sides have no version of DTLS in common.
    #[error("the two ends have no version of DTLS in common")]
    Version,
    /// The peer's handshake messages cannot be decrypted: the shared keys differ.
    #[error("the peer has different keys: its data cannot be decrypted")]
    WrongKey,
    /// The two sides have no parameters in common, or a message was invalid.
    #[error("the DTLS handshake failed: {0}")]
    Handshake(String),
    /// The handshake took longer than allowed.
    #[error("the DTLS handshake did not finish within {0:?}")]
    HandshakeTimeout(std::time::Duration),
    /// The path's packets are too small for a handshake.
    #[error(
        "the path carries {max_message_size} bytes per packet, but a DTLS handshake needs {needed}"
    )]
    PathTooNarrow {
        /// DCCP's maximum packet size.
        max_message_size: usize,
        /// The smallest size for a handshake, in bytes.
        needed: usize,
    },
    /// The message and the overhead of DTLS do not fit in one packet of this path.
    #[error("a message of {len} bytes exceeds the maximum of {max} bytes for this path")]
    MessageTooLarge {
        /// Bytes offered.
        len: usize,
        /// Bytes that fit, see [`crate::DtlsConnection::max_message_size`].
        max: usize,
    },
    /// The DTLS connection was closed. Nothing more can be sent.
    #[error("the DTLS connection is closed")]
    Closed,
    /// The DCCP connection was closed without a close_notify, so messages may be missing at the
    /// end.
    #[error("the DCCP connection was closed without DTLS's close_notify")]
    Truncated,
    /// Encryption failed. The connection cannot be used any more.
    #[error("DTLS failed: {0}")]
    Protection(String),
    /// The DCCP connection failed.
    #[error("the DCCP connection below: {0}")]
    Dccp(std::sync::Arc<udccp::Error>),
}

impl Error {
    /// What to do about it, in one sentence for a user.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::NoVerification => {
                "pin the server's fingerprint, verify its certificate, or use a pre-shared key"
            }
            Self::NoIdentity => "give an identity, for example Identity::self_signed, or a key",
            Self::Options(_) => "change the setting that the message names",
            Self::Identity(_) => "check that both are ECDSA P-256 or P-384, in PEM or DER",
            Self::CertificateRefused { .. } => {
                "compare the fingerprint with the one that the peer's owner gives; if it differs, \
                 somebody may be intercepting the connection"
            }
            Self::NoCertificate => "give the peer an identity",
            Self::PeerAlert(alert) => alert.advice(),
            Self::Version => "allow a version that the peer supports",
            Self::WrongKey => "check that both ends have the same pre-shared key and identity",
            Self::Handshake(_) => {
                "check that both ends allow the same version, and the same kind of credentials"
            }
            Self::HandshakeTimeout(_) => "check that the peer speaks DTLS on this service code",
            Self::PathTooNarrow { .. } => "use a path with a larger MTU",
            Self::MessageTooLarge { .. } => "split the data into messages that fit into one packet",
            Self::Closed => "open a new connection to send more",
            Self::Truncated => {
                "treat the last messages as possibly missing, and ask for them again"
            }
            Self::Protection(_) => "open a new connection",
            Self::Dccp(below) => below.advice(),
        }
    }
}

impl From<udccp::Error> for Error {
    fn from(e: udccp::Error) -> Self {
        Self::Dccp(std::sync::Arc::new(e))
    }
}

impl From<Error> for std::io::Error {
    fn from(e: Error) -> Self {
        use std::io::ErrorKind as Kind;
        let kind = match &e {
            Error::NoVerification | Error::NoIdentity | Error::Options(_) | Error::Identity(_) => {
                Kind::InvalidInput
            }
            Error::CertificateRefused { .. } | Error::NoCertificate => Kind::PermissionDenied,
            Error::PeerAlert(_) | Error::PathTooNarrow { .. } | Error::Version => {
                Kind::ConnectionRefused
            }
            Error::Handshake(_) | Error::WrongKey | Error::Protection(_) => Kind::InvalidData,
            Error::HandshakeTimeout(_) => Kind::TimedOut,
            Error::MessageTooLarge { .. } => Kind::InvalidInput,
            Error::Closed => Kind::NotConnected,
            Error::Truncated => Kind::UnexpectedEof,
            Error::Dccp(_) => Kind::Other,
        };
        Self::new(kind, e)
    }
}

/// An alert with which the peer ended the handshake or connection (RFC 8446 section 6, RFC 5246
/// section 7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Alert(pub u8);

impl Alert {
    /// No common parameters.
    pub const HANDSHAKE_FAILURE: Self = Self(40);
    /// The certificate was rejected.
    pub const BAD_CERTIFICATE: Self = Self(42);
    /// A message could not be decrypted: the keys differ.
    pub const DECRYPT_ERROR: Self = Self(51);
    /// No common version.
    pub const PROTOCOL_VERSION: Self = Self(70);

    fn name(self) -> &'static str {
        match self.0 {
            10 => "unexpected_message",
            20 => "bad_record_mac",
            22 => "record_overflow",
            40 => "handshake_failure",
            42 => "bad_certificate",
            43 => "unsupported_certificate",
            44 => "certificate_revoked",
            45 => "certificate_expired",
            46 => "certificate_unknown",
            47 => "illegal_parameter",
            48 => "unknown_ca",
            49 => "access_denied",
            50 => "decode_error",
            51 => "decrypt_error",
            70 => "protocol_version",
            71 => "insufficient_security",
            80 => "internal_error",
            109 => "missing_extension",
            110 => "unsupported_extension",
            115 => "unknown_psk_identity",
            116 => "certificate_required",
            120 => "no_application_protocol",
            _ => "unknown alert",
        }
    }

    fn advice(self) -> &'static str {
        match self.0 {
            42..=49 => "the peer does not accept our certificate: give it our fingerprint",
            70 => "allow a version that the peer supports",
            20 | 51 | 115 => "check that both ends have the same pre-shared key and identity",
            116 => "give an identity: the peer asks for a certificate",
            _ => "check that both ends allow the same version and kind of credentials",
        }
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}
