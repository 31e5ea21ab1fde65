//! `plimsoll demo`: a whole run before your eyes. The client is real, the hooks are real, the project is a
//! throw-away one; only the model is scripted, on this machine, so that no key and no network are needed.

use clap::Args;
use plimsoll_scripted_model::story::{Turn, story, tick};
use plimsoll_scripted_model::{Request, ScriptedModel, Step};
use plimsoll_store::disk::{self, Durability};
use plimsoll_store::{Project, StoreError, environment};
use plimsoll_terminal::console::{fail, say};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Which client.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// The client
    #[arg(long, default_value = "claude", value_name = "PATH")]
    client: String,
    /// Keep the project folder afterwards
    #[arg(long)]
    keep: bool,
}

const PLAN: &str = "# Plan\n\n- [ ] Parse dates\n- [ ] Convert the table\n- [ ] Write the summary\n";
/// A pace that the user can follow.
const PACE: Duration = Duration::from_millis(350);

/// Plays it; exit code 0 if the run did what this page promises.
pub(crate) fn demo(arguments: &DemoArguments) -> ExitCode {
    match play(arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => fail(error),
    }
}

/// Why the demo could not be played.
#[derive(Debug, thiserror::Error)]
enum DemoError {
    #[error(
        "there is no client `{0}`: install it (`npm install -g @anthropic-ai/claude-code`), name it with --client PATH, or run scripts/demo.sh, which installs it"
    )]
    NoClient(String),
    #[error("cannot make a folder: {0}")]
    NoFolder(std::io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("git is needed: {0}")]
    NoGit(String),
    #[error("this program cannot find its own path")]
    NoOwnFolder,
    #[error("cannot start {program}: {why}")]
    NotStarted { program: PathBuf, why: std::io::Error },
}

fn play(arguments: &DemoArguments) -> Result<bool, DemoError> {
    let client = environment::find_program(&arguments.client)
        .ok_or_else(|| DemoError::NoClient(arguments.client.clone()))?;
    let client = environment::current_dir().join(client);
    let keep = arguments.keep;
    let mut folder =
        tempfile::Builder::new().prefix("plimsoll-demo-").tempdir().map_err(DemoError::NoFolder)?;
    folder.disable_cleanup(keep);
    let stage = Stage { home: folder.path().join("home"), project: folder.path().join("project") };
    stage.set()?;
    let model = story(|turn| agent(turn).delay(PACE));
    say(
        "A plan of three items, the real client, Plimsoll's hooks, and a scripted model on 127.0.0.1: nothing is paid, the prices shown are simulated.",
    );
    say("In iteration 2 the window fills: 20 → 55 → 72 → 87 %. Watch the checkpoint and the resume.\n");
    let code = stage.run(&client, &model.url())?;
    let passed = stage.report(code, &model);
    if keep {
        say(format!("\nThe project is kept in {}", stage.project.display()));
    }
    Ok(passed)
}

/// The agent of the play: it works item by item, and stops at the checkpoint when it is told.
fn agent(turn: &Turn<'_>) -> Step {
    // By a copy: `sed -i` alone is GNU's, and with a suffix it is everybody's.
    let mark = |lines: &str| format!("sed -i.bak '{lines}s/$/ ✓/' table.txt && rm table.txt.bak");
    let edit = |lines: &str| Step::bash(mark(lines));
    match (turn.iteration, turn.step) {
        (2, 0) => edit("1,20").usage(200_000),
        (2, 1) => edit("21,40").usage(550_000),
        (2, 2) => edit("41,60").usage(720_000),
        (2, 3) => edit("61,80").usage(870_000),
        (2, _) => Step::text("I stop at the checkpoint.\n\nSummary: lines 1-80 of table.txt are converted\nProgress on the item: 80 of 120 lines\nNext step: line 81").usage(874_000),
        (3, 0) => Step::bash(format!("{} && {}", mark("81,120"), tick("Convert the table"))).usage(40_000),
        (_, 0) => match &turn.item {
            Some(item) => Step::bash(format!("echo '{item}' >> done.txt && {}", tick(item))).usage(30_000),
            None => Step::text(turn.promise.clone()),
        },
        _ if turn.item.as_deref() == Some("Write the summary") => Step::text(format!("Everything is done.\n\n{}", turn.promise)),
        _ => Step::text("The item is done."),
    }
}

struct Stage {
    home: PathBuf,
    project: PathBuf,
}

impl Stage {
    fn set(&self) -> Result<(), DemoError> {
        let write = |name: &str, text: &str| {
            disk::replace(&self.project.join(name), text.as_bytes(), Durability::Lazy)
        };
        let table: String = (1..=120).map(|line| format!("row {line}\n")).collect();
        disk::create_folder(&self.home)
            .and_then(|()| write("fix_plan.md", PLAN))
            .and_then(|()| write("table.txt", &table))?;
        let begin = "git init -q -b main && git config user.name Demo && git config user.email demo@example.invalid && git add -A && git commit -qm 'The plan'";
        let outcome = plimsoll_launcher::shell(begin, &self.project, Duration::from_secs(20));
        if outcome.succeeded() {
            Ok(())
        } else {
            Err(DemoError::NoGit(String::from_utf8_lossy(&outcome.stderr).trim().to_owned()))
        }
    }

    fn run(&self, client: &Path, model: &str) -> Result<Option<i32>, DemoError> {
        let own = environment::own_directory().ok_or(DemoError::NoOwnFolder)?;
        let program = own.join("plimsoll");
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
        let environment = self.environment(&own, model);
        plimsoll_launcher::stand_in(&program, &arguments, &self.project, &environment)
            .map_err(|why| DemoError::NotStarted { program, why })
    }

    /// Nothing of the user's own: no key, no settings, no network but this machine's loopback.
    fn environment(&self, own: &Path, model: &str) -> Vec<(String, String)> {
        let path = format!("{}:{}", own.display(), environment::variable("PATH").unwrap_or_default());
        let term = environment::variable("TERM").unwrap_or_else(|| "dumb".to_owned());
        let home = self.home.to_string_lossy().into_owned();
        [
            ("HOME", home.as_str()),
            ("PATH", &path),
            ("TERM", &term),
            ("LANG", "C.UTF-8"),
            ("ANTHROPIC_BASE_URL", model),
            ("ANTHROPIC_API_KEY", "sk-ant-scripted-model-only"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }

    /// What came of it, and whether it is what the page promises.
    fn report(&self, code: Option<i32>, model: &ScriptedModel) -> bool {
        let project = Project::at(&self.project);
        let state: Value = disk::read(project.state())
            .ok()
            .flatten()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let handoff = state["context_checkpoint"]["handoff_file"].as_str().unwrap_or("(none)").to_owned();
        let text = disk::read_text(&self.project.join(&handoff)).ok().flatten().unwrap_or_default();
        say(format!("\n── the handoff, {handoff}\n\n{}", text.trim_end()));
        say("\n── checks");
        let requests: Vec<String> = model.main_requests().iter().map(Request::text).collect();
        let resumed = |words: &str| {
            requests.iter().any(|text| text.contains("You are session 3 of") && text.contains(words))
        };
        let checks = [
            ("the run completed with exit code 0", code == Some(0) && state["status"] == "completed"),
            ("a checkpoint was written at 87 %", state["context_checkpoint"]["percent_at_checkpoint"] == 87),
            ("the next session was sent the handoff's path", resumed(&handoff)),
            ("… the item with its progress", resumed("Convert the table") && resumed("80 of 120 lines")),
            ("… the file with its lines", resumed("| table.txt | 1-80 | modified")),
            ("… and \"Do not start over\"", resumed("Do not start over")),
            ("every line was converted once", self.converted_once()),
            ("three items are ticked", self.read("fix_plan.md").matches("- [x]").count() == 3),
        ];
        for (words, holds) in checks {
            say(format!("{} {words}", if holds { "✓" } else { "✗" }));
        }
        checks.iter().all(|(_, holds)| *holds)
    }

    fn read(&self, name: &str) -> String {
        disk::read_text(&self.project.join(name)).ok().flatten().unwrap_or_default()
    }

    fn converted_once(&self) -> bool {
        let table = self.read("table.txt");
        table.lines().count() == 120 && table.lines().all(|line| line.matches('✓').count() == 1)
    }
}
