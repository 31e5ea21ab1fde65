//! The table that `plimsoll status --markdown` prints, and `/ralph context` shows: Markdown that is also read easily in a
//! terminal; and the same in one sentence. Pure functions.

use plimsoll_domain::forecast::Outlook;
use plimsoll_domain::level::{Level, Thresholds};
use plimsoll_domain::size::Size;
use plimsoll_domain::text::{clip, counted, one_line, tokens};
use plimsoll_domain::{Reading, RunState, Settings};
use plimsoll_flows::context::forecast::SessionForecast;
use plimsoll_policy::item_in_hand::item_in_hand;
use plimsoll_policy::pack::{Estimate, Source, estimate, fits, is_too_large};

/// What the table is made from.
#[derive(Debug)]
pub(super) struct View<'a> {
    /// The session.
    pub(super) session_id: &'a str,
    /// The measurement; none while nothing is known.
    pub(super) reading: Option<&'a Reading>,
    /// How old it is.
    pub(super) age_seconds: Option<i64>,
    /// Where the levels begin; none while the window is unknown.
    pub(super) thresholds: Option<&'a Thresholds>,
    /// When they will be reached.
    pub(super) forecast_of_session: &'a SessionForecast,
    /// Why the transcript could not be read.
    pub(super) trouble: Option<String>,
    /// The run that the session belongs to.
    pub(super) run: Option<&'a RunState>,
    /// The lines of the files that the current item names.
    pub(super) lines: Option<u64>,
    /// The handoff that this session has already.
    pub(super) handoff: Option<&'a str>,
    /// The settings in force.
    pub(super) settings: &'a Settings,
}

/// A title, and what it is the title of.
pub(in crate::commands) type Row = (&'static str, String);

const UNKNOWN: &str = "? (nothing has been answered yet, or the transcript cannot be read)";

impl View<'_> {
    /// Returns the table and the recommendation; `run_rows` describe the project's run.
    pub(super) fn text(&self, run_rows: &[Row]) -> String {
        let title = if self.run.is_some() { "## Ralph Context Status" } else { "## Context Status" };
        let rows = [&self.load(), &self.work(), run_rows, &self.sources()].concat();
        let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        let row = |name: &str, value: &str| format!("| {name:<width$} | {value} |\n");
        let table: String = rows.iter().map(|(name, value)| row(name, &cell(value))).collect();
        let head = format!("{}|{}|-------|\n", row("Metric", "Value"), "-".repeat(width + 2));
        format!("{title}\n\n{head}{table}\n**Recommendation**: {}", self.advice())
    }

    /// Returns the usage, the level and the next threshold that is ahead.
    pub(super) fn sentence(&self) -> String {
        let Some(reading) = self.reading else { return UNKNOWN.to_owned() };
        let figure = plimsoll_policy::words::figure(reading);
        let Some(thresholds) = self.thresholds else { return figure };
        let level = thresholds.level(reading.projected());
        let l2 = thresholds.percent(thresholds.l2);
        let what = if self.run.is_some() { "checkpoint" } else { "handoff" };
        let next = match self.forecast_of_session.forecast.as_ref().and_then(|forecast| forecast.l2.as_ref())
        {
            _ if level >= Level::L2 => format!("the {what} was due at {l2}%"),
            Some(outlook) => format!("{what} at {l2}% in {}", without_about(outlook)),
            None => format!("{what} at {l2}%"),
        };
        match level {
            Level::L0 => format!("{figure}; {next}"),
            level => format!("{figure}, {level} ({}); {next}", level.word()),
        }
    }

    fn load(&self) -> Vec<Row> {
        let Some(reading) = self.reading else {
            return vec![("Current Context", UNKNOWN.to_owned())];
        };
        let mut rows = vec![("Current Context", plimsoll_policy::words::figure(reading))];
        if let Some(thresholds) = self.thresholds {
            let level = thresholds.level(reading.projected());
            rows.push(("Level", format!("{level} ({})", capital(level.word()))));
            rows.push(("Estimated Remaining", remaining(reading, thresholds)));
            rows.extend(self.ahead(reading, thresholds));
        }
        rows
    }

    /// A row for each threshold that is ahead, and one that says how far they can be trusted.
    fn ahead(&self, reading: &Reading, thresholds: &Thresholds) -> Vec<Row> {
        let Some(forecast) = &self.forecast_of_session.forecast else {
            let is_past = [thresholds.l1, thresholds.l2, thresholds.auto_compact.tokens]
                .iter()
                .all(|threshold| reading.projected() >= *threshold);
            let words =
                format!("too little data yet ({})", counted(self.forecast_of_session.responses, "turn"));
            return if is_past { Vec::new() } else { vec![("Forecast", words)] };
        };
        let thresholds =
            [("To L1", &forecast.l1), ("To L2", &forecast.l2), ("To auto-compact", &forecast.auto_compact)];
        let row = |(name, outlook): (&'static str, &Option<Outlook>)| {
            // The row above says that it is no more than that; 80 columns are few.
            Some((name, without_about(outlook.as_ref()?)))
        };
        let by = counted(forecast.samples, "turn");
        let mut rows = vec![("Forecast", format!("from {by}; the ranges hold in 8 of 10 cases"))];
        rows.extend(thresholds.into_iter().filter_map(row));
        rows
    }

    fn work(&self) -> Vec<Row> {
        let Some(run) = self.run else { return Vec::new() };
        let item = item_in_hand(run);
        let named = item.map_or("none open".to_owned(), |item| format!("\"{}\"", clip(item, 120)));
        let mut rows = vec![("Current Item", named)];
        rows.extend(item.and_then(|item| self.complexity(item)).map(|words| ("Item Complexity", words)));
        let name = clip(&one_line(&run.options.task_name), 60);
        rows.push(("Iteration", format!("{} of {} (\"{name}\")", run.iteration, run.options.max_iterations)));
        rows
    }

    /// What the item states, and what items of this project have taken (a run knows those of the runs before it); none
    /// where nothing is known.
    fn complexity(&self, item: &str) -> Option<String> {
        let size = Size::stated(item);
        let (Estimate { source, .. }, percent) = self.estimate(item);
        let stated = size.map_or("Not stated".to_owned(), |size| capital(size.word()));
        match source {
            _ if is_too_large(item) => Some(format!("{stated} (fits no window: split it)")),
            Source::Items(number) => {
                let known = counted(number, "item");
                Some(format!("{stated} (est. {percent}% of the window, from {known} of this project)"))
            }
            Source::Stated(_) => Some(format!("{stated} (est. {percent}% of the window)")),
            Source::Files(_) => {
                Some(format!("{stated} (est. {percent}% of the window, from the files it names)"))
            }
            Source::Nothing => None,
        }
    }

    /// In tokens and in percent of the window. Where the window is not known, only what the item states counts,
    /// which is a share of any window.
    fn estimate(&self, item: &str) -> (Estimate, u64) {
        let growth =
            self.run.zip(self.thresholds).map(|(run, _)| run.items.growth.as_slice()).unwrap_or_default();
        let window = self.thresholds.map_or(100, |thresholds| thresholds.window.max(1));
        let estimate = estimate(item, self.lines, growth, window);
        let percent = estimate.tokens.saturating_mul(100) / window;
        (estimate, percent)
    }

    /// The source, the age, and the thresholds.
    fn sources(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        if !self.session_id.is_empty() {
            rows.push(("Session", self.session_id.to_owned()));
        }
        rows.extend(self.trouble.iter().map(|trouble| ("Trouble", trouble.clone())));
        if let Some(reading) = self.reading {
            rows.extend(self.measured(reading));
        }
        rows.extend(self.thresholds.map(|thresholds| ("Thresholds", self.line(thresholds))));
        rows
    }

    fn measured(&self, reading: &Reading) -> Vec<Row> {
        let age = self.age_seconds.map_or("age unknown".to_owned(), |age| format!("{age} s old"));
        let model = reading.model.as_ref().map(|model| format!(", {model}")).unwrap_or_default();
        let window = reading.window.as_ref().map_or("unknown (no model seen)".to_owned(), |window| {
            format!("{} tokens ({})", tokens(window.tokens), window.source.words())
        });
        let next = tokens(reading.projected());
        vec![
            ("Next Request", format!("about {next} tokens, with the answer and what has been added since")),
            ("Source", format!("{}, {age}", reading.source.words())),
            ("Window", format!("{window}{model}")),
        ]
    }

    fn line(&self, thresholds: &Thresholds) -> String {
        let [l1, l2, l3] =
            [thresholds.l1, thresholds.l2, thresholds.l3].map(|threshold| thresholds.percent(threshold));
        let wished = &self.settings.levels;
        let moved = if thresholds.clamped {
            format!(
                " (lowered from {}/{}/{}%, below the auto-compact threshold)",
                wished.l1, wished.l2, wished.l3
            )
        } else {
            String::new()
        };
        format!("L1 {l1}%, L2 {l2}%, L3 {l3}%{moved}")
    }

    /// What to do, and when a checkpoint comes by itself.
    pub(super) fn advice(&self) -> String {
        let Some((reading, thresholds)) = self.reading.zip(self.thresholds) else {
            return "none; the usage will be known after the next answer.".to_owned();
        };
        let level = thresholds.level(reading.projected());
        let advice = match level {
            Level::L0 if self.may_not_fit(reading, thresholds) => {
                "Continue with work that has begun. An item of this size will probably not fit before the checkpoint: if it has not begun, leave it to a fresh session."
            }
            Level::L0 => "Safe to continue.",
            Level::L1 => "Continue with the current item; start nothing large.",
            Level::L2 if self.run.is_some() => "Finish the current edit, commit, and end the turn.",
            Level::L2 => "Finish the current edit and start a fresh session.",
            Level::L3 => "Stop now: the next large result may not fit.",
        };
        let mark = thresholds.percent(thresholds.l2);
        let then = if level >= Level::L2 {
            let handoff = self.handoff.map(|file| format!(" The handoff is {file}.")).unwrap_or_default();
            format!("The checkpoint was due at {mark}%.{handoff}")
        } else if self.run.is_some() {
            format!("Checkpoint will trigger automatically at {mark}%.")
        } else {
            format!("A handoff will be written automatically at {mark}%; the session continues.")
        };
        format!("{advice}\n\n{then}")
    }

    /// From what the item states or others took; a mere guess gives no warning.
    fn may_not_fit(&self, reading: &Reading, thresholds: &Thresholds) -> bool {
        self.run.and_then(item_in_hand).is_some_and(|item| {
            let (estimate, _) = self.estimate(item);
            estimate.source != Source::Nothing && !fits(&estimate, reading.projected(), thresholds.l2)
        })
    }
}

fn remaining(reading: &Reading, thresholds: &Thresholds) -> String {
    let left = |threshold: u64| tokens(threshold.saturating_sub(reading.projected()));
    format!(
        "~{} tokens to the checkpoint, ~{} to the auto-compact threshold ({}%: {})",
        left(thresholds.l2),
        left(thresholds.auto_compact.tokens),
        thresholds.percent(thresholds.auto_compact.tokens),
        thresholds.auto_compact.action.words()
    )
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn without_about(outlook: &Outlook) -> String {
    let words = outlook.words();
    words.strip_prefix("about ").map_or(words.clone(), str::to_owned)
}

/// One cell of a table: on one line, with no bar that would end it.
fn cell(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}
