//! Simulated runs with a harder task. They score how well each session is told where the
//! previous one stopped.

pub mod simulator;

use plimsoll_testkit::SeededRng;
use plimsoll_testkit::world::{FinishedProgram, World};
use serde::{Deserialize, Serialize};
use simulator::{
    AgentStyle, FolderKind, ResumeScore, SimulatedWork, SimulationHandle, SimulationResults, UserChange,
};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// A model with a context window of a million tokens. The usage is scripted, so the client never compacts by
/// itself.
const MODEL: &str = "opus";
/// The maximum number of sessions of a simulated run. Runs normally end earlier.
pub const MAX_SESSIONS: u32 = 16;
/// Longer than any simulated run that makes progress.
const SIMULATION_TIMEOUT: Duration = Duration::from_secs(900);

/// The outcome of a simulated run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SimulationOutcome {
    /// The label of the programs that were tested.
    pub programs: String,
    pub seed: u64,
    /// How the agent works, and the kind of folder.
    pub style: AgentStyle,
    /// The score of each resumed session.
    pub resumes: Vec<ResumeScore>,
    /// The results apart from the resumes.
    #[serde(rename = "morning")]
    pub results: SimulationResults,
    /// The exit code of the run.
    #[serde(rename = "code")]
    pub exit_code: Option<i32>,
    /// The real duration of the simulation.
    pub seconds: f64,
    /// The last line that the run printed.
    #[serde(rename = "last_words")]
    pub last_output_line: String,
}

/// Simulates the run of a seed with the real client and at most `max_sessions` sessions. `programs_label`
/// names the tested programs in the outcome.
pub fn simulate_run_with_real_client(
    seed: u64,
    programs_label: &str,
    max_sessions: u32,
) -> SimulationOutcome {
    simulate_run_in_prepared_world(seed, programs_label, max_sessions, |_| ())
}

/// Simulates the run of a seed with the replayed client.
pub fn simulate_run_with_replayed_client(
    seed: u64,
    programs_label: &str,
    max_sessions: u32,
) -> SimulationOutcome {
    simulate_run_in_prepared_world(seed, programs_label, max_sessions, |world| {
        world.use_real_client_in_sessions(&[])
    })
}

fn simulate_run_in_prepared_world(
    seed: u64,
    programs_label: &str,
    max_sessions: u32,
    prepare_world: impl Fn(&mut World),
) -> SimulationOutcome {
    let rng = SeededRng::new(seed);
    let (style, work) = (AgentStyle::random(rng), SimulatedWork::random(rng));
    let mut world = create_world_with_project_files(&style, &work);
    let (model, handle) = SimulationHandle::start_model(work, style, world.project(), rng);
    world.put_client_on_path_with_model_and_settings(&model);
    prepare_world(&mut world);
    let started_at = Instant::now();
    let finished_run = if style.has_user_changes {
        run_session_by_session_with_user_changes(&world, &style, max_sessions, &handle, rng)
    } else {
        run_plimsoll_up_to_max_sessions(&world, &style, max_sessions)
    };
    let seconds = started_at.elapsed().as_secs_f64();
    write_conversation_if_requested(seed, programs_label, &model, &finished_run);
    SimulationOutcome {
        programs: programs_label.to_owned(),
        seed,
        style,
        resumes: handle.resume_scores(),
        results: handle.results(),
        exit_code: finished_run.code,
        seconds,
        last_output_line: finished_run.stdout.lines().last().unwrap_or_default().to_owned(),
    }
}

fn create_world_with_project_files(style: &AgentStyle, work: &SimulatedWork) -> World {
    let mut world = World::without_git();
    world.set_env("ANTHROPIC_API_KEY", "");
    world.set_env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-scripted-model-only-000000");
    for (path, text) in work.initial_files() {
        world.write(path, text);
    }
    world.write("fix_plan.md", &work.plan_text());
    // A simulation lasts only a minute, so three checkpoints in it do not mean that an item is too large.
    world.write_plimsoll_user_settings(&serde_json::json!({"thrash": {"checkpoints": 0}}));
    if style.folder != FolderKind::Plain {
        world.git(&["init", "--quiet", "-b", "main"]);
        world.git(&["config", "user.name", "Test"]);
        world.git(&["config", "user.email", "test@example.invalid"]);
    }
    if style.folder == FolderKind::Repository {
        world.git(&["add", "-A"]);
        world.git(&["commit", "-qm", "The work"]);
    }
    world
}

fn run_plimsoll_up_to_max_sessions(world: &World, style: &AgentStyle, max_sessions: u32) -> FinishedProgram {
    let max_iterations = max_sessions.to_string();
    let mut arguments =
        vec!["run", "--objective", "Do what fix_plan.md says.", "--max-iterations", &max_iterations];
    if style.uses_pack_option {
        arguments.push("--pack");
    }
    if style.uses_verify_command {
        arguments.extend(["--verify", "test -d src"]);
    }
    arguments.extend(["--", "--model", MODEL, "--allowedTools", "Bash", "Read", "Edit", "Write"]);
    world.plimsoll(&arguments).timeout(SIMULATION_TIMEOUT).run()
}

/// Runs one session at a time. Between two sessions the user may change files.
fn run_session_by_session_with_user_changes(
    world: &World,
    style: &AgentStyle,
    max_sessions: u32,
    handle: &SimulationHandle,
    rng: SeededRng,
) -> FinishedProgram {
    let mut finished_run = run_plimsoll_up_to_max_sessions(world, style, 1);
    for session in 2..=max_sessions {
        // Exit code 3: the maximum number of sessions has been reached.
        if finished_run.code != Some(3) {
            break;
        }
        if handle.has_open_item() {
            maybe_commit_and_record_user_change(world, handle, rng, session);
        }
        let max_iterations = session.to_string();
        finished_run = world
            .plimsoll(&["run", "--resume", "--max-iterations", &max_iterations])
            .timeout(SIMULATION_TIMEOUT)
            .run();
    }
    finished_run
}

fn maybe_commit_and_record_user_change(
    world: &World,
    handle: &SimulationHandle,
    rng: SeededRng,
    session: u32,
) {
    let commit_subject = format!("By hand before session {session}");
    let commit_file = |path: &str| {
        world.git(&["add", "-A", "--", path]);
        world.git(&["commit", "-qm", &commit_subject, "--", path]);
    };
    let roll = rng.random_number_for_name(&format!("somebody before {session}"), 100);
    let change = match (roll, handle.file_in_progress()) {
        (0..=19, Some((file, _))) => {
            let text = world.read(&file);
            let comment_prefix = if file.ends_with(".py") { "#" } else { "//" };
            world.write(
                &file,
                &format!("{comment_prefix} looked through\n{comment_prefix} by hand\n\n{text}"),
            );
            commit_file(&file);
            UserChange::Edited { file, subject: commit_subject }
        }
        (20..=39, Some((file, true))) if file.contains("helper") || file.contains("src/") => {
            std::fs::remove_file(world.path(&file)).expect("the file is there");
            commit_file(&file);
            UserChange::Deleted { file, subject: commit_subject }
        }
        (40..=69, _) => {
            let text = world.read("docs/guide.md");
            world.write("docs/guide.md", &format!("{text}More of it.\n"));
            commit_file("docs/guide.md");
            UserChange::OtherCommit { subject: commit_subject }
        }
        _ => return,
    };
    handle.record_user_change(change);
}

/// Writes the conversation into the folder that `PLIMSOLL_KEEP_REQUESTS` names, for inspection.
fn write_conversation_if_requested(
    seed: u64,
    programs_label: &str,
    model: &plimsoll_testkit::scripted_model::ScriptedModel,
    finished_run: &FinishedProgram,
) {
    let Some(folder) = std::env::var_os("PLIMSOLL_KEEP_REQUESTS").map(std::path::PathBuf::from) else {
        return;
    };
    let requests = model.main_requests();
    let request_texts = requests
        .iter()
        .map(|request| format!("=== {}\n{}\n", request.number, request.text_since_last_assistant_message()));
    let text: String = request_texts.collect::<String>() + &format!("=== the run\n{finished_run:?}\n");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join(format!("{programs_label}-{seed}.txt")), text).expect("a file");
}

const SECTION_HEAD: &str = include_str!("handovers/head.md");
const SECTION_TAIL: &str = include_str!("handovers/tail.md");
const SECTION_BEGIN: &str = "<!-- harder nights: begin -->\n";
const SECTION_END: &str = "<!-- harder nights: end -->\n";

/// Returns the section of docs/nights.md about the harder simulations, including its markers.
pub fn find_harder_simulations_section(page: &str) -> Option<&str> {
    let start = page.find(SECTION_BEGIN)?;
    Some(&page[start..page.find(SECTION_END)? + SECTION_END.len()])
}

/// Returns the page with the old section replaced by this one, or with this one appended if there was none.
pub fn replace_or_append_harder_simulations_section(page: &str, section: &str) -> String {
    match find_harder_simulations_section(page) {
        Some(old_section) => page.replace(old_section, section),
        None => format!("{}\n\n{section}", page.trim_end()),
    }
}

/// Renders the section about the harder simulations from the outcomes with this label.
pub fn render_harder_simulations_section(outcomes: &[SimulationOutcome], programs_label: &str) -> String {
    let simulations: Vec<&SimulationOutcome> =
        outcomes.iter().filter(|outcome| outcome.programs == programs_label).collect();
    let seeds: BTreeSet<u64> = simulations.iter().map(|outcome| outcome.seed).collect();
    let resumes: Vec<&ResumeScore> = simulations.iter().flat_map(|outcome| &outcome.resumes).collect();
    let correct_share_for_state = |state: &str| {
        let resumes_in_state: Vec<&&ResumeScore> =
            resumes.iter().filter(|resume| resume.item_state == state).collect();
        let correct_count = resumes_in_state
            .iter()
            .filter(|resume| resume.is_fully_correct() && !resume.is_sent_twice)
            .count();
        render_share(correct_count, resumes_in_state.len())
    };
    let sum_user_changes =
        |count_of: &dyn Fn(&ResumeScore) -> u32| resumes.iter().map(|resume| count_of(resume) as usize).sum();
    let sum_results = |count_of: &dyn Fn(&SimulationResults) -> u32| {
        simulations.iter().map(|outcome| count_of(&outcome.results) as usize).sum()
    };
    let ended_well_count = simulations.iter().filter(|outcome| outcome.exit_code == Some(0)).count();
    let seed_text = |seed: Option<&u64>| seed.copied().unwrap_or_default().to_string();
    let mut text = format!("{SECTION_BEGIN}{SECTION_HEAD}")
        .replace("RESUMES", &resumes.len().to_string())
        .replace("NIGHTS", &seeds.len().to_string())
        .replace("FIRST", &seed_text(seeds.first()))
        .replace("LAST", &seed_text(seeds.last()));
    text.push_str("| what | result |\n| --- | --- |\n");
    let lines = [
        ("correct resumes of a half-done item", correct_share_for_state("Half")),
        ("correct resumes after a tick", correct_share_for_state("Ticked")),
        ("correct resumes before any work", correct_share_for_state("Fresh")),
        (
            "changes by people that the first request names",
            render_share(
                sum_user_changes(&|resume| resume.mentioned_user_changes.0),
                sum_user_changes(&|resume| resume.mentioned_user_changes.1),
            ),
        ),
        (
            "ticked items with every step done",
            render_share(sum_results(&|results| results.done), sum_results(&|results| results.items)),
        ),
        ("runs that ended well", render_share(ended_well_count, simulations.len())),
    ];
    for (what, result) in lines {
        let _ = writeln!(text, "| {what} | {result} |");
    }
    format!("{text}{SECTION_TAIL}{SECTION_END}")
}

fn render_share(part: usize, total: usize) -> String {
    let percent = (part * 100 + total / 2).checked_div(total);
    percent.map_or("–".to_owned(), |percent| format!("{percent}% ({part} of {total})"))
}
