//! One network of the head that listens: who is let in, and which refusals are reported.

use super::admit::{Door, admit};
use super::happened::{Happened, LinkRefusal};
use super::path::{Hub, Ready, run, stopped};
use crate::words::link::refused;
use finding::UnreachedFault;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;
use uring::errno;

/// How long until an own address that could not be had is tried again.
const RELISTEN: Duration = Duration::from_secs(1);

/// Refusals that are reported at once; after them one each second.
const REFUSALS_MAX: u32 = 5;

/// Limits how many refusals are reported, so that nobody fills the log.
pub struct Refusals(Mutex<Reported>);

struct Reported {
    left: u32,
    /// When `left` was last made more.
    at: Instant,
    unreported: u64,
}

impl Refusals {
    pub fn new() -> Self {
        Self(Mutex::new(Reported { left: REFUSALS_MAX, at: Instant::now(), unreported: 0 }))
    }

    /// Whether a refusal at `now` is reported, and how many before it were not.
    fn next(&self, now: Instant) -> Option<u64> {
        let mut reported = self.0.lock().expect("nothing panics while it holds this");
        let seconds = now.saturating_duration_since(reported.at).as_secs();
        if seconds > 0 {
            reported.left =
                REFUSALS_MAX.min(reported.left.saturating_add(u32::try_from(seconds).unwrap_or(u32::MAX)));
            reported.at = now;
        }
        match reported.left {
            0 => {
                reported.unreported += 1;
                None
            }
            _ => {
                reported.left -= 1;
                Some(std::mem::take(&mut reported.unreported))
            }
        }
    }
}

/// Reports that `from` is refused, within the limit.
fn refuse(hub: &Hub, refusals: &Refusals, from: SocketAddr, why: LinkRefusal) {
    if let Some(unreported) = refusals.next(Instant::now()) {
        tracing::warn!("link: {from} is refused: {}{}", refused(&why), more(unreported));
        (hub.events)(Happened::Refused { from, why, unreported });
    }
}

fn more(unreported: u64) -> String {
    if unreported == 0 {
        String::new()
    } else {
        format!(" ({unreported} more were refused since the last such line)")
    }
}

/// Listens at `own` alone until the link stops; authenticated paths go to `ready`.
pub async fn listen(
    hub: Arc<Hub>,
    door: Arc<Door>,
    refusals: Arc<Refusals>,
    path: usize,
    own: (SocketAddr, Option<std::net::TcpListener>),
    ready: mpsc::Sender<Ready>,
    mut stop: watch::Receiver<bool>,
) {
    tokio::select! {
        () = stopped(&mut stop) => {}
        () = serve(hub, door, refusals, path, own, ready) => {}
    }
}

async fn serve(
    hub: Arc<Hub>,
    door: Arc<Door>,
    refusals: Arc<Refusals>,
    path: usize,
    own: (SocketAddr, Option<std::net::TcpListener>),
    ready: mpsc::Sender<Ready>,
) {
    let (own, first) = own;
    let listener = bind(&hub, path, own, first).await;
    // Dropped with this function, and all of them with it.
    let mut tasks = JoinSet::new();
    let mut unauthenticated: VecDeque<(SocketAddr, AbortHandle)> = VecDeque::new();
    loop {
        while tasks.try_join_next().is_some() {}
        unauthenticated.retain(|(_, task)| !task.is_finished());
        let (tcp, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(e) => {
                // Out of descriptors or memory; the kernel keeps the connection, and would say so again at once.
                tracing::warn!("link: {own} takes no connection: {e}");
                sleep(RELISTEN).await;
                continue;
            }
        };
        if let Err(why) = door.hears(path, from.ip()) {
            refuse(&hub, &refusals, from, why);
            continue;
        }
        while unauthenticated.len() >= hub.limits.unauthenticated {
            // The oldest: whoever has the key is done in milliseconds, and must get in however many others hold on.
            let Some((from, oldest)) = unauthenticated.pop_front() else { break };
            oldest.abort();
            refuse(&hub, &refusals, from, LinkRefusal::Crowded);
        }
        let (hub_, door, refusals, ready) = (hub.clone(), door.clone(), refusals.clone(), ready.clone());
        let task = tasks.spawn(async move {
            match admit(&hub_, &door, path, tcp, from).await {
                // The receiver is gone when the link stops.
                Ok(Some(path)) => drop(ready.send(path).await),
                Ok(None) => {}
                Err(why) => refuse(&hub_, &refusals, from, why),
            }
        });
        unauthenticated.push_back((from, task));
        sleep(hub.limits.accept_gap).await;
    }
}

/// Listens at `own`, if that can be had.
pub fn bind_now(own: SocketAddr) -> std::io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(own)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Listens, once the address can be had; `first` is what was had at the start.
async fn bind(
    hub: &Hub,
    path: usize,
    own: SocketAddr,
    mut first: Option<std::net::TcpListener>,
) -> TcpListener {
    let mut reported = None;
    loop {
        let listener = first.take().map_or_else(|| bind_now(own), Ok);
        match listener.and_then(TcpListener::from_std) {
            Ok(listener) => return listener,
            Err(e) => {
                let why = UnreachedFault::OwnAddress { errno: errno(&e) };
                if reported.as_ref() != Some(&why) {
                    (hub.events)(Happened::Unreached { path, why: why.clone() });
                    reported = Some(why);
                }
                sleep(RELISTEN).await;
            }
        }
    }
}

/// Carries the bytes of a path, of whichever connection came last.
pub async fn keep(
    hub: Arc<Hub>,
    path: usize,
    mut ready: mpsc::Receiver<Ready>,
    mut stop: watch::Receiver<bool>,
) {
    let mut next = None;
    loop {
        let now = match next.take() {
            Some(newer) => newer,
            None => tokio::select! {
                () = stopped(&mut stop) => return,
                came = ready.recv() => match came {
                    Some(came) => came,
                    None => return,
                },
            },
        };
        next = run(&hub, path, now, &mut ready, &mut stop).await;
        if *stop.borrow() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_is_told_a_few_times_and_then_once_a_second() {
        let refusals = Refusals::new();
        let began = Instant::now();
        let reported = (0..1000).filter(|_| refusals.next(began).is_some()).count();
        assert_eq!(reported, 5);
        assert_eq!(refusals.next(began + Duration::from_millis(900)), None);
        assert_eq!(
            refusals.next(began + Duration::from_millis(1100)),
            Some(996),
            "those between are counted"
        );
        assert_eq!(refusals.next(began + Duration::from_millis(1200)), None);
        let later = began + Duration::from_secs(3600);
        let reported = (0..1000).filter(|_| refusals.next(later).is_some()).count();
        assert_eq!(reported, 5, "quiet hours are not saved up");
    }
}
