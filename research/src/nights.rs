//! Simulations of each of the loops that people use to run Claude Code unattended, all with the real client.

pub mod loop_setups;
pub mod page;
pub mod simulator;

use loop_setups::{LoopKind, LoopSetup};
use plimsoll_domain::digest::sha256_hex;
use plimsoll_testkit::SeededRng;
use plimsoll_testkit::world::{FinishedProgram, World};
use serde::{Deserialize, Serialize};
use simulator::{
    AgentPersona, SimulationHandle, SimulationPlan, SimulationScore, TEST_COMMAND, Task, WaitMode,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A model with a context window of 200,000 tokens, which the client compacts at 83.5%.
const MODEL: &str = "claude-sonnet-4-6";
/// The number of items of a simulation in the published results.
pub const ITEMS_PER_SIMULATION: u32 = 4;
/// The maximum number of sessions of a loop that do work. A loop that reaches it would never end by itself.
const MAX_SESSIONS: &str = "20";
/// The exit code of a loop that has reached the maximum number of sessions, here and with `plimsoll run`.
const MAX_SESSIONS_EXIT_CODE: i32 = 3;
/// Longer than any simulation that makes progress, even on a busy machine.
const SIMULATION_TIMEOUT: Duration = Duration::from_secs(1_800);
/// How long `plimsoll run` really waits for a usage limit. Several seconds, because the client is told the
/// reset time in whole seconds.
const USAGE_LIMIT_DURATION: Duration = Duration::from_secs(4);

/// The outcome of a simulation: a row of the published table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SimulationRow {
    pub seed: u64,
    /// The key of the loop setup.
    #[serde(rename = "way")]
    pub setup_key: String,
    /// The persona of the agent.
    #[serde(rename = "character")]
    pub persona: AgentPersona,
    /// The hash of the tested programs and of the simulation's sources. Rows of several builds are not combined.
    pub build: String,
    /// The score of the simulation.
    pub score: SimulationScore,
    /// The exit code of the loop.
    #[serde(rename = "code")]
    pub exit_code: Option<i32>,
    /// How often a person had to restart the loop.
    pub restarts: u32,
    /// True if the loop's output names the changed test.
    #[serde(default)]
    pub names_changed_test: bool,
    /// The real duration in seconds.
    pub seconds: u64,
}

impl SimulationRow {
    /// Returns true if the loop ended by itself, all items that can be done are done, and no tick is false.
    pub fn ended_with_all_items_correct(&self) -> bool {
        self.exit_code.is_some_and(|code| code != MAX_SESSIONS_EXIT_CODE) && self.score.is_fully_correct()
    }

    /// Returns how often the loop waited for a person: at each restart, and at an end before everything was done.
    pub fn count_waits_for_person(&self) -> u32 {
        let has_ended_early =
            self.exit_code != Some(MAX_SESSIONS_EXIT_CODE) && self.score.passing < self.score.items;
        self.restarts + u32::from(has_ended_early)
    }
}

/// Simulates the unattended run of a seed with this number of items.
pub fn simulate_unattended_run(
    setup: &LoopSetup,
    persona: AgentPersona,
    seed: u64,
    item_count: u32,
) -> SimulationRow {
    let rng = SeededRng::new(seed);
    let mut world = create_world_with_env_and_user_settings();
    let task = Task::random(rng, item_count);
    task.write_and_commit_to_world(&world);
    let wait_mode = match setup.loop_kind {
        LoopKind::Shell { .. } => WaitMode::Recorded,
        LoopKind::Plimsoll(_) => WaitMode::Real(USAGE_LIMIT_DURATION),
    };
    let estimated_answers = task.items.iter().map(|item| item.line_count / 26 + 3).sum();
    let (model, handle) = SimulationHandle::start_model(
        SimulationPlan { task, persona, rng, wait_mode, estimated_answers },
        &world,
    );
    world.put_client_on_path_with_model_and_settings(&model);
    let finished_loop = run_shell_loop_or_plimsoll(&world, &setup.loop_kind);
    write_conversation_if_requested(setup, persona, seed, &model, &finished_loop);
    let output = format!("{}\n{}", finished_loop.stdout, finished_loop.stderr);
    let names_changed_test = |line: &str| line.contains("check.sh") && line.contains("changed");
    let restart_count =
        fs::read_to_string(world.path("../restarts")).unwrap_or_default().lines().count() as u32;
    SimulationRow {
        seed,
        setup_key: setup.key.to_owned(),
        persona,
        build: hash_programs_and_simulation_sources(),
        score: handle.compute_score(&world),
        exit_code: finished_loop.code,
        restarts: restart_count,
        names_changed_test: output.lines().any(names_changed_test),
        seconds: finished_loop.elapsed.as_secs(),
    }
}

fn create_world_with_env_and_user_settings() -> World {
    let mut world = World::new();
    world.set_env("ANTHROPIC_API_KEY", "");
    world.set_env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-scripted-model-only-000000");
    // The default is ten retries, with waits of up to half a minute. On the simulated clock one retry counts
    // as nine.
    world.set_env("CLAUDE_CODE_MAX_RETRIES", "1");
    // A simulation lasts only minutes, so three checkpoints in it do not mean that an item is too large.
    world.write_plimsoll_user_settings(&serde_json::json!({"thrash": {"checkpoints": 0}}));
    world
}

fn run_shell_loop_or_plimsoll(world: &World, loop_kind: &LoopKind) -> FinishedProgram {
    let client = format!("claude -p --model {MODEL} --allowedTools Bash Read Edit Write");
    let fill_placeholders = |text: &str| text.replace("CLIENT", &client).replace("SESSIONS", MAX_SESSIONS);
    match loop_kind {
        LoopKind::Shell { prompt, script, stop_hook } => {
            world.write_program(world.home().join("tools/sleep"), include_str!("nights/peers/sleep.sh"));
            world.write_program(world.home().join("tools/claude"), include_str!("nights/peers/limited.sh"));
            world.write(".git/info/exclude", "PROMPT.md\n*.log\n.claude/\n.ralph/\n");
            world.write("PROMPT.md", prompt);
            if let Some(hook) = stop_hook {
                let hook_path = world.write_program(".claude/again.sh", &fill_placeholders(hook));
                let hook_entry = serde_json::json!({"type": "command", "command": hook_path});
                let settings = serde_json::json!({"hooks": {"Stop": [{"hooks": [hook_entry]}]}});
                world.write(".claude/settings.json", &settings.to_string());
            }
            let script = format!("PATH=$HOME/tools:$PATH\n{}", fill_placeholders(script));
            world.command("bash", &["-c", &script]).timeout(SIMULATION_TIMEOUT).run()
        }
        LoopKind::Plimsoll(arguments) => {
            let objective = format!("Do what fix_plan.md says. Its tests are `{TEST_COMMAND} FILE`.");
            let run_args = ["run", "--objective", &objective, "--max-iterations", MAX_SESSIONS];
            let client_args = ["--", "--model", MODEL, "--allowedTools", "Bash", "Read", "Edit", "Write"];
            world
                .plimsoll(&[&run_args[..], arguments, &client_args[..]].concat())
                .timeout(SIMULATION_TIMEOUT)
                .run()
        }
    }
}

/// Writes the conversation into the folder that `PLIMSOLL_KEEP_REQUESTS` names, for inspection.
fn write_conversation_if_requested(
    setup: &LoopSetup,
    persona: AgentPersona,
    seed: u64,
    model: &plimsoll_testkit::scripted_model::ScriptedModel,
    finished_loop: &FinishedProgram,
) {
    let Some(folder) = std::env::var_os("PLIMSOLL_KEEP_REQUESTS").map(PathBuf::from) else { return };
    let requests = model.main_requests();
    let request_texts = requests
        .iter()
        .map(|request| format!("=== {}\n{}\n", request.number, request.text_since_last_assistant_message()));
    let text: String = request_texts.collect::<String>() + &format!("=== the loop\n{finished_loop:?}\n");
    fs::create_dir_all(&folder).expect("a folder");
    let name = format!("{}-{}-{seed}.txt", setup.key, persona.name());
    fs::write(folder.join(name), text).expect("a file");
}

/// Returns the first twelve hex digits of a hash of the tested programs and of the simulation's sources.
pub fn hash_programs_and_simulation_sources() -> String {
    static BUILD_HASH: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let root = plimsoll_testkit::workspace_root();
    let simulation_folders =
        ["research/src/nights/simulator", "research/src/nights/peers"].map(|folder| root.join(folder));
    let compute_hash = || {
        // All hook programs are links to the same file, so hashing one of them is enough.
        let programs = ["plimsoll", "plimsoll-post-tool"]
            .map(|name| plimsoll_testkit::find_or_build_bin_dir().join(name));
        let mut files: Vec<PathBuf> =
            simulation_folders.iter().flat_map(|folder| list_files(folder)).collect();
        let other_sources = [
            "crates/testkit/src/seeded_rng.rs",
            "research/src/nights.rs",
            "research/src/nights/loop_setups.rs",
        ];
        files.extend(other_sources.map(|file| root.join(file)));
        files.sort();
        let bytes: Vec<Vec<u8>> =
            programs.iter().chain(&files).map(|file| fs::read(file).expect("a file of the build")).collect();
        let file_contents: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        sha256_hex(&file_contents)[..12].to_owned()
    };
    BUILD_HASH.get_or_init(compute_hash).clone()
}

fn list_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of the workspace");
    entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file()).collect()
}
