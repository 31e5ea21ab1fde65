//! Simulated nights in each way in which people run Claude Code unattended, all with the real client.

pub mod page;
pub mod simulator;
pub mod ways;

use plimsoll_domain::digest::sha256_hex;
use plimsoll_testkit::Dice;
use plimsoll_testkit::world::{Finished, World};
use serde::{Deserialize, Serialize};
use simulator::{Character, Night, Plan, Score, TEST, Task, Waits};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use ways::{Loop, Way};

/// A window of 200,000 tokens, which the client compacts at 83.5 %.
const MODEL: &str = "claude-sonnet-4-6";
/// The items of a night of the page.
pub const ITEMS: u32 = 4;
/// Every loop may start so many sessions that work; one that ends for this reason has found no end.
const SESSIONS: &str = "20";
/// The exit code of a loop that ends for this reason, here and with `plimsoll run`.
const NO_END: i32 = 3;
/// Longer than any night that still moves, on a busy machine.
const DAWN: Duration = Duration::from_secs(1_800);
/// A usage limit as `plimsoll run` waits for it: the seconds of the clock are whole ones.
const LIMIT: Duration = Duration::from_secs(4);

/// How a night went: a row of the published table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The night.
    pub seed: u64,
    /// The key of the way.
    pub way: String,
    /// The agent.
    pub character: Character,
    /// The programs that were played with, and the measure itself: rows of several builds are not put together.
    pub build: String,
    /// What was done.
    pub score: Score,
    /// The exit code of the loop.
    pub code: Option<i32>,
    /// How often somebody had to start it again.
    pub restarts: u32,
    /// True if the loop's output names the changed test.
    #[serde(default)]
    pub names_changed_test: bool,
    /// Seconds that it really took.
    pub seconds: u64,
}

impl Row {
    /// It ended by itself, everything that can be done is done, and no tick is false.
    pub fn ended_well(&self) -> bool {
        self.code.is_some_and(|code| code != NO_END) && self.score.is_right()
    }

    /// How often the night stood still until somebody came: each new start, and an end before everything was done.
    pub fn waits_for_people(&self) -> u32 {
        let is_early = self.code != Some(NO_END) && self.score.passing < self.score.items;
        self.restarts + u32::from(is_early)
    }
}

/// Plays the night of a seed, with so many items.
pub fn play(way: &Way, character: Character, seed: u64, items: u32) -> Row {
    let dice = Dice::new(seed);
    let mut world = world();
    let task = Task::new(dice, items);
    task.lay_out(&world);
    let waits = match way.run {
        Loop::Shell { .. } => Waits::Written,
        Loop::Plimsoll(_) => Waits::Real(LIMIT),
    };
    let answers = task.items.iter().map(|item| item.lines / 26 + 3).sum();
    let (model, night) = Night::start(Plan { task, character, dice, waits, answers }, &world);
    world.use_model(&model);
    let finished = run(&world, &way.run);
    keep(way, character, seed, &model, &finished);
    let printed = format!("{}\n{}", finished.stdout, finished.stderr);
    let names_test = |line: &str| line.contains("check.sh") && line.contains("changed");
    let restarts = fs::read_to_string(world.path("../restarts")).unwrap_or_default().lines().count() as u32;
    Row {
        seed,
        way: way.key.to_owned(),
        character,
        build: build(),
        score: night.score(&world),
        code: finished.code,
        restarts,
        names_changed_test: printed.lines().any(names_test),
        seconds: finished.elapsed.as_secs(),
    }
}

fn world() -> World {
    let mut world = World::new();
    world.set_env("ANTHROPIC_API_KEY", "");
    world.set_env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-scripted-model-only-000000");
    // Its default is ten, with waits of up to half a minute: on the night's clock one stands for nine.
    world.set_env("CLAUDE_CODE_MAX_RETRIES", "1");
    // A night lasts minutes here: three checkpoints in it are no sign of trouble.
    world.write_user_settings(&serde_json::json!({"thrash": {"checkpoints": 0}}));
    world
}

fn run(world: &World, run: &Loop) -> Finished {
    let client = format!("claude -p --model {MODEL} --allowedTools Bash Read Edit Write");
    let fill = |text: &str| text.replace("CLIENT", &client).replace("SESSIONS", SESSIONS);
    match run {
        Loop::Shell { prompt, script, stop_hook } => {
            world.write_program(world.home().join("tools/sleep"), include_str!("nights/peers/sleep.sh"));
            world.write_program(world.home().join("tools/claude"), include_str!("nights/peers/limited.sh"));
            world.write(".git/info/exclude", "PROMPT.md\n*.log\n.claude/\n.ralph/\n");
            world.write("PROMPT.md", prompt);
            if let Some(hook) = stop_hook {
                let path = world.write_program(".claude/again.sh", &fill(hook));
                let entry = serde_json::json!({"type": "command", "command": path});
                let settings = serde_json::json!({"hooks": {"Stop": [{"hooks": [entry]}]}});
                world.write(".claude/settings.json", &settings.to_string());
            }
            let script = format!("PATH=$HOME/tools:$PATH\n{}", fill(script));
            world.command("bash", &["-c", &script]).timeout(DAWN).run()
        }
        Loop::Plimsoll(arguments) => {
            let objective = format!("Do what fix_plan.md says. Its tests are `{TEST} FILE`.");
            let ours = ["run", "--objective", &objective, "--max-iterations", SESSIONS];
            let client = ["--", "--model", MODEL, "--allowedTools", "Bash", "Read", "Edit", "Write"];
            world.plimsoll(&[&ours[..], arguments, &client[..]].concat()).timeout(DAWN).run()
        }
    }
}

/// With `PLIMSOLL_KEEP_REQUESTS=FOLDER` the conversation is kept there, to look at.
fn keep(
    way: &Way,
    character: Character,
    seed: u64,
    model: &plimsoll_testkit::scripted_model::ScriptedModel,
    finished: &Finished,
) {
    let Some(folder) = std::env::var_os("PLIMSOLL_KEEP_REQUESTS").map(PathBuf::from) else { return };
    let requests = model.main_requests();
    let texts = requests.iter().map(|request| format!("=== {}\n{}\n", request.number, request.last_text()));
    let text: String = texts.collect::<String>() + &format!("=== the loop\n{finished:?}\n");
    fs::create_dir_all(&folder).expect("a folder");
    let name = format!("{}-{}-{seed}.txt", way.key, character.name());
    fs::write(folder.join(name), text).expect("a file");
}

/// The programs that are played with, and the sources of the measure, in twelve digits.
pub fn build() -> String {
    static BUILD: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let root = plimsoll_testkit::workspace_root();
    let measure =
        ["research/src/nights/simulator", "research/src/nights/peers"].map(|folder| root.join(folder));
    let files = || {
        // The hook programs are one file under several names.
        let programs = ["plimsoll", "plimsoll-post-tool"].map(|name| plimsoll_testkit::bin_dir().join(name));
        let mut files: Vec<PathBuf> = measure.iter().flat_map(|folder| files_of(folder)).collect();
        let others = ["crates/testkit/src/dice.rs", "research/src/nights.rs", "research/src/nights/ways.rs"];
        files.extend(others.map(|file| root.join(file)));
        files.sort();
        let bytes: Vec<Vec<u8>> =
            programs.iter().chain(&files).map(|file| fs::read(file).expect("a file of the build")).collect();
        let parts: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        sha256_hex(&parts)[..12].to_owned()
    };
    BUILD.get_or_init(files).clone()
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of the workspace");
    entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file()).collect()
}
