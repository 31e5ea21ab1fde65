//! `plimsoll sessions`: lists the sessions of all projects, newest first.

use crate::client_usage::{ClientUsage, nothing_found_message, read_usage_and_search_requests};
use crate::marked_costs::{explain_marks, format_marked_cost, print_explanation};
use clap::Args;
use plimsoll_domain::cost::Cost;
use plimsoll_domain::text::{count_with_noun, format_tokens, to_safe_single_line};
use plimsoll_policy::usage::{UsageTotals, group_usage};
use plimsoll_policy::window::{WindowEvidence, resolve_window_raising_it_to_used_tokens};
use plimsoll_protocol::settings::is_windows_path;
use plimsoll_store::{clock, environment};
use plimsoll_terminal::columns::{clip_path_to_columns, clip_to_columns, width};
use plimsoll_terminal::console::{self, line_width_from_columns_or_terminal};
use plimsoll_terminal::value_parsers;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

const SESSIONS_HELP: &str = "\
Examples:
  plimsoll sessions
  plimsoll sessions -n 100
  plimsoll sessions --json | jq -r '.[0].resume_command'";

/// Arguments of `plimsoll sessions`.
#[derive(Debug, Args)]
#[command(after_help = SESSIONS_HELP)]
pub(crate) struct SessionsArguments {
    /// Only sessions with this text in a request, the project, the branch or the id
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// The last N of them [default: 20]
    #[arg(short = 'n', long = "last", value_name = "N", value_parser = value_parsers::whole_number::<usize>)]
    last: Option<usize>,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

const DEFAULT_SESSION_COUNT: usize = 20;

/// A session of Claude Code.
struct Session<'a> {
    id: &'a str,
    project: &'a str,
    /// The folder in which it can be resumed.
    folder: &'a str,
    branch: Option<&'a str>,
    first_request: Option<&'a str>,
    /// Unix time in seconds.
    last_response_at: i64,
    peak_tokens: u64,
    window_tokens: Option<u64>,
    compaction_count: usize,
    totals: UsageTotals,
}

/// Prints the sessions of all projects.
pub(crate) fn print_sessions(arguments: &SessionsArguments) -> ExitCode {
    let searched_text = arguments.search.as_ref().map(|text| text.to_lowercase());
    let usage = read_usage_and_search_requests(searched_text.as_deref());
    let mut sessions = list_sessions_newest_first(&usage, searched_text.as_deref());
    let session_count = sessions.len();
    sessions.truncate(arguments.last.unwrap_or(DEFAULT_SESSION_COUNT));
    if arguments.json {
        console::print_json(sessions.iter().map(Session::to_json).collect::<Value>());
        return ExitCode::SUCCESS;
    }
    usage.print_warnings();
    if session_count == 0 {
        return console::print_nothing_to_show(match arguments.search {
            Some(_) => "No session matches.".to_owned(),
            None => nothing_found_message(),
        });
    }
    let columns = line_width_from_columns_or_terminal();
    let texts: Vec<String> = sessions.iter().map(|session| session.render(columns)).collect();
    if sessions.is_empty() {
        return ExitCode::SUCCESS;
    }
    console::print_text(texts.join("\n\n"));
    let costs: Vec<Cost> = sessions.iter().map(|session| session.totals.cost).collect();
    print_explanation(&explain_marks(&costs, "a model"));
    if sessions.len() < session_count {
        let listed_count = sessions.len();
        console::print_hint(&format!(
            "{listed_count} of {session_count} sessions; `-n {session_count}` lists all"
        ));
    }
    ExitCode::SUCCESS
}

fn list_sessions_newest_first<'a>(usage: &'a ClientUsage, searched_text: Option<&str>) -> Vec<Session<'a>> {
    let session_id = |index: usize| usage.transcripts[index].session_id.as_str();
    let mut last_response_at: BTreeMap<&str, i64> = BTreeMap::new();
    let mut last_response_at_in_file: BTreeMap<usize, i64> = BTreeMap::new();
    for entry in &usage.entries {
        last_response_at.insert(session_id(entry.transcript_index), entry.responded_at);
        last_response_at_in_file.insert(entry.transcript_index, entry.responded_at);
    }
    // A folder of transcripts may have been copied, so that a session has two files. The newer one can be resumed.
    let mut index_of_session: BTreeMap<&str, usize> = BTreeMap::new();
    for index in (0..usage.files.len()).filter(|index| usage.files[*index].is_session) {
        let newest_index = index_of_session.entry(session_id(index)).or_insert(index);
        if last_response_at_in_file.get(&index) > last_response_at_in_file.get(newest_index) {
            *newest_index = index;
        }
    }
    let totals = group_usage(&usage.entries, |entry| session_id(entry.transcript_index));
    let to_session = |index: usize| {
        let (transcript, requests) = (&usage.transcripts[index], &usage.requests[index]);
        // A session without a response has nothing to resume.
        let last_response_at = *last_response_at.get(transcript.session_id.as_str())?;
        let project = usage.project(index);
        let contains_text = |text: &str| {
            transcript.session_id.contains(text)
                || project.to_lowercase().contains(text)
                || transcript.branch.as_ref().is_some_and(|branch| branch.to_lowercase().contains(text))
        };
        let is_selected = searched_text.is_none_or(|text| requests.has_match || contains_text(text));
        let evidence = WindowEvidence {
            model: transcript.model.as_deref(),
            max_used_tokens: transcript.peak_tokens,
            ..WindowEvidence::default()
        };
        is_selected.then(|| Session {
            id: &transcript.session_id,
            project,
            folder: transcript.folder.as_deref().unwrap_or(project),
            branch: transcript.branch.as_deref(),
            first_request: requests.first_request.as_deref(),
            last_response_at,
            peak_tokens: transcript.peak_tokens,
            window_tokens: resolve_window_raising_it_to_used_tokens(&evidence).map(|window| window.tokens),
            compaction_count: transcript.compaction_count,
            totals: totals.get(transcript.session_id.as_str()).copied().unwrap_or_default(),
        })
    };
    let mut sessions: Vec<Session> = index_of_session.into_values().filter_map(to_session).collect();
    sessions.sort_by_key(|session| Reverse(session.last_response_at));
    sessions
}

impl Session<'_> {
    /// Renders the first request, the figures, and the command that resumes the session.
    fn render(&self, columns: usize) -> String {
        let time = clock::local_time_from_unix_seconds(self.last_response_at).format("%a %Y-%m-%d %H:%M");
        let request = to_safe_single_line(self.first_request.unwrap_or("(no request)"));
        let percent =
            self.window_tokens.map(|window| match self.peak_tokens.saturating_mul(100) / window.max(1) {
                0 if self.peak_tokens > 0 => " (<1%)".to_owned(),
                percent => format!(" ({percent}%)"),
            });
        let figures = [
            Some(format_marked_cost(self.totals.cost)),
            Some(format!("peak {}{}", format_tokens(self.peak_tokens), percent.unwrap_or_default())),
            (self.compaction_count > 0).then(|| count_with_noun(self.compaction_count, "compaction")),
            self.branch
                .filter(|branch| *branch != "HEAD")
                .map(|branch| clip_to_columns(&to_safe_single_line(branch), columns / 4)),
        ];
        let figures = figures.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        let project = to_safe_single_line(&environment::abbreviate_home(self.project));
        let project_columns = columns.saturating_sub(width(&figures) + 5);
        let project = clip_path_to_columns(&project, project_columns);
        let lines = [format!("{time}  {request}"), format!("  {figures} · {project}")];
        let mut lines = lines.map(|line| clip_to_columns(&line, columns)).to_vec();
        lines.extend(self.resume_command().map(|command| format!("  {command}")));
        lines.join("\n")
    }

    /// Returns the command that resumes the session: Claude Code finds a session only in the folder where it was started.
    /// Returns `None` if a name in it could mislead who copies it.
    fn resume_command(&self) -> Option<String> {
        let is_plain_id =
            self.id.chars().all(|character| character.is_ascii_alphanumeric() || character == '-');
        let is_safe = is_plain_id
            && !self.id.is_empty()
            && !self.id.starts_with('-')
            && Path::new(self.folder).is_absolute()
            && to_safe_single_line(self.folder) == self.folder
            // A name that was not valid Unicode is not known.
            && !self.folder.contains('\u{fffd}');
        let cd_prefix = render_cd_prefix(self.folder).filter(|_| is_safe)?;
        Some(format!("{cd_prefix} claude --resume {}", self.id))
    }

    fn to_json(&self) -> Value {
        json!({
            "session_id": self.id,
            "project": self.project,
            "folder": self.folder,
            "branch": self.branch,
            "first_request": self.first_request,
            "last_response_at": clock::timestamp_from_unix_seconds(self.last_response_at),
            "peak_tokens": self.peak_tokens,
            "window_tokens": self.window_tokens,
            "compactions": self.compaction_count,
            "responses": self.totals.response_count,
            "total_tokens": self.totals.tokens.total_tokens(),
            "cost_usd": self.totals.cost.usd,
            "cost_basis": self.totals.cost.basis,
            "resume_command": self.resume_command(),
        })
    }
}

/// Returns the beginning of a command line that changes to a folder, for POSIX shells. For a folder of Windows, PowerShell reads it,
/// too (`cmd` does not): it has no `&&` before version 7, ends a quote at every apostrophe of Unicode, and expands wildcards
/// inside quotes. Returns `None` if the folder cannot be quoted.
fn render_cd_prefix(folder: &str) -> Option<String> {
    if folder.starts_with(r"\\") {
        return None;
    }
    if is_windows_path(folder) {
        let has_special_character = folder.contains(['\'', '‘', '’', '‚', '‛', '[', ']', '*', '?']);
        return (!has_special_character).then(|| format!("cd '{folder}';"));
    }
    shlex::try_quote(folder).ok().map(|folder| format!("cd {folder} &&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_quoted_for_the_shells_of_its_system() {
        for (folder, expected) in [
            ("/home/u/shop", Some("cd /home/u/shop &&")),
            ("/home/u/it's", Some("cd \"/home/u/it's\" &&")),
            ("/home/$(id)", Some("cd '/home/$(id)' &&")),
            ("/home/\0", None),
            (r"C:\Users\jo\shop", Some(r"cd 'C:\Users\jo\shop';")),
            (r"C:\a $(id) `id`", Some(r"cd 'C:\a $(id) `id`';")),
            (r"C:\it's", None),
            (r"C:\w\a[b]", None),
            (r"\\server\share", None),
            (r"C:\a’; id #", None),
        ] {
            assert_eq!(render_cd_prefix(folder).as_deref(), expected, "{folder}");
        }
    }
}
