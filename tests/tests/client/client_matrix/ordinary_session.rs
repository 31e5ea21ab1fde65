//! An ordinary session after `plimsoll init`: what `init` and `doctor` report about the client, the warning, the turn
//! log, the tools of the MCP server.

use super::harness::{
    SESSION_ID, TIMEOUT, call_subagent, headless_session, transcript_lines, world_with_client,
};
use super::probes::Findings;
use plimsoll_domain::SessionId;
use plimsoll_domain::log_line::MAIN_STREAM;
use plimsoll_flows::turns::records_from_start;
use plimsoll_protocol::settings::servers;
use plimsoll_store::{Project, TurnLog};
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::{Value, json};

const PROMPT: &str = "Work on the dates.";
const BRIEF: &str = "Count the dates.";
const TOOL_NAME: &str = "mcp__plimsoll__update_registers";
const REMEMBERED_TEXT: &str = "Keep the public API as it is.";

pub(crate) fn probe_ordinary_session(version: &str, findings: &mut Findings) {
    let model = ScriptedModel::start(scripted_answer);
    let world = world_with_client(version, &model);
    let is_modern = probe_installation(&world, version, findings);
    let config = servers::mcp_config(&str::to_owned).to_string();
    let mut arguments = vec!["--allowedTools", "Bash,Task,Agent,mcp__plimsoll"];
    if !is_modern {
        arguments.extend(["--mcp-config", &config]);
    }
    headless_session(&world, PROMPT, &arguments).run().expect_success();
    let requests: Vec<Request> = model
        .requests()
        .into_iter()
        .filter(|request| request.first_message_text().contains(PROMPT))
        .collect();
    record_model_findings(&requests, findings);
    let mut subagent_requests = model.requests().into_iter().filter(is_from_subagent);
    findings.record_bool(
        "session.not told to a subagent",
        !subagent_requests.any(|request| request.full_text().contains("CCS_WARNING")),
    );
    record_turn_findings(&world, findings);
}

fn is_from_subagent(request: &Request) -> bool {
    let first = request.first_message_text();
    first.contains(BRIEF) && !first.contains(PROMPT)
}

/// Runs `init`, with the memory if the client supports it, and `doctor`. Returns whether the modern template was written.
fn probe_installation(world: &World, version: &str, findings: &mut Findings) -> bool {
    let init = world.plimsoll(&["init", "--local"]).run().expect_success();
    let is_modern = init.stdout.contains(&format!("Template: modern (Claude Code is {version})"));
    findings.record_bool("init.modern template", is_modern);
    if !is_modern {
        let words = format!("Template: classic (Claude Code is {version}; from ");
        assert!(init.stdout.contains(&words), "{init:?}");
    }
    let memory = world.plimsoll(&["init", "--local", "--memory"]).run();
    findings.record_bool("init.memory", memory.code == Some(0));
    if memory.code != Some(0) {
        assert_refusal_names_versions(&memory, version);
        let run = ["run", "--memory", "--objective", "Do it."];
        assert_refusal_names_versions(&world.plimsoll(&run).timeout(TIMEOUT).run(), version);
    } else {
        world.plimsoll(&["memory", "set", "R4", REMEMBERED_TEXT]).run().expect_success();
    }
    let doctor = world.plimsoll(&["doctor", "--json"]).run();
    let document = doctor.stdout_json();
    let reported = document["findings"].as_array().map(Vec::as_slice).unwrap_or_default().iter();
    let client_codes: Vec<&str> = reported
        .filter_map(|finding| finding["code"].as_str())
        .filter(|code| code.starts_with("client."))
        .collect();
    findings.record_word(
        "doctor.nothing to say of the client",
        if client_codes.is_empty() { "yes" } else { client_codes[0] },
    );
    is_modern
}

/// Asserts that a command was refused with a message that names the required and the installed version.
fn assert_refusal_names_versions(finished: &FinishedProgram, version: &str) {
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let (major, minor, patch) = plimsoll_protocol::settings::FIRST_MODERN_VERSION;
    for words in [version, &format!("{major}.{minor}.{patch}")] {
        assert!(finished.stderr.contains(words), "{words}: {finished:?}");
    }
}

/// Plays a call of Plimsoll's server, a subagent at the moment in which L1 is passed, another call, and an end.
fn scripted_answer(request: &Request) -> Step {
    let (first, step) = (request.first_message_text(), request.assistant_message_count());
    let answer = match (is_from_subagent(request), step) {
        (true, 0) => Step::bash_call("wc -l src/dates.txt").with_input_tokens(3_000),
        (true, _) => Step::from_text("200 lines.").with_input_tokens(3_100),
        _ if !first.contains(PROMPT) => Step::from_text("done").with_input_tokens(1_000),
        (false, 0) => Step::default()
            .with_tool_call(TOOL_NAME, json!({ "R2_NEXT": "Count the dates" }))
            .with_input_tokens(20_000),
        (false, 1) => Step::bash_call("echo near").with_input_tokens(105_000),
        (false, 2) => call_subagent(request, BRIEF).with_input_tokens(120_000),
        (false, 3..5) => Step::bash_call("echo on").with_input_tokens(120_500),
        (false, _) => Step::from_text("done").with_input_tokens(122_000),
    };
    answer.with_delay(plimsoll_tests::LIFELIKE_DELAY)
}

fn record_model_findings(requests: &[Request], findings: &mut Findings) {
    let (first, last) = (requests.first().expect("a request"), requests.last().expect("a request"));
    findings.record_bool("mcp.tools in the first request", first.tool_names().contains(&TOOL_NAME));
    let results = last.all_tool_results();
    findings.record_bool("mcp.call answered", results.iter().any(|(_, text)| text.starts_with("ok r")));
    findings.record_bool("memory.told", first.full_text().contains(REMEMBERED_TEXT));
    let warnings = last.full_text().matches("CCS_WARNING|L1|6").count();
    findings.record_word(
        "session.L1 told once",
        match warnings {
            1 => "yes",
            0 => "no",
            _ => "twice",
        },
    );
}

/// Checks that each response of the session and of its subagent is a turn in the log.
fn record_turn_findings(world: &World, findings: &mut Findings) {
    let log = TurnLog::for_session_where_started_or_current(
        &Project::with_local_files(&world.project()),
        &SessionId::from(SESSION_ID),
    )
    .expect("a plain id");
    let records: Vec<_> =
        records_from_start(&log).expect("a log").map(|record| record.expect("a record")).collect();
    let verified = world.plimsoll(&["turns", "verify"]).run();
    let main_turn_count = records
        .iter()
        .filter(|record| record.is_turn_record() && record.header.stream == MAIN_STREAM)
        .count();
    findings.record_bool("turns.of the session", main_turn_count == 6 && verified.code == Some(0));
    let subagent_turn_count = records
        .iter()
        .filter(|record| record.is_turn_record() && record.header.stream != MAIN_STREAM)
        .count();
    findings.record_bool("turns.of a subagent", subagent_turn_count == 2);
    let lines: Vec<Value> = transcript_lines(world);
    assert!(lines.iter().any(|line| line["type"] == "assistant"), "the client wrote a transcript");
}
