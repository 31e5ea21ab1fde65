//! What is looked at in each version, and what a lack means. The words are those of `docs/clients.md`.

use std::collections::BTreeMap;

/// One thing to look at.
pub(crate) struct Probe {
    /// Its name in the files of expectations.
    pub(crate) key: &'static str,
    /// What it asks, as a row of the page.
    pub(crate) row: &'static str,
    /// What follows where it is not so.
    pub(crate) lack: Lack,
}

/// What follows where something is not so.
pub(crate) enum Lack {
    /// It must be so with every client that we run with.
    Never,
    /// It may be so, and this is what we do then.
    Then(&'static str),
}

use Lack::{Never, Then};

const fn probe(key: &'static str, row: &'static str, lack: Lack) -> Probe {
    Probe { key, row, lack }
}

const UPDATE: &str = "`plimsoll init`, `run` and `doctor` name the required version";

/// Everything, in the order of the page.
pub(crate) const PROBES: &[Probe] = &[
    probe("event.SessionStart", "hooks receive `SessionStart`", Never),
    probe("event.SessionStart after a compaction", "`SessionStart` again after a compaction", Never),
    probe("event.UserPromptSubmit", "`UserPromptSubmit`", Never),
    probe("event.PreToolUse", "`PreToolUse`", Never),
    probe("event.PostToolUse", "`PostToolUse`", Never),
    probe("event.SubagentStop", "`SubagentStop`", Never),
    probe("event.Stop", "`Stop`", Never),
    probe("event.PreCompact", "`PreCompact`", Never),
    probe("event.SessionEnd", "`SessionEnd`", Never),
    probe(
        "event.PostToolBatch",
        "`PostToolBatch`",
        Then("the monitor uses `PostToolUse` and measures after each tool; no working memory"),
    ),
    probe(
        "event.PostToolUseFailure",
        "`PostToolUseFailure`",
        Then("failed calls are read from the transcript, as in all versions"),
    ),
    probe("event.SubagentStart", "`SubagentStart`", Then("no frames, and no working memory")),
    probe(
        "event.PostCompact",
        "`PostCompact`",
        Then("`SessionStart` after the compaction tells the model what to keep"),
    ),
    probe(
        "entry.unknown event",
        "an unknown event invalidates only its own entry",
        Then(
            "the client silently drops the whole file: `init` writes only events that the client knows, `doctor` names the others",
        ),
    ),
    probe(
        "entry.args",
        "`args` of an entry, without a shell",
        Then("our entries for it have no `args`, and quote a path that needs it"),
    ),
    probe(
        "payload.tool_use_id",
        "a tool's event names its call",
        Then("the last answer is taken as the current one: the figure may be one request old"),
    ),
    probe(
        "payload.agent_id",
        "a subagent's event is marked as such",
        Then("nothing is announced while a subagent works; the next event of the session itself does it"),
    ),
    probe(
        "payload.last_assistant_message",
        "`Stop` contains the last message",
        Then("it is read from the result and the transcript"),
    ),
    probe(
        "payload.background_tasks",
        "`Stop` lists what is still running",
        Then("`run` waits for the client to exit after its result, as long as for background tasks"),
    ),
    probe(
        "transcript.requestedModel",
        "the transcript keeps the `[1m]` of the model",
        Then(
            "the window is the one last reported for that model in a result (`modelUsage`), else the one in our table; up to 2.1.101 the table has 200,000 tokens for every model",
        ),
    ),
    probe("result.total_cost_usd", "the result contains the cost", Never),
    probe("result.permission_denials", "the result names refused tools", Never),
    probe(
        "result.contextWindow",
        "the result contains the window",
        Then("it comes from our table of models, or `windows` in the settings"),
    ),
    probe(
        "result.terminal_reason",
        "the result contains the reason why it ended",
        Then("`is_error`, the status in the text, and the text itself decide"),
    ),
    probe(
        "init.modern template",
        "`init` writes the template with `PostToolBatch`",
        Then("the classic template, and `init` says from which version on to run it again"),
    ),
    probe(
        "init.memory",
        "`init --memory` and `run --memory`",
        Then("refused, with the required version and the installed one"),
    ),
    probe(
        "doctor.nothing to say of the client",
        "`doctor` has no finding about the client",
        Then("it warns (`client.classic`, or `client.too_old` as a problem) and says what to do"),
    ),
    probe("session.L1 told once", "L1 reaches the model, once", Never),
    probe("session.not told to a subagent", "… and not a subagent instead", Never),
    probe("turns.of the session", "the turn log has every answer of the session, and is intact", Never),
    probe(
        "turns.of a subagent",
        "the turn log has a subagent's answers",
        Then("a subagent's answers are not in the log; its call and its report are"),
    ),
    probe("mcp.tools in the first request", "the MCP server's tools are in the first request", Never),
    probe("mcp.call answered", "a call to it is answered", Never),
    probe("memory.told", "the working memory is shown when a session begins", Then(UPDATE)),
    probe("run.begins", "`run` begins", Never),
    probe("run.L2 checkpoint", "at L2 it writes a checkpoint and tells the model", Never),
    probe("run.resumes at the item", "the next session is told item, progress, files and lines", Never),
    probe("run.L3 ends the session", "at L3 it ends the session", Never),
    probe("run.completed", "it completes, exit 0", Never),
    probe("run.cost known", "its cost is known", Never),
    probe("run.a wrong key ends it", "a wrong key ends the run (exit 5)", Never),
    probe(
        "run.an overloaded API pauses it",
        "an overloaded API pauses the run (exit 6 with `--no-wait`)",
        Never,
    ),
    probe("plugin.is taken", "`--plugin-dir` is supported", Then("the client reports it and does not start")),
    probe("plugin.tools", "the plugin's MCP tools are there", Then("use `plimsoll init`")),
    probe(
        "plugin.memory told",
        "the plugin's hooks run: the memory is shown",
        Then(
            "the client silently drops them all: the server's instructions tell the model, `doctor` tells you (`plugin.old_client`); use `plimsoll init`",
        ),
    ),
    probe("plugin.L1 told", "L1 reaches the model with the plugin", Then("as above")),
];

/// What was found in one version: `yes`, `no`, or a word more.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings(BTreeMap<&'static str, String>);

impl Findings {
    pub(crate) fn note(&mut self, key: &str, is_so: bool) {
        self.say(key, if is_so { "yes" } else { "no" });
    }

    pub(crate) fn say(&mut self, key: &str, word: &str) {
        let probe = PROBES.iter().find(|probe| probe.key == key);
        let key = probe.unwrap_or_else(|| panic!("{key} is not among the probes")).key;
        assert!(self.0.insert(key, word.to_owned()).is_none(), "{key} was looked at twice");
    }

    /// What was found; a probe that could not be tried is a `–`.
    pub(crate) fn word(&self, key: &str) -> &str {
        self.0.get(key).map_or("–", String::as_str)
    }

    pub(crate) fn is_yes(&self, key: &str) -> bool {
        self.word(key) == "yes"
    }

    /// A line for each probe.
    pub(crate) fn lines(&self) -> String {
        PROBES.iter().map(|probe| format!("{}: {}\n", probe.key, self.word(probe.key))).collect()
    }

    /// Reads such lines.
    pub(crate) fn of_lines(text: &str) -> Findings {
        let mut findings = Findings::default();
        for line in text.lines() {
            let (key, word) = line.rsplit_once(": ").expect(line);
            if word != "–" {
                findings.say(key, word);
            }
        }
        findings
    }
}
