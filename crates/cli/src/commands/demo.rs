//! `plimsoll demo`: shows a complete run in a throwaway project. The client and the hooks are real; only the model is scripted, on
//! this machine, so that no key and no network are needed.

use clap::Args;
use plimsoll_scripted_model::scripted_agent::{AgentTurn, start_model_with_turn_script, tick_item_command};
use plimsoll_scripted_model::{Request, ScriptedModel, Step};
use plimsoll_store::disk::{self, Durability};
use plimsoll_store::{Project, StoreError, environment};
use plimsoll_system::paths::program_path;
use plimsoll_terminal::console::{fail, print_text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Arguments of `plimsoll demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// The path of Claude Code
    #[arg(long, default_value = "claude", value_name = "PATH")]
    client: String,
    /// Keep the project folder afterwards
    #[arg(long)]
    keep: bool,
}

const PLAN: &str = "# Plan\n\n- [ ] Parse dates\n- [ ] Convert the table\n- [ ] Write the summary\n";
/// Delay before each model response, slow enough for the user to follow.
const TURN_DELAY: Duration = Duration::from_millis(350);

/// Runs the demo. Returns exit code 0 if all of its checks pass.
pub(crate) fn run_demo_command(arguments: &DemoArguments) -> ExitCode {
    match run_demo(arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => fail(error),
    }
}

/// The reason why the demo could not run.
#[derive(Debug, thiserror::Error)]
enum DemoError {
    #[error(
        "`{0}` was not found: install it (`npm install -g @anthropic-ai/claude-code`), name it with --client PATH, or run scripts/demo.sh, which installs it"
    )]
    NoClient(String),
    #[error("cannot make a folder: {0}")]
    FolderNotCreated(std::io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("git is needed: {0}")]
    NoGit(String),
    #[error("cannot find the path of this program")]
    ProgramFolderUnknown,
    #[error("cannot start {program}: {error}")]
    NotStarted { program: PathBuf, error: std::io::Error },
}

fn run_demo(arguments: &DemoArguments) -> Result<bool, DemoError> {
    let client = environment::find_program(&arguments.client)
        .ok_or_else(|| DemoError::NoClient(arguments.client.clone()))?;
    let client = environment::current_dir().join(client);
    let keep = arguments.keep;
    let mut temporary_folder =
        tempfile::Builder::new().prefix("plimsoll-demo-").tempdir().map_err(DemoError::FolderNotCreated)?;
    temporary_folder.disable_cleanup(keep);
    let demo_project = DemoProject {
        home: temporary_folder.path().join("home"),
        project: temporary_folder.path().join("project"),
    };
    demo_project.create_files_and_git_repository()?;
    let model = start_model_with_turn_script(|turn| scripted_agent_step(turn).with_delay(TURN_DELAY));
    print_text(
        "A plan of three items, the real client, Plimsoll's hooks, and a scripted model on 127.0.0.1: nothing is paid, the prices shown are simulated.",
    );
    print_text("In session 2 the window fills: 20 → 55 → 72 → 87%. Watch the checkpoint and the resume.\n");
    let exit_code = demo_project.run_plimsoll_until_exit(&client, &model.url())?;
    let passed = demo_project.print_handoff_and_checks(exit_code, &model);
    if keep {
        print_text(format!("\nThe project is kept in {}", demo_project.project.display()));
    }
    Ok(passed)
}

/// Returns the scripted agent's next step. The agent works item by item, and stops at the checkpoint in iteration 2.
fn scripted_agent_step(turn: &AgentTurn<'_>) -> Step {
    // `sed -i` without a backup suffix works only with GNU sed; with a suffix it works everywhere.
    let convert_lines_command =
        |line_range: &str| format!("sed -i.bak '{line_range}s/$/ ✓/' table.txt && rm table.txt.bak");
    let convert_lines_step = |line_range: &str| Step::bash_call(convert_lines_command(line_range));
    match (turn.iteration, turn.assistant_message_count) {
        (2, 0) => convert_lines_step("1,20").with_input_tokens(200_000),
        (2, 1) => convert_lines_step("21,40").with_input_tokens(550_000),
        (2, 2) => convert_lines_step("41,60").with_input_tokens(720_000),
        (2, 3) => convert_lines_step("61,80").with_input_tokens(870_000),
        (2, _) => Step::from_text("I stop at the checkpoint.\n\nSummary: lines 1-80 of table.txt are converted\nProgress on the item: 80 of 120 lines\nNext step: line 81").with_input_tokens(874_000),
        (3, 0) => Step::bash_call(format!("{} && {}", convert_lines_command("81,120"), tick_item_command("Convert the table"))).with_input_tokens(40_000),
        (_, 0) => match &turn.item_text {
            Some(item) => Step::bash_call(format!("echo '{item}' >> done.txt && {}", tick_item_command(item))).with_input_tokens(30_000),
            None => Step::from_text(turn.promise_line.clone()),
        },
        _ if turn.item_text.as_deref() == Some("Write the summary") => Step::from_text(format!("Everything is done.\n\n{}", turn.promise_line)),
        _ => Step::from_text("The item is done."),
    }
}

struct DemoProject {
    home: PathBuf,
    project: PathBuf,
}

impl DemoProject {
    fn create_files_and_git_repository(&self) -> Result<(), DemoError> {
        let write_file = |name: &str, text: &str| {
            disk::replace(&self.project.join(name), text.as_bytes(), Durability::Lazy)
        };
        let table: String = (1..=120).map(|line| format!("row {line}\n")).collect();
        disk::create_folder(&self.home)
            .and_then(|()| write_file("fix_plan.md", PLAN))
            .and_then(|()| write_file("table.txt", &table))?;
        let git_commands = "git init -q -b main && git config user.name Demo && git config user.email demo@example.invalid && git add -A && git commit -qm 'The plan'";
        let outcome =
            plimsoll_launcher::run_user_shell_command(git_commands, &self.project, Duration::from_secs(20));
        if outcome.succeeded() {
            Ok(())
        } else {
            Err(DemoError::NoGit(String::from_utf8_lossy(&outcome.stderr).trim().to_owned()))
        }
    }

    fn run_plimsoll_until_exit(&self, client: &Path, model_url: &str) -> Result<Option<i32>, DemoError> {
        let program_folder = environment::executable_folder().ok_or(DemoError::ProgramFolderUnknown)?;
        let program = program_path(&program_folder, "plimsoll");
        let objective = "Work through fix_plan.md.";
        let arguments = [
            "run",
            "--objective",
            objective,
            "--name",
            "Demo",
            "--client",
            &client.to_string_lossy(),
            "--",
            "--model",
            "opus",
            "--allowedTools",
            "Bash",
        ]
        .map(str::to_owned);
        let environment = self.isolated_environment(&program_folder, model_url);
        plimsoll_launcher::run_with_exact_environment(&program, &arguments, &self.project, &environment)
            .map_err(|error| DemoError::NotStarted { program, error })
    }

    /// Returns an environment without the user's key and settings, and with no network except the loopback interface.
    fn isolated_environment(&self, program_folder: &Path, model_url: &str) -> Vec<(String, String)> {
        let path =
            format!("{}:{}", program_folder.display(), environment::variable("PATH").unwrap_or_default());
        let term = environment::variable("TERM").unwrap_or_else(|| "dumb".to_owned());
        let home = self.home.to_string_lossy().into_owned();
        [
            ("HOME", home.as_str()),
            ("PATH", &path),
            ("TERM", &term),
            ("LANG", "C.UTF-8"),
            ("ANTHROPIC_BASE_URL", model_url),
            ("ANTHROPIC_API_KEY", "sk-ant-scripted-model-only"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }

    /// Prints the handoff and the result of each check. Returns true if all checks passed.
    fn print_handoff_and_checks(&self, exit_code: Option<i32>, model: &ScriptedModel) -> bool {
        let project = Project::with_local_files(&self.project);
        let state: Value = disk::read(project.state_path())
            .ok()
            .flatten()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let handoff_path =
            state["context_checkpoint"]["handoff_file"].as_str().unwrap_or("(none)").to_owned();
        let handoff_text =
            disk::read_text(&self.project.join(&handoff_path)).ok().flatten().unwrap_or_default();
        print_text(format!("\n── the handoff, {handoff_path}\n\n{}", handoff_text.trim_end()));
        print_text("\n── checks");
        let request_texts: Vec<String> = model.main_requests().iter().map(Request::full_text).collect();
        let resume_prompt_contains = |expected_text: &str| {
            request_texts
                .iter()
                .any(|text| text.contains("You are session 3 of") && text.contains(expected_text))
        };
        let checks = [
            ("the run completed with exit code 0", exit_code == Some(0) && state["status"] == "completed"),
            ("a checkpoint was written at 87%", state["context_checkpoint"]["percent_at_checkpoint"] == 87),
            ("the next session was sent the handoff's path", resume_prompt_contains(&handoff_path)),
            (
                "… the item with its progress",
                resume_prompt_contains("Convert the table") && resume_prompt_contains("80 of 120 lines"),
            ),
            ("… the file with its lines", resume_prompt_contains("| table.txt | 1-80 | modified")),
            ("… and \"Do not start over\"", resume_prompt_contains("Do not start over")),
            ("every line was converted once", self.has_each_row_converted_once()),
            ("three items are ticked", self.read_project_file("fix_plan.md").matches("- [x]").count() == 3),
        ];
        for (description, passed) in checks {
            print_text(format!("{} {description}", if passed { "✓" } else { "✗" }));
        }
        checks.iter().all(|(_, passed)| *passed)
    }

    fn read_project_file(&self, name: &str) -> String {
        disk::read_text(&self.project.join(name)).ok().flatten().unwrap_or_default()
    }

    fn has_each_row_converted_once(&self) -> bool {
        let table = self.read_project_file("table.txt");
        table.lines().count() == 120 && table.lines().all(|line| line.matches('✓').count() == 1)
    }
}
