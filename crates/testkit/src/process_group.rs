//! Ending a process group of ours, and only that.

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A client that is asked to end runs its SessionEnd hooks and ends its tools; then it is made to end.
const GRACE: Duration = Duration::from_secs(2);

/// Ends a process group: politely, then surely. `reap` lets the caller collect its child meanwhile.
pub(crate) fn end_group(group: u32, mut reap: impl FnMut()) {
    let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) else { return };
    if kill_process_group(group, Signal::TERM).is_err() {
        return;
    }
    let start = Instant::now();
    while start.elapsed() < GRACE {
        reap();
        if !lives(group) {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    let _ = kill_process_group(group, Signal::KILL);
    reap();
}

/// Whether somebody in the group still runs; zombies that nobody collects do not count.
fn lives(group: Pid) -> bool {
    let wanted = group.as_raw_nonzero().to_string();
    let runs = |number: i32| {
        let status = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        // The name in parentheses may hold anything; after it come state, parent and group.
        let mut fields = status.rsplit(')').next().unwrap_or_default().split_whitespace();
        fields.next().is_some_and(|state| state != "Z") && fields.nth(1) == Some(&wanted)
    };
    test_kill_process_group(group).is_ok() && process_numbers().is_none_or(|mut numbers| numbers.any(runs))
}

/// All processes there are, none if there is no `/proc`.
pub(crate) fn process_numbers() -> Option<impl Iterator<Item = i32>> {
    let entries = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    Some(entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()))
}
