//! `plimsoll plan --draft`: drafts plan items from a specification. The client proposes items in a session that can only read. The
//! items are shown with their estimate, and written only if the user agrees.

use super::{PlanArguments, PlanEstimate};
use plimsoll_domain::TodoList;
use plimsoll_domain::cost::format_usd;
use plimsoll_domain::text::{count_with_noun, to_safe_single_line, truncate_end};
use plimsoll_flows::draft::{
    DRAFT_TIMEOUT, DraftError, DraftRequest, check_arguments_and_client_for_draft, run_client_and_parse_draft,
};
use plimsoll_policy::draft::{
    PlanDraft, append_items_if_all_parse, parse_draft_items_not_in_plan, render_plan_draft_prompt,
};
use plimsoll_store::{Durability, Project, StoreError, disk, environment};
use plimsoll_terminal::console;
use plimsoll_terminal::console::{fail, print_notice, print_text};
use plimsoll_terminal::{markdown, signals};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;

/// Maximum size of a specification. A longer one would fill much of the window in which it is read.
const MAX_SPEC_BYTES: usize = 256 * 1024;

/// The reason why no items were drafted or written.
#[derive(Debug, Error)]
enum DraftCommandError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the specification {} is missing: name a file, or - for standard input", to_safe_single_line(.0))]
    NoSpec(String),
    #[error("cannot read standard input: {0}")]
    StandardInput(std::io::Error),
    #[error("the specification is empty: describe what is to be built")]
    EmptySpec,
    #[error("the specification is not UTF-8 text")]
    SpecNotText,
    #[error("the specification is larger than {} KiB: give the part that this plan is about", MAX_SPEC_BYTES / 1024)]
    SpecTooLong,
    #[error("{} is not UTF-8: save it as UTF-8, then run this again", to_safe_single_line(.0))]
    PlanNotText(String),
    #[error("cannot ask for confirmation without a terminal: add --yes to write the plan without asking")]
    NoTerminal,
    #[error(
        "`{0}` was not found: install Claude Code (`npm install -g @anthropic-ai/claude-code`) or name it with --client PATH"
    )]
    NoClient(String),
    #[error("cannot listen for signals: {0}")]
    Signals(std::io::Error),
    #[error("{0}; nothing was written")]
    Draft(#[from] DraftError),
    #[error("the answer has no item (a line `- [ ] …`); nothing was written; it begins: {0}")]
    NoItems(String),
    #[error("{} ends inside a code fence, where no line is an item: close it, then run this again", to_safe_single_line(.0))]
    OpenFence(String),
    #[error("{} has changed in the meantime: nothing was written", to_safe_single_line(.0))]
    PlanChanged(String),
    #[error("nothing was written")]
    Declined,
}

/// Drafts items, shows them, asks the user and writes them. Returns exit code 1 if nothing was written.
pub(super) fn draft_plan(project: &Project, arguments: &PlanArguments, spec_argument: &str) -> ExitCode {
    match draft_and_append_items_if_confirmed(project, arguments, spec_argument) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(error),
    }
}

fn draft_and_append_items_if_confirmed(
    project: &Project,
    arguments: &PlanArguments,
    spec_argument: &str,
) -> Result<(), DraftCommandError> {
    let (path, plan_file) = super::path_and_name_of_plan_to_change(arguments);
    let target = TargetPlan::open(path, plan_file)?;
    let spec = read_and_validate_specification(spec_argument)?;
    // Everything that can be refused is checked before the client is started, because a session costs money.
    if !arguments.yes && !std::io::stdin().is_terminal() {
        return Err(DraftCommandError::NoTerminal);
    }
    let client_name = arguments.client.clone().unwrap_or_else(|| "claude".to_owned());
    let client = environment::find_program(&client_name).ok_or(DraftCommandError::NoClient(client_name))?;
    let todo_list = TodoList::parse(&target.original_text);
    let client = environment::current_dir().join(client);
    let prompt = render_plan_draft_prompt(&spec, target.name, todo_list.items.len());
    let client_arguments = &arguments.client_arguments;
    let request = check_arguments_and_client_for_draft(DraftRequest {
        project,
        client_path: &client,
        client_arguments,
        prompt: &prompt,
    })?;
    let signal_flags = SignalFlags::register_handlers().map_err(DraftCommandError::Signals)?;
    let minutes = DRAFT_TIMEOUT.as_secs() / 60;
    print_notice(&format!(
        "asking Claude Code, which can only read; at most {minutes} minutes, Ctrl-C ends it"
    ));
    let answer =
        run_client_and_parse_draft(&request, &|| signal_flags.signal_arrived.load(Ordering::Relaxed))?;
    signal_flags.client_answered.store(true, Ordering::Relaxed);
    if answer.cost_usd > 0.0 {
        print_notice(&format!("the draft cost {}", format_usd(answer.cost_usd)));
    }
    let draft = parse_draft_items_not_in_plan(&answer.text, &todo_list);
    if draft.items.is_empty() {
        return Err(DraftCommandError::NoItems(truncate_end(&to_safe_single_line(&answer.text), 200)));
    }
    let new_text = append_items_if_all_parse(&target.original_text, &draft.items)
        .ok_or_else(|| DraftCommandError::OpenFence(target.name.to_owned()))?;
    print_drafted_items_and_estimate(project, &draft, &new_text, target.name);
    if !arguments.yes && !confirm_item_append(&target, &todo_list, draft.items.len()) {
        return Err(DraftCommandError::Declined);
    }
    target.write_if_unchanged(&new_text)?;
    print_text(format!(
        "{}: {} added",
        to_safe_single_line(target.name),
        count_with_noun(draft.items.len(), "item")
    ));
    Ok(())
}

fn print_drafted_items_and_estimate(project: &Project, draft: &PlanDraft, new_text: &str, plan_file: &str) {
    let lines: String = draft.items.iter().map(|item| format!("- [ ] {item}\n")).collect();
    print_text(lines);
    draft.describe_omissions_and_changes().iter().for_each(print_notice);
    // If there is a run, the estimate uses the measured cost of its items.
    let state = plimsoll_store::state_file::load_state(project, None).ok().flatten().unwrap_or_default();
    let todo_list = TodoList::parse(new_text);
    markdown::print_markdown(
        &PlanEstimate::for_plan(project, &state, &todo_list).to_table(plan_file, &todo_list).render(),
        false,
    );
}

/// Flags of the signal handlers. A signal ends the client, or this process once the client has answered.
#[derive(Default)]
struct SignalFlags {
    signal_arrived: Arc<AtomicBool>,
    client_answered: Arc<AtomicBool>,
}

impl SignalFlags {
    fn register_handlers() -> std::io::Result<SignalFlags> {
        let signal_flags = SignalFlags::default();
        // The client runs in its own process group, so Ctrl-C reaches only this process.
        for signal in signals::end_signals_not_ignored_at_start() {
            signals::end_process_on_signal_if_set(signal, Arc::clone(&signal_flags.client_answered))?;
            signals::set_flag_on_signal(signal, Arc::clone(&signal_flags.signal_arrived))?;
        }
        Ok(signal_flags)
    }
}

fn confirm_item_append(target: &TargetPlan<'_>, todo_list: &TodoList, item_count: usize) -> bool {
    let (items, plan_file) = (count_with_noun(item_count, "item"), to_safe_single_line(target.name));
    let question = match (target.original_bytes.is_some(), todo_list.open_items().len()) {
        (false, _) => format!("Write {items} to {plan_file}? [y/N] "),
        (true, 0) => format!("Append {items} to {plan_file}? [y/N] "),
        (true, open_count) => {
            format!(
                "{plan_file} has {}. Append {items} below? [y/N] ",
                count_with_noun(open_count, "open item")
            )
        }
    };
    console::print_question(question);
    console::read_confirmation()
}

/// The plan file to which the items are appended.
struct TargetPlan<'a> {
    path: PathBuf,
    name: &'a str,
    /// The content of the file, or `None` if it does not exist.
    original_bytes: Option<Vec<u8>>,
    original_text: String,
}

impl<'a> TargetPlan<'a> {
    fn open(path: PathBuf, name: &'a str) -> Result<TargetPlan<'a>, DraftCommandError> {
        let original_bytes = disk::read(&path)?;
        let original_text = String::from_utf8(original_bytes.clone().unwrap_or_default())
            .map_err(|_| DraftCommandError::PlanNotText(name.to_owned()))?;
        Ok(TargetPlan { path, name, original_bytes, original_text })
    }

    /// Writes the new text, unless the file has changed since the user was asked.
    fn write_if_unchanged(&self, new_text: &str) -> Result<(), DraftCommandError> {
        let plan_changed = || DraftCommandError::PlanChanged(self.name.to_owned());
        if self.original_bytes.is_none() {
            let is_new = disk::create_new(&self.path, new_text.as_bytes())?;
            return if is_new { Ok(()) } else { Err(plan_changed()) };
        }
        if disk::read(&self.path)? != self.original_bytes {
            return Err(plan_changed());
        }
        disk::remove_leftover_temporary_files_of(&self.path);
        Ok(disk::replace(&self.path, new_text.as_bytes(), Durability::Durable)?)
    }
}

/// Reads the specification from a file, or from standard input for `-`. It must be non-empty UTF-8 text within the size limit.
fn read_and_validate_specification(argument: &str) -> Result<Vec<u8>, DraftCommandError> {
    let read_limit = MAX_SPEC_BYTES as u64 + 1;
    let bytes = if argument == "-" {
        disk::read_stdin_up_to(read_limit).map_err(DraftCommandError::StandardInput)?
    } else {
        let path = environment::current_dir().join(Path::new(argument));
        if disk::file_size(&path).is_some_and(|size| size >= read_limit) {
            return Err(DraftCommandError::SpecTooLong);
        }
        disk::read(&path)?.ok_or_else(|| DraftCommandError::NoSpec(argument.to_owned()))?
    };
    if bytes.len() > MAX_SPEC_BYTES {
        return Err(DraftCommandError::SpecTooLong);
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) if text.contains('\0') => Err(DraftCommandError::SpecNotText),
        Ok(text) if text.trim_start_matches('\u{feff}').trim().is_empty() => {
            Err(DraftCommandError::EmptySpec)
        }
        Ok(_) => Ok(bytes),
        Err(_) => Err(DraftCommandError::SpecNotText),
    }
}
