//! The features that are probed in each version, and what Plimsoll does without them. The texts are those of `docs/clients.md`.

use std::collections::BTreeMap;

/// One feature of the client.
pub(crate) struct Probe {
    /// Its key in the files of expectations.
    pub(crate) key: &'static str,
    /// Its description, as a row of the page.
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

const UPDATE: &str = "`plimsoll init`, `run` and `doctor` name the required version";

/// All probes, in the order of the page.
pub(crate) const PROBES: &[Probe] = &[
    probe("event.SessionStart", "hooks receive `SessionStart`", Required),
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
        Fallback("the monitor uses `PostToolUse` and measures after each tool; no working memory"),
    ),
    probe(
        "event.PostToolUseFailure",
        "`PostToolUseFailure`",
        Fallback("failed calls are read from the transcript, as in all versions"),
    ),
    probe("event.SubagentStart", "`SubagentStart`", Fallback("no frames, and no working memory")),
    probe(
        "event.PostCompact",
        "`PostCompact`",
        Fallback("`SessionStart` after the compaction tells the model what to keep"),
    ),
    probe(
        "entry.unknown event",
        "an unknown event invalidates only its own entry",
        Fallback(
            "the client silently drops the whole file: `init` writes only events that the client knows, `doctor` names the others",
        ),
    ),
    probe(
        "entry.args",
        "`args` of an entry, without a shell",
        Fallback("our entries for it have no `args`, and quote a path that needs it"),
    ),
    probe(
        "payload.tool_use_id",
        "a tool's event names its call",
        Fallback("the last answer is taken as the current one: the figure may be one request old"),
    ),
    probe(
        "payload.agent_id",
        "a subagent's event is marked as such",
        Fallback("nothing is announced while a subagent works; the next event of the session itself does it"),
    ),
    probe(
        "payload.last_assistant_message",
        "`Stop` contains the last message",
        Fallback("it is read from the result and the transcript"),
    ),
    probe(
        "payload.background_tasks",
        "`Stop` lists what is still running",
        Fallback("`run` waits for the client to exit after its result, as long as for background tasks"),
    ),
    probe(
        "transcript.requestedModel",
        "the transcript keeps the `[1m]` of the model",
        Fallback(
            "the window is the one last reported for that model in a result (`modelUsage`), else the one in our table; up to 2.1.101 the table has 200,000 tokens for every model",
        ),
    ),
    probe("result.total_cost_usd", "the result contains the cost", Required),
    probe("result.permission_denials", "the result names refused tools", Required),
    probe(
        "result.contextWindow",
        "the result contains the window",
        Fallback("it comes from our table of models, or `windows` in the settings"),
    ),
    probe(
        "result.terminal_reason",
        "the result contains the reason why it ended",
        Fallback("`is_error`, the status in the text, and the text itself decide"),
    ),
    probe(
        "status.context_window",
        "the status line receives `context_window`",
        Fallback("the load line shows `?`; the hooks measure from the transcript, as in all versions"),
    ),
    probe(
        "status.current_usage",
        "… and in it the usage of the last response",
        Fallback("as above: the totals of these versions say nothing about the window"),
    ),
    probe(
        "status.used_percentage",
        "… and the used percentage",
        Fallback("it is computed from that usage and the window, and rounded as newer clients do"),
    ),
    probe(
        "status.totals of the context",
        "… and its totals are those of the current context",
        Fallback(
            "they add up the session, without the cache: a total counts only if it yields the percentage",
        ),
    ),
    probe(
        "status.load line",
        "the load line shows the usage of the last response",
        Fallback(
            "it shows `?`; warnings, checkpoints and `plimsoll status` have the figure from the transcript",
        ),
    ),
    probe(
        "init.modern template",
        "`init` writes the template with `PostToolBatch`",
        Fallback("the classic template, and `init` says from which version on to run it again"),
    ),
    probe(
        "init.memory",
        "`init --memory` and `run --memory`",
        Fallback("refused, with the required version and the installed one"),
    ),
    probe(
        "doctor.nothing to say of the client",
        "`doctor` has no finding about the client",
        Fallback("it warns (`client.classic`, or `client.too_old` as a problem) and says what to do"),
    ),
    probe("session.L1 told once", "L1 reaches the model, once", Required),
    probe("session.not told to a subagent", "… and not a subagent instead", Required),
    probe("turns.of the session", "the turn log has every answer of the session, and is intact", Required),
    probe(
        "turns.of a subagent",
        "the turn log has a subagent's answers",
        Fallback("a subagent's answers are not in the log; its call and its report are"),
    ),
    probe("mcp.tools in the first request", "the MCP server's tools are in the first request", Required),
    probe("mcp.call answered", "a call to it is answered", Required),
    probe("memory.told", "the working memory is shown when a session begins", Fallback(UPDATE)),
    probe("run.begins", "`run` begins", Required),
    probe("run.L2 checkpoint", "at L2 it writes a checkpoint and tells the model", Required),
    probe("run.resumes at the item", "the next session is told item, progress, files and lines", Required),
    probe("run.L3 ends the session", "at L3 it ends the session", Required),
    probe("run.completed", "it completes, exit 0", Required),
    probe("run.cost known", "its cost is known", Required),
    probe("run.a wrong key ends it", "a wrong key ends the run (exit 5)", Required),
    probe(
        "run.an overloaded API pauses it",
        "an overloaded API pauses the run (exit 6 with `--no-wait`)",
        Required,
    ),
    probe(
        "plugin.is taken",
        "`--plugin-dir` is supported",
        Fallback("the client reports it and does not start"),
    ),
    probe(
        "plugin.tools",
        "the plugin's MCP tools are there",
        Fallback(
            "use `plimsoll init`; 2.0.65 and 2.0.77 reject the manifest of the plugin, which declares its network hosts",
        ),
    ),
    probe(
        "plugin.memory told",
        "the plugin's hooks run: the memory is shown",
        Fallback(
            "the client silently drops them all: the server's instructions tell the model, `doctor` tells you (`plugin.old_client`); use `plimsoll init`",
        ),
    ),
    probe("plugin.L1 told", "L1 reaches the model with the plugin", Fallback("as above")),
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
