//! The key and the certificate by which the other head knows this one: made once, kept in the state directory.

use crate::state;
use base::codec::{hex, unhex};
use core::fmt;
use files::content;
use finding::{ContentFault, FileFault, KeyFault, SystemRefusal};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use subtle::ConstantTimeEq;
use uring::errno;

/// The file's name in the state directory.
pub const FILE: &str = "link-identity";

/// A larger file is not ours.
const FILE_BYTES_MAX: u64 = 16 << 10;

/// SHA-256 of a certificate's DER. Equality takes the same time wherever two differ.
#[derive(Clone, Copy)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// Of a certificate in DER.
    pub fn of(certificate: &[u8]) -> Self {
        Self(Sha256::digest(certificate).into())
    }
}

impl PartialEq for Fingerprint {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Fingerprint {}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base::codec::hex(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The key and the self-signed certificate of this head.
#[derive(Clone)]
pub struct Identity {
    /// The private key, PKCS #8 DER.
    key: Vec<u8>,
    /// The certificate, DER.
    certificate: Vec<u8>,
    /// Both, as rustls signs with them; they were seen to belong together.
    certified: Arc<CertifiedKey>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({}, key not shown)", self.fingerprint())
    }
}

impl Identity {
    /// A new key (Ed25519) with a certificate that it signed itself, in memory alone. Fails where the kernel gives no entropy.
    pub fn make() -> Result<Self, SystemRefusal> {
        let failed = |e: rcgen::Error| SystemRefusal::LinkKeyNotMade { error: e.to_string() };
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).map_err(failed)?;
        let mut parameters = rcgen::CertificateParams::default();
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        parameters.distinguished_name.push(rcgen::DnType::CommonName, "Millrace head");
        let certificate = parameters.self_signed(&key).map_err(failed)?;
        Self::new(key.serialize_der(), certificate.der().to_vec())
            .map_err(|e| SystemRefusal::LinkKeyNotMade { error: e.to_string() })
    }

    /// The identity in the state directory `dir`; where it has none, one is made and written durably before this returns.
    /// A file that cannot be read or does not hold what it should is refused, and stays as it is.
    pub fn load_or_make(dir: &Path) -> Result<Self, SystemRefusal> {
        let path = dir.join(FILE);
        let unusable = |why| SystemRefusal::LinkKeyUnusable { path: path.display().to_string(), why };
        match read(&path) {
            Ok(Some(bytes)) => Self::decode(&bytes).map_err(unusable),
            Ok(None) => {
                let made = Self::make()?;
                let written = state::write(dir, FILE, &made.content());
                written.map_err(|e| unusable(KeyFault::NotWritten { errno: state::errno_of(&e) }))?;
                Ok(made)
            }
            Err(why) => Err(unusable(why)),
        }
    }

    /// What the other head pins.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.certificate)
    }

    /// The certificate and its key, for a handshake.
    pub(super) fn certified(&self) -> Arc<CertifiedKey> {
        self.certified.clone()
    }

    fn new(key: Vec<u8>, certificate: Vec<u8>) -> Result<Self, rustls::Error> {
        let chain = vec![CertificateDer::from(certificate.clone())];
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.clone()));
        // Fails if the key is not the certificate's.
        let certified = CertifiedKey::from_der(chain, private, &default_provider())?;
        Ok(Self { key, certificate, certified: Arc::new(certified) })
    }

    fn content(&self) -> content::LinkIdentity {
        content::LinkIdentity { key: hex(&self.key), certificate: hex(&self.certificate) }
    }

    fn decode(bytes: &[u8]) -> Result<Self, KeyFault> {
        let file = |why| KeyFault::File { why };
        let content::LinkIdentity { key, certificate } = files::open(FILE, bytes).map_err(file)?;
        let of = |name: &str, text: &str| {
            let why = ContentFault::NoHex { key: name.into() };
            unhex(text).ok_or_else(|| file(FileFault::Content { row: String::new(), why }))
        };
        let (key, certificate) = (of("key", &key)?, of("certificate", &certificate)?);
        Self::new(key, certificate).map_err(|_| KeyFault::Mismatch)
    }
}

/// The file's bytes, if there is one and it is its owner's alone.
fn read(path: &Path) -> Result<Option<Vec<u8>>, KeyFault> {
    let failed = |e: io::Error| KeyFault::NotRead { errno: errno(&e) };
    let file = match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    let mode = file.metadata().map_err(failed)?.mode() & 0o777;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(KeyFault::TooLarge { bytes_max: FILE_BYTES_MAX });
    }
    if mode & 0o077 != 0 { Err(KeyFault::Open { mode }) } else { Ok(Some(bytes)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn an_identity_is_made_once_and_kept_from_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path().join("made/with/it");
        let first = Identity::load_or_make(&dir).expect("made");
        let again = Identity::load_or_make(&dir).expect("read");
        assert_eq!(first.fingerprint(), again.fingerprint());
        assert_eq!(first.key, again.key);
        let path = dir.join(FILE);
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&dir).expect("a folder").count(), 1, "nothing else is left there");
        let other = Identity::make().expect("made");
        assert_ne!(other.fingerprint(), first.fingerprint());
        assert!(!format!("{first:?}").contains(&hex(&first.key)[..16]), "the key is not shown");

        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("set");
        let refused = Identity::load_or_make(&dir).expect_err("others may read it");
        let said = crate::words::why(&refused.into());
        assert!(said.message.contains("640"), "{said:?}");
        let next = said.next.expect("a way on");
        let ran = std::process::Command::new("sh").args(["-c", &next]).status().expect("a shell");
        assert!(ran.success(), "{next}");
        Identity::load_or_make(&dir).expect("after what the message says");
    }

    #[test]
    fn a_rotten_identity_is_refused_and_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(FILE);
        let good = files::seal(FILE, &Identity::load_or_make(folder.path()).expect("made").content());
        let other = Identity::make().expect("made").content();
        let mut pair: content::LinkIdentity = files::open(FILE, &good).expect("whole");
        pair.certificate.clone_from(&other.certificate);
        let mut odd = other.clone();
        odd.key.push('0');
        let cases: [(Vec<u8>, &str); 6] = [
            (vec![], "empty"),
            (b"\0\0\0\0".to_vec(), "no end"),
            (good[..good.len() / 2].to_vec(), "no end"),
            // Whole, and yet no pair.
            (files::seal(FILE, &pair), "do not fit"),
            (files::seal(FILE, &odd), "hex"),
            (vec![b'x'; 20_000], "larger"),
        ];
        for (bytes, word) in cases {
            fs::write(&path, &bytes).expect("written");
            let refused = Identity::load_or_make(folder.path()).expect_err("rotten");
            let said = crate::words::why(&refused.into());
            assert!(said.message.contains(word) && said.message.contains(FILE), "{word}: {said:?}");
            assert!(said.next.is_some(), "{said:?}");
            assert_eq!(fs::read(&path).expect("there"), bytes, "it is not replaced");
        }
    }
}
