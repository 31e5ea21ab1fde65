//! Whose an event is, where the client does not say.

use plimsoll_protocol::transcript::{Block, Line};

/// Whether an event that comes after one tool is a subagent's, by the end of the session's transcript: clients before 2.1
/// do not say so. It is, when the session's last message has called an agent that has not answered, and another tool
/// speaks. A tool of that same message is then taken for a subagent's; the agent's own event makes up for it.
pub fn is_a_childs(tool: &str, lines: &[Line]) -> bool {
    if is_agent(tool) {
        return false;
    }
    let mut answered: Vec<String> = Vec::new();
    let mut message = None;
    // From the end: results come after the calls that they answer, so an agent's call without one is still at work.
    for line in lines.iter().rev().filter(|line| !line.is_sidechain) {
        let blocks = line.message.blocks();
        let of_kind =
            |kind: &'static str| blocks.iter().filter(move |block| block.kind.as_deref() == Some(kind));
        match line.kind.as_deref() {
            Some("user") => {
                let results = of_kind("tool_result").filter_map(|block| block.tool_use_id.clone());
                let before = answered.len();
                answered.extend(results);
                // A prompt: no message of before it waits for anything.
                if answered.len() == before {
                    return false;
                }
            }
            Some("assistant") => {
                if message.get_or_insert(&line.message.id) != &&line.message.id {
                    return false;
                }
                let waits = |block: &Block| {
                    let name = block.name.as_deref().unwrap_or_default();
                    is_agent(name) && block.id.as_ref().is_none_or(|id| !answered.contains(id))
                };
                if of_kind("tool_use").any(waits) {
                    return true;
                }
            }
            _ => {}
        }
    }
    // In the oldest clients a subagent's lines are in the same file: nothing else was near.
    message.is_none() && lines.last().is_some_and(|line| line.is_sidechain)
}

/// The tool that starts a subagent; it was called Task once.
fn is_agent(tool: &str) -> bool {
    matches!(tool, "Agent" | "Task")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_while_an_agent_is_at_work_is_taken_for_the_agents() {
        let lines = |texts: &[&str]| -> Vec<Line> {
            texts.iter().map(|text| Line::parse(text.as_bytes()).expect("a line")).collect()
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
            // It was never answered, and the session was taken up again.
            ("Bash", &[prompt, agent, prompt], false),
            ("Bash", &[prompt, agent, prompt, later], false),
            ("Bash", &[inner, inner], true),
            ("Bash", &[], false),
        ] {
            assert_eq!(is_a_childs(tool, &lines(texts)), expected, "{tool} after {texts:#?}");
        }
    }
}
