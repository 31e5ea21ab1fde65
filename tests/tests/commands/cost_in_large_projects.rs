//! The cost of a hook in a project with years of history, compared with a new project: instructions counted by
//! callgrind, and system calls counted by strace.

use plimsoll_domain::TodoList;
use plimsoll_store::{TurnLog, memory, sessions, state_file};
use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::world::World;
use plimsoll_tests::large_world::{LargeWorld, RUN_ID, SESSION_ID, WorldSize};
use plimsoll_tests::run_cases_in_parallel;
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

/// A project with ten thousand of nearly everything.
const LARGE_PROJECT: WorldSize = WorldSize {
    session_count: 10_000,
    item_count: 10_000,
    iteration_count: 10_000,
    memory_change_count: 10_000,
    handoff_count: 1_000,
    turn_count: 100_000,
};
/// The maximum cost in a large project, in percent of the cost in a small one, of calls that do not read the plan.
const MAX_FLAT_PERCENT: u64 = 110;

/// The cost of one call of a program.
#[derive(Debug, Clone, Copy)]
struct CallCost {
    instructions: u64,
    system_calls: u64,
}

/// One hook call of a session, inside or outside a run.
struct HookCase {
    name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    event: &'static str,
    fields: fn() -> Value,
    in_run: bool,
    /// True if a turn is added to the transcript before the call.
    adds_turn: bool,
}

fn batch_fields() -> Value {
    json!({"tool_calls": [{"tool_name": "Bash", "tool_input": {"command": "make -s check"}, "tool_use_id": "toolu_9",
        "tool_response": "ok"}]})
}

fn status_fields() -> Value {
    json!({"model": {"id": "claude-opus-5-5", "display_name": "Opus 5.5"},
        "context_window": {"context_window_size": 1_000_000, "used_percentage": 5, "total_input_tokens": 50_000,
            "current_usage": {"input_tokens": 10, "cache_read_input_tokens": 50_000, "output_tokens": 50}}})
}

fn stop_fields() -> Value {
    json!({"last_assistant_message": "The next file is converted, and the checks pass."})
}

const MONITOR_CASE: HookCase = HookCase {
    name: "monitor, nothing new",
    program: "plimsoll-post-tool",
    arguments: &[],
    event: "PostToolBatch",
    fields: batch_fields,
    in_run: false,
    adds_turn: false,
};

/// The maximum of instructions per byte for `plimsoll start`. It took 63 when this was set.
const MAX_START_INSTRUCTIONS_PER_BYTE: u64 = 67;

/// Calls whose cost does not depend on the size of the project.
const FLAT_CASES: [HookCase; 6] = [
    MONITOR_CASE,
    HookCase { name: "monitor, a new turn", adds_turn: true, ..MONITOR_CASE },
    HookCase { name: "monitor with the memory, nothing new", arguments: &["memory"], ..MONITOR_CASE },
    HookCase {
        name: "status line, a run shown",
        program: "plimsoll-statusline",
        event: "Status",
        fields: status_fields,
        ..MONITOR_CASE
    },
    HookCase {
        name: "session start",
        program: "plimsoll-session-start",
        event: "SessionStart",
        fields: || json!({"source": "resume"}),
        ..MONITOR_CASE
    },
    HookCase {
        name: "session end",
        program: "plimsoll-session-end",
        event: "SessionEnd",
        fields: || json!({"reason": "other"}),
        ..MONITOR_CASE
    },
];

/// Calls of a session that has begun in a run, whose cost does not depend on the size of the project either.
const FLAT_RUN_CASES: [HookCase; 2] = [
    HookCase { name: "monitor in a run, nothing new", in_run: true, ..MONITOR_CASE },
    HookCase { name: "monitor in a run, a new turn", in_run: true, adds_turn: true, ..MONITOR_CASE },
];

/// Calls that read the plan or the run's state, each with its maximum of instructions per byte read: a tenth more than
/// it took when this was set. It should be 60 at most.
const LINEAR_CASES: [(HookCase, u64); 4] = [
    (
        HookCase {
            name: "gate",
            program: "plimsoll-stop-gate",
            event: "Stop",
            fields: stop_fields,
            in_run: true,
            ..MONITOR_CASE
        },
        27,
    ),
    (
        HookCase {
            name: "session start in a run",
            program: "plimsoll-session-start",
            event: "SessionStart",
            fields: || json!({"source": "resume"}),
            in_run: true,
            ..MONITOR_CASE
        },
        17,
    ),
    (
        HookCase {
            name: "before a compaction in a run",
            program: "plimsoll-pre-compact",
            event: "PreCompact",
            fields: || json!({"trigger": "auto"}),
            in_run: true,
            ..MONITOR_CASE
        },
        43,
    ),
    (
        HookCase {
            name: "session end in a run",
            program: "plimsoll-session-end",
            event: "SessionEnd",
            fields: || json!({"reason": "other"}),
            in_run: true,
            ..MONITOR_CASE
        },
        48,
    ),
];

impl HookCase {
    /// Runs the hook once under a wrapper such as valgrind or `env`.
    fn run(&self, large: &LargeWorld, wrapper: &[&str]) {
        if self.adds_turn {
            large.append_turn_to_transcript();
        }
        let program = find_or_build_bin_dir().join(self.program).display().to_string();
        let command_line: Vec<&str> =
            wrapper.iter().copied().chain([program.as_str()]).chain(self.arguments.iter().copied()).collect();
        let launch = large
            .world
            .command(command_line[0], &command_line[1..])
            .stdin(large.event_payload(self.event, (self.fields)()));
        let launch = if self.in_run { launch.env("PLIMSOLL_RUN_ID", RUN_ID) } else { launch };
        let finished = launch.timeout(Duration::from_secs(240)).run();
        assert!(matches!(finished.code, Some(0 | 1)), "{}: {finished:?}", self.name);
        let complaints = finished.stderr.lines().filter(|line| !line.starts_with("==")).collect::<Vec<_>>();
        assert!(complaints.is_empty(), "{}: {complaints:?}", self.name);
    }

    fn measure(&self, large: &LargeWorld) -> CallCost {
        CallCost {
            instructions: self.count_instructions(large),
            system_calls: self.count_system_calls(large),
        }
    }

    fn count_instructions(&self, large: &LargeWorld) -> u64 {
        count_instructions_with_callgrind(&large.world, |by| self.run(large, by))
    }

    fn count_system_calls(&self, large: &LargeWorld) -> u64 {
        let log = large.world.home().join("calls");
        self.run(large, &["strace", "-qq", "-o", &log.display().to_string()]);
        fs::read_to_string(log).unwrap().lines().count() as u64
    }
}

pub(crate) fn count_instructions_with_callgrind(world: &World, run_under: impl FnOnce(&[&str])) -> u64 {
    let log = world.home().join("callgrind");
    let log_option = format!("--log-file={}", log.display());
    run_under(&["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", &log_option]);
    let text = fs::read_to_string(log).unwrap();
    let counted = text.lines().find_map(|line| line.split_once("Collected : ")).expect(&text);
    counted.1.trim().parse().unwrap()
}

/// Returns true if valgrind and strace work here.
pub(crate) fn can_measure() -> bool {
    let runs_successfully = |program: &str, args: &[&str]| {
        std::process::Command::new(program).args(args).output().is_ok_and(|output| output.status.success())
    };
    let is_available = runs_successfully("valgrind", &["--version"])
        && runs_successfully("strace", &["-qq", "-o", "/dev/null", "true"]);
    if !is_available {
        println!("NOT MEASURED: valgrind or strace is missing");
    }
    is_available
}

/// Creates a project with ten of everything, and one of this size.
fn small_and_large_world(size: WorldSize) -> (LargeWorld, LargeWorld) {
    std::thread::scope(|scope| {
        let small = scope.spawn(|| LargeWorld::new(WorldSize::TEN_OF_EACH));
        let large = LargeWorld::new(size);
        (small.join().unwrap(), large)
    })
}

#[test]
fn years_of_history_make_no_hook_of_an_ordinary_session_slower() {
    if !can_measure() {
        return;
    }
    let (small, large) = small_and_large_world(LARGE_PROJECT);
    assert_cost_does_not_grow(&FLAT_CASES, &small, &large);
}

#[test]
fn years_of_history_make_no_monitor_of_a_run_slower() {
    if !can_measure() {
        return;
    }
    let (small, large) = small_and_large_world(LARGE_PROJECT);
    start_session_in_run(&small, &large);
    assert_cost_does_not_grow(&FLAT_RUN_CASES, &small, &large);
}

#[test]
fn calls_that_read_the_plan_keep_their_limit_per_byte() {
    if !can_measure() {
        return;
    }
    let (small, large) = small_and_large_world(WorldSize {
        item_count: 4_000,
        iteration_count: 4_000,
        ..WorldSize::TEN_OF_EACH
    });
    start_session_in_run(&small, &large);
    let bytes = large.plan_and_state_bytes() - small.plan_and_state_bytes();
    let mut cases_over_limit = Vec::new();
    println!("| case | instructions at ten | at four thousand | for each byte | limit |");
    for (case, limit) in LINEAR_CASES {
        let (few, many) = (case.count_instructions(&small), case.count_instructions(&large));
        let per_byte = many.saturating_sub(few) / bytes;
        println!("| {} | {few} | {many} | {per_byte} | {limit} |", case.name);
        if per_byte > limit {
            cases_over_limit.push(case.name);
        }
    }
    assert_eq!(cases_over_limit, [""; 0]);
}

#[test]
fn all_records_of_the_generated_project_are_readable() {
    for size in [WorldSize::TEN_OF_EACH, LARGE_PROJECT] {
        let large = LargeWorld::new(size);
        let project = &large.project;
        let log = TurnLog::for_session_where_started_or_current(project, &SESSION_ID.into()).unwrap();
        let report = log.verify().unwrap();
        assert!(report.is_intact() && report.turn_count == size.turn_count, "{report:?}");
        assert_eq!(log.current_head().unwrap().sequence_number, size.turn_count);
        let history = memory::read_changes(project).unwrap();
        assert_eq!(history.len() as u64, size.memory_change_count);
        assert_eq!(memory::load_memory(project).unwrap().revision, size.memory_change_count);
        assert_eq!(sessions::sessions_with_record(project).len() as u64, size.session_count);
        let run = state_file::load_state(project, Some(&RUN_ID.into())).unwrap().unwrap();
        let plan = TodoList::parse(&large.world.read("fix_plan.md"));
        assert_eq!(
            (run.plan_items.todo_items, run.plan_items.completed_items),
            (plan.open_items(), plan.ticked_items())
        );
        assert_eq!(
            (plan.items.len() as u64, run.context_history.len() as u64),
            (size.item_count, size.iteration_count)
        );
    }
}

/// Starts the session in the run, in both worlds.
fn start_session_in_run(small: &LargeWorld, large: &LargeWorld) {
    run_cases_in_parallel(&[small, large], |world| LINEAR_CASES[1].0.run(world, &["env"]));
}

/// Asserts that no case costs more in the large world than in the small one.
fn assert_cost_does_not_grow(cases: &[HookCase], small: &LargeWorld, large: &LargeWorld) {
    let measure = |world: &LargeWorld| -> Vec<CallCost> {
        // Runs each case twice first, so that files which a hook creates once do not count.
        cases.iter().rev().chain(cases).for_each(|case| case.run(world, &["env"]));
        cases.iter().map(|case| case.measure(world)).collect()
    };
    let (in_small, in_large) = std::thread::scope(|scope| {
        let in_small = scope.spawn(|| measure(small));
        let in_large = measure(large);
        (in_small.join().unwrap(), in_large)
    });
    let mut cases_over_limit = Vec::new();
    println!("| case | instructions at ten | at ten thousand | | calls | |");
    for ((case, small), large) in cases.iter().zip(&in_small).zip(&in_large) {
        let ratio = large.instructions as f64 / small.instructions as f64;
        let CallCost { instructions, system_calls: calls } = small;
        println!(
            "| {} | {instructions} | {} | {ratio:.2} | {calls} | {} |",
            case.name, large.instructions, large.system_calls
        );
        let is_flat = |large: u64, small: u64| large * 100 <= small * MAX_FLAT_PERCENT;
        // Two more calls are allowed, because a longer file needs more than one read.
        if !is_flat(large.instructions, small.instructions)
            || !is_flat(large.system_calls, small.system_calls + 2)
        {
            cases_over_limit.push(case.name);
        }
    }
    assert_eq!(cases_over_limit, [""; 0]);
}

/// Returns the instructions of `plimsoll plan` for this many items, of which every tenth waits for another one.
fn count_plan_instructions(items: usize) -> u64 {
    let world = World::new();
    let after = |number: usize| {
        if number.is_multiple_of(10) { format!(", after: {}", number / 2) } else { String::new() }
    };
    let line = |number| format!("- [ ] Convert the file number {number} (simple{})\n", after(number));
    world.write("fix_plan.md", &(1..=items).map(line).collect::<String>());
    let program = find_or_build_bin_dir().join("plimsoll").display().to_string();
    count_instructions_with_callgrind(&world, |by| {
        let command_line: Vec<&str> = by.iter().copied().chain([program.as_str(), "plan"]).collect();
        let finished =
            world.command(command_line[0], &command_line[1..]).timeout(Duration::from_secs(240)).run();
        assert_eq!(finished.code, Some(0), "{finished:?}");
    })
}

#[test]
fn four_times_as_many_plan_items_cost_less_than_five_times_as_much() {
    if !can_measure() {
        return;
    }
    let (few, many) = std::thread::scope(|scope| {
        let few = scope.spawn(|| count_plan_instructions(1_000));
        let many = count_plan_instructions(4_000);
        (few.join().unwrap(), many)
    });
    // Sorting adds a little.
    assert!(many < few * 5, "{few} {many}");
}

/// Returns the instructions of `plimsoll start` with a plan of this many items, and the bytes that it reads and writes.
fn count_start_instructions_and_bytes(items: usize) -> (u64, u64) {
    let world = World::new();
    let plan: String =
        (1..=items).map(|number| format!("- [ ] Convert the file number {number} (simple)\n")).collect();
    world.write("fix_plan.md", &plan);
    let program = find_or_build_bin_dir().join("plimsoll").display().to_string();
    let instructions = count_instructions_with_callgrind(&world, |by| {
        let command_line: Vec<&str> =
            by.iter().copied().chain([program.as_str(), "start", "--objective", "Convert."]).collect();
        let finished =
            world.command(command_line[0], &command_line[1..]).timeout(Duration::from_secs(240)).run();
        assert_eq!(finished.code, Some(0), "{finished:?}");
    });
    let state = world.read(".claude/ralph-state.json").len();
    // The state is written three times: as the state, as its copy and, more compactly, in the ledger.
    (instructions, (plan.len() + 3 * state) as u64)
}

#[test]
fn starting_a_run_costs_a_limited_number_of_instructions_per_plan_byte() {
    if !can_measure() {
        return;
    }
    let ((few, few_bytes), (many, many_bytes)) =
        (count_start_instructions_and_bytes(10), count_start_instructions_and_bytes(10_000));
    let per_byte = (many - few) / (many_bytes - few_bytes);
    println!("| start | {few} | {many} | {per_byte} | {MAX_START_INSTRUCTIONS_PER_BYTE} |");
    assert!(per_byte <= MAX_START_INSTRUCTIONS_PER_BYTE, "{per_byte} instructions for each byte");
}
