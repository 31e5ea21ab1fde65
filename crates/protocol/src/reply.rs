//! Hook replies: what a hook returns to the client, and through it to the model and the user.

use crate::untrusted_text::{escape_hidden_characters, sanitize_for_model};
use serde::Serialize;
use serde_json::Value;

/// The JSON object that a hook prints. The default has no effect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HookReply {
    /// False ends the session (at PostToolUse, PostToolBatch and Stop).
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub should_continue: Option<bool>,
    /// The reason, for the user; the model sees it when the session is resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// A line for the user; never reaches the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_message: Option<String>,
    /// The part that reaches the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_specific_output: Option<HookSpecificOutput>,
}

/// The event-specific part of a reply. It must name its event; otherwise the client drops the whole reply.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HookSpecificOutput {
    /// The event that the hook replies to.
    pub hook_event_name: String,
    /// Text for the model. The client replaces a text of more than 10,000 characters with a preview.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_context: Option<String>,
    /// At PreToolUse: `allow` or `deny`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_decision: Option<&'static str>,
    /// The reason; the model sees the reason of a denial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_decision_reason: Option<String>,
    /// At PreToolUse: the complete input that replaces the tool's input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<Value>,
    /// At PostToolUse: replaces the tool's output, in the tool's own shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_tool_output: Option<Value>,
}

impl HookReply {
    /// Sets the message for the user. An empty text changes nothing.
    pub fn with_user_message(mut self, message: impl Into<String>) -> HookReply {
        self.system_message =
            Some(message.into()).filter(|message| !message.is_empty()).or(self.system_message);
        self
    }

    /// Sets the text for the model and drops any other event-specific output. An empty text changes nothing.
    pub fn with_model_context(mut self, event: &str, context: impl Into<String>) -> HookReply {
        let additional_context = Some(context.into()).filter(|context: &String| !context.is_empty());
        if additional_context.is_some() {
            let hook_event_name = event.to_owned();
            self.hook_specific_output = Some(HookSpecificOutput {
                hook_event_name,
                additional_context,
                ..HookSpecificOutput::default()
            });
        }
        self
    }

    /// Appends text for the model to the existing text. An empty text changes nothing.
    pub fn append_model_context(self, event: &str, context: &str) -> HookReply {
        let Some(existing_context) = self.model_context().filter(|_| !context.is_empty()) else {
            return self.with_model_context(event, context);
        };
        let context = format!("{existing_context}\n{context}");
        self.with_model_context(event, context)
    }

    /// Returns the text for the model.
    pub fn model_context(&self) -> Option<&str> {
        self.hook_specific_output.as_ref()?.additional_context.as_deref()
    }

    /// Allows a call that would otherwise need the user's permission. Replaces its input if there is a new one.
    pub fn allow_tool_call(self, new_input: Option<Value>) -> HookReply {
        let updated_input = new_input.map(remove_nulls_recursively);
        self.replace_specific_output_for_pre_tool_use(HookSpecificOutput {
            permission_decision: Some("allow"),
            updated_input,
            ..HookSpecificOutput::default()
        })
    }

    /// Denies a call and gives the model the reason.
    pub fn deny_tool_call(self, reason: String) -> HookReply {
        let permission_decision_reason = Some(reason);
        self.replace_specific_output_for_pre_tool_use(HookSpecificOutput {
            permission_decision: Some("deny"),
            permission_decision_reason,
            ..HookSpecificOutput::default()
        })
    }

    fn replace_specific_output_for_pre_tool_use(self, specific_output: HookSpecificOutput) -> HookReply {
        let hook_event_name = "PreToolUse".to_owned();
        HookReply {
            hook_specific_output: Some(HookSpecificOutput { hook_event_name, ..specific_output }),
            ..self
        }
    }

    /// Replaces a tool's output and keeps the text for the model.
    pub fn replace_tool_output(self, output: Value) -> HookReply {
        let specific_output = HookSpecificOutput {
            hook_event_name: "PostToolUse".to_owned(),
            updated_tool_output: Some(remove_nulls_recursively(output)),
            ..self.hook_specific_output.unwrap_or_default()
        };
        HookReply { hook_specific_output: Some(specific_output), ..self }
    }

    /// Ends the session. An empty reason is omitted.
    pub fn end_session(mut self, reason: impl Into<String>) -> HookReply {
        // The client drops the context and message of such a reply at PostToolUse, and keeps them at PostToolBatch
        // (2.1.329).
        self.should_continue = Some(false);
        self.stop_reason = Some(reason.into()).filter(|reason| !reason.is_empty());
        self
    }

    /// Serializes the reply as one line of JSON for standard output, without a newline. Escapes hidden characters in all
    /// texts and breaks the client's tags in texts for the model.
    pub fn to_sanitized_json(&self) -> String {
        let sanitize_text = |text: &Option<String>| text.as_deref().map(sanitize_for_model);
        let sanitized_reply = HookReply {
            stop_reason: sanitize_text(&self.stop_reason),
            system_message: self
                .system_message
                .as_deref()
                .map(|text| escape_hidden_characters(text).into_owned()),
            hook_specific_output: self.hook_specific_output.as_ref().map(|specific_output| {
                HookSpecificOutput {
                    additional_context: sanitize_text(&specific_output.additional_context),
                    permission_decision_reason: sanitize_text(&specific_output.permission_decision_reason),
                    ..specific_output.clone()
                }
            }),
            ..*self
        };
        // The reply contains only text and JSON that was parsed, so serialization cannot fail; `{}` has no effect.
        serde_json::to_string(&sanitized_reply).unwrap_or_else(|_| "{}".to_owned())
    }
}

/// Removes all nulls: the client drops a whole reply with a `null`, and a `null` from the model has no meaning.
fn remove_nulls_recursively(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(fields.map(|(key, value)| (key, remove_nulls_recursively(value))).collect())
        }
        Value::Array(elements) => {
            let elements = elements.into_iter().filter(|element| !element.is_null());
            Value::Array(elements.map(remove_nulls_recursively).collect())
        }
        value => value,
    }
}
