//! The key and the certificate by which the other head knows this one: made once, kept in the state directory.

use base::codec::{hex, unhex};
use core::fmt;
use finding::{KeyFault, SystemRefusal};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use subtle::ConstantTimeEq;
use uring::errno;

/// The file's name in the state directory.
pub const FILE: &str = "link-identity";

/// A larger file is not ours.
const FILE_BYTES_MAX: u64 = 16 << 10;

const COMMENT: &str = "\
# The key and the certificate by which the other head of the system knows this one.
# Secret, and never to be copied to another head: two heads with one key are one head to their peer.
";

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
            Ok(Some(text)) => Self::decode(&text).map_err(unusable),
            Ok(None) => {
                let made = Self::make()?;
                let written = write(dir, &path, &made.encode());
                written.map_err(|e| unusable(KeyFault::NotWritten { errno: errno(&e) }))?;
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

    fn encode(&self) -> String {
        let checksum = checksum(&self.key, &self.certificate);
        format!(
            "{COMMENT}key = {}\ncertificate = {}\nchecksum = {checksum:08x}\n",
            hex(&self.key),
            hex(&self.certificate)
        )
    }

    fn decode(text: &str) -> Result<Self, KeyFault> {
        let (mut key, mut certificate, mut stated) = (None, None, None);
        for (number, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let (name, value) = text.split_once('=').ok_or(KeyFault::NoKey { line: number })?;
            let bytes = unhex(value.trim()).ok_or(KeyFault::NoHex { line: number })?;
            let place = match name.trim() {
                "key" => &mut key,
                "certificate" => &mut certificate,
                "checksum" => &mut stated,
                _ => return Err(KeyFault::KeyUnknown { line: number }),
            };
            if place.replace(bytes).is_some() {
                return Err(KeyFault::KeyTwice { line: number });
            }
        }
        let missing = |key: &str| KeyFault::KeyMissing { key: key.into() };
        let key = key.ok_or_else(|| missing("key"))?;
        let certificate = certificate.ok_or_else(|| missing("certificate"))?;
        let stated = stated.ok_or_else(|| missing("checksum"))?;
        if stated != checksum(&key, &certificate).to_be_bytes() {
            return Err(KeyFault::Checksum);
        }
        Self::new(key, certificate).map_err(|_| KeyFault::Mismatch)
    }
}

/// CRC-32C of the key and the certificate behind it.
fn checksum(key: &[u8], certificate: &[u8]) -> u32 {
    base::crc::crc32c_append(base::crc::crc32c(key), certificate)
}

/// The file's text, if there is one and it is its owner's alone.
fn read(path: &Path) -> Result<Option<String>, KeyFault> {
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
    let text = String::from_utf8(bytes).map_err(|_| KeyFault::NotText)?;
    if mode & 0o077 != 0 { Err(KeyFault::Open { mode }) } else { Ok(Some(text)) }
}

/// Writes the file beside its place, flushed, and moves it there: after a crash it is there whole or not at all.
fn write(dir: &Path, path: &Path, text: &str) -> io::Result<()> {
    if !dir.is_dir() {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let temporary = dir.join(format!(".new.{FILE}"));
    let written = write_new(&temporary, text).and_then(|()| fs::rename(&temporary, path));
    if let Err(e) = written {
        let _ = fs::remove_file(&temporary);
        return Err(e);
    }
    File::open(dir)?.sync_all()
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // One that a crash left may have another mode, and so may what the umask makes.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let good = Identity::load_or_make(folder.path()).expect("made").encode();
        let other = Identity::make().expect("made");
        let of_other = |name: &str| {
            let theirs = other.encode();
            let line = theirs.lines().find(|l| l.starts_with(name)).expect("has it").to_string();
            good.lines().map(|l| if l.starts_with(name) { &line } else { l }).collect::<Vec<_>>().join("\n")
        };
        let mut pair = Identity { certificate: other.certificate.clone(), ..other.clone() };
        pair.key = unhex(good.lines().find_map(|l| l.strip_prefix("key = ")).expect("it")).expect("hex");
        let doubled = format!("{good}key = 00\n");
        let cases = [
            (String::new(), "missing"),
            ("\0\0\0\0".into(), "line 1"),
            (good.replace("certificate = 3", "certificate = 4"), "damaged"),
            (good[..good.len() / 2].to_string(), ""),
            (of_other("certificate"), "damaged"),
            // Whole, and yet no pair.
            (pair.encode(), "do not fit"),
            (good.replace("key = ", "kay = "), "does not know"),
            (doubled, "again"),
            ("x".repeat(20_000), "larger"),
        ];
        for (text, word) in cases {
            fs::write(&path, &text).expect("written");
            let refused = Identity::load_or_make(folder.path()).expect_err("rotten");
            let said = crate::words::why(&refused.into());
            assert!(said.message.contains(word) && said.message.contains(FILE), "{word}: {said:?}");
            assert!(said.next.is_some(), "{said:?}");
            assert_eq!(fs::read_to_string(&path).expect("there"), text, "it is not replaced");
        }
        // Any digit counts.
        for at in good.find("key = ").expect("there")..good.len() {
            let mut bytes = good.clone().into_bytes();
            bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
            let changed = String::from_utf8(bytes).expect("ASCII");
            if at % 37 == 0 {
                assert!(Identity::decode(&changed).is_err(), "byte {at}");
            }
        }
    }
}
