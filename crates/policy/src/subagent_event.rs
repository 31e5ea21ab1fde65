//! Distinguishes hook events of subagents from those of the session itself, for clients that do not report which it is.

use plimsoll_protocol::transcript::{ContentBlock, TranscriptEntry};

/// Returns true if the event after a tool call belongs to a running subagent: the last message of the session called
/// an agent that has not returned yet, and the event is that of another tool. `transcript_lines` is the end of the
/// session's transcript, which is needed because clients before 2.1 do not report the subagent. A tool that the session
/// called in the same message as the agent is mistaken for the subagent's; the event of the agent tool corrects that.
pub fn is_event_of_running_subagent(tool_name: &str, transcript_lines: &[TranscriptEntry]) -> bool {
    if is_agent_tool(tool_name) {
        return false;
    }
    let mut returned_call_ids: Vec<String> = Vec::new();
    let mut last_message_id = None;
    // Read backwards: results come after their calls, so an agent call without a result is still running.
    for line in transcript_lines.iter().rev().filter(|line| !line.is_sidechain) {
        let blocks = line.message.blocks();
        let blocks_of_kind =
            |kind: &'static str| blocks.iter().filter(move |block| block.kind.as_deref() == Some(kind));
        match line.kind.as_deref() {
            Some("user") => {
                let results = blocks_of_kind("tool_result").filter_map(|block| block.tool_use_id.clone());
                let previous_count = returned_call_ids.len();
                returned_call_ids.extend(results);
                // The line is a prompt, so no call of an earlier message is still running.
                if returned_call_ids.len() == previous_count {
                    return false;
                }
            }
            Some("assistant") => {
                if last_message_id.get_or_insert(&line.message.id) != &&line.message.id {
                    return false;
                }
                let is_pending_agent_call = |block: &ContentBlock| {
                    let name = block.name.as_deref().unwrap_or_default();
                    is_agent_tool(name) && block.id.as_ref().is_none_or(|id| !returned_call_ids.contains(id))
                };
                if blocks_of_kind("tool_use").any(is_pending_agent_call) {
                    return true;
                }
            }
            _ => {}
        }
    }
    // The oldest clients write a subagent's lines into the same file, and the input may contain only such lines.
    last_message_id.is_none() && transcript_lines.last().is_some_and(|line| line.is_sidechain)
}

/// Returns true for the tool that starts a subagent. Older clients call it `Task`.
fn is_agent_tool(tool_name: &str) -> bool {
    matches!(tool_name, "Agent" | "Task")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_while_an_agent_runs_belongs_to_the_agent() {
        let lines = |texts: &[&str]| -> Vec<TranscriptEntry> {
            texts.iter().map(|text| TranscriptEntry::parse(text.as_bytes()).expect("a line")).collect()
        };
        let prompt = r#"{"type":"user","message":{"content":"Go on."}}"#;
        let agent = r#"{"type":"assistant","message":{"id":"a","content":[{"type":"tool_use","id":"t1","name":"Task"}]}}"#;
        let bash = r#"{"type":"assistant","message":{"id":"a","content":[{"type":"tool_use","id":"t2","name":"Bash"}]}}"#;
        let later = r#"{"type":"assistant","message":{"id":"b","content":[{"type":"tool_use","id":"t3","name":"Bash"}]}}"#;
        let report = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1"}]}}"#;
        let result = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t2"}]}}"#;
        let inner = r#"{"type":"assistant","isSidechain":true,"message":{"id":"c","content":[{"type":"tool_use","id":"t4","name":"Bash"}]}}"#;
        for (tool, texts, expected) in [
            ("Bash", &[prompt][..], false),
            ("Bash", &[prompt, bash], false),
            ("Bash", &[prompt, agent], true),
            ("Task", &[prompt, agent], false),
            ("Bash", &[prompt, agent, inner], true),
            ("Bash", &[prompt, bash, agent, result], true),
            ("Bash", &[prompt, agent, bash, result], true),
            ("Bash", &[prompt, agent, bash, report], false),
            ("Bash", &[prompt, agent, report, later], false),
            // The agent never returned, and the session was resumed.
            ("Bash", &[prompt, agent, prompt], false),
            ("Bash", &[prompt, agent, prompt, later], false),
            ("Bash", &[inner, inner], true),
            ("Bash", &[], false),
        ] {
            assert_eq!(
                is_event_of_running_subagent(tool, &lines(texts)),
                expected,
                "{tool} after {texts:#?}"
            );
        }
    }
}
