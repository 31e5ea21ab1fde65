//! The segments of ours, by name, and what is said of each.

use strum::VariantArray;

/// A segment of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, VariantArray)]
pub enum SegmentKind {
    /// The model.
    Model,
    /// How hard it thinks.
    Effort,
    /// The working directory.
    Directory,
    /// The repository there.
    Git,
    /// The load line: how full the window is.
    Load,
    /// The project's run.
    Run,
    /// The working memory.
    Memory,
    /// What each turn added.
    ItemCost,
    /// The prompt cache.
    Cache,
    /// What the session has cost.
    Cost,
    /// What it costs in an hour.
    Burn,
    /// The five-hour limit.
    FiveHour,
    /// The weekly limit.
    Weekly,
    /// The limit of what may be spent.
    Spend,
    /// Lines changed.
    Lines,
    /// The client's version.
    Version,
    /// A hook of ours that failed.
    Health,
}

impl SegmentKind {
    /// All of them, as the default line and then the rest have them.
    pub const ALL: &[SegmentKind] = SegmentKind::VARIANTS;

    /// The segment of a name.
    pub fn named(name: &str) -> Option<SegmentKind> {
        SegmentKind::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// The names of all, for people.
    pub fn names() -> String {
        SegmentKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
    }

    /// Its name in the settings.
    pub fn name(self) -> &'static str {
        self.about().name
    }

    /// Its fields, with what they are.
    pub fn fields(self) -> &'static [(&'static str, &'static str)] {
        self.about().fields
    }

    /// How it is written unless the user says otherwise.
    pub fn writing(self) -> &'static str {
        self.about().format
    }

    /// What it shows.
    pub fn words(self) -> &'static str {
        self.about().words
    }

    /// Where that comes from.
    pub fn source(self) -> &'static str {
        self.about().source
    }

    fn about(self) -> &'static About {
        match self {
            SegmentKind::Model => &MODEL,
            SegmentKind::Effort => &EFFORT,
            SegmentKind::Directory => &DIRECTORY,
            SegmentKind::Git => &GIT,
            SegmentKind::Load => &LOAD,
            SegmentKind::Run => &RUN,
            SegmentKind::Memory => &MEMORY,
            SegmentKind::ItemCost => &ITEM_COST,
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

/// What is said of one segment.
struct About {
    /// Its name in the settings.
    name: &'static str,
    /// How it is written unless the user says otherwise.
    format: &'static str,
    /// Its fields, with what they are.
    fields: &'static [(&'static str, &'static str)],
    /// What it shows.
    words: &'static str,
    /// Where that comes from.
    source: &'static str,
}

static MODEL: About = About {
    name: "model",
    format: "{name}",
    fields: &[("name", "its display name: Opus 5.5"), ("id", "its id, with the [1m] suffix")],
    words: "the model",
    source: "the client: model",
};

static EFFORT: About = About {
    name: "effort",
    format: "{level}",
    fields: &[("level", "low, medium, high …; some models have none")],
    words: "how hard the model thinks",
    source: "the client: effort.level",
};

static DIRECTORY: About = About {
    name: "directory",
    format: "{name}",
    fields: &[("name", "its last part"), ("path", "the whole path, with ~ for the home directory")],
    words: "the working directory",
    source: "the client: workspace.current_dir, else cwd",
};

static GIT: About = About {
    name: "git",
    format: "⎇ {branch}[ {worktree}][ {action}][ ↑{ahead}][ ↓{behind}][ ={conflicts}][ +{staged}][ !{modified}][ ?{untracked}][ {stale}]",
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
    words: "the repository: branch, operation in progress, and counts of commits and files",
    source: "the files in .git; counts from one `git status`, kept for 5 seconds",
};

static LOAD: About = About {
    name: "load",
    format: "{bar} {percent}[ {used}/{window}][ · {left} left][ · {turns} turns]",
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
    words: "the usage of the context window",
    source: "the client: context_window; `plimsoll status --markdown` shows the sources of window and auto-compact threshold",
};

static RUN: About = About {
    name: "run",
    format: "ralph {iteration}/{max}[ · {done}/{items} items][ · {item}][ · {checkpoint}][ · paused {until}]",
    fields: &[
        ("iteration", "the current iteration"),
        ("max", "how many iterations are allowed"),
        ("done", "ticked items"),
        ("items", "all items"),
        ("item", "the current item"),
        ("checkpoint", "`checkpoint 87%`, until a session has resumed from it"),
        ("until", "the end of a pause, or `?`"),
    ],
    words: "the project's run, while it is open",
    source: ".claude/ralph-state.json",
};

static MEMORY: About = About {
    name: "memory",
    format: "memory {depth}[ {frame}][ · stale {stale}][ · heap {heap}% {pressure}]",
    fields: &[
        ("depth", "the depth of the current frame; 0 is the root"),
        ("frame", "its name"),
        ("stale", "registers that every step should write and the last three did not"),
        ("heap", "the heap in percent of its limit, under pressure"),
        ("pressure", "the pressure: medium, high …"),
    ],
    words: "the working memory, if this session uses it",
    source: "the working memory's log",
};

static ITEM_COST: About = About {
    name: "growth",
    format: "{spark}[ +{last}]",
    fields: &[
        ("spark", "tokens that each of the last turns added"),
        ("last", "tokens that the last turn added"),
        ("median", "the median of the last turns"),
    ],
    words: "how fast the window fills",
    source: "the client: context_window after each turn",
};

static CACHE: About = About {
    name: "cache",
    format: "cache {state}[ {hit}][ until {until}]",
    fields: &[
        ("state", "warm or cold"),
        ("hit", "the share of tokens that were read from it"),
        ("until", "when it expires"),
    ],
    words: "the prompt cache",
    source: "the client: prompt_cache",
};

static COST: About = About {
    name: "cost",
    format: "{usd}",
    fields: &[("usd", "US dollars, as reported by Claude Code")],
    words: "what the session has cost",
    source: "the client: cost.total_cost_usd",
};

static BURN: About = About {
    name: "burn",
    format: "{rate}/h",
    fields: &[("rate", "US dollars per hour of this session, after its first minute")],
    words: "the session's cost per hour",
    source: "the client: cost.total_cost_usd by cost.total_duration_ms",
};

static FIVE_HOUR: About = About {
    name: "five_hour",
    format: "5h {percent}[ ↻{reset}]",
    fields: &[("percent", "used"), ("reset", "the time at which it resets")],
    words: "the five-hour limit of a subscription",
    source: "the client: rate_limits.five_hour",
};

static WEEKLY: About = About {
    name: "weekly",
    format: "7d {percent}[ ↻{reset}]",
    fields: &[("percent", "used"), ("reset", "the day and time at which it resets")],
    words: "the weekly limit of a subscription",
    source: "the client: rate_limits.seven_day",
};

static SPEND: About = About {
    name: "spend",
    format: "spend {percent}[ ↻{reset}]",
    fields: &[("percent", "used"), ("reset", "the day and time at which it resets")],
    words: "the spending limit of a gateway",
    source: "the client: rate_limits.spend_limit",
};

static LINES: About = About {
    name: "lines",
    format: "+{added} −{removed}",
    fields: &[("added", "lines that the session added"), ("removed", "lines that it removed")],
    words: "lines changed in this session",
    source: "the client: cost.total_lines_added, cost.total_lines_removed",
};

static VERSION: About = About {
    name: "version",
    format: "v{client}",
    fields: &[("client", "the version of Claude Code")],
    words: "the client's version",
    source: "the client: version",
};

static HEALTH: About = About {
    name: "health",
    format: "⚠ {what}",
    fields: &[("what", "which hook failed, and when; or what is missing")],
    words: "a Plimsoll hook that failed in the last hour, settings that are ignored, or a session without a transcript",
    source: "the hooks' own record of failures; the settings; the transcript's path",
};

#[cfg(test)]
mod tests {
    use super::super::format::{Format, fields};
    use super::*;

    #[test]
    fn every_segment_is_written_with_its_own_fields_and_known_by_its_name() {
        for kind in SegmentKind::ALL {
            Format::try_from(kind.writing().to_owned()).unwrap();
            let known: Vec<&str> = kind.fields().iter().map(|(name, _)| *name).collect();
            assert!(fields(kind.writing()).iter().all(|field| known.contains(field)), "{kind:?}");
            assert_eq!(SegmentKind::named(kind.name()), Some(*kind));
        }
    }
}
