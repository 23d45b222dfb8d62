//! Messages of the layer above, in parts: docs/formats/link.md, "Messages". A message of the link is short, so that heartbeats and votes do
//! not wait behind it; a message of the layer above is as long as a file.

use crate::message::Message;
use std::collections::VecDeque;

/// Longest part, bytes.
pub const PART_MAX: usize = 256 << 10;
/// Parts that are not acknowledged, bytes at most: heartbeats of a network that is slow wait behind them, and the rest of the link's
/// window is left to the member's own words.
pub const WINDOW: usize = 1 << 20;
/// The longest thing that the layer above says, and all of it that waits, bytes.
pub const WHOLE_MAX: usize = 64 << 20;

/// What is to be sent, in order.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    wholes: VecDeque<Vec<u8>>,
    /// So much of the first one is sent.
    sent: usize,
    bytes: usize,
}

impl Outgoing {
    /// Puts this behind what waits; false: more would wait than may.
    pub(crate) fn push(&mut self, whole: Vec<u8>) -> bool {
        let fits = self.bytes + whole.len() <= WHOLE_MAX;
        if fits {
            self.bytes += whole.len();
            self.wholes.push_back(whole);
        }
        fits
    }
    /// The next part.
    pub(crate) fn take(&mut self) -> Option<Message> {
        let whole = self.wholes.front()?;
        let rest = &whole[self.sent..];
        if rest.len() > PART_MAX {
            self.sent += PART_MAX;
            return Some(Message::Part(rest[..PART_MAX].to_vec()));
        }
        let last = rest.to_vec();
        self.bytes -= whole.len();
        self.sent = 0;
        self.wholes.pop_front();
        Some(Message::Upper(last))
    }
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// What came, until its last part did.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    so_far: Vec<u8>,
    too_long: bool,
}

impl Incoming {
    /// A part that others follow.
    pub(crate) fn part(&mut self, part: &[u8]) {
        self.too_long |= self.so_far.len() + part.len() > WHOLE_MAX;
        if self.too_long {
            self.so_far = vec![];
        } else {
            self.so_far.extend_from_slice(part);
        }
    }
    /// The last part: the whole, unless it is longer than it may be.
    pub(crate) fn last(&mut self, part: Vec<u8>) -> Option<Vec<u8>> {
        if self.so_far.is_empty() && !self.too_long {
            return Some(part);
        }
        self.part(&part);
        let Self { so_far, too_long } = core::mem::take(self);
        (!too_long).then_some(so_far)
    }
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(out: &mut Outgoing, into: &mut Incoming) -> Vec<Vec<u8>> {
        let mut wholes = vec![];
        while let Some(message) = out.take() {
            match message {
                Message::Part(part) => into.part(&part),
                Message::Upper(part) => wholes.extend(into.last(part)),
                other => panic!("{other:?}"),
            }
        }
        wholes
    }

    #[test]
    fn wholes_of_every_length_are_put_together_in_order() {
        let lengths = [0, 1, PART_MAX - 1, PART_MAX, PART_MAX + 1, 2 * PART_MAX, 5 * PART_MAX + 7];
        let whole = |n: usize| (0..n).map(|i| (i * 7 + i / 251) as u8).collect::<Vec<u8>>();
        let (mut out, mut into) = (Outgoing::default(), Incoming::default());
        assert!(lengths.iter().all(|n| out.push(whole(*n))));
        assert_eq!(through(&mut out, &mut into), lengths.map(whole));
        assert_eq!(out.bytes, 0);
    }

    #[test]
    fn what_is_too_long_is_not_kept_and_what_follows_is() {
        let mut out = Outgoing::default();
        assert!(out.push(vec![1; WHOLE_MAX]) && !out.push(vec![1]), "more waits than may");
        out.clear();
        assert!(out.push(vec![2]));
        let mut into = Incoming::default();
        let part = vec![3; PART_MAX];
        for _ in 0..WHOLE_MAX / PART_MAX {
            into.part(&part);
        }
        assert_eq!(into.so_far.len(), WHOLE_MAX);
        into.part(&part);
        assert_eq!(into.so_far.capacity(), 0);
        assert_eq!(into.last(vec![4]), None);
        assert_eq!(into.last(vec![5]), Some(vec![5]));
    }
}
