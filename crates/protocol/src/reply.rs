//! The reply: what a hook tells the client, and through it the model and the user.

use crate::foreign_words::{for_model, visible};
use serde::Serialize;
use serde_json::Value;

/// One JSON object on standard output. The default says nothing and changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reply {
    /// False ends the session (at PostToolUse, PostToolBatch and Stop).
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub continues: Option<bool>,
    /// Why, for the user; the model sees it when the session is resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// A line for the user; never reaches the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_message: Option<String>,
    /// What reaches the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_specific_output: Option<Specific>,
}

/// The part that must name its event, or the client drops the whole reply.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Specific {
    /// The event that is being answered.
    pub hook_event_name: String,
    /// Text for the model; under 10,000 characters, or the client replaces it by a preview.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_context: Option<String>,
    /// At PreToolUse: `allow` or `deny`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_decision: Option<&'static str>,
    /// Why; of a denial the model is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_decision_reason: Option<String>,
    /// At PreToolUse: what the tool gets instead, whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<Value>,
    /// At PostToolUse: what the tool is taken to have answered, in the tool's own shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_tool_output: Option<Value>,
}

impl Reply {
    /// Adds a line for the user. An empty text adds nothing.
    pub fn tell_user(mut self, message: impl Into<String>) -> Reply {
        self.system_message =
            Some(message.into()).filter(|message| !message.is_empty()).or(self.system_message);
        self
    }

    /// Adds text for the model. An empty text adds nothing.
    pub fn tell_model(mut self, event: &str, context: impl Into<String>) -> Reply {
        let additional_context = Some(context.into()).filter(|context: &String| !context.is_empty());
        if additional_context.is_some() {
            let hook_event_name = event.to_owned();
            self.hook_specific_output =
                Some(Specific { hook_event_name, additional_context, ..Specific::default() });
        }
        self
    }

    /// Adds text for the model behind what it is told already. An empty text adds nothing.
    pub fn also_tell_model(self, event: &str, context: &str) -> Reply {
        let Some(before) = self.context().filter(|_| !context.is_empty()) else {
            return self.tell_model(event, context);
        };
        let context = format!("{before}\n{context}");
        self.tell_model(event, context)
    }

    /// What the model is told.
    pub fn context(&self) -> Option<&str> {
        self.hook_specific_output.as_ref()?.additional_context.as_deref()
    }

    /// Lets a call pass that the user would be asked about, with another input if there is one.
    pub fn allow(self, input: Option<Value>) -> Reply {
        let updated_input = input.map(without_nulls);
        self.before_tool(Specific {
            permission_decision: Some("allow"),
            updated_input,
            ..Specific::default()
        })
    }

    /// Refuses a call, and tells the model why.
    pub fn deny(self, why: String) -> Reply {
        let permission_decision_reason = Some(why);
        self.before_tool(Specific {
            permission_decision: Some("deny"),
            permission_decision_reason,
            ..Specific::default()
        })
    }

    fn before_tool(self, specific: Specific) -> Reply {
        let hook_event_name = "PreToolUse".to_owned();
        Reply { hook_specific_output: Some(Specific { hook_event_name, ..specific }), ..self }
    }

    /// Puts another answer in the place of a tool's own, beside what the model is told.
    pub fn replace_output(self, output: Value) -> Reply {
        let specific = Specific {
            hook_event_name: "PostToolUse".to_owned(),
            updated_tool_output: Some(without_nulls(output)),
            ..self.hook_specific_output.unwrap_or_default()
        };
        Reply { hook_specific_output: Some(specific), ..self }
    }

    /// Ends the session. An empty reason ends it without one.
    pub fn end_session(mut self, reason: impl Into<String>) -> Reply {
        // Beside it the client drops context and message at PostToolUse, and keeps them at PostToolBatch (2.1.329).
        self.continues = Some(false);
        self.stop_reason = Some(reason.into()).filter(|reason| !reason.is_empty());
        self
    }

    /// The reply as the one line that goes to standard output. Whatever a text quotes, nothing in it is hidden, and none
    /// that reaches the model begins a tag of the client's.
    pub fn to_line(&self) -> String {
        let for_model = |text: &Option<String>| text.as_deref().map(for_model);
        let safe = Reply {
            stop_reason: for_model(&self.stop_reason),
            system_message: self.system_message.as_deref().map(|text| visible(text).into_owned()),
            hook_specific_output: self.hook_specific_output.as_ref().map(|specific| Specific {
                additional_context: for_model(&specific.additional_context),
                permission_decision_reason: for_model(&specific.permission_decision_reason),
                ..specific.clone()
            }),
            ..*self
        };
        // Texts, and JSON that was read as such: serialising cannot fail, and `{}` changes nothing.
        serde_json::to_string(&safe).unwrap_or_else(|_| "{}".to_owned())
    }
}

/// The client drops a whole reply with a `null` in it; a model may give one, and means nothing by it.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(fields.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        Value::Array(elements) => {
            let elements = elements.into_iter().filter(|element| !element.is_null());
            Value::Array(elements.map(without_nulls).collect())
        }
        value => value,
    }
}
