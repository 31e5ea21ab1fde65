//! How large is the window? The first source that speaks wins.

use plimsoll_domain::reading::WindowSource;
use plimsoll_domain::{Reading, Window};
use plimsoll_protocol::settings::parse_version;
use std::collections::BTreeMap;

/// What is known about a session's window.
#[derive(Debug, Clone, Default)]
pub struct WindowEvidence<'a> {
    /// The model that was asked for, with its `[1m]` suffix.
    pub model: Option<&'a str>,
    /// Windows the user set, by model id.
    pub settings: Option<&'a BTreeMap<String, u64>>,
    /// What the client reported to this session's status line about this model.
    pub status_line: Option<u64>,
    /// What the client reported about exactly this model in an earlier session.
    pub learned: Option<u64>,
    /// `CLAUDE_CODE_DISABLE_1M_CONTEXT`.
    pub million_disabled: bool,
    /// `CLAUDE_CODE_MAX_CONTEXT_TOKENS`, which the client uses for ids it does not know.
    pub max_context_tokens: Option<u64>,
    /// The client's version as the client writes it, where that is known.
    pub client_version: Option<&'a str>,
    /// The most that was used at once.
    pub used: u64,
}

const MILLION: u64 = 1_000_000;
const SMALL: u64 = 200_000;

/// Models that the client's result reports with a window of 200,000 tokens (2.1.329); every other has a million, also those
/// that the client does not know.
const SMALL_MODELS: [&str; 8] =
    ["sonnet-4-5", "haiku-4-5", "opus-4-5", "opus-4-6", "sonnet-4-6", "sonnet-4", "3-7-sonnet", "3-5-haiku"];

/// Clients up to this version (seen on 1.0.128, 2.0.77 and 2.1.101) give every model a small window, whether they know it or not,
/// unless it has the `[1m]` suffix. Of those between it and 2.1.329 nothing is known, so they count as new.
const LAST_WITH_SMALL_WINDOWS: (u32, u32, u32) = (2, 1, 101);

/// Models the client knows: only for others does it use `CLAUDE_CODE_MAX_CONTEXT_TOKENS`.
const KNOWN_FAMILIES: [&str; 6] = ["opus", "sonnet", "haiku", "fable", "best", "default"];

/// The window; none while no model has been seen and nothing else speaks.
pub fn window(evidence: &WindowEvidence<'_>) -> Option<Window> {
    let by_user = evidence
        .model
        .zip(evidence.settings)
        .and_then(|(model, windows)| windows.get(model).or_else(|| windows.get(base_name(model))).copied());
    let found = |tokens: Option<u64>, source| {
        tokens.filter(|tokens| *tokens > 0).map(|tokens| Window { tokens, source })
    };
    let mut window = found(by_user, WindowSource::Settings)
        .or_else(|| found(evidence.status_line, WindowSource::StatusLine))
        .or_else(|| found(evidence.learned, WindowSource::Learned))
        .or_else(|| evidence.model.map(|model| by_name(model, evidence)))?;
    // The client makes 200,000 of a million then (2.1.329).
    if evidence.million_disabled {
        window.tokens = window.tokens.min(SMALL);
    }
    // The last word: no request can have held more than its window.
    if evidence.used > window.tokens {
        window = Window { tokens: at_least(evidence.used), source: WindowSource::Used };
    }
    Some(window)
}

/// What was learned of a model's window, as a session remembers it: then nobody need look it up again. One that may have been
/// made smaller by `CLAUDE_CODE_DISABLE_1M_CONTEXT` is not believed: the next process may be without it.
pub fn learned_before(remembered: Option<&Reading>, model: &str) -> Option<u64> {
    let of_model = remembered.filter(|reading| reading.model.as_deref() == Some(model));
    let window = of_model.and_then(|reading| reading.window.as_ref());
    window
        .filter(|window| window.source == WindowSource::Learned && window.tokens > SMALL)
        .map(|window| window.tokens)
}

/// What every source says for itself, first the one that goes before the others.
pub fn sources(evidence: &WindowEvidence<'_>) -> Vec<Window> {
    let alone = |change: fn(&mut WindowEvidence<'_>)| {
        let mut one = WindowEvidence { used: 0, ..evidence.clone() };
        change(&mut one);
        window(&one)
    };
    let chain: [fn(&mut WindowEvidence<'_>); 4] = [
        |_| (),
        |one| one.settings = None,
        |one| (one.settings, one.status_line) = (None, None),
        |one| (one.settings, one.status_line, one.learned) = (None, None, None),
    ];
    let mut all: Vec<Window> = chain.into_iter().filter_map(alone).collect();
    all.dedup();
    all
}

/// The overhead of a session is at most this part of its window: a larger first request also held files.
const LARGEST_OVERHEAD: u64 = 4;

/// Estimates what every request of a session holds beside its messages: system prompt, tools and instructions, by the tokens of
/// its first request and of the user's words in it. After a compaction the client (2.1.329) reports only the tokens of the
/// messages that are left.
pub fn overhead(first_request: u64, prompt: u64, window: Option<u64>) -> u64 {
    let most = window.map_or(u64::MAX, |tokens| tokens / LARGEST_OVERHEAD);
    first_request.saturating_sub(prompt).min(most)
}

fn by_name(model: &str, evidence: &WindowEvidence<'_>) -> Window {
    // Whatever the model: the client gives every small one a million with this suffix (1.0.128 to 2.1.329).
    if model.ends_with("[1m]") {
        return Window { tokens: MILLION, source: WindowSource::Table };
    }
    let name = family_name(model);
    let client_version = evidence.client_version.and_then(parse_version);
    let is_old_client = client_version.is_some_and(|version| version <= LAST_WITH_SMALL_WINDOWS);
    if is_old_client || SMALL_MODELS.contains(&name) {
        return Window { tokens: SMALL, source: WindowSource::Table };
    }
    let known = KNOWN_FAMILIES.iter().any(|family| name.contains(family));
    match evidence.max_context_tokens.filter(|tokens| !known && *tokens > 0) {
        Some(tokens) => Window { tokens, source: WindowSource::Settings },
        None => Window {
            tokens: MILLION,
            source: if known { WindowSource::Table } else { WindowSource::Assumed },
        },
    }
}

/// More was used than believed: the next of the two known sizes, or what was used.
fn at_least(used: u64) -> u64 {
    [SMALL, MILLION].into_iter().find(|size| *size >= used).unwrap_or(used)
}

/// A model id without its `[1m]` suffix.
pub fn base_name(model: &str) -> &str {
    model.strip_suffix("[1m]").unwrap_or(model)
}

/// The model's family as the tables spell it: `us.anthropic.claude-sonnet-4-5-20250929-v1:0` → `sonnet-4-5`.
pub(crate) fn family_name(model: &str) -> &str {
    let name = base_name(model);
    let name = name.rfind("claude-").map_or(name, |place| &name[place + "claude-".len()..]);
    let is_extra = |part: &str| {
        part.len() == 8 && part.bytes().all(|byte| byte.is_ascii_digit())
            || part == "latest"
            || part.starts_with('v')
    };
    let name = name.split('@').next().unwrap_or(name);
    let length: usize = name.split('-').take_while(|part| !is_extra(part)).map(|part| part.len() + 1).sum();
    &name[..length.saturating_sub(1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::reading::UsedSource;

    #[test]
    fn the_table_knows_the_small_models_and_the_suffix() {
        for (model, tokens) in [
            ("claude-opus-5-5", MILLION),
            ("claude-sonnet-5", MILLION),
            ("claude-opus-4-7", MILLION),
            ("claude-opus-4-8", MILLION),
            ("claude-haiku-5-5", MILLION),
            ("some-proxy-model", MILLION),
            ("claude-sonnet-4-5", SMALL),
            ("claude-sonnet-4-5-20250929", SMALL),
            ("claude-sonnet-4-20250514", SMALL),
            ("claude-haiku-4-5", SMALL),
            ("claude-opus-4-5", SMALL),
            ("claude-opus-4-6", SMALL),
            ("claude-sonnet-4-6", SMALL),
            ("claude-3-7-sonnet-20250219", SMALL),
            ("claude-3-5-haiku-latest", SMALL),
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", SMALL),
            ("claude-sonnet-4-5@20250929", SMALL),
            ("claude-sonnet-4-5[1m]", MILLION),
            ("claude-opus-4-6[1m]", MILLION),
        ] {
            assert_eq!(by_name(model, &WindowEvidence::default()).tokens, tokens, "{model}");
        }
    }

    #[test]
    fn an_old_client_gives_every_model_a_small_window_but_those_with_the_suffix() {
        let (old, between, new) = ("2.1.101", "2.1.102", "2.1.329");
        for (model, client_version, tokens) in [
            ("claude-opus-4-1-20250805", "1.0.128", SMALL),
            ("claude-opus-4-1-20250805", "2.0.77", SMALL),
            ("claude-opus-4-1-20250805", old, SMALL),
            ("claude-opus-4-1-20250805", between, MILLION),
            ("claude-opus-4-1-20250805", new, MILLION),
            ("some-proxy-model", "2.0.77", SMALL),
            ("some-proxy-model", new, MILLION),
            ("claude-opus-5-5", "2.0.77", SMALL),
            ("claude-sonnet-4-5", "2.0.77", SMALL),
            ("claude-sonnet-4-5[1m]", "2.0.77", MILLION),
            ("some-proxy-model[1m]", "1.0.128", MILLION),
        ] {
            let evidence = WindowEvidence {
                model: Some(model),
                client_version: Some(client_version),
                max_context_tokens: Some(32_000).filter(|_| client_version != new),
                ..WindowEvidence::default()
            };
            assert_eq!(
                window(&evidence).map(|window| window.tokens),
                Some(tokens),
                "{model} {client_version:?}"
            );
        }
    }

    #[test]
    fn what_a_session_remembers_of_its_window_is_believed_of_its_model_if_nothing_can_have_changed_it() {
        let known = |tokens, source| Some(Window { tokens, source });
        for (model, window, expected) in [
            ("claude-opus-5-5", known(MILLION, WindowSource::Learned), Some(MILLION)),
            ("claude-opus-5-5", known(300_000, WindowSource::Learned), Some(300_000)),
            ("claude-opus-5-5", known(SMALL, WindowSource::Learned), None),
            ("claude-opus-5-5", known(MILLION, WindowSource::Used), None),
            ("claude-opus-5-5", known(MILLION, WindowSource::StatusLine), None),
            ("claude-opus-5-5", None, None),
            ("claude-opus-5-5[1m]", known(MILLION, WindowSource::Learned), None),
        ] {
            let reading = Reading {
                used: 1,
                output: 1,
                added: 0,
                window,
                model: Some(model.to_owned()),
                source: UsedSource::Transcript,
                message_id: None,
                at: None,
                behind: false,
            };
            assert_eq!(learned_before(Some(&reading), "claude-opus-5-5"), expected, "{reading:?}");
        }
        assert_eq!(learned_before(None, "claude-opus-5-5"), None);
    }

    #[test]
    fn the_overhead_is_the_first_request_without_the_users_words_and_no_large_part_of_the_window() {
        for (first_request, prompt, window, expected) in [
            (20_000, 0, Some(SMALL), 20_000),
            (90_000, 70_000, Some(SMALL), 20_000),
            (90_000, 0, Some(SMALL), 50_000),
            (90_000, 0, Some(MILLION), 90_000),
            (90_000, 0, None, 90_000),
            (500, 900, Some(SMALL), 0),
        ] {
            assert_eq!(
                overhead(first_request, prompt, window),
                expected,
                "{first_request} {prompt} {window:?}"
            );
        }
    }

    #[test]
    fn the_first_source_that_speaks_wins() {
        let settings = BTreeMap::from([("claude-opus-5-5".to_owned(), 300_000)]);
        let mut evidence = WindowEvidence {
            model: Some("claude-opus-5-5"),
            settings: Some(&settings),
            status_line: Some(1),
            learned: Some(2),
            ..WindowEvidence::default()
        };
        let mut next = |change: fn(&mut WindowEvidence<'_>)| {
            change(&mut evidence);
            window(&evidence).map(|window| (window.tokens, window.source))
        };
        assert_eq!(next(|_| ()), Some((300_000, WindowSource::Settings)));
        assert_eq!(next(|evidence| evidence.settings = None), Some((1, WindowSource::StatusLine)));
        assert_eq!(next(|evidence| evidence.status_line = None), Some((2, WindowSource::Learned)));
        assert_eq!(next(|evidence| evidence.learned = None), Some((MILLION, WindowSource::Table)));
        assert_eq!(next(|evidence| evidence.million_disabled = true), Some((SMALL, WindowSource::Table)));
        assert_eq!(next(|evidence| evidence.used = 250_000), Some((MILLION, WindowSource::Used)));
        assert_eq!(next(|evidence| evidence.model = None), None, "with no model seen it is unknown");
    }

    #[test]
    fn each_source_is_asked_once_for_itself() {
        let evidence = WindowEvidence {
            model: Some("claude-opus-4-6"),
            status_line: Some(1_000_000),
            ..Default::default()
        };
        let found: Vec<(u64, WindowSource)> =
            sources(&evidence).into_iter().map(|window| (window.tokens, window.source)).collect();
        assert_eq!(found, [(1_000_000, WindowSource::StatusLine), (200_000, WindowSource::Table)]);
        assert_eq!(sources(&WindowEvidence::default()), []);
    }

    #[test]
    fn max_context_tokens_counts_only_for_models_the_client_does_not_know() {
        let evidence = WindowEvidence { max_context_tokens: Some(32_000), ..WindowEvidence::default() };
        assert_eq!(by_name("llama-9", &evidence).tokens, 32_000);
        assert_eq!(by_name("claude-opus-5-5", &evidence).tokens, MILLION);
    }
}
