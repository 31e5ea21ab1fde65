//! The tools the bench itself needs (npm, cargo), run to their end within a limit.

use crate::process_group::end_group;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Runs a command in a group of its own; both outputs together, as an error if it failed or took too long.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<String, String> {
    let mut output = tempfile::tempfile().map_err(|error| error.to_string())?;
    let handle = || output.try_clone().expect("a second handle of a temporary file");
    command.stdin(Stdio::null()).stdout(handle()).stderr(handle()).process_group(0);
    let mut child = command.spawn().map_err(|error| format!("{command:?} does not start: {error}"))?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait().expect("our own child can be waited for") {
            None if start.elapsed() < limit => sleep(Duration::from_millis(10)),
            status => break status,
        }
    };
    if status.is_none() {
        end_group(child.id(), || _ = child.try_wait());
    }
    let mut said = Vec::new();
    output.rewind().and_then(|()| output.read_to_end(&mut said)).map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&said).into_owned();
    match status {
        Some(status) if status.success() => Ok(said),
        Some(status) => Err(format!("{status}\n{said}")),
        None => Err(format!("still running after {limit:?}\n{said}")),
    }
}
