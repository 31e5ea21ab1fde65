//! `plimsoll prune`: compresses the records of what is over, and removes old ones if the user asks for it.

use clap::Args;
use plimsoll_domain::text::{bytes, counted};
use plimsoll_flows::keeping::{PackingLimits, Records, bounds_of, keep_within, look, pack_closed, packable};
use plimsoll_policy::prune::{Bounds, KeptRecord, Needed, Pruning, RecordKind};
use plimsoll_store::{Project, StoreError, config};
use plimsoll_terminal::console::{self, refused, say};
use plimsoll_terminal::value_parsers;
use serde_json::json;
use std::process::ExitCode;

/// What goes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PruneArguments {
    /// Records last written longer ago than this go (30d, 12h) [default: the setting keep.days]
    #[arg(long, value_name = "DURATION", value_parser = value_parsers::age)]
    older_than: Option<u64>,
    /// The oldest go until no more than this is left (2G, 500M) [default: the setting keep.megabytes]
    #[arg(long, value_name = "SIZE", value_parser = value_parsers::bytes)]
    max_size: Option<u64>,
    /// Show what would go, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object: removed, freed_bytes, left_bytes, needed, packed, saved_bytes
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  plimsoll prune                    compress turn logs of ended sessions
  plimsoll prune --older-than 30d --dry-run
  plimsoll prune --max-size 2G

A record is a session (its turn log and what was noted about it), a handoff, or the captured output and the caches of a run.
Never removed: records of an unfinished run or open session, unread handoffs, the journal, the working memory, the plan
and the settings.";

/// Removes, then compresses what stays; exit code 0, also if nothing goes.
pub(crate) fn prune(arguments: &PruneArguments) -> ExitCode {
    let project = Project::of_command();
    let set = bounds_of(&config::load(&project).0);
    let asked = Bounds { older_than: arguments.older_than, max_bytes: arguments.max_size };
    let bounds = if asked == Bounds::default() { set } else { asked };
    let done = if arguments.dry_run { planned(&project, bounds) } else { carried_out(&project, bounds) };
    match done {
        Ok(done) if arguments.json => console::json(as_json(&done)),
        Ok(done) => say(page(&done, bounds, arguments.dry_run)),
        Err(error) => return refused(&error),
    }
    ExitCode::SUCCESS
}

/// What was done, or would be.
struct Done {
    records: Records,
    pruning: Pruning,
    /// Sessions that were compressed, or would be.
    packed: usize,
    /// What that saved, in bytes; none if it is not known beforehand.
    saved: Option<u64>,
}

fn planned(project: &Project, bounds: Bounds) -> Result<Done, StoreError> {
    let records = look(project)?;
    let pruning = records.pruning(bounds);
    let gone: Vec<&str> = going(&records, &pruning).map(|record| record.name.as_str()).collect();
    let left = packable(project, &records);
    let packed = left.iter().filter(|log| !gone.contains(&log.session_id().as_str())).count();
    Ok(Done { records, pruning, packed, saved: None })
}

fn carried_out(project: &Project, bounds: Bounds) -> Result<Done, StoreError> {
    let (records, pruning) = keep_within(project, bounds)?;
    let packed = pack_closed(project, &records, PackingLimits::COMMAND);
    for (session, trouble) in &packed.troubles {
        console::say_error(&format!("cannot compress the turn log of {session}: {trouble}"));
    }
    let left = pruning.left.saturating_sub(packed.saved);
    let saved = Some(packed.saved);
    Ok(Done { records, pruning: Pruning { left, ..pruning }, packed: packed.count, saved })
}

fn going<'a>(records: &'a Records, pruning: &'a Pruning) -> impl Iterator<Item = &'a KeptRecord> {
    pruning.going.iter().map(|at| &records.kept[*at])
}

fn as_json(Done { records, pruning, packed, saved }: &Done) -> serde_json::Value {
    let one = |record: &KeptRecord| json!({"kind": word(record.kind), "name": record.name, "bytes": record.bytes, "age_seconds": record.age});
    let needed = records.kept.iter().filter(|record| record.needed.is_some());
    json!({
        "removed": going(records, pruning).map(one).collect::<Vec<_>>(),
        "freed_bytes": pruning.freed,
        "left_bytes": pruning.left,
        "needed": needed.map(one).collect::<Vec<_>>(),
        "packed": packed,
        "saved_bytes": saved,
    })
}

fn page(Done { records, pruning, packed, saved }: &Done, bounds: Bounds, is_dry: bool) -> String {
    let row = |record: &KeptRecord| {
        format!(
            "  {:<10} {:>9}  {:>8}  {}\n",
            word(record.kind),
            bytes(record.bytes),
            age(record.age),
            record.name
        )
    };
    let rows: String = going(records, pruning).map(row).collect();
    let verb = if is_dry { "Would remove" } else { "Removed" };
    let sessions = counted(*packed, "session");
    let compressed = match saved {
        _ if *packed == 0 => String::new(),
        Some(saved) => format!("Compressed {sessions} (saved {}). ", bytes(*saved)),
        None => format!("Would compress {sessions}. "),
    };
    let head = format!("{verb} {} ({})", counted(pruning.going.len(), "record"), bytes(pruning.freed));
    let colon = if rows.is_empty() { "." } else { ":" };
    let over = if pruning.is_over { "\nThat is more than asked for: what is needed takes it." } else { "" };
    let stay = stay(records);
    let removed = if bounds == Bounds::default() { String::new() } else { format!("{head}{colon}\n{rows}") };
    format!("{removed}{compressed}{} stay{stay}.{over}", bytes(pruning.left))
}

/// What stays whatever its age, and why.
fn stay(records: &Records) -> String {
    let number = |why: Needed| records.kept.iter().filter(|record| record.needed == Some(why)).count();
    let words: Vec<String> =
        [(Needed::ByRun, "of the run"), (Needed::BySession, "of open sessions"), (Needed::Unread, "unread")]
            .into_iter()
            .filter(|(why, _)| number(*why) > 0)
            .map(|(why, words)| format!("{} {words}", number(why)))
            .collect();
    if words.is_empty() { String::new() } else { format!(", in any case {}", words.join(", ")) }
}

/// One, as a word.
fn word(kind: RecordKind) -> &'static str {
    match kind {
        RecordKind::Session => "session",
        RecordKind::Handoff => "handoff",
        RecordKind::RunOutput => "run output",
    }
}

fn age(seconds: u64) -> String {
    match seconds {
        0..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
