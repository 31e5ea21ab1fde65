//! The reply: what a hook tells the client, and through it the model and the person.

use serde::Serialize;

/// One JSON object on standard output. The default says nothing and changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reply {
    /// False ends the session (at PostToolUse, PostToolBatch and Stop).
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub continues: Option<bool>,
    /// Why, for the person; the model sees it when the session is resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// A line for the person; never reaches the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_message: Option<String>,
    /// What reaches the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_specific_output: Option<Specific>,
}

/// The part that must name its event, or the client drops the whole reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Specific {
    /// The event that is being answered.
    pub hook_event_name: String,
    /// Text for the model; under 10,000 characters, or the client replaces it by a preview.
    pub additional_context: String,
}

impl Reply {
    /// Adds a line for the person. An empty text adds nothing.
    pub fn tell_person(mut self, message: impl Into<String>) -> Reply {
        self.system_message =
            Some(message.into()).filter(|message| !message.is_empty()).or(self.system_message);
        self
    }

    /// Adds text for the model. An empty text adds nothing.
    pub fn tell_model(mut self, event: &str, context: impl Into<String>) -> Reply {
        let additional_context = context.into();
        if !additional_context.is_empty() {
            self.hook_specific_output =
                Some(Specific { hook_event_name: event.to_owned(), additional_context });
        }
        self
    }

    /// Ends the session. An empty reason ends it without one.
    pub fn end_session(mut self, reason: impl Into<String>) -> Reply {
        self.continues = Some(false);
        self.stop_reason = Some(reason.into()).filter(|reason| !reason.is_empty());
        self
    }

    /// The reply as the one line that goes to standard output.
    pub fn to_line(&self) -> String {
        // Strings and booleans only: serialising cannot fail, and `{}` changes nothing.
        serde_json::to_string(self).unwrap_or_else(|_| "{}".to_owned())
    }
}
