//! `plimsoll monitor`: the monitor's decision for shell glue.

use crate::whose::{Whose, marker_of};
use crate::{fail, foreign, say, standard_input};
use flows::measure::{Question, measure};
use flows::monitor::post_tool;
use session::level::Level;
use session::{Marker, Reading};
use std::process::ExitCode;
use store::{Project, config};

/// Our own fault, for a script: sysexits' EX_SOFTWARE.
const FAULT: u8 = 70;

/// With a hook's JSON on standard input: its decision as a bare marker line, and its exit code. Without: a look
/// at the session found from the state, which announces nothing and writes nothing.
pub(crate) fn monitor() -> ExitCode {
    let document = standard_input::document();
    if let Some(code) = foreign::monitor(&Project::of_command(), document.as_deref()) {
        return code;
    }
    match document {
        Some(document) => as_hook(&document),
        None => look(&Project::of_command()),
    }
}

fn as_hook(document: &[u8]) -> ExitCode {
    let signal = post_tool(document);
    if let Some(marker) = signal.stdout.as_deref().and_then(marker_of) {
        say(marker);
    }
    match signal.complaints.first() {
        Some(complaint) => fail(complaint, FAULT),
        None => ExitCode::from(signal.exit),
    }
}

fn look(project: &Project) -> ExitCode {
    let whose = match Whose::find(project) {
        Ok(Some(whose)) => whose,
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => return fail(error, FAULT),
    };
    let (settings, _) = config::load(project);
    let transcript = whose.transcript();
    let transcript = transcript.as_deref();
    let measurement =
        measure(&Question { project, settings: &settings, record: &whose.record, transcript, calls: &[] });
    let level = measurement.level().unwrap_or_default();
    let percent = measurement.reading.as_ref().and_then(Reading::percent);
    if let Some(percent) = percent.filter(|_| level > Level::L0) {
        say(Marker::Warning { level, percent });
    }
    ExitCode::from(u8::from(level == Level::L3 && whose.run.is_some()))
}
