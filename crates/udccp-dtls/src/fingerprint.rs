//! Fingerprints of certificates.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// The SHA-256 of a certificate in DER, written as `AB:CD:...` or as 64 hex digits.
///
/// ```
/// let identity = udccp_dtls::Identity::self_signed("host.example")?;
/// let text = identity.fingerprint().to_string();
/// assert_eq!(text.parse(), Ok(identity.fingerprint()));
/// # Ok::<_, udccp_dtls::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// The fingerprint of a certificate in DER.
    pub fn of(certificate_der: &[u8]) -> Self {
        Self(Sha256::digest(certificate_der).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02X}", if i > 0 { ":" } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The error for a text that is not a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a SHA-256 fingerprint has 64 hex digits, with or without colons; this has {digits}")]
pub struct ParseFingerprintError {
    /// Hex digits found.
    pub digits: usize,
}

impl FromStr for Fingerprint {
    type Err = ParseFingerprintError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let nibble = |c: char| c.to_digit(16).map(|d| d as u8);
        let digits: Vec<u8> = text.chars().filter_map(nibble).collect();
        let other = text.chars().filter(|c| !c.is_ascii_hexdigit() && *c != ':').count();
        if digits.len() != 64 || other > 0 {
            return Err(ParseFingerprintError { digits: digits.len() });
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair[0] << 4 | pair[1];
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_needs_all_its_digits() {
        assert_eq!("AB:CD".parse::<Fingerprint>().unwrap_err().digits, 4);
        assert!("zz".repeat(32).parse::<Fingerprint>().is_err());
        let lower = "ab".repeat(32).parse::<Fingerprint>().unwrap();
        assert_eq!(lower, Fingerprint([0xab; 32]));
    }
}
