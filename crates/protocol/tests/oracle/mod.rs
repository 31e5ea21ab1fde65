//! A model of the client: its reaction to a hook's output. Written from the recordings of client 2.1.329 in
//! `tests/fixtures/hook_output`, and compared with all of them in `reply_cases.rs`.
//!
//! Not modeled, because no recording shows it: several hooks on one event, exit 2 together with a broken object, a
//! shape of `updatedToolOutput` other than Bash's, `asyncRewake`.

use serde_json::{Map, Value};

/// The output of a hook: everything that the client receives from it.
#[derive(Clone, Copy)]
pub(crate) struct Output<'a> {
    pub(crate) event: &'a str,
    pub(crate) stdout: &'a str,
    pub(crate) stderr: &'a str,
    pub(crate) exit: i64,
}

/// One message to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelText {
    /// `system`, `user`, `tool_result`, `tool_result(error)`.
    pub(crate) role: &'static str,
    pub(crate) text: String,
    /// False if the client keeps the text in a file and gives the model a preview of 2 KB.
    pub(crate) whole: bool,
}

/// The client's reaction.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Effect {
    /// In the next request.
    pub(crate) reaches_model: Vec<ModelText>,
    /// Only when the session is resumed.
    pub(crate) reaches_model_after_resume: Vec<String>,
    /// In the prompt of the summarizer.
    pub(crate) instructs_summarizer: Option<String>,
    /// A line on the screen; never for the model.
    pub(crate) reaches_user: Option<String>,
    /// The run makes no further request.
    pub(crate) stops_loop: bool,
    /// The pending action does not happen: the end of the turn, the tool, the prompt, the compaction.
    pub(crate) blocks: bool,
    /// The input that a tool runs with instead of its own.
    pub(crate) replaces_input: Option<Value>,
    /// The reason in the result object, if this hook ends the run.
    pub(crate) terminal_reason: Option<&'static str>,
    /// The result's text is empty, or the client's own text.
    pub(crate) loses_last_text: bool,
}

/// A context of more characters reaches the model only as a preview.
const LONGEST_CONTEXT: usize = 10_000;

/// The client's interpretation of standard output.
enum Understood {
    Text(String),
    Fields(Map<String, Value>),
    /// An object that the client rejects: it has no effect, whatever the exit code.
    Refused,
}

pub(crate) fn what_the_client_does(output: Output<'_>) -> Effect {
    let (text, fields) = match understand(output.event, output.stdout) {
        Understood::Refused => return Effect::default(),
        Understood::Text(text) => (text, Map::new()),
        Understood::Fields(fields) => (String::new(), fields),
    };
    let heard = Heard { output, text, fields };
    let mut effect = match output.event {
        "PostToolUse" => heard.after_a_tool(true),
        "PostToolUseFailure" => heard.after_a_tool(false),
        "PostToolBatch" => heard.after_all_tools(),
        "Stop" | "SubagentStop" => heard.at_the_end_of_a_turn(),
        "SessionStart" => Effect { reaches_model: heard.text_and_context(), ..Effect::default() },
        "UserPromptSubmit" => heard.before_a_prompt(),
        "PreToolUse" => heard.before_a_tool(),
        "PreCompact" => heard.before_a_compaction(),
        _ => Effect::default(),
    };
    let dropped = output.event == "PostToolUse" && heard.ends();
    effect.reaches_user = heard.field("systemMessage").filter(|_| !dropped).map(str::to_owned);
    effect
}

fn understand(event: &str, stdout: &str) -> Understood {
    let trimmed = stdout.trim_matches(|character: char| character.is_whitespace() || character == '\u{feff}');
    if !(trimmed.starts_with('{') && trimmed.ends_with('}')) {
        return Understood::Text(trimmed.to_owned());
    }
    match serde_json::from_str::<Value>(trimmed) {
        Ok(Value::Object(fields)) if is_accepted(event, &fields) => Understood::Fields(fields),
        _ => Understood::Refused,
    }
}

/// Returns true for correct types, no `null`, and a `hookSpecificOutput` that names this event.
fn is_accepted(event: &str, fields: &Map<String, Value>) -> bool {
    let typed = fields.iter().all(|(key, value)| match key.as_str() {
        "continue" | "suppressOutput" => value.is_boolean(),
        "stopReason" | "systemMessage" | "reason" => value.is_string(),
        "decision" => matches!(value.as_str(), Some("block" | "approve")),
        "hookSpecificOutput" => value.is_object(),
        _ => true,
    });
    let specific = fields.get("hookSpecificOutput").and_then(Value::as_object).is_none_or(|specific| {
        let texts = ["additionalContext", "permissionDecision", "permissionDecisionReason", "sessionTitle"];
        let typed = texts.iter().all(|key| specific.get(*key).is_none_or(Value::is_string));
        typed && specific.get("hookEventName").and_then(Value::as_str) == Some(event)
    });
    typed && specific
}

fn new_model_text(role: &'static str, text: impl Into<String>) -> ModelText {
    ModelText { role, text: text.into(), whole: true }
}

/// The parsed output of one hook.
struct Heard<'a> {
    output: Output<'a>,
    text: String,
    fields: Map<String, Value>,
}

impl Heard<'_> {
    fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name)?.as_str()
    }

    fn specific(&self, name: &str) -> Option<&Value> {
        self.fields.get("hookSpecificOutput")?.get(name)
    }

    /// Returns true for `continue: false`.
    fn ends(&self) -> bool {
        self.fields.get("continue") == Some(&Value::Bool(false))
    }

    fn label(&self) -> String {
        let tool = matches!(self.output.event, "PreToolUse" | "PostToolUse" | "PostToolUseFailure");
        format!("{}{}", self.output.event, if tool { ":Bash" } else { "" })
    }

    fn command(&self) -> String {
        format!("/home/dev/bin/hook {}", self.output.event)
    }

    /// Returns the reason if the hook blocks: by `decision`, or by exit 2 and standard error.
    fn blocking(&self) -> Option<String> {
        if self.field("decision") == Some("block") {
            return Some(self.field("reason").unwrap_or("Blocked by hook").to_owned());
        }
        let error = if self.output.stderr.is_empty() { "No stderr output" } else { self.output.stderr };
        (self.output.exit == 2).then(|| format!("[{}]: {error}", self.command()))
    }

    fn context(&self) -> Option<ModelText> {
        let context = self.specific("additionalContext")?.as_str().filter(|text| !text.is_empty())?;
        let text = format!("{} hook additional context: {context}", self.label());
        Some(ModelText { role: "system", text, whole: context.chars().count() <= LONGEST_CONTEXT })
    }

    /// Returns the blocking error and the context as the model receives them: in one system message.
    fn error_and_context(&self) -> Vec<ModelText> {
        let error = self.blocking().map(|reason| {
            let head = format!("{} hook blocking error from command: \"{}\"", self.label(), self.command());
            new_model_text("system", format!("{head}: {reason}"))
        });
        let joined = error.into_iter().chain(self.context()).reduce(|first, second| ModelText {
            text: format!("{}\n\n{}", first.text, second.text),
            ..second
        });
        joined.into_iter().collect()
    }

    /// For events where plain text has the effect of a context; it counts only with exit 0.
    fn text_and_context(&self) -> Vec<ModelText> {
        let heard = self.output.exit == 0 && !self.text.is_empty();
        let text = heard.then(|| ModelText {
            role: "system",
            text: format!("{} hook success: {}", self.output.event, self.text),
            whole: self.text.chars().count() <= LONGEST_CONTEXT,
        });
        text.into_iter().chain(self.context()).collect()
    }

    fn stopped(reason: &'static str) -> Effect {
        Effect { stops_loop: true, loses_last_text: true, terminal_reason: Some(reason), ..Effect::default() }
    }

    fn after_a_tool(&self, may_stop: bool) -> Effect {
        if may_stop && self.ends() {
            return Self::stopped("hook_stopped");
        }
        let mut reaches_model = self.error_and_context();
        let replacement = self.specific("updatedToolOutput").and_then(|shape| shape.get("stdout")?.as_str());
        reaches_model.splice(0..0, replacement.map(|text| new_model_text("tool_result", text)));
        Effect { reaches_model, ..Effect::default() }
    }

    fn after_all_tools(&self) -> Effect {
        if self.ends() || self.blocking().is_some() {
            let kept = self.context().into_iter().map(|context| context.text).collect();
            return Effect { reaches_model_after_resume: kept, ..Self::stopped("hook_stopped") };
        }
        Effect { reaches_model: self.error_and_context(), ..Effect::default() }
    }

    fn at_the_end_of_a_turn(&self) -> Effect {
        let blocking = self.blocking();
        if self.ends() {
            return Effect { loses_last_text: blocking.is_some(), ..Self::stopped("stop_hook_prevented") };
        }
        let mut reaches_model = Vec::new();
        if let Some(reason) = &blocking {
            reaches_model.push(new_model_text("user", format!("Stop hook feedback:\n{reason}")));
            if self.field("decision") == Some("block") {
                reaches_model.extend(self.error_and_context());
            }
        } else if let Some(context) = self.context() {
            let text = format!("<system-reminder>\n{}\n</system-reminder>", context.text);
            reaches_model.push(ModelText { role: "user", text, ..context });
        }
        Effect { blocks: !reaches_model.is_empty(), reaches_model, ..Effect::default() }
    }

    fn before_a_prompt(&self) -> Effect {
        let blocks = self.blocking().is_some();
        if blocks || self.ends() {
            return Effect { blocks, stops_loop: true, loses_last_text: true, ..Effect::default() };
        }
        Effect { reaches_model: self.text_and_context(), ..Effect::default() }
    }

    fn before_a_tool(&self) -> Effect {
        if self.ends() {
            return Self::stopped("hook_stopped");
        }
        let why = self.specific("permissionDecisionReason").and_then(Value::as_str).unwrap_or_default();
        let refusal = match self.specific("permissionDecision").and_then(Value::as_str) {
            Some("defer") => return Self::stopped("tool_deferred"),
            Some("deny") => Some(format!("PreToolUse:Bash hook error: {why}")),
            Some("ask") => Some(why.to_owned()),
            _ => self.blocking().map(|reason| format!("PreToolUse:Bash hook error: {reason}")),
        };
        let blocks = refusal.is_some();
        let refusal = refusal.map(|text| new_model_text("tool_result(error)", text));
        Effect {
            blocks,
            reaches_model: refusal.into_iter().chain(self.context()).collect(),
            replaces_input: self.specific("updatedInput").filter(|_| !blocks).cloned(),
            ..Effect::default()
        }
    }

    /// An object without `hookSpecificOutput` is used as instructions unchanged, even an empty one.
    fn before_a_compaction(&self) -> Effect {
        let raw = self.output.stdout.trim();
        let instructs =
            self.output.exit == 0 && !raw.is_empty() && !self.fields.contains_key("hookSpecificOutput");
        Effect {
            blocks: self.blocking().is_some(),
            instructs_summarizer: instructs.then(|| raw.to_owned()),
            ..Effect::default()
        }
    }
}
