//! `plimsoll context`: how full is it, who says so, and what follows.

use crate::whose::Whose;
use crate::{fail, say};
use clap::Args;
use flows::measure::{Measurement, Question, measure};
use session::level::{CeilingAction, Level, Marks};
use session::text::tokens;
use session::{Reading, Settings};
use std::process::ExitCode;
use store::{Project, clock, config};

/// How to show it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ContextArguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Exit with the level: 0 normal, 1 warn, 2 checkpoint, 3 emergency (0 when unknown)
    #[arg(long)]
    exit_code: bool,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll context
  plimsoll context --json
  plimsoll context --exit-code >/dev/null || echo 'close to the load line'";

/// Shows it.
pub(crate) fn context(arguments: &ContextArguments) -> ExitCode {
    let project = Project::of_command();
    let (settings, complaint) = config::load(&project);
    if let Some(complaint) = complaint {
        crate::say_error(&complaint);
    }
    let whose = match Whose::find(&project) {
        Ok(whose) => whose,
        Err(error) => return fail(error, 1),
    };
    let transcript = whose.as_ref().and_then(Whose::transcript);
    let record = whose.as_ref().map(|whose| whose.record.clone()).unwrap_or_default();
    let measurement = measure(&Question {
        project: &project,
        settings: &settings,
        record: &record,
        transcript: transcript.as_deref(),
        calls: &[],
    });
    let level = measurement.level();
    say(if arguments.json {
        json(&measurement, &record.session_id)
    } else {
        table(&measurement, whose.as_ref(), &settings)
    });
    ExitCode::from(if arguments.exit_code { level.map_or(0, Level::number) } else { 0 })
}

fn json(measurement: &Measurement, session_id: &str) -> String {
    let reading = measurement.reading.as_ref();
    serde_json::json!({
        "session_id": session_id,
        "level": measurement.level().map(|level| level.to_string()),
        "percent": reading.and_then(Reading::percent),
        "percent_used": reading.and_then(Reading::percent_used),
        "reading": reading,
        "marks": measurement.marks,
        "age_seconds": reading.and_then(age_seconds),
    })
    .to_string()
}

fn age_seconds(reading: &Reading) -> Option<i64> {
    clock::parse(reading.at.as_deref()?).map(|at| (clock::now() - at).num_seconds().max(0))
}

fn table(measurement: &Measurement, whose: Option<&Whose>, settings: &Settings) -> String {
    let Some(whose) = whose else {
        return "Context: ? (no session is known here)".to_owned();
    };
    let mut lines = vec![format!("Session    {}", whose.record.session_id)];
    match &measurement.reading {
        Some(reading) => lines.extend(reading_lines(reading)),
        None => lines.push(
            "Context    ? (nothing has been answered yet, or the transcript cannot be read)".to_owned(),
        ),
    }
    if let Some(trouble) = &measurement.trouble {
        lines.push(format!("Trouble    {trouble}"));
    }
    if let (Some(reading), Some(marks)) = (&measurement.reading, &measurement.marks) {
        lines.extend(level_lines(reading, marks, settings));
    }
    if let Some(run) = &whose.run {
        let item = run.item_in_hand().map_or("none open", String::as_str);
        lines.push(format!(
            "Run        \"{}\", iteration {} of {}, item: {item}",
            run.task_name, run.iteration, run.max_iterations
        ));
    }
    lines.join("\n")
}

fn reading_lines(reading: &Reading) -> Vec<String> {
    let age = age_seconds(reading).map_or("age unknown".to_owned(), |age| format!("{age} s old"));
    let window = reading.window.as_ref().map_or("unknown (no model seen)".to_owned(), |window| {
        format!("{} tokens ({})", window.tokens, window.source.words())
    });
    vec![
        format!("Context    {} by the client's own figure", policy::words::figure(reading)),
        format!(
            "Next       about {} tokens with the answer and what was added since",
            tokens(reading.projected())
        ),
        format!("Source     {}, {age}", reading.source.words()),
        format!(
            "Window     {window}{}",
            reading.model.as_ref().map(|model| format!(", {model}")).unwrap_or_default()
        ),
    ]
}

fn level_lines(reading: &Reading, marks: &Marks, settings: &Settings) -> Vec<String> {
    let level = marks.level(reading.projected());
    let left = |tokens_at: u64| tokens(tokens_at.saturating_sub(reading.projected()));
    let action = match marks.ceiling.action {
        CeilingAction::Compacts => "the client compacts",
        CeilingAction::Refuses => "the client refuses to go on",
        CeilingAction::Rejected => "the API refuses the prompt",
    };
    let clamped = if marks.clamped {
        format!(
            " (moved down from {}/{}/{}% to stay below the ceiling)",
            settings.levels.l1, settings.levels.l2, settings.levels.l3
        )
    } else {
        String::new()
    };
    let advice = match level {
        Level::L0 => format!("safe to go on; {} tokens to the checkpoint", left(marks.l2)),
        Level::L1 => format!("start nothing large; {} tokens to the checkpoint", left(marks.l2)),
        Level::L2 => "finish the edit in hand and start a fresh session".to_owned(),
        Level::L3 => "stop now: the next large result may not fit".to_owned(),
    };
    vec![
        format!("Level      {level} ({}): {advice}", level.word()),
        format!(
            "Marks      L1 {}%, L2 {}%, L3 {}%{clamped}",
            marks.percent(marks.l1),
            marks.percent(marks.l2),
            marks.percent(marks.l3)
        ),
        format!(
            "Ceiling    {}% ({} tokens): {action}; {} tokens left",
            marks.percent(marks.ceiling.tokens),
            marks.ceiling.tokens,
            left(marks.ceiling.tokens)
        ),
    ]
}
