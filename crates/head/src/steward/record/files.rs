//! The state directory: what a head keeps outside of its pools (docs/formats/state.md).

use crate::layout::PoolId;
use crate::mail::ManagerMail;
use crate::order::{Cause, EventLine, Notice, Refusal};
use crate::steward::context::head::Unread;
use crate::steward::context::loss::Loss;
use crate::steward::procedures::Procedures;
use crate::steward::record::texts::{
    EVENTS, HOSTS, IDENTITY, POOLS, PORTALS, Read, event_text, lists_of_none, named, new_identity,
    parse_events, parse_hosts, parse_identity, parse_pools, parse_portals, parse_witness, pools_file,
    state_cause, state_refusal, witness_name,
};
use crate::steward::record::unknown::called;
use crate::steward::state::{Change, PoolRow};
use array::format::MembershipRecord;
use base::Uuid;
use base::machine::{StateError, StateOp};
use files::UnknownRow;
use finding::{FileFault, RecordCause, RecordEvent, RecordNotice, RecordRefusal, StateFault, StateFile};

use std::collections::BTreeSet;

const EVENTS_BYTES_MAX: u64 = 1 << 20;

impl Procedures {
    pub(crate) async fn read_file(&self, name: &str) -> Result<Option<Vec<u8>>, StateFault> {
        match self.cx.state(StateOp::Read { name: name.into() }).await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(StateError::Missing) => Ok(None),
            Err(e) => Err((&e).into()),
        }
    }
    /// Refuses if the file could not be read: nobody writes over it.
    pub(crate) fn check_read(&self, file: &str) -> Result<(), Refusal> {
        let Some(why) = self.why_unread(file) else { return Ok(()) };
        Err(RecordRefusal::FileNotWrittenOver { why }.into())
    }
    /// Refuses to say that something is not there, if the file that would say so could not be read.
    pub(crate) fn check_known(&self, file: &str) -> Result<(), Refusal> {
        let Some(why) = self.why_unread(file) else { return Ok(()) };
        Err(RecordRefusal::FileNotRead { why }.into())
    }
    fn why_unread(&self, file: &str) -> Option<Box<Cause>> {
        let context = self.context();
        let unread = context.unread.iter().find(|u| u.file == file)?;
        Some(Box::new(unread.cause.clone().into()))
    }
    pub(crate) async fn write_file(&self, name: &str, contents: Vec<u8>) -> Result<(), Refusal> {
        self.check_read(name)?;
        let op = StateOp::Write { name: name.into(), contents };
        self.change_file(op).await.map_err(|e| state_refusal(named(name), &e))
    }
    /// Puts in the context what is wrong with a file.
    fn leave_unread(&self, file: &'static str, event: RecordEvent, cause: RecordCause) {
        let now = self.cx.now();
        let mut context = self.context_mut();
        context.happened(now, "state directory", event);
        context.unread.push(Unread { file, cause });
    }
    /// A file of the state directory, as far as there is one and it can be read. If not, that is put in the context and
    /// among the troubles, and nobody writes over it.
    pub(crate) async fn read_known<T>(
        &self,
        file: &'static str,
        parse: impl FnOnce(&[u8]) -> Result<Read<T>, FileFault>,
        troubles: &mut Vec<Notice>,
    ) -> Option<Option<T>> {
        let why = match self.read_file(file).await {
            Ok(None) => return Some(None),
            Ok(Some(bytes)) => match parse(&bytes) {
                Ok(read) => {
                    self.meet_unknown(file, read.unknown);
                    return Some(Some(read.value));
                }
                Err(fault) => fault,
            },
            Err(fault) => FileFault::State { fault },
        };
        self.leave_unreadable(file, why.clone());
        let path = self.context().state_path(file);
        troubles.push(RecordNotice::FileUnreadable { file: file.into(), path, why }.into());
        None
    }
    /// A file cannot be read: `status` says so, and nobody writes over it.
    pub(crate) fn leave_unreadable(&self, file: &'static str, why: FileFault) {
        if self.check_read(file).is_err() {
            return;
        }
        let path = self.context().state_path(file);
        let event = RecordEvent::FileUnreadable { file: file.into(), path: path.clone(), why: why.clone() };
        self.leave_unread(file, event, RecordCause::FileUnreadable { file: file.into(), path, why });
    }
    /// Rows that are not understood stay as they are.
    fn meet_unknown(&self, file: &'static str, rows: Vec<UnknownRow>) {
        let now = self.cx.now();
        let mut context = self.context_mut();
        for row in &rows {
            let (path, row, field) = (context.state_path(file), called(row), row.field.clone());
            context.happened(now, "state directory", RecordEvent::RowNotUnderstood { path, row, field });
        }
        context.keep_unknown(file, rows);
    }
    /// A file that every head has was not there at the start.
    pub(crate) fn miss_file(&self, file: &str) {
        let now = self.cx.now();
        let mut context = self.context_mut();
        let (file, path) = (file.to_string(), context.state_path(file));
        let event = RecordEvent::FileMissing { file: file.clone(), path: path.clone() };
        context.happened(now, "state directory", event);
        let cause = RecordCause::FileMissing { file, path };
        context.losses.push(Loss { file: String::new(), cause });
    }

    /// Reads the clock, and the events of former lives. Notices tell what could not be read.
    pub(crate) async fn read_log(&self) -> Vec<Notice> {
        let mut troubles = vec![];
        if let Ok(text) = self.cx.state(StateOp::Clock).await {
            let unix = core::str::from_utf8(&text).ok().and_then(|t| t.trim().parse().ok());
            let now = self.cx.now();
            let mut context = self.context_mut();
            context.starts(now, unix);
        }
        match self.read_file(EVENTS).await {
            Ok(bytes) => {
                let mut context = self.context_mut();
                for line in parse_events(&bytes.unwrap_or_default()) {
                    context.keep_event(line);
                }
            }
            Err(fault) => troubles.push(RecordNotice::LogUnreadable { file: EVENTS.into(), fault }.into()),
        }
        troubles
    }
    /// Reads who we are, who may come, where we listen. Notices tell what could not be read.
    pub(crate) async fn read_state(&self) -> Vec<Notice> {
        let mut troubles = vec![];
        let there = self.files_there().await;
        let first = self.is_first_start(&there).await;
        self.context_mut().files.extend(there);
        if first {
            // From now on one that is not there is lost. The identity comes last: until then, this is a first start.
            for (file, contents) in lists_of_none() {
                let _ = self.write_file(file, contents).await;
            }
        }
        match self.read_known(IDENTITY, parse_identity, &mut troubles).await {
            Some(Some(identity)) => self.context_mut().apply(Change::Identified { identity }),
            Some(None) => {
                let identity = new_identity(self.context_mut().new_uuid());
                let named = Change::Identified { identity };
                if let Err(r) = self.propose(named.clone()).await {
                    self.context_mut().apply(named);
                    troubles.push(RecordNotice::IdentityNotWritten { why: r.why }.into());
                }
                // One that finds anything else has lost its name.
                if !first {
                    let file = || IDENTITY.to_string();
                    let event = RecordEvent::IdentityMissing { file: file() };
                    self.leave_unread(IDENTITY, event, RecordCause::IdentityMissing { file: file() });
                    troubles.push(RecordNotice::IdentityMissing { file: file() }.into());
                }
            }
            // Never overwritten by a guess: until somebody repairs it, this life of the head has a name of its own.
            None => {
                let identity = new_identity(self.context_mut().new_uuid());
                self.context_mut().apply(Change::Identified { identity });
            }
        }
        self.read_hosts(first, &mut troubles).await;
        self.read_portals(first, &mut troubles).await;
        troubles
    }
    /// Whether nothing says that a head was here. The files of none are here if a first start was cut off.
    async fn is_first_start(&self, there: &BTreeSet<String>) -> bool {
        for file in there {
            let none = lists_of_none().into_iter().find(|(name, _)| name == file);
            let Some((_, contents)) = none else { return false };
            if self.read_file(file).await != Ok(Some(contents)) {
                return false;
            }
        }
        true
    }
    async fn read_hosts(&self, first: bool, troubles: &mut Vec<Notice>) {
        let parse = |bytes: &[u8]| parse_hosts(bytes, || self.context_mut().new_host());
        let hosts = self.read_known(HOSTS, parse, troubles).await;
        let missing = !first && matches!(hosts, Some(None));
        if missing {
            self.miss_file(HOSTS);
        }
        let mut context = self.context_mut();
        context.misses_hosts(missing);
        for host in hosts.flatten().unwrap_or_default().iter() {
            let id = context.former_hosts.get(&host.name).copied().unwrap_or(host.id);
            let host = access::Host { id, ..host.clone() };
            context.apply(Change::HostPut { host });
        }
    }
    async fn read_portals(&self, first: bool, troubles: &mut Vec<Notice>) {
        let portals = self.read_known(PORTALS, parse_portals, troubles).await;
        if !first && matches!(portals, Some(None)) {
            self.miss_file(PORTALS);
        }
        let (portals, last) = portals.flatten().unwrap_or_default();
        let mut context = self.context_mut();
        for portal in portals {
            context.put_portal(portal);
            context.apply(Change::PortalPut { portal });
        }
        context.apply(Change::PortalsCounted { last });
        context.portal_given_last(last);
    }
    /// The pools that should be here: those that the list names, and those that it should name.
    pub(crate) async fn read_pools(&self, troubles: &mut Vec<Notice>) -> Vec<PoolRow> {
        let rows = self.read_known(POOLS, |bytes| parse_pools(POOLS, bytes), troubles).await;
        let missing = matches!(rows, Some(None));
        let found = self.find_lost(rows.flatten()).await;
        if missing && found.is_empty() {
            self.miss_file(POOLS);
        }
        found
    }
    /// Writes down which pools are here, and those that should be. A list that could not be read stays as it is: orders
    /// that make or give up a pool are refused then (`check_read`), and where drives lie is a hint.
    pub(crate) async fn write_pools(&self) -> Result<(), Refusal> {
        self.write_pools_and(None).await
    }
    /// The same, with a drive that is about to become one of a pool's: wherever the power goes, it is looked at.
    pub(crate) async fn write_pools_and(&self, coming: Option<(PoolId, &str)>) -> Result<(), Refusal> {
        let rows = {
            let context = self.context();
            let here = context.pools.iter().filter(|p| !p.leaving).map(|p| {
                let mut row = p.row();
                row.drives.extend(coming.filter(|(id, _)| *id == p.id).map(|(_, path)| path.to_string()));
                row
            });
            // One that is just being taken stands among both.
            let is_here = |uuid: Uuid| context.pools.iter().any(|p| !p.leaving && p.config().uuid == uuid);
            let absent = context.absent.iter().filter(|p| !is_here(p.uuid())).map(|p| p.row().clone());
            here.chain(absent).collect::<Vec<_>>()
        };
        if self.check_read(POOLS).is_err() {
            return Ok(());
        }
        let contents = pools_file(POOLS, &rows, self.context().unknown_rows_of(POOLS));
        self.write_file(POOLS, contents).await
    }
    /// The witness of a pool. A witness that cannot be read is not one that agrees.
    pub(crate) async fn read_witness(&self, pool: Uuid) -> Result<Option<MembershipRecord>, Cause> {
        let file = witness_name(pool);
        let failed = |fault| RecordCause::StateFailed { what: named(&file), fault };
        match self.read_file(&file).await.map_err(failed)? {
            None => Ok(None),
            Some(bytes) => match parse_witness(&file, &bytes) {
                Some(record) if record.pool == pool => Ok(Some(record)),
                Some(_) | None => {
                    let path = self.context().state_path(&file);
                    Err(RecordCause::WitnessDamaged { file, path }.into())
                }
            },
        }
    }
    /// Writes the log anew, as far as its lines are still known.
    pub(crate) async fn write_log(&self) -> Result<(), Cause> {
        let contents: String = {
            let context = self.context();
            // Those that wait are appended behind it.
            let logged = |e: &&EventLine| !context.unlogged.iter().any(|u| u.number == e.number);
            context.events.iter().filter(logged).map(event_text).collect()
        };
        let op = StateOp::Write { name: EVENTS.into(), contents: contents.into_bytes() };
        self.change_file(op).await.map_err(|e| state_cause(StateFile::Log, &e))
    }
    /// Reports how many were rejected, after each interval in which somebody was.
    pub(crate) async fn count_rejections(&self) {
        loop {
            let procedures = self.clone();
            self.cx.until(move || procedures.context().rejections.next_deadline().is_some()).await;
            let end = self.context().rejections.next_deadline().expect("there is one");
            self.cx.sleep(end.since(self.cx.now())).await;
            let now = self.cx.now();
            let mut context = self.context_mut();
            for event in context.rejections.on_timer(now) {
                context.happened(now, "portals", event);
            }
        }
    }
    /// Appends events to the log as they happen, in their order.
    pub(crate) async fn keep_log(&self) {
        loop {
            let procedures = self.clone();
            self.cx.until(move || !procedures.context().unlogged.is_empty()).await;
            let lines: Vec<EventLine> = self.context_mut().unlogged.drain(..).collect();
            for line in &lines {
                self.cx.to_manager(ManagerMail::Happened(Box::new(line.clone())));
            }
            let contents = lines.iter().map(event_text).collect::<String>().into_bytes();
            let op = StateOp::Append { name: EVENTS.into(), contents, bytes_max: EVENTS_BYTES_MAX };
            // A log that cannot be written must not stop anything: `status` says so, once.
            if let Err(e) = self.change_file(op).await {
                let notice = RecordNotice::LogNotWritten { fault: (&e).into() }.into();
                let mut context = self.context_mut();
                if !context.notices.contains(&notice) {
                    context.notices.push(notice);
                }
            }
        }
    }
}
