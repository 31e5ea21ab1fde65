//! The status line: foreign words in any writing neither steer the terminal nor overflow it.

use super::Target;
use crate::draw::{Draw, dice, parts};
use crate::foreign::nothing_hides;
use crate::seeds::texts;
use plimsoll_domain::forecast::UsageSample;
use plimsoll_domain::memory::{HeapPressure, Register};
use plimsoll_domain::record::GitCounts;
use plimsoll_domain::statusline::{SegmentKind, StatusLine, Theme};
use plimsoll_domain::{Settings, Timestamp};
use plimsoll_policy::statusline::{
    CacheView, ContextUsageView, GitView, HiddenReason, LimitView, MemoryView, RunView, StatusLineView,
    explain_segments, render, render_bar_and_percent,
};
use plimsoll_policy::thresholds::{CompactionConfig, compute_auto_compact, compute_thresholds};
use plimsoll_protocol::status::{ReasoningEffort, StatusCost, StatusModel, StatusPayload};
use unicode_width::UnicodeWidthStr;

pub(super) const TARGET: Target = Target { name: "status_line", body, seeds, inputs: 5_000 };

/// The client keeps so many columns for itself.
const MARGIN: usize = 4;

fn seeds() -> Vec<Vec<u8>> {
    let looks = [
        "{}",
        r##"{"theme":"powerline","lines":[["load"],["x","git","model"]],"separator":" ","segments":{"x":{"pointer":"/a/0","format":"x {value}","colour":"#ff8800","warn":3},"git":{"format":"{branch}[ {modified}]","colour":"208","min_columns":80}}}"##,
        r#"{"theme":"plain","background":"light","lines":[["model","effort","directory","git","load","run","memory","growth","cache","cost","burn","five_hour","weekly","lines","version","health"]]}"#,
        r#"{"segments":{"load":{"format":"{bar}[ {used}/{window}][ \\[{level}\\]]","colour":"bright-red"},"own":{"command":["date"],"timeout_ms":5}},"lines":[["own","load"]]}"#,
    ];
    let mut seeds = texts(&looks);
    let view = b"\xff\x01\x05Opus\x1b\x01\x04high\x01\x09~/w/\xe6\x97\xa5\xe6\x9c\xac\x01\x06a/\x1b[2J\x01\x03tre\x01\x05merge\x01\x01\x02\x03\x04\x05\x06\x01\x2b\x01\x50\x03\x05\x09\x20\x01\x02\x32\x01\x03\x01\x06\xe2\x80\xaeabc\x01\x57";
    for look in looks {
        seeds.push([look.as_bytes(), view].concat());
    }
    seeds
}

fn body(bytes: &[u8]) {
    let (look, rest) = parts(bytes);
    let look: StatusLine = serde_json::from_slice(look).unwrap_or_default();
    if look.validation_error().is_some() {
        return;
    }
    let written = serde_json::to_string(&look).expect("JSON");
    assert_eq!(serde_json::from_str::<StatusLine>(&written).ok().as_ref(), Some(&look), "written and read");
    let mut draw = Draw::from(rest);
    let view = view(&mut draw, &look);
    let line = render(&view, &look);
    assert!(!line.is_empty() && line.split('\n').count() <= look.lines.len().max(1));
    for line in line.split('\n') {
        let bare = without_our_colours(line);
        assert!(view.use_color || bare == line, "no colour where none is wanted");
        nothing_hides(&bare);
        assert!(!bare.contains(char::is_control), "{line:?}");
        // One letter, in powerline within its block and before its arrow, is the least.
        let least = if look.theme == Theme::Powerline { 4 } else { 1 };
        let room = view.columns.map_or(usize::MAX, |columns| columns.saturating_sub(MARGIN).max(least));
        assert!(bare == "plimsoll" || bare.width() <= room, "{} > {room}: {line:?}", bare.width());
    }
    let _ = render_bar_and_percent(&view, draw.number().min(300));
    // Each segment is explained by its whole line: most of the time, if every input did it.
    let is_short = look.lines.iter().map(Vec::len).sum::<usize>() + look.segments.len() < 40;
    let is_explained = is_short && dice(bytes).is_multiple_of(8);
    let explained = if is_explained { explain_segments(&view, &look) } else { Vec::new() };
    for explained in explained {
        let shown = explained.rendered.unwrap_or_default();
        nothing_hides(&shown);
        assert!(!shown.contains(char::is_control), "{shown:?}");
    }
}

/// The line without what we paint with: `ESC [ digits ; … m`, and nothing else.
fn without_our_colours(line: &str) -> String {
    let mut bare = String::new();
    let mut rest = line;
    while let Some(start) = rest.find("\u{1b}[") {
        bare.push_str(&rest[..start]);
        let behind = &rest[start + 2..];
        let end =
            behind.find(|letter: char| !letter.is_ascii_digit() && letter != ';').unwrap_or(behind.len());
        match behind[end..].strip_prefix('m') {
            Some(after) => rest = after,
            None => {
                bare.push('\u{1b}');
                rest = behind;
            }
        }
    }
    bare + rest
}

fn view(draw: &mut Draw<'_>, look: &StatusLine) -> StatusLineView {
    let clock = |draw: &mut Draw<'_>| format!("Thu {:02}:00", draw.byte());
    let model = draw.some(Draw::text);
    let effort = draw.some(Draw::text);
    let directory = draw.some(Draw::text);
    let git = draw.some(git);
    let load = load(draw);
    let run = draw.some(|draw| RunView {
        iteration: draw.number() as u32,
        max_iterations: draw.number() as u32,
        done_count: draw.number() as usize,
        item_count: draw.number() as usize,
        current_item: draw.some(Draw::text),
        checkpoint_percent: draw.some(Draw::number),
        paused_until: draw.some(clock),
    });
    let memory = draw.some(|draw| MemoryView {
        frame_depth: usize::from(draw.byte() % 6),
        frame_name: draw.text(),
        heap_percent: draw.number() as usize,
        pressure: HeapPressure::from_heap_chars(draw.number() as usize % 100_000),
        stale_registers: draw.list(2, |_| Register::Next),
    });
    let health = draw.some(Draw::text);
    let mut own = std::collections::BTreeMap::new();
    for name in look.segments.keys().filter(|name| SegmentKind::from_name(name).is_none()) {
        let value = draw.text();
        own.insert(
            name.clone(),
            if draw.byte() == 7 { Err(HiddenReason::CommandNotRun(value)) } else { Ok(value) },
        );
    }
    StatusLineView {
        payload: StatusPayload {
            model: StatusModel { id: model.clone(), display_name: model },
            effort: ReasoningEffort { level: effort },
            cost: StatusCost {
                total_cost_usd: draw.some(money),
                total_duration_ms: draw.some(Draw::number),
                total_lines_added: draw.some(Draw::number),
                total_lines_removed: draw.some(Draw::number),
            },
            version: draw.some(Draw::text),
            ..StatusPayload::default()
        },
        directory,
        git,
        context_usage: load,
        run,
        memory,
        health_problem: health,
        custom_values: own,
        prompt_cache: draw.some(|draw| CacheView {
            is_warm: draw.some(Draw::flag),
            hit_ratio: draw.some(money),
            expires_at: draw.some(clock).map(Timestamp::from),
        }),
        five_hour_limit: draw
            .some(|draw| LimitView { used_percent: draw.some(money), resets_at: draw.some(clock) }),
        weekly_limit: draw
            .some(|draw| LimitView { used_percent: draw.some(money), resets_at: draw.some(clock) }),
        spend_limit: draw
            .some(|draw| LimitView { used_percent: draw.some(money), resets_at: draw.some(clock) }),
        use_color: draw.flag(),
        columns: draw.some(|draw| usize::from(draw.byte())),
    }
}

fn git(draw: &mut Draw<'_>) -> GitView {
    GitView {
        branch: draw.text(),
        worktree: draw.some(Draw::text),
        operation_in_progress: draw.some(Draw::text),
        counts: draw.some(|draw| GitCounts {
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

fn load(draw: &mut Draw<'_>) -> ContextUsageView {
    let settings = Settings::default();
    let thresholds = draw.some(|draw| {
        let window = draw.number() % 9_007_199_254_740_992;
        compute_thresholds(
            window,
            compute_auto_compact(window, None, &CompactionConfig::default()),
            &settings.levels,
            &settings.margins,
            0,
        )
    });
    ContextUsageView {
        used_percent: draw.some(|draw| u64::from(draw.byte())),
        used_tokens: draw.some(Draw::number),
        thresholds,
        fills: draw.list(9, |draw| UsageSample {
            used_tokens: draw.number(),
            unix_seconds: draw.some(Draw::number).map(u64::cast_signed),
        }),
    }
}

fn money(draw: &mut Draw<'_>) -> f64 {
    match draw.byte() {
        255 => f64::MAX,
        254 => 1e-300,
        cents => f64::from(cents) / 100.0 * 1.7_f64.powi(i32::from(draw.byte() % 32)),
    }
}
