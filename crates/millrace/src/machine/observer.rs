//! The machine below the daemon, as its API shows it: one looks at a time, on a thread where waiting delays nobody.

use super::files::Files;
use super::{locate, recording};
use finding::{Refusal, RequestRefusal};
use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{Mutex, OwnedMutexGuard};
use topology::Machine;

/// Seconds that rates are measured for.
const SECONDS: f64 = 1.0;

/// Looks at the machine.
#[derive(Clone, Default)]
pub struct Observer {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    /// Kept, so that a drive that does not tell its health is not asked again and again.
    files: Files,
    /// What was seen last, and until when.
    seen: Option<(Instant, Arc<Machine>)>,
}

impl Default for Inner {
    fn default() -> Self {
        Self { files: Files::new("/"), seen: None }
    }
}

impl Observer {
    /// The machine as it is, with rates. Whoever comes while somebody looks gets the same answer.
    ///
    /// `status` tells of the head on it; it may wait.
    pub async fn machine(
        &self,
        status: impl FnMut() -> Option<Value> + Send + 'static,
    ) -> Result<Arc<Machine>, Refusal> {
        let came = Instant::now();
        let mut inner = self.alone().await;
        if let Some((until, machine)) = &inner.seen
            && *until >= came
        {
            return Ok(Arc::clone(machine));
        }
        on_thread(move || {
            let machine = Arc::new(look(&mut inner.files, status, SECONDS));
            inner.seen = Some((Instant::now(), Arc::clone(&machine)));
            machine
        })
        .await
    }

    /// Lights the bay of a drive, or no longer.
    pub async fn locate(
        &self,
        status: impl FnMut() -> Option<Value> + Send + 'static,
        drive: String,
        on: bool,
    ) -> Result<(), Refusal> {
        let mut inner = self.alone().await;
        let switched = on_thread(move || {
            let machine = look(&mut inner.files, status, 0.0);
            locate::switch(&mut inner.files, &machine, &drive, on)
        });
        switched.await?.map(drop).map_err(Refusal::from)
    }

    async fn alone(&self) -> OwnedMutexGuard<Inner> {
        Arc::clone(&self.inner).lock_owned().await
    }
}

fn look(files: &mut Files, status: impl FnMut() -> Option<Value>, seconds: f64) -> Machine {
    Machine::of(&recording::look(files, status, seconds, false))
}

/// Runs on a thread of its own. What panics there ends the request alone.
async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work).await.map_err(|_| RequestRefusal::MachineNotSeen.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn those_who_come_at_once_look_once() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (observer, asked) = (Observer::default(), Arc::new(AtomicUsize::new(0)));
        let look = || {
            let asked = Arc::clone(&asked);
            observer.machine(move || {
                asked.fetch_add(1, Ordering::Relaxed);
                Some(serde_json::json!({ "daemon": { "version": "7" } }))
            })
        };
        let (one, other) = runtime.block_on(async { tokio::join!(look(), look()) });
        let (one, other) = (one.expect("seen"), other.expect("seen"));
        assert!(Arc::ptr_eq(&one, &other));
        assert_eq!(one.own.as_ref().map(|o| o.version.as_str()), Some("7"));
        assert_eq!(asked.load(Ordering::Relaxed), 2, "two readings of one look");
        let later = runtime.block_on(look()).expect("seen");
        assert!(!Arc::ptr_eq(&one, &later));
    }

    #[test]
    fn a_panic_ends_the_request_alone() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let observer = Observer::default();
        let why = runtime.block_on(observer.machine(|| panic!("on purpose"))).expect_err("it panicked");
        assert_eq!(why.why.code(), "machine_not_seen");
        assert!(runtime.block_on(observer.machine(|| None)).is_ok(), "the next one looks");
    }
}
