//! Runs the tools that the test harness needs (npm, cargo, openssl), each with a timeout.

use crate::process_group::{start_in_own_group, terminate_process_group};
use std::io::{Read, Seek};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Runs a command in its own process group and returns its stdout and stderr combined. If the command fails or
/// exceeds `timeout`, the output is part of the error.
pub(crate) fn run_for_combined_output(command: &mut Command, timeout: Duration) -> Result<String, String> {
    let mut output_file = tempfile::tempfile().map_err(|error| error.to_string())?;
    let clone_output_file = || output_file.try_clone().expect("a second handle of a temporary file");
    command.stdin(Stdio::null()).stdout(clone_output_file()).stderr(clone_output_file());
    let mut child = start_in_own_group(command)
        .spawn()
        .map_err(|error| format!("{command:?} does not start: {error}"))?;
    let started_at = Instant::now();
    let status = loop {
        match child.try_wait().expect("our own child can be waited for") {
            None if started_at.elapsed() < timeout => sleep(Duration::from_millis(10)),
            status => break status,
        }
    };
    if status.is_none() {
        terminate_process_group(child.id(), || child.try_wait().is_ok_and(|status| status.is_some()));
    }
    let mut bytes = Vec::new();
    output_file
        .rewind()
        .and_then(|()| output_file.read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match status {
        Some(status) if status.success() => Ok(text),
        Some(status) => Err(format!("{status}\n{text}")),
        None => Err(format!("still running after {timeout:?}\n{text}")),
    }
}
