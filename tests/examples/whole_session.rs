//! What our hooks cost in a whole session: the processor time of the real client and of everything that it starts, for sessions
//! of sixty batches, with our hooks and without (`scripts/bench.sh`).

use plimsoll_testkit::client;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use plimsoll_tests::{ITEMS, ScriptedAgent, world};
use serde_json::Value;

const BATCHES: usize = 60;
const ROUNDS: usize = 5;
/// An answer of 7 KB.
const COMMAND: &str = "seq 1 1640";

/// What the client starts at its events.
#[derive(Clone, Copy, PartialEq)]
enum Hooks {
    None,
    /// As many programs as ours, which do nothing.
    Empty,
    Ours,
    OursWithMemory,
}

const WAYS: [(Hooks, &str); 4] = [
    (Hooks::None, "no hooks"),
    (Hooks::Empty, "as many hooks, each `/bin/true`"),
    (Hooks::Ours, "Plimsoll, as `init --user` installs it"),
    (Hooks::OursWithMemory, "Plimsoll with the working memory (8 KB)"),
];

fn main() {
    println!(
        "Sessions of {BATCHES} batches, each a new turn with an answer of 7 KB, client {}, scripted model; the median of {ROUNDS}, in turn:\n",
        client::CLIENT_VERSION
    );
    println!("| what the client starts | processor time | more for each batch |\n| --- | ---: | ---: |");
    let mut spent = WAYS.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (place, (hooks, _)) in WAYS.iter().enumerate() {
            spent[place].push(session(*hooks));
        }
    }
    let [without, ..] = &mut spent;
    let without = median(without);
    for ((_, name), spent) in WAYS.iter().zip(&mut spent) {
        let whole = median(spent);
        println!("| {name} | {whole:.2} s | {:.1} ms |", (whole - without) * 1_000.0 / BATCHES as f64);
    }
}

fn median(spent: &mut [f64]) -> f64 {
    spent.sort_by(f64::total_cmp);
    spent[spent.len() / 2]
}

/// The processor time of one session, in seconds.
fn session(hooks: Hooks) -> f64 {
    let mut world = world(ITEMS);
    let _model = ScriptedAgent::new(move |turn| {
        let answer = if turn.step < BATCHES { Step::bash(COMMAND) } else { Step::text("Done.") };
        answer.usage((turn.step as u64 + 1) * 10_000)
    })
    .with_real_client()
    .start(&mut world);
    install(&world, hooks);
    let line = "claude -p 'Go on.' --model opus --allowedTools Bash >/dev/null && times";
    let told = world.command("bash", &["-c", line]).run().expect_success().stdout;
    let of_children = told.lines().last().expect("two lines");
    of_children.split(' ').map(seconds).sum()
}

/// `0m1.234s` as bash says it.
fn seconds(told: &str) -> f64 {
    let (minutes, rest) = told.split_once('m').expect("minutes");
    let parsed = minutes.parse::<f64>().ok().zip(rest.trim_end_matches('s').parse::<f64>().ok());
    let (minutes, seconds) = parsed.expect("numbers");
    minutes * 60.0 + seconds
}

fn install(world: &World, hooks: Hooks) {
    match hooks {
        Hooks::None => return,
        Hooks::Empty | Hooks::Ours => world.plimsoll(&["init", "--user"]).run().expect_success(),
        Hooks::OursWithMemory => world.plimsoll(&["init", "--user", "--memory"]).run().expect_success(),
    };
    match hooks {
        Hooks::Empty => empty(world),
        Hooks::OursWithMemory => fill(world),
        Hooks::None | Hooks::Ours => {}
    }
}

fn empty(world: &World) {
    let path = world.home().join(".claude/settings.json");
    let mut settings = world.json(&path);
    let hooks = settings["hooks"].as_object_mut().expect("hooks").values_mut();
    for entry in hooks.flat_map(|groups| groups.as_array_mut().expect("groups")) {
        for hook in entry["hooks"].as_array_mut().expect("hooks") {
            hook["command"] = Value::from("/bin/true");
        }
    }
    world.write(&path, &settings.to_string());
}

fn fill(world: &World) {
    for register in ["goal", "plan", "next", "constraints", "open_questions", "status"] {
        let words = format!("What stands in the register {register} of a session at work, in a line or two.");
        world.plimsoll(&["memory", "set", register, &words]).run().expect_success();
    }
    for chunk in 1..=7 {
        let name = format!("chunk-{chunk}");
        world.plimsoll(&["memory", "alloc", &name, &"a word or two ".repeat(80)]).run().expect_success();
    }
}
