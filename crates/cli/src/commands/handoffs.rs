//! `plimsoll handoffs`: when, by which session, what was asked first, and whether a session has opened it.

use clap::Args;
use plimsoll_domain::SessionId;
use plimsoll_domain::text::one_line;
use plimsoll_flows::handoffs::{ContinuedHandoff, KnownHandoff, all, continue_command, find_to_continue};
use plimsoll_flows::hook_invocation::SESSION_VARIABLE;
use plimsoll_policy::words::continue_from;
use plimsoll_store::handoff_index::HandoffState;
use plimsoll_store::{Project, clock, environment};
use plimsoll_terminal::columns::clip;
use plimsoll_terminal::columns::width;
use plimsoll_terminal::console::{self, fail_with_hint};
use serde_json::{Value, json};
use std::process::ExitCode;

/// How to show them.
#[derive(Debug, Args)]
pub(crate) struct HandoffsArguments {
    /// Print one JSON array: file, written_at, session_id, run, first_request, read, state
    #[arg(long)]
    json: bool,
    /// Print only the newest handoff that a session of yours wrote, for `/handoff continue`
    #[arg(long = "continue", conflicts_with = "json")]
    to_continue: bool,
}

/// So many letters of a session's id are enough to tell it from others.
const ID: usize = 8;
/// The length of the longest state.
const STATE: usize = 7;

/// Lists them, the newest first.
pub(crate) fn handoffs(arguments: &HandoffsArguments) -> ExitCode {
    let project = Project::of_command();
    if arguments.to_continue {
        return print_to_continue(&project);
    }
    let known = all(&project);
    if arguments.json {
        console::json(Value::Array(known.iter().map(|handoff| as_json(&project, handoff)).collect()));
    } else if known.is_empty() {
        return console::nothing_to_show(format!("There are no handoffs in {}.", project.root().display()));
    } else {
        console::say(table(&project, &known, width()));
    }
    ExitCode::SUCCESS
}

/// Names the handoff to read, and the newer ones that are not followed.
fn print_to_continue(project: &Project) -> ExitCode {
    let asking = environment::variable(SESSION_VARIABLE).map(SessionId::from);
    let ContinuedHandoff { newest, passed_over } = find_to_continue(project, asking.as_ref());
    let path = |handoff: &KnownHandoff| project.relative(&handoff.path);
    let unknown: String =
        passed_over.iter().map(|handoff| format!("\n- {}", one_line(&path(handoff)))).collect();
    let Some(newest) = newest else {
        let hint = if unknown.is_empty() {
            "a session leaves one at 85% of its context window, and with `/handoff`".to_owned()
        } else {
            format!(
                "these are here, and your state folder does not say that a session of yours wrote them:{unknown}\nto continue from one that you trust, type: {}",
                continue_from(&path(&passed_over[0]))
            )
        };
        return fail_with_hint("no session of yours left a handoff in this project", Some(&hint));
    };
    let when = clock::moment(&newest.summary.written_at).map(clock::for_people).unwrap_or_default();
    let session: String = newest.summary.session_id.chars().take(ID).collect();
    console::say(format!(
        "Continue from: {}\nWritten {when} by session {session}.",
        one_line(&path(&newest))
    ));
    if !unknown.is_empty() {
        console::say(format!(
            "Newer, and not followed, because your state folder does not say that a session of yours wrote them:{unknown}"
        ));
    }
    ExitCode::SUCCESS
}

fn as_json(project: &Project, handoff: &KnownHandoff) -> Value {
    let summary = &handoff.summary;
    json!({
        "file": project.relative(&handoff.path),
        "written_at": summary.written_at,
        "session_id": summary.session_id,
        "run": summary.run,
        "first_request": summary.first_request,
        // A run's is read by the run, and one of unknown origin by nobody.
        "read": handoff.state.map(|state| state == HandoffState::Read),
        "state": handoff.state.map(HandoffState::word),
    })
}

fn table(project: &Project, known: &[KnownHandoff], width: usize) -> String {
    let name =
        |handoff: &KnownHandoff| handoff.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let longest = known.iter().map(|handoff| name(handoff).chars().count()).max().unwrap_or(0);
    let line = |when: &str, session: &str, read: &str, file: &str, asked: &str| {
        let start = format!("{when:<16} {session:<ID$}  {read:<STATE$}  {file:<longest$}  ");
        let room = width.saturating_sub(start.chars().count()).max(20);
        format!("{}\n", format!("{start}{}", clip(asked, room)).trim_end())
    };
    let row = |handoff: &KnownHandoff| {
        let summary = &handoff.summary;
        let when = clock::moment(&summary.written_at).map(clock::for_people).unwrap_or_default();
        let session: String = summary.session_id.chars().take(ID).collect();
        let asked = summary.run.clone().or_else(|| summary.first_request.clone()).unwrap_or_default();
        let read = match (&summary.run, handoff.state) {
            (Some(_), _) => "run",
            (None, Some(state)) => state.word(),
            // It may have come with a clone.
            (None, None) => "?",
        };
        line(&when, &session, read, &name(handoff), &asked)
    };
    let heading = line("WHEN", "SESSION", "STATE", "FILE", "FIRST REQUEST");
    let rows: String = known.iter().map(row).collect();
    let path = |handoff: &KnownHandoff| project.relative(&handoff.path);
    let newest_own = known.iter().position(|handoff| handoff.state.is_some());
    let waiting = known.iter().position(KnownHandoff::is_waiting);
    // The slash command continues from the newest one; any other is named by its path.
    let next = match waiting.or(newest_own) {
        Some(at) if Some(at) == newest_own => continue_command(project, &path(&known[at])),
        Some(at) => continue_from(&path(&known[at])),
        None => known.first().map(|handoff| continue_from(&path(handoff))).unwrap_or_default(),
    };
    format!("{heading}{rows}\nTo continue from one, start `claude` and type: {next}")
}
