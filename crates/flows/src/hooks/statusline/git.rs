//! The repository: what is in progress is read off its files; what has changed, one `git status` counts, which is asked
//! again when HEAD or the index have moved, or after a while.

use super::StatusLineInvocation;
use plimsoll_domain::record::{GitRecord, StatusRecord};
use plimsoll_domain::statusline::SegmentKind;
use plimsoll_launcher::git::Counted;
use plimsoll_policy::statusline::GitView;
use plimsoll_store::layout::git_folder_of;
use plimsoll_store::{clock, disk};
use std::path::Path;
use std::time::UNIX_EPOCH;

/// Counts are used for this long: edits move neither HEAD nor the index.
const KEPT_MS: i64 = 5_000;
/// A repository that did not answer in time is not asked again for this long.
const PEACE_MS: i64 = 60_000;
/// The fields for which git is asked.
const COUNTED: [&str; 6] = ["ahead", "behind", "conflicts", "staged", "modified", "untracked"];

/// HEAD where the branch is in a table that only git reads (`--ref-format=reftable`).
const UNTOLD: &str = "ref: refs/heads/.invalid";

/// The repository of the working directory; none outside one.
pub(super) fn look(
    call: &StatusLineInvocation<'_>,
    folder: &Path,
    record: &mut StatusRecord,
) -> Option<GitView> {
    let git = git_folder_of(folder)?;
    let head = read(&git.join("HEAD"))?;
    let mut view = standing(&git, &head);
    let look = &call.settings.statusline;
    let is_told = head != UNTOLD;
    if !is_told || look.asks_for(SegmentKind::Git, &COUNTED) {
        let state = format!("{head} {}", index_time(&git));
        let known = record.git.take().filter(|known| Path::new(&known.folder) == folder);
        let asked = ask(folder, state, known, look.timeout(SegmentKind::Git.name()));
        (view.counts, view.stale) = (asked.counts, asked.late);
        if !is_told {
            view.detached = asked.branch == "(detached)";
            view.branch = if asked.branch.is_empty() { "?".to_owned() } else { asked.branch.clone() };
        }
        record.git = Some(asked);
    }
    Some(view)
}

fn ask(folder: &Path, state: String, known: Option<GitRecord>, deadline: std::time::Duration) -> GitRecord {
    let now = clock::now().timestamp_millis();
    if let Some(known) = known.as_ref() {
        let age = now - known.asked_at;
        let is_kept = if known.late { age < PEACE_MS } else { age < KEPT_MS && known.state == state };
        if age >= 0 && is_kept {
            return known.clone();
        }
    }
    let known = known.unwrap_or_default();
    let (counts, branch, late) = match plimsoll_launcher::git::count(folder, deadline) {
        Counted::As(counts, branch) => (Some(counts), branch, false),
        Counted::Late => (known.counts, known.branch, true),
        Counted::Nothing => (None, String::new(), false),
    };
    // What comes from the files is not kept.
    let branch = if state.starts_with(UNTOLD) { branch } else { String::new() };
    GitRecord { folder: folder.to_string_lossy().into_owned(), state, counts, asked_at: now, late, branch }
}

/// Branch, worktree and what is in progress, off the files.
fn standing(git: &Path, head: &str) -> GitView {
    // Listed once: most of what is asked for is not there.
    let there = disk::present(git, &MARKS);
    let has = |name: &str| there.contains(&name);
    let rebase = ["rebase-merge", "rebase-apply"].into_iter().filter(|name| has(name));
    let rebase = rebase.map(|name| git.join(name)).find(|it| disk::is_folder(it));
    let onto = rebase.as_deref().and_then(|rebase| read(&rebase.join("head-name")));
    let reference = head.strip_prefix("ref: ").map(str::to_owned).or(onto);
    let branch = reference.as_deref().map(|name| name.strip_prefix("refs/heads/").unwrap_or(name).to_owned());
    GitView {
        detached: branch.is_none(),
        branch: branch.unwrap_or_else(|| head.chars().take(7).collect()),
        // Only a linked worktree's folder says where the common one is.
        worktree: has("commondir")
            .then(|| git.file_name().unwrap_or_default().to_string_lossy().into_owned()),
        action: rebase.map(|rebase| progress(&rebase)).or_else(|| other_action(has)),
        ..GitView::default()
    }
}

/// What lies in git's folder only while something is in progress, or in that of a linked worktree.
const MARKS: [&str; 7] = [
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "BISECT_LOG",
    "rebase-merge",
    "rebase-apply",
    "commondir",
];

/// `rebase 2/5`.
fn progress(rebase: &Path) -> String {
    let number = |name: &str| read(&rebase.join(name));
    let steps = number("msgnum").zip(number("end")).or_else(|| number("next").zip(number("last")));
    let name = if disk::exists(&rebase.join("applying")) { "am" } else { "rebase" };
    steps.map_or_else(|| name.to_owned(), |(step, last)| format!("{name} {step}/{last}"))
}

fn other_action(has: impl Fn(&str) -> bool) -> Option<String> {
    let marks = [
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("BISECT_LOG", "bisect"),
    ];
    marks.into_iter().find(|(file, _)| has(file)).map(|(_, action)| action.to_owned())
}

fn read(path: &Path) -> Option<String> {
    disk::read_text(path).ok().flatten().map(|text| text.trim().to_owned())
}

fn index_time(git: &Path) -> u128 {
    let modified = disk::modified(&git.join("index"));
    modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or(0, |time| time.as_nanos())
}
