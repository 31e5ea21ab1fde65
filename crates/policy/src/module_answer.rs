//! What our module inside the client is told: whether it answers in this session, and what it shows.

use plimsoll_domain::cost::format_usd;
use plimsoll_domain::level::{Level, Thresholds};
use plimsoll_domain::reading::rounded_percent;
use plimsoll_domain::text::{format_tokens, to_safe_single_line, truncate_end};
use plimsoll_protocol::client_report::AgentReport;

/// Why a module stays silent in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SilenceReason {
    /// `plimsoll run` decides there what happens at a threshold.
    SessionOfRun,
    /// The module that `plimsoll init` installed answers, and not the one of the plugin.
    OtherModuleAnswers,
    /// The hooks have not recorded the session, so there is nothing to gather.
    SessionNotRecorded,
}

impl SilenceReason {
    /// Describes the reason as a sentence without a period.
    pub fn describe(self) -> &'static str {
        match self {
            SilenceReason::SessionOfRun => "this session belongs to a run",
            SilenceReason::OtherModuleAnswers => {
                "the module that `plimsoll init` installed handles this session"
            }
            SilenceReason::SessionNotRecorded => {
                "Plimsoll's hooks have not recorded this session: run `plimsoll init`"
            }
        }
    }
}

/// The facts about a session that decide whether the module answers in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModuleFacts {
    pub belongs_to_run: bool,
    /// True if `plimsoll init` has installed a module, and another one asks.
    pub is_plugin_copy_beside_installed_module: bool,
    pub is_session_recorded: bool,
}

/// Returns why the module stays silent; `None` if it answers.
pub fn reason_for_silence(facts: ModuleFacts) -> Option<SilenceReason> {
    if facts.belongs_to_run {
        Some(SilenceReason::SessionOfRun)
    } else if facts.is_plugin_copy_beside_installed_module {
        Some(SilenceReason::OtherModuleAnswers)
    } else if !facts.is_session_recorded {
        Some(SilenceReason::SessionNotRecorded)
    } else {
        None
    }
}

/// The number of subagents that are shown.
const MAX_AGENT_LINES: usize = 4;
const MAX_AGENT_NAME_CHARS: usize = 40;

/// Renders the lines above the prompt: the usage, then the subagents that work now. Returns no line below L1.
pub fn render_band_lines_from_l1(
    used_tokens: u64,
    thresholds: &Thresholds,
    agents: &[AgentReport],
) -> Vec<String> {
    if thresholds.level_at(used_tokens) == Level::L0 {
        return Vec::new();
    }
    let percent = rounded_percent(used_tokens, thresholds.window).unwrap_or_default();
    let tokens_left = thresholds.auto_compact.tokens.saturating_sub(used_tokens);
    let usage_line = format!(
        "{percent}% of the context window used, {} tokens left until {}",
        format_tokens(tokens_left),
        thresholds.auto_compact.action.describe()
    );
    let agent_lines = agents.iter().take(MAX_AGENT_LINES).map(describe_agent);
    let omitted_count = agents.len().saturating_sub(MAX_AGENT_LINES);
    let omitted_line = (omitted_count > 0).then(|| format!("… and {omitted_count} more"));
    std::iter::once(usage_line).chain(agent_lines).chain(omitted_line).collect()
}

fn describe_agent(agent: &AgentReport) -> String {
    let name = to_safe_single_line(agent.name.as_deref().unwrap_or("subagent"));
    let usage = match (agent.tokens, agent.window) {
        (Some(tokens), Some(window)) => {
            let percent = rounded_percent(tokens, window).unwrap_or_default();
            format!(": {} of {} tokens ({percent}%)", format_tokens(tokens), format_tokens(window))
        }
        (Some(tokens), None) => format!(": {} tokens", format_tokens(tokens)),
        (None, _) => String::new(),
    };
    let cost = agent.cost.map_or(String::new(), |usd| format!(", {}", format_usd(usd)));
    format!("{}{usage}{cost}", truncate_end(&name, MAX_AGENT_NAME_CHARS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::level::{AutoCompactAction, AutoCompactThreshold};

    #[test]
    fn the_module_answers_only_in_recorded_sessions_of_no_run_and_only_one_module_answers() {
        for (belongs_to_run, is_plugin_copy_beside_installed_module, is_session_recorded, expected) in [
            (false, false, true, None),
            (false, false, false, Some(SilenceReason::SessionNotRecorded)),
            (false, true, true, Some(SilenceReason::OtherModuleAnswers)),
            (true, false, true, Some(SilenceReason::SessionOfRun)),
            (true, true, false, Some(SilenceReason::SessionOfRun)),
        ] {
            let facts =
                ModuleFacts { belongs_to_run, is_plugin_copy_beside_installed_module, is_session_recorded };
            assert_eq!(reason_for_silence(facts), expected, "{facts:?}");
        }
    }

    #[test]
    fn nothing_is_shown_below_l1_and_usage_and_subagents_from_there_on() {
        let auto_compact = AutoCompactThreshold { tokens: 967_000, action: AutoCompactAction::Compacts };
        let thresholds = Thresholds {
            window: 1_000_000,
            l1: 700_000,
            l2: 850_000,
            l3: 950_000,
            auto_compact,
            is_clamped: false,
        };
        let agent = |name: &str, tokens, window, cost| AgentReport {
            name: Some(name.to_owned()),
            tokens,
            window,
            cost,
            model: None,
        };
        assert_eq!(render_band_lines_from_l1(699_999, &thresholds, &[]), Vec::<String>::new());
        let agents = [
            agent("Explore\n\u{1b}[31m", Some(45_000), Some(200_000), Some(0.117)),
            agent("Plan", Some(1_000), None, None),
            AgentReport::default(),
        ];
        assert_eq!(
            render_band_lines_from_l1(720_000, &thresholds, &agents),
            [
                "72% of the context window used, 247k tokens left until Claude Code compacts",
                "Explore \\u{1b}[31m: 45k of 200k tokens (23%), $0.12",
                "Plan: 1k tokens",
                "subagent",
            ]
        );
        let many = vec![agent("a", None, None, None); 6];
        assert_eq!(render_band_lines_from_l1(980_000, &thresholds, &many).last().unwrap(), "… and 2 more");
    }
}
