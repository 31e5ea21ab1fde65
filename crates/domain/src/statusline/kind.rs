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
    fields: &[("name", "its display name: Opus 5.5"), ("id", "its id, with the [1m] suffix")],
    description: "the model",
    data_source: "the client: model",
};

static EFFORT: SegmentInfo = SegmentInfo {
    name: "effort",
    default_format: "{level}",
    fields: &[("level", "low, medium, high …; some models have none")],
    description: "how hard the model thinks",
    data_source: "the client: effort.level",
};

static DIRECTORY: SegmentInfo = SegmentInfo {
    name: "directory",
    default_format: "{name}",
    fields: &[("name", "its last part"), ("path", "the whole path, with ~ for the home directory")],
    description: "the working directory",
    data_source: "the client: workspace.current_dir, else cwd",
};

static GIT: SegmentInfo = SegmentInfo {
    name: "git",
    default_format: "⎇ {branch}[ {worktree}][ {action}][ ↑{ahead}][ ↓{behind}][ ={conflicts}][ +{staged}][ !{modified}][ ?{untracked}][ {stale}]",
    fields: &[
        ("branch", "its name, or the first letters of a detached HEAD"),
        ("detached", "the word `detached`, if HEAD is on no branch"),
        ("worktree", "the word `worktree` and its name, in a linked worktree"),
        ("action", "merge, rebase 2/5, cherry-pick, revert or bisect, while one is in progress"),
        ("ahead", "commits that upstream lacks"),
        ("behind", "commits of upstream that are missing here"),
        ("conflicts", "files in conflict"),
        ("staged", "files with changes in the index"),
        ("modified", "files with changes outside the index"),
        ("untracked", "new files and folders"),
        ("stale", "`~` if git did not answer in time and the counts are older, `…` if there are none yet"),
    ],
    description: "the repository: branch, operation in progress, and counts of commits and files",
    data_source: "the files in .git; counts from one `git status`, kept for 5 seconds",
};

static CONTEXT_USAGE: SegmentInfo = SegmentInfo {
    name: "load",
    default_format: "{bar} {percent}[ {used}/{window}][ · {left} left][ · {turns} turns]",
    fields: &[
        ("bar", "a bar of the usage, with L1, L2 and the auto-compact threshold marked"),
        ("percent", "used %, as the client shows it; ? while it is unknown"),
        ("used", "tokens of the last request"),
        ("window", "the window in tokens"),
        ("level", "L0 to L3"),
        ("left", "tokens to the auto-compact threshold"),
        ("turns", "turns to the auto-compact threshold, estimated from the last ones: `~13`"),
        ("turns_l1", "turns to L1"),
        ("turns_l2", "turns to L2"),
        ("minutes", "minutes to the auto-compact threshold"),
        ("minutes_l1", "minutes to L1"),
        ("minutes_l2", "minutes to L2"),
    ],
    description: "the usage of the context window",
    data_source: "the client: context_window; `plimsoll status --markdown` shows the sources of window and auto-compact threshold",
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
        ("checkpoint", "`checkpoint 87%`, until a session has resumed from it"),
        ("until", "the end of a pause, or `?`"),
    ],
    description: "the project's run, while it is open",
    data_source: ".claude/ralph-state.json",
};

static MEMORY: SegmentInfo = SegmentInfo {
    name: "memory",
    default_format: "memory {depth}[ {frame}][ · stale {stale}][ · heap {heap}% {pressure}]",
    fields: &[
        ("depth", "the depth of the current frame; 0 is the root"),
        ("frame", "its name"),
        ("stale", "registers that every step should write and the last three did not"),
        ("heap", "the heap in percent of its limit, under pressure"),
        ("pressure", "the pressure: medium, high …"),
    ],
    description: "the working memory, if this session uses it",
    data_source: "the working memory's log",
};

static CONTEXT_GROWTH: SegmentInfo = SegmentInfo {
    name: "growth",
    default_format: "{spark}[ +{last}]",
    fields: &[
        ("spark", "tokens that each of the last turns added"),
        ("last", "tokens that the last turn added"),
        ("median", "the median of the last turns"),
    ],
    description: "how fast the window fills",
    data_source: "the client: context_window after each turn",
};

static CACHE: SegmentInfo = SegmentInfo {
    name: "cache",
    default_format: "cache {state}[ {hit}][ until {until}]",
    fields: &[
        ("state", "warm or cold"),
        ("hit", "the share of tokens that were read from it"),
        ("until", "when it expires"),
    ],
    description: "the prompt cache",
    data_source: "the client: prompt_cache",
};

static COST: SegmentInfo = SegmentInfo {
    name: "cost",
    default_format: "{usd}",
    fields: &[("usd", "US dollars, as reported by Claude Code")],
    description: "what the session has cost",
    data_source: "the client: cost.total_cost_usd",
};

static BURN: SegmentInfo = SegmentInfo {
    name: "burn",
    default_format: "{rate}/h",
    fields: &[("rate", "US dollars per hour of this session, after its first minute")],
    description: "the session's cost per hour",
    data_source: "the client: cost.total_cost_usd by cost.total_duration_ms",
};

static FIVE_HOUR: SegmentInfo = SegmentInfo {
    name: "five_hour",
    default_format: "5h {percent}[ ↻{reset}]",
    fields: &[("percent", "used"), ("reset", "the time at which it resets")],
    description: "the five-hour limit of a subscription",
    data_source: "the client: rate_limits.five_hour",
};

static WEEKLY: SegmentInfo = SegmentInfo {
    name: "weekly",
    default_format: "7d {percent}[ ↻{reset}]",
    fields: &[("percent", "used"), ("reset", "the day and time at which it resets")],
    description: "the weekly limit of a subscription",
    data_source: "the client: rate_limits.seven_day",
};

static SPEND: SegmentInfo = SegmentInfo {
    name: "spend",
    default_format: "spend {percent}[ ↻{reset}]",
    fields: &[("percent", "used"), ("reset", "the day and time at which it resets")],
    description: "the spending limit of a gateway",
    data_source: "the client: rate_limits.spend_limit",
};

static LINES: SegmentInfo = SegmentInfo {
    name: "lines",
    default_format: "+{added} −{removed}",
    fields: &[("added", "lines that the session added"), ("removed", "lines that it removed")],
    description: "lines changed in this session",
    data_source: "the client: cost.total_lines_added, cost.total_lines_removed",
};

static VERSION: SegmentInfo = SegmentInfo {
    name: "version",
    default_format: "v{client}",
    fields: &[("client", "the version of Claude Code")],
    description: "the client's version",
    data_source: "the client: version",
};

static HEALTH: SegmentInfo = SegmentInfo {
    name: "health",
    default_format: "⚠ {what}",
    fields: &[("what", "which hook failed, and when; or what is missing")],
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
