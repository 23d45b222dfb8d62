//! The tokens of the API, in the file `tokens` of the state directory (docs/rfcs/0013-tokens.md).

use crate::state::{self, Stamp};
use api::{Rights, Time, Token};
use base::codec::{hex, unhex};
use base::machine::StateError;
use files::{UnknownRow, content};
use finding::{ContentFault, FileFault, RequestRefusal, StateFault, SystemRefusal};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// The file's name in the state directory.
const FILE: &str = "tokens";
/// The name of the token of `api.token_file`.
const CONFIGURED: &str = "token_file";
/// Most characters of a name.
const NAME_MAX: usize = 32;
/// Most tokens.
const TOKENS_MAX: usize = 64;
/// Longest life of a token that expires, seconds.
const LIFE_MAX: u64 = 100 * 366 * 86_400;
/// How long a change of the file is waited for: a disk that hangs holds up nothing else.
pub const WRITE_PATIENCE: Duration = Duration::from_secs(5);
/// How old the time of last use in the file may be, seconds.
const USED_EVERY: u64 = 60;

#[derive(Clone, PartialEq, Eq, Debug)]
struct Row {
    name: String,
    rights: Rights,
    created: Option<u64>,
    expires: Option<u64>,
    used: Option<u64>,
    digest: [u8; 32],
}

impl Row {
    fn kept(&self) -> content::Token {
        let (name, rights, sha256) = (self.name.clone(), self.rights.word().into(), hex(&self.digest));
        let (created, expires, used) = (self.created, self.expires, self.used);
        content::Token { name, rights, sha256, created, expires, used }
    }

    fn of(kept: content::Token) -> Result<Self, FileFault> {
        let content::Token { name, rights, sha256, created, expires, used } = kept;
        let wrong = |why| FileFault::Content { row: name.clone(), why };
        let known = [Rights::Read, Rights::Full].into_iter().find(|r| r.word() == rights);
        let rights = known.ok_or_else(|| wrong(ContentFault::NoRights { value: rights }))?;
        let digest = unhex(&sha256).and_then(|d| d.try_into().ok());
        let digest = digest.ok_or_else(|| wrong(ContentFault::NoHex { key: "sha256".into() }))?;
        Ok(Self { name, rights, created, expires, used, digest })
    }

    fn told(&self) -> Token {
        let (created, expires, used) = (self.created.map(Time), self.expires.map(Time), self.used.map(Time));
        Token { name: self.name.clone(), rights: self.rights, created, expires, used }
    }
}

/// Why a secret does not let anybody in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Denied {
    /// No token has it.
    Unknown,
    /// The token with it has expired.
    Expired {
        /// Its name.
        name: String,
        /// When.
        at: u64,
    },
}

#[derive(Clone, Default)]
struct Inner {
    /// Of the file as it was read.
    stamp: Option<Stamp>,
    rows: Vec<Row>,
    /// Rows that this program does not understand: they let nobody in, and stay as they are.
    unknown: Vec<UnknownRow>,
    /// Why the file cannot be used.
    fault: Option<FileFault>,
}

/// The tokens of a head.
pub struct Tokens {
    dir: PathBuf,
    configured: Option<Row>,
    inner: Mutex<Inner>,
    /// Held while the file is written, and nothing else is: a disk that hangs keeps nobody from being let in or refused.
    writing: Mutex<()>,
}

impl Tokens {
    /// Those of a state directory, and the secret of `api.token_file`.
    pub fn new(dir: &Path, configured: Option<&str>) -> Arc<Self> {
        let row = |secret: &str| Row {
            name: CONFIGURED.into(),
            rights: Rights::Full,
            created: None,
            expires: None,
            used: None,
            digest: digest(secret),
        };
        Arc::new(Self {
            dir: dir.to_path_buf(),
            configured: configured.map(row),
            inner: Mutex::default(),
            writing: Mutex::default(),
        })
    }

    fn path(&self) -> PathBuf {
        self.dir.join(FILE)
    }

    /// What is in the file now.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = Stamp::of(&self.path());
        if stamp != inner.stamp {
            *inner = self.load();
            inner.stamp = stamp;
        }
        inner
    }

    fn load(&self) -> Inner {
        let read = state::bytes(&self.dir, FILE).and_then(|bytes| bytes.map(|b| parse(&b)).transpose());
        match read {
            Ok(inner) => inner.unwrap_or_default(),
            Err(fault) => {
                tracing::error!("{}", crate::words::refusal(&self.unusable(&fault).into()).message);
                Inner { fault: Some(fault), ..Inner::default() }
            }
        }
    }

    fn unusable(&self, fault: &FileFault) -> RequestRefusal {
        RequestRefusal::TokensUnusable { path: self.path().display().to_string(), why: fault.clone() }
    }

    /// Whose secret this is, at `now` in seconds since 1970.
    pub fn check(self: &Arc<Self>, secret: &str, now: u64) -> Result<(String, Rights), Denied> {
        self.check_digest(&digest(secret), now)
    }

    /// The same by the SHA-256 of the secret.
    pub fn check_digest(self: &Arc<Self>, shown: &[u8; 32], now: u64) -> Result<(String, Rights), Denied> {
        let inner = &mut *self.inner();
        // All are compared, in constant time: how long it takes tells nothing of the secrets.
        let all = inner.rows.iter().chain(&self.configured);
        let mut found = 0u32;
        for (number, row) in (1..).zip(all) {
            let same: Choice = row.digest.ct_eq(shown);
            found.conditional_assign(&number, same);
        }
        let Some(at) = (found as usize).checked_sub(1) else { return Err(Denied::Unknown) };
        let Some(row) = inner.rows.get_mut(at) else { return Ok((CONFIGURED.into(), Rights::Full)) };
        if let Some(at) = row.expires.filter(|at| now >= *at) {
            return Err(Denied::Expired { name: row.name.clone(), at });
        }
        let answer = (row.name.clone(), row.rights);
        if row.used.is_none_or(|used| now >= used + USED_EVERY) {
            row.used = Some(now);
            let (tokens, shown) = (Arc::clone(self), *shown);
            // It is worth no refusal, no wait, and no write with each request.
            std::thread::spawn(move || {
                let Some(writing) = tokens.try_writing() else { return };
                let next = tokens.inner().clone();
                if tokens.save(&writing, next).is_err() {
                    let mut inner = tokens.inner();
                    inner.rows.iter_mut().filter(|r| r.digest == shown).for_each(|r| r.used = Some(now));
                }
            });
        }
        Ok(answer)
    }

    fn not_written(&self, fault: StateFault) -> RequestRefusal {
        RequestRefusal::TokensNotWritten { path: self.path().display().to_string(), fault }
    }

    /// The right to write the file; None: somebody else is writing it.
    fn try_writing(&self) -> Option<MutexGuard<'_, ()>> {
        match self.writing.try_lock() {
            Ok(writing) => Some(writing),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The right to write the file, which is waited for.
    ///
    /// # Errors
    /// Whoever writes it does not end.
    fn writing(&self) -> Result<MutexGuard<'_, ()>, RequestRefusal> {
        let end = Instant::now() + WRITE_PATIENCE;
        loop {
            match self.try_writing() {
                Some(writing) => return Ok(writing),
                None if Instant::now() >= end => return Err(self.silent()),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// The state directory does not answer.
    pub fn silent(&self) -> RequestRefusal {
        let (path, errno) = (self.path().display().to_string(), rustix::io::Errno::TIMEDOUT.raw_os_error());
        self.not_written((&StateError::Failed(base::machine::StateFault::Errno { path, errno })).into())
    }

    /// Writes what shall be there, durably, and then it is there. If that fails, what is there is what the file says.
    fn save(&self, _writing: &MutexGuard<'_, ()>, mut next: Inner) -> Result<(), RequestRefusal> {
        let known = next.rows.iter().map(Row::kept).map(files::Row::Known);
        let unknown = next.unknown.iter().cloned().map(files::Row::Unknown);
        let written =
            state::write(&self.dir, FILE, &content::Tokens { token: known.chain(unknown).collect() });
        if written.is_err() {
            next = self.load();
        }
        next.stamp = Stamp::of(&self.path());
        *self.inner.lock().unwrap_or_else(PoisonError::into_inner) = next;
        written.map_err(|error| self.not_written((&error).into()))
    }

    /// All, by name.
    pub fn list(&self) -> Result<Vec<Token>, RequestRefusal> {
        let inner = self.inner();
        if let Some(fault) = &inner.fault {
            return Err(self.unusable(fault));
        }
        let mut all: Vec<Token> = inner.rows.iter().chain(&self.configured).map(Row::told).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// Adds one that whoever shows `secret` has.
    pub fn add(&self, add: &api::TokenAdd, secret: &str, now: u64) -> Result<(), RequestRefusal> {
        let name = add.name.clone();
        let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !begins || name.len() > NAME_MAX || !name.chars().all(plain) {
            return Err(RequestRefusal::TokenNameInvalid { name, characters_max: NAME_MAX as u64 });
        }
        if let Some(seconds) = add.expires_seconds.filter(|s| !(1..=LIFE_MAX).contains(s)) {
            return Err(RequestRefusal::TokenLifeInvalid { seconds });
        }
        let writing = self.writing()?;
        let mut inner = self.inner().clone();
        if let Some(fault) = &inner.fault {
            return Err(self.unusable(fault));
        }
        let is_unknown = inner.unknown.iter().any(|row| row.text("name") == Some(name.as_str()));
        if name == CONFIGURED || is_unknown || inner.rows.iter().any(|r| r.name == name) {
            return Err(RequestRefusal::TokenNameTaken { name });
        }
        if inner.rows.len() >= TOKENS_MAX {
            return Err(RequestRefusal::TokensFull { tokens_max: TOKENS_MAX as u64 });
        }
        let (created, expires) = (Some(now), add.expires_seconds.map(|s| now + s));
        inner.rows.push(Row {
            name,
            rights: add.rights,
            created,
            expires,
            used: None,
            digest: digest(secret),
        });
        self.save(&writing, inner)
    }

    /// Removes one: it lets nobody in any more.
    pub fn remove(&self, name: &str) -> Result<(), RequestRefusal> {
        let writing = self.writing()?;
        let mut inner = self.inner().clone();
        if let Some(fault) = &inner.fault {
            return Err(self.unusable(fault));
        }
        let before = (inner.rows.len(), inner.unknown.len());
        inner.rows.retain(|row| row.name != name);
        inner.unknown.retain(|row| row.text("name") != Some(name));
        if (inner.rows.len(), inner.unknown.len()) == before {
            let name = name.to_string();
            if self.configured.as_ref().is_some_and(|c| c.name == name) {
                return Err(RequestRefusal::TokenOfConfiguration { name });
            }
            let tokens = inner.rows.iter().map(|r| r.name.clone()).collect();
            return Err(RequestRefusal::TokenUnknown { name, tokens });
        }
        self.save(&writing, inner)
    }
}

/// A new secret: 256 bits, as hexadecimal digits.
pub fn new_secret() -> Result<String, SystemRefusal> {
    let mut bytes = [0; 32];
    crate::link::random(&mut bytes)?;
    Ok(hex(&bytes))
}

/// SHA-256 of a secret.
pub fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

fn parse(bytes: &[u8]) -> Result<Inner, FileFault> {
    let mut inner = Inner::default();
    for row in files::open::<content::Tokens>(FILE, bytes)?.token {
        match row {
            files::Row::Known(kept) => inner.rows.push(Row::of(kept)?),
            files::Row::Unknown(row) => inner.unknown.push(row),
        }
    }
    Ok(inner)
}

/// Checks the bytes of the file.
pub fn check_tokens(bytes: &[u8]) -> Result<(), FileFault> {
    parse(bytes).map(drop)
}

/// The first row with a field that this program does not know, and that field.
pub fn token_not_understood(bytes: &[u8]) -> Option<(String, String)> {
    let unknown = parse(bytes).ok()?.unknown.into_iter().next()?;
    Some((unknown.text("name").unwrap_or_default().into(), unknown.field))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(tokens: &Tokens, name: &str, rights: Rights, life: Option<u64>) -> Result<String, RequestRefusal> {
        let secret = new_secret().expect("entropy");
        tokens.add(&api::TokenAdd { name: name.into(), rights, expires_seconds: life }, &secret, 1000)?;
        Ok(secret)
    }

    #[test]
    fn a_token_is_good_until_it_expires_or_is_removed() {
        let dir = tempfile::tempdir().expect("a folder");
        let tokens = Tokens::new(dir.path(), Some("0123456789abcdef"));
        let read = add(&tokens, "monitor", Rights::Read, Some(60)).expect("made");
        let full = add(&tokens, "ansible", Rights::Full, None).expect("made");
        assert_eq!((read.len(), read == full), (64, false), "256 bits");
        assert_eq!(tokens.check(&read, 1059), Ok(("monitor".into(), Rights::Read)));
        assert_eq!(tokens.check(&read, 1060), Err(Denied::Expired { name: "monitor".into(), at: 1060 }));
        assert_eq!(tokens.check("0123456789abcdef", 1), Ok((CONFIGURED.into(), Rights::Full)));
        assert_eq!(tokens.check("", 1000), Err(Denied::Unknown));
        let text = || std::fs::read_to_string(dir.path().join(FILE)).expect("there");
        let begin = Instant::now();
        while !text().contains("used = 1059") && begin.elapsed() < WRITE_PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        let text = text();
        assert!(
            !text.contains(&full) && text.contains("created = 1000\nexpires = 1060\nused = 1059\n"),
            "{text}"
        );
        // Another process of this directory knows the same, and no secret.
        let again = Tokens::new(dir.path(), None);
        assert_eq!(again.check(&full, 1000), Ok(("ansible".into(), Rights::Full)));
        // What is taken back there counts here at once.
        again.remove("ansible").expect("removed");
        assert_eq!(tokens.check(&full, 1000), Err(Denied::Unknown));
        let names: Vec<String> = tokens.list().expect("good").into_iter().map(|t| t.name).collect();
        assert_eq!(names, ["monitor", CONFIGURED]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let tokens = Tokens::new(dir.path(), Some("0123456789abcdef"));
        add(&tokens, "a", Rights::Full, None).expect("made");
        let code = |why: RequestRefusal| why.name().to_string();
        for name in ["", "two words", "-x", "#x", &"x".repeat(33), "a\nb"] {
            assert_eq!(code(add(&tokens, name, Rights::Full, None).expect_err(name)), "TokenNameInvalid");
        }
        for name in ["a", CONFIGURED] {
            assert_eq!(code(add(&tokens, name, Rights::Full, None).expect_err(name)), "TokenNameTaken");
        }
        assert_eq!(code(add(&tokens, "b", Rights::Full, Some(0)).expect_err("0 s")), "TokenLifeInvalid");
        assert_eq!(code(tokens.remove(CONFIGURED).expect_err("not ours")), "TokenOfConfiguration");
        assert_eq!(code(tokens.remove("b").expect_err("none")), "TokenUnknown");
    }

    #[test]
    fn a_damaged_file_lets_nobody_in_and_stays() {
        let dir = tempfile::tempdir().expect("a folder");
        let tokens = Tokens::new(dir.path(), None);
        let secret = add(&tokens, "a", Rights::Full, None).expect("made");
        let path = dir.path().join(FILE);
        let good = std::fs::read(&path).expect("there");
        let behind = [&good[..], b"# more\n"].concat();
        for bad in (0..good.len()).map(|at| &good[..at]).chain([&behind[..]]) {
            std::fs::write(&path, bad).expect("written");
            assert_eq!(tokens.check(&secret, 1000), Err(Denied::Unknown), "{} bytes", bad.len());
        }
        assert!(add(&tokens, "c", Rights::Full, None).is_err() && tokens.remove("a").is_err());
        assert_eq!(std::fs::read(&path).expect("there"), behind);
    }

    #[test]
    fn a_token_with_a_field_that_is_not_known_lets_nobody_in_and_is_kept() {
        let dir = tempfile::tempdir().expect("a folder");
        let tokens = Tokens::new(dir.path(), None);
        let secret = add(&tokens, "a", Rights::Full, None).expect("made");
        let path = dir.path().join(FILE);
        let text = std::fs::read_to_string(&path)
            .expect("there")
            .replace("name = \"a\"", "name = \"a\"\nonly_from = \"10.0.0.7\"");
        std::fs::write(&path, files::sign(FILE, text.as_bytes()).expect("TOML")).expect("written");
        assert_eq!(tokens.check(&secret, 1000), Err(Denied::Unknown));
        assert!(add(&tokens, "a", Rights::Full, None).is_err(), "its name is taken");
        add(&tokens, "b", Rights::Full, None).expect("made");
        let text = std::fs::read(&path).expect("there");
        assert!(String::from_utf8_lossy(&text).contains("only_from = \"10.0.0.7\""));
        assert_eq!(token_not_understood(&text), Some(("a".into(), "only_from".into())));
        tokens.remove("a").expect("removed: a newer program does not let it in either");
        assert_eq!(token_not_understood(&std::fs::read(&path).expect("there")), None);
    }

    #[test]
    fn a_disk_that_hangs_keeps_nobody_from_being_judged() {
        let dir = tempfile::tempdir().expect("a folder");
        let tokens = Tokens::new(dir.path(), None);
        let secret = add(&tokens, "a", Rights::Full, None).expect("made");
        let writes = tokens.try_writing().expect("nobody writes");
        let (other, asked) = (Arc::clone(&tokens), Instant::now());
        let removes = std::thread::spawn(move || other.remove("a"));
        assert_eq!(tokens.check(&secret, 1000), Ok(("a".into(), Rights::Full)));
        assert_eq!(tokens.check("guess", 1000), Err(Denied::Unknown));
        assert_eq!(tokens.list().expect("good").len(), 1);
        assert!(asked.elapsed() < WRITE_PATIENCE);
        let refused = removes.join().expect("no panic").expect_err("the disk does not answer");
        assert_eq!(refused.name(), "TokensNotWritten");
        drop(writes);
        tokens.remove("a").expect("it answers again");
        assert_eq!(tokens.check(&secret, 1000), Err(Denied::Unknown));
    }

    #[test]
    fn what_cannot_be_written_has_not_happened_and_the_refusal_says_so() {
        let dir = tempfile::tempdir().expect("a folder");
        let tokens = Tokens::new(dir.path(), None);
        let secret = add(&tokens, "a", Rights::Full, None).expect("made");
        let path = dir.path().join(FILE);
        let good = std::fs::read(&path).expect("there");
        // The place of the new file is taken: not even root writes there.
        let blocked = dir.path().join(".new.tokens");
        std::fs::create_dir(&blocked).expect("a folder");
        let refused = |why: RequestRefusal| {
            let said = crate::words::refusal(&why.clone().into());
            assert!(said.message.contains(&path.display().to_string()), "{said:?}");
            assert!(said.next.is_some_and(|next| !next.contains("mv ")), "a good file stays where it is");
            why.name().to_string()
        };
        assert_eq!(refused(tokens.remove("a").expect_err("not written")), "TokensNotWritten");
        assert_eq!(
            refused(add(&tokens, "b", Rights::Full, None).expect_err("not written")),
            "TokensNotWritten"
        );
        // It was not removed, here or there, and the other was not made.
        assert_eq!(tokens.check(&secret, 1000), Ok(("a".into(), Rights::Full)));
        for tokens in [&tokens, &Tokens::new(dir.path(), None)] {
            assert_eq!(tokens.list().expect("good").len(), 1);
        }
        assert_eq!(std::fs::read(&path).expect("there"), good);
        std::fs::remove_dir(&blocked).expect("free again");
        tokens.remove("a").expect("removed");
        for tokens in [&tokens, &Tokens::new(dir.path(), None)] {
            assert_eq!(tokens.check(&secret, 1000), Err(Denied::Unknown));
        }
    }
}
