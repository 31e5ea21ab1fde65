//! How far a memory goes, looked up once for all who ask in one hook.

use super::log;
use crate::Project;
use crate::turn_log::Head;

/// A project, and how far its memory went when it was looked at.
#[derive(Debug, Clone)]
pub struct Standing {
    pub(super) project: Project,
    /// None without a memory, or if its head is behind.
    pub(super) head: Option<Head>,
}

impl Standing {
    /// That of a project's memory now.
    pub fn of(project: &Project) -> Standing {
        Standing { project: project.clone(), head: log(project).head() }
    }
}
