//! The head of a memory's log, looked up once for all code of a hook that needs it.

use super::memory_log;
use crate::Project;
use crate::turn_log::LogHead;

/// A project, and the head of its memory's log at the time of the lookup.
#[derive(Debug, Clone)]
pub struct MemoryHead {
    pub(super) project: Project,
    /// `None` without a memory, or if the head file is outdated.
    pub(super) head: Option<LogHead>,
}

impl MemoryHead {
    /// Looks up the current head of a project's memory.
    pub fn load(project: &Project) -> MemoryHead {
        MemoryHead { project: project.clone(), head: memory_log(project).current_head() }
    }
}
