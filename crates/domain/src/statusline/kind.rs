//! The built-in segments of the status line, with their names, fields and descriptions.

use strum::VariantArray;

/// A built-in segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, VariantArray)]
pub enum SegmentKind {
    Model,
    /// The effort level of the model.
    Effort,
    Directory,
    /// The git repository of the working directory.
    Git,
    /// The usage of the context window.
    ContextUsage,
    Run,
    Memory,
    /// The tokens that each turn added to the context.
    ContextGrowth,
    Cache,
    /// The cost of the session.
    Cost,
    /// The cost of the session per hour.
    Burn,
    /// The five-hour limit of a subscription.
    FiveHour,
    /// The weekly limit of a subscription.
    Weekly,
    /// The spending limit of a gateway.
    Spend,
    /// Lines changed in the session.
    Lines,
    Version,
    /// A Plimsoll hook that failed, or ignored settings.
    Health,
}

impl SegmentKind {
    /// All segments, in the order of their declaration.
    pub const ALL: &[SegmentKind] = SegmentKind::VARIANTS;

    /// Returns the segment with this name in the settings.
    pub fn from_name(name: &str) -> Option<SegmentKind> {
        SegmentKind::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Returns the names of all segments, separated by commas.
    pub fn comma_separated_names() -> String {
        SegmentKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
    }

    /// Returns its name in the settings.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Returns the names of its fields, each with a description.
    pub fn fields(self) -> &'static [(&'static str, &'static str)] {
        self.info().fields
    }

    /// Returns the format that is used unless the user sets another one.
    pub fn default_format(self) -> &'static str {
        self.info().default_format
    }

    /// Returns a short description of what it shows.
    pub fn description(self) -> &'static str {
        self.info().description
    }

    /// Returns where its values come from.
    pub fn data_source(self) -> &'static str {
        self.info().data_source
    }

    fn info(self) -> &'static SegmentInfo {
        match self {
            SegmentKind::Model => &MODEL,
            SegmentKind::Effort => &EFFORT,
            SegmentKind::Directory => &DIRECTORY,
            SegmentKind::Git => &GIT,
            SegmentKind::ContextUsage => &CONTEXT_USAGE,
            SegmentKind::Run => &RUN,
            SegmentKind::Memory => &MEMORY,
            SegmentKind::ContextGrowth => &CONTEXT_GROWTH,
            SegmentKind::Cache => &CACHE,
            SegmentKind::Cost => &COST,
            SegmentKind::Burn => &BURN,
            SegmentKind::FiveHour => &FIVE_HOUR,
            SegmentKind::Weekly => &WEEKLY,
            SegmentKind::Spend => &SPEND,
            SegmentKind::Lines => &LINES,
            SegmentKind::Version => &VERSION,
            SegmentKind::Health => &HEALTH,
        }
    }
}

/// The name, format and descriptions of one segment.
struct SegmentInfo {
    /// Its name in the settings.
    name: &'static str,
    /// The format that is used unless the user sets another one.
    default_format: &'static str,
    /// The names of its fields, each with a description.
    fields: &'static [(&'static str, &'static str)],
    /// A short description of what it shows.
    description: &'static str,
    /// Where its values come from.
    data_source: &'static str,
}

static MODEL: SegmentInfo = SegmentInfo {
    name: "model",
    default_format: "{name}",
    fields: &[("name", "such as Opus 5.5"), ("id", "with the [1m] suffix")],
    description: "the model",
    data_source: "Claude Code: model",
};

static EFFORT: SegmentInfo = SegmentInfo {
    name: "effort",
    default_format: "{level}",
    fields: &[("level", "low, medium, high …")],
    description: "how hard the model thinks",
    data_source: "Claude Code: effort.level",
};

static DIRECTORY: SegmentInfo = SegmentInfo {
    name: "directory",
    default_format: "{name}",
    fields: &[("name", "the last part"), ("path", "the whole path")],
    description: "the working directory",
    data_source: "Claude Code: workspace.current_dir, else cwd",
};

static GIT: SegmentInfo = SegmentInfo {
    name: "git",
    default_format: "⎇ {branch}[ {worktree}][ {action}][ ↑{ahead}][ ↓{behind}][ ={conflicts}][ +{staged}][ !{modified}][ ?{untracked}][ {stale}]",
    fields: &[
        ("branch", "the branch, or the first digits of the commit if HEAD is detached"),
        ("detached", "the word \"detached\" if HEAD is on no branch"),
        ("worktree", "`worktree NAME` in a linked worktree"),
        ("action", "merge, rebase 2/5, cherry-pick, revert, bisect"),
        ("ahead", "commits that upstream lacks"),
        ("behind", "commits that only upstream has"),
        ("conflicts", "files in conflict"),
        ("staged", "files changed in the index"),
        ("modified", "files changed outside the index"),
        ("untracked", "new files and folders"),
        ("stale", "`~` if git took too long and the counts are old, `…` if there are none yet"),
    ],
    description: "the repository: branch, operation in progress, and counts of commits and files",
    data_source: "the files in .git; counts from one `git status`, kept for 5 seconds",
};

static CONTEXT_USAGE: SegmentInfo = SegmentInfo {
    name: "load",
    default_format: "{bar} {percent}[ {used}/{window}][ · {left} left][ · {turns} turns]",
    fields: &[
        ("bar", "the load line"),
        ("percent", "used %, as Claude Code shows it"),
        ("used", "tokens of the last request"),
        ("window", "the window in tokens"),
        ("level", "L0 to L3"),
        ("left", "tokens to the auto-compact threshold"),
        ("turns", "estimated turns to that threshold: `~13`"),
        ("turns_l1", "turns to L1"),
        ("turns_l2", "turns to L2"),
        ("minutes", "minutes to the auto-compact threshold"),
        ("minutes_l1", "minutes to L1"),
        ("minutes_l2", "minutes to L2"),
    ],
    description: "the usage of the context window",
    data_source: "Claude Code: context_window; `plimsoll status --markdown` shows the sources of window and auto-compact threshold",
};

static RUN: SegmentInfo = SegmentInfo {
    name: "run",
    default_format: "ralph {iteration}/{max}[ · {done}/{items} items][ · {item}][ · {checkpoint}][ · paused {until}]",
    fields: &[
        ("iteration", "the current iteration"),
        ("max", "how many iterations are allowed"),
        ("done", "ticked items"),
        ("items", "all items"),
        ("item", "the current item"),
        ("checkpoint", "`checkpoint 87%`, until a session resumes"),
        ("until", "the end of a pause, or `?`"),
    ],
    description: "the project's run, while it is open",
    data_source: ".claude/ralph-state.json",
};

static MEMORY: SegmentInfo = SegmentInfo {
    name: "memory",
    default_format: "memory {depth}[ {frame}][ · stale {stale}][ · heap {heap}% {pressure}]",
    fields: &[
        ("depth", "depth of the current frame; 0 is the root"),
        ("frame", "its name"),
        ("stale", "registers that the last three steps did not write, but should have"),
        ("heap", "how full the heap is, in percent; empty below 70%"),
        ("pressure", "medium, high …"),
    ],
    description: "the working memory, if this session uses it",
    data_source: "the working memory's log",
};

static CONTEXT_GROWTH: SegmentInfo = SegmentInfo {
    name: "growth",
    default_format: "{spark}[ +{last}]",
    fields: &[
        ("spark", "tokens added by each of the last turns"),
        ("last", "tokens added by the last turn"),
        ("median", "their median"),
    ],
    description: "how fast the window fills",
    data_source: "Claude Code: context_window after each turn",
};

static CACHE: SegmentInfo = SegmentInfo {
    name: "cache",
    default_format: "cache {state}[ {hit}][ until {until}]",
    fields: &[
        ("state", "warm or cold"),
        ("hit", "share of tokens read from it"),
        ("until", "when it expires"),
    ],
    description: "the prompt cache",
    data_source: "Claude Code: prompt_cache",
};

static COST: SegmentInfo = SegmentInfo {
    name: "cost",
    default_format: "{usd}",
    fields: &[("usd", "US dollars, as reported by Claude Code")],
    description: "what the session has cost",
    data_source: "Claude Code: cost.total_cost_usd",
};

static BURN: SegmentInfo = SegmentInfo {
    name: "burn",
    default_format: "{rate}/h",
    fields: &[("rate", "US dollars, after the first minute")],
    description: "the session's cost per hour",
    data_source: "Claude Code: cost.total_cost_usd by cost.total_duration_ms",
};

static FIVE_HOUR: SegmentInfo = SegmentInfo {
    name: "five_hour",
    default_format: "5h {percent}[ ↻{reset}]",
    fields: &[("percent", "used"), ("reset", "time of the reset")],
    description: "the five-hour limit of a subscription",
    data_source: "Claude Code: rate_limits.five_hour",
};

static WEEKLY: SegmentInfo = SegmentInfo {
    name: "weekly",
    default_format: "7d {percent}[ ↻{reset}]",
    fields: &[("percent", "used"), ("reset", "day and time of the reset")],
    description: "the weekly limit of a subscription",
    data_source: "Claude Code: rate_limits.seven_day",
};

static SPEND: SegmentInfo = SegmentInfo {
    name: "spend",
    default_format: "spend {percent}[ ↻{reset}]",
    fields: &[("percent", "used"), ("reset", "day and time of the reset")],
    description: "the spending limit of a gateway (a proxy for the API)",
    data_source: "Claude Code: rate_limits.spend_limit",
};

static LINES: SegmentInfo = SegmentInfo {
    name: "lines",
    default_format: "+{added} −{removed}",
    fields: &[("added", "lines added"), ("removed", "lines removed")],
    description: "lines changed in this session",
    data_source: "Claude Code: cost.total_lines_added, cost.total_lines_removed",
};

static VERSION: SegmentInfo = SegmentInfo {
    name: "version",
    default_format: "v{client}",
    fields: &[("client", "such as 2.1.332")],
    description: "the version of Claude Code",
    data_source: "Claude Code: version",
};

static HEALTH: SegmentInfo = SegmentInfo {
    name: "health",
    default_format: "⚠ {what}",
    fields: &[("what", "which hook failed and when, or what is missing")],
    description: "a Plimsoll hook that failed in the last hour, settings that are ignored, or a session without a transcript",
    data_source: "the hooks' own record of failures; the settings; the transcript's path",
};

#[cfg(test)]
mod tests {
    use super::super::format::{SegmentFormat, field_names};
    use super::*;

    #[test]
    fn every_default_format_is_valid_and_uses_only_fields_of_its_segment() {
        for kind in SegmentKind::ALL {
            SegmentFormat::try_from(kind.default_format().to_owned()).unwrap();
            let known_fields: Vec<&str> = kind.fields().iter().map(|(name, _)| *name).collect();
            assert!(
                field_names(kind.default_format()).iter().all(|field| known_fields.contains(field)),
                "{kind:?}"
            );
            assert_eq!(SegmentKind::from_name(kind.name()), Some(*kind));
        }
    }
}
