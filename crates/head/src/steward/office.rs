//! The office: what every procedure works with.

use crate::mail::Mail;
use crate::steward::context::desk::Desk;
use crate::steward::runtime::Cx;
use crate::steward::sessions::table::Sessions;
use base::Effects;
use std::cell::{Ref, RefCell, RefMut};
use std::rc::Rc;

/// What every procedure works with: the world and the desk. Clones are the same.
#[derive(Clone)]
pub(crate) struct Office {
    pub(crate) cx: Cx,
    desk: Rc<RefCell<Desk>>,
}

impl Office {
    /// The office of a Steward.
    pub(crate) fn new(cx: Cx, desk: Desk) -> Self {
        Self { cx, desk: Rc::new(RefCell::new(desk)) }
    }
    /// The same with another patience.
    pub(crate) fn with(&self, cx: Cx) -> Self {
        Self { cx, desk: self.desk.clone() }
    }
    /// The desk, to be read; not held over an await.
    pub(crate) fn desk(&self) -> Ref<'_, Desk> {
        self.desk.borrow()
    }
    /// The desk, to be changed in what nobody waits for.
    pub(crate) fn desk_quietly(&self) -> RefMut<'_, Desk> {
        self.desk.borrow_mut()
    }
    /// The desk, to be changed; not held over an await.
    pub(crate) fn desk_mut(&self) -> RefMut<'_, Desk> {
        self.cx.changed();
        self.desk.borrow_mut()
    }
    /// Changes who is connected, and carries out what follows from that.
    pub(crate) fn in_sessions(&self, work: impl FnOnce(&mut Sessions, &mut Effects<Mail>)) {
        let mut fx = vec![];
        work(&mut self.desk_mut().sessions, &mut fx);
        self.cx.carry_out(fx);
    }
}
