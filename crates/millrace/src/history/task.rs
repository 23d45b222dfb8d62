//! The thread that reads the head's counters each second, and writes the file once a minute.

use super::did::Moment;
use super::file::{self, lock};
use super::kept::Kept;
use crate::http::Api;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Name of the thread: a panic there ends nothing of the head.
pub const THREAD: &str = "history";

/// An answer that is later than this is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// So long behind the beginning of a second it asks: timers may come early.
const BEHIND: Duration = Duration::from_millis(2);

/// The thread; it ends with this.
pub struct Running {
    _end: oneshot::Sender<()>,
}

/// The time since 1970.
pub fn wall() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Starts it.
pub fn start(kept: Arc<Mutex<Kept>>, folder: &Path, api: Api) -> std::io::Result<Running> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().thread_name(THREAD).build()?;
    let path = file::path(folder);
    let (end, ended) = oneshot::channel();
    let body = move || {
        let anew = !file::read(&path, &kept);
        if anew {
            lock(&kept).not_written();
        }
        let mut keeper = Keeper { kept, path, writing: None, failed: false };
        runtime.block_on(async {
            tokio::select! {
                _ = ended => {}
                () = keeper.keep(&api) => {}
            }
        });
        // A disk that hangs is not waited for.
        runtime.shutdown_background();
    };
    std::thread::Builder::new().name(THREAD.into()).spawn(body)?;
    Ok(Running { _end: end })
}

struct Keeper {
    kept: Arc<Mutex<Kept>>,
    path: PathBuf,
    /// The write under way.
    writing: Option<JoinHandle<std::io::Result<()>>>,
    /// The last one failed: that is told once.
    failed: bool,
}

impl Keeper {
    async fn keep(&mut self, api: &Api) {
        let mut due = false;
        loop {
            let second = Duration::from_secs(1);
            tokio::time::sleep(second - Duration::from_nanos(wall().subsec_nanos().into()) + BEHIND).await;
            if let Ok(Some(figures)) = tokio::time::timeout(PATIENCE, api.figures()).await {
                due |= lock(&self.kept).take(Moment { wall: wall(), figures });
            }
            self.end_write().await;
            if due && self.writing.is_none() {
                due = false;
                self.begin_write();
            }
        }
    }
    fn begin_write(&mut self) {
        let (path, kept) = (self.path.clone(), Arc::clone(&self.kept));
        let (blocks, anew) = lock(&kept).take_unwritten();
        self.writing = Some(tokio::task::spawn_blocking(move || file::write(&path, &kept, &blocks, anew)));
    }
    /// Looks how the write went that is over, if one is.
    async fn end_write(&mut self) {
        let Some(writing) = self.writing.take_if(|w| w.is_finished()) else { return };
        match writing.await {
            Ok(Ok(())) => self.failed = false,
            result => {
                lock(&self.kept).not_written();
                if !self.failed {
                    let why = match result {
                        Ok(Err(e)) => e.to_string(),
                        _ => "it ended by a panic".into(),
                    };
                    tracing::warn!("{} cannot be written: {why}", self.path.display());
                    self.failed = true;
                }
            }
        }
    }
}
