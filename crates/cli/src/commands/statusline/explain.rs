//! `plimsoll statusline explain`.

use super::payload;
use super::payload::PayloadOrigin;
use clap::Args;
use plimsoll_policy::statusline::SegmentExplanation;
use plimsoll_terminal::console::{self, PaintedLine};
use serde_json::json;
use std::process::ExitCode;

/// How to show it.
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Prints the status line, and each segment's value, source and visibility.
pub(crate) fn explain_status_line(arguments: &ExplainArguments) -> ExitCode {
    let (input, origin) = payload::read_or_build_payload();
    let (line, segments, warnings) =
        plimsoll_flows::hooks::statusline::explain_status_line(&input, console::terminal_columns());
    for warning in &warnings {
        console::print_error(warning);
    }
    if arguments.json {
        console::print_json(render_json(&line, &segments, &origin));
    } else {
        // A closed pipe is not an error.
        let _ = console::print_painted_lines(&render_lines(&line, &segments, &origin));
    }
    ExitCode::SUCCESS
}

fn render_json(line: &str, segments: &[SegmentExplanation], origin: &PayloadOrigin) -> String {
    let segment = |segment: &SegmentExplanation| {
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
        "line": line,
        "segments": segments.iter().map(segment).collect::<Vec<_>>(),
    })
    .to_string()
}

fn render_lines(line: &str, segments: &[SegmentExplanation], origin: &PayloadOrigin) -> Vec<PaintedLine> {
    let plain = |text: String| PaintedLine::plain(&text);
    let mut lines = vec![plain(format!("The status line of {}:", origin.describe())), PaintedLine::default()];
    lines.extend(line.lines().map(PaintedLine::from_line_with_ansi_colors));
    lines.push(PaintedLine::default());
    for segment in segments {
        let shown = match &segment.rendered {
            Ok(text) => text.clone(),
            Err(reason) => format!("hidden: {reason}"),
        };
        lines.push(plain(format!("{:<10} {shown}", segment.name)));
        let nonempty_fields = segment.fields.iter().filter(|(_, value)| !value.is_empty());
        let fields: Vec<String> =
            nonempty_fields.map(|(field, value)| format!("{{{field}}} {value}")).collect();
        if !fields.is_empty() {
            lines.push(plain(format!("{:<10}   {}", "", fields.join(", "))));
        }
        lines.push(plain(format!("{:<10}   {}; from {}", "", segment.description, segment.source)));
    }
    lines
}
