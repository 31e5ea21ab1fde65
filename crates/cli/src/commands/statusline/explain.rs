//! `plimsoll statusline explain`.

use super::payload;
use super::payload::Origin;
use clap::Args;
use plimsoll_policy::statusline::Explained;
use plimsoll_terminal::console::{self, Painted};
use serde_json::json;
use std::process::ExitCode;

/// How to show it.
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Shows it.
pub(crate) fn explain(arguments: &ExplainArguments) -> ExitCode {
    let (input, origin) = payload::find();
    let (line, segments, complaints) = plimsoll_flows::hooks::statusline::explain(&input, console::columns());
    for complaint in &complaints {
        console::say_error(complaint);
    }
    if arguments.json {
        console::json(in_json(&line, &segments, &origin));
    } else {
        // A reader that has gone away is a normal end.
        let _ = console::paint(&in_words(&line, &segments, &origin));
    }
    ExitCode::SUCCESS
}

fn in_json(line: &str, segments: &[Explained], origin: &Origin) -> String {
    let segment = |segment: &Explained| {
        json!({
            "name": segment.name,
            "line": segment.line,
            "shown": segment.shown.as_ref().ok(),
            "hidden": segment.shown.as_ref().err().map(ToString::to_string),
            "what": segment.words,
            "source": segment.source,
            "fields": segment.fields.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
        })
    };
    json!({
        "session": origin.words(),
        "line": line,
        "segments": segments.iter().map(segment).collect::<Vec<_>>(),
    })
    .to_string()
}

fn in_words(line: &str, segments: &[Explained], origin: &Origin) -> Vec<Painted> {
    let plain = |words: String| Painted::plain(&words);
    let mut lines = vec![plain(format!("The status line of {}:", origin.words())), Painted::default()];
    lines.extend(line.lines().map(Painted::status_line));
    lines.push(Painted::default());
    for segment in segments {
        let shown = match &segment.shown {
            Ok(text) => text.clone(),
            Err(why) => format!("hidden: {why}"),
        };
        lines.push(plain(format!("{:<10} {shown}", segment.name)));
        let known = segment.fields.iter().filter(|(_, value)| !value.is_empty());
        let fields: Vec<String> = known.map(|(field, value)| format!("{{{field}}} {value}")).collect();
        if !fields.is_empty() {
            lines.push(plain(format!("{:<10}   {}", "", fields.join(", "))));
        }
        lines.push(plain(format!("{:<10}   {}; from {}", "", segment.words, segment.source)));
    }
    lines
}
