//! The features that are probed in each version, and what Plimsoll does without them. The texts are those of `docs/clients.md`.

use std::collections::BTreeMap;

/// One feature of the client.
pub(crate) struct Probe {
    /// Its key in the files of expectations.
    pub(crate) key: &'static str,
    /// Its name on the page.
    pub(crate) row: &'static str,
    /// The consequence if the feature is missing.
    pub(crate) if_missing: IfMissing,
}

/// The consequence if a feature of the client is missing.
pub(crate) enum IfMissing {
    /// Every client that Plimsoll runs with must have it.
    Required,
    /// It may be missing, and this is what Plimsoll does then.
    Fallback(&'static str),
}

use IfMissing::{Fallback, Required};

const fn probe(key: &'static str, row: &'static str, if_missing: IfMissing) -> Probe {
    Probe { key, row, if_missing }
}

/// All probes, in the order of the page.
pub(crate) const PROBES: &[Probe] = &[
    probe("event.SessionStart", "the `SessionStart` hook", Required),
    probe("event.SessionStart after a compaction", "`SessionStart` again after a compaction", Required),
    probe("event.UserPromptSubmit", "`UserPromptSubmit`", Required),
    probe("event.PreToolUse", "`PreToolUse`", Required),
    probe("event.PostToolUse", "`PostToolUse`", Required),
    probe("event.SubagentStop", "`SubagentStop`", Required),
    probe("event.Stop", "`Stop`", Required),
    probe("event.PreCompact", "`PreCompact`", Required),
    probe("event.SessionEnd", "`SessionEnd`", Required),
    probe(
        "event.PostToolBatch",
        "`PostToolBatch`",
        Fallback("measures after each tool (`PostToolUse`); no working memory"),
    ),
    probe(
        "event.PostToolUseFailure",
        "`PostToolUseFailure`",
        Fallback("reads failed calls from the transcript, as always"),
    ),
    probe("event.SubagentStart", "`SubagentStart`", Fallback("no frames, no working memory")),
    probe(
        "event.PostCompact",
        "`PostCompact`",
        Fallback("at `SessionStart` after the compaction, tells the model what it must still know"),
    ),
    probe(
        "entry.unknown event",
        "an unknown event invalidates only its own entry",
        Fallback(
            "Claude Code ignores the whole file: `init` writes only known events, and `doctor` reports unknown ones",
        ),
    ),
    probe(
        "entry.args",
        "hook entries with `args`",
        Fallback("writes entries without `args`, and quotes paths"),
    ),
    probe(
        "payload.tool_use_id",
        "a tool event names its call",
        Fallback("takes the last response: usage may be one request old"),
    ),
    probe(
        "payload.agent_id",
        "a subagent's events are marked",
        Fallback("waits while a subagent works: announces a threshold at the session's next event"),
    ),
    probe(
        "payload.last_assistant_message",
        "`Stop` contains the last message",
        Fallback("reads it from the result and the transcript"),
    ),
    probe(
        "payload.background_tasks",
        "`Stop` lists background tasks",
        Fallback("waits until Claude Code exits, for at most `background_wait_seconds`"),
    ),
    probe(
        "transcript.requestedModel",
        "the transcript keeps the `[1m]` of the model's name",
        Fallback(
            "takes the window from the model's last result, else from a table (up to 2.1.101: 200,000 tokens for every model)",
        ),
    ),
    probe("result.total_cost_usd", "the result contains the cost", Required),
    probe("result.permission_denials", "the result names refused tools", Required),
    probe(
        "result.contextWindow",
        "the result contains the window",
        Fallback("takes the window from a table of models, or from `windows` in the settings"),
    ),
    probe(
        "result.terminal_reason",
        "the result says why the session ended",
        Fallback("decides by `is_error`, the status and the text"),
    ),
    probe(
        "status.context_window",
        "the status line receives `context_window`",
        Fallback("shows `?`; hooks measure from the transcript"),
    ),
    probe(
        "status.current_usage",
        "the status line receives the last response's usage",
        Fallback("shows `?`"),
    ),
    probe(
        "status.used_percentage",
        "the status line receives the percentage",
        Fallback("computes it from usage and window, rounded as newer versions do"),
    ),
    probe(
        "status.totals of the context",
        "token totals for the status line describe the current context",
        Fallback("uses a total only if it matches the percentage"),
    ),
    probe(
        "status.load line",
        "the status line shows the usage",
        Fallback("shows `?`; warnings, checkpoints and `plimsoll status` use the transcript"),
    ),
    probe(
        "init.modern template",
        "`init` registers `PostToolBatch`",
        Fallback(
            "registers `PostToolUse`, even in versions that have `PostToolBatch`, and says when to run `init` again",
        ),
    ),
    probe(
        "init.memory",
        "`init --memory`, `run --memory`",
        Fallback("refuses, and names the required version"),
    ),
    probe(
        "doctor.nothing to say of the client",
        "`doctor` accepts the version",
        Fallback("warns (`client.classic`) and says what to do"),
    ),
    probe("session.L1 told once", "the model gets the L1 message once", Required),
    probe("session.not told to a subagent", "subagents do not get the L1 message", Required),
    probe("turns.of the session", "the turn log has every response and is intact", Required),
    probe(
        "turns.of a subagent",
        "the turn log has a subagent's responses",
        Fallback("records only the subagent's call and report"),
    ),
    probe("mcp.tools in the first request", "the MCP server's tools are in the first request", Required),
    probe("mcp.call answered", "the MCP server answers calls", Required),
    probe(
        "memory.told",
        "a session starts with the working memory",
        Fallback("`init`, `run` and `doctor` name the required version"),
    ),
    probe("run.begins", "`run` starts", Required),
    probe("run.L2 checkpoint", "at L2, `run` writes a checkpoint and tells the model", Required),
    probe("run.resumes at the item", "the next session gets the item, progress, files and lines", Required),
    probe("run.L3 ends the session", "at L3, `run` ends the session", Required),
    probe("run.completed", "`run` completes (exit 0)", Required),
    probe("run.cost known", "`run` knows its cost", Required),
    probe("run.a wrong key ends it", "a wrong key ends `run` (exit 5)", Required),
    probe(
        "run.an overloaded API pauses it",
        "an overloaded API pauses `run` (exit 6 with `--no-wait`)",
        Required,
    ),
    probe(
        "plugin.is taken",
        "`--plugin-dir`",
        Fallback("Claude Code reports the unknown option and does not start"),
    ),
    probe(
        "plugin.tools",
        "the plugin's MCP tools",
        Fallback("use `plimsoll init` (2.0.65 and 2.0.77 reject the plugin's manifest)"),
    ),
    probe(
        "plugin.memory told",
        "the plugin's hooks",
        Fallback("they do nothing, and `doctor` reports `plugin.old_client`: use `plimsoll init`"),
    ),
    probe("plugin.L1 told", "the L1 message with the plugin", Fallback("as for the plugin's hooks")),
];

/// The findings for one version: `yes`, `no` or another word for each probe.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings(BTreeMap<&'static str, String>);

impl Findings {
    pub(crate) fn record_bool(&mut self, key: &str, value: bool) {
        self.record_word(key, if value { "yes" } else { "no" });
    }

    pub(crate) fn record_word(&mut self, key: &str, word: &str) {
        let probe = PROBES.iter().find(|probe| probe.key == key);
        let key = probe.unwrap_or_else(|| panic!("{key} is not among the probes")).key;
        assert!(self.0.insert(key, word.to_owned()).is_none(), "{key} was looked at twice");
    }

    /// Returns the finding; for a probe that could not be tried, `–`.
    pub(crate) fn word(&self, key: &str) -> &str {
        self.0.get(key).map_or("–", String::as_str)
    }

    pub(crate) fn is_yes(&self, key: &str) -> bool {
        self.word(key) == "yes"
    }

    /// Renders a line for each probe.
    pub(crate) fn render_lines(&self) -> String {
        PROBES.iter().map(|probe| format!("{}: {}\n", probe.key, self.word(probe.key))).collect()
    }

    /// Parses lines of the form `key: word`.
    pub(crate) fn parse_lines(text: &str) -> Findings {
        let mut findings = Findings::default();
        for line in text.lines() {
            let (key, word) = line.rsplit_once(": ").expect(line);
            if word != "–" {
                findings.record_word(key, word);
            }
        }
        findings
    }
}
