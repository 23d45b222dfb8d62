//! Sessions: who has shown a token once, and shows a cookie since (docs/rfcs/0015-page.md).

use super::new_secret;
use super::tokens::digest;
use finding::SystemRefusal;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How long one is good, seconds.
const LIFE: u64 = 12 * 3600;
/// Most that are kept; the oldest goes first.
const SESSIONS_MAX: usize = 256;

struct Session {
    /// SHA-256 of what the cookie holds. It is random: how long a comparison takes tells nothing of it.
    cookie: [u8; 32],
    /// SHA-256 of the token's secret: another token of the same name is another one.
    token: [u8; 32],
    ends: u64,
}

/// The sessions of a head, oldest first; a restart ends them.
#[derive(Default)]
pub struct Sessions {
    inner: Mutex<VecDeque<Session>>,
}

impl Sessions {
    fn inner(&self) -> MutexGuard<'_, VecDeque<Session>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins one for who has shown the secret of a token; what the cookie holds, and when it ends.
    pub fn begin(&self, token: &str, now: u64) -> Result<(String, u64), SystemRefusal> {
        let (secret, ends) = (new_secret()?, now + LIFE);
        let mut inner = self.inner();
        inner.retain(|s| s.ends > now);
        if inner.len() >= SESSIONS_MAX {
            inner.pop_front();
        }
        inner.push_back(Session { cookie: digest(&secret), token: digest(token), ends });
        Ok((secret, ends))
    }

    /// The digest of the token of a cookie's session, and when it ends.
    pub fn find(&self, cookie: &str, now: u64) -> Option<([u8; 32], u64)> {
        let shown = digest(cookie);
        let inner = self.inner();
        let found = inner.iter().find(|s| s.cookie == shown && s.ends > now)?;
        Some((found.token, found.ends))
    }

    /// Ends one.
    pub fn end(&self, cookie: &str) {
        let shown = digest(cookie);
        self.inner().retain(|s| s.cookie != shown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_lasts_half_a_day_or_until_it_is_ended() {
        let sessions = Sessions::default();
        let (cookie, ends) = sessions.begin("token", 1000).expect("entropy");
        assert_eq!((cookie.len(), ends), (64, 1000 + LIFE));
        assert_eq!(sessions.find(&cookie, ends - 1), Some((digest("token"), ends)));
        assert_eq!(sessions.find(&cookie, ends), None);
        assert_eq!(sessions.find("", 1000), None);
        let (other, _) = sessions.begin("token", 1000).expect("entropy");
        sessions.end(&cookie);
        assert_eq!(sessions.find(&cookie, 1000), None);
        assert!(sessions.find(&other, 1000).is_some(), "the other one goes on");
    }

    #[test]
    fn the_oldest_goes_first_and_those_that_ended_before() {
        let sessions = Sessions::default();
        let mut begin = |now| sessions.begin("token", now).expect("entropy").0;
        let all: Vec<String> = (0..=SESSIONS_MAX as u64).map(&mut begin).collect();
        let is_there = |cookie: &String| sessions.find(cookie, 300).is_some();
        assert!(!is_there(&all[0]) && all[1..].iter().all(is_there));
        begin(LIFE + 200);
        assert_eq!(sessions.inner().len(), SESSIONS_MAX - 200 + 1, "the first 201 were gone");
    }
}
