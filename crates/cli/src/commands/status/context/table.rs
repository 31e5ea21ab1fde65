//! Renders the table that `plimsoll status --markdown` prints and `/ralph context` shows (Markdown that is also
//! readable in a terminal), and a summary of it in one sentence. Pure functions.

use plimsoll_domain::forecast::ThresholdForecast;
use plimsoll_domain::level::{Level, Thresholds};
use plimsoll_domain::size::ItemSize;
use plimsoll_domain::text::{capitalize, count_with_noun, format_tokens, to_safe_single_line, truncate_end};
use plimsoll_domain::{RunState, Settings, UsageReading};
use plimsoll_flows::context::forecast::SessionForecast;
use plimsoll_policy::current_item::current_unparked_item;
use plimsoll_policy::pack::{
    Estimate, EstimateSource, estimate_item_tokens_by_percentile, fits_below_l2, is_stated_too_large,
};

/// The input for the table and the sentence.
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

const UNKNOWN_USAGE: &str = "? (nothing has been answered yet, or the transcript cannot be read)";

impl ContextView<'_> {
    /// Renders the table with the recommendation below it; `run_rows` describe the project's run.
    pub(super) fn render_table_and_advice(&self, run_rows: &[TitledRow]) -> String {
        let title = if self.run.is_some() { "## Ralph Context Status" } else { "## Context Status" };
        let rows = [
            &self.usage_level_and_forecast_rows(),
            &self.current_item_and_iteration_rows(),
            run_rows,
            &self.session_source_and_threshold_rows(),
        ]
        .concat();
        let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        let format_row = |name: &str, value: &str| format!("| {name:<width$} | {value} |\n");
        let table: String =
            rows.iter().map(|(name, value)| format_row(name, &escape_table_cell(value))).collect();
        let header = format!("{}|{}|-------|\n", format_row("Metric", "Value"), "-".repeat(width + 2));
        format!(
            "{title}\n\n{header}{table}\n**Recommendation**: {}",
            self.render_advice_and_when_checkpoint_is_due()
        )
    }

    /// Describes the usage, the level and the next checkpoint or handoff in one sentence.
    pub(super) fn render_usage_and_next_event_sentence(&self) -> String {
        let Some(reading) = self.reading else { return UNKNOWN_USAGE.to_owned() };
        let usage = plimsoll_policy::messages::render_usage(reading);
        let Some(thresholds) = self.thresholds else { return usage };
        let level = thresholds.level_at(reading.projected_tokens());
        let l2_percent = thresholds.percent_of_window(thresholds.l2);
        let event_name = if self.run.is_some() { "checkpoint" } else { "handoff" };
        let next_event =
            match self.session_forecast.forecast.as_ref().and_then(|forecast| forecast.l2.as_ref()) {
                _ if level >= Level::L2 => format!("the {event_name} was due at {l2_percent}%"),
                Some(threshold_forecast) => {
                    format!(
                        "{event_name} at {l2_percent}% in {}",
                        render_forecast_without_about(threshold_forecast)
                    )
                }
                None => format!("{event_name} at {l2_percent}%"),
            };
        match level {
            Level::L0 => format!("{usage}; {next_event}"),
            level => format!("{usage}, {level} ({}); {next_event}", level.descriptive_name()),
        }
    }

    fn usage_level_and_forecast_rows(&self) -> Vec<TitledRow> {
        let Some(reading) = self.reading else {
            return vec![("Current Context", UNKNOWN_USAGE.to_owned())];
        };
        let mut rows = vec![("Current Context", plimsoll_policy::messages::render_usage(reading))];
        if let Some(thresholds) = self.thresholds {
            let level = thresholds.level_at(reading.projected_tokens());
            rows.push(("Level", format!("{level} ({})", capitalize(level.descriptive_name()))));
            rows.push(("Estimated Remaining", render_tokens_to_l2_and_auto_compact(reading, thresholds)));
            rows.extend(self.forecast_rows(reading, thresholds));
        }
        rows
    }

    /// Returns a row about the reliability of the forecast, and a row for each threshold that is not reached yet.
    fn forecast_rows(&self, reading: &UsageReading, thresholds: &Thresholds) -> Vec<TitledRow> {
        let Some(forecast) = &self.session_forecast.forecast else {
            let all_reached = [thresholds.l1, thresholds.l2, thresholds.auto_compact.tokens]
                .iter()
                .all(|threshold| reading.projected_tokens() >= *threshold);
            let explanation = format!(
                "too little data yet ({})",
                count_with_noun(self.session_forecast.response_count, "turn")
            );
            return if all_reached { Vec::new() } else { vec![("Forecast", explanation)] };
        };
        let titled_forecasts =
            [("To L1", &forecast.l1), ("To L2", &forecast.l2), ("To auto-compact", &forecast.auto_compact)];
        let forecast_row = |(name, threshold_forecast): (&'static str, &Option<ThresholdForecast>)| {
            // The row above says that the values are estimates; "about" would not fit into 80 columns.
            Some((name, render_forecast_without_about(threshold_forecast.as_ref()?)))
        };
        let turn_count = count_with_noun(forecast.sample_count, "turn");
        let mut rows = vec![("Forecast", format!("from {turn_count}; the ranges hold in 8 of 10 cases"))];
        rows.extend(titled_forecasts.into_iter().filter_map(forecast_row));
        rows
    }

    fn current_item_and_iteration_rows(&self) -> Vec<TitledRow> {
        let Some(run) = self.run else { return Vec::new() };
        let item = current_unparked_item(run);
        let quoted_item =
            item.map_or("none open".to_owned(), |item| format!("\"{}\"", truncate_end(item, 120)));
        let mut rows = vec![("Current Item", quoted_item)];
        rows.extend(
            item.and_then(|item| self.describe_item_size_and_estimate(item))
                .map(|complexity| ("Item Complexity", complexity)),
        );
        let task_name = truncate_end(&to_safe_single_line(&run.options.task_name), 60);
        rows.push((
            "Run Session",
            format!("{} of {} (\"{task_name}\")", run.iteration, run.options.max_iterations),
        ));
        rows
    }

    /// Describes the size that the item states and the estimated share of the window. Returns `None` if the
    /// estimate has no source.
    fn describe_item_size_and_estimate(&self, item: &str) -> Option<String> {
        let size = ItemSize::parse_from_item(item);
        let (Estimate { source, .. }, percent) = self.estimate_item_tokens_and_percent(item);
        let stated_size = size.map_or("Not stated".to_owned(), |size| capitalize(size.as_str()));
        match source {
            _ if is_stated_too_large(item) => Some(format!("{stated_size} (fits no window: split it)")),
            EstimateSource::MeasuredItems(measured_count) => {
                let item_count = count_with_noun(measured_count, "item");
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

    /// Returns the estimate in tokens and in percent of the window. If the window is unknown, a window of 100
    /// tokens is assumed and measured items are ignored.
    fn estimate_item_tokens_and_percent(&self, item: &str) -> (Estimate, u64) {
        let item_costs = self
            .run
            .zip(self.thresholds)
            .map(|(run, _)| run.plan_items.item_costs.as_slice())
            .unwrap_or_default();
        let window_tokens = self.thresholds.map_or(100, |thresholds| thresholds.window.max(1));
        let estimate =
            estimate_item_tokens_by_percentile(item, self.item_file_lines, item_costs, window_tokens);
        let percent = estimate.tokens.saturating_mul(100) / window_tokens;
        (estimate, percent)
    }

    /// Returns the rows for the session, the source, the age and the thresholds.
    fn session_source_and_threshold_rows(&self) -> Vec<TitledRow> {
        let mut rows = Vec::new();
        if !self.session_id.is_empty() {
            rows.push(("Session", self.session_id.to_owned()));
        }
        rows.extend(self.transcript_error.iter().map(|error| ("Problems", error.clone())));
        if let Some(reading) = self.reading {
            rows.extend(self.next_request_source_and_window_rows(reading));
        }
        rows.extend(
            self.thresholds.map(|thresholds| {
                ("Thresholds", self.render_threshold_percents_and_lowered_note(thresholds))
            }),
        );
        rows
    }

    fn next_request_source_and_window_rows(&self, reading: &UsageReading) -> Vec<TitledRow> {
        let age_text = self.age_seconds.map_or("age unknown".to_owned(), |age| format!("{age} s old"));
        let model_suffix = reading.model.as_ref().map(|model| format!(", {model}")).unwrap_or_default();
        let window_text = reading.window.as_ref().map_or("unknown (no model seen)".to_owned(), |window| {
            format!("{} tokens ({})", format_tokens(window.tokens), window.source.describe())
        });
        let next_request = format_tokens(reading.projected_tokens());
        vec![
            (
                "Next Request",
                format!("about {next_request} tokens, with the answer and what has been added since"),
            ),
            ("Source", format!("{}, {age_text}", reading.usage_source.describe())),
            ("Window", format!("{window_text}{model_suffix}")),
        ]
    }

    fn render_threshold_percents_and_lowered_note(&self, thresholds: &Thresholds) -> String {
        let [l1, l2, l3] = [thresholds.l1, thresholds.l2, thresholds.l3]
            .map(|threshold| thresholds.percent_of_window(threshold));
        let configured_levels = &self.settings.levels;
        let lowered_note = if thresholds.is_clamped {
            format!(
                " (lowered from {}/{}/{}%, below the auto-compact threshold)",
                configured_levels.l1, configured_levels.l2, configured_levels.l3
            )
        } else {
            String::new()
        };
        format!("L1 {l1}%, L2 {l2}%, L3 {l3}%{lowered_note}")
    }

    /// Recommends what to do, and says when the next checkpoint or handoff happens.
    pub(super) fn render_advice_and_when_checkpoint_is_due(&self) -> String {
        let Some((reading, thresholds)) = self.reading.zip(self.thresholds) else {
            return "none; the usage will be known after the next answer.".to_owned();
        };
        let level = thresholds.level_at(reading.projected_tokens());
        let advice = match level {
            Level::L0 if self.current_item_may_exceed_l2(reading, thresholds) => {
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

    /// Returns true if the current item is estimated to exceed L2. Returns false if the estimate has no source.
    fn current_item_may_exceed_l2(&self, reading: &UsageReading, thresholds: &Thresholds) -> bool {
        self.run.and_then(current_unparked_item).is_some_and(|item| {
            let (estimate, _) = self.estimate_item_tokens_and_percent(item);
            estimate.source != EstimateSource::Unknown
                && !fits_below_l2(&estimate, reading.projected_tokens(), thresholds.l2)
        })
    }
}

fn render_tokens_to_l2_and_auto_compact(reading: &UsageReading, thresholds: &Thresholds) -> String {
    let remaining_tokens =
        |threshold: u64| format_tokens(threshold.saturating_sub(reading.projected_tokens()));
    format!(
        "~{} tokens to the checkpoint, ~{} to the auto-compact threshold ({}%: {})",
        remaining_tokens(thresholds.l2),
        remaining_tokens(thresholds.auto_compact.tokens),
        thresholds.percent_of_window(thresholds.auto_compact.tokens),
        thresholds.auto_compact.action.describe()
    )
}

fn render_forecast_without_about(threshold_forecast: &ThresholdForecast) -> String {
    let text = threshold_forecast.render();
    text.strip_prefix("about ").map_or(text.clone(), str::to_owned)
}

/// Puts the text of a table cell on one line, and escapes `|`, which would end the cell.
fn escape_table_cell(text: &str) -> String {
    to_safe_single_line(text).replace('|', "\\|")
}
