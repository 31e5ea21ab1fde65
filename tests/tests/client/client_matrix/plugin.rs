//! A session with the plugin alone.

use super::harness::{session, world};
use super::probes::Findings;
use plimsoll_testkit::scripted_model::{Request, RequestKind, ScriptedModel, Step};
use plimsoll_testkit::workspace_root;

const PROMPT: &str = "Work with the plugin.";
const WORD: &str = "Keep the public API as it is.";
const TOOL: &str = "mcp__plugin_plimsoll_plimsoll__update_registers";

pub(crate) fn look(version: &str, findings: &mut Findings) {
    let model = ScriptedModel::start(answer);
    let world = world(version, &model);
    world.plimsoll(&["memory", "set", "R4", WORD]).run().expect_success();
    let folder = workspace_root().join("hooks-config/plugin").display().to_string();
    let finished = session(&world, PROMPT, &["--plugin-dir", &folder, "--allowedTools", "Bash"]).run();
    let requests: Vec<Request> = model
        .requests_of(RequestKind::Main)
        .into_iter()
        .filter(|request| request.first_text().contains(PROMPT))
        .collect();
    let some = |is_so: &dyn Fn(&Request) -> bool| requests.iter().any(is_so);
    if requests.is_empty() {
        // The client says so itself.
        assert!(finished.code != Some(0) && finished.stderr.contains("--plugin-dir"), "{finished:?}");
    }
    findings.note("plugin.is taken", !requests.is_empty());
    findings.note("plugin.tools", some(&|request| request.tools().contains(&TOOL)));
    findings.note("plugin.memory told", some(&|request| request.text().contains(WORD)));
    let is_told = some(&|request| request.text().contains("do not run in it"));
    assert_eq!(
        is_told,
        findings.is_yes("plugin.tools") && !findings.is_yes("plugin.memory told"),
        "the model knows why"
    );
    findings.note("plugin.L1 told", some(&|request| request.text().contains("CCS_WARNING|L1|6")));
}

fn answer(request: &Request) -> Step {
    let answer = match request.answers() {
        _ if !request.first_text().contains(PROMPT) => Step::text("done").usage(1_000),
        0 => Step::bash("echo one").usage(20_000),
        1 => Step::bash("echo two").usage(105_000),
        2..4 => Step::bash("echo three").usage(120_000),
        _ => Step::text("done").usage(121_000),
    };
    answer.delay(plimsoll_tests::LIFELIKE)
}
