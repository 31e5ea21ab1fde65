use crate::run_status::View;
use plimsoll_domain::breaker::{Breaker, BreakerCause, Opened};
use plimsoll_domain::cost::CostBasis;
use plimsoll_domain::level::Level;
use plimsoll_domain::limits::{Limits, Quota, QuotaWindow};
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::run_figures::{ItemCounts, RunFigures, WorkerActivity, WorkerFigures};
use plimsoll_domain::state::{ApiTrouble, Checkpoint, HistoryEntry, IterationRecord, WorktreeFingerprint};
use plimsoll_domain::state::{AtStart, Items, Lifecycle, Outcomes, RunOptions, Spent, WorkerOptions};
use plimsoll_domain::taken_back::{FailedCommand, TakenBack};
use plimsoll_domain::text::one_line;
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::workers::Used;
use plimsoll_domain::{RunState, Status, Timestamp, Verdict};
use plimsoll_policy::run_activity::{ActivityEvidence, RunActivity, run_activity};
use plimsoll_policy::run_figures::{RunningSession, figures_of_sessions};
use plimsoll_store::clock;
use unicode_width::UnicodeWidthStr;

const STARTED: &str = "2026-01-06T21:04:11Z";
const UNTIL: &str = "2026-01-07T05:00:02Z";
const ENDED: &str = "2026-01-07T01:00:00Z";
const DEADLINE: &str = "2026-01-07T08:00:00Z";

fn items(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| format!("Item {number}")).collect()
}

fn state(status: Status) -> RunState {
    RunState {
        run_id: "r1".into(),
        iteration: 3,
        options: RunOptions { task_name: "Dates".into(), max_iterations: 50, ..RunOptions::default() },
        lifecycle: Lifecycle::of(status),
        at_start: AtStart { started_at: STARTED.into(), ..AtStart::default() },
        items: Items { completed_items: items(1..3), todo_items: items(3..6), ..Items::default() },
        ..RunState::default()
    }
}

fn stopped(status: Status, reason: &str) -> RunState {
    let mut lifecycle = Lifecycle::after(&Verdict::Stop { status, reason: reason.into() });
    lifecycle.end(ENDED.into());
    RunState { lifecycle, ..state(status) }
}

fn paused(kind: PauseKind) -> RunState {
    let reason = "usage limit: You've hit your 5-hour limit".to_owned();
    let pause = Verdict::Pause { kind, until: Some(UNTIL.into()), reason };
    let mut lifecycle = Lifecycle::after(&pause);
    lifecycle.take(&pause);
    RunState { lifecycle, ..state(Status::Paused) }
}

fn view(state: &RunState, at_work: bool) -> View {
    View {
        state: state.clone(),
        figures: figures_of_sessions(state, None),
        activity: run_activity(&ActivityEvidence::from_state(state, at_work)),
        stop_reason: state.iteration_record.stops_after.then(|| "Ctrl-C".to_owned()),
        context: Some("43% (430k of 1M tokens); checkpoint at 85% in 14 turns (9 to 22)".to_owned()),
        pending_items: Vec::new(),
        journal: ".claude/plimsoll/journal.jsonl".into(),
        recorded: Some("34.1 MB".to_owned()),
        now: clock::parse("2026-01-07T07:00:00Z").unwrap(),
        width: 100,
    }
}

fn screen(state: &RunState, at_work: bool) -> String {
    screen_of(&view(state, at_work))
}

/// The screen, with the names of the moments in place of what a wall clock in this time zone shows.
fn screen_of(view: &View) -> String {
    let moments = [(STARTED, "[STARTED]"), (UNTIL, "[UNTIL]"), (ENDED, "[ENDED]"), (DEADLINE, "[DEADLINE]")];
    moments.into_iter().fold(view.lines().join("\n"), |screen, (moment, name)| {
        let shown = clock::for_people(clock::parse(moment).expect("a moment"));
        screen.replace(&one_line(&shown), name)
    })
}

/// The rows with these titles, each with the lines that continue it.
fn rows(screen: &str, titles: &[&str]) -> String {
    let mut is_wanted = false;
    let is_of_wanted_row = |line: &&str| {
        is_wanted = if line.starts_with(' ') {
            is_wanted
        } else {
            titles.iter().any(|title| line.starts_with(&format!("{title} ")))
        };
        is_wanted
    };
    screen.lines().filter(is_of_wanted_row).collect::<Vec<_>>().join("\n")
}

/// The words of one line.
fn said(screen: &str, title: &str) -> String {
    let found = screen.lines().find(|line| line.starts_with(title));
    found.unwrap_or_else(|| panic!("no {title} in\n{screen}"))[title.len()..].trim().to_owned()
}

#[test]
fn a_fresh_run_says_what_lies_before_it_and_nothing_that_it_does_not_know() {
    let fresh = RunState {
        iteration: 0,
        items: Items { completed_items: Vec::new(), ..state(Status::Running).items },
        ..state(Status::Running)
    };
    insta::assert_snapshot!(screen(&fresh, true), @"
    Dates (r1)
    Status       running: a `plimsoll run` is active
    Context      43% (430k of 1M tokens); checkpoint at 85% in 14 turns (9 to 22)
    Items        0 of 3 done, 3 open
      [ ] Item 3
      [ ] Item 4
      [ ] Item 5
    Sessions     0 of at most 50
    Cost         $0.00, 0 tokens
    Time         started [STARTED], 9 h 55 min ago
    Next         nothing: it continues by itself; watch it with plimsoll log --follow
    More         plimsoll report, plimsoll log, or .claude/plimsoll/journal.jsonl; recorded: 34.1 MB
    ");
}

#[test]
fn a_running_run_names_its_item_and_whether_anybody_is_at_work() {
    let state = state(Status::Running);
    insta::assert_snapshot!(screen(&state, true), @r#"
    Dates (r1)
    Status       running: a `plimsoll run` is active
    Current item "Item 3", session 3
    Context      43% (430k of 1M tokens); checkpoint at 85% in 14 turns (9 to 22)
    Items        2 of 5 done, 3 open
      [x] Item 1
      [x] Item 2
      [ ] Item 3
      [ ] Item 4
      [ ] Item 5
    Sessions     3 of at most 50
    Cost         $0.00, 0 tokens
    Time         started [STARTED], 9 h 55 min ago
    Next         nothing: it continues by itself; watch it with plimsoll log --follow
    More         plimsoll report, plimsoll log, or .claude/plimsoll/journal.jsonl; recorded: 34.1 MB
    "#);
    insta::assert_snapshot!(rows(&screen(&state, false), &["Status", "Next"]), @"
    Status       running: no `plimsoll run` is active (a shell loop of your own is not detected)
    Next         plimsoll run --resume
    ");
    let orphaned = View { activity: RunActivity::LeftClient(4711), ..view(&state, false) };
    insta::assert_snapshot!(rows(&screen_of(&orphaned), &["Status"]), @"Status       running: its `plimsoll run` has ended; its client (process 4711) is still running");
}

#[test]
fn a_list_that_is_whole_counts_nothing_more() {
    let with_items_up_to = |end: usize| RunState {
        items: Items { todo_items: items(3..end), ..state(Status::Running).items },
        ..state(Status::Running)
    };
    insta::assert_snapshot!(rows(&screen(&with_items_up_to(6), true), &["Items"]), @"
    Items        2 of 5 done, 3 open
      [x] Item 1
      [x] Item 2
      [ ] Item 3
      [ ] Item 4
      [ ] Item 5
    ");
    insta::assert_snapshot!(rows(&screen(&with_items_up_to(7), true), &["Items"]), @"
    Items        2 of 6 done, 4 open
      [x] Item 1
      [x] Item 2
      [ ] Item 3
      [ ] Item 4
      [ ] Item 5
          … 1 more
    ");
}

#[test]
fn the_cost_counts_the_session_at_work_with_an_estimate() {
    let of = |cost_usd: f64, tokens: u64| {
        let state = RunState {
            spent: Spent { cost_usd, tokens: (cost_usd * 1e6) as u64, ..state(Status::Running).spent },
            ..state(Status::Running)
        };
        let used = Used { cost_usd: 0.25, cost_basis: CostBasis::Estimated, tokens, sessions: 1 };
        let session = (tokens > 0).then_some(RunningSession { is_alive: true, used });
        let figures = figures_of_sessions(&state, session);
        let screen = View { figures, ..view(&state, true) }.lines().join("\n");
        [said(&screen, "Sessions"), said(&screen, "Cost")]
    };
    assert_eq!(of(0.0, 0), ["3 of at most 50", "$0.00, 0 tokens"]);
    assert_eq!(of(0.0, 910_000), ["3 of at most 50, 1 running", "about $0.25, 910k tokens"]);
    assert_eq!(of(2.0, 0), ["3 of at most 50", "$2.00, 2M tokens"]);
    assert_eq!(of(2.0, 910_000), ["3 of at most 50, 1 running", "about $2.25, 2.9M tokens"]);
}

#[test]
fn a_parallel_run_has_a_line_for_each_worker_and_no_current_item() {
    let options = RunOptions { workers: Some(WorkerOptions::default()), ..state(Status::Running).options };
    let state = RunState { options, ..state(Status::Running) };
    let worker = |worker, item, activity| WorkerFigures {
        worker,
        item,
        text: format!("Item {item}"),
        activity,
        session: 1,
        cost_usd: 0.5,
        tokens: 30_000,
        ..WorkerFigures::default()
    };
    let figures = RunFigures {
        sessions_started: 4,
        sessions_running: 1,
        items: ItemCounts { total: 5, done: 2, open: 3, in_work: 2, to_merge: 1, ..ItemCounts::default() },
        cost_usd: 1.0,
        tokens: 60_000,
        workers: vec![worker(1, 3, WorkerActivity::Working), worker(2, 4, WorkerActivity::Waiting)],
        ..RunFigures::default()
    };
    insta::assert_snapshot!(screen_of(&View { figures, ..view(&state, true) }), @r#"
    Dates (r1)
    Status       running: a `plimsoll run` is active
    Context      43% (430k of 1M tokens); checkpoint at 85% in 14 turns (9 to 22)
    Items        2 of 5 done, 3 open, 2 of them in work, 1 of them to be merged
      [x] Item 1
      [x] Item 2
      [ ] Item 3
      [ ] Item 4
      [ ] Item 5
    Workers      worker 1: 3 "Item 3": session 1, $0.50, 30k tokens
                 worker 2: 4 "Item 4": waiting, session 1, $0.50, 30k tokens
    Sessions     4 of at most 50, 1 running
    Cost         $1.00, 60k tokens
    Time         started [STARTED], 9 h 55 min ago
    Next         nothing: it continues by itself; watch it with plimsoll log --follow
    More         plimsoll report, plimsoll log, or .claude/plimsoll/journal.jsonl; recorded: 34.1 MB
    "#);
}

/// Each activity has words for what happens and for what the user does, and never those of two.
#[test]
fn each_activity_says_who_makes_the_run_go_on() {
    let until = Some(Timestamp::from(UNTIL));
    let (limit, fault) = (paused(PauseKind::Limit), paused(PauseKind::Fault));
    let running = state(Status::Running);
    let shown = [
        (&running, RunActivity::Working),
        (&running, RunActivity::Stopping),
        (&limit, RunActivity::Waiting { until: until.clone() }),
        (&limit, RunActivity::Unattended { until }),
        (&limit, RunActivity::Exiting(PauseKind::Interrupted)),
        (&fault, RunActivity::Stopped(PauseKind::Fault)),
        (&running, RunActivity::LeftItems(2)),
        (&running, RunActivity::Killed),
        (&running, RunActivity::Unobserved),
    ]
    .map(|(state, activity)| {
        let goes_on = activity.continues_by_itself();
        let stop_reason = Some("Ctrl-C".to_owned());
        let screen = screen_of(&View { activity, stop_reason, width: 200, ..view(state, true) });
        assert_eq!(screen.contains("continues by itself"), goes_on, "{screen}");
        assert!(!goes_on || !screen.contains("paused"), "{screen}");
        rows(&screen, &["Status", "Next"])
    });
    insta::assert_snapshot!(shown.join("\n\n"), @"
    Status       running: a `plimsoll run` is active
    Next         nothing: it continues by itself; watch it with plimsoll log --follow

    Status       running: a `plimsoll run` is active, and stops after this session (Ctrl-C)
    Next         nothing: it stops after this session; Ctrl-C again ends the session now; to continue later: plimsoll run --resume

    Status       waiting until [UNTIL]: usage limit: You've hit your 5-hour limit
    Next         nothing: it continues by itself; watch it with plimsoll log --follow

    Status       paused until [UNTIL] (and no `plimsoll run` is waiting): usage limit: You've hit your 5-hour limit
    Next         plimsoll run --resume

    Status       paused: interrupted by you
    Next         plimsoll run --resume

    Status       paused: usage limit: You've hit your 5-hour limit
    Next         fix the cause, then: plimsoll run --resume

    Status       running: its `plimsoll run` has ended; 2 workers are still at work
    Next         plimsoll run --resume

    Status       interrupted: its `plimsoll run` was killed, or an error ended it
    Next         plimsoll run --resume

    Status       running: no `plimsoll run` is active (a shell loop of your own is not detected)
    Next         plimsoll run --resume
    ");
}

#[test]
fn what_holds_a_running_run_up_or_ends_it_soon_is_said() {
    let with = |record: IterationRecord| {
        let state = RunState { iteration_record: record, ..state(Status::Running) };
        screen_of(&View { width: 200, ..view(&state, true) })
    };
    let trouble = ApiTrouble { since: STARTED.into(), status: 0 };
    let away = with(IterationRecord { api_trouble: Some(trouble), ..IterationRecord::default() });
    insta::assert_snapshot!(rows(&away, &["Status", "Next"]), @"
    Status       running: a `plimsoll run` is active; the API cannot be reached since [STARTED]; the client retries by itself
    Next         nothing, or check your network: the session continues once the API answers
    ");
    let stops = with(IterationRecord { stops_after: true, ..IterationRecord::default() });
    insta::assert_snapshot!(rows(&stops, &["Status", "Next"]), @"
    Status       running: a `plimsoll run` is active, and stops after this session (Ctrl-C)
    Next         nothing: it stops after this session; Ctrl-C again ends the session now; to continue later: plimsoll run --resume
    ");
}

#[test]
fn a_refused_tool_is_allowed_by_a_whole_command_that_no_width_cuts() {
    let (evidence, at) = (String::new(), STARTED.to_owned());
    let opened = Opened {
        cause: BreakerCause::PermissionDenied,
        count: 2,
        evidence,
        iteration: 2,
        at: Timestamp::from(at),
    };
    let state = RunState {
        outcomes: Outcomes {
            breaker: Breaker { opened: Some(opened), ..Breaker::default() },
            denied_tools: vec!["Bash".into()],
            ..stopped(Status::CircuitBreaker, "permission_denied: x").outcomes
        },
        options: RunOptions {
            client_arguments: ["--model", "opus", "--append-system-prompt", "Say 'it'."]
                .map(Into::into)
                .into(),
            ..stopped(Status::CircuitBreaker, "permission_denied: x").options
        },
        ..stopped(Status::CircuitBreaker, "permission_denied: x")
    };
    let lines = View { width: 40, ..view(&state, false) }.lines().join("\n");
    let command = said(&lines, "Next");
    let words = shlex::split(&command).expect("a line for a shell");
    let expected = "plimsoll run --resume --reset-breaker -- --model opus --append-system-prompt";
    assert_eq!(words.join(" "), format!("{expected} Say 'it'. --allowedTools Bash"));
    let forbidden = RunState {
        options: RunOptions {
            client_arguments: vec!["--allowedTools".into(), "Bash".into()],
            ..state.options
        },
        ..state
    };
    // The tool is allowed already.
    insta::assert_snapshot!(rows(&screen(&forbidden, false), &["Next"]), @"Next         fix what stopped it, then: plimsoll run --resume --reset-breaker");
}

#[test]
fn a_paused_run_says_until_when_and_why() {
    let state = paused(PauseKind::Limit);
    insta::assert_snapshot!(rows(&screen(&state, true), &["Status", "Sessions", "Next"]), @"
    Status       waiting until [UNTIL]: usage limit: You've hit your 5-hour limit
    Sessions     3 of at most 50, 2 pauses
    Next         nothing: it continues by itself; watch it with plimsoll log --follow
    ");
    insta::assert_snapshot!(rows(&screen(&state, false), &["Status", "Next"]), @"
    Status       paused until [UNTIL] (and no `plimsoll run` is waiting): usage limit: You've
                 hit your 5-hour limit
    Next         plimsoll run --resume
    ");
    let thrash = screen(&paused(PauseKind::Thrash), false);
    insta::assert_snapshot!(rows(&thrash, &["Next"]), @"
    Next         give it more room (a smaller item, less loaded at the start), then: plimsoll run
                 --resume
    ");
    let by_hand = RunState { lifecycle: Lifecycle::of(Status::Paused), ..paused(PauseKind::Limit) };
    assert_eq!(said(&screen(&by_hand, false), "Status"), "paused: interrupted by you");
}

#[test]
fn a_run_that_is_over_says_why_and_what_opens_it_again() {
    let shown = [
        (Status::Completed, "3 items"),
        (Status::Blocked, "no key"),
        (Status::MaxIterations, "50 iterations done"),
        (Status::Budget, "$5.00 of $5.00 spent"),
        (Status::Deadline, "the deadline was x"),
        (Status::FatalError, "authentication failed"),
        (Status::Cancelled, ""),
    ]
    .map(|(status, reason)| {
        let screen = screen(&stopped(status, reason), false);
        assert_eq!(said(&screen, "Time"), "started [STARTED], ended [ENDED], took 3 h 55 min");
        assert!(!screen.contains("Current item"), "{screen}");
        rows(&screen, &["Status", "Next"])
    });
    insta::assert_snapshot!(shown.join("\n\n"), @"
    Status       completed: 3 items
    Next         nothing: the run is done; see git log and plimsoll report

    Status       blocked: the agent cannot continue: no key
    Next         answer what blocks it, then: plimsoll run --resume

    Status       out of sessions (max_iterations): 50 iterations done
    Next         plimsoll run --resume --max-iterations N, with a larger N

    Status       out of money or tokens (budget): $5.00 of $5.00 spent
    Next         plimsoll run --resume --max-cost USD (or --max-tokens N), with more

    Status       out of time (deadline): the deadline was x
    Next         plimsoll run --resume --deadline TIME, with a later one

    Status       a fatal error (fatal_error): authentication failed
    Next         fix the cause, then: plimsoll run --resume

    Status       cancelled with `plimsoll stop`
    Next         start a new run with: plimsoll run
    ");
}

#[test]
fn an_open_breaker_shows_its_cause_its_evidence_and_the_counters() {
    let evidence =
        "3 sessions in a row changed nothing: no commit, no file, no item; the current item is \"Item 3\"";
    let opened = Opened {
        cause: BreakerCause::NoProgress,
        count: 3,
        evidence: evidence.into(),
        iteration: 3,
        at: STARTED.into(),
    };
    let state = RunState {
        outcomes: Outcomes {
            no_change_count: 3,
            error_hashes: vec!["a".into()],
            breaker: Breaker {
                refused: 1,
                opened: Some(opened),
                last_error: "E0308\nhere".into(),
                ..Breaker::default()
            },
            ..stopped(Status::CircuitBreaker, "no_progress: short").outcomes
        },
        ..stopped(Status::CircuitBreaker, "no_progress: short")
    };
    insta::assert_snapshot!(rows(&screen(&state, false), &["Status", "Trouble", "Next"]), @r#"
    Status       stuck (circuit_breaker): no_progress: 3 sessions in a row changed nothing: no commit,
                 no file, no item; the current item is "Item 3"
    Trouble      3 sessions without progress, 1 session with an error (E0308 here), 1 promise refused
    Next         fix what stopped it, then: plimsoll run --resume --reset-breaker
    "#);
}

/// As much as a run can come to, in a project whose texts are long and hostile.
fn the_longest() -> RunState {
    let long = "many words \u{1b}[31m\r\n of a model ".repeat(40);
    let history = (1..=40).map(|iteration| HistoryEntry {
        iteration,
        peak_percent: u64::from(iteration) + 50,
        checkpoint: iteration % 4 == 0,
        ..HistoryEntry::default()
    });
    let window = |percent| Some(QuotaWindow { percent, resets_at: Some(UNTIL.into()) });
    RunState {
        iteration: 40,
        context_history: history.collect(),
        context_checkpoint: Checkpoint {
            handoff_file: ".claude/handoffs/2026-01-07-0219.md".into(),
            level: Level::L2,
            percent_at_checkpoint: Some(87),
            iteration: 40,
            ..Checkpoint::default()
        },
        options: RunOptions {
            task_name: long.clone(),
            limits: Limits {
                max_cost_usd: Some(10.0),
                max_cost_per_day_usd: None,
                max_tokens: Some(5_000_000),
                deadline: Some(DEADLINE.into()),
                stop_at_limit_percent: Some(80),
            },
            ..paused(PauseKind::Limit).options
        },
        items: Items {
            completed_items: items(1..13),
            ever_done: items(3..13).into_iter().rev().collect(),
            todo_items: (13..26).map(|number| format!("Item {number} {long}")).collect(),
            set_aside: vec![format!("Item 20 {long}")],
            ..paused(PauseKind::Limit).items
        },
        outcomes: Outcomes {
            refusals: vec![format!("{}\nsecond line", one_line(&long)), "another".into()],
            no_change_count: 2,
            breaker: Breaker { refused: 1, last_error: long.clone(), ..Breaker::default() },
            ..paused(PauseKind::Limit).outcomes
        },
        spent: Spent {
            cost_usd: 4.1,
            tokens: 3_200_000,
            quota: Quota { five_hour: window(81.4), seven_day: window(40.0) },
            ..paused(PauseKind::Limit).spent
        },
        lifecycle: Lifecycle::after(&Verdict::Pause {
            kind: PauseKind::Thrash,
            until: Some(UNTIL.into()),
            reason: long,
        }),
        ..paused(PauseKind::Limit)
    }
}

#[test]
fn the_longest_run_fits_a_screen_of_any_width_and_nothing_in_it_moves_the_cursor() {
    let state = the_longest();
    for width in [40, 80, 100, 200] {
        for at_work in [true, false] {
            let lines = View { width, ..view(&state, at_work) }.lines();
            assert!(lines.len() <= 24, "{} lines:\n{}", lines.len(), lines.join("\n"));
            for line in &lines {
                assert!(line.chars().count() <= width, "{line}");
                assert!(!line.chars().any(char::is_control), "{line:?}");
            }
        }
    }
}

#[test]
fn forty_sessions_show_their_newest_peaks_their_checkpoints_and_what_they_cost() {
    let titles = ["Peaks", "Checkpoints", "Cost", "Quota", "Time", "Refused", "Trouble"];
    insta::assert_snapshot!(rows(&screen(&the_longest(), false), &titles), @r"
    Peaks        … 75% 76% 77% 78%* 79% 80% 81% 82%* 83% 84% 85% 86%* 87% 88% 89% 90%* (* checkpoint)
    Checkpoints  10 sessions, the last: .claude/handoffs/2026-01-07-0219.md (L2 at 87%, session 40)
    Cost         $4.10 of $10.00, 3.2M of 5M tokens
    Quota        five-hour 81% (resets [UNTIL]), weekly 40% (resets [UNTIL]); wai…
    Time         started [STARTED], 9 h 55 min ago, deadline [DEADLINE]
    Refused      many words \u{1b}[31m of a model many words \u{1b}[31m of a model many wo… (and 1 more)
    Trouble      2 sessions without progress, 1 promise refused
    ");
}

/// `--answer` takes the numbers that stand here.
#[test]
fn all_open_questions_are_listed_with_their_numbers_and_the_command() {
    let open = |item: &str| OpenQuestion {
        item: item.to_owned(),
        question: "Which port?".to_owned(),
        ..OpenQuestion::default()
    };
    let parked = ["Item 3", "Item 4", "Item 5"].map(open).to_vec();
    let items = Items { parked, ..state(Status::Running).items };
    let screen = screen(&RunState { items, ..state(Status::Running) }, true);
    insta::assert_snapshot!(rows(&screen, &["Question"]), @r#"
    Question     1. "Item 3": Which port?
                 2. "Item 4": Which port?
                 3. "Item 5": Which port?
                 plimsoll status --answer 1 'your answer'
    "#);
}

#[test]
fn the_last_done_items_the_next_open_ones_and_those_set_aside_are_named() {
    // The done ones are in the order in which they were ticked.
    insta::assert_snapshot!(rows(&screen(&the_longest(), false), &["Items"]), @r"
    Items        12 of 25 done, 13 open, 1 of them set aside
      [x] Item 5
      [x] Item 4
      [x] Item 3
      [ ] Item 13 many words \u{1b}[31m of a model many words \u{1b}[31m of a model many words \u{1b}[3…
      [ ] Item 14 many words \u{1b}[31m of a model many words \u{1b}[31m of a model many words \u{1b}[3…
      [ ] Item 20 many words \u{1b}[31m of a model many words \u{1b}[31m of a model many … (set aside)
          … 10 more
    ");
}

#[test]
fn a_run_without_a_to_do_list_says_what_decides() {
    let state = RunState {
        items: Items { completed_items: Vec::new(), todo_items: Vec::new(), ..state(Status::Running).items },
        ..state(Status::Running)
    };
    let screen = screen(&state, true);
    assert_eq!(said(&screen, "Items"), "none: promise and verify commands decide");
    assert_eq!(said(&screen, "Current item"), "session 3");
}

#[test]
fn words_of_every_script_fit_every_width_by_the_columns_that_they_take() {
    let scripts = [
        "Für die Prüfung fehlt der Schlüssel: »Zugangsdaten für die Testumgebung«, größere Änderungen nötig",
        "認証に失敗しました。鍵を確認してから、もう一度お試しください。",
        "ошибка: нет доступа 🚢 к тестовой среде",
    ];
    for text in scripts.map(|text| format!("{text} ").repeat(4)) {
        let state = RunState {
            options: RunOptions { task_name: text.clone(), ..stopped(Status::Blocked, &text).options },
            items: Items { todo_items: vec![text.clone()], ..stopped(Status::Blocked, &text).items },
            outcomes: Outcomes { refusals: vec![text.clone()], ..stopped(Status::Blocked, &text).outcomes },
            ..stopped(Status::Blocked, &text)
        };
        for width in 40..130 {
            for line in (View { width, ..view(&state, false) }).lines() {
                assert!(line.width() <= width, "{} of {width} columns: {line}", line.width());
            }
        }
    }
}

#[test]
fn a_share_of_a_quota_without_a_reset_is_no_matter_of_money() {
    let window =
        |resets_at: Option<&str>| Some(QuotaWindow { percent: 85.0, resets_at: resets_at.map(Into::into) });
    let out = RunState {
        options: RunOptions {
            limits: Limits { max_cost_usd: Some(10.0), stop_at_limit_percent: Some(80), ..Limits::default() },
            ..stopped(Status::Budget, "85% of the weekly quota is used").options
        },
        spent: Spent {
            quota: Quota { five_hour: None, seven_day: window(None) },
            ..stopped(Status::Budget, "85% of the weekly quota is used").spent
        },
        ..stopped(Status::Budget, "85% of the weekly quota is used")
    };
    insta::assert_snapshot!(screen(&out, false), @"
    Dates (r1)
    Status       out of quota (budget): 85% of the weekly quota is used
    Context      43% (430k of 1M tokens); checkpoint at 85% in 14 turns (9 to 22)
    Items        2 of 5 done, 3 open
      [x] Item 1
      [x] Item 2
      [ ] Item 3
      [ ] Item 4
      [ ] Item 5
    Sessions     3 of at most 50
    Cost         $0.00 of $10.00, 0 tokens
    Quota        weekly 85%; waits at 80%
    Time         started [STARTED], ended [ENDED], took 3 h 55 min
    Next         plimsoll run --resume, when the quota has room again (or with a larger --stop-at-limit
                 PERCENT)
    More         plimsoll report, plimsoll log, or .claude/plimsoll/journal.jsonl; recorded: 34.1 MB
    ");
    let of_money = screen(&RunState { spent: Spent { cost_usd: 10.0, ..out.spent }, ..out }, false);
    insta::assert_snapshot!(rows(&of_money, &["Next"]), @"Next         plimsoll run --resume --max-cost USD (or --max-tokens N), with more");
}

#[test]
fn where_progress_cannot_be_seen_it_says_so() {
    let on = |tree: Option<&str>| {
        let footing = WorktreeFingerprint { tree: tree.map(Into::into), ..WorktreeFingerprint::default() };
        let record = IterationRecord { footing: Some(footing), ..IterationRecord::default() };
        screen(&RunState { iteration_record: record, ..state(Status::Running) }, true)
    };
    insta::assert_snapshot!(rows(&on(None), &["Trouble"]), @"Trouble      progress in the files cannot be seen (too many, or git is too slow)");
    assert!(!on(Some("by-time:1")).contains("Trouble"));
}

#[test]
fn a_tick_that_was_taken_back_and_the_time_of_verify_commands_are_shown() {
    let mut state = paused(PauseKind::Limit);
    state.spent.verify_seconds = 185;
    state.outcomes.taken_back = Some(TakenBack {
        iteration: 4,
        items: vec!["Item one".into()],
        failed: vec![FailedCommand { command: "make test".into(), ..FailedCommand::default() }],
        ..TakenBack::default()
    });
    let screen = screen_of(&View { width: 200, ..view(&state, true) });
    insta::assert_snapshot!(rows(&screen, &["Taken back", "Time"]), @r#"
    Time         started [STARTED], 9 h 55 min ago, 3 min in verify commands
    Taken back   the tick of "Item one" was taken back: `make test` fails (session 4)
    "#);
}
