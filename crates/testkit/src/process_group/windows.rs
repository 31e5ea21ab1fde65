//! Process trees of Windows, which has no process groups that outlive the first process.

use std::path::Path;
use std::process::{Command, Stdio};

/// Returns the command unchanged: [`terminate_process_group`] finds the children of a process by their parent.
pub(crate) fn start_in_own_group(command: &mut Command) -> &mut Command {
    command
}

/// Kills a process that the harness started and the processes that descend from it. Does nothing if `reap_child`
/// returns true, which means that the process has ended: only a running parent leads to its children.
pub(crate) fn terminate_process_group(process_id: u32, mut reap_child: impl FnMut() -> bool) {
    if reap_child() {
        return;
    }
    let mut taskkill = Command::new("taskkill");
    taskkill.args(["/T", "/F", "/PID", &process_id.to_string()]);
    let _ = taskkill.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    reap_child();
}

/// Kills nothing: Windows does not show the environment of another process.
pub(crate) fn kill_processes_with_home(_home: &Path) {}
