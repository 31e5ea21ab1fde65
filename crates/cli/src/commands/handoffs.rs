//! `plimsoll handoffs`: lists the handoffs with time, session, first request, and whether a session has opened them.

use clap::Args;
use plimsoll_domain::SessionId;
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_flows::handoffs::{
    HandoffFile, HandoffToContinue, continue_slash_command_or_prompt,
    newest_handoff_by_user_and_newer_unknown, update_read_states_and_list_handoffs,
};
use plimsoll_flows::hook_invocation::SESSION_VARIABLE;
use plimsoll_policy::messages::render_continue_prompt;
use plimsoll_store::handoff_index::HandoffState;
use plimsoll_store::{Project, clock, environment};
use plimsoll_terminal::columns::clip_to_columns;
use plimsoll_terminal::console::{self, fail_with_hint, line_width_from_columns_or_terminal};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Arguments of `plimsoll handoffs`.
#[derive(Debug, Args)]
pub(crate) struct HandoffsArguments {
    /// Print one JSON array
    #[arg(long)]
    json: bool,
    /// Print the newest one of your own, for `/handoff continue`
    #[arg(long = "continue", conflicts_with = "json")]
    to_continue: bool,
}

/// Number of characters of a session id that are shown, enough to tell sessions apart.
const SESSION_ID_CHARS: usize = 8;
/// Width of the STATE column, which is the length of the longest state.
const STATE_WIDTH: usize = 7;

/// Prints the handoffs, newest first. With `--continue`, prints only the path of the one to continue from.
pub(crate) fn print_handoffs(arguments: &HandoffsArguments) -> ExitCode {
    let project = Project::find_upwards_from_current_dir();
    if arguments.to_continue {
        return print_handoff_path_to_continue_from(&project);
    }
    let handoffs = update_read_states_and_list_handoffs(&project);
    if arguments.json {
        console::print_json(Value::Array(
            handoffs.iter().map(|handoff| handoff_json(&project, handoff)).collect(),
        ));
    } else if handoffs.is_empty() {
        return console::print_nothing_to_show(format!(
            "There are no handoffs in {}.",
            project.root().display()
        ));
    } else {
        console::print_text(render_table_and_continue_command(
            &project,
            &handoffs,
            line_width_from_columns_or_terminal(),
        ));
    }
    ExitCode::SUCCESS
}

/// Prints the path of the handoff to continue from, and the newer ones of unknown origin that are skipped.
fn print_handoff_path_to_continue_from(project: &Project) -> ExitCode {
    let current_session = environment::variable(SESSION_VARIABLE).map(SessionId::from);
    let HandoffToContinue { newest_by_user: newest_own, newer_by_unknown_author: newer_unknown } =
        newest_handoff_by_user_and_newer_unknown(project, current_session.as_ref());
    let relative_path = |handoff: &HandoffFile| project.relative_to_root(&handoff.path);
    let unverified_list: String = newer_unknown
        .iter()
        .map(|handoff| format!("\n- {}", to_safe_single_line(&relative_path(handoff))))
        .collect();
    let Some(newest_own) = newest_own else {
        let hint = if unverified_list.is_empty() {
            "a session leaves one at 85% of its context window, and with `/handoff`".to_owned()
        } else {
            format!(
                "these are here, and your state folder does not say that a session of yours wrote them:{unverified_list}\nto continue from one that you trust, type: {}",
                render_continue_prompt(&relative_path(&newer_unknown[0]))
            )
        };
        return fail_with_hint("no session of yours left a handoff in this project", Some(&hint));
    };
    let written_at = clock::parse_timestamp(&newest_own.summary.written_at)
        .map(clock::format_local_time_with_seconds)
        .unwrap_or_default();
    let short_session_id: String = newest_own.summary.session_id.chars().take(SESSION_ID_CHARS).collect();
    console::print_text(format!(
        "Continue from: {}\nWritten {written_at} by session {short_session_id}.",
        to_safe_single_line(&relative_path(&newest_own))
    ));
    if !unverified_list.is_empty() {
        console::print_text(format!(
            "Newer, and not followed, because your state folder does not say that a session of yours wrote them:{unverified_list}"
        ));
    }
    ExitCode::SUCCESS
}

fn handoff_json(project: &Project, handoff: &HandoffFile) -> Value {
    let summary = &handoff.summary;
    json!({
        "file": project.relative_to_root(&handoff.path),
        "written_at": summary.written_at,
        "session_id": summary.session_id,
        "run": summary.run,
        "first_request": summary.first_request_line,
        // Null for a handoff of a run, which the run itself reads, and for one of unknown origin.
        "read": handoff.state.map(|state| state == HandoffState::Read),
        "state": handoff.state.map(HandoffState::as_str),
    })
}

fn render_table_and_continue_command(project: &Project, handoffs: &[HandoffFile], width: usize) -> String {
    let file_name =
        |handoff: &HandoffFile| handoff.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let file_width = handoffs.iter().map(|handoff| file_name(handoff).chars().count()).max().unwrap_or(0);
    let render_row = |written_at: &str, session: &str, state: &str, file: &str, request: &str| {
        let row_start = format!(
            "{written_at:<16} {session:<SESSION_ID_CHARS$}  {state:<STATE_WIDTH$}  {file:<file_width$}  "
        );
        let request_width = width.saturating_sub(row_start.chars().count()).max(20);
        format!("{}\n", format!("{row_start}{}", clip_to_columns(request, request_width)).trim_end())
    };
    let render_handoff_row = |handoff: &HandoffFile| {
        let summary = &handoff.summary;
        let written_at = clock::parse_timestamp(&summary.written_at)
            .map(clock::format_local_time_with_seconds)
            .unwrap_or_default();
        let short_session_id: String = summary.session_id.chars().take(SESSION_ID_CHARS).collect();
        let request = summary
            .current_item
            .clone()
            .or_else(|| summary.run.clone())
            .or_else(|| summary.first_request_line.clone())
            .unwrap_or_default();
        let state = match (&summary.run, handoff.state) {
            (Some(_), _) => "run",
            (None, Some(state)) => state.as_str(),
            // The origin is unknown: the file may have come with a clone.
            (None, None) => "?",
        };
        render_row(&written_at, &short_session_id, state, &file_name(handoff), &request)
    };
    let has_item = handoffs.iter().any(|handoff| handoff.summary.current_item.is_some());
    let last_heading = if has_item { "ITEM OR REQUEST" } else { "FIRST REQUEST" };
    let header_row = render_row("WHEN", "SESSION", "STATE", "FILE", last_heading);
    let rows: String = handoffs.iter().map(render_handoff_row).collect();
    let relative_path = |handoff: &HandoffFile| project.relative_to_root(&handoff.path);
    let newest_by_user_index = handoffs.iter().position(|handoff| handoff.state.is_some());
    let newest_unopened_index = handoffs.iter().position(HandoffFile::is_unopened);
    // The slash command continues from the user's newest handoff; any other handoff needs its path.
    let command = match newest_unopened_index.or(newest_by_user_index) {
        Some(index) if Some(index) == newest_by_user_index => {
            continue_slash_command_or_prompt(project, &relative_path(&handoffs[index]))
        }
        Some(index) => render_continue_prompt(&relative_path(&handoffs[index])),
        None => handoffs
            .first()
            .map(|handoff| render_continue_prompt(&relative_path(handoff)))
            .unwrap_or_default(),
    };
    format!("{header_row}{rows}\nTo continue from one, start `claude` and type: {command}")
}
