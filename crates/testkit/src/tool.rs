//! Runs the tools that the harness itself needs (npm, cargo, openssl), each with a time limit.

use crate::process_group::terminate_process_group;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Runs a command in its own process group and returns stdout and stderr together. If the command fails or
/// takes longer than `limit`, the output is the error.
pub(crate) fn run_with_timeout(command: &mut Command, timeout: Duration) -> Result<String, String> {
    let mut output = tempfile::tempfile().map_err(|error| error.to_string())?;
    let clone_output = || output.try_clone().expect("a second handle of a temporary file");
    command.stdin(Stdio::null()).stdout(clone_output()).stderr(clone_output()).process_group(0);
    let mut child = command.spawn().map_err(|error| format!("{command:?} does not start: {error}"))?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait().expect("our own child can be waited for") {
            None if start.elapsed() < timeout => sleep(Duration::from_millis(10)),
            status => break status,
        }
    };
    if status.is_none() {
        terminate_process_group(child.id(), || _ = child.try_wait());
    }
    let mut bytes = Vec::new();
    output.rewind().and_then(|()| output.read_to_end(&mut bytes)).map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match status {
        Some(status) if status.success() => Ok(text),
        Some(status) => Err(format!("{status}\n{text}")),
        None => Err(format!("still running after {timeout:?}\n{text}")),
    }
}
