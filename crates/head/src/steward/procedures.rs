//! What every procedure of the Steward works with.

use crate::mail::Mail;
use crate::steward::context::head::HeadContext;
use crate::steward::runtime::Cx;
use crate::steward::sessions::table::Sessions;
use base::Effects;
use std::cell::{Ref, RefCell, RefMut};
use std::rc::Rc;

/// What every procedure works with: the world and the context. Clones are the same.
#[derive(Clone)]
pub(crate) struct Procedures {
    pub(crate) cx: Cx,
    context: Rc<RefCell<HeadContext>>,
}

impl Procedures {
    /// Of a Steward.
    pub(crate) fn new(cx: Cx, context: HeadContext) -> Self {
        Self { cx, context: Rc::new(RefCell::new(context)) }
    }
    /// The same with another patience.
    pub(crate) fn with(&self, cx: Cx) -> Self {
        Self { cx, context: self.context.clone() }
    }
    /// The context, to be read; not held over an await.
    pub(crate) fn context(&self) -> Ref<'_, HeadContext> {
        self.context.borrow()
    }
    /// The context, to be changed in what nobody waits for.
    pub(crate) fn context_quietly(&self) -> RefMut<'_, HeadContext> {
        self.context.borrow_mut()
    }
    /// The context, to be changed; not held over an await.
    pub(crate) fn context_mut(&self) -> RefMut<'_, HeadContext> {
        self.cx.changed();
        self.context.borrow_mut()
    }
    /// Changes who is connected, and carries out what follows from that.
    pub(crate) fn in_sessions<R>(&self, work: impl FnOnce(&mut Sessions, &mut Effects<Mail>) -> R) -> R {
        let mut fx = vec![];
        let result = work(&mut self.context_mut().sessions, &mut fx);
        self.cx.carry_out(fx);
        result
    }
}
