//! What the client hands to a hook.

use super::Target;
use crate::seeds::{files, texts};
use crate::spoil::{behind_a_mark, spoil};
use plimsoll_protocol::agent::{AgentCall, replace_response_text};
use plimsoll_protocol::event::{HookEvent, HookPayload};
use plimsoll_protocol::tool::ToolCall;

pub(super) const TARGET: Target = Target { name: "hook_event", body, seeds, inputs: 20_000 };

/// A field and how it reads.
type Field = (&'static str, fn(&HookPayload) -> Option<&str>);

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = files("fixtures/hooks", ".json");
    seeds.extend(texts(&[
        r#"{"hook_event_name":"PostToolBatch","session_id":"s","tool_calls":[{"tool_name":"Read","tool_response":[{"type":"image","source":{"data":"AAAA"}},{"type":"text","text":"a\n"}]}]}"#,
        r#"{"hook_event_name":"PreToolUse","tool_name":"Agent","tool_use_id":"t","tool_input":{"subagent_type":"frame","prompt":"p","isolation":"worktree"}}"#,
    ]));
    seeds
}

fn body(bytes: &[u8]) {
    let quick = HookPayload::parse(bytes).ok();
    let patient = HookPayload::parse(&behind_a_mark(bytes)).ok();
    assert_eq!(format!("{quick:?}"), format!("{patient:?}"), "both ways of reading say the same");
    let Some(hook) = quick else {
        assert!(spoil(bytes).is_none_or(|spoiled| HookPayload::parse(spoiled.before.as_bytes()).is_ok()));
        return;
    };
    hook.event.tool_calls().iter().for_each(call);
    if let HookEvent::PreToolUse(intent) = &hook.event {
        let asked = AgentCall::from_input(intent.tool_input.as_deref());
        let told = asked.foreground_input_with_prompt("frame", "the brief");
        let again = serde_json::value::to_raw_value(&told).expect("JSON");
        assert_eq!(AgentCall::from_input(Some(&again)).prompt, "the brief");
    }
    one_bad_field(bytes);
}

fn call(call: &ToolCall) {
    let Some(answer) = call.tool_response.as_deref() else { return };
    let seen = call.visible_size();
    assert!(seen.text_bytes + seen.image_count <= answer.get().len() as u64, "no more than stands there");
    if let Some(told) = replace_response_text(answer, "words") {
        assert_eq!(told["content"][0]["text"], "words");
    }
}

fn one_bad_field(bytes: &[u8]) {
    let Some(spoiled) = spoil(bytes) else { return };
    let read = |text: &str| HookPayload::parse(text.as_bytes()).expect("an object");
    let (before, after) = (read(&spoiled.before), read(&spoiled.after));
    assert_eq!(format!("{before:?}"), format!("{:?}", read(&spoiled.richer)), "a later client's field");
    let fields: [Field; 6] = [
        ("session_id", |hook| hook.session_id.as_deref()),
        ("transcript_path", |hook| hook.transcript_path.as_deref()),
        ("cwd", |hook| hook.cwd.as_deref()),
        ("agent_id", |hook| hook.agent_id.as_deref()),
        ("agent_type", |hook| hook.agent_type.as_deref()),
        ("hook_event_name", |hook| Some(hook.event.name())),
    ];
    for (_, field) in fields.iter().filter(|(name, _)| *name != spoiled.key) {
        assert_eq!(field(&before), field(&after), "{} costs only itself", spoiled.key);
    }
    if !["hook_event_name", "tool_calls"].contains(&spoiled.key.as_str()) {
        assert_eq!(before.event.tool_calls().len(), after.event.tool_calls().len());
    }
}
