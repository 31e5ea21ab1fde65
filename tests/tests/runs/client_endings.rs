//! Every way in which `claude -p` (2.1.329) was seen to end, and what the run does next. The session that ends so is the real
//! client's; the one that goes on after it is replayed.

use plimsoll_domain::ProcessExit;
use plimsoll_policy::session_ending::classify_ending;
use plimsoll_protocol::result::ClientResult;
use plimsoll_testkit::client::CLIENT_VERSION;
use plimsoll_testkit::fixtures;
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::story::{Turn, tick};
use plimsoll_testkit::world::{Finished, Running, World};
use plimsoll_tests::{LIFELIKE, ScriptedAgent, events, honest, journal, side_by_side, world};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const STATE: &str = ".claude/ralph-state.json";
const PLAN: &str = "# Plan\n\n- [ ] Item three\n";
/// Work that is left uncommitted when the session ends.
const CHANGE: &str = "sed -i '45,80s/$/ changed/' src/dates.txt";
/// How a resume names it.
const ROW: &str = "| src/dates.txt | 45-80 | ";
const OPUS: [&str; 2] = ["--model", "opus"];
/// A window of 200,000 tokens that our hooks take for a larger one, so that the client comes to its end first.
const SONNET: [&str; 2] = ["--model", "claude-sonnet-4-6"];
const TAKEN_FOR_LARGER: &str = r#"{"windows": {"claude-sonnet-4-6": 1000000}}"#;
/// So long a whole run may take on a busy computer.
const LIMIT: Duration = Duration::from_secs(60);

// ---- a run whose first session goes wrong ----

/// The world of a plan with one item; its first session takes these steps (the last one repeats), and honest
/// ones come after it.
fn odd(steps: Vec<Step>) -> (World, ScriptedModel) {
    let (mut first, mut taken) = (None, 0);
    odd_as(move |turn| {
        let session = session_of(turn.request);
        if *first.get_or_insert_with(|| session.clone()) != session {
            return honest(turn).delay(LIFELIKE);
        }
        taken += 1;
        steps.get(taken - 1).or(steps.last()).expect("a step").clone()
    })
}

fn odd_as(tell: impl FnMut(&Turn<'_>) -> Step + Send + 'static) -> (World, ScriptedModel) {
    let mut world = world(PLAN);
    let model = ScriptedAgent::new(tell).with_real_client_in(&[1]).start(&mut world);
    (world, model)
}

/// All sessions are the real client's: what these worlds say to it was not recorded.
fn real_to_the_end(world: &mut World) {
    world.use_client(CLIENT_VERSION);
}

fn begin(world: &World, ours: &[&str], client: &[&str]) -> Running {
    let allowed = ["--allowedTools", "Bash", "ScheduleWakeup"];
    let all = [&["run", "--objective", "Do the plan."], ours, &["--"], client, &allowed].concat();
    world.plimsoll(&all).spawn()
}

fn run(world: &World, ours: &[&str], client: &[&str]) -> Finished {
    begin(world, ours, client).wait(LIMIT)
}

fn resume(world: &World) -> Finished {
    world.plimsoll(&["run", "--resume"]).timeout(LIMIT).run()
}

fn session_of(request: &Request) -> String {
    request.header("x-claude-code-session-id").expect("a session").to_owned()
}

/// What became of each session: its iteration, its ending with the details, its marker.
fn told(world: &World) -> Vec<String> {
    let journal = journal(world);
    let line = |entry: &&Value| {
        let ending = &entry["ending"];
        let marker = entry["marker"].as_str().expect("a marker");
        let marker = marker.split_once("|.claude/handoffs/").map_or(marker, |(start, _)| start);
        let words = [&ending["ending"], &ending["detail"]].map(|part| part.as_str().unwrap_or("-"));
        format!("{} {}: {} → {marker}", entry["iteration"], words[0], words[1])
    };
    events(&journal, "verdict").iter().map(line).collect()
}

/// The run ended well, after a first session that was judged like this (its words may go on), and what that
/// session left unfinished was handed on and done once.
fn assert_goes_on(world: &World, model: &ScriptedModel, finished: &Finished, first: &str) {
    let told = told(world);
    let words = format!("{first}\n{told:#?}\n{finished:#?}");
    assert_eq!(finished.code, Some(0), "{words}");
    assert_eq!(told.len(), 2, "{words}");
    assert!(told[0].starts_with(first), "{words}");
    let counts = if told[0].contains("RALPH_PAUSE") { 1 } else { 2 };
    assert_eq!(told[1], format!("{counts} completed: - → RALPH_STOP|completed|1 item"), "{words}");
    assert_eq!(world.json(STATE)["status"], "completed");
    assert_eq!(world.json(STATE)["pauses"], 2 - counts, "{words}");
    assert_eq!(world.read("work.txt"), "Item three\n", "{words}");
    let dates = world.read("src/dates.txt");
    let changed = dates.lines().filter(|line| line.ends_with(" changed")).count();
    let requests = model.main_requests();
    let last = requests.last().map(session_of).expect("requests");
    let second = requests.iter().find(|request| session_of(request) == last).expect("a second session");
    assert_eq!(second.text().contains(ROW), changed == 36, "the next session is told of the change; {words}");
    assert!(changed == 36 || changed == 0 && !dates.contains("changed"), "{words}");
}

/// The same for several runs, each with the steps of its first session.
fn assert_each_goes_on(cases: Vec<(Vec<Step>, &str)>) {
    side_by_side(&cases, |(steps, first)| {
        let (world, model) = odd(steps.clone());
        assert_goes_on(&world, &model, &run(&world, &[], &OPUS), first);
    });
}

fn change() -> Step {
    Step::bash(CHANGE)
}

// ---- what the client's result tells ----

#[test]
fn every_recorded_result_is_known_for_what_it_is() {
    let known = [
        ("api_error.529", "overloaded"),
        ("blocking_limit", "window_full"),
        ("budget", "client_limit"),
        ("hook_stopped.post_tool_batch", "hook_stopped"),
        ("hook_stopped.post_tool_use", "hook_stopped"),
        ("max_turns", "client_limit"),
        ("model_1m_suffix", "completed"),
        ("model_200k", "completed"),
        ("prompt_blocked", "completed"),
        ("prompt_too_long", "window_full"),
        ("rapid_refill_breaker", "window_full"),
        ("sigint", "interrupted"),
        ("stop_block_cap", "completed"),
        ("stop_hook_prevented", "hook_stopped"),
        ("success", "completed"),
        ("tool_deferred", "failed"),
    ];
    let files = std::fs::read_dir(fixtures().join("result")).expect("recorded results").flatten();
    let found = files.map(|file| {
        let result = ClientResult::parse(&std::fs::read(file.path()).expect("a file")).expect("a result");
        // Whatever the exit status says: it proves nothing.
        let words = [0, 1].map(|code| {
            classify_ending(Some(&result), ProcessExit { code: Some(code), signal: None }).as_str()
        });
        assert_eq!(words[0], words[1]);
        (file.path().file_stem().expect("a name").to_string_lossy().into_owned(), words[0])
    });
    let known = known.map(|(name, word)| (name.to_owned(), word));
    assert_eq!(found.collect::<BTreeMap<_, _>>(), BTreeMap::from(known));
}

#[test]
fn a_session_that_ends_its_turn_or_is_stopped_by_our_hook_is_followed_by_the_next() {
    let l3 = vec![change().usage(600_000).delay(LIFELIKE), Step::bash("echo").usage(970_000).delay(LIFELIKE)];
    assert_each_goes_on(vec![
        (vec![Step::text("Not yet.")], "1 completed: - → RALPH_CONTINUE|next|1 open item"),
        (l3, "1 hook_stopped: - → RALPH_CONTINUE|checkpoint"),
    ]);
}

// ---- the window ----

#[test]
fn a_client_blocked_by_a_full_window_is_followed_by_a_fresh_one() {
    let (mut world, model) = odd(vec![change().usage(178_000), Step::text("never asked for")]);
    real_to_the_end(&mut world);
    world.set_env("DISABLE_AUTO_COMPACT", "1");
    world.write(".claude/plimsoll.json", TAKEN_FOR_LARGER);
    let finished = run(&world, &[], &SONNET);
    assert_goes_on(&world, &model, &finished, "1 window_full: blocking_limit → RALPH_CONTINUE|checkpoint");
    assert_eq!(model.main_requests().len(), 3);
}

#[test]
fn a_window_that_fills_up_again_after_each_compaction_is_followed_by_a_fresh_one() {
    let (mut world, model) = odd(vec![change().usage(168_000), Step::bash("echo on").usage(168_000)]);
    real_to_the_end(&mut world);
    world.write(".claude/plimsoll.json", TAKEN_FOR_LARGER);
    let finished = run(&world, &[], &SONNET);
    let first = "1 window_full: rapid_refill_breaker → RALPH_CONTINUE|checkpoint";
    assert_goes_on(&world, &model, &finished, first);
    assert_eq!(finished.stdout.matches("the client has compacted").count(), 3, "{finished:?}");
}

#[test]
fn a_prompt_that_is_too_long_is_followed_by_a_fresh_session() {
    let too_long = || Step::error(400, "prompt is too long: 1010000 tokens > 1000000 maximum");
    let at_once =
        "1 window_full: prompt_too_long → RALPH_CONTINUE|next|the window was full (prompt_too_long)";
    assert_each_goes_on(vec![(vec![too_long()], at_once)]);
    let (mut world, model) = odd(vec![change(), too_long()]);
    real_to_the_end(&mut world);
    world.set_env("DISABLE_AUTO_COMPACT", "1");
    let finished = run(&world, &[], &OPUS);
    assert_goes_on(&world, &model, &finished, "1 window_full: prompt_too_long → RALPH_CONTINUE|checkpoint");
}

// ---- the client's own bounds ----

#[test]
fn a_session_that_runs_into_a_bound_of_the_client_is_followed_by_the_next() {
    let cases = [
        (["--max-turns", "2"], 0, "1 client_limit: --max-turns → RALPH_CONTINUE|checkpoint"),
        // Mostly the client does not even run the tool of the message that was too dear. Where it was quick with that, its hooks
        // reach L2.
        (["--max-budget-usd", "1"], 600_000, "1 client_limit: --max-budget-usd → RALPH_CONTINUE|"),
    ];
    side_by_side(&cases, |(bound, price, first)| {
        let (world, model) = odd(vec![change().usage_parts(*price, 0, 0), Step::bash("echo on")]);
        let finished = run(&world, &[], &[OPUS, *bound].concat());
        assert_goes_on(&world, &model, &finished, first);
    });
}

// ---- what the API answers ----

#[test]
fn what_no_session_can_mend_ends_the_run_with_its_reason_until_it_is_mended() {
    let cases = [
        (401, "invalid x-api-key", "authentication failed: Invalid API key"),
        (403, "No access", "authentication failed: Failed to authenticate. API Error: 403 No access"),
        (400, "Your credit balance is too low", "billing: Credit balance is too low"),
        (404, "model: claude-none", "model not found: There's an issue with the selected model"),
    ];
    side_by_side(&cases, |(status, says, reason)| {
        let (world, model) = odd(vec![change(), Step::error(*status, *says)]);
        let finished = run(&world, &[], &OPUS);
        let words = format!("{finished:#?}");
        assert_eq!(finished.code, Some(5), "{words}");
        let marker = format!("RALPH_STOP|fatal_error|{reason}");
        assert!(finished.stdout.contains(&marker), "{words}");
        assert_eq!(told(&world).len(), 1, "{words}");
        assert!(told(&world)[0].starts_with(&format!("1 fatal: {reason}")), "{:?}", told(&world));
        assert_eq!(world.json(STATE)["status"], "fatal_error");
        let mended = resume(&world);
        assert_goes_on(&world, &model, &mended, &format!("1 fatal: {reason}"));
    });
}

#[test]
fn a_service_that_is_overloaded_or_refuses_pauses_the_run_and_costs_no_iteration() {
    let after_work = |status, says: &str| vec![change(), Step::error(status, says)];
    assert_each_goes_on(vec![
        (after_work(529, "Overloaded"), "1 overloaded: API Error: 529 "),
        (vec![Step::error(500, "Internal server error")], "1 overloaded: API Error: 500 "),
        (after_work(429, "Too many requests"), "1 limit: "),
    ]);
}

#[test]
fn an_answer_that_is_too_long_or_refused_is_the_trouble_of_that_session_alone() {
    let stopped = |reason: &str| vec![change(), Step::text("half of it").stop_reason(reason)];
    let full = "1 window_full: window_exceeded → RALPH_CONTINUE|checkpoint";
    assert_each_goes_on(vec![
        (vec![change(), Step::error(400, "odd")], "1 failed: API Error: 400 odd → RALPH_CONTINUE|checkpoint"),
        (stopped("max_tokens"), "1 failed: API Error: Claude's response exceeded the 128000 output token"),
        (stopped("refusal"), "1 failed: API Error: Opus 5.5's safeguards flagged this message"),
        (stopped("model_context_window_exceeded"), full),
    ]);
}

#[test]
fn a_network_that_is_lost_in_the_middle_pauses_the_run() {
    let doomed =
        ScriptedModel::steps(vec![Step::bash(format!("{CHANGE} && sleep 2")), Step::text("never heard")]);
    let (world, model) = behind(&format!("ANTHROPIC_BASE_URL={} exec claude \"$@\"", doomed.url()), &[1]);
    let run = begin_behind(&world, &[]);
    world.wait_until(|| world.read("src/dates.txt").contains("changed"), "the change");
    drop(doomed);
    let finished = run.wait(LIMIT);
    assert_goes_on(&world, &model, &finished, "1 overloaded: API Error: ");
}

// ---- somebody ends the client ----

#[test]
fn a_client_that_is_interrupted_by_a_person_pauses_the_run_for_that_person() {
    let in_a_tool = vec![Step::bash(format!("{CHANGE} && sleep 30"))];
    let in_the_answer = vec![change(), Step::text("late").delay(Duration::from_secs(30))];
    side_by_side(&[(in_a_tool, 1), (in_the_answer, 2)], |(steps, asked)| {
        let (world, model) = odd(steps.clone());
        let run = begin(&world, &[], &OPUS);
        let is_the_moment =
            || model.main_requests().len() == *asked && world.read("src/dates.txt").contains("changed");
        world.wait_until(is_the_moment, "the moment to interrupt");
        let pid = world.json(STATE)["iteration_record"]["pid"].to_string();
        world.command("/bin/kill", &["-INT", &pid]).run().expect_success();
        let finished = run.wait(LIMIT);
        assert_eq!(finished.code, Some(6), "{finished:#?}");
        assert_eq!(told(&world), ["1 interrupted: - → RALPH_PAUSE|-|interrupted"], "{finished:#?}");
        assert_eq!(world.json(STATE)["status"], "paused");
        assert_goes_on(&world, &model, &resume(&world), "1 interrupted: - → RALPH_PAUSE|-|interrupted");
    });
}

/// On a busy computer the client that is interrupted in a tool now and then exits before it has written its result.
#[test]
fn a_client_that_is_interrupted_and_writes_no_result_is_known_by_its_transcript() {
    let interrupted =
        ScriptedModel::steps(vec![Step::bash(format!("{CHANGE} && kill -INT $CLAUDE_PID && sleep 20"))]);
    let without_result = format!(
        "ANTHROPIC_BASE_URL={} claude \"$@\" > \"$HOME/output\"; code=$?; grep -v '\"type\":\"result\"' \"$HOME/output\"; exit $code",
        interrupted.url()
    );
    let (world, model) = behind(&without_result, &[1]);
    let finished = begin_behind(&world, &[]).wait(LIMIT);
    assert_eq!(finished.code, Some(6), "{finished:#?}");
    assert_goes_on(&world, &model, &resume(&world), "1 interrupted: - → RALPH_PAUSE|-|interrupted");
}

#[test]
fn a_client_that_crashes_leaves_a_handoff_and_the_next_session_resumes_from_it() {
    let killed =
        |signal: &str| vec![Step::bash(format!("{CHANGE} && kill -{signal} $CLAUDE_PID && sleep 20"))];
    assert_each_goes_on(vec![
        (killed("KILL"), "1 crashed: ended by signal 9, without a result → RALPH_CONTINUE|checkpoint"),
        (killed("TERM"), "1 crashed: ended with exit code 143, without a result → RALPH_CONTINUE|checkpoint"),
    ]);
}

// ---- silence ----

/// The command lines of the processes that were started in a session of the run.
fn started_in(world: &World, session: &str) -> Vec<String> {
    let wanted = [format!("PLIMSOLL_RUN_ID={}", run_id(world)), format!("CLAUDE_CODE_SESSION_ID={session}")];
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let lines = processes.filter_map(|process| {
        let environment = std::fs::read(process.path().join("environ")).ok()?;
        let holds =
            |word: &String| environment.split(|byte| *byte == 0).any(|entry| entry == word.as_bytes());
        let command = std::fs::read(process.path().join("cmdline")).ok()?;
        wanted.iter().all(holds).then(|| String::from_utf8_lossy(&command).replace('\0', " "))
    });
    lines.collect()
}

fn run_id(world: &World) -> String {
    world.json(STATE)["run_id"].as_str().expect("a run").to_owned()
}

fn first_session(world: &World) -> String {
    events(&journal(world), "spawned")[0]["session_id"].as_str().expect("a session").to_owned()
}

#[test]
fn a_silent_client_is_ended_with_the_tools_it_leaves_behind_and_nobody_else_is() {
    let mut first = true;
    let (world, model) = odd_as(move |turn| match turn.step {
        0 if std::mem::take(&mut first) => Step::bash(format!(
            "{CHANGE}; nohup setsid sleep 300.1 > /dev/null 2>&1 & sleep 300.2 > /dev/null 2>&1 &"
        )),
        1 if turn.iteration == 1 => Step::text("").hang(Duration::from_secs(60)),
        // Silent as well, but not for too long.
        0 => Step::bash(format!("sleep 3; echo 'Item three' >> work.txt && {}", tick("Item three"))),
        _ => honest(turn),
    });
    let run = begin(&world, &["--idle-timeout", "5s"], &OPUS);
    world.wait_until(|| model.main_requests().len() == 2, "the silence");
    let session = first_session(&world);
    let is_tool = |line: &&String| line.starts_with("sleep 300.");
    let both_work = || started_in(&world, &session).iter().filter(is_tool).count() == 2;
    world.wait_until(both_work, "both tools work");
    let decoy = world.command("/bin/sleep", &["300.3"]).env("PLIMSOLL_RUN_ID", run_id(&world));
    let mut decoy = decoy.env("CLAUDE_CODE_SESSION_ID", "another").spawn();
    let finished = run.wait(LIMIT);
    assert_goes_on(&world, &model, &finished, "1 silent: no output for 5 s → RALPH_CONTINUE|checkpoint");
    assert_eq!(started_in(&world, &session), [""; 0], "nothing of the session is left");
    assert!(decoy.is_running(), "another session's process is none of ours");
    let journal = journal(&world);
    let ended = events(&journal, "client_ended");
    assert_eq!(ended.len(), 1, "the second session was silent within its limit: {ended:?}");
    assert_eq!((&ended[0]["iteration"], &ended[0]["reason"]), (&json!(1), &json!("no output for 5 s")));
    assert_eq!(events(&journal, "session_end")[0]["iteration"], 1, "it was asked before it was killed");
}

#[test]
fn a_tool_that_is_silent_longer_than_the_idle_timeout_gets_its_work_done() {
    let (world, _model) = odd_as(|turn| match turn.step {
        0 => Step::bash(format!("sleep 14; echo 'Item three' >> work.txt && {}", tick("Item three"))),
        _ => honest(turn),
    });
    let finished = run(&world, &["--idle-timeout", "9s"], &OPUS);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    assert_eq!(told(&world), ["1 completed: - → RALPH_STOP|completed|1 item"], "{finished:#?}");
    assert!(events(&journal(&world), "client_ended").is_empty(), "{finished:#?}");
}

#[test]
fn a_tool_of_a_subagent_is_no_idleness_either() {
    let (world, _model) = odd_as(|turn| {
        let is_subagent = turn.request.first_text().contains("Wait for the build.");
        match turn.step {
            0 if is_subagent => Step::bash("sleep 14; echo built > built.txt"),
            1 if is_subagent => Step::text("It is built."),
            0 => Step::default().tool(
                "Agent",
                json!({
                    "description": "wait", "prompt": "Wait for the build.", "subagent_type": "general-purpose",
                    "run_in_background": false
                }),
            ),
            1 => Step::bash(format!("cat built.txt >> work.txt && {}", tick("Item three"))),
            _ => honest(turn),
        }
    });
    let finished = run(&world, &["--idle-timeout", "9s"], &OPUS);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    assert_eq!(world.read("work.txt"), "built\n");
}

#[test]
fn a_tool_that_is_silent_longer_than_its_own_timeout_is_ended_and_named() {
    let mut first = true;
    let (world, model) = odd_as(move |turn| match turn.step {
        0 if std::mem::take(&mut first) => Step::bash(format!("{CHANGE}; sleep 600.4")),
        _ => honest(turn),
    });
    let finished = begin(&world, &["--idle-timeout", "60s", "--tool-timeout", "6s"], &OPUS).wait(LIMIT);
    let why =
        format!("no output for 6 s while a tool was running (--tool-timeout): Bash: {CHANGE}; sleep 600.4");
    assert_goes_on(&world, &model, &finished, &format!("1 silent: {why} → RALPH_CONTINUE|checkpoint"));
    let journal = journal(&world);
    let ended = events(&journal, "client_ended");
    assert_eq!((ended.len(), &ended[0]["reason"]), (1, &json!(why)));
    assert_eq!(started_in(&world, &first_session(&world)), [""; 0], "nothing of the session is left");
}

#[test]
fn a_silent_client_that_will_not_end_is_killed() {
    let (world, model) = behind("trap '' TERM INT; begin; while :; do sleep 1; done", &[]);
    let finished = begin_behind(&world, &["--idle-timeout", "4s"]).wait(LIMIT);
    let first = "1 silent: no output for 4 s → RALPH_CONTINUE|next|the client was silent (no output for 4 s)";
    assert_goes_on(&world, &model, &finished, first);
    assert_eq!(started_in(&world, &first_session(&world)), [""; 0]);
}

// ---- what keeps the client alive after its result ----

fn in_background(command: &str) -> Step {
    let input = json!({"command": command, "description": "scripted", "run_in_background": true});
    Step::default().tool("Bash", input)
}

#[test]
fn a_client_that_waits_for_its_background_task_is_waited_for_and_judged_by_its_last_result() {
    let (world, model) = odd_as(|turn| match turn.step {
        0 => in_background("sleep 3; echo built > built.txt"),
        1 => Step::text("I wait for the build."),
        2 if turn.saw("<task-notification>") => {
            Step::bash(format!("cat built.txt >> work.txt && {}", tick("Item three")))
        }
        _ => Step::text(format!("All done.\n\n{}", turn.promise)),
    });
    let finished = run(&world, &[], &OPUS);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    assert_eq!(told(&world), ["1 completed: - → RALPH_STOP|completed|1 item"], "{finished:#?}");
    assert_eq!(world.read("work.txt"), "built\n");
    assert_eq!(model.main_requests().len(), 4);
    assert!(events(&journal(&world), "client_ended").is_empty(), "it ended by itself");
}

#[test]
fn a_client_that_lives_on_for_a_task_or_a_wakeup_is_ended_after_the_wait() {
    let wakeup = json!({"delaySeconds": 60, "reason": "x", "prompt": "go on", "noop": false});
    let cases = [
        (in_background("sleep 600.7"), 3, &[][..]),
        (Step::default().tool("ScheduleWakeup", wakeup), 3, &[]),
        // A client that waits is not silent.
        (in_background("sleep 600.8"), 13, &["--idle-timeout", "10s"]),
    ];
    side_by_side(&cases, |(what, wait, ours)| {
        let (world, model) = odd(vec![what.clone(), Step::text("I wait.")]);
        world.write(".claude/plimsoll.json", &json!({ "background_wait_seconds": wait }).to_string());
        let finished = run(&world, ours, &OPUS);
        let words = format!("{ours:?} {finished:#?}");
        assert_goes_on(&world, &model, &finished, "1 completed: - → RALPH_CONTINUE|next|1 open item");
        let journal = journal(&world);
        let ended = events(&journal, "client_ended");
        assert_eq!(ended.len(), 1, "{words}");
        assert_eq!(ended[0]["reason"], format!("alive {wait} s after its result"), "{words}");
        assert_eq!(started_in(&world, &first_session(&world)), [""; 0], "{words}");
    });
}

// ---- a stand-in for the client: what the real one does not do on demand ----

/// A world whose run takes this script for its first session, and a replay for the others; of those that begin by the
/// client's name these are the real client's.
fn behind(first_session: &str, real: &[u32]) -> (World, ScriptedModel) {
    const SCRIPT: &str = r#"#!/bin/sh
if [ "$1" = --version ] || ! mkdir "$HOME/begun" 2> /dev/null; then exec claude "$@"; fi
for word; do
    if [ "$before" = --session-id ]; then export CLAUDE_CODE_SESSION_ID="$word"; fi
    before=$word
done
begin() {
    printf '{"hook_event_name":"SessionStart","source":"startup","session_id":"%s","cwd":"%s","transcript_path":"%s"}' \
        "$CLAUDE_CODE_SESSION_ID" "$PWD" "$HOME/none.jsonl" | CLAUDE_PROJECT_DIR=$PWD plimsoll-session-start > /dev/null
    echo '{"type":"system","subtype":"init","model":"claude-opus-5-5","claude_code_version":"2.1.329"}'
}
"#;
    let mut world = world(PLAN);
    let model =
        ScriptedAgent::new(|turn| honest(turn).delay(LIFELIKE)).with_real_client_in(real).start(&mut world);
    let path = world.home().join("stand-in");
    world.write(&path, &format!("{SCRIPT}{first_session}\n"));
    world.command("/bin/chmod", &["+x", &path.display().to_string()]).run().expect_success();
    (world, model)
}

fn begin_behind(world: &World, ours: &[&str]) -> Running {
    let path = world.home().join("stand-in").display().to_string();
    begin(world, &[ours, &["--client", &path]].concat(), &OPUS)
}

#[test]
fn neither_the_exit_status_nor_the_word_success_proves_anything() {
    let result = |rest: &str| format!(r#"begin; echo '{{"type":"result","subtype":"success",{rest}}}'"#);
    let error =
        result(r#""is_error":true,"terminal_reason":"api_error","api_error_status":400,"result":"No""#);
    let overloaded = result(r#""is_error":true,"result":"API Error: 529 {\"type\":\"error\"}""#);
    let done = result(r#""is_error":false,"terminal_reason":"completed","result":"Not yet.""#);
    let torn = r#"begin; printf '{"type":"result","subtype":"success","is_err'"#.to_owned();
    let cases = [
        (&error, "exit 0", "1 failed: No → RALPH_CONTINUE|next|the session failed: No; 1 open item"),
        (&overloaded, "exit 0", "1 overloaded: API Error: 529 "),
        (&done, "exit 1", "1 completed: - → RALPH_CONTINUE|next|1 open item"),
        (&done, "kill -9 $$", "1 completed: - → RALPH_CONTINUE|next|1 open item"),
        (
            &torn,
            "exit 0",
            "1 crashed: ended with exit code 0, without a result → RALPH_CONTINUE|next|the client",
        ),
    ];
    side_by_side(&cases, |(script, last, first)| {
        let (world, model) = behind(&format!("{script}; {last}"), &[]);
        let finished = begin_behind(&world, &[]).wait(LIMIT);
        assert_goes_on(&world, &model, &finished, first);
    });
}
