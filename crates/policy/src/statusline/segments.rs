//! Computes the fields and the state of each segment, or the reason why it has nothing to show.

use super::HiddenReason::{self, NotReported, NothingToShow};
use super::truncate::truncate_to_columns;
use super::{CacheView, LimitView, StatusLineView, context_usage, usage_level};
use crate::forecast::MIN_GAINS;
use plimsoll_domain::level::{Level, Thresholds};
use plimsoll_domain::memory::HeapPressure;
use plimsoll_domain::statusline::{Color, Segment, SegmentFormat, SegmentKind, StatusLine, format};
use plimsoll_domain::text::{format_tokens, to_safe_single_line, truncate_end, truncate_start};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;

/// The state of a segment, which determines its color.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentState {
    /// The value is unknown.
    Unknown,
    Normal,
    /// The value needs attention: L1, or a warning limit.
    Warning,
    /// A checkpoint is due (L2).
    Checkpoint,
    /// The value is critical: L3, or an alarm limit.
    Alarm,
}

impl SegmentState {
    pub(super) fn from_level_or_unknown(level: Option<Level>) -> SegmentState {
        match level {
            None => SegmentState::Unknown,
            Some(Level::L0) => SegmentState::Normal,
            Some(Level::L1) => SegmentState::Warning,
            Some(Level::L2) => SegmentState::Checkpoint,
            Some(Level::L3) => SegmentState::Alarm,
        }
    }
}

/// A segment that has something to show.
#[derive(Debug, Clone)]
pub(super) struct RenderedSegment<'a> {
    pub(super) name: &'a str,
    /// `None` for a user-defined segment.
    pub(super) kind: Option<SegmentKind>,
    pub(super) fields: Vec<(&'static str, String)>,
    pub(super) state: SegmentState,
    pub(super) color: Option<Color>,
    /// The rendered text without colors.
    pub(super) text: String,
    template: &'a str,
    dropped_groups: DroppedGroups,
}

impl RenderedSegment<'_> {
    /// Drops all optional groups of the format. Returns `None` if nothing is left to show.
    pub(super) fn without_groups(mut self) -> Option<Self> {
        self.dropped_groups = DroppedGroups::All;
        self.rerender_without_dropped_groups()
    }

    /// Drops the groups that contain this field. Returns `None` if nothing is left to show.
    pub(super) fn without_groups_containing(mut self, field: &'static str) -> Option<Self> {
        if let DroppedGroups::ContainingAnyOf(fields) = &mut self.dropped_groups {
            fields.push(field);
        }
        self.rerender_without_dropped_groups()
    }

    /// Renders the text again from the fields and the remaining groups. Returns `None` if no shown field has a value.
    fn rerender_without_dropped_groups(mut self) -> Option<Self> {
        let is_group_shown = |group: &str| match &self.dropped_groups {
            DroppedGroups::All => false,
            DroppedGroups::ContainingAnyOf(fields) => !format::contains_any_field(group, fields),
        };
        self.text = render_template_unless_all_fields_empty(self.template, &is_group_shown, &self.fields)?;
        Some(self)
    }

    /// Returns the percent of the context usage segment if it is shorter than the whole text; `None` for other segments.
    pub(super) fn usage_percent_if_shorter(&self) -> Option<String> {
        let (_, percent) = self.fields.iter().find(|(name, _)| *name == "percent")?;
        (self.kind == Some(SegmentKind::ContextUsage) && percent.len() < self.text.len())
            .then(|| percent.clone())
    }

    /// Redraws the context usage bar with `cells` cells. Returns `None` if nothing is left to show.
    pub(super) fn with_bar_cells(mut self, cells: u64, view: &StatusLineView) -> Option<Self> {
        self.fields.iter_mut().filter(|(name, _)| *name == "bar").for_each(|(_, bar)| {
            *bar = context_usage::render_usage_bar_with_thresholds(&view.context_usage, cells);
        });
        self.rerender_without_dropped_groups()
    }

    /// Truncates the folder or branch to this many columns: a name keeps its beginning, a path its end.
    pub(super) fn with_truncated_name_branch_or_path(mut self, columns: usize) -> Option<Self> {
        for (field, value) in &mut self.fields {
            match *field {
                "name" | "branch" => *value = truncate_to_columns(value, columns),
                "path" => *value = truncate_start(value, columns),
                _ => {}
            }
        }
        self.rerender_without_dropped_groups()
    }
}

/// The groups of a format that are not rendered.
#[derive(Debug, Clone)]
enum DroppedGroups {
    /// Groups that contain at least one of these fields.
    ContainingAnyOf(Vec<&'static str>),
    All,
}

fn render_template_unless_all_fields_empty(
    template: &str,
    is_group_shown: &dyn Fn(&str) -> bool,
    fields: &SegmentFields,
) -> Option<String> {
    let field_value = |name: &str| Some(fields.iter().find(|(field, _)| *field == name)?.1.as_str());
    format::render_unless_all_fields_empty(template, is_group_shown, &field_value)
}

type SegmentFields = Vec<(&'static str, String)>;

/// Renders the segment with this name, or returns why it is hidden.
pub(super) fn render_segment<'a>(
    name: &'a str,
    view: &StatusLineView,
    settings: &'a StatusLine,
) -> Result<RenderedSegment<'a>, HiddenReason> {
    let segment_settings = settings.segment_settings(name);
    let min_columns = segment_settings.and_then(|segment| segment.min_columns);
    if let Some((min_columns, columns)) =
        min_columns.zip(view.columns).filter(|(required, columns)| columns < required)
    {
        return Err(HiddenReason::TerminalTooNarrow { min_columns, columns });
    }
    let kind = SegmentKind::from_name(name);
    let custom_template =
        segment_settings.and_then(|segment| segment.format.as_ref()).map_or("{value}", SegmentFormat::as_str);
    let template = kind.map_or(custom_template, |kind| settings.segment_format(kind));
    let (fields, state) = match kind {
        Some(kind) => builtin_segment_fields_and_state(kind, view, segment_settings, template)?,
        None => custom_segment_value_and_state(name, view, segment_settings)?,
    };
    let text = render_template_unless_all_fields_empty(template, &|_| true, &fields)
        .ok_or(NothingToShow("its format shows none of its fields"))?;
    Ok(RenderedSegment {
        name,
        kind,
        fields,
        state,
        color: segment_settings.and_then(|segment| segment.color),
        text,
        template,
        dropped_groups: DroppedGroups::ContainingAnyOf(Vec::new()),
    })
}

/// Returns the fields and the state of a built-in segment, or why it is hidden.
fn builtin_segment_fields_and_state(
    kind: SegmentKind,
    view: &StatusLineView,
    segment_settings: Option<&Segment>,
    template: &str,
) -> Result<(SegmentFields, SegmentState), HiddenReason> {
    let payload = &view.payload;
    let fields = match kind {
        SegmentKind::Model => model_fields(view)?,
        SegmentKind::Effort => {
            let effort_level = clip_to_one_line(payload.effort.level.as_ref())
                .ok_or(NotReported("effort (some models have none)"))?;
            vec![("level", effort_level)]
        }
        SegmentKind::Directory => directory_fields(view)?,
        SegmentKind::Git => return git_fields_and_state(view),
        SegmentKind::ContextUsage => return Ok(context_usage_fields_and_state(view, template)),
        SegmentKind::Run => return active_run_fields_and_state(view),
        SegmentKind::Memory => return memory_frame_and_heap_fields_and_state(view),
        SegmentKind::ContextGrowth => context_growth_fields(view)?,
        SegmentKind::Cache => {
            return prompt_cache_warmth_fields_and_state(
                view.prompt_cache.as_ref().ok_or(NotReported("prompt cache before the first answer"))?,
            );
        }
        SegmentKind::Cost => {
            let usd = session_cost_usd(view).ok_or(NotReported("cost"))?;
            return Ok((
                vec![("usd", format_usd(usd))],
                state_by_warn_and_alarm_limits(usd, segment_settings, None),
            ));
        }
        SegmentKind::Burn => return burn_rate_field_and_state(view, segment_settings),
        SegmentKind::FiveHour => {
            return usage_limit_fields_and_state(view.five_hour_limit.as_ref(), segment_settings);
        }
        SegmentKind::Weekly => {
            return usage_limit_fields_and_state(view.weekly_limit.as_ref(), segment_settings);
        }
        SegmentKind::Spend => {
            return usage_limit_fields_and_state(view.spend_limit.as_ref(), segment_settings);
        }
        SegmentKind::Lines => changed_lines_fields_unless_zero(view)?,
        SegmentKind::Version => {
            vec![("client", clip_to_one_line(payload.version.as_ref()).ok_or(NotReported("version"))?)]
        }
        SegmentKind::Health => return health_fields(view),
    };
    Ok((fields, SegmentState::Normal))
}

fn model_fields(view: &StatusLineView) -> Result<SegmentFields, HiddenReason> {
    let model = &view.payload.model;
    let model_name =
        clip_to_one_line(model.display_name.as_ref().or(model.id.as_ref())).ok_or(NotReported("model"))?;
    Ok(vec![("name", model_name), ("id", clip_to_one_line(model.id.as_ref()).unwrap_or_default())])
}

fn directory_fields(view: &StatusLineView) -> Result<SegmentFields, HiddenReason> {
    let path = to_safe_single_line(view.directory.as_deref().unwrap_or_default());
    let path = Some(path).filter(|path| !path.is_empty()).ok_or(NotReported("working directory"))?;
    let folder_name =
        Path::new(&path).file_name().map_or(Cow::Borrowed(path.as_str()), OsStr::to_string_lossy);
    Ok(vec![("name", truncate_end(&folder_name, 40)), ("path", truncate_start(&path, 80))])
}

fn changed_lines_fields_unless_zero(view: &StatusLineView) -> Result<SegmentFields, HiddenReason> {
    let cost = &view.payload.cost;
    let line_counts = cost.total_lines_added.zip(cost.total_lines_removed).ok_or(NotReported("lines"))?;
    let (added, removed) =
        Some(line_counts).filter(|counts| *counts != (0, 0)).ok_or(NothingToShow("no line has changed"))?;
    Ok(vec![("added", added.to_string()), ("removed", removed.to_string())])
}

fn health_fields(view: &StatusLineView) -> Result<(SegmentFields, SegmentState), HiddenReason> {
    let problem = view.health_problem.as_deref().ok_or(NothingToShow("nothing is wrong"))?;
    Ok((vec![("what", truncate_end(&to_safe_single_line(problem), 60))], SegmentState::Alarm))
}

/// Returns the value of a user-defined segment as its field `value`, and its state. A number at the start of the value is
/// compared with the configured limits; without one the state is normal.
fn custom_segment_value_and_state(
    name: &str,
    view: &StatusLineView,
    segment_settings: Option<&Segment>,
) -> Result<(SegmentFields, SegmentState), HiddenReason> {
    let value = view.custom_values.get(name).ok_or(NothingToShow("it is in no line"))?.clone()?;
    let text = truncate_end(&to_safe_single_line(&value), 80);
    if text.is_empty() {
        return Err(NothingToShow("its value is empty"));
    }
    // The number may be followed by a unit: `42 %`, `3 open`.
    let leading_number =
        text.split(|character: char| !(character.is_ascii_digit() || ".-".contains(character))).next();
    let parsed_number = leading_number.and_then(|number| number.parse().ok());
    Ok((
        vec![("value", text.clone())],
        parsed_number.map_or(SegmentState::Normal, |number| {
            state_by_warn_and_alarm_limits(number, segment_settings, None)
        }),
    ))
}

/// Describes the source of a user-defined segment's value: its JSON pointer or its command.
pub(super) fn describe_custom_value_source(segment: &Segment) -> String {
    match (&segment.pointer, &segment.command) {
        (Some(pointer), _) => format!("what Claude Code reports, at {pointer}"),
        (_, Some(command)) => format!("the command {}", command.join(" ")),
        _ => String::new(),
    }
}

/// Truncates external text to one line of at most 80 characters, so that it is safe to show. Returns `None` if it is empty.
fn clip_to_one_line(text: Option<&String>) -> Option<String> {
    text.map(|text| truncate_end(&to_safe_single_line(text), 80)).filter(|text| !text.is_empty())
}

fn format_usd(usd: f64) -> String {
    truncate_end(&format!("${usd:.2}"), 12)
}

/// Returns the state of a value by the configured limits, or by the default ones. Without limits the state is normal.
fn state_by_warn_and_alarm_limits(
    value: f64,
    segment_settings: Option<&Segment>,
    default_limits: Option<(f64, f64)>,
) -> SegmentState {
    let warn_limit =
        segment_settings.and_then(|segment| segment.warn).or(default_limits.map(|(warn, _)| warn));
    let alarm_limit =
        segment_settings.and_then(|segment| segment.alarm).or(default_limits.map(|(_, alarm)| alarm));
    match value {
        value if alarm_limit.is_some_and(|alarm| value >= alarm) => SegmentState::Alarm,
        value if warn_limit.is_some_and(|warn| value >= warn) => SegmentState::Warning,
        _ => SegmentState::Normal,
    }
}

/// The full width of the bar: one cell for every five percent, which leaves room for the other segments in 100 columns.
pub(super) const FULL_BAR_CELLS: u64 = 20;

/// Selects one of the thresholds, in tokens.
type ThresholdSelector = fn(&Thresholds) -> u64;

/// The fields of the context usage segment with the forecast turns and minutes until a threshold, and that threshold.
const FORECAST_FIELDS: [(&str, &str, ThresholdSelector); 3] = [
    ("turns", "minutes", |thresholds| thresholds.auto_compact.tokens),
    ("turns_l1", "minutes_l1", |thresholds| thresholds.l1),
    ("turns_l2", "minutes_l2", |thresholds| thresholds.l2),
];

fn context_usage_fields_and_state(view: &StatusLineView, template: &str) -> (SegmentFields, SegmentState) {
    let usage = &view.context_usage;
    let level = usage_level(view);
    let or_empty = |value: Option<String>| value.unwrap_or_default();
    let mut fields = vec![
        ("bar", context_usage::render_usage_bar_with_thresholds(usage, FULL_BAR_CELLS)),
        ("percent", context_usage::format_used_percent(usage)),
        ("used", or_empty(usage.used_tokens.map(format_tokens))),
        ("window", or_empty(usage.thresholds.map(|thresholds| format_tokens(thresholds.window)))),
        ("level", or_empty(level.map(|level| level.to_string()))),
        ("left", or_empty(context_usage::tokens_left_before_auto_compact(usage).map(format_tokens))),
    ];
    // Too few samples allow no forecast, and computing one costs more than all other segments.
    if usage.usage_samples.len() <= MIN_GAINS {
        return (fields, SegmentState::from_level_or_unknown(level));
    }
    for (turns_field, minutes_field, threshold_tokens) in FORECAST_FIELDS {
        if template.contains(turns_field) || template.contains(minutes_field) {
            let forecast = context_usage::forecast_until_threshold(usage, threshold_tokens);
            let minutes_left = forecast.and_then(|forecast| forecast.minutes);
            fields.push((
                turns_field,
                or_empty(forecast.as_ref().map(context_usage::format_median_turns_up_to_max)),
            ));
            fields
                .push((minutes_field, or_empty(minutes_left.map(|minutes| format!("~{}", minutes.median)))));
        }
    }
    // The percent may be known without the tokens; then the level is unknown.
    (fields, SegmentState::from_level_or_unknown(level))
}

fn git_fields_and_state(view: &StatusLineView) -> Result<(SegmentFields, SegmentState), HiddenReason> {
    let git = view.git.as_ref().ok_or(NothingToShow("the working directory is in no git repository"))?;
    let counts = git.counts.unwrap_or_default();
    let format_count = |number: u64| if number > 0 { number.to_string() } else { String::new() };
    let stale_marker = match git.counts {
        _ if !git.is_stale => "",
        Some(_) => "~",
        None => "…",
    };
    let fields = vec![
        ("branch", truncate_end(&to_safe_single_line(&git.branch), 40)),
        ("detached", if git.is_detached { "detached".to_owned() } else { String::new() }),
        (
            "worktree",
            git.worktree.as_deref().map_or(String::new(), |name| {
                format!("worktree {}", truncate_end(&to_safe_single_line(name), 24))
            }),
        ),
        (
            "action",
            truncate_end(&to_safe_single_line(git.operation_in_progress.as_deref().unwrap_or_default()), 24),
        ),
        ("ahead", format_count(counts.ahead)),
        ("behind", format_count(counts.behind)),
        ("conflicts", format_count(counts.conflicts)),
        ("staged", format_count(counts.staged)),
        ("modified", format_count(counts.modified)),
        ("untracked", format_count(counts.untracked)),
        ("stale", stale_marker.to_owned()),
    ];
    let state = match counts.conflicts {
        0 if git.operation_in_progress.is_none() => SegmentState::Normal,
        0 => SegmentState::Warning,
        _ => SegmentState::Alarm,
    };
    Ok((fields, state))
}

fn active_run_fields_and_state(view: &StatusLineView) -> Result<(SegmentFields, SegmentState), HiddenReason> {
    let run = view.run.as_ref().ok_or(NothingToShow("no run is active in this project"))?;
    let format_item_count =
        |number: usize| if run.item_count > 0 { number.to_string() } else { String::new() };
    let fields = vec![
        ("iteration", run.iteration.to_string()),
        ("max", run.max_iterations.to_string()),
        ("done", format_item_count(run.done_count)),
        ("items", format_item_count(run.item_count)),
        (
            "item",
            run.current_item
                .as_deref()
                .map_or(String::new(), |item| truncate_end(&to_safe_single_line(item), 32)),
        ),
        (
            "checkpoint",
            run.checkpoint_percent.map_or(String::new(), |percent| format!("checkpoint {percent}%")),
        ),
        ("until", run.paused_until.clone().unwrap_or_default()),
    ];
    Ok((fields, if run.paused_until.is_some() { SegmentState::Warning } else { SegmentState::Normal }))
}

/// Returns the fields of the working memory, by default rendered as `memory 1 calc · stale R2 R7 · heap 92% high`.
fn memory_frame_and_heap_fields_and_state(
    view: &StatusLineView,
) -> Result<(SegmentFields, SegmentState), HiddenReason> {
    let memory = view.memory.as_ref().ok_or(NothingToShow("this session does not use the working memory"))?;
    let stale_registers: Vec<&str> =
        memory.stale_registers.iter().map(|register| &register.key()[..2]).collect();
    let is_under_pressure = memory.pressure > HeapPressure::Low;
    let text_if_under_pressure = |text: String| if is_under_pressure { text } else { String::new() };
    let fields = vec![
        ("depth", memory.frame_depth.to_string()),
        (
            "frame",
            if memory.frame_depth > 0 {
                truncate_end(&to_safe_single_line(&memory.frame_name), 20)
            } else {
                String::new()
            },
        ),
        ("stale", stale_registers.join(" ")),
        ("heap", text_if_under_pressure(memory.heap_percent.to_string())),
        ("pressure", text_if_under_pressure(memory.pressure.as_str().to_owned())),
    ];
    Ok((fields, if is_under_pressure { SegmentState::Warning } else { SegmentState::Normal }))
}

fn context_growth_fields(view: &StatusLineView) -> Result<SegmentFields, HiddenReason> {
    let growths = context_usage::tokens_added_per_response(&view.context_usage.usage_samples);
    let last_growth =
        growths.last().ok_or(NothingToShow("fewer than two responses since the window was empty"))?;
    Ok(vec![
        ("spark", context_usage::render_sparkline(&growths)),
        ("last", format_tokens(*last_growth)),
        ("median", context_usage::median_growth(&growths).map_or(String::new(), format_tokens)),
    ])
}

fn prompt_cache_warmth_fields_and_state(
    cache: &CacheView,
) -> Result<(SegmentFields, SegmentState), HiddenReason> {
    let is_warm = cache.is_warm.ok_or(NothingToShow("Claude Code does not say whether it is warm"))?;
    let format_ratio = |ratio: f64| format!("{:.0}%", (ratio * 100.0).clamp(0.0, 100.0));
    let fields = vec![
        ("state", if is_warm { "warm" } else { "cold" }.to_owned()),
        ("hit", cache.hit_ratio.map_or(String::new(), format_ratio)),
        (
            "until",
            if is_warm { cache.expires_at.clone().unwrap_or_default().to_string() } else { String::new() },
        ),
    ];
    Ok((fields, if is_warm { SegmentState::Normal } else { SegmentState::Warning }))
}

/// Returns the cost of the session in US dollars, if it was reported.
fn session_cost_usd(view: &StatusLineView) -> Option<f64> {
    view.payload.cost.total_cost_usd.filter(|usd| usd.is_finite())
}

/// The session age below which no hourly rate is shown: in the first minute it would be mostly noise.
const MIN_SESSION_AGE_MS: u64 = 60_000;

fn burn_rate_field_and_state(
    view: &StatusLineView,
    segment_settings: Option<&Segment>,
) -> Result<(SegmentFields, SegmentState), HiddenReason> {
    let usd = session_cost_usd(view).ok_or(NotReported("cost"))?;
    let duration_ms = view.payload.cost.total_duration_ms.ok_or(NotReported("duration"))?;
    if duration_ms < MIN_SESSION_AGE_MS {
        return Err(NothingToShow("the session is younger than a minute"));
    }
    let usd_per_hour = usd * 3_600_000.0 / duration_ms as f64;
    Ok((
        vec![("rate", format_usd(usd_per_hour))],
        state_by_warn_and_alarm_limits(usd_per_hour, segment_settings, None),
    ))
}

/// The used percentages of a usage limit at which the warning and the alarm begin by default.
const DEFAULT_WARN_AND_ALARM_PERCENT: (f64, f64) = (75.0, 90.0);

fn usage_limit_fields_and_state(
    limit: Option<&LimitView>,
    segment_settings: Option<&Segment>,
) -> Result<(SegmentFields, SegmentState), HiddenReason> {
    let limit =
        limit.ok_or(NotReported("such limit (it does with a subscription, after the first answer)"))?;
    let used_percent =
        limit.used_percent.ok_or(NothingToShow("Claude Code does not say how much of it is used"))?;
    let fields = vec![
        ("percent", format!("{:.0}%", used_percent.min(999.0))),
        ("reset", limit.resets_at.clone().unwrap_or_default()),
    ];
    Ok((
        fields,
        state_by_warn_and_alarm_limits(used_percent, segment_settings, Some(DEFAULT_WARN_AND_ALARM_PERCENT)),
    ))
}
