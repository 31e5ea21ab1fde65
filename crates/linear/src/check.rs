//! `plimsoll linear check`: each part of the way, in the order in which a note takes it, with what to do where it ends.

use crate::client::{Linear, LinearError, RetryLimits, Viewer};
use crate::way;
use plimsoll_domain::Settings;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::text::{count_with_noun, to_single_line};
use plimsoll_store::{Project, clock, config, outbox};
use plimsoll_terminal::console::print_text;
use std::process::ExitCode;
use std::time::Duration;

/// The user waits this long for all of it.
const TIMEOUT: Duration = Duration::from_secs(30);
const TRIES: u32 = 2;

/// Looks: exit code 0 where notes reach Linear, 1 where they do not.
pub(crate) fn check(project: &Project, settings: &Settings) -> ExitCode {
    let mut page = CheckPage::default();
    page.is_sound &= parts(project, settings, &mut page).is_some();
    outbox_of(project, &mut page);
    print_text(page.lines.join("\n"));
    ExitStatus::failure_if(!page.is_sound).into()
}

/// What was found, a line each.
struct CheckPage {
    lines: Vec<String>,
    is_sound: bool,
}

impl Default for CheckPage {
    fn default() -> CheckPage {
        CheckPage { lines: Vec::new(), is_sound: true }
    }
}

impl CheckPage {
    fn good(&mut self, part: &str, words: impl std::fmt::Display) {
        self.line("ok", part, &words.to_string());
    }

    fn unsure(&mut self, part: &str, words: &str, todo: Option<&str>) {
        self.line("warning", part, words);
        self.lines.extend(todo.map(|todo| format!("    → {todo}")));
    }

    /// The way ends here.
    fn bad<T>(&mut self, part: &str, words: impl std::fmt::Display, todo: &str) -> Option<T> {
        self.is_sound = false;
        self.line("PROBLEM", part, &words.to_string());
        self.lines.push(format!("    → {todo}"));
        None
    }

    fn line(&mut self, mark: &str, part: &str, words: &str) {
        self.lines.push(format!("{mark:8} {part:8} {}", to_single_line(words)));
    }

    fn failed<T>(&mut self, part: &str, error: &LinearError) -> Option<T> {
        let todo = match error {
            // The error's hint is to call this very command.
            LinearError::Refused { .. } => {
                "its message is above: check linear.issue and LINEAR_API_URL, try again later, or use a new key"
            }
            error => error.hint(),
        };
        self.bad(part, error, todo)
    }
}

fn parts(project: &Project, settings: &Settings, page: &mut CheckPage) -> Option<()> {
    let Some(issue) = settings.linear.issue.as_deref() else {
        return no_issue(project, page);
    };
    page.good("Setting", format!("notes go to {issue}"));
    let key = match way::find_key(project, settings) {
        Ok((key, source)) => {
            let kind = key.kind().unwrap_or("which does not look like a Linear key");
            page.good("Key", format!("from {}: {kind}", source.name()));
            key
        }
        Err(error) => return page.bad("Key", &error, error.hint()),
    };
    let linear = match way::endpoint().and_then(|endpoint| Linear::new(endpoint, key)) {
        Ok(linear) => linear,
        Err(error) => return page.failed("Network", &error),
    };
    let limits = RetryLimits::of(TIMEOUT, TRIES);
    account(&linear, limits, page)?;
    issue_of(&linear, issue, limits, page)?;
    rights(&linear, limits, page)
}

/// A project's file may not name one: who wrote it would choose where words of the session are sent.
fn no_issue(project: &Project, page: &mut CheckPage) -> Option<()> {
    let user = config::user_settings_path()
        .map_or("your own settings file".to_owned(), |file| file.display().to_string());
    let todo = format!("put {{\"linear\": {{\"issue\": \"ENG-123\"}}}} into {user}");
    let ignored = config::load_with_ignored_keys(project).ignored;
    match ignored.iter().find(|(_, one)| one.key == "linear.issue") {
        Some((file, one)) => {
            let words = format!("{}: {}", project.relative_to_root(file), one.describe());
            page.bad("Setting", words, &format!("if that is intended, {todo}"))
        }
        None => page.bad("Setting", "no issue is set: nothing is queued, nothing is sent", &todo),
    }
}

/// An answer that the key is wrong still shows that Linear was reached.
fn account(linear: &Linear, limits: RetryLimits, page: &mut CheckPage) -> Option<()> {
    let answer = match linear.viewer(limits) {
        Ok(answer) => answer,
        Err(error) => {
            use LinearError::{Forbidden, Limited, Refused, Unauthorized};
            let is_reached =
                matches!(error, Forbidden { .. } | Limited { .. } | Refused { .. } | Unauthorized { .. });
            if is_reached {
                page.good("Network", "Linear answers");
            }
            return page.failed(if is_reached { "Account" } else { "Network" }, &error);
        }
    };
    page.good("Network", "Linear answers");
    let Viewer { name, organization } = answer.what;
    page.good("Account", format!("{name}, in the workspace {organization}"));
    Some(())
}

fn issue_of(linear: &Linear, id: &str, limits: RetryLimits, page: &mut CheckPage) -> Option<()> {
    let issue = match linear.issue(id, limits) {
        Ok(answer) => answer.what,
        Err(error) if error.is_not_found() => {
            let todo = "check the identifier, and whether the owner of the key has access to its team";
            return page.bad("Issue", format!("there is no issue {id} for this key ({error})"), todo);
        }
        Err(error) => return page.failed("Issue", &error),
    };
    let words = format!("{} “{}”, team {}", issue.identifier, issue.title, issue.team);
    if issue.is_archived {
        page.unsure("Issue", &format!("{words}: it is archived"), Some("name an issue that is in use"));
    } else {
        page.good("Issue", words);
    }
    Some(())
}

/// What a key may do can only be tried: a change of a comment that cannot be there is refused, either because
/// it is not there or because the key may not write.
fn rights(linear: &Linear, limits: RetryLimits, page: &mut CheckPage) -> Option<()> {
    let nobody = uuid_of_nobody();
    match linear.update(&nobody, "", limits) {
        Err(error) if error.is_not_found() => page.good("Rights", "the key may write comments"),
        Ok(_) => page.good("Rights", "the key may write comments"),
        Err(LinearError::Refused { errors }) => {
            let error = errors.first().map(ToString::to_string).unwrap_or_default();
            let todo = "if notes do not arrive, use a key that may read and write";
            page.unsure("Rights", &format!("whether the key may write is not known: {error}"), Some(todo));
        }
        Err(error) => return page.failed("Rights", &error),
    }
    Some(())
}

/// An id that no comment has.
fn uuid_of_nobody() -> String {
    plimsoll_domain::linear::LinearComment::for_run(&"nobody".into(), "nothing", 0).id
}

fn outbox_of(project: &Project, page: &mut CheckPage) {
    let notes = outbox::undelivered_note_count_of_all_runs(project);
    let wait = outbox::load_backoff(project);
    let tried = wait.map(|wait| {
        let until = clock::parse_timestamp(&wait.retry_at)
            .map_or_else(|| wait.retry_at.clone().to_string(), clock::format_local_time_with_seconds);
        format!(" (last time: {}; not before {until})", wait.last_error)
    });
    match notes {
        0 => page.good("Outbox", "no notes to deliver"),
        notes => page.unsure(
            "Outbox",
            &format!("{} to be delivered{}", count_with_noun(notes, "note"), tried.unwrap_or_default()),
            // Not before what is wrong above is repaired.
            page.is_sound.then_some("`plimsoll linear sync` delivers"),
        ),
    }
}
