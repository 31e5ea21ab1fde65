//! `plimsoll linear check`: checks each part of the setup in the order in which a delivery uses it, and stops at the first problem
//! with advice for the user.

use crate::client::{LinearClient, LinearError, RetryLimits, Viewer};
use crate::client_setup;
use plimsoll_domain::Settings;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::text::{count_with_noun, to_safe_single_line};
use plimsoll_store::{Project, clock, config, outbox};
use plimsoll_terminal::console::print_text;
use std::process::ExitCode;
use std::time::Duration;

/// Timeout of the whole check, for which the user waits.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_TRIES: u32 = 2;

/// Checks the setup and prints the result. The exit code is 0 if notes can be delivered, otherwise 1.
pub(crate) fn check_setup_and_print(project: &Project, settings: &Settings) -> ExitCode {
    let mut report = CheckReport::default();
    report.has_no_problems &= check_parts_until_first_problem(project, settings, &mut report).is_some();
    add_undelivered_note_count(project, &mut report);
    print_text(report.lines.join("\n"));
    ExitStatus::failure_if(!report.has_no_problems).into()
}

/// The output of the check, one line per part.
struct CheckReport {
    lines: Vec<String>,
    has_no_problems: bool,
}

impl Default for CheckReport {
    fn default() -> CheckReport {
        CheckReport { lines: Vec::new(), has_no_problems: true }
    }
}

impl CheckReport {
    fn add_ok(&mut self, part: &str, text: impl std::fmt::Display) {
        self.add_line("ok", part, &text.to_string());
    }

    fn add_warning(&mut self, part: &str, text: &str, advice: Option<&str>) {
        self.add_line("warning", part, text);
        self.lines.extend(advice.map(|advice| format!("    → {advice}")));
    }

    /// Adds a problem after which the check cannot continue. Always returns `None`, so that callers can return the result.
    fn add_problem<T>(&mut self, part: &str, text: impl std::fmt::Display, advice: &str) -> Option<T> {
        self.has_no_problems = false;
        self.add_line("PROBLEM", part, &text.to_string());
        self.lines.push(format!("    → {advice}"));
        None
    }

    fn add_line(&mut self, status: &str, part: &str, text: &str) {
        self.lines.push(format!("{status:8} {part:8} {}", to_safe_single_line(text)));
    }

    fn add_linear_error_as_problem<T>(&mut self, part: &str, error: &LinearError) -> Option<T> {
        let advice = match error {
            // The error's own hint tells the user to run this command.
            LinearError::Rejected { .. } => {
                "its message is above: check linear.issue and LINEAR_API_URL, try again later, or use a new key"
            }
            error => error.hint(),
        };
        self.add_problem(part, error, advice)
    }
}

fn check_parts_until_first_problem(
    project: &Project,
    settings: &Settings,
    report: &mut CheckReport,
) -> Option<()> {
    let Some(issue_name) = settings.linear.issue.as_deref() else {
        return add_unset_or_ignored_issue_setting_problem(project, report);
    };
    report.add_ok("Setting", format!("notes go to {issue_name}"));
    let key = match client_setup::parse_key_from_variable_or_command(project, settings) {
        Ok((key, source)) => {
            let kind_text = key.describe_kind().unwrap_or("which does not look like a Linear key");
            report.add_ok("Key", format!("from {}: {kind_text}", source.name()));
            key
        }
        Err(error) => return report.add_problem("Key", &error, error.hint()),
    };
    let client = match client_setup::endpoint_from_environment()
        .and_then(|endpoint| LinearClient::new(endpoint, key))
    {
        Ok(client) => client,
        Err(error) => return report.add_linear_error_as_problem("Network", &error),
    };
    let limits = RetryLimits::from_now(CHECK_TIMEOUT, MAX_TRIES);
    check_network_and_account(&client, limits, report)?;
    check_issue_and_warn_if_archived(&client, issue_name, limits, report)?;
    check_permission_by_updating_missing_comment(&client, limits, report)
}

/// Adds the problem that no issue is set. A project's settings file may not set one, because its author would then choose
/// where text of the session is sent. If the project sets one, the problem names this ignored setting.
fn add_unset_or_ignored_issue_setting_problem(project: &Project, report: &mut CheckReport) -> Option<()> {
    let user_settings_path = config::user_settings_path()
        .map_or("your own settings file".to_owned(), |file| file.display().to_string());
    let advice = format!("put {{\"linear\": {{\"issue\": \"ENG-123\"}}}} into {user_settings_path}");
    let ignored_keys = config::load_with_ignored_keys(project).ignored_keys;
    match ignored_keys.iter().find(|(_, ignored_key)| ignored_key.key == "linear.issue") {
        Some((file, ignored_key)) => {
            let text = format!("{}: {}", project.relative_to_root(file), ignored_key.describe());
            report.add_problem("Setting", text, &format!("if that is intended, {advice}"))
        }
        None => report.add_problem("Setting", "no issue is set, so no notes are queued or sent", &advice),
    }
}

/// Checks the network and the account. An error response, such as one that rejects the key, shows that the network works.
fn check_network_and_account(
    client: &LinearClient,
    limits: RetryLimits,
    report: &mut CheckReport,
) -> Option<()> {
    let response = match client.fetch_viewer(limits) {
        Ok(response) => response,
        Err(error) => {
            use LinearError::{Forbidden, RateLimited, Rejected, Unauthorized};
            let has_linear_responded = matches!(
                error,
                Forbidden { .. } | RateLimited { .. } | Rejected { .. } | Unauthorized { .. }
            );
            if has_linear_responded {
                report.add_ok("Network", "Linear answers");
            }
            return report.add_linear_error_as_problem(
                if has_linear_responded { "Account" } else { "Network" },
                &error,
            );
        }
    };
    report.add_ok("Network", "Linear answers");
    let Viewer { name, organization } = response.data;
    report.add_ok("Account", format!("{name}, in the workspace {organization}"));
    Some(())
}

fn check_issue_and_warn_if_archived(
    client: &LinearClient,
    issue_name: &str,
    limits: RetryLimits,
    report: &mut CheckReport,
) -> Option<()> {
    let issue = match client.fetch_issue(issue_name, limits) {
        Ok(response) => response.data,
        Err(error) if error.is_not_found() => {
            let advice = "check the identifier, and whether the owner of the key has access to its team";
            return report.add_problem(
                "Issue",
                format!("there is no issue {issue_name} for this key ({error})"),
                advice,
            );
        }
        Err(error) => return report.add_linear_error_as_problem("Issue", &error),
    };
    let text = format!("{} “{}”, team {}", issue.identifier, issue.title, issue.team_name);
    if issue.is_archived {
        report.add_warning("Issue", &format!("{text}: it is archived"), Some("name an issue that is in use"));
    } else {
        report.add_ok("Issue", text);
    }
    Some(())
}

/// Checks whether the key may write by updating a comment that does not exist, because the API does not list
/// permissions. A "not found" error means that the key may write. Any other rejection is only a warning.
fn check_permission_by_updating_missing_comment(
    client: &LinearClient,
    limits: RetryLimits,
    report: &mut CheckReport,
) -> Option<()> {
    let unused_id = unused_comment_id();
    match client.update_comment(&unused_id, "", limits) {
        Err(error) if error.is_not_found() => report.add_ok("Rights", "the key may write comments"),
        Ok(_) => report.add_ok("Rights", "the key may write comments"),
        Err(LinearError::Rejected { errors }) => {
            let error = errors.first().map(ToString::to_string).unwrap_or_default();
            let advice = "if notes do not arrive, use a key that may read and write";
            report.add_warning(
                "Rights",
                &format!("cannot determine whether the key may write: {error}"),
                Some(advice),
            );
        }
        Err(error) => return report.add_linear_error_as_problem("Rights", &error),
    }
    Some(())
}

/// Returns a comment id derived from a run that does not exist, so that no comment has it.
fn unused_comment_id() -> String {
    plimsoll_domain::linear::LinearComment::for_run(&"nobody".into(), "nothing", 0).id
}

fn add_undelivered_note_count(project: &Project, report: &mut CheckReport) {
    let undelivered_count = outbox::undelivered_note_count_of_all_runs(project);
    let backoff = outbox::load_backoff(project);
    let last_attempt_text = backoff.map(|backoff| {
        let retry_time = clock::parse_timestamp(&backoff.retry_at)
            .map_or_else(|| backoff.retry_at.clone().to_string(), clock::format_local_time_with_seconds);
        format!(" (last time: {}; not before {retry_time})", backoff.last_error)
    });
    match undelivered_count {
        0 => report.add_ok("Outbox", "no notes to deliver"),
        undelivered_count => report.add_warning(
            "Outbox",
            &format!(
                "{} to be delivered{}",
                count_with_noun(undelivered_count, "note"),
                last_attempt_text.unwrap_or_default()
            ),
            // Delivery is suggested only if the checks above found no problem.
            report.has_no_problems.then_some("`plimsoll linear sync` delivers"),
        ),
    }
}
