//! The payload that the client passes to a hook.

use super::Target;
use crate::seeds::{read_files, text_seeds};
use crate::spoil::{spoil_one_field, with_byte_order_mark};
use plimsoll_protocol::agent::{AgentCall, replace_response_content_with_text};
use plimsoll_protocol::event::{HookEvent, HookPayload};
use plimsoll_protocol::tool::ToolCall;

pub(super) const TARGET: Target =
    Target { name: "hook_event", check_input, seeds, mutated_input_count: 20_000 };

/// The name of a field, and a function that reads it.
type FieldReader = (&'static str, fn(&HookPayload) -> Option<&str>);

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = read_files("fixtures/hooks", ".json");
    seeds.extend(text_seeds(&[
        r#"{"hook_event_name":"PostToolBatch","session_id":"s","tool_calls":[{"tool_name":"Read","tool_response":[{"type":"image","source":{"data":"AAAA"}},{"type":"text","text":"a\n"}]}]}"#,
        r#"{"hook_event_name":"PreToolUse","tool_name":"Agent","tool_use_id":"t","tool_input":{"subagent_type":"frame","prompt":"p","isolation":"worktree"}}"#,
    ]));
    seeds
}

fn check_input(bytes: &[u8]) {
    let from_fast_path = HookPayload::parse(bytes).ok();
    let from_slow_path = HookPayload::parse(&with_byte_order_mark(bytes)).ok();
    assert_eq!(
        format!("{from_fast_path:?}"),
        format!("{from_slow_path:?}"),
        "both ways of reading say the same"
    );
    let Some(hook) = from_fast_path else {
        assert!(
            spoil_one_field(bytes)
                .is_none_or(|spoiled| HookPayload::parse(spoiled.original.as_bytes()).is_ok())
        );
        return;
    };
    hook.event.tool_calls().iter().for_each(check_tool_call);
    if let HookEvent::PreToolUse(intent) = &hook.event {
        let agent_call = AgentCall::from_input(intent.tool_input.as_deref());
        let with_brief = agent_call.foreground_input_without_isolation("frame", "the brief");
        let encoded = serde_json::value::to_raw_value(&with_brief).expect("JSON");
        assert_eq!(AgentCall::from_input(Some(&encoded)).prompt, "the brief");
    }
    check_one_bad_field(bytes);
}

fn check_tool_call(call: &ToolCall) {
    let Some(response) = call.tool_response.as_deref() else { return };
    let visible_size = call.visible_size();
    assert!(
        visible_size.text_bytes + visible_size.image_count <= response.get().len() as u64,
        "no more than stands there"
    );
    if let Some(replaced) = replace_response_content_with_text(response, "words") {
        assert_eq!(replaced["content"][0]["text"], "words");
    }
}

fn check_one_bad_field(bytes: &[u8]) {
    let Some(spoiled) = spoil_one_field(bytes) else { return };
    let parse = |text: &str| HookPayload::parse(text.as_bytes()).expect("an object");
    let (before, after) = (parse(&spoiled.original), parse(&spoiled.with_bad_field));
    assert_eq!(
        format!("{before:?}"),
        format!("{:?}", parse(&spoiled.with_extra_field)),
        "a later client's field"
    );
    let fields: [FieldReader; 6] = [
        ("session_id", |hook| hook.session_id.as_deref()),
        ("transcript_path", |hook| hook.transcript_path.as_deref()),
        ("cwd", |hook| hook.cwd.as_deref()),
        ("agent_id", |hook| hook.agent_id.as_deref()),
        ("agent_type", |hook| hook.agent_type.as_deref()),
        ("hook_event_name", |hook| Some(hook.event.name())),
    ];
    for (_, field) in fields.iter().filter(|(name, _)| *name != spoiled.spoiled_key) {
        assert_eq!(field(&before), field(&after), "{} costs only itself", spoiled.spoiled_key);
    }
    if !["hook_event_name", "tool_calls"].contains(&spoiled.spoiled_key.as_str()) {
        assert_eq!(before.event.tool_calls().len(), after.event.tool_calls().len());
    }
}
