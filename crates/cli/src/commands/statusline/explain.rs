//! `plimsoll statusline explain`.

use super::payload;
use super::payload::PayloadOrigin;
use clap::Args;
use plimsoll_policy::statusline::SegmentExplanation;
use plimsoll_terminal::console::{self, PaintedLine};
use serde_json::json;
use std::process::ExitCode;

/// The output format.
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Prints the status line, and each segment's value, source and visibility.
pub(crate) fn print_status_line_explanation(arguments: &ExplainArguments) -> ExitCode {
    let (payload_bytes, origin) = payload::read_stdin_or_build_payload();
    let (line, segments, warnings) =
        plimsoll_flows::hooks::statusline::explain_status_line(&payload_bytes, console::terminal_columns());
    for warning in &warnings {
        console::print_warning(warning);
    }
    if arguments.json {
        console::print_json(render_json(&line, &segments, &origin));
    } else {
        // The only expected error is a closed pipe, which is ignored.
        let _ = console::print_painted_lines(&render_lines(&line, &segments, &origin), 2);
    }
    ExitCode::SUCCESS
}

fn render_json(status_line: &str, segments: &[SegmentExplanation], origin: &PayloadOrigin) -> String {
    let segment_to_json = |segment: &SegmentExplanation| {
        json!({
            "name": segment.name,
            "line": segment.line_number,
            "shown": segment.rendered.as_ref().ok(),
            "hidden": segment.rendered.as_ref().err().map(ToString::to_string),
            "what": segment.description,
            "source": segment.source,
            "fields": segment.fields.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
        })
    };
    json!({
        "session": origin.describe(),
        "line": status_line,
        "segments": segments.iter().map(segment_to_json).collect::<Vec<_>>(),
    })
    .to_string()
}

fn render_lines(
    status_line: &str,
    segments: &[SegmentExplanation],
    origin: &PayloadOrigin,
) -> Vec<PaintedLine> {
    let plain_line = |text: String| PaintedLine::plain(&text);
    let mut lines =
        vec![plain_line(format!("The status line of {}:", origin.describe())), PaintedLine::default()];
    lines.extend(status_line.lines().map(PaintedLine::from_line_with_ansi_colors));
    lines.push(PaintedLine::default());
    for segment in segments {
        let text_or_reason = match &segment.rendered {
            Ok(text) => text.clone(),
            Err(reason) => format!("hidden: {reason}"),
        };
        lines.push(plain_line(format!("{:<10} {text_or_reason}", segment.name)));
        let nonempty_fields = segment.fields.iter().filter(|(_, value)| !value.is_empty());
        let fields: Vec<String> =
            nonempty_fields.map(|(field, value)| format!("{{{field}}} {value}")).collect();
        if !fields.is_empty() {
            lines.push(plain_line(format!("{:<10}   {}", "", fields.join(", "))));
        }
        lines.push(plain_line(format!("{:<10}   {}; from {}", "", segment.description, segment.source)));
    }
    lines
}
