//! Kills the processes that a test left running. They are recognized by their world's HOME.

use crate::process_group::kill_processes_with_home;
use std::path::PathBuf;

/// All processes of one world. Hooks and detached programs leave their process group but keep their HOME.
pub(super) struct LeftoverProcesses {
    home: PathBuf,
}

impl LeftoverProcesses {
    pub(super) fn with_home(home: PathBuf) -> LeftoverProcesses {
        LeftoverProcesses { home }
    }

    pub(super) fn kill_all(&self) {
        kill_processes_with_home(&self.home);
    }
}

impl Drop for LeftoverProcesses {
    fn drop(&mut self) {
        self.kill_all();
    }
}
