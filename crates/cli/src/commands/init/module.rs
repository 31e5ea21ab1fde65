//! The module for Claude Code: whether `init` installs it, the questions about it on a terminal, and the lines of the
//! reports.

use super::file_lines::{display_path, restored_file_and_backup_lines};
use super::{InitArguments, InstallOptions};
use plimsoll_domain::text::count_with_noun;
use plimsoll_flows::install::{
    self, CompactionChoice, InstallScope, InstalledClient, InstalledFileOutcome, ModuleChange,
    ModuleInstallation, ModuleRemoval, ModuleRequest, SettingOutcome,
};
use plimsoll_policy::client_modules::{first_module_version, supports_modules};
use plimsoll_terminal::console;
use std::path::Path;

const MODULE_QUESTION: &str = "
The module runs inside Claude Code. When the context window is full, it can put Plimsoll's handoff in the place of
Claude Code's summary: in milliseconds, and without a request to the model. From the first warning on it shows the usage
above the prompt, with a key that continues in a fresh conversation. Without it the hooks do everything else.";

const COMPACTION_QUESTION: &str = "
When the context window is full, Claude Code has the model summarize the conversation, which takes about half a minute.
Plimsoll's handoff has your requests in your own words, what was done, and the next step, but not every sentence.
  1  keep Claude Code's summary
  2  ask me each time
  3  take the handoff at once";

/// What decides whether the module is installed.
#[derive(Debug, Clone, Copy)]
struct ModuleFacts {
    /// `--module`.
    is_requested: bool,
    /// `--no-module`.
    is_refused: bool,
    is_user_scope: bool,
    /// True if the user can answer questions.
    is_interactive: bool,
    /// True if an earlier `init` installed it.
    is_installed: bool,
    /// True if the client loads modules.
    is_supported: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ModuleDecision {
    Request(ModuleRequest),
    PromptUser,
}

fn decide_module_request(facts: ModuleFacts) -> ModuleDecision {
    match facts {
        ModuleFacts { is_refused: true, .. } => ModuleDecision::Request(ModuleRequest::Remove),
        ModuleFacts { is_requested: true, .. } => ModuleDecision::Request(ModuleRequest::Install(None)),
        ModuleFacts {
            is_user_scope: true,
            is_interactive: true,
            is_installed: false,
            is_supported: true,
            ..
        } => ModuleDecision::PromptUser,
        _ => ModuleDecision::Request(ModuleRequest::RenewIfInstalled),
    }
}

/// Returns the options of the installation. Asks about the module if the user can answer and no option decides. Returns `None` if
/// the user ends the input at a question.
pub(super) fn choose_install_options(
    arguments: &InitArguments,
    scope: InstallScope,
    client: &InstalledClient,
) -> Option<InstallOptions> {
    let facts = ModuleFacts {
        is_requested: arguments.module,
        is_refused: arguments.no_module,
        is_user_scope: scope == InstallScope::User,
        is_interactive: super::scope::can_prompt_user(),
        is_installed: install::is_module_installed(),
        is_supported: matches!(client, InstalledClient::Version(version) if supports_modules(version)),
    };
    let module = match decide_module_request(facts) {
        ModuleDecision::Request(request) => request,
        ModuleDecision::PromptUser => prompt_for_module()?,
    };
    Some(InstallOptions { install_memory: arguments.memory, wrap_status_line: arguments.wrap, module })
}

/// Returns `None` at the end of the input.
fn prompt_for_module() -> Option<ModuleRequest> {
    console::print_text(MODULE_QUESTION);
    loop {
        console::print_question("Install the module? [Y/n]: ");
        match console::read_answer_line()?.to_lowercase().as_str() {
            "" | "y" | "yes" => break,
            "n" | "no" => return Some(ModuleRequest::RenewIfInstalled),
            _ => {}
        }
    }
    if install::is_compaction_set_or_unreadable() {
        return Some(ModuleRequest::Install(None));
    }
    Some(ModuleRequest::Install(Some(prompt_for_compaction()?)))
}

/// Asks until the answer is valid. An empty line chooses the client's summary. Returns `None` at the end of the input.
fn prompt_for_compaction() -> Option<CompactionChoice> {
    console::print_text(COMPACTION_QUESTION);
    loop {
        console::print_question("Choose 1, 2 or 3 [1]: ");
        match console::read_answer_line()?.as_str() {
            "" | "1" => return Some(CompactionChoice::Client),
            "2" => return Some(CompactionChoice::Ask),
            "3" => return Some(CompactionChoice::Handoff),
            _ => {}
        }
    }
}

/// Returns the lines of an installation's report about the module.
pub(super) fn lines_about_module_change(
    change: &ModuleChange,
    client: &InstalledClient,
    project: &Path,
) -> Vec<String> {
    match change {
        ModuleChange::Installed(installation) => {
            let mut lines = installation_lines(installation, project);
            lines.extend(unsupported_client_line(client));
            lines
        }
        ModuleChange::KeptFiles(paths) => paths
            .iter()
            .map(|path| {
                format!(
                    "Kept: {} is your own, or you have edited it. The module is not installed or renewed until you move it away.",
                    display_path(path, project)
                )
            })
            .collect(),
        ModuleChange::Removed(removal) => removal_lines(removal, project),
    }
}

fn installation_lines(installation: &ModuleInstallation, project: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    if installation.is_changed {
        lines.push(format!("{}: the module for Claude Code", display_path(&installation.folder, project)));
    }
    lines.extend(match &installation.setting {
        SettingOutcome::NotRequested => None,
        SettingOutcome::Missing(path) => installation.is_changed.then(|| {
            format!(
                "Compactions still use Claude Code's summary; `\"compaction\": \"handoff\"` in {} changes that.",
                display_path(path, project)
            )
        }),
        SettingOutcome::Written(path, choice) => {
            Some(format!("{}: \"compaction\": \"{}\"", display_path(path, project), choice.as_str()))
        }
        SettingOutcome::AlreadySet(path) => {
            Some(format!("Kept: your \"compaction\" in {}", display_path(path, project)))
        }
        SettingOutcome::Invalid(path) => Some(format!(
            "Warning: {} is not valid JSON, so \"compaction\" is not written.",
            display_path(path, project)
        )),
    });
    lines
}

fn unsupported_client_line(client: &InstalledClient) -> Option<String> {
    match client {
        InstalledClient::Version(version) if !supports_modules(version) => Some(format!(
            "Warning: Claude Code {} does not load modules; {} and newer versions do.",
            version.split_whitespace().next().unwrap_or("?"),
            first_module_version()
        )),
        InstalledClient::Version(_) | InstalledClient::UnknownVersion(_) | InstalledClient::Missing => None,
    }
}

/// Returns the lines about a module that is removed.
pub(super) fn removal_lines(removal: &ModuleRemoval, project: &Path) -> Vec<String> {
    let with_outcome = |outcome| removal.files.iter().filter(move |(_, found)| *found == outcome);
    let mut lines: Vec<String> = with_outcome(InstalledFileOutcome::Removed)
        .map(|(path, _)| format!("{}: removed", display_path(path, project)))
        .collect();
    if removal.client_file_count > 0 {
        let count = count_with_noun(removal.client_file_count, "file");
        lines.push(format!("Removed: {count} that Claude Code wrote beside the module"));
    }
    lines.extend(
        with_outcome(InstalledFileOutcome::Kept)
            .map(|(path, _)| format!("Kept: {}, because it was changed", display_path(path, project))),
    );
    if let Some(file) = &removal.restored_settings {
        lines.push(format!("{}: removed \"compaction\"", display_path(&file.path, project)));
        lines.extend(restored_file_and_backup_lines(file, project));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_is_offered_once_and_only_where_it_can_run() {
        let prompts = ModuleFacts {
            is_requested: false,
            is_refused: false,
            is_user_scope: true,
            is_interactive: true,
            is_installed: false,
            is_supported: true,
        };
        let renew = ModuleDecision::Request(ModuleRequest::RenewIfInstalled);
        let install = ModuleDecision::Request(ModuleRequest::Install(None));
        let remove = ModuleDecision::Request(ModuleRequest::Remove);
        for (name, facts, expected) in [
            ("a terminal and a new client", prompts, ModuleDecision::PromptUser),
            ("an older client", ModuleFacts { is_supported: false, ..prompts }, renew),
            ("no terminal", ModuleFacts { is_interactive: false, ..prompts }, renew),
            ("already installed", ModuleFacts { is_installed: true, ..prompts }, renew),
            ("a project's settings", ModuleFacts { is_user_scope: false, ..prompts }, renew),
            ("--module", ModuleFacts { is_requested: true, ..prompts }, install),
            (
                "--module without a terminal and with an older client",
                ModuleFacts { is_requested: true, is_interactive: false, is_supported: false, ..prompts },
                install,
            ),
            ("--no-module", ModuleFacts { is_refused: true, ..prompts }, remove),
            (
                "--no-module if it is installed",
                ModuleFacts { is_refused: true, is_installed: true, ..prompts },
                remove,
            ),
        ] {
            assert_eq!(decide_module_request(facts), expected, "{name}");
        }
    }
}
