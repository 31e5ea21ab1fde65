//! What to show: what the client handed to the status line if somebody pipes it in, else what is known of the session
//! that was measured last.

use crate::{standard_input, whose::Whose};
use serde_json::{Value, json};
use store::{Project, sessions};

/// Whose figures these are.
pub(crate) enum Origin {
    /// Piped in.
    StandardInput,
    /// A session here, by its id.
    Session(String),
    /// Nobody's.
    Nothing,
}

impl Origin {
    pub(crate) fn words(&self) -> String {
        match self {
            Origin::StandardInput => "what stands on standard input".to_owned(),
            Origin::Session(id) => {
                format!("session {id}, as far as it is known outside of it (cost, limits and cache are not)")
            }
            Origin::Nothing => "no session: none is known here".to_owned(),
        }
    }
}

/// What there is.
pub(crate) fn find() -> (Vec<u8>, Origin) {
    if let Some(document) = standard_input::document() {
        return (document, Origin::StandardInput);
    }
    let project = Project::of_command();
    let known = Whose::find(&project).ok().flatten();
    let id = known.map(|whose| whose.record.session_id).filter(|id| !id.is_empty());
    let payload = of_session(&project, id.as_deref());
    (payload.to_string().into_bytes(), id.map_or(Origin::Nothing, Origin::Session))
}

/// As the client would tell it, as far as we know.
fn of_session(project: &Project, id: Option<&str>) -> Value {
    let place = project.root().to_string_lossy();
    let published = id.and_then(|id| sessions::load_status(project, id)).unwrap_or_default();
    let reading = id.and_then(|id| sessions::load(project, id).reading);
    let used = published.used.or(reading.as_ref().map(|reading| reading.used));
    let window =
        published.window.or(reading.as_ref().and_then(|reading| Some(reading.window.as_ref()?.tokens)));
    let model = published.model.or(reading.and_then(|reading| reading.model));
    json!({
        "session_id": id,
        "cwd": place,
        "workspace": {"current_dir": place, "project_dir": place},
        "model": {"id": model},
        "context_window": {
            "context_window_size": window,
            "total_input_tokens": used,
            "used_percentage": used.zip(window).and_then(|(used, window)| session::reading::percent(used, window)),
        },
    })
}
