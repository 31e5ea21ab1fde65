//! The status line: foreign text in any script neither controls the terminal nor makes the line too wide.

use super::Target;
use crate::draw::{Draw, hash_of_bytes, split_at_separator};
use crate::foreign::assert_no_hidden_characters;
use crate::seeds::text_seeds;
use plimsoll_domain::forecast::UsageSample;
use plimsoll_domain::memory::{HeapPressure, Register};
use plimsoll_domain::record::GitCounts;
use plimsoll_domain::statusline::{SegmentKind, StatusLine, Theme};
use plimsoll_domain::{Settings, Timestamp};
use plimsoll_policy::statusline::{
    CacheView, ContextUsageView, GitView, HiddenReason, LimitView, MemoryView, RunView, StatusLineView,
    explain_segments, render_bar_and_percent_in_level_color, render_lines_or_program_name,
};
use plimsoll_policy::thresholds::{
    CompactionConfig, compute_auto_compact_threshold_and_action, compute_thresholds,
};
use plimsoll_protocol::status::{ReasoningEffort, StatusCost, StatusModel, StatusPayload};
use unicode_width::UnicodeWidthStr;

pub(super) const TARGET: Target =
    Target { name: "status_line", check_input, seeds, mutated_input_count: 5_000 };

/// The number of columns that the client reserves for itself.
const RESERVED_COLUMNS: usize = 4;

fn seeds() -> Vec<Vec<u8>> {
    let config_texts = [
        "{}",
        r##"{"theme":"powerline","lines":[["load"],["x","git","model"]],"separator":" ","segments":{"x":{"pointer":"/a/0","format":"x {value}","colour":"#ff8800","warn":3},"git":{"format":"{branch}[ {modified}]","colour":"208","min_columns":80}}}"##,
        r#"{"theme":"plain","background":"light","lines":[["model","effort","directory","git","load","run","memory","growth","cache","cost","burn","five_hour","weekly","lines","version","health"]]}"#,
        r#"{"segments":{"load":{"format":"{bar}[ {used}/{window}][ \\[{level}\\]]","colour":"bright-red"},"own":{"command":["date"],"timeout_ms":5}},"lines":[["own","load"]]}"#,
    ];
    let mut seeds = text_seeds(&config_texts);
    let view_bytes = b"\xff\x01\x05Opus\x1b\x01\x04high\x01\x09~/w/\xe6\x97\xa5\xe6\x9c\xac\x01\x06a/\x1b[2J\x01\x03tre\x01\x05merge\x01\x01\x02\x03\x04\x05\x06\x01\x2b\x01\x50\x03\x05\x09\x20\x01\x02\x32\x01\x03\x01\x06\xe2\x80\xaeabc\x01\x57";
    for config_text in config_texts {
        seeds.push([config_text.as_bytes(), view_bytes].concat());
    }
    seeds
}

fn check_input(bytes: &[u8]) {
    let (config_bytes, rest) = split_at_separator(bytes);
    let config: StatusLine = serde_json::from_slice(config_bytes).unwrap_or_default();
    if config.find_validation_error().is_some() {
        return;
    }
    let written = serde_json::to_string(&config).expect("JSON");
    assert_eq!(serde_json::from_str::<StatusLine>(&written).ok().as_ref(), Some(&config), "written and read");
    let mut draw = Draw::from_bytes(rest);
    let view = draw_view(&mut draw, &config);
    let output = render_lines_or_program_name(&view, &config);
    assert!(!output.is_empty() && output.split('\n').count() <= config.lines.len().max(1));
    for line in output.split('\n') {
        let stripped = strip_color_codes(line);
        assert!(view.use_color || stripped == line, "no colour where none is wanted");
        assert_no_hidden_characters(&stripped);
        assert!(!stripped.contains(char::is_control), "{line:?}");
        // The minimum is one letter; in the powerline theme it has its block and an arrow around it.
        let min_width = if config.theme == Theme::Powerline { 4 } else { 1 };
        let max_width = view
            .columns
            .map_or(usize::MAX, |columns| columns.saturating_sub(RESERVED_COLUMNS).max(min_width));
        assert!(
            stripped == "plimsoll" || stripped.width() <= max_width,
            "{} > {max_width}: {line:?}",
            stripped.width()
        );
    }
    let _ = render_bar_and_percent_in_level_color(&view, draw.number().min(300));
    // Explaining renders the whole line for each segment. Doing so for every input would take most of the time.
    let is_small_config = config.lines.iter().map(Vec::len).sum::<usize>() + config.segments.len() < 40;
    let is_explained = is_small_config && hash_of_bytes(bytes).is_multiple_of(8);
    let explained_segments = if is_explained { explain_segments(&view, &config) } else { Vec::new() };
    for segment in explained_segments {
        let shown = segment.rendered.unwrap_or_default();
        assert_no_hidden_characters(&shown);
        assert!(!shown.contains(char::is_control), "{shown:?}");
    }
}

/// Removes Plimsoll's color codes, `ESC [ digits ; … m`, and nothing else.
fn strip_color_codes(line: &str) -> String {
    let mut stripped = String::new();
    let mut rest = line;
    while let Some(start) = rest.find("\u{1b}[") {
        stripped.push_str(&rest[..start]);
        let after_escape = &rest[start + 2..];
        let end = after_escape
            .find(|letter: char| !letter.is_ascii_digit() && letter != ';')
            .unwrap_or(after_escape.len());
        match after_escape[end..].strip_prefix('m') {
            Some(after) => rest = after,
            None => {
                stripped.push('\u{1b}');
                rest = after_escape;
            }
        }
    }
    stripped + rest
}

fn draw_view(draw: &mut Draw<'_>, config: &StatusLine) -> StatusLineView {
    let draw_clock = |draw: &mut Draw<'_>| format!("Thu {:02}:00", draw.byte());
    let model = draw.optional(Draw::text);
    let effort = draw.optional(Draw::text);
    let directory = draw.optional(Draw::text);
    let git = draw.optional(draw_git_view);
    let load = draw_load_view(draw);
    let run = draw.optional(|draw| RunView {
        iteration: draw.number() as u32,
        max_iterations: draw.number() as u32,
        done_count: draw.number() as usize,
        item_count: draw.number() as usize,
        current_item: draw.optional(Draw::text),
        checkpoint_percent: draw.optional(Draw::number),
        paused_until: draw.optional(draw_clock),
    });
    let memory = draw.optional(|draw| MemoryView {
        frame_depth: usize::from(draw.byte() % 6),
        frame_name: draw.text(),
        heap_percent: draw.number() as usize,
        pressure: HeapPressure::from_heap_chars(draw.number() as usize % 100_000),
        stale_registers: draw.list(2, |_| Register::Next),
    });
    let health = draw.optional(Draw::text);
    let mut custom_segments = std::collections::BTreeMap::new();
    for name in config.segments.keys().filter(|name| SegmentKind::from_name(name).is_none()) {
        let value = draw.text();
        custom_segments.insert(
            name.clone(),
            if draw.byte() == 7 { Err(HiddenReason::CommandNotRun(value)) } else { Ok(value) },
        );
    }
    StatusLineView {
        payload: StatusPayload {
            model: StatusModel { id: model.clone(), display_name: model },
            effort: ReasoningEffort { level: effort },
            cost: StatusCost {
                total_cost_usd: draw.optional(draw_amount),
                total_duration_ms: draw.optional(Draw::number),
                total_lines_added: draw.optional(Draw::number),
                total_lines_removed: draw.optional(Draw::number),
            },
            version: draw.optional(Draw::text),
            ..StatusPayload::default()
        },
        directory,
        git,
        context_usage: load,
        run,
        memory,
        health_problem: health,
        custom_values: custom_segments,
        prompt_cache: draw.optional(|draw| CacheView {
            is_warm: draw.optional(Draw::flag),
            hit_ratio: draw.optional(draw_amount),
            expires_at: draw.optional(draw_clock).map(Timestamp::from),
        }),
        five_hour_limit: draw.optional(|draw| LimitView {
            used_percent: draw.optional(draw_amount),
            resets_at: draw.optional(draw_clock),
        }),
        weekly_limit: draw.optional(|draw| LimitView {
            used_percent: draw.optional(draw_amount),
            resets_at: draw.optional(draw_clock),
        }),
        spend_limit: draw.optional(|draw| LimitView {
            used_percent: draw.optional(draw_amount),
            resets_at: draw.optional(draw_clock),
        }),
        use_color: draw.flag(),
        columns: draw.optional(|draw| usize::from(draw.byte())),
    }
}

fn draw_git_view(draw: &mut Draw<'_>) -> GitView {
    GitView {
        branch: draw.text(),
        worktree: draw.optional(Draw::text),
        operation_in_progress: draw.optional(Draw::text),
        counts: draw.optional(|draw| GitCounts {
            ahead: draw.number(),
            behind: draw.number(),
            conflicts: draw.number(),
            staged: draw.number(),
            modified: draw.number(),
            untracked: draw.number(),
        }),
        is_detached: draw.flag(),
        is_stale: draw.flag(),
    }
}

fn draw_load_view(draw: &mut Draw<'_>) -> ContextUsageView {
    let settings = Settings::default();
    let thresholds = draw.optional(|draw| {
        let window = draw.number() % 9_007_199_254_740_992;
        compute_thresholds(
            window,
            compute_auto_compact_threshold_and_action(window, None, &CompactionConfig::default()),
            &settings.levels,
            &settings.margins,
            0,
        )
    });
    ContextUsageView {
        used_percent: draw.optional(|draw| u64::from(draw.byte())),
        used_tokens: draw.optional(Draw::number),
        thresholds,
        usage_samples: draw.list(9, |draw| UsageSample {
            used_tokens: draw.number(),
            unix_seconds: draw.optional(Draw::number).map(u64::cast_signed),
        }),
    }
}

fn draw_amount(draw: &mut Draw<'_>) -> f64 {
    match draw.byte() {
        255 => f64::MAX,
        254 => 1e-300,
        cents => f64::from(cents) / 100.0 * 1.7_f64.powi(i32::from(draw.byte() % 32)),
    }
}
