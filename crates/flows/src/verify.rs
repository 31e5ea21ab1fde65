//! Running the verify commands, as the user gave them, outside any lock.

use policy::completion::VerifyOutcome;
use session::Settings;
use session::text::{clip, clip_start};
use std::time::Duration;
use store::Project;

/// So much of a command's output goes into journal and prompt, from its beginning and from its end.
const OUTPUT_KEPT: usize = 2_000;

/// Runs them in their order. One that was given up, and those after it, have no outcome.
pub(crate) fn verify(
    project: &Project,
    settings: &Settings,
    commands: &[String],
    give_up: &dyn Fn() -> bool,
) -> Vec<VerifyOutcome> {
    let limit = Duration::from_secs(settings.verify_timeout_seconds);
    let run = |command: &String| {
        let outcome = launcher::shell_unless(command, project.root(), limit, give_up);
        (!outcome.given_up).then(|| VerifyOutcome {
            command: command.clone(),
            passed: outcome.succeeded(),
            words: words(&outcome, limit),
        })
    };
    commands.iter().map_while(run).collect()
}

fn words(outcome: &launcher::Outcome, limit: Duration) -> String {
    let how = match (&outcome.trouble, outcome.timed_out, outcome.code) {
        (Some(trouble), ..) => format!("could not be started: {trouble}"),
        (None, true, _) => format!("took longer than {} s and was ended", limit.as_secs()),
        (None, false, Some(code)) => format!("exited with {code}"),
        (None, false, None) => "was ended by a signal".to_owned(),
    };
    let output = [outcome.stdout.as_slice(), outcome.stderr.as_slice()].concat();
    let output = shorten(String::from_utf8_lossy(&output).trim());
    if output.is_empty() { how } else { format!("{how}; it printed:\n{output}") }
}

fn shorten(output: &str) -> String {
    if output.chars().count() <= OUTPUT_KEPT * 2 {
        return output.to_owned();
    }
    format!("{}\n{}", clip(output, OUTPUT_KEPT), clip_start(output, OUTPUT_KEPT))
}
