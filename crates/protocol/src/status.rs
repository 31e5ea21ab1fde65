//! What the client hands to a status line command.

use crate::lenient;
use crate::{Malformed, parse};
use serde::Deserialize;

/// One call of the status line.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct StatusPayload {
    /// The session.
    #[serde(deserialize_with = "lenient::text")]
    pub session_id: Option<String>,
    /// Its transcript.
    #[serde(deserialize_with = "lenient::text")]
    pub transcript_path: Option<String>,
    /// The present working directory.
    #[serde(deserialize_with = "lenient::text")]
    pub cwd: Option<String>,
    /// The model.
    #[serde(deserialize_with = "lenient::field")]
    pub model: Model,
    /// Where the session works.
    #[serde(deserialize_with = "lenient::field")]
    pub workspace: Workspace,
    /// What it has cost.
    #[serde(deserialize_with = "lenient::field")]
    pub cost: Cost,
    /// How full the window is, in the client's own figures.
    #[serde(deserialize_with = "lenient::field")]
    pub context_window: ContextWindow,
    /// The client's version.
    #[serde(deserialize_with = "lenient::text")]
    pub version: Option<String>,
}

/// The model of a status payload.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Model {
    /// With the `[1m]` suffix.
    #[serde(deserialize_with = "lenient::text")]
    pub id: Option<String>,
    /// As a person reads it.
    #[serde(deserialize_with = "lenient::text")]
    pub display_name: Option<String>,
}

/// Where the session works.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Workspace {
    /// The present working directory.
    #[serde(deserialize_with = "lenient::text")]
    pub current_dir: Option<String>,
    /// The directory the client was started in.
    #[serde(deserialize_with = "lenient::text")]
    pub project_dir: Option<String>,
}

/// What the session has cost.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// In US dollars, as the client reckons it.
    #[serde(deserialize_with = "lenient::field")]
    pub total_cost_usd: Option<f64>,
}

/// How full the window is, in the client's own figures.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ContextWindow {
    /// The window in tokens.
    #[serde(deserialize_with = "lenient::count")]
    pub context_window_size: Option<u64>,
    /// Input, cache creation and cache read of the last response; 0 before the first.
    #[serde(deserialize_with = "lenient::count")]
    pub total_input_tokens: Option<u64>,
    /// Output of the last response.
    #[serde(deserialize_with = "lenient::count")]
    pub total_output_tokens: Option<u64>,
    /// Usage of the last response; none before the first.
    #[serde(deserialize_with = "lenient::field")]
    pub current_usage: Option<crate::transcript::Usage>,
    /// Whole percent, half up, at most 100; none before the first response.
    #[serde(deserialize_with = "lenient::field")]
    pub used_percentage: Option<f64>,
}

/// A payload exactly as the client writes it, read in one go with its texts where they stand. Whatever is
/// different is read field by field.
#[derive(Deserialize)]
struct Exact<'a> {
    session_id: &'a str,
    #[serde(borrow)]
    transcript_path: Option<&'a str>,
    #[serde(borrow)]
    cwd: Option<&'a str>,
    #[serde(borrow)]
    model: ExactModel<'a>,
    #[serde(borrow)]
    workspace: ExactWorkspace<'a>,
    cost: ExactCost,
    context_window: ExactWindow,
    #[serde(borrow)]
    version: Option<&'a str>,
}

#[derive(Deserialize)]
struct ExactModel<'a> {
    id: &'a str,
    #[serde(borrow)]
    display_name: Option<&'a str>,
}

#[derive(Deserialize)]
struct ExactWorkspace<'a> {
    #[serde(borrow)]
    current_dir: Option<&'a str>,
    #[serde(borrow)]
    project_dir: Option<&'a str>,
}

#[derive(Deserialize)]
struct ExactCost {
    total_cost_usd: Option<f64>,
}

#[derive(Deserialize)]
struct ExactWindow {
    context_window_size: Option<u64>,
    total_input_tokens: Option<u64>,
    total_output_tokens: Option<u64>,
    current_usage: Option<crate::transcript::ExactUsage>,
    used_percentage: Option<f64>,
}

impl From<Exact<'_>> for StatusPayload {
    fn from(exact: Exact<'_>) -> StatusPayload {
        let text = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        let (model, workspace, window) = (exact.model, exact.workspace, exact.context_window);
        StatusPayload {
            session_id: text(Some(exact.session_id)),
            transcript_path: text(exact.transcript_path),
            cwd: text(exact.cwd),
            model: Model { id: text(Some(model.id)), display_name: text(model.display_name) },
            workspace: Workspace {
                current_dir: text(workspace.current_dir),
                project_dir: text(workspace.project_dir),
            },
            cost: Cost { total_cost_usd: exact.cost.total_cost_usd },
            context_window: ContextWindow {
                context_window_size: window.context_window_size,
                total_input_tokens: window.total_input_tokens,
                total_output_tokens: window.total_output_tokens,
                current_usage: window.current_usage.map(crate::transcript::Usage::from),
                used_percentage: window.used_percentage,
            },
            version: text(exact.version),
        }
    }
}

impl StatusPayload {
    /// Reads the status line's standard input; fails only where it is not one JSON object.
    pub fn parse(bytes: &[u8]) -> Result<StatusPayload, Malformed> {
        let text = std::str::from_utf8(bytes).ok();
        let exact = text.and_then(|text| serde_json::from_str::<Exact<'_>>(text).ok());
        exact.map_or_else(|| parse(bytes), |exact| Ok(exact.into()))
    }
}

impl ContextWindow {
    /// Input tokens of the last response: the client's own sum, or ours of its parts; none before the first.
    pub fn used(&self) -> Option<u64> {
        let known = self.current_usage.is_some() || self.used_percentage.is_some();
        let summed = self.current_usage.as_ref().map(crate::transcript::Usage::input);
        self.total_input_tokens.filter(|tokens| known && *tokens > 0).or(summed)
    }
}
