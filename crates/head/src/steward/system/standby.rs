//! A follower: its drives are open, so that it votes and beats there, and takes over what is open already.

use crate::steward::context::open::OpenDrive;
use crate::steward::health::shaped;
use crate::steward::procedures::Procedures;
use crate::steward::record::texts::{POOLS, parse_pools};
use base::{DriveId, DriveKind, Duration, Instant};
use cluster::Part;
use cluster::member::ALONE;
use std::collections::BTreeSet;

/// How often it is looked whether the pools have other drives.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// A head that knows nothing of its system waits so long for drives that are away, if it has read others.
const AWAY_PATIENCE: Duration = Duration::from_secs(10);

impl Procedures {
    /// Keeps the drives of all pools open until this head leads. One that is not in opens them only if the link does not tell it who is, or
    /// says that nobody is, so that drives must vote: what it has open cannot be shut off it by its process alone.
    pub(super) async fn keep_drives_open(&self) {
        let started = self.cx.now();
        let mut part = Part::Outside;
        loop {
            let (now_part, linked, nobody, silence, blank) = {
                let context = self.context();
                let Some(system) = context.system.as_ref() else { return };
                let member = system.member();
                let (linked, blank) = (member.is_linked(), member.is_blank());
                (member.part(), linked, member.meets_outsider(), member.times().silence, blank)
            };
            if matches!(now_part, Part::Leader | Part::Over) {
                return;
            }
            let alone = nobody || (blank || !linked) && self.cx.now() >= started + silence;
            if now_part == Part::Follower || alone {
                let leads = || self.context().system.as_ref().is_none_or(|s| s.part() == Part::Leader);
                let all = self.context().system.as_ref().is_some_and(|s| s.far().may_serve());
                self.open_drives(part != now_part, leads).await;
                if all {
                    self.offer_shards();
                }
                self.in_system(|s| s.trials().is_registered(now_part == Part::Follower));
            } else if now_part == Part::Outside {
                self.close_drives(&BTreeSet::new());
            }
            part = now_part;
            let procedures = self.clone();
            let over = move || procedures.context().system.as_ref().is_none_or(|s| s.part() != now_part);
            self.cx.until_within(LOOK_INTERVAL, over).await;
        }
    }
    /// A head that leads, and let go of its drives as the link came up, opens them again: before it serves it looks at those that vote.
    pub(super) async fn open_voters(&self) {
        if self.context().system.as_ref().is_some_and(|s| s.standby().is_empty()) {
            self.open_drives(false, || false).await;
        }
    }
    /// Opens what is not open, until `over`; with `anew` all register under the key that this head has now.
    async fn open_drives(&self, anew: bool, over: impl Fn() -> bool) {
        let Ok(Some(specs)) = self.drives_on_file().await else { return };
        self.close_drives(&specs);
        self.in_system(|s| s.reach().wants(specs.clone()));
        let open =
            |spec: &String| self.context().system.as_ref().and_then(|s| s.standby().get(spec)).map(|s| s.id);
        for spec in &specs {
            if over() {
                // A takeover opens what is not open.
                return;
            }
            match open(spec) {
                Some(id) if anew => drop(self.register(id).await),
                Some(_) => {}
                None => self.stand_by_drive(spec).await,
            }
        }
    }
    /// What drives of pools are opened by, as the state directory says. None: it has no such file.
    ///
    /// # Errors
    /// The file cannot be read.
    async fn drives_on_file(&self) -> Result<Option<BTreeSet<String>>, ()> {
        let Some(bytes) = self.read_file(POOLS).await.map_err(drop)? else { return Ok(None) };
        let rows = parse_pools(POOLS, &bytes).map_err(drop)?.value;
        let specs = rows.into_iter().flat_map(|r| r.drives).filter(|d| DriveKind::of(d).survives_restart());
        Ok(Some(specs.map(|s| shaped::bare(&s).to_string()).collect()))
    }
    /// The state directory knows nothing of the system. So that was cut off as it was made, or files are lost and the other head leads: then
    /// it says so by the link, and else drives do. Without either this head does not begin, since it would fence that one.
    pub(super) async fn look_for_system(&self) {
        self.cx.sleep(ALONE).await;
        let until = self.cx.now() + AWAY_PATIENCE;
        while self.is_blank() {
            if let Ok(specs) = self.drives_on_file().await {
                self.ask_drives(&specs.unwrap_or_default(), until).await;
            }
            self.cx.sleep(LOOK_INTERVAL).await;
        }
    }
    /// Asks those that are open and have said nothing yet. Until that time each of these has to be asked, and later one of them.
    async fn ask_drives(&self, specs: &BTreeSet<String>, until: Instant) {
        let open: Vec<(String, DriveId)> = {
            let context = self.context();
            let standby =
                context.system.iter().flat_map(|s| s.standby().iter().filter(|d| !s.asked().contains(d.0)));
            standby.map(|(spec, d)| (spec.clone(), d.id)).collect()
        };
        for (spec, id) in open {
            self.ask_for_system(&spec, id).await;
        }
        let patient = self.cx.now() < until;
        self.in_system(|s| {
            let asked = specs.intersection(s.asked()).count();
            if asked == specs.len() || asked > 0 && !patient {
                s.tell().on_nothing_found();
            }
        });
    }
    fn is_blank(&self) -> bool {
        self.context().system.as_ref().is_some_and(|s| s.member().is_blank())
    }
    /// What is decided, as this drive says.
    async fn ask_for_system(&self, spec: &str, id: DriveId) {
        let Some(found) = self.vote_on(id, None).await else { return };
        let now = self.cx.now();
        self.in_system(|s| {
            for slot in found.into_iter().flatten() {
                s.tell().on_found(now, &slot.decided);
            }
            s.asks(spec);
        });
    }
    async fn stand_by_drive(&self, spec: &str) {
        let id = self.context_mut().new_drive();
        let Ok(info) = self.cx.open(id, spec).await else {
            if !self.cx.is_opening(id) {
                self.context_mut().free_drive(id);
            }
            return;
        };
        // Who is not registered may not even look.
        let _ = self.register(id).await;
        let looked = self.look_at(spec, id, info).await.ok();
        if looked.is_some() && self.is_blank() {
            self.ask_for_system(spec, id).await;
        }
        // What is another system's, or nobody's any more, is left alone: a former head of it would fence the others off.
        match looked.filter(|p| self.is_of_system(p)).and_then(|p| p.opened()) {
            Some(open) => {
                self.in_system(|s| s.stands_by(spec.to_string(), open));
            }
            None => {
                self.unregister(id).await;
                self.let_go(id);
            }
        }
    }
    fn close_drives(&self, but: &BTreeSet<String>) {
        let gone: Vec<String> = {
            let context = self.context();
            let standby = context.system.iter().flat_map(|s| s.standby());
            // What shards have of the leader they keep until it says otherwise.
            let given = context.system.as_ref().and_then(|s| s.far().given());
            let used = |drive: &OpenDrive| given.is_some_and(|g| g.name_of(drive.id).is_some());
            standby.filter(|(s, d)| !but.contains(*s) && !used(d)).map(|(s, _)| s.clone()).collect()
        };
        if gone.is_empty() {
            return;
        }
        for spec in gone {
            if let Some(Some(drive)) = self.in_system(|s| s.take_standby(&spec)) {
                self.let_go(drive.id);
            }
        }
        // One that is opened anew at once, by another path, is another one to the head that leads.
        self.tell_reach();
    }
    /// What was open for a takeover that no pool took.
    pub(crate) fn let_standby_go(&self) {
        self.close_drives(&BTreeSet::new());
    }
}
