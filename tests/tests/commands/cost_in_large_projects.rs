//! What a hook costs in a project that has been worked in for years, beside what it costs in a new one: instructions counted
//! by callgrind, and system calls by strace.

use plimsoll_domain::TodoList;
use plimsoll_store::{TurnLog, memory, sessions, state_file};
use plimsoll_testkit::bin_dir;
use plimsoll_testkit::world::World;
use plimsoll_tests::large_world::{LargeWorld, RUN, SESSION, Size};
use plimsoll_tests::side_by_side;
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

/// Ten thousand of nearly everything.
const LARGE: Size = Size {
    sessions: 10_000,
    items: 10_000,
    history: 10_000,
    changes: 10_000,
    handoffs: 1_000,
    turns: 100_000,
};
/// What does not read the plan costs so much more at most, in percent.
const FLAT: u64 = 110;

/// What one call of a program cost.
#[derive(Debug, Clone, Copy)]
struct Cost {
    instructions: u64,
    calls: u64,
}

/// One call of a hook in a session, of its run or of none.
struct Case {
    name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    event: &'static str,
    fields: fn() -> Value,
    in_run: bool,
    /// A turn is added to the transcript before.
    new_turn: bool,
}

fn batch() -> Value {
    json!({"tool_calls": [{"tool_name": "Bash", "tool_input": {"command": "make -s check"}, "tool_use_id": "toolu_9",
        "tool_response": "ok"}]})
}

fn status() -> Value {
    json!({"model": {"id": "claude-opus-5-5", "display_name": "Opus 5.5"},
        "context_window": {"context_window_size": 1_000_000, "used_percentage": 5, "total_input_tokens": 50_000,
            "current_usage": {"input_tokens": 10, "cache_read_input_tokens": 50_000, "output_tokens": 50}}})
}

fn stop() -> Value {
    json!({"last_assistant_message": "The next file is converted, and the checks pass."})
}

const MONITOR: Case = Case {
    name: "monitor, nothing new",
    program: "plimsoll-post-tool",
    arguments: &[],
    event: "PostToolBatch",
    fields: batch,
    in_run: false,
    new_turn: false,
};

/// How many instructions `plimsoll start` may take for each byte. It took 63 when this was set.
const START: u64 = 67;

/// What costs the same everywhere.
const FLAT_CASES: [Case; 6] = [
    MONITOR,
    Case { name: "monitor, a new turn", new_turn: true, ..MONITOR },
    Case { name: "monitor with the memory, nothing new", arguments: &["memory"], ..MONITOR },
    Case {
        name: "status line, a run shown",
        program: "plimsoll-statusline",
        event: "Status",
        fields: status,
        ..MONITOR
    },
    Case {
        name: "session start",
        program: "plimsoll-session-start",
        event: "SessionStart",
        fields: || json!({"source": "resume"}),
        ..MONITOR
    },
    Case {
        name: "session end",
        program: "plimsoll-session-end",
        event: "SessionEnd",
        fields: || json!({"reason": "other"}),
        ..MONITOR
    },
];

/// The same of a session that has begun in the run.
const FLAT_IN_A_RUN: [Case; 2] = [
    Case { name: "monitor in a run, nothing new", in_run: true, ..MONITOR },
    Case { name: "monitor in a run, a new turn", in_run: true, new_turn: true, ..MONITOR },
];

/// What reads the plan or the run's state, and how many instructions it may take for each byte of them: a tenth more than it took
/// when this was set. It should be 60 at most.
const LINEAR_CASES: [(Case, u64); 4] = [
    (
        Case {
            name: "gate",
            program: "plimsoll-stop-gate",
            event: "Stop",
            fields: stop,
            in_run: true,
            ..MONITOR
        },
        27,
    ),
    (
        Case {
            name: "session start in a run",
            program: "plimsoll-session-start",
            event: "SessionStart",
            fields: || json!({"source": "resume"}),
            in_run: true,
            ..MONITOR
        },
        17,
    ),
    (
        Case {
            name: "before a compaction in a run",
            program: "plimsoll-pre-compact",
            event: "PreCompact",
            fields: || json!({"trigger": "auto"}),
            in_run: true,
            ..MONITOR
        },
        43,
    ),
    (
        Case {
            name: "session end in a run",
            program: "plimsoll-session-end",
            event: "SessionEnd",
            fields: || json!({"reason": "other"}),
            in_run: true,
            ..MONITOR
        },
        48,
    ),
];

impl Case {
    /// Calls it once, by another program or by itself.
    fn call(&self, large: &LargeWorld, by: &[&str]) {
        if self.new_turn {
            large.add_turn();
        }
        let program = bin_dir().join(self.program).display().to_string();
        let words: Vec<&str> =
            by.iter().copied().chain([program.as_str()]).chain(self.arguments.iter().copied()).collect();
        let launch =
            large.world.command(words[0], &words[1..]).stdin(large.event(self.event, (self.fields)()));
        let launch = if self.in_run { launch.env("PLIMSOLL_RUN_ID", RUN) } else { launch };
        let finished = launch.timeout(Duration::from_secs(240)).run();
        assert!(matches!(finished.code, Some(0 | 1)), "{}: {finished:?}", self.name);
        let complaints = finished.stderr.lines().filter(|line| !line.starts_with("==")).collect::<Vec<_>>();
        assert!(complaints.is_empty(), "{}: {complaints:?}", self.name);
    }

    fn cost(&self, large: &LargeWorld) -> Cost {
        Cost { instructions: self.instructions(large), calls: self.calls(large) }
    }

    fn instructions(&self, large: &LargeWorld) -> u64 {
        counted_by_callgrind(&large.world, |by| self.call(large, by))
    }

    fn calls(&self, large: &LargeWorld) -> u64 {
        let log = large.world.home().join("calls");
        self.call(large, &["strace", "-qq", "-o", &log.display().to_string()]);
        fs::read_to_string(log).unwrap().lines().count() as u64
    }
}

fn counted_by_callgrind(world: &World, call: impl FnOnce(&[&str])) -> u64 {
    let log = world.home().join("callgrind");
    let log_option = format!("--log-file={}", log.display());
    call(&["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", &log_option]);
    let text = fs::read_to_string(log).unwrap();
    let counted = text.lines().find_map(|line| line.split_once("Collected : ")).expect(&text);
    counted.1.trim().parse().unwrap()
}

/// True if it can be counted here.
fn is_measurable() -> bool {
    let runs = |program: &str, args: &[&str]| {
        std::process::Command::new(program).args(args).output().is_ok_and(|output| output.status.success())
    };
    let is_so = runs("valgrind", &["--version"]) && runs("strace", &["-qq", "-o", "/dev/null", "true"]);
    if !is_so {
        println!("NOT MEASURED: valgrind or strace is missing");
    }
    is_so
}

/// A project of ten of everything, and one of a size.
fn two_worlds(size: Size) -> (LargeWorld, LargeWorld) {
    std::thread::scope(|scope| {
        let small = scope.spawn(|| LargeWorld::new(Size::TEN));
        let large = LargeWorld::new(size);
        (small.join().unwrap(), large)
    })
}

#[test]
fn what_grows_in_a_project_over_the_years_makes_no_hook_of_an_ordinary_session_slower() {
    if !is_measurable() {
        return;
    }
    let (small, large) = two_worlds(LARGE);
    assert_flat(&FLAT_CASES, &small, &large);
}

#[test]
fn what_grows_in_a_project_over_the_years_makes_no_monitor_of_a_run_slower() {
    if !is_measurable() {
        return;
    }
    let (small, large) = two_worlds(LARGE);
    begin_in_the_run(&small, &large);
    assert_flat(&FLAT_IN_A_RUN, &small, &large);
}

#[test]
fn what_reads_the_plan_costs_no_more_than_its_length() {
    if !is_measurable() {
        return;
    }
    let (small, large) = two_worlds(Size { items: 4_000, history: 4_000, ..Size::TEN });
    begin_in_the_run(&small, &large);
    let bytes = large.bytes_of_plan_and_state() - small.bytes_of_plan_and_state();
    let mut over = Vec::new();
    println!("| case | instructions at ten | at four thousand | for each byte | limit |");
    for (case, limit) in LINEAR_CASES {
        let (few, many) = (case.instructions(&small), case.instructions(&large));
        let each = many.saturating_sub(few) / bytes;
        println!("| {} | {few} | {many} | {each} | {limit} |", case.name);
        if each > limit {
            over.push(case.name);
        }
    }
    assert_eq!(over, [""; 0]);
}

#[test]
fn a_project_that_is_written_by_hand_is_what_the_programs_read() {
    for size in [Size::TEN, LARGE] {
        let large = LargeWorld::new(size);
        let project = &large.project;
        let log = TurnLog::for_session(project, &SESSION.into()).unwrap();
        let report = log.verify().unwrap();
        assert!(report.is_intact() && report.turn_count == size.turns, "{report:?}");
        assert_eq!(log.current_head().unwrap().sequence_number, size.turns);
        let history = memory::read_changes(project).unwrap();
        assert_eq!(history.len() as u64, size.changes);
        assert_eq!(memory::load_memory(project).unwrap().revision, size.changes);
        assert_eq!(sessions::sessions_with_record(project).len() as u64, size.sessions);
        let run = state_file::load_state(project, Some(&RUN.into())).unwrap().unwrap();
        let plan = TodoList::parse(&large.world.read("fix_plan.md"));
        assert_eq!(
            (run.plan_items.todo_items, run.plan_items.completed_items),
            (plan.open_items(), plan.ticked_items())
        );
        assert_eq!((plan.items.len() as u64, run.context_history.len() as u64), (size.items, size.history));
    }
}

/// The session begins in the run.
fn begin_in_the_run(small: &LargeWorld, large: &LargeWorld) {
    side_by_side(&[small, large], |world| LINEAR_CASES[1].0.call(world, &["env"]));
}

/// No case costs more in the large world than in the small one.
fn assert_flat(cases: &[Case], small: &LargeWorld, large: &LargeWorld) {
    let measure = |world: &LargeWorld| -> Vec<Cost> {
        // Before, each is called until nothing is left to be made.
        cases.iter().rev().chain(cases).for_each(|case| case.call(world, &["env"]));
        cases.iter().map(|case| case.cost(world)).collect()
    };
    let (in_small, in_large) = std::thread::scope(|scope| {
        let in_small = scope.spawn(|| measure(small));
        let in_large = measure(large);
        (in_small.join().unwrap(), in_large)
    });
    let mut over = Vec::new();
    println!("| case | instructions at ten | at ten thousand | | calls | |");
    for ((case, small), large) in cases.iter().zip(&in_small).zip(&in_large) {
        let ratio = large.instructions as f64 / small.instructions as f64;
        let Cost { instructions, calls } = small;
        println!(
            "| {} | {instructions} | {} | {ratio:.2} | {calls} | {} |",
            case.name, large.instructions, large.calls
        );
        let is_flat = |large: u64, small: u64| large * 100 <= small * FLAT;
        // Two calls more are no growth: a file that is longer than one read.
        if !is_flat(large.instructions, small.instructions) || !is_flat(large.calls, small.calls + 2) {
            over.push(case.name);
        }
    }
    assert_eq!(over, [""; 0]);
}

/// `plimsoll plan` for so many items, of which each tenth waits for another one: instructions.
fn plan(items: usize) -> u64 {
    let world = World::new();
    let after = |number: usize| {
        if number.is_multiple_of(10) { format!(", after: {}", number / 2) } else { String::new() }
    };
    let line = |number| format!("- [ ] Convert the file number {number} (simple{})\n", after(number));
    world.write("fix_plan.md", &(1..=items).map(line).collect::<String>());
    let program = bin_dir().join("plimsoll").display().to_string();
    counted_by_callgrind(&world, |by| {
        let words: Vec<&str> = by.iter().copied().chain([program.as_str(), "plan"]).collect();
        let finished = world.command(words[0], &words[1..]).timeout(Duration::from_secs(240)).run();
        assert_eq!(finished.code, Some(0), "{finished:?}");
    })
}

#[test]
fn a_plan_of_four_times_as_many_items_costs_four_times_as_much() {
    if !is_measurable() {
        return;
    }
    let (few, many) = std::thread::scope(|scope| {
        let few = scope.spawn(|| plan(1_000));
        let many = plan(4_000);
        (few.join().unwrap(), many)
    });
    // Sorting adds a little.
    assert!(many < few * 5, "{few} {many}");
}

/// `plimsoll start` with a plan of so many items: instructions, and the bytes of what it read and wrote.
fn start(items: usize) -> (u64, u64) {
    let world = World::new();
    let plan: String =
        (1..=items).map(|number| format!("- [ ] Convert the file number {number} (simple)\n")).collect();
    world.write("fix_plan.md", &plan);
    let program = bin_dir().join("plimsoll").display().to_string();
    let counted = counted_by_callgrind(&world, |by| {
        let words: Vec<&str> =
            by.iter().copied().chain([program.as_str(), "start", "--objective", "Convert."]).collect();
        let finished = world.command(words[0], &words[1..]).timeout(Duration::from_secs(240)).run();
        assert_eq!(finished.code, Some(0), "{finished:?}");
    });
    let state = world.read(".claude/ralph-state.json").len();
    // The state, its copy and, more closely written, the ledger.
    (counted, (plan.len() + 3 * state) as u64)
}

#[test]
fn a_run_with_a_plan_of_ten_thousand_items_starts_in_time_that_grows_with_its_length() {
    if !is_measurable() {
        return;
    }
    let ((few, few_bytes), (many, many_bytes)) = (start(10), start(10_000));
    let each = (many - few) / (many_bytes - few_bytes);
    println!("| start | {few} | {many} | {each} | {START} |");
    assert!(each <= START, "{each} instructions for each byte");
}
