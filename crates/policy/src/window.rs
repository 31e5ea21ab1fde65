//! Determines the size of the context window. The first source that has a value wins.

use plimsoll_domain::reading::WindowSource;
use plimsoll_domain::{UsageReading, WindowSize};
use plimsoll_protocol::settings::parse_version;
use std::collections::BTreeMap;

/// The inputs that determine the size of a session's context window.
#[derive(Debug, Clone, Default)]
pub struct WindowEvidence<'a> {
    /// The requested model, with its `[1m]` suffix.
    pub model: Option<&'a str>,
    /// The windows that the user configured, by model id.
    pub user_windows: Option<&'a BTreeMap<String, u64>>,
    /// The window that the client reported to this session's status line for this model.
    pub status_line_window: Option<u64>,
    /// The window that the client reported for exactly this model in an earlier session.
    pub learned_window: Option<u64>,
    /// True with `CLAUDE_CODE_DISABLE_1M_CONTEXT`.
    pub is_1m_disabled: bool,
    /// `CLAUDE_CODE_MAX_CONTEXT_TOKENS`, which the client uses for ids it does not know.
    pub max_context_tokens: Option<u64>,
    /// The client's version as the client writes it, if known.
    pub client_version: Option<&'a str>,
    /// The most tokens that one request used.
    pub max_used_tokens: u64,
}

const LARGE_WINDOW: u64 = 1_000_000;
const SMALL_WINDOW: u64 = 200_000;

/// Models for which the client's result reports a window of 200,000 tokens (2.1.329). Every other model has a million, including
/// those that the client does not know.
const SMALL_WINDOW_MODELS: [&str; 8] =
    ["sonnet-4-5", "haiku-4-5", "opus-4-5", "opus-4-6", "sonnet-4-6", "sonnet-4", "3-7-sonnet", "3-5-haiku"];

/// Clients up to this version (observed on 1.0.128, 2.0.77 and 2.1.101) give every model a small window, even an unknown
/// one, unless it has the `[1m]` suffix. Versions between this one and 2.1.329 were not tested and are treated as new.
const LAST_CLIENT_WITH_SMALL_WINDOWS: (u32, u32, u32) = (2, 1, 101);

/// The model families that the client recognizes. It uses `CLAUDE_CODE_MAX_CONTEXT_TOKENS` only for other models.
const CLIENT_MODEL_FAMILIES: [&str; 6] = ["opus", "sonnet", "haiku", "fable", "best", "default"];

/// Returns the window from the first source that has a value: the user's settings, the status line, an earlier session,
/// the model's name. It is raised if a request has used more than that. Returns `None` if the model is unknown and no
/// source has a value.
pub fn resolve_window_raising_it_to_used_tokens(evidence: &WindowEvidence<'_>) -> Option<WindowSize> {
    let user_window = evidence.model.zip(evidence.user_windows).and_then(|(model, windows)| {
        windows.get(model).or_else(|| windows.get(strip_1m_suffix(model))).copied()
    });
    let window_if_positive = |tokens: Option<u64>, source| {
        tokens.filter(|tokens| *tokens > 0).map(|tokens| WindowSize { tokens, source })
    };
    let mut window = window_if_positive(user_window, WindowSource::Settings)
        .or_else(|| window_if_positive(evidence.status_line_window, WindowSource::StatusLine))
        .or_else(|| window_if_positive(evidence.learned_window, WindowSource::Learned))
        .or_else(|| evidence.model.map(|model| window_from_model_name_and_client(model, evidence)))?;
    // With this variable the client reduces a window of a million to 200,000 (2.1.329).
    if evidence.is_1m_disabled {
        window.tokens = window.tokens.min(SMALL_WINDOW);
    }
    // Overrides all sources: a request cannot have used more than its window.
    if evidence.max_used_tokens > window.tokens {
        window = WindowSize {
            tokens: smallest_window_for(evidence.max_used_tokens),
            source: WindowSource::RaisedByUsage,
        };
    }
    Some(window)
}

/// Returns the learned window of `model` from a session's last reading, which saves another lookup. Returns `None` for a
/// window of 200,000 or less: `CLAUDE_CODE_DISABLE_1M_CONTEXT` may have reduced it, and the next process may run without
/// that variable.
pub fn last_learned_window_of_model_if_above_200k(
    last_reading: Option<&UsageReading>,
    model: &str,
) -> Option<u64> {
    let reading_of_model = last_reading.filter(|reading| reading.model.as_deref() == Some(model));
    let window = reading_of_model.and_then(|reading| reading.window.as_ref());
    window
        .filter(|window| window.source == WindowSource::Learned && window.tokens > SMALL_WINDOW)
        .map(|window| window.tokens)
}

/// Returns the window from each source that has one, in the order of precedence. Adjacent equal windows are merged.
pub fn windows_by_precedence(evidence: &WindowEvidence<'_>) -> Vec<WindowSize> {
    let resolve_without_sources = |remove_sources: fn(&mut WindowEvidence<'_>)| {
        let mut reduced_evidence = WindowEvidence { max_used_tokens: 0, ..evidence.clone() };
        remove_sources(&mut reduced_evidence);
        resolve_window_raising_it_to_used_tokens(&reduced_evidence)
    };
    let source_removals: [fn(&mut WindowEvidence<'_>); 4] = [
        |_| (),
        |evidence| evidence.user_windows = None,
        |evidence| (evidence.user_windows, evidence.status_line_window) = (None, None),
        |evidence| {
            (evidence.user_windows, evidence.status_line_window, evidence.learned_window) =
                (None, None, None);
        },
    ];
    let mut windows: Vec<WindowSize> =
        source_removals.into_iter().filter_map(resolve_without_sources).collect();
    windows.dedup();
    windows
}

/// The overhead of a session is at most the window divided by this number. A larger first request also contained files.
const MAX_OVERHEAD_DIVISOR: u64 = 4;

/// Estimates the tokens that every request of a session contains in addition to its messages: system prompt, tools and
/// instructions. These are the tokens of the first request without those of the user's prompt in it. The estimate is needed because
/// after a compaction the client (2.1.329) reports only the tokens of the remaining messages.
pub fn estimate_overhead(first_request_tokens: u64, prompt_tokens: u64, window_tokens: Option<u64>) -> u64 {
    let max_overhead = window_tokens.map_or(u64::MAX, |tokens| tokens / MAX_OVERHEAD_DIVISOR);
    first_request_tokens.saturating_sub(prompt_tokens).min(max_overhead)
}

/// Returns the window of a model by its name and the client's version, or the configured one if the client does not
/// recognize the model.
fn window_from_model_name_and_client(model: &str, evidence: &WindowEvidence<'_>) -> WindowSize {
    // The client gives every model a window of a million with this suffix (1.0.128 to 2.1.329).
    if model.ends_with("[1m]") {
        return WindowSize { tokens: LARGE_WINDOW, source: WindowSource::ModelTable };
    }
    let name = model_name_without_prefix_date_and_suffix(model);
    let client_version = evidence.client_version.and_then(parse_version);
    let is_old_client = client_version.is_some_and(|version| version <= LAST_CLIENT_WITH_SMALL_WINDOWS);
    if is_old_client || SMALL_WINDOW_MODELS.contains(&name) {
        return WindowSize { tokens: SMALL_WINDOW, source: WindowSource::ModelTable };
    }
    let is_client_family = CLIENT_MODEL_FAMILIES.iter().any(|family| name.contains(family));
    match evidence.max_context_tokens.filter(|tokens| !is_client_family && *tokens > 0) {
        Some(tokens) => WindowSize { tokens, source: WindowSource::Settings },
        None => WindowSize {
            tokens: LARGE_WINDOW,
            source: if is_client_family { WindowSource::ModelTable } else { WindowSource::Assumed },
        },
    }
}

/// Returns the smaller of the two standard window sizes that holds `used_tokens`, or `used_tokens` if neither does.
fn smallest_window_for(used_tokens: u64) -> u64 {
    [SMALL_WINDOW, LARGE_WINDOW].into_iter().find(|size| *size >= used_tokens).unwrap_or(used_tokens)
}

/// Returns a model id without its `[1m]` suffix.
pub fn strip_1m_suffix(model: &str) -> &str {
    model.strip_suffix("[1m]").unwrap_or(model)
}

/// Returns the model's name as the tables spell it, without prefix, date and suffix:
/// `us.anthropic.claude-sonnet-4-5-20250929-v1:0` → `sonnet-4-5`.
pub(crate) fn model_name_without_prefix_date_and_suffix(model: &str) -> &str {
    let name = strip_1m_suffix(model);
    let name = name.rfind("claude-").map_or(name, |index| &name[index + "claude-".len()..]);
    let is_version_part = |part: &str| {
        part.len() == 8 && part.bytes().all(|byte| byte.is_ascii_digit())
            || part == "latest"
            || part
                .strip_prefix('v')
                .is_some_and(|version| version.starts_with(|first: char| first.is_ascii_digit()))
    };
    let name = name.split('@').next().unwrap_or(name);
    let length: usize =
        name.split('-').take_while(|part| !is_version_part(part)).map(|part| part.len() + 1).sum();
    &name[..length.saturating_sub(1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::reading::UsageSource;

    #[test]
    fn the_table_has_the_small_models_and_the_suffix() {
        for (model, tokens) in [
            ("claude-opus-5-5", LARGE_WINDOW),
            ("claude-sonnet-5", LARGE_WINDOW),
            ("claude-opus-4-7", LARGE_WINDOW),
            ("claude-opus-4-8", LARGE_WINDOW),
            ("claude-haiku-5-5", LARGE_WINDOW),
            ("some-proxy-model", LARGE_WINDOW),
            ("claude-sonnet-4-5", SMALL_WINDOW),
            ("claude-sonnet-4-5-20250929", SMALL_WINDOW),
            ("claude-sonnet-4-20250514", SMALL_WINDOW),
            ("claude-haiku-4-5", SMALL_WINDOW),
            ("claude-opus-4-5", SMALL_WINDOW),
            ("claude-opus-4-6", SMALL_WINDOW),
            ("claude-sonnet-4-6", SMALL_WINDOW),
            ("claude-3-7-sonnet-20250219", SMALL_WINDOW),
            ("claude-3-5-haiku-latest", SMALL_WINDOW),
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", SMALL_WINDOW),
            ("claude-sonnet-4-5@20250929", SMALL_WINDOW),
            ("claude-sonnet-4-5[1m]", LARGE_WINDOW),
            ("claude-opus-4-6[1m]", LARGE_WINDOW),
        ] {
            assert_eq!(
                window_from_model_name_and_client(model, &WindowEvidence::default()).tokens,
                tokens,
                "{model}"
            );
        }
    }

    #[test]
    fn an_old_client_gives_only_models_with_the_suffix_a_large_window() {
        let (old, between, new) = ("2.1.101", "2.1.102", "2.1.329");
        for (model, client_version, tokens) in [
            ("claude-opus-4-1-20250805", "1.0.128", SMALL_WINDOW),
            ("claude-opus-4-1-20250805", "2.0.77", SMALL_WINDOW),
            ("claude-opus-4-1-20250805", old, SMALL_WINDOW),
            ("claude-opus-4-1-20250805", between, LARGE_WINDOW),
            ("claude-opus-4-1-20250805", new, LARGE_WINDOW),
            ("some-proxy-model", "2.0.77", SMALL_WINDOW),
            ("some-proxy-model", new, LARGE_WINDOW),
            ("claude-opus-5-5", "2.0.77", SMALL_WINDOW),
            ("claude-sonnet-4-5", "2.0.77", SMALL_WINDOW),
            ("claude-sonnet-4-5[1m]", "2.0.77", LARGE_WINDOW),
            ("some-proxy-model[1m]", "1.0.128", LARGE_WINDOW),
        ] {
            let evidence = WindowEvidence {
                model: Some(model),
                client_version: Some(client_version),
                max_context_tokens: Some(32_000).filter(|_| client_version != new),
                ..WindowEvidence::default()
            };
            assert_eq!(
                resolve_window_raising_it_to_used_tokens(&evidence).map(|window| window.tokens),
                Some(tokens),
                "{model} {client_version:?}"
            );
        }
    }

    #[test]
    fn only_a_learned_window_of_the_same_model_above_200_000_is_reused() {
        let window_from = |tokens, source| Some(WindowSize { tokens, source });
        for (model, window, expected) in [
            ("claude-opus-5-5", window_from(LARGE_WINDOW, WindowSource::Learned), Some(LARGE_WINDOW)),
            ("claude-opus-5-5", window_from(300_000, WindowSource::Learned), Some(300_000)),
            ("claude-opus-5-5", window_from(SMALL_WINDOW, WindowSource::Learned), None),
            ("claude-opus-5-5", window_from(LARGE_WINDOW, WindowSource::RaisedByUsage), None),
            ("claude-opus-5-5", window_from(LARGE_WINDOW, WindowSource::StatusLine), None),
            ("claude-opus-5-5", None, None),
            ("claude-opus-5-5[1m]", window_from(LARGE_WINDOW, WindowSource::Learned), None),
        ] {
            let reading = UsageReading {
                used_tokens: 1,
                output_tokens: 1,
                estimated_added_tokens: 0,
                window,
                model: Some(model.to_owned()),
                usage_source: UsageSource::Transcript,
                message_id: None,
                responded_at: None,
                is_one_request_behind: false,
            };
            assert_eq!(
                last_learned_window_of_model_if_above_200k(Some(&reading), "claude-opus-5-5"),
                expected,
                "{reading:?}"
            );
        }
        assert_eq!(last_learned_window_of_model_if_above_200k(None, "claude-opus-5-5"), None);
    }

    #[test]
    fn the_overhead_is_the_first_request_without_the_prompt_up_to_a_quarter() {
        for (first_request, prompt, window, expected) in [
            (20_000, 0, Some(SMALL_WINDOW), 20_000),
            (90_000, 70_000, Some(SMALL_WINDOW), 20_000),
            (90_000, 0, Some(SMALL_WINDOW), 50_000),
            (90_000, 0, Some(LARGE_WINDOW), 90_000),
            (90_000, 0, None, 90_000),
            (500, 900, Some(SMALL_WINDOW), 0),
        ] {
            assert_eq!(
                estimate_overhead(first_request, prompt, window),
                expected,
                "{first_request} {prompt} {window:?}"
            );
        }
    }

    #[test]
    fn the_first_source_with_a_value_wins() {
        let settings = BTreeMap::from([("claude-opus-5-5".to_owned(), 300_000)]);
        let mut evidence = WindowEvidence {
            model: Some("claude-opus-5-5"),
            user_windows: Some(&settings),
            status_line_window: Some(1),
            learned_window: Some(2),
            ..WindowEvidence::default()
        };
        let mut resolve_after = |change: fn(&mut WindowEvidence<'_>)| {
            change(&mut evidence);
            resolve_window_raising_it_to_used_tokens(&evidence).map(|window| (window.tokens, window.source))
        };
        assert_eq!(resolve_after(|_| ()), Some((300_000, WindowSource::Settings)));
        assert_eq!(
            resolve_after(|evidence| evidence.user_windows = None),
            Some((1, WindowSource::StatusLine))
        );
        assert_eq!(
            resolve_after(|evidence| evidence.status_line_window = None),
            Some((2, WindowSource::Learned))
        );
        assert_eq!(
            resolve_after(|evidence| evidence.learned_window = None),
            Some((LARGE_WINDOW, WindowSource::ModelTable))
        );
        assert_eq!(
            resolve_after(|evidence| evidence.is_1m_disabled = true),
            Some((SMALL_WINDOW, WindowSource::ModelTable))
        );
        assert_eq!(
            resolve_after(|evidence| evidence.max_used_tokens = 250_000),
            Some((LARGE_WINDOW, WindowSource::RaisedByUsage))
        );
        assert_eq!(resolve_after(|evidence| evidence.model = None), None, "with no model seen it is unknown");
    }

    #[test]
    fn each_source_is_listed_once_with_its_own_window() {
        let evidence = WindowEvidence {
            model: Some("claude-opus-4-6"),
            status_line_window: Some(1_000_000),
            ..Default::default()
        };
        let windows: Vec<(u64, WindowSource)> = windows_by_precedence(&evidence)
            .into_iter()
            .map(|window| (window.tokens, window.source))
            .collect();
        assert_eq!(windows, [(1_000_000, WindowSource::StatusLine), (200_000, WindowSource::ModelTable)]);
        assert_eq!(windows_by_precedence(&WindowEvidence::default()), []);
    }

    #[test]
    fn max_context_tokens_applies_only_to_models_unknown_to_the_client() {
        let evidence = WindowEvidence { max_context_tokens: Some(32_000), ..WindowEvidence::default() };
        assert_eq!(window_from_model_name_and_client("llama-9", &evidence).tokens, 32_000);
        assert_eq!(window_from_model_name_and_client("claude-opus-5-5", &evidence).tokens, LARGE_WINDOW);
    }
}
