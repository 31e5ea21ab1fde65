//! The memory at earlier moments: a turn records what the memory held when the turn ended.

use super::{Change, exists, history, load, newest};
use crate::{Project, clock};
use plimsoll_domain::Timestamp;
use plimsoll_domain::memory::Memory;

/// The memory at any moment, looked up as it is asked for.
#[derive(Debug, Default)]
pub struct Past {
    now: Option<Memory>,
    newest_at: Timestamp,
    changes: Option<Vec<Change>>,
    project: Option<Project>,
    /// How many changes the memory beside it comes from.
    folded: (usize, Memory),
}

impl Past {
    /// The past of a project's memory; empty without a memory.
    pub fn of(project: &Project) -> Past {
        if !exists(project) {
            return Past::default();
        }
        let newest_at = newest(project).ok().flatten().map(|change| change.at).unwrap_or_default();
        Past { now: load(project).ok(), newest_at, project: Some(project.clone()), ..Past::default() }
    }

    /// The memory at a moment (RFC 3339); none if there was no memory then.
    pub fn at(&mut self, moment: &Timestamp) -> Option<Memory> {
        let now = self.now.as_ref()?;
        let asked = clock::moment(moment)?;
        let is_by_then = |at: &Timestamp| clock::moment(at).is_some_and(|at| at <= asked);
        if is_by_then(&self.newest_at) {
            return Some(now.clone());
        }
        let project = self.project.as_ref()?;
        let changes = self.changes.get_or_insert_with(|| history(project).unwrap_or_default());
        let count = changes.iter().take_while(|change| is_by_then(&change.at)).count();
        if count < self.folded.0 {
            self.folded = (0, Memory::default());
        }
        for change in &changes[self.folded.0..count] {
            self.folded.1.step = self.folded.1.step.max(change.step);
            // A change in the log was accepted once, so it is accepted again.
            let _ = self.folded.1.apply(&change.change);
        }
        self.folded.0 = count;
        (count > 0).then(|| self.folded.1.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::change;
    use plimsoll_domain::memory::{Op, Register};
    use std::time::Duration;

    #[test]
    fn each_moment_has_its_own_memory() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        assert!(Past::of(&project).at(&"2026-01-01T00:00:00Z".into()).is_none());
        let mut moments = vec![clock::fine_stamp(clock::now())];
        for text in ["one", "two", "three"] {
            std::thread::sleep(Duration::from_millis(5));
            let values = [(Register::Next, text.to_owned())].into();
            change(&project, "mcp", &[Op::UpdateRegisters { values, strict: false, everywhere: false }])
                .unwrap();
            std::thread::sleep(Duration::from_millis(5));
            moments.push(clock::fine_stamp(clock::now()));
        }
        let mut past = Past::of(&project);
        let mut at = |moment: &Timestamp| {
            past.at(moment).map(|memory| memory.register(Register::Next).to_owned()).unwrap_or_default()
        };
        let found: Vec<String> = moments.iter().map(&mut at).collect();
        assert_eq!(found, ["", "one", "two", "three"]);
        let backwards: Vec<String> = moments.iter().rev().map(&mut at).collect();
        assert_eq!(backwards, ["three", "two", "one", ""]);
    }
}
