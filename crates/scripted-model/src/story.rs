//! A scripted agent that behaves like an honest one: it reads its prompt, does what the story says, and knows
//! the promise line only from what it was sent.

use crate::{Request, ScriptedModel, Step};

/// One turn of a story: what the agent knows when it answers.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The whole request.
    pub request: &'a Request,
    /// How many answers it has given in this conversation: 0 for the first.
    pub step: usize,
    /// The item that the prompt asks for.
    pub item: Option<String>,
    /// The iteration that the prompt names.
    pub iteration: u32,
    /// The exact line that ends the run.
    pub promise: String,
}

/// Starts a model that plays a story.
pub fn story(mut tell: impl FnMut(&Turn<'_>) -> Step + Send + 'static) -> ScriptedModel {
    ScriptedModel::start(move |request| tell(&Turn::of(request)))
}

impl<'a> Turn<'a> {
    fn of(request: &'a Request) -> Turn<'a> {
        let text = request.text();
        let between = |start: &str, end: &str| {
            let rest = &text[text.find(start)? + start.len()..];
            Some(rest[..rest.find(end)?].to_owned())
        };
        Turn {
            request,
            step: request.answers(),
            item: between("## Your item\n\n> ", "\n")
                // After a compaction the prompt is gone, and the briefing says it.
                .or_else(|| between("The current item is \"", "\" (")),
            iteration: between("You are session ", " of").and_then(|number| number.parse().ok()).unwrap_or(0),
            // The prompt of a worker asks for no promise, and its blocked line has the same code.
            promise: between("\n<promise>COMPLETE ", "</promise>")
                .or_else(|| between("\n<promise>BLOCKED ", " REASON</promise>"))
                .map(|nonce| format!("<promise>COMPLETE {nonce}</promise>"))
                .unwrap_or_default(),
        }
    }

    /// True when the conversation holds these words.
    pub fn saw(&self, words: &str) -> bool {
        self.request.text().contains(words)
    }
}

/// A command line that ticks an item of `fix_plan.md` and commits everything. With a suffix behind `-i` it is every system's sed.
pub fn tick(item: &str) -> String {
    format!(
        "sed -i.bak 's/^- \\[ \\] {item}$/- [x] {item}/' fix_plan.md && rm fix_plan.md.bak && git add -A && git commit -qm 'Finish {item}'"
    )
}
