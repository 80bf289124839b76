//! Identities: certificates with their keys.

use std::fmt;
use std::str::FromStr as _;
use std::time::Duration;

use p256::ecdsa::{DerSignature, SigningKey};
use p256::elliptic_curve::Generate;
use p256::pkcs8::{EncodePrivateKey, LineEnding};
use x509_cert::builder::profile::BuilderProfile;
use x509_cert::builder::{Builder, CertificateBuilder};
use x509_cert::der::asn1::Ia5String;
use x509_cert::der::{Decode, DecodePem, Encode, EncodePem, pem};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::{Extension, ToExtension};
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::{SubjectPublicKeyInfoOwned, SubjectPublicKeyInfoRef};
use x509_cert::time::Validity;
use x509_cert::{Certificate, TbsCertificate};

use crate::{Error, Fingerprint};

/// Validity of a self-signed certificate.
const VALID_FOR: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// RFC 1035 section 3.1: 255 bytes with the length of the first label and the root.
const MAX_NAME_BYTES: usize = 253;
/// As much of a name that is too long is shown.
const SHOWN_CHARS: usize = 40;

/// A certificate and the private key that belongs to it (ECDSA, P-256 or P-384).
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    certificate_der: Vec<u8>,
    key_der: Vec<u8>,
}

impl Identity {
    /// Creates a P-256 key and a self-signed certificate for `name`, valid for ten years. Peers
    /// recognize it by its [`Self::fingerprint`].
    ///
    /// # Errors
    /// [`Error::Identity`] if `name` is not a host name.
    pub fn self_signed(name: &str) -> Result<Self, Error> {
        Self::self_signed_for([name])
    }

    /// As [`Self::self_signed`], for several names.
    ///
    /// # Errors
    /// As [`Self::self_signed`].
    pub fn self_signed_for(
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, Error> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let long = |name: &&String| name.strip_suffix('.').unwrap_or(name).len() > MAX_NAME_BYTES;
        if let Some(name) = names.iter().find(long) {
            // Host names are ASCII, but this may be any text.
            let begin: String = name.chars().take(SHOWN_CHARS).collect();
            let error = format!(
                "\"{begin}...\" is longer than the {MAX_NAME_BYTES} characters of a host name"
            );
            return Err(Error::Identity(error));
        }
        let wrong = |name: &&String| !is_host_name(name);
        if let Some(name) = names.iter().find(wrong) {
            return Err(Error::Identity(format!("{name:?} is not a host name")));
        }
        if names.is_empty() {
            return Err(Error::Identity("a certificate needs a name".to_owned()));
        }
        let key = SigningKey::generate();
        let text = |e: &dyn fmt::Display| Error::Identity(e.to_string());
        let profile = SelfSigned::new(&names).map_err(|e| text(&e))?;
        let public =
            SubjectPublicKeyInfoOwned::from_key(key.verifying_key()).map_err(|e| text(&e))?;
        // The first 16 bytes of a new public key are unique enough.
        let serial = &public.subject_public_key.raw_bytes()[1..17];
        let serial = SerialNumber::new(serial).map_err(|e| text(&e))?;
        let validity = Validity::from_now(VALID_FOR).map_err(|e| text(&e))?;
        let builder =
            CertificateBuilder::new(profile, serial, validity, public).map_err(|e| text(&e))?;
        let certificate = builder.build::<_, DerSignature>(&key).map_err(|e| text(&e))?;
        Ok(Self {
            certificate_der: certificate.to_der().map_err(|e| text(&e))?,
            key_der: key.to_pkcs8_der().map_err(|e| text(&e))?.as_bytes().to_vec(),
        })
    }

    /// Reads an X.509 certificate, and its key in PKCS #8 or SEC 1 form, both in DER.
    ///
    /// # Errors
    /// [`Error::Identity`] if the certificate cannot be read. A key that does not fit fails in the
    /// handshake.
    pub fn from_der(
        certificate: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
    ) -> Result<Self, Error> {
        let certificate_der = certificate.into();
        Certificate::from_der(&certificate_der).map_err(|e| Error::Identity(e.to_string()))?;
        Ok(Self { certificate_der, key_der: key.into() })
    }

    /// Reads PEM: the first certificate in `certificate`, and `key` as `PRIVATE KEY` (PKCS #8) or
    /// `EC PRIVATE KEY` (SEC 1). Of a chain only the first certificate is used and sent.
    ///
    /// # Errors
    /// [`Error::Identity`] if either cannot be read.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, Error> {
        let certificate = Certificate::from_pem(first_block(certificate, "CERTIFICATE"))
            .map_err(|e| Error::Identity(format!("certificate: {e}")))?;
        let block = first_block(key, "PRIVATE KEY");
        let (_, key_der) = pem::decode_vec(block.as_bytes())
            .map_err(|e| Error::Identity(format!("private key: {e}")))?;
        let der = certificate.to_der().map_err(|e| Error::Identity(e.to_string()))?;
        Self::from_der(der, key_der)
    }

    /// The certificate in DER.
    pub fn certificate_der(&self) -> &[u8] {
        &self.certificate_der
    }

    /// The private key in DER (PKCS #8 if it was created here). Keep it secret.
    pub fn key_der(&self) -> &[u8] {
        &self.key_der
    }

    /// The certificate in PEM.
    pub fn certificate_pem(&self) -> String {
        Certificate::from_der(&self.certificate_der)
            .and_then(|c| c.to_pem(LineEnding::LF))
            .unwrap_or_default()
    }

    /// The private key in PEM, as `PRIVATE KEY`. Keep it secret.
    pub fn key_pem(&self) -> String {
        pem::encode_string("PRIVATE KEY", LineEnding::LF, &self.key_der).unwrap_or_default()
    }

    /// The fingerprint that peers can pin.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.certificate_der)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("fingerprint", &self.fingerprint()).finish_non_exhaustive()
    }
}

/// Whether the name is a host name, a pattern of host names, or an address, without characters that
/// are special in a distinguished name.
fn is_host_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._*:".contains(c);
    !name.is_empty() && name.chars().all(fits)
}

/// The text from the first `BEGIN` line that ends in `what` to its `END` line; the whole text if
/// there is none.
fn first_block<'a>(text: &'a str, what: &str) -> &'a str {
    let mut from = 0;
    for line in text.split_inclusive('\n') {
        let is_begin = line.starts_with("-----BEGIN ") && line.trim_end().ends_with("-----");
        if is_begin && line.trim_end().trim_end_matches('-').ends_with(what) {
            let rest = &text[from..];
            let end = rest.find("-----END ").and_then(|at| Some(at + rest[at..].find('\n')? + 1));
            return &rest[..end.unwrap_or(rest.len())];
        }
        from += line.len();
    }
    text
}

struct SelfSigned {
    name: Name,
    hosts: Vec<GeneralName>,
}

impl SelfSigned {
    fn new(hosts: &[String]) -> Result<Self, x509_cert::der::Error> {
        let name = Name::from_str(&format!("CN={}", hosts.first().map_or("", String::as_str)))?;
        let general = |host: &String| Ia5String::new(host).map(GeneralName::DnsName);
        Ok(Self { name, hosts: hosts.iter().map(general).collect::<Result<_, _>>()? })
    }
}

impl BuilderProfile for SelfSigned {
    fn get_issuer(&self, subject: &Name) -> Name {
        subject.clone()
    }

    fn get_subject(&self) -> Name {
        self.name.clone()
    }

    fn build_extensions(
        &self,
        _: SubjectPublicKeyInfoRef<'_>,
        _: SubjectPublicKeyInfoRef<'_>,
        tbs: &TbsCertificate,
    ) -> x509_cert::builder::Result<Vec<Extension>> {
        let names = SubjectAltName(self.hosts.clone());
        Ok(vec![names.to_extension(tbs.subject(), &[])?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_survives_pem() {
        let identity = Identity::self_signed("a.example").unwrap();
        let (certificate, key) = (identity.certificate_pem(), identity.key_pem());
        assert_eq!(Identity::from_pem(&certificate, &key).unwrap(), identity);
        let both = format!("text before\n{key}{certificate}");
        assert_eq!(Identity::from_pem(&both, &both).unwrap(), identity);
    }

    #[test]
    fn a_name_that_is_no_host_name_is_refused() {
        for name in ["", "a b", "a,CN=b", "a+b", "a\"b", "CN=a", "#00", "a\0", "\u{e9}.example"] {
            assert!(matches!(Identity::self_signed(name), Err(Error::Identity(_))), "{name:?}");
        }
        assert!(Identity::self_signed_for([""; 0]).is_err());
        for name in ["a", "*.example", "192.0.2.1", "2001:db8::1", "my_host-1.example."] {
            assert!(Identity::self_signed(name).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn two_identities_differ() {
        let new = || Identity::self_signed("a.example").unwrap().fingerprint();
        assert_ne!(new(), new());
    }

    #[test]
    fn text_that_is_no_certificate_is_refused() {
        let identity = Identity::self_signed("a.example").unwrap();
        assert!(matches!(Identity::from_pem("", &identity.key_pem()), Err(Error::Identity(_))));
        assert!(matches!(Identity::from_der(*b"x", *b"y"), Err(Error::Identity(_))));
    }
}
