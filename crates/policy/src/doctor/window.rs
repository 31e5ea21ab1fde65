//! The window, the auto-compact threshold and the levels, each with where it comes from; and what cannot be reached.

use super::{Finding, Section};
use plimsoll_domain::SessionId;
use plimsoll_domain::level::{AutoCompactAction, Thresholds};
use plimsoll_domain::reading::{Reading, Window};
use plimsoll_domain::settings::Levels;
use plimsoll_domain::text::tokens;

/// The window of the current session, or of the next one.
#[derive(Debug, Clone)]
pub struct WindowFacts {
    /// The session that was measured last.
    pub session: Option<SessionId>,
    /// How full it is.
    pub reading: Option<Reading>,
    /// The model, and who names it.
    pub model: Option<(String, &'static str)>,
    /// The window.
    pub window: Option<Window>,
    /// Every source that speaks of the window, also those that others went before.
    pub sources: Vec<Window>,
    /// Where the levels begin.
    pub thresholds: Option<Thresholds>,
    /// The levels as they are set.
    pub levels: Levels,
    /// What moves the window or the auto-compact threshold: `DISABLE_AUTO_COMPACT=1`.
    pub knobs: Vec<String>,
    /// Why our own settings do not count.
    pub complaint: Option<String>,
    /// The path of the last session's transcript, if the session has answered and the client has written none.
    pub missing_transcript: Option<String>,
}

pub(super) fn section(facts: &WindowFacts) -> Section {
    let mut findings: Vec<Finding> =
        facts.complaint.iter().map(|complaint| own_settings(complaint)).collect();
    findings.extend(facts.missing_transcript.as_deref().map(no_transcript));
    let (Some(window), Some(thresholds)) = (&facts.window, &facts.thresholds) else {
        let summary = "unknown until a session here has had its first answer";
        return Section { details: knobs(facts), ..Section::new("Window", summary, findings) };
    };
    findings.extend(out_of_reach(facts, thresholds));
    if facts.knobs.iter().any(|knob| knob.starts_with("CLAUDE_CONTEXT_PERCENT")) {
        let what = "CLAUDE_CONTEXT_PERCENT is set: if nothing else is known, that figure is used";
        findings.push(Finding::note("window.percent_set", what, "unset it, if that is not intended"));
    }
    let who = facts.model.as_ref().map_or("an unnamed model".to_owned(), |(model, _)| model.clone());
    let summary = format!("{} tokens for {who} ({})", tokens(window.tokens), window.source.words());
    Section { details: details(facts, window, thresholds), ..Section::new("Window", summary, findings) }
}

fn own_settings(complaint: &str) -> Finding {
    let what = format!("our settings are ignored and the defaults apply: {complaint}");
    Finding::problem(
        "window.settings_fault",
        what,
        "fix the file (schema: hooks-config/plimsoll.schema.json)",
    )
}

/// A client that was started inside another session inherits the variable, and its terminal interface writes no transcript then
/// (2.1.329).
fn no_transcript(path: &str) -> Finding {
    let what = "Claude Code writes no transcript of the last session: usage is known only from its status line, and handoffs lack the session's words and commands";
    let todo = "start Claude Code without the variable that another session handed down: `env -u CLAUDE_CODE_CHILD_SESSION claude`";
    Finding::warning("window.no_transcript", what, todo).at(path)
}

fn details(facts: &WindowFacts, window: &Window, thresholds: &Thresholds) -> Vec<String> {
    let mut lines = Vec::new();
    if let (Some(session), Some(reading)) = (&facts.session, &facts.reading) {
        let percent = reading.percent().map_or("?".to_owned(), |percent| percent.to_string());
        let source = reading.source.words();
        lines.push(format!(
            "session {session}: {percent}% ({} tokens, {source})",
            tokens(reading.projected())
        ));
    }
    lines.extend(facts.model.iter().map(|(model, who)| format!("model {model}: {who}")));
    let lost = facts.sources.iter().filter(|source| source.source != window.source);
    lines.extend(
        lost.map(|source| format!("not used: {} ({})", tokens(source.tokens), source.source.words())),
    );
    let action = thresholds.auto_compact.action;
    let never = "; this model never compacts by itself before";
    let never = if action == AutoCompactAction::Rejected { never } else { "" };
    let percent = |tokens: u64| thresholds.percent(tokens);
    let auto_compact = thresholds.auto_compact.tokens;
    lines.push(format!(
        "auto-compact threshold {} ({}%): {} there{never}",
        tokens(auto_compact),
        percent(auto_compact),
        action.words()
    ));
    let [l1, l2, l3] = [thresholds.l1, thresholds.l2, thresholds.l3].map(percent);
    lines.push(format!("levels: L1 {l1}%, L2 {l2}%, L3 {l3}%"));
    lines.extend(knobs(facts));
    lines
}

fn knobs(facts: &WindowFacts) -> Vec<String> {
    facts.knobs.iter().map(|knob| format!("in force: {knob}")).collect()
}

/// The default of L3 is a point too close to the auto-compact threshold of every window: only a larger move is reported.
fn out_of_reach(facts: &WindowFacts, thresholds: &Thresholds) -> Option<Finding> {
    let Levels { l2, l3, .. } = facts.levels;
    let auto_compact = thresholds.percent(thresholds.auto_compact.tokens);
    let above: Vec<String> = [("L2", l2), ("L3", l3)]
        .into_iter()
        .filter(|(_, percent)| *percent >= auto_compact as f64)
        .map(|(name, percent)| format!("{name} ({percent}%)"))
        .collect();
    if !thresholds.clamped || above.is_empty() {
        return None;
    }
    let what = format!(
        "{} would be out of reach, because the client acts at {auto_compact}%: lowered to L2 {}%, L3 {}%",
        above.join(" and "),
        thresholds.percent(thresholds.l2),
        thresholds.percent(thresholds.l3)
    );
    let todo = "nothing: they are reached in time now; for more room choose a model with a larger window, or smaller `margins` in your own settings";
    Some(Finding::note("window.out_of_reach", what, todo))
}

#[cfg(test)]
mod tests {
    use super::super::codes;
    use super::*;
    use crate::thresholds::{CompactionConfig, auto_compact, thresholds};
    use plimsoll_domain::reading::WindowSource;
    use plimsoll_domain::settings::Margins;

    fn look(window: u64, change: fn(&mut WindowFacts)) -> Section {
        let levels = Levels::default();
        let auto_compact = auto_compact(window, Some("claude-opus-4-6"), &CompactionConfig::default());
        let source = |tokens, source| Window { tokens, source };
        let mut facts = WindowFacts {
            session: None,
            reading: None,
            model: Some(("claude-opus-4-6".to_owned(), "settings")),
            window: Some(source(window, WindowSource::StatusLine)),
            sources: vec![source(window, WindowSource::StatusLine), source(200_000, WindowSource::Table)],
            thresholds: Some(thresholds(window, auto_compact, &levels, &Margins::default(), 0)),
            levels,
            knobs: Vec::new(),
            complaint: None,
            missing_transcript: None,
        };
        change(&mut facts);
        section(&facts)
    }

    #[test]
    fn levels_out_of_reach_are_told_with_what_they_became() {
        assert_eq!(codes(&look(1_000_000, |_| ())), [""; 0]);
        let small = look(200_000, |_| ());
        assert_eq!(codes(&small), ["window.out_of_reach"]);
        insta::assert_snapshot!(small.findings[0].what, @"L2 (85%) and L3 (95%) would be out of reach, because the client acts at 84%: lowered to L2 74%, L3 79%");
        let unknown = look(200_000, |facts| facts.window = None);
        assert!(unknown.findings.is_empty(), "{unknown:?}");
        insta::assert_snapshot!(unknown.summary, @"unknown until a session here has had its first answer");
        let fault = look(1_000_000, |facts| facts.complaint = Some("levels must rise".to_owned()));
        assert_eq!(codes(&fault), ["window.settings_fault"]);
    }

    #[test]
    fn a_transcript_that_is_not_written_is_named_also_where_the_window_is_unknown() {
        for change in [
            |facts: &mut WindowFacts| facts.missing_transcript = Some("/t.jsonl".to_owned()),
            |facts: &mut WindowFacts| {
                (facts.window, facts.missing_transcript) = (None, Some("/t.jsonl".to_owned()));
            },
        ] {
            let section = look(1_000_000, change);
            assert_eq!(codes(&section), ["window.no_transcript"]);
            assert_eq!(section.findings[0].place.as_deref(), Some("/t.jsonl"));
        }
    }

    #[test]
    fn every_source_is_told_also_the_one_that_lost() {
        let section = look(1_000_000, |facts| facts.knobs.push("DISABLE_AUTO_COMPACT=1".to_owned()));
        insta::assert_snapshot!(section.details.join("\n"), @"
        model claude-opus-4-6: settings
        not used: 200k (table of models)
        auto-compact threshold 967k (97%): the client compacts there
        levels: L1 70%, L2 85%, L3 95%
        in force: DISABLE_AUTO_COMPACT=1
        ");
    }
}
