//! A scripted agent that behaves like an honest one: it reads its prompt, follows the story, and takes the promise line only from
//! the request.

use crate::{Request, ScriptedModel, Step};

/// One turn of a story, with the facts that the agent reads from the request.
#[derive(Debug)]
pub struct StoryTurn<'a> {
    pub request: &'a Request,
    /// Number of earlier responses in this conversation; 0 in the first turn.
    pub answer_count: usize,
    /// The item in the prompt.
    pub item_text: Option<String>,
    /// The iteration in the prompt; 0 if it names none.
    pub iteration: u32,
    /// The promise line that ends the run; empty if the prompt contains none.
    pub promise_line: String,
}

/// Starts a model that plays a story.
pub fn start_story(mut choose_step: impl FnMut(&StoryTurn<'_>) -> Step + Send + 'static) -> ScriptedModel {
    ScriptedModel::start(move |request| choose_step(&StoryTurn::from_request(request)))
}

impl<'a> StoryTurn<'a> {
    fn from_request(request: &'a Request) -> StoryTurn<'a> {
        let text = request.full_text();
        let text_between = |start: &str, end: &str| {
            let rest = &text[text.find(start)? + start.len()..];
            Some(rest[..rest.find(end)?].to_owned())
        };
        StoryTurn {
            request,
            answer_count: request.answer_count(),
            item_text: text_between("## Your item\n\n> ", "\n")
                // After a compaction the prompt is gone; the briefing names the item.
                .or_else(|| text_between("The current item is \"", "\" (")),
            iteration: text_between("You are session ", " of")
                .and_then(|number| number.parse().ok())
                .unwrap_or(0),
            // A worker's prompt asks for no promise, but its blocked line contains the same code.
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
