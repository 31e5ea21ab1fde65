//! Every way in which `claude -p` (2.1.329) was seen to end, and what the run does next. The real client runs the
//! session that ends; the session after it is replayed.

use plimsoll_domain::ProcessExit;
use plimsoll_policy::session_ending::classify_ending;
use plimsoll_protocol::result::ClientResult;
use plimsoll_testkit::client::CLIENT_VERSION;
use plimsoll_testkit::fixtures_dir;
use plimsoll_testkit::scripted_agent::{AgentTurn, tick_item_command};
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::world::{FinishedProgram, RunningProgram, World};
use plimsoll_tests::{
    LIFELIKE_DELAY, ScriptedAgent, events_named, honest_agent, read_journal, run_cases_in_parallel,
    world_with_plan_and_dates,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const STATE_FILE: &str = ".claude/ralph-state.json";
const ONE_ITEM_PLAN: &str = "# Plan\n\n- [ ] Item three\n";
/// Work that is left uncommitted when the session ends.
const CHANGE_COMMAND: &str = "sed -i '45,80s/$/ changed/' src/dates.txt";
/// The row of the next session's prompt that names this change.
const CHANGE_ROW: &str = "| src/dates.txt | 45-80 | ";
const OPUS_ARGUMENTS: [&str; 2] = ["--model", "opus"];
/// A model with a window of 200,000 tokens. With the settings below our hooks take it for a larger one, so that the
/// client reaches its own limit first.
const SONNET_ARGUMENTS: [&str; 2] = ["--model", "claude-sonnet-4-6"];
const LARGER_WINDOW_SETTINGS: &str = r#"{"windows": {"claude-sonnet-4-6": 1000000}}"#;
/// How long a whole run may take on a busy computer.
const RUN_TIMEOUT: Duration = Duration::from_secs(60);

// ---- a run whose first session goes wrong ----

/// A world with a plan of one item. Its first session takes these steps (the last one repeats); honest sessions
/// follow.
fn world_with_failing_first_session(steps: Vec<Step>) -> (World, ScriptedModel) {
    let (mut first_session_id, mut step_count) = (None, 0);
    world_with_first_session_agent(move |turn| {
        let session_id = session_id_of(turn.request);
        if *first_session_id.get_or_insert_with(|| session_id.clone()) != session_id {
            return honest_agent(turn).with_delay(LIFELIKE_DELAY);
        }
        step_count += 1;
        steps.get(step_count - 1).or(steps.last()).expect("a step").clone()
    })
}

fn world_with_first_session_agent(
    agent: impl FnMut(&AgentTurn<'_>) -> Step + Send + 'static,
) -> (World, ScriptedModel) {
    let mut world = world_with_plan_and_dates(ONE_ITEM_PLAN);
    let model = ScriptedAgent::new(agent).with_real_client_in(&[1]).start(&mut world);
    (world, model)
}

/// Uses the real client for all sessions, because these conversations were not recorded.
fn use_real_client_throughout(world: &mut World) {
    world.use_client_version(CLIENT_VERSION);
}

fn spawn_run(world: &World, run_arguments: &[&str], client_arguments: &[&str]) -> RunningProgram {
    let allowed_tools = ["--allowedTools", "Bash", "ScheduleWakeup"];
    let command_line =
        [&["run", "--objective", "Do the plan."], run_arguments, &["--"], client_arguments, &allowed_tools]
            .concat();
    world.plimsoll(&command_line).spawn()
}

fn run_to_end(world: &World, run_arguments: &[&str], client_arguments: &[&str]) -> FinishedProgram {
    spawn_run(world, run_arguments, client_arguments).wait_or_kill_and_panic(RUN_TIMEOUT)
}

fn resume_run(world: &World) -> FinishedProgram {
    world.plimsoll(&["run", "--resume"]).timeout(RUN_TIMEOUT).run()
}

fn session_id_of(request: &Request) -> String {
    request.header("x-claude-code-session-id").expect("a session").to_owned()
}

/// Returns one line for each verdict: its iteration, its ending with the details, and its marker.
fn verdict_lines(world: &World) -> Vec<String> {
    let journal = read_journal(world);
    let verdict_line = |entry: &&Value| {
        let ending = &entry["ending"];
        let marker = entry["marker"].as_str().expect("a marker");
        let marker = marker.split_once("|.claude/handoffs/").map_or(marker, |(start, _)| start);
        let ending_texts = [&ending["ending"], &ending["detail"]].map(|part| part.as_str().unwrap_or("-"));
        format!("{} {}: {} → {marker}", entry["iteration"], ending_texts[0], ending_texts[1])
    };
    events_named(&journal, "verdict").iter().map(verdict_line).collect()
}

/// Asserts that the run completed although its first session got a verdict that starts like this, and that the work
/// which that session left unfinished was handed over and done once.
fn assert_run_continues_and_completes(
    world: &World,
    model: &ScriptedModel,
    finished: &FinishedProgram,
    first_verdict: &str,
) {
    let verdicts = verdict_lines(world);
    let context = format!("{first_verdict}\n{verdicts:#?}\n{finished:#?}");
    assert_eq!(finished.code, Some(0), "{context}");
    assert_eq!(verdicts.len(), 2, "{context}");
    assert!(verdicts[0].starts_with(first_verdict), "{context}");
    let second_iteration = if verdicts[0].contains("RALPH_PAUSE") { 1 } else { 2 };
    assert_eq!(
        verdicts[1],
        format!("{second_iteration} completed: - → RALPH_STOP|completed|1 item"),
        "{context}"
    );
    assert_eq!(world.read_json(STATE_FILE)["status"], "completed");
    assert_eq!(world.read_json(STATE_FILE)["pauses"], 2 - second_iteration, "{context}");
    assert_eq!(world.read("work.txt"), "Item three\n", "{context}");
    let dates = world.read("src/dates.txt");
    let changed_count = dates.lines().filter(|line| line.ends_with(" changed")).count();
    let requests = model.main_requests();
    let last_session_id = requests.last().map(session_id_of).expect("requests");
    let second_request =
        requests.iter().find(|request| session_id_of(request) == last_session_id).expect("a second session");
    assert_eq!(
        second_request.full_text().contains(CHANGE_ROW),
        changed_count == 36,
        "the next session is told of the change; {context}"
    );
    assert!(changed_count == 36 || changed_count == 0 && !dates.contains("changed"), "{context}");
}

/// Checks several runs, each with the steps of its first session and the verdict on it.
fn assert_each_run_continues(cases: Vec<(Vec<Step>, &str)>) {
    run_cases_in_parallel(&cases, |(steps, first_verdict)| {
        let (world, model) = world_with_failing_first_session(steps.clone());
        assert_run_continues_and_completes(
            &world,
            &model,
            &run_to_end(&world, &[], &OPUS_ARGUMENTS),
            first_verdict,
        );
    });
}

fn change_step() -> Step {
    Step::bash_call(CHANGE_COMMAND)
}

// ---- the client's result ----

#[test]
fn every_recorded_result_is_classified_correctly() {
    let expected = [
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
    let files = std::fs::read_dir(fixtures_dir().join("result")).expect("recorded results").flatten();
    let classified = files.map(|file| {
        let result = ClientResult::parse(&std::fs::read(file.path()).expect("a file")).expect("a result");
        // The exit status must not matter, because it proves nothing.
        let ending_words = [0, 1].map(|code| {
            classify_ending(Some(&result), ProcessExit { code: Some(code), signal: None }).as_str()
        });
        assert_eq!(ending_words[0], ending_words[1]);
        (file.path().file_stem().expect("a name").to_string_lossy().into_owned(), ending_words[0])
    });
    let expected = expected.map(|(name, word)| (name.to_owned(), word));
    assert_eq!(classified.collect::<BTreeMap<_, _>>(), BTreeMap::from(expected));
}

#[test]
fn a_session_that_ends_or_is_stopped_by_a_hook_is_followed_by_another() {
    let l3_steps = vec![
        change_step().with_input_tokens(600_000).with_delay(LIFELIKE_DELAY),
        Step::bash_call("echo").with_input_tokens(970_000).with_delay(LIFELIKE_DELAY),
    ];
    assert_each_run_continues(vec![
        (vec![Step::from_text("Not yet.")], "1 completed: - → RALPH_CONTINUE|next|1 open item"),
        (l3_steps, "1 hook_stopped: - → RALPH_CONTINUE|checkpoint"),
    ]);
}

// ---- the window ----

#[test]
fn a_client_blocked_by_a_full_window_is_followed_by_a_fresh_session() {
    let (mut world, model) = world_with_failing_first_session(vec![
        change_step().with_input_tokens(178_000),
        Step::from_text("never asked for"),
    ]);
    use_real_client_throughout(&mut world);
    world.set_env("DISABLE_AUTO_COMPACT", "1");
    world.write(".claude/plimsoll.json", LARGER_WINDOW_SETTINGS);
    let finished = run_to_end(&world, &[], &SONNET_ARGUMENTS);
    assert_run_continues_and_completes(
        &world,
        &model,
        &finished,
        "1 window_full: blocking_limit → RALPH_CONTINUE|checkpoint",
    );
    assert_eq!(model.main_requests().len(), 3);
}

#[test]
fn a_window_refilled_after_each_compaction_leads_to_a_fresh_session() {
    let (mut world, model) = world_with_failing_first_session(vec![
        change_step().with_input_tokens(168_000),
        Step::bash_call("echo on").with_input_tokens(168_000),
    ]);
    use_real_client_throughout(&mut world);
    world.write(".claude/plimsoll.json", LARGER_WINDOW_SETTINGS);
    let finished = run_to_end(&world, &[], &SONNET_ARGUMENTS);
    let first_verdict = "1 window_full: rapid_refill_breaker → RALPH_CONTINUE|checkpoint";
    assert_run_continues_and_completes(&world, &model, &finished, first_verdict);
    assert_eq!(finished.stdout.matches("Claude Code has compacted").count(), 3, "{finished:?}");
}

#[test]
fn a_prompt_that_is_too_long_is_followed_by_a_fresh_session() {
    let too_long_step = || Step::api_error(400, "prompt is too long: 1010000 tokens > 1000000 maximum");
    let immediate_verdict =
        "1 window_full: prompt_too_long → RALPH_CONTINUE|next|the window was full (prompt_too_long)";
    assert_each_run_continues(vec![(vec![too_long_step()], immediate_verdict)]);
    let (mut world, model) = world_with_failing_first_session(vec![change_step(), too_long_step()]);
    use_real_client_throughout(&mut world);
    world.set_env("DISABLE_AUTO_COMPACT", "1");
    let finished = run_to_end(&world, &[], &OPUS_ARGUMENTS);
    assert_run_continues_and_completes(
        &world,
        &model,
        &finished,
        "1 window_full: prompt_too_long → RALPH_CONTINUE|checkpoint",
    );
}

// ---- the client's own limits ----

#[test]
fn a_session_that_hits_a_limit_of_the_client_is_followed_by_the_next() {
    let cases = [
        (["--max-turns", "2"], 0, "1 client_limit: --max-turns → RALPH_CONTINUE|checkpoint"),
        // Mostly the client does not even run the tool of the message that exceeded the budget. If it was quick
        // enough, its hooks reach L2.
        (["--max-budget-usd", "1"], 600_000, "1 client_limit: --max-budget-usd → RALPH_CONTINUE|"),
    ];
    run_cases_in_parallel(&cases, |(limit_arguments, input_tokens, first_verdict)| {
        let (world, model) = world_with_failing_first_session(vec![
            change_step().with_input_token_breakdown(*input_tokens, 0, 0),
            Step::bash_call("echo on"),
        ]);
        let finished = run_to_end(&world, &[], &[OPUS_ARGUMENTS, *limit_arguments].concat());
        assert_run_continues_and_completes(&world, &model, &finished, first_verdict);
    });
}

#[test]
fn a_budget_spent_by_finished_items_does_not_keep_the_run_from_completing() {
    let cases = [("true", 0, "RALPH_STOP|completed|1 item"), ("false", 3, "RALPH_STOP|budget|$")];
    run_cases_in_parallel(&cases, |(verify_command, exit_code, marker)| {
        let tick_command = format!("{CHANGE_COMMAND}; sed -i 's/\\[ \\]/[x]/' fix_plan.md");
        let (world, model) = world_with_failing_first_session(vec![
            Step::bash_call(&tick_command),
            // $0.25: the client ends the session before its last message.
            Step::bash_call("echo on").with_input_token_breakdown(50_000, 0, 0),
        ]);
        let finished =
            run_to_end(&world, &["--verify", verify_command, "--max-cost", "0.2"], &OPUS_ARGUMENTS);
        let context = format!("{finished:#?}");
        assert_eq!(finished.code, Some(*exit_code), "{context}");
        assert!(finished.stdout.contains(marker), "{context}");
        let verdicts = verdict_lines(&world);
        assert_eq!(verdicts.len(), 1, "{verdicts:?}");
        assert!(verdicts[0].starts_with("1 client_limit: --max-budget-usd → RALPH_STOP|"), "{verdicts:?}");
        drop(model);
    });
}

// ---- answers of the API ----

#[test]
fn an_error_no_session_can_fix_ends_the_run_and_a_resume_continues_it() {
    let cases = [
        (401, "invalid x-api-key", "authentication failed: Invalid API key"),
        (403, "No access", "authentication failed: Failed to authenticate. API Error: 403 No access"),
        (400, "Your credit balance is too low", "billing: Credit balance is too low"),
        (404, "model: claude-none", "model not found: There's an issue with the selected model"),
    ];
    run_cases_in_parallel(&cases, |(status, message, reason)| {
        let (world, model) =
            world_with_failing_first_session(vec![change_step(), Step::api_error(*status, *message)]);
        let finished = run_to_end(&world, &[], &OPUS_ARGUMENTS);
        let context = format!("{finished:#?}");
        assert_eq!(finished.code, Some(5), "{context}");
        let marker = format!("RALPH_STOP|fatal_error|{reason}");
        assert!(finished.stdout.contains(&marker), "{context}");
        assert_eq!(verdict_lines(&world).len(), 1, "{context}");
        assert!(
            verdict_lines(&world)[0].starts_with(&format!("1 fatal: {reason}")),
            "{:?}",
            verdict_lines(&world)
        );
        assert_eq!(world.read_json(STATE_FILE)["status"], "fatal_error");
        let resumed = resume_run(&world);
        assert_run_continues_and_completes(&world, &model, &resumed, &format!("1 fatal: {reason}"));
    });
}

#[test]
fn an_overloaded_or_failing_api_pauses_the_run_and_costs_no_iteration() {
    let steps_after_work = |status, message: &str| vec![change_step(), Step::api_error(status, message)];
    assert_each_run_continues(vec![
        (steps_after_work(529, "Overloaded"), "1 overloaded: API Error: 529 "),
        (vec![Step::api_error(500, "Internal server error")], "1 overloaded: API Error: 500 "),
        (steps_after_work(429, "Too many requests"), "1 limit: "),
    ]);
}

#[test]
fn an_overlong_or_refused_response_affects_only_its_own_session() {
    let steps_with_stop_reason =
        |reason: &str| vec![change_step(), Step::from_text("half of it").with_stop_reason(reason)];
    let full_window_verdict = "1 window_full: window_exceeded → RALPH_CONTINUE|checkpoint";
    assert_each_run_continues(vec![
        (
            vec![change_step(), Step::api_error(400, "odd")],
            "1 failed: API Error: 400 odd → RALPH_CONTINUE|checkpoint",
        ),
        (
            steps_with_stop_reason("max_tokens"),
            "1 failed: API Error: Claude's response exceeded the 128000 output token",
        ),
        (
            steps_with_stop_reason("refusal"),
            "1 failed: API Error: Opus 5.5's safeguards flagged this message",
        ),
        (steps_with_stop_reason("model_context_window_exceeded"), full_window_verdict),
    ]);
}

#[test]
fn a_network_connection_lost_during_a_session_pauses_the_run() {
    let lost_model = ScriptedModel::start_with_steps_repeating_last(vec![
        Step::bash_call(format!("{CHANGE_COMMAND} && sleep 2")),
        Step::from_text("never heard"),
    ]);
    let (world, model) =
        world_with_stand_in(&format!("ANTHROPIC_BASE_URL={} exec claude \"$@\"", lost_model.url()), &[1]);
    let running = spawn_run_with_stand_in(&world, &[]);
    world.wait_until(|| world.read("src/dates.txt").contains("changed"), "the change");
    drop(lost_model);
    let finished = running.wait_or_kill_and_panic(RUN_TIMEOUT);
    assert_run_continues_and_completes(&world, &model, &finished, "1 overloaded: API Error: ");
}

// ---- the client is ended from outside ----

#[test]
fn a_client_interrupted_by_a_person_pauses_the_run() {
    let steps_in_tool = vec![Step::bash_call(format!("{CHANGE_COMMAND} && sleep 30"))];
    let steps_in_response = vec![change_step(), Step::from_text("late").with_delay(Duration::from_secs(30))];
    run_cases_in_parallel(&[(steps_in_tool, 1), (steps_in_response, 2)], |(steps, request_count)| {
        let (world, model) = world_with_failing_first_session(steps.clone());
        let running = spawn_run(&world, &[], &OPUS_ARGUMENTS);
        let is_at_interruption_point = || {
            model.main_requests().len() == *request_count && world.read("src/dates.txt").contains("changed")
        };
        world.wait_until(is_at_interruption_point, "the moment to interrupt");
        let pid = world.read_json(STATE_FILE)["iteration_record"]["pid"].to_string();
        world.command("/bin/kill", &["-INT", &pid]).run().expect_success();
        let finished = running.wait_or_kill_and_panic(RUN_TIMEOUT);
        assert_eq!(finished.code, Some(6), "{finished:#?}");
        assert_eq!(verdict_lines(&world), ["1 interrupted: - → RALPH_PAUSE|-|interrupted"], "{finished:#?}");
        assert_eq!(world.read_json(STATE_FILE)["status"], "paused");
        assert_run_continues_and_completes(
            &world,
            &model,
            &resume_run(&world),
            "1 interrupted: - → RALPH_PAUSE|-|interrupted",
        );
    });
}

/// On a busy computer a client that is interrupted during a tool call sometimes exits before it has written its
/// result.
#[test]
fn an_interrupted_client_without_a_result_is_known_by_its_transcript() {
    let interrupted = ScriptedModel::start_with_steps_repeating_last(vec![Step::bash_call(format!(
        "{CHANGE_COMMAND} && kill -INT $CLAUDE_PID && sleep 20"
    ))]);
    let script = format!(
        "ANTHROPIC_BASE_URL={} claude \"$@\" > \"$HOME/output\"; code=$?; grep -v '\"type\":\"result\"' \"$HOME/output\"; exit $code",
        interrupted.url()
    );
    let (world, model) = world_with_stand_in(&script, &[1]);
    let finished = spawn_run_with_stand_in(&world, &[]).wait_or_kill_and_panic(RUN_TIMEOUT);
    assert_eq!(finished.code, Some(6), "{finished:#?}");
    assert_run_continues_and_completes(
        &world,
        &model,
        &resume_run(&world),
        "1 interrupted: - → RALPH_PAUSE|-|interrupted",
    );
}

#[test]
fn a_crashed_client_leaves_a_handoff_that_the_next_session_resumes() {
    let steps_killed_by = |signal: &str| {
        vec![Step::bash_call(format!("{CHANGE_COMMAND} && kill -{signal} $CLAUDE_PID && sleep 20"))]
    };
    assert_each_run_continues(vec![
        (
            steps_killed_by("KILL"),
            "1 crashed: ended by signal 9, without a result → RALPH_CONTINUE|checkpoint",
        ),
        (
            steps_killed_by("TERM"),
            "1 crashed: ended with exit code 143, without a result → RALPH_CONTINUE|checkpoint",
        ),
    ]);
}

// ---- silence ----

/// Returns the command lines of the processes that were started in a session of the run.
fn session_processes(world: &World, session_id: &str) -> Vec<String> {
    let variables =
        [format!("PLIMSOLL_RUN_ID={}", run_id(world)), format!("CLAUDE_CODE_SESSION_ID={session_id}")];
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let lines = processes.filter_map(|process| {
        let environment = std::fs::read(process.path().join("environ")).ok()?;
        let has_variable = |variable: &String| {
            environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
        };
        let command = std::fs::read(process.path().join("cmdline")).ok()?;
        variables.iter().all(has_variable).then(|| String::from_utf8_lossy(&command).replace('\0', " "))
    });
    lines.collect()
}

fn run_id(world: &World) -> String {
    world.read_json(STATE_FILE)["run_id"].as_str().expect("a run").to_owned()
}

fn first_session_id(world: &World) -> String {
    events_named(&read_journal(world), "spawned")[0]["session_id"].as_str().expect("a session").to_owned()
}

#[test]
fn a_silent_client_is_ended_with_its_tools_and_no_other_process() {
    let mut is_first = true;
    let (world, model) = world_with_first_session_agent(move |turn| match turn.assistant_message_count {
        // A copy: macOS does not show the environment of its own programs.
        0 if std::mem::take(&mut is_first) => Step::bash_call(format!(
            "{CHANGE_COMMAND}; cp \"$(command -v sleep)\" ~/sleep; nohup setsid ~/sleep 300.1 > /dev/null 2>&1 & ~/sleep 300.2 > /dev/null 2>&1 &"
        )),
        1 if turn.iteration == 1 => Step::from_text("").with_hang(Duration::from_secs(60)),
        // Silent as well, but not beyond the timeout.
        0 => Step::bash_call(format!(
            "sleep 3; echo 'Item three' >> work.txt && {}",
            tick_item_command("Item three")
        )),
        _ => honest_agent(turn),
    });
    let running = spawn_run(&world, &["--idle-timeout", "5s"], &OPUS_ARGUMENTS);
    world.wait_until(|| model.main_requests().len() == 2, "the silence");
    let session_id = first_session_id(&world);
    let is_tool = |line: &&String| line.contains("/sleep 300.");
    let both_tools_run = || session_processes(&world, &session_id).iter().filter(is_tool).count() == 2;
    world.wait_until(both_tools_run, "both tools work");
    let decoy = world.command("/bin/sleep", &["300.3"]).env("PLIMSOLL_RUN_ID", run_id(&world));
    let mut decoy = decoy.env("CLAUDE_CODE_SESSION_ID", "another").spawn();
    let finished = running.wait_or_kill_and_panic(RUN_TIMEOUT);
    assert_run_continues_and_completes(
        &world,
        &model,
        &finished,
        "1 silent: no output for 5 s → RALPH_CONTINUE|checkpoint",
    );
    assert_eq!(session_processes(&world, &session_id), [""; 0], "nothing of the session is left");
    assert!(decoy.is_running(), "another session's process is none of ours");
    let journal = read_journal(&world);
    let ended_entries = events_named(&journal, "client_ended");
    assert_eq!(ended_entries.len(), 1, "the second session was silent within its limit: {ended_entries:?}");
    assert_eq!(
        (&ended_entries[0]["iteration"], &ended_entries[0]["reason"]),
        (&json!(1), &json!("no output for 5 s"))
    );
    assert_eq!(events_named(&journal, "session_end")[0]["iteration"], 1, "it was asked before it was killed");
}

#[test]
fn a_tool_silent_for_longer_than_the_idle_timeout_completes_its_work() {
    let (world, _model) = world_with_first_session_agent(|turn| match turn.assistant_message_count {
        0 => Step::bash_call(format!(
            "sleep 14; echo 'Item three' >> work.txt && {}",
            tick_item_command("Item three")
        )),
        _ => honest_agent(turn),
    });
    let finished = run_to_end(&world, &["--idle-timeout", "9s"], &OPUS_ARGUMENTS);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    assert_eq!(verdict_lines(&world), ["1 completed: - → RALPH_STOP|completed|1 item"], "{finished:#?}");
    assert!(events_named(&read_journal(&world), "client_ended").is_empty(), "{finished:#?}");
}

#[test]
fn a_silent_tool_of_a_subagent_does_not_count_as_idle() {
    let (world, _model) = world_with_first_session_agent(|turn| {
        let is_subagent = turn.request.first_message_text().contains("Wait for the build.");
        match turn.assistant_message_count {
            0 if is_subagent => Step::bash_call("sleep 14; echo built > built.txt"),
            1 if is_subagent => Step::from_text("It is built."),
            0 => Step::default().with_tool_call(
                "Agent",
                json!({
                    "description": "wait", "prompt": "Wait for the build.", "subagent_type": "general-purpose",
                    "run_in_background": false
                }),
            ),
            1 => Step::bash_call(format!("cat built.txt >> work.txt && {}", tick_item_command("Item three"))),
            _ => honest_agent(turn),
        }
    });
    let finished = run_to_end(&world, &["--idle-timeout", "9s"], &OPUS_ARGUMENTS);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    assert_eq!(world.read("work.txt"), "built\n");
}

#[test]
fn a_tool_silent_for_longer_than_the_tool_timeout_is_ended_and_named() {
    let mut is_first = true;
    let (world, model) = world_with_first_session_agent(move |turn| match turn.assistant_message_count {
        0 if std::mem::take(&mut is_first) => Step::bash_call(format!("{CHANGE_COMMAND}; sleep 600.4")),
        _ => honest_agent(turn),
    });
    let finished = spawn_run(&world, &["--idle-timeout", "60s", "--tool-timeout", "6s"], &OPUS_ARGUMENTS)
        .wait_or_kill_and_panic(RUN_TIMEOUT);
    let reason = format!(
        "no output for 6 s while a tool was running (--tool-timeout): Bash: {CHANGE_COMMAND}; sleep 600.4"
    );
    assert_run_continues_and_completes(
        &world,
        &model,
        &finished,
        &format!("1 silent: {reason} → RALPH_CONTINUE|checkpoint"),
    );
    let journal = read_journal(&world);
    let ended_entries = events_named(&journal, "client_ended");
    assert_eq!((ended_entries.len(), &ended_entries[0]["reason"]), (1, &json!(reason)));
    assert_eq!(
        session_processes(&world, &first_session_id(&world)),
        [""; 0],
        "nothing of the session is left"
    );
}

#[test]
fn a_silent_client_that_ignores_signals_is_killed() {
    let (world, model) = world_with_stand_in("trap '' TERM INT; begin; while :; do sleep 1; done", &[]);
    let finished =
        spawn_run_with_stand_in(&world, &["--idle-timeout", "4s"]).wait_or_kill_and_panic(RUN_TIMEOUT);
    let first_verdict =
        "1 silent: no output for 4 s → RALPH_CONTINUE|next|Claude Code was silent (no output for 4 s)";
    assert_run_continues_and_completes(&world, &model, &finished, first_verdict);
    assert_eq!(session_processes(&world, &first_session_id(&world)), [""; 0]);
}

// ---- what keeps the client alive after its result ----

fn background_step(command: &str) -> Step {
    let input = json!({"command": command, "description": "scripted", "run_in_background": true});
    Step::default().with_tool_call("Bash", input)
}

#[test]
fn a_client_waiting_for_a_background_task_is_judged_by_its_last_result() {
    let (world, model) = world_with_first_session_agent(|turn| match turn.assistant_message_count {
        0 => background_step("sleep 3; echo built > built.txt"),
        1 => Step::from_text("I wait for the build."),
        2 if turn.request_contains("<task-notification>") => {
            Step::bash_call(format!("cat built.txt >> work.txt && {}", tick_item_command("Item three")))
        }
        _ => Step::from_text(format!("All done.\n\n{}", turn.promise_line)),
    });
    let finished = run_to_end(&world, &[], &OPUS_ARGUMENTS);
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    assert_eq!(verdict_lines(&world), ["1 completed: - → RALPH_STOP|completed|1 item"], "{finished:#?}");
    assert_eq!(world.read("work.txt"), "built\n");
    assert_eq!(model.main_requests().len(), 4);
    assert!(events_named(&read_journal(&world), "client_ended").is_empty(), "it ended by itself");
}

#[test]
fn a_client_kept_alive_by_a_task_or_wakeup_is_ended_after_the_wait() {
    let wakeup = json!({"delaySeconds": 60, "reason": "x", "prompt": "go on", "noop": false});
    let cases = [
        (background_step("sleep 600.7"), 3, &[][..]),
        (Step::default().with_tool_call("ScheduleWakeup", wakeup), 3, &[]),
        // A client that waits is not silent.
        (background_step("sleep 600.8"), 13, &["--idle-timeout", "10s"]),
    ];
    run_cases_in_parallel(&cases, |(step, wait_seconds, run_arguments)| {
        let (world, model) = world_with_failing_first_session(vec![step.clone(), Step::from_text("I wait.")]);
        world.write(".claude/plimsoll.json", &json!({ "background_wait_seconds": wait_seconds }).to_string());
        let finished = run_to_end(&world, run_arguments, &OPUS_ARGUMENTS);
        let context = format!("{run_arguments:?} {finished:#?}");
        assert_run_continues_and_completes(
            &world,
            &model,
            &finished,
            "1 completed: - → RALPH_CONTINUE|next|1 open item",
        );
        let journal = read_journal(&world);
        let ended_entries = events_named(&journal, "client_ended");
        assert_eq!(ended_entries.len(), 1, "{context}");
        assert_eq!(
            ended_entries[0]["reason"],
            format!("still running {wait_seconds} s after its result"),
            "{context}"
        );
        assert_eq!(session_processes(&world, &first_session_id(&world)), [""; 0], "{context}");
    });
}

// ---- a stand-in for the client, for what the real one does not do on demand ----

/// A world whose run uses this script for its first session. Sessions started as `claude` are replayed, except those
/// with these numbers, which use the real client.
fn world_with_stand_in(script: &str, real_iterations: &[u32]) -> (World, ScriptedModel) {
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
    let mut world = world_with_plan_and_dates(ONE_ITEM_PLAN);
    let model = ScriptedAgent::new(|turn| honest_agent(turn).with_delay(LIFELIKE_DELAY))
        .with_real_client_in(real_iterations)
        .start(&mut world);
    let path = world.home().join("stand-in");
    world.write(&path, &format!("{SCRIPT}{script}\n"));
    world.command("/bin/chmod", &["+x", &path.display().to_string()]).run().expect_success();
    (world, model)
}

fn spawn_run_with_stand_in(world: &World, run_arguments: &[&str]) -> RunningProgram {
    let path = world.home().join("stand-in").display().to_string();
    spawn_run(world, &[run_arguments, &["--client", &path]].concat(), &OPUS_ARGUMENTS)
}

#[test]
fn neither_exit_status_nor_the_word_success_proves_a_good_ending() {
    let result_script =
        |rest: &str| format!(r#"begin; echo '{{"type":"result","subtype":"success",{rest}}}'"#);
    let error_script = result_script(
        r#""is_error":true,"terminal_reason":"api_error","api_error_status":400,"result":"No""#,
    );
    let overloaded_script =
        result_script(r#""is_error":true,"result":"API Error: 529 {\"type\":\"error\"}""#);
    let done_script = result_script(r#""is_error":false,"terminal_reason":"completed","result":"Not yet.""#);
    let torn_script = r#"begin; printf '{"type":"result","subtype":"success","is_err'"#.to_owned();
    let cases = [
        (&error_script, "exit 0", "1 failed: No → RALPH_CONTINUE|next|the session failed: No; 1 open item"),
        (&overloaded_script, "exit 0", "1 overloaded: API Error: 529 "),
        (&done_script, "exit 1", "1 completed: - → RALPH_CONTINUE|next|1 open item"),
        (&done_script, "kill -9 $$", "1 completed: - → RALPH_CONTINUE|next|1 open item"),
        (
            &torn_script,
            "exit 0",
            "1 crashed: ended with exit code 0, without a result → RALPH_CONTINUE|next|Claude Code",
        ),
    ];
    run_cases_in_parallel(&cases, |(script, exit_command, first_verdict)| {
        let (world, model) = world_with_stand_in(&format!("{script}; {exit_command}"), &[]);
        let finished = spawn_run_with_stand_in(&world, &[]).wait_or_kill_and_panic(RUN_TIMEOUT);
        assert_run_continues_and_completes(&world, &model, &finished, first_verdict);
    });
}
