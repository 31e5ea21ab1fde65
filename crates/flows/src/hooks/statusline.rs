//! The status line: publishes the client's usage figures for the hooks, and renders the line.

mod git;
mod view;

use crate::hook_response::HookResponse;
use plimsoll_domain::record::StatusLineRecord;
use plimsoll_domain::statusline::SegmentKind;
use plimsoll_domain::{SessionId, Settings};
use plimsoll_policy::statusline::{
    SegmentExplanation, StatusLineView, explain_segments, render_lines_or_program_name,
};
use plimsoll_protocol::status::StatusPayload;
use plimsoll_store::{Project, StoreError, clock, config, context_windows, sessions};
use std::mem::ManuallyDrop;
use std::path::Path;

/// One invocation of the status line.
struct StatusLineInvocation<'a> {
    /// The unchanged input.
    input: &'a [u8],
    payload: StatusPayload,
    session_id: SessionId,
    project: Project,
    settings: Settings,
    /// Errors in the input, the project and the settings.
    errors: Vec<String>,
    /// A short form of the settings error for the status line.
    short_settings_error: Option<String>,
    /// False if the project cannot be used, so that nothing is written.
    can_publish: bool,
    /// True if the values of all segments are needed, even of those that no line contains.
    needs_all_segments: bool,
}

/// Renders the status line and publishes the usage figures. Renders a line even for invalid input, because the client
/// hides an empty status line.
pub fn render_and_publish_status_line(input: &[u8]) -> HookResponse {
    // The process exits after its response, so these values are not dropped.
    let invocation = ManuallyDrop::new(StatusLineInvocation::from_input_collecting_errors(input));
    let previous_record = ManuallyDrop::new(invocation.load_previous_record());
    let mut record = ManuallyDrop::new(invocation.record_from_payload(previous_record.as_ref()));
    let view = ManuallyDrop::new(invocation.build_view(&mut record));
    let line = render_lines_or_program_name(&view, &invocation.settings.statusline);
    let publish_result =
        invocation.publish_if_changed_with_external_fallback(previous_record.as_ref(), &record);
    let response = HookResponse::from_text(Some(line)).with_stderr_line(publish_result.err());
    invocation.errors.iter().fold(response, |response, error| response.with_stderr_line(Some(error)))
}

/// Publishes the usage figures, then replaces this process with the user's status line command and passes on the input.
/// Renders our line only if the command cannot be started.
pub fn publish_and_exec_wrapped_status_line(input: &[u8], command: &[String]) -> HookResponse {
    let invocation = StatusLineInvocation::from_input_collecting_errors(input);
    let previous_record = invocation.load_previous_record();
    // An error is ignored, because the client discards a status line's standard error.
    let _ = invocation.publish_if_changed_with_external_fallback(
        previous_record.as_ref(),
        &invocation.record_from_payload(previous_record.as_ref()),
    );
    let error = plimsoll_launcher::exec_with_stdin_using_shell_for_one_argument(command, input);
    render_and_publish_status_line(input)
        .with_stderr_line(Some(format!("cannot start the status line {command:?}: {error}")))
}

/// Returns the rendered line, an explanation of each segment, and the errors. `columns` applies unless `COLUMNS` is set.
/// Publishes nothing.
pub fn explain_status_line(
    input: &[u8],
    columns: Option<usize>,
) -> (String, Vec<SegmentExplanation>, Vec<String>) {
    let invocation = StatusLineInvocation {
        needs_all_segments: true,
        ..StatusLineInvocation::from_input_collecting_errors(input)
    };
    let mut view = invocation
        .build_view(&mut invocation.record_from_payload(invocation.load_previous_record().as_ref()));
    view.columns = view.columns.or(columns);
    let line_settings = &invocation.settings.statusline;
    (
        render_lines_or_program_name(&view, line_settings),
        explain_segments(&view, line_settings),
        invocation.errors,
    )
}

/// Returns the values of all segments for a preview with these settings. Publishes nothing.
pub fn build_full_view_with_settings(input: &[u8], settings: &Settings) -> StatusLineView {
    let invocation = StatusLineInvocation {
        settings: settings.clone(),
        needs_all_segments: true,
        ..StatusLineInvocation::from_input_collecting_errors(input)
    };
    invocation.build_view(&mut invocation.record_from_payload(invocation.load_previous_record().as_ref()))
}

impl StatusLineInvocation<'_> {
    fn from_input_collecting_errors(input: &[u8]) -> StatusLineInvocation<'_> {
        let mut errors = Vec::new();
        let payload = StatusPayload::parse(input).unwrap_or_else(|error| {
            errors.push(format!("standard input is {error}"));
            StatusPayload::default()
        });
        let folders = [&payload.workspace.project_dir, &payload.workspace.current_dir, &payload.cwd];
        let folder = folders.into_iter().flatten().next().map_or(".", String::as_str);
        // The line is rendered even if nothing can be published.
        let (project, can_publish) = match Project::with_local_or_external_files(Path::new(folder)) {
            Ok(project) => (project, true),
            Err(error) => {
                errors.push(error.to_string());
                (Project::with_local_files(Path::new(folder)), false)
            }
        };
        let (settings, settings_error) = config::load_settings(&project);
        let short_settings_error = settings_error.as_ref().map(|error| match error {
            StoreError::Settings { path, reason } => {
                format!("{}: {reason}", project.relative_to_root(path))
            }
            other => other.to_string(),
        });
        errors.extend(settings_error.map(|error| error.to_string()));
        let session_id = payload.session_id.clone().unwrap_or_default().into();
        StatusLineInvocation {
            input,
            payload,
            session_id,
            project,
            settings,
            errors,
            short_settings_error,
            can_publish,
            needs_all_segments: false,
        }
    }

    /// Loads the record that was last published for this session, from the project or the external folder.
    fn load_previous_record(&self) -> Option<StatusLineRecord> {
        let external_record =
            || sessions::load_status_line_record(&self.project.with_external_files()?, &self.session_id);
        sessions::load_status_line_record(&self.project, &self.session_id).or_else(external_record)
    }

    /// Builds a record with the client's current figures and otherwise the values of the previous record.
    fn record_from_payload(&self, previous: Option<&StatusLineRecord>) -> StatusLineRecord {
        let window = &self.payload.context_window;
        let mut record = previous.cloned().unwrap_or_default();
        record.session_id.clone_from(&self.session_id);
        record.model.clone_from(&self.payload.model.id);
        record.window_tokens = window.context_window_size.filter(|tokens| *tokens > 0);
        (record.used_tokens, record.output_tokens) =
            (window.reported_or_estimated_used_tokens(), window.output_tokens());
        if let Some(used_tokens) = record.used_tokens {
            record.record_usage_if_changed_clearing_on_decrease(used_tokens, clock::now().timestamp());
        }
        record
    }

    /// Writes the record if it has changed since the last call. Uses the external folder if the project is not writable.
    fn publish_if_changed_with_external_fallback(
        &self,
        previous: Option<&StatusLineRecord>,
        record: &StatusLineRecord,
    ) -> Result<(), StoreError> {
        match self.publish_in_project_if_changed(&self.project, previous, record) {
            // The session's hooks also use the external folder if the project is not writable.
            Err(error) if error.is_write_permission_error() => match self.project.with_external_files() {
                Some(external_project) => {
                    self.publish_in_project_if_changed(&external_project, previous, record)
                }
                None => Err(error),
            },
            result => result,
        }
    }

    fn publish_in_project_if_changed(
        &self,
        project: &Project,
        previous: Option<&StatusLineRecord>,
        record: &StatusLineRecord,
    ) -> Result<(), StoreError> {
        if !self.can_publish || record.session_id.is_empty() || previous == Some(record) {
            return Ok(());
        }
        let figures_of = |record: &StatusLineRecord| {
            (record.model.clone(), record.window_tokens, record.used_tokens, record.output_tokens)
        };
        let has_new_figures = previous.is_none_or(|previous| figures_of(previous) != figures_of(record));
        if has_new_figures && let Some((model, tokens)) = record.model.as_ref().zip(record.window_tokens) {
            context_windows::save_nonzero_context_window_if_changed(project, model, tokens)?;
        }
        // The time changes only with the figures; a new result of git alone does not change it.
        let figures_first_seen_at = if has_new_figures {
            clock::to_millis_timestamp(clock::now())
        } else {
            record.first_seen_at.clone()
        };
        sessions::set_aside_invalid_and_save_status_line(
            project,
            previous,
            &StatusLineRecord { first_seen_at: figures_first_seen_at, ..record.clone() },
        )
    }

    /// Returns true if a line contains a segment of this kind, or if all segments are needed.
    fn needs_segment(&self, kind: SegmentKind) -> bool {
        self.needs_all_segments || self.settings.statusline.has_segment(kind)
    }
}
