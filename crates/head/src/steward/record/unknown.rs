//! Rows of files with a field that this program does not know: they grant nothing, stay as they are, and are contradicted by no order
//! (docs/formats/state.md, "The format").

use crate::order::Refusal;
use crate::steward::context::head::HeadContext;
use crate::steward::procedures::Procedures;
use crate::steward::record::texts::{
    CREATING, HOSTS, POOLS, PORTALS, RELEASED, parse_hosts, parse_pools, parse_portals,
};
use crate::steward::state::{Change, List, portal_number};
use base::Uuid;
use files::UnknownRow;
use finding::{RecordCause, RecordRefusal};

/// What operators call a row.
pub(crate) fn called(row: &UnknownRow) -> String {
    ["name", "address", "uuid"].iter().find_map(|field| row.text(field)).unwrap_or_default().into()
}

/// Rows of a file that are not used, as operators call them, and the field of each that this program does not know. None of a
/// file that is not whole.
pub fn unused_rows(name: &str, bytes: &[u8]) -> Vec<(String, String)> {
    let rows = match name {
        HOSTS => parse_hosts(bytes, || base::HostId(1)).map(|read| read.unknown),
        PORTALS => parse_portals(bytes).map(|read| read.unknown),
        POOLS | RELEASED | CREATING => parse_pools(name, bytes).map(|read| read.unknown),
        _ => return vec![],
    };
    rows.unwrap_or_default().iter().map(|row| (called(row), row.field.clone())).collect()
}

fn is_of_pool(row: &UnknownRow, pool: Uuid) -> bool {
    row.text("uuid").and_then(|u| u.parse::<Uuid>().ok()) == Some(pool)
}

impl HeadContext {
    /// Rows of a file that are written again as they are.
    pub(crate) fn unknown_rows_of(&self, file: &str) -> &[UnknownRow] {
        self.unknown_rows.get(file).map_or(&[], Vec::as_slice)
    }

    /// Whether the list of pools has a row of this one that is not understood.
    pub(crate) fn is_unknown_pool(&self, pool: Uuid) -> bool {
        self.unknown_rows_of(POOLS).iter().any(|row| is_of_pool(row, pool))
    }

    /// What `status` says of all of them.
    pub(crate) fn unknown_causes(&self) -> Vec<RecordCause> {
        let cause = |(file, row): (&str, &UnknownRow)| RecordCause::RowNotUnderstood {
            file: file.into(),
            path: self.state_path(file),
            row: called(row),
            field: row.field.clone(),
        };
        let all = self.unknown_rows.iter().flat_map(|(file, rows)| rows.iter().map(|row| (*file, row)));
        all.map(cause).collect()
    }
}

impl Procedures {
    /// Refuses a change that a row contradicts, or may contradict.
    pub(crate) fn check_unknown(&self, change: &Change) -> Result<(), Refusal> {
        let any = |row: &UnknownRow, field: &str, names: &[String]| {
            row.texts(field).iter().any(|text| names.iter().any(|name| name == text))
        };
        match change {
            Change::HostPut { host } => self.check_rows(HOSTS, |row| {
                row.text("name") == Some(host.name.as_str())
                    || any(row, "nqn", &host.nqns)
                    || any(row, "iqn", &host.iqns)
            }),
            Change::PortalPut { portal } => self.check_rows(PORTALS, |row| {
                let number = row.row.get("number").and_then(|n| n.as_integer());
                number == Some(portal_number(portal.id).into())
                    || row.text("address") == Some(portal.address.to_string().as_str())
            }),
            Change::Listed { list: List::Creating, row: listed } => {
                self.check_rows(CREATING, |row| is_of_pool(row, listed.uuid))
            }
            Change::Listed { list: List::Released, row: listed } => {
                self.check_rows(RELEASED, |row| is_of_pool(row, listed.uuid))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a pool of which the list has a row that is not understood.
    pub(crate) fn check_unknown_pool(&self, pool: Uuid) -> Result<(), Refusal> {
        self.check_rows(POOLS, |row| is_of_pool(row, pool))
    }

    /// Refuses what is about a row that is not understood.
    pub(crate) fn check_rows(&self, file: &str, is: impl Fn(&UnknownRow) -> bool) -> Result<(), Refusal> {
        let context = self.context();
        let Some(row) = context.unknown_rows_of(file).iter().find(|row| is(row)) else { return Ok(()) };
        let (path, row, field) = (context.state_path(file), called(row), row.field.clone());
        Err(RecordRefusal::RowNotUnderstood { path, row, field }.into())
    }
}
