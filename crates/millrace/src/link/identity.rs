//! The key and the certificate by which the other head knows this one: made once, kept in the state directory.

use crate::failure::Failure;
use base::codec::{hex, unhex};
use core::fmt;
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
    pub fn make() -> Result<Self, Failure> {
        let failed = |e: rcgen::Error| Failure::internal(format!("no key can be made for the link: {e}"));
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).map_err(failed)?;
        let mut parameters = rcgen::CertificateParams::default();
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        parameters.distinguished_name.push(rcgen::DnType::CommonName, "Millrace head");
        let certificate = parameters.self_signed(&key).map_err(failed)?;
        Self::new(key.serialize_der(), certificate.der().to_vec()).map_err(Failure::internal)
    }

    /// The identity in the state directory `dir`; where it has none, one is made and written durably before this returns.
    /// A file that cannot be read or does not hold what it should is refused, and stays as it is.
    pub fn load_or_make(dir: &Path) -> Result<Self, Failure> {
        let path = dir.join(FILE);
        let wrong = |why: String| Failure::usage(format!("{}: {why}", path.display()));
        let text = match read(&path) {
            Ok((_, mode)) if mode & 0o077 != 0 => {
                return Err(wrong(format!(
                    "it holds a secret key, and its mode {mode:03o} lets others at it"
                ))
                .with_next(format!("chmod 600 {}", path.display())));
            }
            Ok((text, _)) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let made = Self::make()?;
                write(dir, &path, &made.encode()).map_err(|e| {
                    wrong(format!("the key of the link cannot be written: {e}")).with_next(format!(
                        "ls -ld {}, and make it writable for the daemon's user",
                        dir.display()
                    ))
                })?;
                return Ok(made);
            }
            Err(e) => {
                return Err(wrong(format!("the key of the link cannot be read: {e}")).with_next(format!(
                    "ls -l {}, and make it readable for the daemon's user alone",
                    path.display()
                )));
            }
        };
        Self::decode(&text).map_err(|why| {
            wrong(why).with_next(format!(
                "put the file back from a backup of this head; without one, `mv {0} {0}.rotten`, restart, and join the system anew",
                path.display()
            ))
        })
    }

    /// What the other head pins.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.certificate)
    }

    /// The certificate and its key, for a handshake.
    pub(super) fn certified(&self) -> Arc<CertifiedKey> {
        self.certified.clone()
    }

    fn new(key: Vec<u8>, certificate: Vec<u8>) -> Result<Self, String> {
        let chain = vec![CertificateDer::from(certificate.clone())];
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.clone()));
        // Fails if the key is not the certificate's.
        let certified = CertifiedKey::from_der(chain, private, &default_provider())
            .map_err(|e| format!("key and certificate of the link do not fit each other ({e})"))?;
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

    fn decode(text: &str) -> Result<Self, String> {
        let (mut key, mut certificate, mut stated) = (None, None, None);
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, value) =
                line.split_once('=').ok_or_else(|| format!("line {number} is not `key = value`"))?;
            let bytes = unhex(value.trim()).ok_or_else(|| format!("line {number} is not hexadecimal"))?;
            let place = match name.trim() {
                "key" => &mut key,
                "certificate" => &mut certificate,
                "checksum" => &mut stated,
                _ => return Err(format!("line {number} has a key that this version does not know")),
            };
            if place.replace(bytes).is_some() {
                return Err(format!("line {number} says again what an earlier line says"));
            }
        }
        let missing = |what: &str| format!("the line `{what} = …` is missing: the file is not whole");
        let key = key.ok_or_else(|| missing("key"))?;
        let certificate = certificate.ok_or_else(|| missing("certificate"))?;
        let stated = stated.ok_or_else(|| missing("checksum"))?;
        if stated != checksum(&key, &certificate).to_be_bytes() {
            return Err("its checksum is wrong: the file is damaged".into());
        }
        Self::new(key, certificate)
    }
}

/// CRC-32C of the key and the certificate behind it.
fn checksum(key: &[u8], certificate: &[u8]) -> u32 {
    base::crc::crc32c_append(base::crc::crc32c(key), certificate)
}

/// The file's text, and its permissions.
fn read(path: &Path) -> io::Result<(String, u32)> {
    let file = File::open(path)?;
    let mode = file.metadata()?.mode() & 0o777;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!(
            "it is larger than {FILE_BYTES_MAX} bytes, so it is not one of ours"
        )));
    }
    Ok((text, mode))
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
        let failure = Identity::load_or_make(&dir).expect_err("others may read it");
        assert!(failure.message.contains("640"), "{failure:?}");
        let next = failure.next.expect("a way on");
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
            let failure = Identity::load_or_make(folder.path()).expect_err("rotten");
            assert!(failure.message.contains(word) && failure.message.contains(FILE), "{word}: {failure:?}");
            assert!(failure.next.is_some(), "{failure:?}");
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
