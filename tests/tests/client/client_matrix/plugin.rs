//! A session with only the plugin.

use super::harness::{headless_session, world_with_client};
use super::probes::Findings;
use plimsoll_testkit::scripted_model::{Request, RequestKind, ScriptedModel, Step};
use plimsoll_testkit::workspace_root;

const PROMPT: &str = "Work with the plugin.";
const REMEMBERED_TEXT: &str = "Keep the public API as it is.";
const TOOL_NAME: &str = "mcp__plugin_plimsoll_plimsoll__update_registers";

pub(crate) fn probe_plugin(version: &str, findings: &mut Findings) {
    let model = ScriptedModel::start(scripted_answer);
    let world = world_with_client(version, &model);
    world.plimsoll(&["memory", "set", "R4", REMEMBERED_TEXT]).run().expect_success();
    let folder = workspace_root().join("hooks-config/plugin").display().to_string();
    let finished =
        headless_session(&world, PROMPT, &["--plugin-dir", &folder, "--allowedTools", "Bash"]).run();
    let requests: Vec<Request> = model
        .requests_of_kind(RequestKind::Main)
        .into_iter()
        .filter(|request| request.first_message_text().contains(PROMPT))
        .collect();
    let any_request = |predicate: &dyn Fn(&Request) -> bool| requests.iter().any(predicate);
    if requests.is_empty() {
        // A client without plugins reports that itself.
        assert!(finished.code != Some(0) && finished.stderr.contains("--plugin-dir"), "{finished:?}");
    }
    findings.record_bool("plugin.is taken", !requests.is_empty());
    findings.record_bool("plugin.tools", any_request(&|request| request.tool_names().contains(&TOOL_NAME)));
    findings.record_bool(
        "plugin.memory told",
        any_request(&|request| request.full_text().contains(REMEMBERED_TEXT)),
    );
    let knows_that_hooks_do_not_run =
        any_request(&|request| request.full_text().contains("do not run in it"));
    assert_eq!(
        knows_that_hooks_do_not_run,
        findings.is_yes("plugin.tools") && !findings.is_yes("plugin.memory told"),
        "the model knows why"
    );
    findings.record_bool(
        "plugin.L1 told",
        any_request(&|request| request.full_text().contains("CCS_WARNING|L1|6")),
    );
}

fn scripted_answer(request: &Request) -> Step {
    let answer = match request.assistant_message_count() {
        _ if !request.first_message_text().contains(PROMPT) => {
            Step::from_text("done").with_input_tokens(1_000)
        }
        0 => Step::bash_call("echo one").with_input_tokens(20_000),
        1 => Step::bash_call("echo two").with_input_tokens(105_000),
        2..4 => Step::bash_call("echo three").with_input_tokens(120_000),
        _ => Step::from_text("done").with_input_tokens(121_000),
    };
    answer.with_delay(plimsoll_tests::LIFELIKE_DELAY)
}
