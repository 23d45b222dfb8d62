//! The state directory: small files that are replaced atomically and survive every crash.

use super::World;
use base::{StateError, StateOp};

impl World {
    pub(super) fn state_op(&mut self, op: StateOp) -> Result<Vec<u8>, StateError> {
        let wants = match op {
            StateOp::Write { .. }
            | StateOp::Append { .. }
            | StateOp::Remove { .. }
            | StateOp::Look { .. } => true,
            StateOp::Read { .. } | StateOp::List | StateOp::Candidates | StateOp::Clock => false,
        };
        if wants && self.frozen_at.is_some() {
            return Err(StateError::Failed("read-only file system".into()));
        }
        match op {
            StateOp::Read { name } => self.state.get(&name).cloned().ok_or(StateError::Missing),
            StateOp::Write { name, contents } => {
                self.surface_state(&name, &contents);
                self.state.insert(name, contents);
                Ok(vec![])
            }
            StateOp::Append { name, contents, bytes_max } => {
                let file = self.state.entry(name).or_default();
                file.extend(contents);
                if file.len() as u64 > bytes_max {
                    let half = file.len() / 2;
                    file.drain(..half);
                }
                Ok(vec![])
            }
            StateOp::Remove { name } => {
                self.state.remove(&name);
                Ok(vec![])
            }
            StateOp::Look { .. } | StateOp::List => {
                Ok(self.state.keys().map(|k| format!("{k}\n")).collect::<String>().into_bytes())
            }
            StateOp::Candidates => {
                Ok(self.disks.iter().map(|d| format!("{}\n", d.spec)).collect::<String>().into_bytes())
            }
            StateOp::Clock => Ok(format!("{}", 1_800_000_000_000 + self.now().0 / 1_000_000).into_bytes()),
        }
    }
}
