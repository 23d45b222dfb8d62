//! The door from the API server to the Steward: orders go in, each is answered once.
//!
//! Does not know how the orders travel: `daemon` carries them as mail, tests answer them from a script.

use head::order::{Answered, Order, Refusal};
use tokio::sync::{mpsc, oneshot};

/// An order and where its answer goes.
pub type Call = (Order, oneshot::Sender<Answered>);

/// A way to the Steward; clones lead to the same.
#[derive(Clone, Debug)]
pub struct Door(mpsc::UnboundedSender<Call>);

impl Door {
    /// A door, and the other side of it.
    pub fn new() -> (Self, mpsc::UnboundedReceiver<Call>) {
        let (send, receive) = mpsc::unbounded_channel();
        (Self(send), receive)
    }
    /// Has an order carried out. A head that is stopping refuses with `NotReady`.
    pub async fn call(&self, order: Order) -> Answered {
        let (send, receive) = oneshot::channel();
        let stopping = || Refusal::from(finding::SystemRefusal::Stopping);
        self.0.send((order, send)).map_err(|_| stopping())?;
        receive.await.unwrap_or_else(|_| Err(stopping()))
    }
}
