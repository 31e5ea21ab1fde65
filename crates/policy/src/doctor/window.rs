//! Reports the context window, the auto-compact threshold and the thresholds with their sources, and configured
//! thresholds at or above the auto-compact threshold.

use super::{Finding, Section};
use plimsoll_domain::SessionId;
use plimsoll_domain::level::{AutoCompactAction, Thresholds};
use plimsoll_domain::reading::{UsageReading, WindowSize};
use plimsoll_domain::settings::Levels;
use plimsoll_domain::text::format_tokens;

/// The context window of the current session, or of the next one.
#[derive(Debug, Clone)]
pub struct WindowInfo {
    /// The session that was measured last.
    pub session_id: Option<SessionId>,
    /// The context usage of that session.
    pub reading: Option<UsageReading>,
    /// The model, and the source of that name.
    pub model: Option<(String, &'static str)>,
    pub window: Option<WindowSize>,
    /// All sources that state a window, including those that were overruled.
    pub candidate_windows: Vec<WindowSize>,
    /// The effective thresholds.
    pub thresholds: Option<Thresholds>,
    /// The thresholds as configured, in percent.
    pub levels: Levels,
    /// Settings that change the window or the auto-compact threshold, such as `DISABLE_AUTO_COMPACT=1`.
    pub overrides: Vec<String>,
    /// Why Plimsoll's settings are ignored, if they are.
    pub settings_error: Option<String>,
    /// The path of the last session's transcript, if the client has not written the file although the model has
    /// answered.
    pub missing_transcript: Option<String>,
}

pub(super) fn check_context_window(window_info: &WindowInfo) -> Section {
    let mut findings: Vec<Finding> =
        window_info.missing_transcript.as_deref().map(missing_transcript_finding).into_iter().collect();
    let (Some(window), Some(thresholds)) = (&window_info.window, &window_info.thresholds) else {
        let summary = "unknown until a session here has had its first answer";
        return Section {
            details: render_overrides(window_info),
            ..Section::new("Window", summary, findings)
        };
    };
    findings.extend(check_levels_above_auto_compact(window_info, thresholds));
    if window_info
        .overrides
        .iter()
        .any(|environment_override| environment_override.starts_with("CLAUDE_CONTEXT_PERCENT"))
    {
        let message = "CLAUDE_CONTEXT_PERCENT is set: if nothing else is known, that figure is used";
        findings.push(Finding::note("window.percent_set", message, "unset it, if that is not intended"));
    }
    let model_name =
        window_info.model.as_ref().map_or("an unnamed model".to_owned(), |(model, _)| model.clone());
    let summary =
        format!("{} tokens for {model_name} ({})", format_tokens(window.tokens), window.source.describe());
    Section {
        details: render_usage_sources_and_thresholds(window_info, window, thresholds),
        ..Section::new("Window", summary, findings)
    }
}

/// The finding about Plimsoll's own settings, which the section of the settings shows.
pub(super) fn ignored_settings_finding(error: &str) -> Finding {
    let message = format!("our settings are ignored and the defaults apply: {error}");
    Finding::problem(
        "window.settings_fault",
        message,
        "fix that file; `plimsoll generate schema` prints what it may contain",
    )
}

/// Warns about a missing transcript. A client started inside another session inherits `CLAUDE_CODE_CHILD_SESSION`,
/// and then writes no transcript in interactive mode (2.1.329).
fn missing_transcript_finding(path: &str) -> Finding {
    let message = "Claude Code writes no transcript of the last session: usage is known only from its status line, and handoffs lack the session's words and commands";
    let advice = "start Claude Code without the variable that another session handed down: `env -u CLAUDE_CODE_CHILD_SESSION claude`";
    Finding::warning("window.no_transcript", message, advice).with_path(path)
}

fn render_usage_sources_and_thresholds(
    window_info: &WindowInfo,
    window: &WindowSize,
    thresholds: &Thresholds,
) -> Vec<String> {
    let mut lines = Vec::new();
    if let (Some(session_id), Some(reading)) = (&window_info.session_id, &window_info.reading) {
        let percent = reading.projected_percent().map_or("?".to_owned(), |percent| percent.to_string());
        let source = reading.usage_source.describe();
        lines.push(format!(
            "session {session_id}: {percent}% ({} tokens, {source})",
            format_tokens(reading.projected_tokens())
        ));
    }
    lines.extend(
        window_info.model.iter().map(|(model, model_source)| format!("model {model}: {model_source}")),
    );
    let unused_sources = window_info.candidate_windows.iter().filter(|source| source.source != window.source);
    lines.extend(
        unused_sources.map(|source| {
            format!("not used: {} ({})", format_tokens(source.tokens), source.source.describe())
        }),
    );
    let action = thresholds.auto_compact.action;
    let rejection_note = "; this model never compacts by itself before";
    let rejection_suffix = if action == AutoCompactAction::ApiRejectsPrompt { rejection_note } else { "" };
    let percent_of = |tokens: u64| thresholds.percent_of_window(tokens);
    let auto_compact = thresholds.auto_compact.tokens;
    lines.push(format!(
        "auto-compact threshold {} ({}%): {} there{rejection_suffix}",
        format_tokens(auto_compact),
        percent_of(auto_compact),
        action.describe()
    ));
    let [l1, l2, l3] = [thresholds.l1, thresholds.l2, thresholds.l3].map(percent_of);
    lines.push(format!("levels: L1 {l1}%, L2 {l2}%, L3 {l3}%"));
    lines.extend(render_overrides(window_info));
    lines
}

fn render_overrides(window_info: &WindowInfo) -> Vec<String> {
    window_info
        .overrides
        .iter()
        .map(|environment_override| format!("in force: {environment_override}"))
        .collect()
}

/// Reports configured thresholds at or above the auto-compact threshold, which were lowered. The default L3 is
/// slightly too close to the auto-compact threshold of every window; that small correction is not reported.
fn check_levels_above_auto_compact(window_info: &WindowInfo, thresholds: &Thresholds) -> Option<Finding> {
    let Levels { l2, l3, .. } = window_info.levels;
    let auto_compact_percent = thresholds.percent_of_window(thresholds.auto_compact.tokens);
    let unreachable: Vec<String> = [("L2", l2), ("L3", l3)]
        .into_iter()
        .filter(|(_, percent)| *percent >= auto_compact_percent as f64)
        .map(|(name, percent)| format!("{name} ({percent}%)"))
        .collect();
    if !thresholds.is_clamped || unreachable.is_empty() {
        return None;
    }
    let message = format!(
        "{} would be out of reach, because Claude Code acts at {auto_compact_percent}%: lowered to L2 {}%, L3 {}%",
        unreachable.join(" and "),
        thresholds.percent_of_window(thresholds.l2),
        thresholds.percent_of_window(thresholds.l3)
    );
    let advice = "nothing to do: the thresholds are below it; for more room choose a model with a larger window, or smaller `margins` in your own settings";
    Some(Finding::note("window.out_of_reach", message, advice))
}

#[cfg(test)]
mod tests {
    use super::super::finding_codes;
    use super::*;
    use crate::thresholds::{
        CompactionConfig, compute_auto_compact_threshold_and_action, compute_thresholds,
    };
    use plimsoll_domain::reading::WindowSource;
    use plimsoll_domain::settings::Margins;

    fn check_changed(window: u64, change: fn(&mut WindowInfo)) -> Section {
        let levels = Levels::default();
        let auto_compact = compute_auto_compact_threshold_and_action(
            window,
            Some("claude-opus-4-6"),
            &CompactionConfig::default(),
        );
        let window_from = |tokens, source| WindowSize { tokens, source };
        let mut facts = WindowInfo {
            session_id: None,
            reading: None,
            model: Some(("claude-opus-4-6".to_owned(), "settings")),
            window: Some(window_from(window, WindowSource::StatusLine)),
            candidate_windows: vec![
                window_from(window, WindowSource::StatusLine),
                window_from(200_000, WindowSource::ModelTable),
            ],
            thresholds: Some(compute_thresholds(window, auto_compact, &levels, &Margins::default(), 0)),
            levels,
            overrides: Vec::new(),
            settings_error: None,
            missing_transcript: None,
        };
        change(&mut facts);
        check_context_window(&facts)
    }

    #[test]
    fn unreachable_thresholds_are_reported_with_their_lowered_values() {
        assert_eq!(finding_codes(&check_changed(1_000_000, |_| ())), [""; 0]);
        let small = check_changed(200_000, |_| ());
        assert_eq!(finding_codes(&small), ["window.out_of_reach"]);
        insta::assert_snapshot!(small.findings[0].message, @"L2 (85%) and L3 (95%) would be out of reach, because Claude Code acts at 84%: lowered to L2 74%, L3 79%");
        let unknown = check_changed(200_000, |facts| facts.window = None);
        assert!(unknown.findings.is_empty(), "{unknown:?}");
        insta::assert_snapshot!(unknown.summary, @"unknown until a session here has had its first answer");
    }

    #[test]
    fn a_missing_transcript_is_reported_even_if_the_window_is_unknown() {
        for change in [
            |facts: &mut WindowInfo| facts.missing_transcript = Some("/t.jsonl".to_owned()),
            |facts: &mut WindowInfo| {
                (facts.window, facts.missing_transcript) = (None, Some("/t.jsonl".to_owned()));
            },
        ] {
            let section = check_changed(1_000_000, change);
            assert_eq!(finding_codes(&section), ["window.no_transcript"]);
            assert_eq!(section.findings[0].path.as_deref(), Some("/t.jsonl"));
        }
    }

    #[test]
    fn unused_sources_of_the_window_are_listed_too() {
        let section =
            check_changed(1_000_000, |facts| facts.overrides.push("DISABLE_AUTO_COMPACT=1".to_owned()));
        insta::assert_snapshot!(section.details.join("\n"), @"
        model claude-opus-4-6: settings
        not used: 200k (table of models)
        auto-compact threshold 967k (97%): Claude Code compacts there
        levels: L1 70%, L2 85%, L3 95%
        in force: DISABLE_AUTO_COMPACT=1
        ");
    }
}
