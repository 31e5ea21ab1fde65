//! A scripted agent that behaves like an honest agent. It extracts the item, the iteration and the promise line from its prompt,
//! and a callback chooses its response in each turn.

use crate::{Request, ScriptedModel, Step};

/// One turn of the agent, with the values extracted from the request.
#[derive(Debug)]
pub struct AgentTurn<'a> {
    pub request: &'a Request,
    /// Number of previous responses in this conversation; 0 in the first turn.
    pub assistant_message_count: usize,
    /// The text of the item in the prompt.
    pub item_text: Option<String>,
    /// The iteration number in the prompt; 0 if there is none.
    pub iteration: u32,
    /// The promise line that ends the run; empty if the prompt contains none.
    pub promise_line: String,
}

/// Starts a model that calls `choose_step` for each turn.
pub fn start_model_with_turn_script(
    mut choose_step: impl FnMut(&AgentTurn<'_>) -> Step + Send + 'static,
) -> ScriptedModel {
    ScriptedModel::start(move |request| choose_step(&AgentTurn::parse_prompt_in_request(request)))
}

impl<'a> AgentTurn<'a> {
    fn parse_prompt_in_request(request: &'a Request) -> AgentTurn<'a> {
        let text = request.full_text();
        let text_between = |start: &str, end: &str| {
            let remaining_text = &text[text.find(start)? + start.len()..];
            Some(remaining_text[..remaining_text.find(end)?].to_owned())
        };
        AgentTurn {
            request,
            assistant_message_count: request.assistant_message_count(),
            item_text: text_between("## Your item\n\n> ", "\n")
                // A compaction removes the prompt; the briefing then contains the item.
                .or_else(|| text_between("The current item is \"", "\" (")),
            iteration: text_between("You are session ", " of")
                .and_then(|iteration_text| iteration_text.parse().ok())
                .unwrap_or(0),
            // A worker's prompt has no COMPLETE line, but its BLOCKED line contains the same nonce.
            promise_line: text_between("\n<promise>COMPLETE ", "</promise>")
                .or_else(|| text_between("\n<promise>BLOCKED ", " REASON</promise>"))
                .map(|nonce| format!("<promise>COMPLETE {nonce}</promise>"))
                .unwrap_or_default(),
        }
    }

    /// Returns true if the conversation contains this text.
    pub fn request_contains(&self, text: &str) -> bool {
        self.request.full_text().contains(text)
    }
}

/// Returns a command line that ticks an item of `fix_plan.md` and commits everything. `-i` has a suffix because GNU and BSD
/// `sed` both accept that form.
pub fn tick_item_command(item: &str) -> String {
    format!(
        "sed -i.bak 's/^- \\[ \\] {item}$/- [x] {item}/' fix_plan.md && rm fix_plan.md.bak && git add -A && git commit -qm 'Finish {item}'"
    )
}
