//! Measures what Plimsoll's hooks cost in a whole session: the processor time of the real client and of everything that it starts,
//! in sessions of sixty batches, with and without the hooks (`scripts/bench.sh`).

use plimsoll_testkit::client;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use plimsoll_tests::{ScriptedAgent, THREE_ITEM_PLAN, world_with_plan_and_dates};
use serde_json::Value;

const BATCHES: usize = 60;
const ROUNDS: usize = 5;
/// Prints 7 KB.
const COMMAND: &str = "seq 1 1640";

/// The programs that the client starts on its events.
#[derive(Clone, Copy, PartialEq)]
enum HookSetup {
    None,
    /// As many programs as Plimsoll installs, which do nothing.
    NoOp,
    Plimsoll,
    PlimsollWithMemory,
    PlimsollWithModule,
}

const SETUPS: [(HookSetup, &str); 5] = [
    (HookSetup::None, "none"),
    (HookSetup::NoOp, "`/bin/true` for each of Plimsoll's hooks"),
    (HookSetup::Plimsoll, "Plimsoll, as `init --user` installs it"),
    (HookSetup::PlimsollWithMemory, "Plimsoll with the working memory (8 KB)"),
    (HookSetup::PlimsollWithModule, "Plimsoll with the module"),
];

fn main() {
    println!(
        "Sessions of {BATCHES} batches, each with 7 KB of output, Claude Code {}, scripted model, median of {ROUNDS}:\n",
        client::CLIENT_VERSION
    );
    println!("| hooks | processor time | more per batch |\n|---|---:|---:|");
    let mut cpu_seconds = SETUPS.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (index, (hooks, _)) in SETUPS.iter().enumerate() {
            cpu_seconds[index].push(measure_session_cpu_seconds(*hooks));
        }
    }
    let [baseline_seconds, ..] = &mut cpu_seconds;
    let baseline = median(baseline_seconds);
    for ((_, name), samples) in SETUPS.iter().zip(&mut cpu_seconds) {
        let median_seconds = median(samples);
        println!(
            "| {name} | {median_seconds:.2} s | {:.1} ms |",
            (median_seconds - baseline) * 1_000.0 / BATCHES as f64
        );
    }
}

fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Plays a session and returns its processor time in seconds.
fn measure_session_cpu_seconds(hooks: HookSetup) -> f64 {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let _model = ScriptedAgent::new(move |turn| {
        let step = if turn.assistant_message_count < BATCHES {
            Step::bash_call(COMMAND)
        } else {
            Step::from_text("Done.")
        };
        step.with_input_tokens((turn.assistant_message_count as u64 + 1) * 10_000)
    })
    .with_real_client()
    .start(&mut world);
    install_hooks(&world, hooks);
    let script = "claude -p 'Go on.' --model opus --allowedTools Bash >/dev/null && times";
    let times_output = world.command("bash", &["-c", script]).run().expect_success().stdout;
    let children_times = times_output.lines().last().expect("two lines");
    children_times.split(' ').map(parse_bash_time).sum()
}

/// Parses a time as bash prints it: `0m1.234s`.
fn parse_bash_time(text: &str) -> f64 {
    let (minutes, rest) = text.split_once('m').expect("minutes");
    let parsed = minutes.parse::<f64>().ok().zip(rest.trim_end_matches('s').parse::<f64>().ok());
    let (minutes, seconds) = parsed.expect("numbers");
    minutes * 60.0 + seconds
}

fn install_hooks(world: &World, hooks: HookSetup) {
    match hooks {
        HookSetup::None => return,
        HookSetup::NoOp | HookSetup::Plimsoll => world.plimsoll(&["init", "--user"]).run().expect_success(),
        HookSetup::PlimsollWithMemory => {
            world.plimsoll(&["init", "--user", "--memory"]).run().expect_success()
        }
        HookSetup::PlimsollWithModule => {
            world.plimsoll(&["init", "--user", "--module"]).run().expect_success()
        }
    };
    match hooks {
        HookSetup::NoOp => replace_hooks_with_true(world),
        HookSetup::PlimsollWithMemory => fill_memory(world),
        HookSetup::None | HookSetup::Plimsoll | HookSetup::PlimsollWithModule => {}
    }
}

fn replace_hooks_with_true(world: &World) {
    let path = world.home().join(".claude/settings.json");
    let mut settings = world.read_json(&path);
    let hooks = settings["hooks"].as_object_mut().expect("hooks").values_mut();
    for entry in hooks.flat_map(|groups| groups.as_array_mut().expect("groups")) {
        for hook in entry["hooks"].as_array_mut().expect("hooks") {
            hook["command"] = Value::from("/bin/true");
        }
    }
    world.write(&path, &settings.to_string());
}

fn fill_memory(world: &World) {
    for register in ["goal", "plan", "next", "constraints", "open_questions", "status"] {
        let text = format!("What stands in the register {register} of a session at work, in a line or two.");
        world.plimsoll(&["memory", "set", register, &text]).run().expect_success();
    }
    for chunk in 1..=7 {
        let name = format!("chunk-{chunk}");
        world.plimsoll(&["memory", "alloc", &name, &"a word or two ".repeat(80)]).run().expect_success();
    }
}
