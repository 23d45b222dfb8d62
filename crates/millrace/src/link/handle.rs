//! The link, as the layer above holds it.

use super::admit::Door;
use super::backlog::{Backlog, NotSent};
use super::happened::{Connection, Happened};
use super::invitation::Invitation;
use super::listen::{Refusals, bind_now};
use super::path::Hub;
use super::settings::{Settings, Side};
use super::{connect, listen};
use finding::SystemRefusal;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// The paths to the other head. They are made, and made again, until it is stopped or dropped.
pub struct Link {
    hub: Arc<Hub>,
    /// Of the head that listens.
    door: Option<Arc<Door>>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Link {
    /// Starts on `runtime`. Where its own addresses can be had it listens when this returns. Threads of the runtime call `events`: it must neither wait nor panic, and gives what it gets to whoever may. All of one path comes
    /// in order. What is given on is not counted here: whoever keeps it bounds it, by what the peer may send unanswered.
    pub fn start(
        settings: Settings,
        runtime: &Handle,
        events: impl Fn(Happened) + Send + Sync + 'static,
    ) -> Result<Self, SystemRefusal> {
        settings.check()?;
        let Settings { identity, side, limits } = settings;
        let networks = match &side {
            Side::Listens { networks, .. } => networks.len(),
            Side::Connects { networks, .. } => networks.len(),
        };
        let backlogs = (0..networks).map(|_| Backlog::new(limits.backlog_bytes)).collect();
        let hub = Arc::new(Hub { identity, limits, backlogs, events: Box::new(events) });
        let (stop, stopped) = watch::channel(false);
        let mut tasks = Vec::new();
        let door = match side {
            Side::Connects { networks, peer } => {
                for (path, network) in networks.into_iter().enumerate() {
                    tasks.push(runtime.spawn(connect::keep(
                        hub.clone(),
                        path,
                        network,
                        peer,
                        stopped.clone(),
                    )));
                }
                None
            }
            Side::Listens { networks, peer, invitation } => {
                let door = Arc::new(Door::new(networks.clone(), peer, invitation));
                let refusals = Arc::new(Refusals::new());
                for (path, network) in networks.into_iter().enumerate() {
                    let (ready, came) = mpsc::channel(1);
                    tasks.push(runtime.spawn(listen::keep(hub.clone(), path, came, stopped.clone())));
                    let (hub, door, refusals) = (hub.clone(), door.clone(), refusals.clone());
                    let own = (network.own, bind_now(network.own).ok());
                    let listening = listen::listen(hub, door, refusals, path, own, ready, stopped.clone());
                    tasks.push(runtime.spawn(listening));
                }
                Some(door)
            }
        };
        Ok(Self { hub, door, stop, tasks })
    }

    /// Sends `bytes` on a connection, behind all that was sent on it before. That they were taken does not mean that they arrive. From
    /// any thread; never waits.
    pub fn send(&self, on: Connection, bytes: Vec<u8>) -> Result<(), NotSent> {
        match self.hub.backlogs.get(on.path) {
            Some(backlog) => backlog.send(on.number, bytes),
            None => Err(NotSent::Down),
        }
    }

    /// Closes a connection; `Down` follows, and the path is made anew. What waits to be sent is forgotten.
    pub fn close(&self, on: Connection) {
        if let Some(backlog) = self.hub.backlogs.get(on.path) {
            backlog.close(on.number);
        }
    }

    /// From now on this invitation counts and no other; None: nobody may join. Does nothing at the head that connects.
    pub fn invite(&self, invitation: Option<Invitation>) {
        if let Some(door) = &self.door {
            door.invite(invitation);
        }
    }

    /// From now on there is no peer, and nobody is invited: another one may be. Paths that are up stay so until they end. Does nothing
    /// at the head that connects.
    pub fn forget(&self) {
        if let Some(door) = &self.door {
            door.forget();
        }
    }

    /// Closes all paths and says so to the peer; afterwards nothing more is reported. Takes a fifth of a second at most.
    pub async fn stop(mut self) {
        let _ = self.stop.send(true);
        for task in std::mem::take(&mut self.tasks) {
            let _ = task.await;
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
    }
}
