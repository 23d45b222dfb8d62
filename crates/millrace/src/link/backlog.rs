//! What waits to be sent on a path: bounded, and of one connection only.

use super::happened::Why;
use core::fmt;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// So much is written at one time, bytes; a larger piece goes by itself.
pub const BATCH_BYTES: usize = 64 << 10;

/// Why bytes were not taken. Those of earlier calls may not have arrived either.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotSent {
    /// That connection is over, or was never there: `Down` was reported, or is about to be.
    Down,
    /// More waits than may; the path is closed.
    Backlog,
}

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Down => "the path is down",
            Self::Backlog => "the other head does not read what is sent",
        })
    }
}

/// What waits to be sent on a path.
pub struct Backlog {
    /// More bytes than these end the connection.
    limit: usize,
    state: Mutex<State>,
    filled: Notify,
    ended: Notify,
}

#[derive(Default)]
struct State {
    /// The connection that it is of; 0 before the first.
    number: u64,
    open: bool,
    chunks: VecDeque<Vec<u8>>,
    /// Of all chunks, and of what is being written.
    bytes: usize,
    end: Option<Why>,
}

impl Backlog {
    /// Empty, for no connection; more than `limit` bytes end one.
    pub fn new(limit: usize) -> Self {
        Self { limit, state: Mutex::default(), filled: Notify::new(), ended: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds this")
    }

    /// A new connection begins, empty: its number.
    pub fn open(&self) -> u64 {
        let mut state = self.state();
        *state = State { number: state.number + 1, open: true, ..State::default() };
        state.number
    }

    /// The connection is over; what waits is forgotten.
    pub fn shut(&self) {
        let mut state = self.state();
        *state = State { number: state.number, ..State::default() };
    }

    /// Puts `bytes` behind those that wait, if connection `number` is there.
    pub fn send(&self, number: u64, bytes: Vec<u8>) -> Result<(), NotSent> {
        let mut state = self.state();
        if !state.open || state.number != number {
            return Err(NotSent::Down);
        }
        match state.end {
            Some(Why::Backlog) => return Err(NotSent::Backlog),
            Some(_) => return Err(NotSent::Down),
            None => {}
        }
        if state.bytes + bytes.len() > self.limit {
            state.end = Some(Why::Backlog);
            state.chunks = VecDeque::new();
            self.ended.notify_one();
            return Err(NotSent::Backlog);
        }
        state.bytes += bytes.len();
        state.chunks.push_back(bytes);
        self.filled.notify_one();
        Ok(())
    }

    /// Ends connection `number`, if it is there.
    pub fn close(&self, number: u64) {
        let mut state = self.state();
        if state.open && state.number == number && state.end.is_none() {
            state.end = Some(Why::Asked);
            self.ended.notify_one();
        }
    }

    /// Waits until there is something to write, and puts it into `batch`, which is empty.
    pub async fn next(&self, batch: &mut Vec<u8>) {
        loop {
            self.take(batch);
            if !batch.is_empty() {
                return;
            }
            self.filled.notified().await;
        }
    }

    fn take(&self, batch: &mut Vec<u8>) {
        let mut state = self.state();
        while let Some(chunk) = state.chunks.front() {
            if !batch.is_empty() && batch.len() + chunk.len() > BATCH_BYTES {
                return;
            }
            let Some(chunk) = state.chunks.pop_front() else { return };
            if chunk.len() >= BATCH_BYTES {
                *batch = chunk;
                return;
            }
            batch.extend_from_slice(&chunk);
        }
    }

    /// So many bytes of what `next` gave are with the kernel.
    pub fn written(&self, bytes: usize) {
        let mut state = self.state();
        state.bytes = state.bytes.saturating_sub(bytes);
    }

    /// Waits until this side ends the connection: why.
    pub async fn ended(&self) -> Why {
        loop {
            if let Some(why) = self.state().end.clone() {
                return why;
            }
            self.ended.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_wait_up_to_the_limit_and_of_one_connection_only() {
        let backlog = Backlog::new(10);
        assert_eq!(backlog.send(0, vec![1]), Err(NotSent::Down), "before the first");
        let one = backlog.open();
        assert_eq!(backlog.send(one, vec![1; 4]), Ok(()));
        assert_eq!(backlog.send(one, vec![2; 6]), Ok(()));
        let mut batch = Vec::new();
        backlog.take(&mut batch);
        assert_eq!(batch, [1, 1, 1, 1, 2, 2, 2, 2, 2, 2]);
        // What is being written counts.
        backlog.written(4);
        assert_eq!(backlog.send(one, vec![3; 5]), Err(NotSent::Backlog));
        assert_eq!(backlog.send(one, vec![3]), Err(NotSent::Backlog), "the stream has a hole now");
        let two = backlog.open();
        assert_eq!(backlog.send(one, vec![4]), Err(NotSent::Down), "not into the newer one's stream");
        assert_eq!(backlog.send(two, vec![5]), Ok(()));
        backlog.close(one);
        assert_eq!(backlog.send(two, vec![6]), Ok(()), "an older close does not end it");
        backlog.close(two);
        assert_eq!(backlog.send(two, vec![7]), Err(NotSent::Down));
        backlog.shut();
        assert_eq!(backlog.open(), two + 1);
        batch.clear();
        backlog.take(&mut batch);
        assert!(batch.is_empty(), "nothing is left of older ones");
    }
}
