//! An ordinary session after `plimsoll init`: what `init` and `doctor` say of the client, the warning, the turn log,
//! the tools of the MCP server.

use super::harness::{ID, TIMEOUT, agent, session, transcript_lines, world};
use super::probes::Findings;
use plimsoll_domain::SessionId;
use plimsoll_domain::log_line::MAIN_STREAM;
use plimsoll_flows::turns::records_from_start;
use plimsoll_protocol::settings::servers;
use plimsoll_store::{Project, TurnLog};
use plimsoll_testkit::scripted_model::{Request, ScriptedModel, Step};
use plimsoll_testkit::world::{Finished, World};
use serde_json::{Value, json};

const PROMPT: &str = "Work on the dates.";
const BRIEF: &str = "Count the dates.";
const TOOL: &str = "mcp__plimsoll__update_registers";
const WORD: &str = "Keep the public API as it is.";

pub(crate) fn look(version: &str, findings: &mut Findings) {
    let model = ScriptedModel::start(answer);
    let world = world(version, &model);
    let is_modern = install(&world, version, findings);
    let config = servers::mcp_config(&str::to_owned).to_string();
    let mut more = vec!["--allowedTools", "Bash,Task,Agent,mcp__plimsoll"];
    if !is_modern {
        more.extend(["--mcp-config", &config]);
    }
    session(&world, PROMPT, &more).run().expect_success();
    let requests: Vec<Request> =
        model.requests().into_iter().filter(|request| request.first_text().contains(PROMPT)).collect();
    of_model(&requests, findings);
    let mut inner = model.requests().into_iter().filter(is_subagents);
    findings.note("session.not told to a subagent", !inner.any(|one| one.text().contains("CCS_WARNING")));
    of_turns(&world, findings);
}

fn is_subagents(request: &Request) -> bool {
    let first = request.first_text();
    first.contains(BRIEF) && !first.contains(PROMPT)
}

/// `init`, with the memory where the client can bear it, and `doctor`; whether the modern template was written.
fn install(world: &World, version: &str, findings: &mut Findings) -> bool {
    let init = world.plimsoll(&["init", "--local"]).run().expect_success();
    let is_modern = init.stdout.contains(&format!("Template: modern (the client is {version})"));
    findings.note("init.modern template", is_modern);
    if !is_modern {
        let words = format!("Template: classic (the client is {version}; from ");
        assert!(init.stdout.contains(&words), "{init:?}");
    }
    let memory = world.plimsoll(&["init", "--local", "--memory"]).run();
    findings.note("init.memory", memory.code == Some(0));
    if memory.code != Some(0) {
        refused(&memory, version);
        let run = ["run", "--memory", "--objective", "Do it."];
        refused(&world.plimsoll(&run).timeout(TIMEOUT).run(), version);
    } else {
        world.plimsoll(&["memory", "set", "R4", WORD]).run().expect_success();
    }
    let doctor = world.plimsoll(&["doctor", "--json"]).run();
    let document = doctor.json();
    let codes = document["findings"].as_array().map(Vec::as_slice).unwrap_or_default().iter();
    let of_client: Vec<&str> =
        codes.filter_map(|one| one["code"].as_str()).filter(|code| code.starts_with("client.")).collect();
    findings
        .say("doctor.nothing to say of the client", if of_client.is_empty() { "yes" } else { of_client[0] });
    is_modern
}

/// It is said which client is needed, and which one is there.
fn refused(finished: &Finished, version: &str) {
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let (major, minor, patch) = plimsoll_protocol::settings::FIRST_MODERN_VERSION;
    for words in [version, &format!("{major}.{minor}.{patch}")] {
        assert!(finished.stderr.contains(words), "{words}: {finished:?}");
    }
}

/// A call of our server, a subagent at the moment in which L1 is passed, a call more, and an end.
fn answer(request: &Request) -> Step {
    let (first, step) = (request.first_text(), request.answers());
    let answer = match (is_subagents(request), step) {
        (true, 0) => Step::bash("wc -l src/dates.txt").usage(3_000),
        (true, _) => Step::text("200 lines.").usage(3_100),
        _ if !first.contains(PROMPT) => Step::text("done").usage(1_000),
        (false, 0) => Step::default().tool(TOOL, json!({ "R2_NEXT": "Count the dates" })).usage(20_000),
        (false, 1) => Step::bash("echo near").usage(105_000),
        (false, 2) => agent(request, BRIEF).usage(120_000),
        (false, 3..5) => Step::bash("echo on").usage(120_500),
        (false, _) => Step::text("done").usage(122_000),
    };
    answer.delay(plimsoll_tests::LIFELIKE)
}

fn of_model(requests: &[Request], findings: &mut Findings) {
    let (first, last) = (requests.first().expect("a request"), requests.last().expect("a request"));
    findings.note("mcp.tools in the first request", first.tools().contains(&TOOL));
    let results = last.tool_results();
    findings.note("mcp.call answered", results.iter().any(|(_, text)| text.starts_with("ok r")));
    findings.note("memory.told", first.text().contains(WORD));
    let warnings = last.text().matches("CCS_WARNING|L1|6").count();
    findings.say(
        "session.L1 told once",
        match warnings {
            1 => "yes",
            0 => "no",
            _ => "twice",
        },
    );
}

/// Each response of the session is a turn; a subagent's own, too.
fn of_turns(world: &World, findings: &mut Findings) {
    let log = TurnLog::for_session(&Project::with_local_files(&world.project()), &SessionId::from(ID))
        .expect("a plain id");
    let records: Vec<_> =
        records_from_start(&log).expect("a log").map(|record| record.expect("a record")).collect();
    let verified = world.plimsoll(&["turns", "verify"]).run();
    let main = records
        .iter()
        .filter(|record| record.is_turn_record() && record.header.stream == MAIN_STREAM)
        .count();
    findings.note("turns.of the session", main == 6 && verified.code == Some(0));
    let inner = records
        .iter()
        .filter(|record| record.is_turn_record() && record.header.stream != MAIN_STREAM)
        .count();
    findings.note("turns.of a subagent", inner == 2);
    let lines: Vec<Value> = transcript_lines(world);
    assert!(lines.iter().any(|line| line["type"] == "assistant"), "the client wrote a transcript");
}
