use crate::run_status::RunStatusView;
use plimsoll_domain::breaker::{BreakerCause, BreakerState, BreakerTrip};
use plimsoll_domain::cost::CostBasis;
use plimsoll_domain::level::Level;
use plimsoll_domain::limits::{QuotaWindow, RunLimits, SubscriptionQuotas};
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::reverted_ticks::{FailedCommand, RevertedTicks};
use plimsoll_domain::run_figures::{ItemCounts, RunFigures, WorkerActivity, WorkerFigures};
use plimsoll_domain::state::{ApiRetryState, Checkpoint, HistoryEntry, IterationRecord, WorktreeFingerprint};
use plimsoll_domain::state::{
    Lifecycle, PlanItems, ProjectAtStart, RunOptions, RunSpending, SessionOutcomes, WorkerOptions,
};
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::workers::WorkUsage;
use plimsoll_domain::{RunState, RunStatus, Timestamp, Verdict};
use plimsoll_policy::run_activity::{ActivityEvidence, RunActivity, determine_activity};
use plimsoll_policy::run_figures::{RunningSession, figures_of_sequential_run};
use plimsoll_store::clock;
use unicode_width::UnicodeWidthStr;

const STARTED: &str = "2026-01-06T21:04:11Z";
const UNTIL: &str = "2026-01-07T05:00:02Z";
const ENDED: &str = "2026-01-07T01:00:00Z";
const DEADLINE: &str = "2026-01-07T08:00:00Z";

fn numbered_items(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| format!("Item {number}")).collect()
}

fn run_state(status: RunStatus) -> RunState {
    RunState {
        run_id: "r1".into(),
        iteration: 3,
        options: RunOptions { task_name: "Dates".into(), max_iterations: 50, ..RunOptions::default() },
        lifecycle: Lifecycle::with_status(status),
        project_at_start: ProjectAtStart { started_at: STARTED.into(), ..ProjectAtStart::default() },
        plan_items: PlanItems {
            completed_items: numbered_items(1..3),
            todo_items: numbered_items(3..6),
            ..PlanItems::default()
        },
        ..RunState::default()
    }
}

fn stopped_state(status: RunStatus, reason: &str) -> RunState {
    let mut lifecycle = Lifecycle::from_verdict(&Verdict::Stop { status, reason: reason.into() });
    lifecycle.record_end_time_if_ended(ENDED.into());
    RunState { lifecycle, ..run_state(status) }
}

fn paused_state(kind: PauseKind) -> RunState {
    let reason = "usage limit: You've hit your 5-hour limit".to_owned();
    let pause = Verdict::Pause { kind, pause_end: Some(UNTIL.into()), reason };
    let mut lifecycle = Lifecycle::from_verdict(&pause);
    lifecycle.apply_verdict(&pause);
    RunState { lifecycle, ..run_state(RunStatus::Paused) }
}

fn status_view(state: &RunState, at_work: bool) -> RunStatusView {
    RunStatusView {
        state: state.clone(),
        figures: figures_of_sequential_run(state, None),
        activity: determine_activity(&ActivityEvidence::from_state_without_process_checks(state, at_work)),
        stop_reason: state.iteration_record.stops_run_after_session.then(|| "Ctrl-C".to_owned()),
        context_usage: Some("43% (430k of 1M tokens); checkpoint at 85% in 14 turns (9 to 22)".to_owned()),
        pending_item_lines: Vec::new(),
        journal_path: ".claude/plimsoll/journal.jsonl".into(),
        disk_usage: Some("34.1 MB".to_owned()),
        now: clock::parse_rfc3339("2026-01-07T07:00:00Z").unwrap(),
        max_line_width: 100,
    }
}

fn render_screen(state: &RunState, at_work: bool) -> String {
    render_view_screen(&status_view(state, at_work))
}

/// Renders the screen with names in place of local times, which depend on the time zone.
fn render_view_screen(view: &RunStatusView) -> String {
    let moments = [(STARTED, "[STARTED]"), (UNTIL, "[UNTIL]"), (ENDED, "[ENDED]"), (DEADLINE, "[DEADLINE]")];
    moments.into_iter().fold(view.render_lines().join("\n"), |screen, (moment, name)| {
        let local_time =
            clock::format_local_time_with_seconds(clock::parse_rfc3339(moment).expect("a moment"));
        screen.replace(&to_safe_single_line(&local_time), name)
    })
}

/// Returns the rows with these titles, including their continuation lines.
fn rows(screen: &str, titles: &[&str]) -> String {
    let mut is_wanted = false;
    let belongs_to_wanted_row = |line: &&str| {
        is_wanted = if line.starts_with(' ') {
            is_wanted
        } else {
            titles.iter().any(|title| line.starts_with(&format!("{title} ")))
        };
        is_wanted
    };
    screen.lines().filter(belongs_to_wanted_row).collect::<Vec<_>>().join("\n")
}

/// Returns the text of the line with this title.
fn line_text(screen: &str, title: &str) -> String {
    let line = screen.lines().find(|line| line.starts_with(title));
    line.unwrap_or_else(|| panic!("no {title} in\n{screen}"))[title.len()..].trim().to_owned()
}

#[test]
fn a_fresh_run_shows_its_open_items_and_no_unknown_facts() {
    let fresh = RunState {
        iteration: 0,
        plan_items: PlanItems { completed_items: Vec::new(), ..run_state(RunStatus::Running).plan_items },
        ..run_state(RunStatus::Running)
    };
    insta::assert_snapshot!(render_screen(&fresh, true), @"
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
fn a_running_run_names_its_item_and_whether_it_is_active() {
    let state = run_state(RunStatus::Running);
    insta::assert_snapshot!(render_screen(&state, true), @r#"
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
    Cost         unknown, 0 tokens
    Time         started [STARTED], 9 h 55 min ago
    Left         no estimate yet
    Next         nothing: it continues by itself; watch it with plimsoll log --follow
    More         plimsoll report, plimsoll log, or .claude/plimsoll/journal.jsonl; recorded: 34.1 MB
    "#);
    insta::assert_snapshot!(rows(&render_screen(&state, false), &["Status", "Next"]), @"
    Status       running: no `plimsoll run` is active (a shell loop of your own is not detected)
    Next         plimsoll run --resume
    ");
    let orphaned =
        RunStatusView { activity: RunActivity::OrphanedClient(4711), ..status_view(&state, false) };
    insta::assert_snapshot!(rows(&render_view_screen(&orphaned), &["Status"]), @"Status       running: its `plimsoll run` has ended; its client (process 4711) is still running");
}

#[test]
fn a_complete_list_has_no_count_of_hidden_items() {
    let with_items_up_to = |end: usize| RunState {
        plan_items: PlanItems {
            todo_items: numbered_items(3..end),
            ..run_state(RunStatus::Running).plan_items
        },
        ..run_state(RunStatus::Running)
    };
    insta::assert_snapshot!(rows(&render_screen(&with_items_up_to(6), true), &["Items"]), @"
    Items        2 of 5 done, 3 open
      [x] Item 1
      [x] Item 2
      [ ] Item 3
      [ ] Item 4
      [ ] Item 5
    ");
    insta::assert_snapshot!(rows(&render_screen(&with_items_up_to(7), true), &["Items"]), @"
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
fn the_cost_includes_an_estimate_for_the_running_session() {
    let sessions_and_cost = |cost_usd: f64, tokens: u64| {
        let state = RunState {
            spending: RunSpending {
                cost_usd,
                tokens: (cost_usd * 1e6) as u64,
                ..run_state(RunStatus::Running).spending
            },
            ..run_state(RunStatus::Running)
        };
        let used = WorkUsage { cost_usd: 0.25, cost_basis: CostBasis::Estimated, tokens, sessions: 1 };
        let session = (tokens > 0).then_some(RunningSession { is_alive: true, usage: used });
        let figures = figures_of_sequential_run(&state, session);
        let screen = RunStatusView { figures, ..status_view(&state, true) }.render_lines().join("\n");
        [line_text(&screen, "Sessions"), line_text(&screen, "Cost")]
    };
    assert_eq!(sessions_and_cost(0.0, 0), ["3 of at most 50", "unknown, 0 tokens"]);
    assert_eq!(sessions_and_cost(0.0, 910_000), ["3 of at most 50, 1 running", "about $0.25, 910k tokens"]);
    assert_eq!(sessions_and_cost(2.0, 0), ["3 of at most 50", "$2.00, 2M tokens"]);
    assert_eq!(sessions_and_cost(2.0, 910_000), ["3 of at most 50, 1 running", "about $2.25, 2.9M tokens"]);
}

#[test]
fn a_parallel_run_has_a_line_for_each_worker_and_no_current_item() {
    let options =
        RunOptions { workers: Some(WorkerOptions::default()), ..run_state(RunStatus::Running).options };
    let state = RunState { options, ..run_state(RunStatus::Running) };
    let worker = |worker, item, activity| WorkerFigures {
        worker_number: worker,
        item_number: item,
        item_text: format!("Item {item}"),
        activity,
        session_number: 1,
        cost_usd: 0.5,
        tokens: 30_000,
        ..WorkerFigures::default()
    };
    let figures = RunFigures {
        sessions_started: 4,
        sessions_running: 1,
        items: ItemCounts {
            total: 5,
            done: 2,
            open: 3,
            in_progress: 2,
            waiting_to_merge: 1,
            ..ItemCounts::default()
        },
        cost_usd: 1.0,
        tokens: 60_000,
        workers: vec![worker(1, 3, WorkerActivity::Working), worker(2, 4, WorkerActivity::Waiting)],
        ..RunFigures::default()
    };
    insta::assert_snapshot!(render_view_screen(&RunStatusView { figures, ..status_view(&state, true) }), @r#"
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
    Left         no estimate yet
    Next         nothing: it continues by itself; watch it with plimsoll log --follow
    More         plimsoll report, plimsoll log, or .claude/plimsoll/journal.jsonl; recorded: 34.1 MB
    "#);
}

/// Each activity says what happens and what the user does next, without mixing in the text of another.
#[test]
fn each_activity_says_whether_the_run_continues_by_itself() {
    let until = Some(Timestamp::from(UNTIL));
    let (limit, fault) = (paused_state(PauseKind::Limit), paused_state(PauseKind::Fault));
    let running = run_state(RunStatus::Running);
    let screens = [
        (&running, RunActivity::Working),
        (&running, RunActivity::Stopping),
        (&limit, RunActivity::Waiting { wait_ends_at: until.clone() }),
        (&limit, RunActivity::WaitingWithoutRun { wait_ends_at: until }),
        (&limit, RunActivity::Exiting(PauseKind::Interrupted)),
        (&fault, RunActivity::Stopped(PauseKind::Fault)),
        (&running, RunActivity::OrphanedItemRuns(2)),
        (&running, RunActivity::Killed),
        (&running, RunActivity::Unobserved),
    ]
    .map(|(state, activity)| {
        let goes_on = activity.continues_by_itself();
        let stop_reason = Some("Ctrl-C".to_owned());
        let screen = render_view_screen(&RunStatusView {
            activity,
            stop_reason,
            max_line_width: 200,
            ..status_view(state, true)
        });
        assert_eq!(screen.contains("continues by itself"), goes_on, "{screen}");
        assert!(!goes_on || !screen.contains("paused"), "{screen}");
        rows(&screen, &["Status", "Next"])
    });
    insta::assert_snapshot!(screens.join("\n\n"), @"
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
fn a_running_run_shows_api_errors_and_a_pending_stop() {
    let screen_with_record = |record: IterationRecord| {
        let state = RunState { iteration_record: record, ..run_state(RunStatus::Running) };
        render_view_screen(&RunStatusView { max_line_width: 200, ..status_view(&state, true) })
    };
    let trouble = ApiRetryState { failing_since: STARTED.into(), http_status: 0 };
    let api_unreachable =
        screen_with_record(IterationRecord { api_retry: Some(trouble), ..IterationRecord::default() });
    insta::assert_snapshot!(rows(&api_unreachable, &["Status", "Next"]), @"
    Status       running: a `plimsoll run` is active; the API cannot be reached since [STARTED]; Claude Code retries by itself
    Next         nothing, or check your network: the session continues once the API answers
    ");
    let stops =
        screen_with_record(IterationRecord { stops_run_after_session: true, ..IterationRecord::default() });
    insta::assert_snapshot!(rows(&stops, &["Status", "Next"]), @"
    Status       running: a `plimsoll run` is active, and stops after this session (Ctrl-C)
    Next         nothing: it stops after this session; Ctrl-C again ends the session now; to continue later: plimsoll run --resume
    ");
}

#[test]
fn the_command_that_allows_a_refused_tool_is_never_cut() {
    let (evidence, opened_at) = (String::new(), STARTED.to_owned());
    let opened = BreakerTrip {
        cause: BreakerCause::PermissionDenied,
        failure_count: 2,
        evidence,
        iteration: 2,
        tripped_at: Timestamp::from(opened_at),
    };
    let state = RunState {
        outcomes: SessionOutcomes {
            breaker: BreakerState { trip: Some(opened), ..BreakerState::default() },
            denied_tools: vec!["Bash".into()],
            ..stopped_state(RunStatus::CircuitBreaker, "permission_denied: x").outcomes
        },
        options: RunOptions {
            client_arguments: ["--model", "opus", "--append-system-prompt", "Say 'it'."]
                .map(Into::into)
                .into(),
            ..stopped_state(RunStatus::CircuitBreaker, "permission_denied: x").options
        },
        ..stopped_state(RunStatus::CircuitBreaker, "permission_denied: x")
    };
    let lines = RunStatusView { max_line_width: 40, ..status_view(&state, false) }.render_lines().join("\n");
    let command = line_text(&lines, "Next");
    let arguments = shlex::split(&command).expect("a line for a shell");
    let expected = "plimsoll run --resume --reset-breaker -- --model opus --append-system-prompt";
    assert_eq!(arguments.join(" "), format!("{expected} Say 'it'. --allowedTools Bash"));
    let already_allowed = RunState {
        options: RunOptions {
            client_arguments: vec!["--allowedTools".into(), "Bash".into()],
            ..state.options
        },
        ..state
    };
    // The tool is already allowed.
    insta::assert_snapshot!(rows(&render_screen(&already_allowed, false), &["Next"]), @"Next         fix what stopped it, then: plimsoll run --resume --reset-breaker");
}

#[test]
fn a_paused_run_says_until_when_and_why() {
    let state = paused_state(PauseKind::Limit);
    insta::assert_snapshot!(rows(&render_screen(&state, true), &["Status", "Sessions", "Next"]), @"
    Status       waiting until [UNTIL]: usage limit: You've hit your 5-hour limit
    Sessions     3 of at most 50, 2 pauses
    Next         nothing: it continues by itself; watch it with plimsoll log --follow
    ");
    insta::assert_snapshot!(rows(&render_screen(&state, false), &["Status", "Next"]), @"
    Status       paused until [UNTIL] (and no `plimsoll run` is waiting): usage limit: You've
                 hit your 5-hour limit
    Next         plimsoll run --resume
    ");
    let thrash = render_screen(&paused_state(PauseKind::Thrash), false);
    insta::assert_snapshot!(rows(&thrash, &["Next"]), @"
    Next         give it more room (a smaller item, less loaded at the start), then: plimsoll run
                 --resume
    ");
    let set_by_hand =
        RunState { lifecycle: Lifecycle::with_status(RunStatus::Paused), ..paused_state(PauseKind::Limit) };
    assert_eq!(line_text(&render_screen(&set_by_hand, false), "Status"), "paused: interrupted by you");
}

#[test]
fn an_ended_run_says_why_and_how_to_resume_it() {
    let screens = [
        (RunStatus::Completed, "3 items"),
        (RunStatus::Blocked, "no key"),
        (RunStatus::MaxIterations, "50 iterations done"),
        (RunStatus::Budget, "$5.00 of $5.00 spent"),
        (RunStatus::Deadline, "the deadline was x"),
        (RunStatus::FatalError, "authentication failed"),
        (RunStatus::Canceled, ""),
    ]
    .map(|(status, reason)| {
        let screen = render_screen(&stopped_state(status, reason), false);
        assert_eq!(line_text(&screen, "Time"), "started [STARTED], ended [ENDED], took 3 h 55 min");
        assert!(!screen.contains("Current item"), "{screen}");
        rows(&screen, &["Status", "Next"])
    });
    insta::assert_snapshot!(screens.join("\n\n"), @"
    Status       completed: 3 items
    Next         nothing: the run is done; see git log and plimsoll report

    Status       blocked: the agent cannot continue: no key
    Next         answer what blocks it, then: plimsoll run --resume

    Status       out of sessions (max_iterations): 50 sessions done
    Next         plimsoll run --resume --max-iterations N, with a larger N

    Status       out of money or tokens (budget): $5.00 of $5.00 spent
    Next         plimsoll run --resume --max-cost USD (or --max-tokens N), with more

    Status       out of time (deadline): the deadline was x
    Next         plimsoll run --resume --deadline TIME, with a later one

    Status       a fatal error (fatal_error): authentication failed
    Next         fix the cause, then: plimsoll run --resume

    Status       canceled with `plimsoll stop`
    Next         start a new run with: plimsoll run
    ");
}

#[test]
fn an_open_breaker_shows_its_cause_its_evidence_and_the_counters() {
    let evidence =
        "3 sessions in a row changed nothing: no commit, no file, no item; the current item is \"Item 3\"";
    let opened = BreakerTrip {
        cause: BreakerCause::NoProgress,
        failure_count: 3,
        evidence: evidence.into(),
        iteration: 3,
        tripped_at: STARTED.into(),
    };
    let state = RunState {
        outcomes: SessionOutcomes {
            no_change_count: 3,
            error_hashes: vec!["a".into()],
            breaker: BreakerState {
                refused_promise_count: 1,
                trip: Some(opened),
                last_error: "E0308\nhere".into(),
                ..BreakerState::default()
            },
            ..stopped_state(RunStatus::CircuitBreaker, "no_progress: short").outcomes
        },
        ..stopped_state(RunStatus::CircuitBreaker, "no_progress: short")
    };
    insta::assert_snapshot!(rows(&render_screen(&state, false), &["Status", "Problems", "Next"]), @r#"
    Status       stuck (circuit_breaker): no_progress: 3 sessions in a row changed nothing: no commit,
                 no file, no item; the current item is "Item 3"
    Problems     3 sessions without progress, 1 session with an error (E0308 here), 1 promise refused
    Next         fix what stopped it, then: plimsoll run --resume --reset-breaker
    "#);
}

/// Returns the longest possible run, in a project whose texts are long and hostile.
fn longest_run_state() -> RunState {
    let long = "many words \u{1b}[31m\r\n of a model ".repeat(40);
    let history = (1..=40).map(|iteration| HistoryEntry {
        iteration,
        peak_percent: u64::from(iteration) + 50,
        ended_at_checkpoint: iteration % 4 == 0,
        ..HistoryEntry::default()
    });
    let window = |percent| Some(QuotaWindow { used_percent: percent, resets_at: Some(UNTIL.into()) });
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
            limits: RunLimits {
                max_cost_usd: Some(10.0),
                max_cost_per_day_usd: None,
                max_tokens: Some(5_000_000),
                deadline: Some(DEADLINE.into()),
                stop_at_limit_percent: Some(80),
            },
            ..paused_state(PauseKind::Limit).options
        },
        plan_items: PlanItems {
            completed_items: numbered_items(1..13),
            ever_ticked_items: numbered_items(3..13).into_iter().rev().collect(),
            todo_items: (13..26).map(|number| format!("Item {number} {long}")).collect(),
            set_aside_items: vec![format!("Item 20 {long}")],
            ..paused_state(PauseKind::Limit).plan_items
        },
        outcomes: SessionOutcomes {
            refusals: vec![format!("{}\nsecond line", to_safe_single_line(&long)), "another".into()],
            no_change_count: 2,
            breaker: BreakerState {
                refused_promise_count: 1,
                last_error: long.clone(),
                ..BreakerState::default()
            },
            ..paused_state(PauseKind::Limit).outcomes
        },
        spending: RunSpending {
            cost_usd: 4.1,
            tokens: 3_200_000,
            quota: SubscriptionQuotas { five_hour: window(81.4), seven_day: window(40.0) },
            ..paused_state(PauseKind::Limit).spending
        },
        lifecycle: Lifecycle::from_verdict(&Verdict::Pause {
            kind: PauseKind::Thrash,
            pause_end: Some(UNTIL.into()),
            reason: long,
        }),
        ..paused_state(PauseKind::Limit)
    }
}

#[test]
fn the_longest_run_fits_any_width_without_control_characters() {
    let state = longest_run_state();
    for width in [40, 80, 100, 200] {
        for at_work in [true, false] {
            let lines =
                RunStatusView { max_line_width: width, ..status_view(&state, at_work) }.render_lines();
            assert!(lines.len() <= 25, "{} lines:\n{}", lines.len(), lines.join("\n"));
            for line in &lines {
                assert!(line.chars().count() <= width, "{line}");
                assert!(!line.chars().any(char::is_control), "{line:?}");
            }
        }
    }
}

#[test]
fn forty_sessions_show_the_newest_peaks_checkpoints_and_cost() {
    let titles = ["Peaks", "Checkpoints", "Cost", "Quota", "Time", "Refused", "Problems"];
    insta::assert_snapshot!(rows(&render_screen(&longest_run_state(), false), &titles), @r"
    Peaks        … 75% 76% 77% 78%* 79% 80% 81% 82%* 83% 84% 85% 86%* 87% 88% 89% 90%* (* checkpoint)
    Checkpoints  10 sessions, the last: .claude/handoffs/2026-01-07-0219.md (L2 at 87%, session 40)
    Cost         $4.10 of $10.00, 3.2M of 5M tokens
    Quota        five-hour 81% (resets [UNTIL]), weekly 40% (resets [UNTIL]); wai…
    Time         started [STARTED], 9 h 55 min ago, deadline [DEADLINE]
    Refused      many words \u{1b}[31m of a model many words \u{1b}[31m of a model many wo… (and 1 more)
    Problems     2 sessions without progress, 1 promise refused
    ");
}

/// `--answer` takes the numbers that are shown here.
#[test]
fn all_open_questions_are_listed_with_their_numbers_and_the_command() {
    let open = |item: &str| OpenQuestion {
        item: item.to_owned(),
        question: "Which port?".to_owned(),
        ..OpenQuestion::default()
    };
    let parked = ["Item 3", "Item 4", "Item 5"].map(open).to_vec();
    let items = PlanItems { parked_questions: parked, ..run_state(RunStatus::Running).plan_items };
    let screen = render_screen(&RunState { plan_items: items, ..run_state(RunStatus::Running) }, true);
    insta::assert_snapshot!(rows(&screen, &["Question"]), @r#"
    Question     1. "Item 3": Which port?
                 2. "Item 4": Which port?
                 3. "Item 5": Which port?
                 plimsoll status --answer 1 'your answer'
    "#);
}

#[test]
fn last_done_next_open_and_set_aside_items_are_listed() {
    // Done items are in the order in which they were ticked.
    insta::assert_snapshot!(rows(&render_screen(&longest_run_state(), false), &["Items"]), @r"
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
fn a_run_without_a_plan_says_what_decides_completion() {
    let state = RunState {
        plan_items: PlanItems {
            completed_items: Vec::new(),
            todo_items: Vec::new(),
            ..run_state(RunStatus::Running).plan_items
        },
        ..run_state(RunStatus::Running)
    };
    let screen = render_screen(&state, true);
    assert_eq!(line_text(&screen, "Items"), "none: promise and verify commands decide");
    assert_eq!(line_text(&screen, "Current item"), "session 3");
}

#[test]
fn texts_of_every_script_fit_the_width_in_columns() {
    let scripts = [
        "Für die Prüfung fehlt der Schlüssel: »Zugangsdaten für die Testumgebung«, größere Änderungen nötig",
        "認証に失敗しました。鍵を確認してから、もう一度お試しください。",
        "ошибка: нет доступа 🚢 к тестовой среде",
    ];
    for text in scripts.map(|text| format!("{text} ").repeat(4)) {
        let state = RunState {
            options: RunOptions {
                task_name: text.clone(),
                ..stopped_state(RunStatus::Blocked, &text).options
            },
            plan_items: PlanItems {
                todo_items: vec![text.clone()],
                ..stopped_state(RunStatus::Blocked, &text).plan_items
            },
            outcomes: SessionOutcomes {
                refusals: vec![text.clone()],
                ..stopped_state(RunStatus::Blocked, &text).outcomes
            },
            ..stopped_state(RunStatus::Blocked, &text)
        };
        for width in 40..130 {
            for line in (RunStatusView { max_line_width: width, ..status_view(&state, false) }).render_lines()
            {
                assert!(line.width() <= width, "{} of {width} columns: {line}", line.width());
            }
        }
    }
}

#[test]
fn an_exhausted_quota_is_not_shown_as_an_exhausted_cost_limit() {
    let window = |resets_at: Option<&str>| {
        Some(QuotaWindow { used_percent: 85.0, resets_at: resets_at.map(Into::into) })
    };
    let out_of_quota = RunState {
        options: RunOptions {
            limits: RunLimits {
                max_cost_usd: Some(10.0),
                stop_at_limit_percent: Some(80),
                ..RunLimits::default()
            },
            ..stopped_state(RunStatus::Budget, "85% of the weekly quota is used").options
        },
        spending: RunSpending {
            quota: SubscriptionQuotas { five_hour: None, seven_day: window(None) },
            ..stopped_state(RunStatus::Budget, "85% of the weekly quota is used").spending
        },
        ..stopped_state(RunStatus::Budget, "85% of the weekly quota is used")
    };
    insta::assert_snapshot!(render_screen(&out_of_quota, false), @"
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
    Cost         unknown (limit $10.00), 0 tokens
    Quota        weekly 85%; waits at 80%
    Time         started [STARTED], ended [ENDED], took 3 h 55 min
    Next         plimsoll run --resume, when the quota has room again (or with a larger --stop-at-limit
                 PERCENT)
    More         plimsoll report, plimsoll log, or .claude/plimsoll/journal.jsonl; recorded: 34.1 MB
    ");
    let out_of_money = render_screen(
        &RunState { spending: RunSpending { cost_usd: 10.0, ..out_of_quota.spending }, ..out_of_quota },
        false,
    );
    insta::assert_snapshot!(rows(&out_of_money, &["Next"]), @"Next         plimsoll run --resume --max-cost USD (or --max-tokens N), with more");
}

#[test]
fn the_screen_says_if_progress_cannot_be_determined() {
    let screen_with_tree = |tree: Option<&str>| {
        let fingerprint =
            WorktreeFingerprint { files_digest: tree.map(Into::into), ..WorktreeFingerprint::default() };
        let record = IterationRecord { fingerprint_before: Some(fingerprint), ..IterationRecord::default() };
        render_screen(&RunState { iteration_record: record, ..run_state(RunStatus::Running) }, true)
    };
    insta::assert_snapshot!(rows(&screen_with_tree(None), &["Problems"]), @"Problems     progress in the files cannot be seen (too many, or git is too slow)");
    assert!(!screen_with_tree(Some("by-time:1")).contains("Problems"));
}

#[test]
fn reverted_ticks_and_the_time_of_verify_commands_are_shown() {
    let mut state = paused_state(PauseKind::Limit);
    state.spending.verify_seconds = 185;
    state.outcomes.reverted_ticks = Some(RevertedTicks {
        iteration: 4,
        items: vec!["Item one".into()],
        failed_commands: vec![FailedCommand { command: "make test".into(), ..FailedCommand::default() }],
        ..RevertedTicks::default()
    });
    let screen = render_view_screen(&RunStatusView { max_line_width: 200, ..status_view(&state, true) });
    insta::assert_snapshot!(rows(&screen, &["Taken back", "Time"]), @r#"
    Time         started [STARTED], 9 h 55 min ago, 3 min in verify commands
    Taken back   the tick of "Item one" was taken back: `make test` fails (session 4)
    "#);
}
