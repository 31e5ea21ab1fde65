//! The table that `plimsoll status --markdown` prints and `/ralph context` shows (Markdown that is also
//! readable in a terminal), and the same facts in one sentence. Pure functions.

use plimsoll_domain::forecast::ThresholdForecast;
use plimsoll_domain::level::{Level, Thresholds};
use plimsoll_domain::size::ItemSize;
use plimsoll_domain::text::{count_with_noun, format_tokens, to_single_line, truncate_end};
use plimsoll_domain::{RunState, Settings, UsageReading};
use plimsoll_flows::context::forecast::SessionForecast;
use plimsoll_policy::current_item::current_open_item;
use plimsoll_policy::pack::{Estimate, EstimateSource, estimate_item, fits_below_l2, is_stated_too_large};

/// The facts that the table is rendered from.
#[derive(Debug)]
pub(super) struct ContextView<'a> {
    pub(super) session_id: &'a str,
    /// The last measurement; `None` if there is none yet.
    pub(super) reading: Option<&'a UsageReading>,
    /// Age of the measurement.
    pub(super) age_seconds: Option<i64>,
    /// The thresholds; `None` if the window is unknown.
    pub(super) thresholds: Option<&'a Thresholds>,
    /// When the thresholds will be reached.
    pub(super) session_forecast: &'a SessionForecast,
    /// Why the transcript could not be read.
    pub(super) transcript_error: Option<String>,
    pub(super) run: Option<&'a RunState>,
    /// Number of lines of the files that the current item names.
    pub(super) item_file_lines: Option<u64>,
    /// The handoff that this session has already written.
    pub(super) handoff: Option<&'a str>,
    /// The settings in effect.
    pub(super) settings: &'a Settings,
}

/// A row of the table: its title and its value.
pub(in crate::commands) type TitledRow = (&'static str, String);

const UNKNOWN: &str = "? (nothing has been answered yet, or the transcript cannot be read)";

impl ContextView<'_> {
    /// Returns the table and the recommendation; `run_rows` describe the project's run.
    pub(super) fn render_table(&self, run_rows: &[TitledRow]) -> String {
        let title = if self.run.is_some() { "## Ralph Context Status" } else { "## Context Status" };
        let rows = [&self.usage_rows(), &self.item_rows(), run_rows, &self.source_rows()].concat();
        let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        let row = |name: &str, value: &str| format!("| {name:<width$} | {value} |\n");
        let table: String = rows.iter().map(|(name, value)| row(name, &escape_table_cell(value))).collect();
        let header = format!("{}|{}|-------|\n", row("Metric", "Value"), "-".repeat(width + 2));
        format!("{title}\n\n{header}{table}\n**Recommendation**: {}", self.render_advice())
    }

    /// Returns the usage, the level and the next threshold in one sentence.
    pub(super) fn render_sentence(&self) -> String {
        let Some(reading) = self.reading else { return UNKNOWN.to_owned() };
        let usage = plimsoll_policy::messages::render_usage(reading);
        let Some(thresholds) = self.thresholds else { return usage };
        let level = thresholds.level_at(reading.projected_tokens());
        let l2 = thresholds.percent_of_window(thresholds.l2);
        let event_name = if self.run.is_some() { "checkpoint" } else { "handoff" };
        let next_event =
            match self.session_forecast.forecast.as_ref().and_then(|forecast| forecast.l2.as_ref()) {
                _ if level >= Level::L2 => format!("the {event_name} was due at {l2}%"),
                Some(threshold_forecast) => {
                    format!("{event_name} at {l2}% in {}", render_forecast_without_about(threshold_forecast))
                }
                None => format!("{event_name} at {l2}%"),
            };
        match level {
            Level::L0 => format!("{usage}; {next_event}"),
            level => format!("{usage}, {level} ({}); {next_event}", level.name()),
        }
    }

    fn usage_rows(&self) -> Vec<TitledRow> {
        let Some(reading) = self.reading else {
            return vec![("Current Context", UNKNOWN.to_owned())];
        };
        let mut rows = vec![("Current Context", plimsoll_policy::messages::render_usage(reading))];
        if let Some(thresholds) = self.thresholds {
            let level = thresholds.level_at(reading.projected_tokens());
            rows.push(("Level", format!("{level} ({})", capitalize(level.name()))));
            rows.push(("Estimated Remaining", render_remaining_tokens(reading, thresholds)));
            rows.extend(self.forecast_rows(reading, thresholds));
        }
        rows
    }

    /// Returns a row for each threshold that is ahead, after one that says how reliable the ranges are.
    fn forecast_rows(&self, reading: &UsageReading, thresholds: &Thresholds) -> Vec<TitledRow> {
        let Some(forecast) = &self.session_forecast.forecast else {
            let are_all_reached = [thresholds.l1, thresholds.l2, thresholds.auto_compact.tokens]
                .iter()
                .all(|threshold| reading.projected_tokens() >= *threshold);
            let explanation = format!(
                "too little data yet ({})",
                count_with_noun(self.session_forecast.response_count, "turn")
            );
            return if are_all_reached { Vec::new() } else { vec![("Forecast", explanation)] };
        };
        let titled_forecasts =
            [("To L1", &forecast.l1), ("To L2", &forecast.l2), ("To auto-compact", &forecast.auto_compact)];
        let row = |(name, threshold_forecast): (&'static str, &Option<ThresholdForecast>)| {
            // The row above says that the values are estimates; "about" would not fit into 80 columns.
            Some((name, render_forecast_without_about(threshold_forecast.as_ref()?)))
        };
        let turn_count = count_with_noun(forecast.sample_count, "turn");
        let mut rows = vec![("Forecast", format!("from {turn_count}; the ranges hold in 8 of 10 cases"))];
        rows.extend(titled_forecasts.into_iter().filter_map(row));
        rows
    }

    fn item_rows(&self) -> Vec<TitledRow> {
        let Some(run) = self.run else { return Vec::new() };
        let item = current_open_item(run);
        let quoted_item =
            item.map_or("none open".to_owned(), |item| format!("\"{}\"", truncate_end(item, 120)));
        let mut rows = vec![("Current Item", quoted_item)];
        rows.extend(
            item.and_then(|item| self.describe_complexity(item))
                .map(|complexity| ("Item Complexity", complexity)),
        );
        let name = truncate_end(&to_single_line(&run.options.task_name), 60);
        rows.push(("Iteration", format!("{} of {} (\"{name}\")", run.iteration, run.options.max_iterations)));
        rows
    }

    /// Describes the size stated by the item, or learned from other items of this project, including earlier
    /// runs. Returns `None` if nothing is known.
    fn describe_complexity(&self, item: &str) -> Option<String> {
        let size = ItemSize::parse_from_item(item);
        let (Estimate { source, .. }, percent) = self.estimate_item(item);
        let stated_size = size.map_or("Not stated".to_owned(), |size| capitalize(size.as_str()));
        match source {
            _ if is_stated_too_large(item) => Some(format!("{stated_size} (fits no window: split it)")),
            EstimateSource::MeasuredItems(number) => {
                let item_count = count_with_noun(number, "item");
                Some(format!(
                    "{stated_size} (est. {percent}% of the window, from {item_count} of this project)"
                ))
            }
            EstimateSource::StatedSize(_) => Some(format!("{stated_size} (est. {percent}% of the window)")),
            EstimateSource::FileLines(_) => {
                Some(format!("{stated_size} (est. {percent}% of the window, from the files it names)"))
            }
            EstimateSource::Unknown => None,
        }
    }

    /// Returns the estimate in tokens and in percent of the window. If the window is unknown, only the stated
    /// size counts, which is a share of any window.
    fn estimate_item(&self, item: &str) -> (Estimate, u64) {
        let growth = self
            .run
            .zip(self.thresholds)
            .map(|(run, _)| run.plan_items.item_costs.as_slice())
            .unwrap_or_default();
        let window = self.thresholds.map_or(100, |thresholds| thresholds.window.max(1));
        let estimate = estimate_item(item, self.item_file_lines, growth, window);
        let percent = estimate.tokens.saturating_mul(100) / window;
        (estimate, percent)
    }

    /// Returns the rows for the session, the source, the age and the thresholds.
    fn source_rows(&self) -> Vec<TitledRow> {
        let mut rows = Vec::new();
        if !self.session_id.is_empty() {
            rows.push(("Session", self.session_id.to_owned()));
        }
        rows.extend(self.transcript_error.iter().map(|trouble| ("Trouble", trouble.clone())));
        if let Some(reading) = self.reading {
            rows.extend(self.measurement_rows(reading));
        }
        rows.extend(self.thresholds.map(|thresholds| ("Thresholds", self.render_thresholds(thresholds))));
        rows
    }

    fn measurement_rows(&self, reading: &UsageReading) -> Vec<TitledRow> {
        let age = self.age_seconds.map_or("age unknown".to_owned(), |age| format!("{age} s old"));
        let model = reading.model.as_ref().map(|model| format!(", {model}")).unwrap_or_default();
        let window = reading.window.as_ref().map_or("unknown (no model seen)".to_owned(), |window| {
            format!("{} tokens ({})", format_tokens(window.tokens), window.source.describe())
        });
        let next_request = format_tokens(reading.projected_tokens());
        vec![
            (
                "Next Request",
                format!("about {next_request} tokens, with the answer and what has been added since"),
            ),
            ("Source", format!("{}, {age}", reading.usage_source.describe())),
            ("Window", format!("{window}{model}")),
        ]
    }

    fn render_thresholds(&self, thresholds: &Thresholds) -> String {
        let [l1, l2, l3] = [thresholds.l1, thresholds.l2, thresholds.l3]
            .map(|threshold| thresholds.percent_of_window(threshold));
        let configured = &self.settings.levels;
        let lowered_note = if thresholds.is_clamped {
            format!(
                " (lowered from {}/{}/{}%, below the auto-compact threshold)",
                configured.l1, configured.l2, configured.l3
            )
        } else {
            String::new()
        };
        format!("L1 {l1}%, L2 {l2}%, L3 {l3}%{lowered_note}")
    }

    /// Returns what to do, and when the next checkpoint happens automatically.
    pub(super) fn render_advice(&self) -> String {
        let Some((reading, thresholds)) = self.reading.zip(self.thresholds) else {
            return "none; the usage will be known after the next answer.".to_owned();
        };
        let level = thresholds.level_at(reading.projected_tokens());
        let advice = match level {
            Level::L0 if self.item_may_not_fit(reading, thresholds) => {
                "Continue with work that has begun. An item of this size will probably not fit before the checkpoint: if it has not begun, leave it to a fresh session."
            }
            Level::L0 => "Safe to continue.",
            Level::L1 => "Continue with the current item; start nothing large.",
            Level::L2 if self.run.is_some() => "Finish the current edit, commit, and end the turn.",
            Level::L2 => "Finish the current edit and start a fresh session.",
            Level::L3 => "Stop now: the next large result may not fit.",
        };
        let l2_percent = thresholds.percent_of_window(thresholds.l2);
        let checkpoint_note = if level >= Level::L2 {
            let handoff = self.handoff.map(|file| format!(" The handoff is {file}.")).unwrap_or_default();
            format!("The checkpoint was due at {l2_percent}%.{handoff}")
        } else if self.run.is_some() {
            format!("Checkpoint will trigger automatically at {l2_percent}%.")
        } else {
            format!("A handoff will be written automatically at {l2_percent}%; the session continues.")
        };
        format!("{advice}\n\n{checkpoint_note}")
    }

    /// Returns true if the item probably does not fit before L2, judged by its stated size or by other items.
    /// A mere guess gives no warning.
    fn item_may_not_fit(&self, reading: &UsageReading, thresholds: &Thresholds) -> bool {
        self.run.and_then(current_open_item).is_some_and(|item| {
            let (estimate, _) = self.estimate_item(item);
            estimate.source != EstimateSource::Unknown
                && !fits_below_l2(&estimate, reading.projected_tokens(), thresholds.l2)
        })
    }
}

fn render_remaining_tokens(reading: &UsageReading, thresholds: &Thresholds) -> String {
    let tokens_until = |threshold: u64| format_tokens(threshold.saturating_sub(reading.projected_tokens()));
    format!(
        "~{} tokens to the checkpoint, ~{} to the auto-compact threshold ({}%: {})",
        tokens_until(thresholds.l2),
        tokens_until(thresholds.auto_compact.tokens),
        thresholds.percent_of_window(thresholds.auto_compact.tokens),
        thresholds.auto_compact.action.describe()
    )
}

fn capitalize(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn render_forecast_without_about(threshold_forecast: &ThresholdForecast) -> String {
    let text = threshold_forecast.render();
    text.strip_prefix("about ").map_or(text.clone(), str::to_owned)
}

/// Escapes the text of a table cell: on one line, without a bar that would end the cell.
fn escape_table_cell(text: &str) -> String {
    to_single_line(text).replace('|', "\\|")
}
