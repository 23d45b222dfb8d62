//! Cross-Controller Reset (NVMe Base 5.1, TP 8028): which other controllers this one was asked to end, and which commands
//! wait for that.
//!
//! A command waits for the Command Quiesce Time at most. The reset goes on after that, and another command for the same
//! controller waits for it.

use super::{QUIESCE_TIME, RESETS_MAX};
use crate::spec::{Sqe, StatusField};
use base::Instant;
use base::front::ControllerLife;

#[derive(Debug)]
struct Reset {
    life: ControllerLife,
    /// Tag of the command that waits, and until when; None: it was answered that this takes too long.
    command: Option<(u16, Instant)>,
}

/// The resets that a controller has begun, by number.
#[derive(Debug, Default)]
pub(crate) struct Resets {
    under_way: [Option<Reset>; RESETS_MAX as usize],
}

/// The controller that a command names: ICID, CIU and CIRN.
pub(crate) fn impacted(sqe: &Sqe) -> ControllerLife {
    let cdw10 = sqe.cdw10.get();
    ControllerLife {
        id: cdw10 as u16,
        uniquifier: (cdw10 >> 16) as u8,
        random: u64::from(sqe.cdw13.get()) << 32 | u64::from(sqe.cdw12.get()),
    }
}

impl Resets {
    /// A command asks for the end of a controller: the number by which it is to be begun. None: it was, and the command
    /// waits for it from now on.
    pub fn ask(&mut self, life: ControllerLife, tag: u16, now: Instant) -> Result<Option<u16>, StatusField> {
        let command = Some((tag, now + QUIESCE_TIME));
        if let Some(reset) = self.under_way.iter_mut().flatten().find(|r| r.life == life) {
            if reset.command.is_some() {
                return Err(StatusField::RESET_IN_PROGRESS);
            }
            reset.command = command;
            return Ok(None);
        }
        let free = self.under_way.iter().position(Option::is_none).ok_or(StatusField::RESET_LIMIT)?;
        self.under_way[free] = Some(Reset { life, command });
        Ok(Some(free as u16))
    }
    /// This one is done: the command that waits for it, if one does.
    pub fn end(&mut self, number: u16) -> Option<u16> {
        let reset = self.under_way[usize::from(number)].take().expect("it was begun");
        reset.command.map(|(tag, _)| tag)
    }
    /// A command that has waited for too long. It waits no longer.
    pub fn overdue(&mut self, now: Instant) -> Option<u16> {
        let late = |r: &&mut Reset| r.command.is_some_and(|(_, until)| until <= now);
        let reset = self.under_way.iter_mut().flatten().find(late)?;
        reset.command.take().map(|(tag, _)| tag)
    }
    /// When a command will have waited for too long.
    pub fn deadline(&self) -> Option<Instant> {
        self.under_way.iter().flatten().filter_map(|r| r.command).map(|(_, until)| until).min()
    }
}
