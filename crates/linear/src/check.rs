//! `plimsoll linear check`: checks each part of the setup in the order in which a delivery uses it, with advice at the first
//! failure.

use crate::client::{LinearClient, LinearError, RetryLimits, Viewer};
use crate::client_setup;
use plimsoll_domain::Settings;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::text::{count_with_noun, to_single_line};
use plimsoll_store::{Project, clock, config, outbox};
use plimsoll_terminal::console::print_text;
use std::process::ExitCode;
use std::time::Duration;

/// Timeout of the whole check, for which the user waits.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_TRIES: u32 = 2;

/// Checks the setup and prints the result. The exit code is 0 if notes can be delivered, otherwise 1.
pub(crate) fn check_setup_and_print(project: &Project, settings: &Settings) -> ExitCode {
    let mut page = CheckPage::default();
    page.has_no_problems &= check_each_part(project, settings, &mut page).is_some();
    check_outbox(project, &mut page);
    print_text(page.lines.join("\n"));
    ExitStatus::failure_if(!page.has_no_problems).into()
}

/// The output of the check, one line per part.
struct CheckPage {
    lines: Vec<String>,
    has_no_problems: bool,
}

impl Default for CheckPage {
    fn default() -> CheckPage {
        CheckPage { lines: Vec::new(), has_no_problems: true }
    }
}

impl CheckPage {
    fn add_ok(&mut self, part: &str, text: impl std::fmt::Display) {
        self.add_line("ok", part, &text.to_string());
    }

    fn add_warning(&mut self, part: &str, text: &str, advice: Option<&str>) {
        self.add_line("warning", part, text);
        self.lines.extend(advice.map(|advice| format!("    → {advice}")));
    }

    /// Adds a problem after which the check cannot continue. Always returns `None`.
    fn add_problem<T>(&mut self, part: &str, text: impl std::fmt::Display, advice: &str) -> Option<T> {
        self.has_no_problems = false;
        self.add_line("PROBLEM", part, &text.to_string());
        self.lines.push(format!("    → {advice}"));
        None
    }

    fn add_line(&mut self, status: &str, part: &str, text: &str) {
        self.lines.push(format!("{status:8} {part:8} {}", to_single_line(text)));
    }

    fn add_linear_error<T>(&mut self, part: &str, error: &LinearError) -> Option<T> {
        let advice = match error {
            // The error's own hint would be to run this command.
            LinearError::Rejected { .. } => {
                "its message is above: check linear.issue and LINEAR_API_URL, try again later, or use a new key"
            }
            error => error.hint(),
        };
        self.add_problem(part, error, advice)
    }
}

fn check_each_part(project: &Project, settings: &Settings, page: &mut CheckPage) -> Option<()> {
    let Some(issue_name) = settings.linear.issue.as_deref() else {
        return report_missing_issue(project, page);
    };
    page.add_ok("Setting", format!("notes go to {issue_name}"));
    let key = match client_setup::find_key(project, settings) {
        Ok((key, source)) => {
            let kind_text = key.describe_kind().unwrap_or("which does not look like a Linear key");
            page.add_ok("Key", format!("from {}: {kind_text}", source.name()));
            key
        }
        Err(error) => return page.add_problem("Key", &error, error.hint()),
    };
    let client = match client_setup::endpoint_from_environment()
        .and_then(|endpoint| LinearClient::new(endpoint, key))
    {
        Ok(client) => client,
        Err(error) => return page.add_linear_error("Network", &error),
    };
    let limits = RetryLimits::from_now(CHECK_TIMEOUT, MAX_TRIES);
    check_account(&client, limits, page)?;
    check_issue(&client, issue_name, limits, page)?;
    check_write_permission(&client, limits, page)
}

/// Reports that no issue is set. A project's settings file may not set one, because its author would then choose where
/// text of the session is sent; such an ignored setting is named.
fn report_missing_issue(project: &Project, page: &mut CheckPage) -> Option<()> {
    let user_settings_path = config::user_settings_path()
        .map_or("your own settings file".to_owned(), |file| file.display().to_string());
    let advice = format!("put {{\"linear\": {{\"issue\": \"ENG-123\"}}}} into {user_settings_path}");
    let ignored_keys = config::load_with_ignored_keys(project).ignored;
    match ignored_keys.iter().find(|(_, ignored_key)| ignored_key.key == "linear.issue") {
        Some((file, ignored_key)) => {
            let text = format!("{}: {}", project.relative_to_root(file), ignored_key.describe());
            page.add_problem("Setting", text, &format!("if that is intended, {advice}"))
        }
        None => page.add_problem("Setting", "no issue is set: nothing is queued, nothing is sent", &advice),
    }
}

/// Checks the network and the account. A response that rejects the key still shows that Linear was reached.
fn check_account(client: &LinearClient, limits: RetryLimits, page: &mut CheckPage) -> Option<()> {
    let response = match client.fetch_viewer(limits) {
        Ok(response) => response,
        Err(error) => {
            use LinearError::{Forbidden, RateLimited, Rejected, Unauthorized};
            let is_linear_reached = matches!(
                error,
                Forbidden { .. } | RateLimited { .. } | Rejected { .. } | Unauthorized { .. }
            );
            if is_linear_reached {
                page.add_ok("Network", "Linear answers");
            }
            return page.add_linear_error(if is_linear_reached { "Account" } else { "Network" }, &error);
        }
    };
    page.add_ok("Network", "Linear answers");
    let Viewer { name, organization } = response.data;
    page.add_ok("Account", format!("{name}, in the workspace {organization}"));
    Some(())
}

fn check_issue(
    client: &LinearClient,
    issue_id: &str,
    limits: RetryLimits,
    page: &mut CheckPage,
) -> Option<()> {
    let issue = match client.fetch_issue(issue_id, limits) {
        Ok(response) => response.data,
        Err(error) if error.is_not_found() => {
            let advice = "check the identifier, and whether the owner of the key has access to its team";
            return page.add_problem(
                "Issue",
                format!("there is no issue {issue_id} for this key ({error})"),
                advice,
            );
        }
        Err(error) => return page.add_linear_error("Issue", &error),
    };
    let text = format!("{} “{}”, team {}", issue.identifier, issue.title, issue.team_name);
    if issue.is_archived {
        page.add_warning("Issue", &format!("{text}: it is archived"), Some("name an issue that is in use"));
    } else {
        page.add_ok("Issue", text);
    }
    Some(())
}

/// Checks whether the key may write by updating a comment that does not exist, because the API does not list
/// permissions: the error is either "not found" or a missing permission.
fn check_write_permission(client: &LinearClient, limits: RetryLimits, page: &mut CheckPage) -> Option<()> {
    let unused_id = unused_comment_id();
    match client.update_comment(&unused_id, "", limits) {
        Err(error) if error.is_not_found() => page.add_ok("Rights", "the key may write comments"),
        Ok(_) => page.add_ok("Rights", "the key may write comments"),
        Err(LinearError::Rejected { errors }) => {
            let error = errors.first().map(ToString::to_string).unwrap_or_default();
            let advice = "if notes do not arrive, use a key that may read and write";
            page.add_warning(
                "Rights",
                &format!("whether the key may write is not known: {error}"),
                Some(advice),
            );
        }
        Err(error) => return page.add_linear_error("Rights", &error),
    }
    Some(())
}

/// Returns an id that no comment has.
fn unused_comment_id() -> String {
    plimsoll_domain::linear::LinearComment::for_run(&"nobody".into(), "nothing", 0).id
}

fn check_outbox(project: &Project, page: &mut CheckPage) {
    let undelivered_count = outbox::undelivered_note_count_of_all_runs(project);
    let backoff = outbox::load_backoff(project);
    let last_attempt = backoff.map(|backoff| {
        let retry_time = clock::parse_timestamp(&backoff.retry_at)
            .map_or_else(|| backoff.retry_at.clone().to_string(), clock::format_local_time_with_seconds);
        format!(" (last time: {}; not before {retry_time})", backoff.last_error)
    });
    match undelivered_count {
        0 => page.add_ok("Outbox", "no notes to deliver"),
        undelivered_count => page.add_warning(
            "Outbox",
            &format!(
                "{} to be delivered{}",
                count_with_noun(undelivered_count, "note"),
                last_attempt.unwrap_or_default()
            ),
            // Delivery is suggested only if the checks above found no problem.
            page.has_no_problems.then_some("`plimsoll linear sync` delivers"),
        ),
    }
}
