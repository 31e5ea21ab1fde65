//! Process groups and signals of Unix.

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time between SIGTERM and SIGKILL, in which the client runs its SessionEnd hooks and terminates its tools.
const KILL_GRACE_PERIOD: Duration = Duration::from_secs(2);

/// Makes the command start in a process group with its own process id as the group's id.
pub(crate) fn start_in_own_group(command: &mut Command) -> &mut Command {
    command.process_group(0)
}

/// Sends SIGTERM to a process group and, after a grace period, SIGKILL. Calls `reap_child` while waiting, so that the
/// caller can reap its child process; what it returns is not used, because the child's children may still run.
pub(crate) fn terminate_process_group(group_id: u32, mut reap_child: impl FnMut() -> bool) {
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

/// Kills the processes that were started with this HOME in their environment. Requires `/proc`; kills none on systems
/// without it.
pub(crate) fn kill_processes_with_home(home: &Path) {
    let home_variable = format!("HOME={}", home.display()).into_bytes();
    let has_this_home = |process_id: &i32| {
        let environment = fs::read(format!("/proc/{process_id}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == home_variable)
    };
    for process in list_process_ids().into_iter().flatten().filter(has_this_home).filter_map(Pid::from_raw) {
        let _ = kill_process(process, Signal::KILL);
    }
}

/// Returns the ids of all processes, or `None` if there is no `/proc`.
fn list_process_ids() -> Option<impl Iterator<Item = i32>> {
    let entries = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    Some(entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()))
}
