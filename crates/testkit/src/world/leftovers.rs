//! Kills the processes that a test left running. They are recognized by their world's HOME.

use crate::process_group::list_process_ids;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
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
        for process in self.find_processes_by_home() {
            let _ = kill_process(process, Signal::KILL);
        }
    }

    /// Returns the processes that were started with this HOME in their environment. Requires `/proc`; returns none
    /// on systems without it.
    fn find_processes_by_home(&self) -> Vec<Pid> {
        let home_variable = format!("HOME={}", self.home.display()).into_bytes();
        let has_this_home = |process_id: &i32| {
            let environment = fs::read(format!("/proc/{process_id}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == home_variable)
        };
        list_process_ids().into_iter().flatten().filter(has_this_home).filter_map(Pid::from_raw).collect()
    }
}

impl Drop for LeftoverProcesses {
    fn drop(&mut self) {
        self.kill_all();
    }
}
