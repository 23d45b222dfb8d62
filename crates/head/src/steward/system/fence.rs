//! Nobody serves from a drive before the other head is shut off it: every drive that a leader takes goes through here.

use crate::order::Weight;
use crate::steward::context::probe::Probe;
use crate::steward::join::{self, Boxed};
use crate::steward::office::Office;
use base::{DriveId, DriveInfo, Duration, Fence, FenceAct, FenceError, FenceKind, FenceOp, OpenError};
use cluster::fence::{AGAIN, ASK, PUT_OUT};

/// How long a drive may take to register a head.
const REGISTER: Duration = Duration::from_secs(1);

impl Office {
    /// Whether this head is one of two.
    pub(crate) fn is_in_system(&self) -> bool {
        self.desk().system.is_some()
    }
    /// Registers this head with a drive under its own key, in place of whatever key it had there.
    pub(crate) async fn register(&self, drive: DriveId) -> Result<Fence, FenceError> {
        let key = self.desk().system.as_ref().map(|s| s.own_key()).expect("one of two");
        self.cx.fence(drive, FenceOp { act: FenceAct::Register { key }, limit: REGISTER }).await
    }
    /// Makes a drive this head's, and shuts the other one off it if that is out: once. True: it has confirmed.
    async fn fence_once(&self, drive: DriveId) -> Result<bool, FenceError> {
        self.register(drive).await?;
        let (key, victim) =
            self.desk().system.as_ref().map(|s| (s.own_key(), s.victim())).expect("one of two");
        let believed = self.desk().system.as_ref().is_some_and(|s| s.is_believed_off());
        let Some((victim, process)) = victim else {
            // The other one is in, or there never was one.
            let there =
                self.cx.fence(drive, FenceOp { act: FenceAct::Reserve { key }, limit: REGISTER }).await?;
            return Ok(match there {
                Fence::Keys(there) => there.has(key),
                Fence::File { .. } => true,
            });
        };
        let act = FenceAct::ShutOut { key, victim, process };
        match self.cx.fence(drive, FenceOp { act, limit: ASK }).await {
            Ok(Fence::Keys(there)) => Ok(there.has(key) && !there.has(victim)),
            Ok(Fence::File { others }) => Ok(!others),
            Err(_) if believed => Ok(true),
            Err(e) => Err(e),
        }
    }
    /// The same, again and again until it has confirmed, or for so long. An error is a sentence.
    pub(crate) async fn fence_drive(
        &self,
        id: DriveId,
        info: &DriveInfo,
        patience: Duration,
    ) -> Result<(), String> {
        let path = &info.path;
        if let FenceKind::None(why) = info.fence {
            return Err(format!("{path} cannot be used by two heads: {}", why.words()));
        }
        let end = self.cx.now() + patience;
        loop {
            let last = match self.fence_once(id).await {
                Ok(true) => {
                    self.in_system(|s| s.is_late(id, None));
                    return Ok(());
                }
                Ok(false) => "the other head is still registered there".to_string(),
                Err(FenceError::None(why)) => {
                    return Err(format!("{path} cannot be used by two heads: {}", why.words()));
                }
                Err(e) => format!("{e:?}"),
            };
            if self.cx.now() >= end {
                self.in_system(|s| s.is_late(id, Some(path.clone())));
                return Err(format!("{path} has not confirmed that the other head is shut out: {last}"));
            }
            self.cx.sleep(AGAIN).await;
        }
    }
    /// Of drives that are to be taken: those from which the other head is shut out, looked at again, since something of its may have
    /// landed until then. The others are let go of, and told.
    pub(crate) async fn fenced(&self, probes: Vec<Probe>) -> Vec<Probe> {
        if !self.is_in_system() {
            return probes;
        }
        let one = |p: Probe| -> Boxed<'_, Result<Probe, OpenError>> { Box::pin(self.fence_probe(p)) };
        let mut good = vec![];
        for fenced in join::all(probes.into_iter().map(one).collect()).await {
            match fenced {
                Ok(probe) => good.push(probe),
                Err(e) => {
                    let now = self.cx.now();
                    self.desk_mut().event(now, Weight::Error, "system", e.words);
                }
            }
        }
        good
    }
    /// The same of one drive.
    pub(crate) async fn fence_probe(&self, probe: Probe) -> Result<Probe, OpenError> {
        if !self.is_in_system() {
            return Ok(probe);
        }
        if let Err(words) = self.fence_drive(probe.id, &probe.info, PUT_OUT).await {
            self.let_go(probe.id);
            return Err(words.into());
        }
        self.look_again(probe).await
    }
    /// The other head was put out while this one serves: it wrote nothing but votes and beats, so what is served goes on, and drives are
    /// asked until each has confirmed.
    pub(super) async fn shut_out(&self, epoch: u64) {
        let drives: Vec<(DriveId, DriveInfo)> = {
            let desk = self.desk();
            let legs = desk.pools.iter().flat_map(|p| &p.arrays).flat_map(|a| &a.legs);
            let spares = desk.pools.iter().flat_map(|p| &p.spares).filter_map(|s| s.open.as_ref());
            legs.filter_map(|l| l.open.as_ref()).chain(spares).map(|o| (o.id, o.info.clone())).collect()
        };
        let one = |(id, info): (DriveId, DriveInfo)| -> Boxed<'_, ()> {
            Box::pin(async move {
                if let Err(words) = self.fence_drive(id, &info, PUT_OUT).await {
                    let now = self.cx.now();
                    self.desk_mut().event(now, Weight::Error, "system", words);
                    let open = || self.desk().is_open(id) && self.is_epoch(epoch);
                    while open() && self.fence_drive(id, &info, AGAIN).await.is_err() {}
                }
            })
        };
        let over = || !self.is_epoch(epoch);
        let all = join::all(drives.into_iter().map(one).collect());
        let done = self.cx.unless(over, all).await;
        if done.is_some() {
            self.in_system(|s| s.tell().on_fenced());
        }
    }
    pub(super) fn is_epoch(&self, epoch: u64) -> bool {
        self.desk().system.as_ref().is_some_and(|s| s.member().known().epoch == epoch)
    }
}
