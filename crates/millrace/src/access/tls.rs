//! TLS of the API over TCP: the certificate that a head shows, and how the command line knows it.

use crate::failure::Failure;
use crate::link::Fingerprint;
use crate::state::{self, Stamp};
use crate::words::parts::file_fault;
use files::content;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig,
    SignatureScheme,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The self-made certificate and its key, in the state directory.
const FILE: &str = "api-certificate";
/// Characters in a line of PEM (RFC 7468).
const PEM_LINE: usize = 64;

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// SHA-256 of a certificate, hexadecimal.
fn fingerprint_of(certificate: &CertificateDer<'_>) -> String {
    Fingerprint::of(certificate).to_string()
}

/// What was read from the files, and which they were.
struct Loaded {
    stamps: [Option<Stamp>; 2],
    config: Arc<ServerConfig>,
    fingerprint: String,
}

/// The certificate and the key of the API.
pub struct Certificate {
    files: [PathBuf; 2],
    loaded: Mutex<Loaded>,
}

impl Certificate {
    /// Those of two files.
    pub fn given(certificate: &Path, key: &Path) -> Result<Self, Failure> {
        let files = [certificate.to_path_buf(), key.to_path_buf()];
        let next = "look at cert and key of api.tls in head.toml: PEM files that belong together";
        let loaded = load(&files).map_err(|why| Failure::usage(format!("api.tls: {why}")).with_next(next))?;
        Ok(Self { files, loaded: Mutex::new(loaded) })
    }

    /// Those of the state directory `dir`; where it has none, they are made, for these names and addresses.
    pub fn self_signed(dir: &Path, names: Vec<String>) -> Result<Self, Failure> {
        let path = dir.join(FILE);
        let next = format!(
            "restore the file from a copy; or mv {0} {0}.old, and restart the daemon: it makes another one",
            path.display()
        );
        let unusable = |why: &str| Failure::usage(why).with_next(&next);
        let kept = state::read::<content::Certificate>(dir, FILE);
        if kept.map_err(|why| unusable(&file_fault(&path.display().to_string(), &why)))?.is_none() {
            let made =
                make(names).map_err(|e| Failure::internal(format!("no certificate can be made: {e}")))?;
            state::write(dir, FILE, &made).map_err(|e| {
                Failure::usage(state::unwritten(FILE, &e)).with_next(format!(
                    "ls -ld {}, and make it writable for the daemon's user",
                    dir.display()
                ))
            })?;
        }
        let files = [path.clone(), path];
        let loaded = load(&files).map_err(|why| unusable(&why))?;
        Ok(Self { files, loaded: Mutex::new(loaded) })
    }

    /// For the next connection: the files are read again if they changed. Those that do not fit are told once, and the ones before stay.
    pub fn config(&self) -> Arc<ServerConfig> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let stamps = stamps(&self.files);
        if stamps != loaded.stamps {
            match self.checked().and_then(|()| load(&self.files)) {
                Ok(new) => {
                    tracing::info!("the API has a new certificate, {}", new.fingerprint);
                    *loaded = new;
                }
                Err(why) => {
                    tracing::error!("the API keeps its certificate, since the new one cannot be used: {why}");
                    loaded.stamps = stamps;
                }
            }
        }
        Arc::clone(&loaded.config)
    }

    /// Whether the file of the state directory is whole, if this is it.
    fn checked(&self) -> Result<(), String> {
        let [path, key] = &self.files;
        let (Some(dir), true) = (path.parent(), path == key && path.ends_with(FILE)) else { return Ok(()) };
        let read = state::read::<content::Certificate>(dir, FILE);
        read.map(drop).map_err(|why| file_fault(&path.display().to_string(), &why))
    }

    /// SHA-256 of the certificate.
    pub fn fingerprint(&self) -> String {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).fingerprint.clone()
    }
}

fn stamps(files: &[PathBuf; 2]) -> [Option<Stamp>; 2] {
    [Stamp::of(&files[0]), Stamp::of(&files[1])]
}

fn load(files: &[PathBuf; 2]) -> Result<Loaded, String> {
    let stamps = stamps(files);
    let [certificate, key] = files;
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain = chain.map_err(|e| format!("{}: {e}", certificate.display()))?;
    let Some(first) = chain.first() else { return Err(format!("{}: no certificate", certificate.display())) };
    let fingerprint = fingerprint_of(first);
    let key = PrivateKeyDer::from_pem_file(key).map_err(|e| format!("{}: {e}", key.display()))?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|e| format!("{}: the certificate and its key do not fit ({e})", certificate.display()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Loaded { stamps, config: Arc::new(config), fingerprint })
}

/// A key and a certificate for these names and addresses.
fn make(names: Vec<String>) -> Result<content::Certificate, rcgen::Error> {
    // Browsers do not take Ed25519.
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
    let mut parameters = rcgen::CertificateParams::new(names)?;
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(rcgen::DnType::CommonName, "Millrace API");
    let certificate = parameters.self_signed(&key)?;
    let (certificate, key) =
        (pem("CERTIFICATE", certificate.der()), pem("PRIVATE KEY", &key.serialize_der()));
    Ok(content::Certificate { certificate, key })
}

fn pem(label: &str, der: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in der.chunks(3) {
        let bits = three.iter().fold(0u32, |bits, b| bits << 8 | u32::from(*b)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= three.len() { char::from(digit) } else { '=' });
        }
    }
    let lines: Vec<&str> =
        text.as_bytes().chunks(PEM_LINE).map(|l| core::str::from_utf8(l).expect("ASCII")).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// How the command line decides whether a certificate is that of its head.
#[derive(Debug)]
pub struct Verifier {
    pin: Option<String>,
    ca: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
    /// The fingerprint that was refused.
    refused: Mutex<Option<String>>,
}

impl Verifier {
    /// By the fingerprint, or by a CA of a file.
    pub fn new(pin: Option<&str>, ca: Option<&Path>) -> Result<Arc<Self>, String> {
        let pin = pin.map(|p| p.replace(':', "").to_ascii_lowercase());
        if pin.as_ref().is_some_and(|p| p.len() != 64 || !p.bytes().all(|b| b.is_ascii_hexdigit())) {
            return Err("it is not SHA-256 as 64 hexadecimal digits".into());
        }
        let ca = match ca {
            None => None,
            Some(path) => {
                let mut roots = RootCertStore::empty();
                let all: Result<Vec<CertificateDer<'static>>, _> =
                    CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
                for root in all.map_err(|e| format!("{}: {e}", path.display()))? {
                    roots.add(root).map_err(|e| format!("{}: {e}", path.display()))?;
                }
                let verifier =
                    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build();
                Some(verifier.map_err(|e| format!("{}: {e}", path.display()))?)
            }
        };
        Ok(Arc::new(Self { pin, ca, provider: provider(), refused: Mutex::default() }))
    }

    /// For a connection.
    pub fn config(self: &Arc<Self>) -> Arc<ClientConfig> {
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("ring speaks TLS 1.3")
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(self) as Arc<dyn ServerCertVerifier>)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Arc::new(config)
    }

    /// The fingerprint that the certificate must have, if it was named.
    pub fn pin(&self) -> Option<&str> {
        self.pin.as_deref()
    }

    /// The fingerprint of the certificate that was refused, if one was.
    pub fn refused(&self) -> Option<String> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let shown = fingerprint_of(end_entity);
        let verdict = match (&self.pin, &self.ca) {
            (Some(pin), _) if *pin == shown => Ok(ServerCertVerified::assertion()),
            (None, Some(ca)) => {
                ca.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            }
            _ => Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)),
        };
        if verdict.is_err() {
            *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(shown);
        }
        verdict
    }
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_made_once_and_a_new_file_counts_at_once() {
        let dir = tempfile::tempdir().expect("a folder");
        let names = || vec!["localhost".to_string(), "10.0.0.1".into()];
        let first = Certificate::self_signed(dir.path(), names()).expect("made");
        let before = first.fingerprint();
        assert_eq!(Certificate::self_signed(dir.path(), names()).expect("read").fingerprint(), before);
        let path = dir.path().join(FILE);
        let good = std::fs::read(&path).expect("there");
        for bad in [&b"garbage"[..], &good[..good.len() - 3], &good[40..]] {
            std::fs::write(&path, bad).expect("written");
            first.config();
            assert_eq!(first.fingerprint(), before, "what cannot be used changes nothing");
            assert!(Certificate::self_signed(dir.path(), names()).is_err());
            assert_eq!(std::fs::read(&path).expect("there"), bad, "nor is it written over");
        }
        state::write(dir.path(), FILE, &make(names()).expect("made")).expect("written");
        first.config();
        assert_ne!(first.fingerprint(), before);
        assert!(Certificate::given(&path, &path).is_ok());
        assert!(Certificate::given(&path, Path::new("/nonexistent")).is_err());
    }

    #[test]
    fn a_pin_is_a_fingerprint() {
        assert!(Verifier::new(Some("12:34"), None).is_err());
        let colons = ["AB"; 32].join(":");
        assert_eq!(Verifier::new(Some(&colons), None).expect("good").pin, Some("ab".repeat(32)));
    }
}
