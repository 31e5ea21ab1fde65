//! `plimsoll plan --draft`: a plan from a specification. The client proposes items in a session that can only read; they are
//! shown with what `plimsoll plan` says of them, and written only if the user agrees.

use super::{Figures, PlanArguments};
use plimsoll_domain::TodoList;
use plimsoll_domain::text::{clip, counted, one_line};
use plimsoll_flows::draft::{DraftError, Request, TIMEOUT, ask, check};
use plimsoll_policy::draft::{Draft, appended, prompt, read};
use plimsoll_store::{Durability, Project, StoreError, disk, environment};
use plimsoll_terminal::console;
use plimsoll_terminal::console::{fail, say, say_error};
use plimsoll_terminal::markdown;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;

/// A longer specification would fill much of the window in which it is read.
const LONGEST_SPEC: usize = 256 * 1024;

/// Why no plan was drafted, or written.
#[derive(Debug, Error)]
enum DraftCommandError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("there is no specification {}: name a file, or - for standard input", one_line(.0))]
    NoSpec(String),
    #[error("cannot read standard input: {0}")]
    Input(std::io::Error),
    #[error("the specification is empty: describe what is to be built")]
    Empty,
    #[error("the specification is not UTF-8 text")]
    NotText,
    #[error("the specification is larger than {} KiB: give the part that this plan is about", LONGEST_SPEC / 1024)]
    TooLong,
    #[error("{} is not UTF-8: save it as UTF-8, then run this again", one_line(.0))]
    PlanNotText(String),
    #[error(
        "nothing was asked, because there is no terminal to ask for confirmation: add --yes to write the plan without asking"
    )]
    NoTerminal,
    #[error(
        "there is no client `{0}`: install Claude Code (`npm install -g @anthropic-ai/claude-code`) or name it with --client PATH"
    )]
    NoClient(String),
    #[error("cannot listen for signals: {0}")]
    Signals(std::io::Error),
    #[error("{0}; nothing was written")]
    Ask(#[from] DraftError),
    #[error("the answer has no item (a line `- [ ] …`); nothing was written; it begins: {0}")]
    NoItems(String),
    #[error("{} ends inside a code fence, where no line is an item: close it, then run this again", one_line(.0))]
    OpenFence(String),
    #[error("{} has changed in the meantime: nothing was written", one_line(.0))]
    Changed(String),
    #[error("nothing was written")]
    Declined,
}

/// Drafts, shows, asks and writes: exit code 0 written, 1 not.
pub(super) fn draft(project: &Project, arguments: &PlanArguments, spec: &str) -> ExitCode {
    match draft_and_write(project, arguments, spec) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(error),
    }
}

fn draft_and_write(
    project: &Project,
    arguments: &PlanArguments,
    spec: &str,
) -> Result<(), DraftCommandError> {
    let (path, file) = super::list_to_change(arguments);
    let target = Target::open(path, file)?;
    let spec = specification(spec)?;
    // Everything that can be refused is refused before anything is paid.
    if !arguments.yes && !std::io::stdin().is_terminal() {
        return Err(DraftCommandError::NoTerminal);
    }
    let name = arguments.client.clone().unwrap_or_else(|| "claude".to_owned());
    let client = environment::find_program(&name).ok_or(DraftCommandError::NoClient(name))?;
    let todo = TodoList::parse(&target.before);
    let client = environment::current_dir().join(client);
    let prompt = prompt(&spec, target.file, todo.items.len());
    let client_arguments = &arguments.client_arguments;
    let request = check(Request { project, client: &client, client_arguments, prompt: &prompt })?;
    let signals = Signals::listen().map_err(DraftCommandError::Signals)?;
    let minutes = TIMEOUT.as_secs() / 60;
    say_error(&format!("asking the client, which can only read; at most {minutes} minutes, Ctrl-C ends it"));
    let answer = ask(&request, &|| signals.came.load(Ordering::Relaxed))?;
    signals.has_answer.store(true, Ordering::Relaxed);
    say_error(&format!("the draft cost ${:.2}", answer.cost_usd));
    let draft = read(&answer.text, &todo);
    if draft.items.is_empty() {
        return Err(DraftCommandError::NoItems(clip(&one_line(&answer.text), 200)));
    }
    let after = appended(&target.before, &draft.items)
        .ok_or_else(|| DraftCommandError::OpenFence(target.file.to_owned()))?;
    show(project, &draft, &after, target.file);
    if !arguments.yes && !agrees(&target, &todo, draft.items.len()) {
        return Err(DraftCommandError::Declined);
    }
    target.write(&after)?;
    say(format!("{}: {} added", one_line(target.file), counted(draft.items.len(), "item")));
    Ok(())
}

fn show(project: &Project, draft: &Draft, after: &str, file: &str) {
    let lines: String = draft.items.iter().map(|item| format!("- [ ] {item}\n")).collect();
    say(lines);
    draft.words().iter().for_each(say_error);
    // The run's figures if there is one: what its items took.
    let state = plimsoll_store::state_file::load(project, None).ok().flatten().unwrap_or_default();
    let todo = TodoList::parse(after);
    markdown::show(&Figures::of(project, &state, &todo).view(file, &todo).text(), false);
}

/// Signals that end the client, and once it has answered end us.
#[derive(Default)]
struct Signals {
    came: Arc<AtomicBool>,
    has_answer: Arc<AtomicBool>,
}

impl Signals {
    fn listen() -> std::io::Result<Signals> {
        let signals = Signals::default();
        // SIGHUP, SIGINT, SIGTERM. Our client has a group of its own, so Ctrl-C reaches only us.
        for signal in [1, 2, 15] {
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&signals.has_answer))?;
            signal_hook::flag::register(signal, Arc::clone(&signals.came))?;
        }
        Ok(signals)
    }
}

fn agrees(target: &Target<'_>, todo: &TodoList, items: usize) -> bool {
    let (items, file) = (counted(items, "item"), one_line(target.file));
    let question = match (target.bytes.is_some(), todo.open().len()) {
        (false, _) => format!("Write {items} to {file}? [y/N] "),
        (true, 0) => format!("Append {items} to {file}? [y/N] "),
        (true, open) => format!("{file} has {}. Append {items} below? [y/N] ", counted(open, "open item")),
    };
    console::ask(question);
    console::agrees()
}

/// The plan to which the items go.
struct Target<'a> {
    path: PathBuf,
    file: &'a str,
    /// None if there is no such file.
    bytes: Option<Vec<u8>>,
    before: String,
}

impl<'a> Target<'a> {
    fn open(path: PathBuf, file: &'a str) -> Result<Target<'a>, DraftCommandError> {
        let bytes = disk::read(&path)?;
        let before = String::from_utf8(bytes.clone().unwrap_or_default())
            .map_err(|_| DraftCommandError::PlanNotText(file.to_owned()))?;
        Ok(Target { path, file, bytes, before })
    }

    /// Only if it is still the file to which the user agreed.
    fn write(&self, after: &str) -> Result<(), DraftCommandError> {
        let changed = || DraftCommandError::Changed(self.file.to_owned());
        if self.bytes.is_none() {
            let is_new = disk::create_new(&self.path, after.as_bytes())?;
            return if is_new { Ok(()) } else { Err(changed()) };
        }
        if disk::read(&self.path)? != self.bytes {
            return Err(changed());
        }
        disk::sweep_drafts_of(&self.path);
        Ok(disk::replace(&self.path, after.as_bytes(), Durability::Durable)?)
    }
}

/// The specification: a text of some length.
fn specification(spec: &str) -> Result<Vec<u8>, DraftCommandError> {
    let most = LONGEST_SPEC as u64 + 1;
    let bytes = if spec == "-" {
        disk::read_stdin(most).map_err(DraftCommandError::Input)?
    } else {
        let path = environment::current_dir().join(Path::new(spec));
        if disk::size(&path).is_some_and(|size| size >= most) {
            return Err(DraftCommandError::TooLong);
        }
        disk::read(&path)?.ok_or_else(|| DraftCommandError::NoSpec(spec.to_owned()))?
    };
    if bytes.len() > LONGEST_SPEC {
        return Err(DraftCommandError::TooLong);
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) if text.contains('\0') => Err(DraftCommandError::NotText),
        Ok(text) if text.trim_start_matches('\u{feff}').trim().is_empty() => Err(DraftCommandError::Empty),
        Ok(_) => Ok(bytes),
        Err(_) => Err(DraftCommandError::NotText),
    }
}
