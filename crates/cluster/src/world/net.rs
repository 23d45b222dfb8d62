//! A network of the link: a stream of bytes in each direction, which is slow, cut, or ends.

use crate::record::HeadNo;
use crate::watch::End;

/// What travels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Item {
    Bytes(Vec<u8>),
    /// The kernel of the sender closes the connection.
    Closed,
}

#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub id: u64,
    /// Which ends are open.
    pub open: [bool; 2],
    /// When the last thing that each head sent arrives.
    pub last: [u64; 2],
    /// What each head sent and a cut holds back.
    pub held: [Vec<Item>; 2],
}

#[derive(Debug, Default)]
pub(super) struct Net {
    pub connection: Option<Connection>,
    /// Nothing that this head sends arrives.
    pub cut: [bool; 2],
    /// Which cut this is.
    pub cuts: u64,
    /// It is slow until then.
    pub slow: u64,
}

impl Net {
    pub fn is_whole(&self) -> bool {
        self.cut == [false; 2]
    }
    pub fn is_open(&self, head: HeadNo) -> bool {
        self.connection.as_ref().is_some_and(|c| c.open[head.index()])
    }
    pub fn with(&mut self, id: u64) -> Option<&mut Connection> {
        self.connection.as_mut().filter(|c| c.id == id)
    }
    /// Sends something: when it arrives, or None if it does not (yet).
    pub fn send(&mut self, from: HeadNo, item: &Item, arrives: u64) -> Option<(u64, u64)> {
        let cut = self.cut[from.index()];
        let c = self.connection.as_mut()?;
        if cut {
            c.held[from.index()].push(item.clone());
            return None;
        }
        let at = arrives.max(c.last[from.index()] + 1);
        c.last[from.index()] = at;
        Some((c.id, at))
    }
    /// A head's end is gone. Whether it was open.
    pub fn close(&mut self, head: HeadNo) -> bool {
        let Some(c) = self.connection.as_mut() else { return false };
        let was = core::mem::replace(&mut c.open[head.index()], false);
        if c.open == [false; 2] {
            self.connection = None;
        }
        was
    }
}

/// What a process hears of a network.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Up { id: u64 },
    Bytes { id: u64, bytes: Vec<u8> },
    Down { id: u64, end: End },
    Refused,
}
