//! Terminates process groups that the harness started, and lists processes.

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time between SIGTERM and SIGKILL, in which the client runs its SessionEnd hooks and terminates its tools.
const KILL_GRACE_PERIOD: Duration = Duration::from_secs(2);

/// Sends SIGTERM to a process group and, after a grace period, SIGKILL. Calls `reap_child` while waiting, so that the
/// caller can reap its child process.
pub(crate) fn terminate_process_group(group_id: u32, mut reap_child: impl FnMut()) {
    let Some(group) = i32::try_from(group_id).ok().and_then(Pid::from_raw) else { return };
    if kill_process_group(group, Signal::TERM).is_err() {
        return;
    }
    let start = Instant::now();
    while start.elapsed() < KILL_GRACE_PERIOD {
        reap_child();
        if !has_running_process(group) {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    let _ = kill_process_group(group, Signal::KILL);
    reap_child();
}

/// Returns true if a process of the group is still running. Zombies do not count.
fn has_running_process(group: Pid) -> bool {
    let group_text = group.as_raw_nonzero().to_string();
    let is_running_member = |process_id: i32| {
        let stat_line = fs::read_to_string(format!("/proc/{process_id}/stat")).unwrap_or_default();
        // The process name in parentheses can contain any character; the state, the parent and the group follow it.
        let mut fields = stat_line.rsplit(')').next().unwrap_or_default().split_whitespace();
        fields.next().is_some_and(|state| state != "Z") && fields.nth(1) == Some(&group_text)
    };
    test_kill_process_group(group).is_ok()
        && list_process_ids().is_none_or(|mut process_ids| process_ids.any(is_running_member))
}

/// Returns the ids of all processes, or `None` if there is no `/proc`.
pub(crate) fn list_process_ids() -> Option<impl Iterator<Item = i32>> {
    let entries = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    Some(entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()))
}
