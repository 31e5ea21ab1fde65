//! What the tests with the real client share: a project with a plan, a run in it, and what the run wrote.

pub mod browser;
pub mod collector;
pub mod dates;
pub mod hostile;
pub mod large_world;

use plimsoll_domain::state::RunOptions;
use plimsoll_domain::state::{IterationPhase, IterationRecord};
use plimsoll_domain::{RunId, RunState, SessionId};
use plimsoll_store::{Project, state_file};
pub use plimsoll_testkit::quota::{usage_limit, with_quota};
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::story::{Turn, story, tick};
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::{Finished, World};
use serde_json::Value;
use std::time::Duration;

/// A delay of the scripted model. A real one thinks longer than the client's transcript writer lags (106 ms, 2.1.329).
pub const LIFELIKE: Duration = Duration::from_millis(150);

/// Three open items.
pub const ITEMS: &str = "# Plan\n\n- [ ] Item one\n- [ ] Item two\n- [ ] Item three\n";

/// A project with a to-do list and a file to work on.
pub fn world(todo: &str) -> World {
    let world = World::new();
    world.write("fix_plan.md", todo);
    world.write("src/dates.txt", &(1..=200).map(|n| format!("line {n}\n")).collect::<String>());
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Plan"]);
    world
}

/// A project with our hooks, for ordinary sessions with this model.
pub fn installed(model: &ScriptedModel) -> World {
    let mut world = World::new();
    world.use_model(model);
    world.plimsoll(&["init", "--local"]).run().expect_success();
    world
}

/// Begins a run by hand, of which this session works through the first iteration.
pub fn put_run(world: &World, run_id: &str, session_id: &str) {
    let state = RunState {
        run_id: RunId::from(run_id),
        session_id: Some(SessionId::from(session_id)),
        iteration: 1,
        iteration_record: IterationRecord {
            iteration: 1,
            phase: IterationPhase::Spawned,
            ..IterationRecord::default()
        },
        options: RunOptions {
            task_name: "Dates".to_owned(),
            max_iterations: 5,
            todo_file: Some("fix_plan.md".to_owned()),
            ..RunOptions::default()
        },
        ..RunState::default()
    };
    let project = Project::with_local_files(&world.project()).with_runs_folder(&world.runs());
    state_file::create_state(&project, &state).expect("a state");
}

/// Plays the cases of a test side by side: most of their time they wait.
pub fn side_by_side<T: Sync>(cases: &[T], play: impl Fn(&T) + Sync) {
    let failed: Vec<_> = std::thread::scope(|scope| {
        let play = &play;
        let started: Vec<_> = cases.iter().map(|case| scope.spawn(move || play(case))).collect();
        started.into_iter().filter_map(|case| case.join().err()).collect()
    });
    if let Some(first) = failed.into_iter().next() {
        std::panic::resume_unwind(first);
    }
}

/// The shell loop of scripts/ralph-loop.sh to its end.
pub fn ralph_loop(world: &World, options: &[&str]) -> Finished {
    let script = workspace_root().join("scripts/ralph-loop.sh");
    let mut arguments = vec![script.to_str().expect("a plain path")];
    arguments.extend(options);
    arguments.extend(["--", "--model", "opus", "--allowedTools", "Bash"]);
    world.command("bash", &arguments).run()
}

/// A world whose client believes that it is logged in with a subscription.
pub fn subscribed(todo: &str) -> World {
    let mut world = world(todo);
    world.set_env("ANTHROPIC_API_KEY", "");
    world.set_env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-scripted-model-only-000000");
    world
}

/// `plimsoll run` with an objective, in a project made by [`world`].
pub fn run(world: &World, arguments: &[&str]) -> Finished {
    let ours = ["run", "--objective", "Do the plan.", "--name", "Dates"];
    let client = ["--", "--model", "opus", "--allowedTools", "Bash", "Edit", "Write", "Read"];
    let all: Vec<&str> = ours.iter().chain(arguments).chain(&client).copied().collect();
    world.plimsoll(&all).run()
}

/// `plimsoll run --resume` in such a project.
pub fn resume(world: &World, arguments: &[&str]) -> Finished {
    let all: Vec<&str> = ["run", "--resume"].iter().chain(arguments).copied().collect();
    world.plimsoll(&all).run()
}

/// The journal; every line must be whole.
pub fn journal(world: &World) -> Vec<Value> {
    world
        .read(".claude/plimsoll/journal.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

/// The journal's lines about one event.
pub fn events<'a>(journal: &'a [Value], event: &str) -> Vec<&'a Value> {
    journal.iter().filter(|entry| entry["event"] == event).collect()
}

/// An honest agent: one item a session, the promise when none is left.
pub fn honest(turn: &Turn<'_>) -> Step {
    let Some(item) = turn.item.clone() else { return Step::text(format!("All done.\n\n{}", turn.promise)) };
    match turn.step {
        0 => Step::bash(format!("echo '{item}' >> work.txt && {}", tick(&item))).usage(30_000),
        _ if item == "Item three" => Step::text(format!("All done.\n\n{}", turn.promise)).usage(31_000),
        _ => Step::text(format!("{item} is done.")).usage(31_000),
    }
}

/// The model of a test: a function that answers each turn of each session. By default it answers at once, and a replayed client
/// takes the place of the real one.
pub struct ScriptedAgent<F> {
    answer: F,
    delay: Option<Duration>,
    client: Client,
}

/// The client of a test's sessions.
enum Client {
    Replayed,
    Real,
    /// Real in the sessions with these numbers, replayed in the others.
    RealIn(Vec<u32>),
}

impl<F: FnMut(&Turn<'_>) -> Step + Send + 'static> ScriptedAgent<F> {
    pub fn new(answer: F) -> ScriptedAgent<F> {
        ScriptedAgent { answer, delay: None, client: Client::Replayed }
    }

    /// Answers as slowly as a real model, for tests in which the client must have written its transcript by the next turn.
    #[must_use]
    pub fn at_real_pace(self) -> ScriptedAgent<F> {
        ScriptedAgent { delay: Some(LIFELIKE), ..self }
    }

    /// Uses the real client: for tests about the client, or about what was never recorded.
    #[must_use]
    pub fn with_real_client(self) -> ScriptedAgent<F> {
        ScriptedAgent { client: Client::Real, ..self }
    }

    /// Uses the real client only in the sessions with these numbers.
    #[must_use]
    pub fn with_real_client_in(self, sessions: &[u32]) -> ScriptedAgent<F> {
        ScriptedAgent { client: Client::RealIn(sessions.to_vec()), ..self }
    }

    /// Starts the model's server, and points the world's client at it.
    pub fn start(self, world: &mut World) -> ScriptedModel {
        let ScriptedAgent { mut answer, delay, client } = self;
        let model = story(move |turn| {
            let step = answer(turn);
            match delay {
                Some(delay) => step.delay(delay),
                None => step,
            }
        });
        world.use_model(&model);
        match client {
            Client::Replayed => world.use_replay(),
            Client::Real => {}
            Client::RealIn(sessions) => world.use_real_client_in(&sessions),
        }
        model
    }
}

/// The words of the last request of one session, by the iteration its prompt names.
pub fn last_request_of(model: &ScriptedModel, iteration: u32) -> String {
    let named = format!("You are session {iteration} of");
    let requests = model.main_requests();
    let mut of_it = requests.iter().rev().filter(|request| request.first_text().contains(&named));
    of_it.next().map(Request::text).expect("a request of that iteration")
}

/// The words the model was sent in one session, by the iteration its prompt names.
pub fn first_request_of(model: &ScriptedModel, iteration: u32) -> String {
    let named = format!("You are session {iteration} of");
    let requests = model.main_requests();
    requests
        .iter()
        .map(Request::text)
        .find(|text| text.contains(&named))
        .expect("a request of that iteration")
}

/// Nothing is sent twice: each line of our block stands once in all that a session is sent before its first answer.
pub fn assert_said_once(request: &Request) {
    let all = request.text();
    let sent = all.strip_prefix(&request.system_text()).unwrap_or(&all);
    let (_, block) = sent.split_once("<!-- plimsoll:begin").unwrap_or_else(|| panic!("no block in\n{sent}"));
    let (block, _) = block.split_once("<!-- plimsoll:end").unwrap_or_else(|| panic!("no end in\n{sent}"));
    let lines = block.lines().skip(1).filter(|line| line.starts_with('#') || line.len() > 20);
    assert!(lines.clone().count() > 10, "{block}");
    for line in lines {
        assert_eq!(sent.lines().filter(|one| *one == line).count(), 1, "{line}\nstands once in\n{sent}");
    }
}

/// The markers of the final verdicts, in order.
pub fn markers(journal: &[Value]) -> Vec<String> {
    events(journal, "verdict")
        .iter()
        .map(|entry| entry["marker"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// The hook's reply as the client would read it.
pub fn reply(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout).expect(&finished.stdout)
}

/// The first of these is in the text, then the next behind it, and so on.
pub fn assert_in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let Some(at) = rest.find(part) else { panic!("{part} is missing, or out of order, in\n{text}") };
        rest = &rest[at + part.len()..];
    }
}

/// Returns the lines of a text that contain these words.
pub fn lines_with(text: &str, words: &str) -> String {
    text.lines().filter(|line| line.contains(words)).map(|line| format!("{line}\n")).collect()
}

/// The name of a test of the same program, as `--exact` expects it: its module's path without the name of the program.
pub fn test_name(module_path: &str, test: &str) -> String {
    let (_, module) = module_path.split_once("::").expect("a module of this program");
    format!("{module}::{test}")
}
