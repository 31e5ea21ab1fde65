//! The work that a session did on its item: which item, which files it changed, and at which commit it is.

use crate::plimsoll_files;
use plimsoll_domain::digest::sha256_hex;
use plimsoll_domain::git_names::{CommitId, RepoPath};
use plimsoll_domain::handoff::GitFacts;
use plimsoll_domain::state::{
    BaseRelation, Checkpoint, CheckpointCause, FileInProgress, ItemStart, ItemWork,
};
use plimsoll_domain::{RunState, SessionRecord, Timestamp, TodoList};
use plimsoll_launcher::git::{self, ChangedFile, LineCounts, WorkBase};
use plimsoll_policy::attribution::{self, AttributionInput};
use plimsoll_policy::plan_ticks::may_add_tick_to_plan;
use plimsoll_protocol::tool::{ToolCall, ToolInput};
use plimsoll_protocol::transcript::{ContentBlock, TranscriptEntry};
use plimsoll_store::{Project, clock, disk};
use std::path::Path;
use std::time::{Duration, SystemTime};

const MAX_FILES: usize = 200;
const MAX_HEADINGS_PER_FILE: usize = 3;
/// The content of a larger file is not read.
const MAX_CONTENT_BYTES: u64 = 4 * 1024 * 1024;
/// The transcript has milliseconds, while file times are finer. The model takes longer than this between two
/// calls.
const TIMESTAMP_TOLERANCE: Duration = Duration::from_millis(50);

/// Input for determining the work of a session.
#[derive(Clone, Copy)]
pub(crate) struct WorkInput<'a> {
    pub(crate) project: &'a Project,
    pub(crate) record: &'a SessionRecord,
    pub(crate) run: Option<&'a RunState>,
    /// The current plan.
    pub(crate) plan: Option<&'a TodoList>,
    pub(crate) cause: CheckpointCause,
    /// The lines at the end of the transcript.
    pub(crate) lines: &'a [TranscriptEntry],
    /// Tool calls of the current message, which are not in the transcript yet.
    pub(crate) pending_calls: &'a [ToolCall],
}

/// Returns the files of a repository that has no commit yet, without our own files. Returns nothing for any
/// other folder.
pub(crate) fn files_of_repository_without_commits(project: &Project) -> Vec<String> {
    let repository_work = git::summarize_work(project.root(), WorkBase::Head, &[])
        .filter(|work| work.facts.head_commit.is_none());
    let files = repository_work.unwrap_or_default().files.into_iter().map(|file| file.path);
    files.filter(|path| !plimsoll_files::is_plimsoll_file(path)).take(MAX_FILES).collect()
}

/// The work that a session did on its item.
#[derive(Debug, Default)]
pub(crate) struct SessionWork {
    pub(crate) git_facts: Option<GitFacts>,
    pub(crate) current_item: Option<String>,
    pub(crate) changed_files: Vec<FileInProgress>,
    pub(crate) item_work: ItemWork,
    /// When the session last ticked an item. Commands and messages from before that belong to a finished
    /// item.
    pub(crate) last_tick_at: Option<SystemTime>,
}

/// Determines the session's work from the plan, git, the files and the transcript. The caller has already
/// started git.
pub(crate) fn determine_session_work(
    input: &WorkInput<'_>,
    git_query: Option<git::WorkQuery<'_>>,
) -> SessionWork {
    let repository = git_query.and_then(git::WorkQuery::wait_and_read_uncommitted_changes);
    let assigned_item = last_assigned_item(input);
    let ticked_items = items_ticked_in_session(input);
    let session_start = session_start_point(input);
    let (item_start, base_relation) =
        item_start_point_and_relation_to_head(input, &session_start, repository.as_ref());
    let last_tick = if ticked_items.is_empty() {
        None
    } else {
        Some(find_last_tick_in_commits_or_tool_calls(
            input,
            session_start.to_work_base(BaseRelation::Ancestor),
            &ticked_items,
            repository.as_ref(),
        ))
    };
    let tick_commit_with_later_work =
        last_tick.as_ref().and_then(|tick| tick_commit_if_it_contains_later_edits(input, tick));
    let parent_commit =
        tick_commit_with_later_work.and_then(|commit| git::parent_commit(input.project.root(), commit));
    let work_base = match &last_tick {
        None => item_start.to_work_base(base_relation),
        Some(LastTick { commit: Some(commit), .. }) => {
            WorkBase::Commit(parent_commit.as_ref().unwrap_or(commit))
        }
        Some(LastTick { commit: None, .. }) => WorkBase::Head,
    };
    let commits_by_others = commit_ids_between_sessions_of_item(input);
    let repository_work =
        repository.map(|repository| repository.into_work_summary(work_base, &commits_by_others));
    let (git_facts, changed_files, commits) = match repository_work {
        Some(work) => (Some(work.facts), work.files, work.commits),
        None => (None, files_modified_since_item_start(input), Vec::new()),
    };
    let last_tick_at = last_tick.as_ref().and_then(|tick| tick.ticked_at);
    let item_changes = filter_changes_for_current_item(input, changed_files, last_tick.as_ref());
    let next_item = attribution::assigned_or_next_item_and_whether_started(&AttributionInput {
        assigned_item: assigned_item.as_deref(),
        open_items: &open_items(input),
        set_aside_items: input.run.map_or(&[], |run| &run.plan_items.set_aside_items),
        parked_items: &parked_items(input),
        ticked_items: &ticked_items,
        has_changes_since_tick: !item_changes.is_empty(),
        must_stop_before_next: input.cause == CheckpointCause::Budget,
    });
    let mut session_work = SessionWork {
        git_facts,
        current_item: next_item.item,
        last_tick_at,
        item_work: ItemWork {
            session_item: assigned_item.unwrap_or_default(),
            ticked_items,
            is_begun: next_item.is_started,
            ..ItemWork::default()
        },
        ..SessionWork::default()
    };
    if next_item.is_started {
        session_work.item_work.base_commit =
            commit_id_of_work_base(work_base, session_work.git_facts.as_ref());
        session_work.item_work.base_relation =
            if last_tick.is_none() { base_relation } else { BaseRelation::Ancestor };
        session_work.item_work.commit_count = commits.len();
        session_work.item_work.commits = commits;
        session_work.item_work.commits_by_others = commits_by_others;
        add_start_time_and_changed_files(input, item_changes, &mut session_work);
    }
    session_work
}

/// Adds the time at which the work on the item began, and the changed files.
fn add_start_time_and_changed_files(
    input: &WorkInput<'_>,
    item_changes: Vec<TimedFileChange>,
    session_work: &mut SessionWork,
) {
    let tick_timestamp = session_work.last_tick_at.map(|time| clock::to_millis_timestamp(time.into()));
    session_work.item_work.began_at = tick_timestamp.or_else(|| item_start_time(input));
    add_changed_files_with_line_ranges(input, item_changes, session_work);
    if session_work.item_work.base_relation == BaseRelation::Missing {
        add_files_of_previous_checkpoint(input, session_work);
    }
}

/// Adds the files of the previous checkpoint that still exist. Needed when git can no longer compare with the
/// commit at which the item began.
fn add_files_of_previous_checkpoint(input: &WorkInput<'_>, session_work: &mut SessionWork) {
    let earlier_files = resumed_or_current_checkpoint_of_item(input)
        .map(|checkpoint| checkpoint.files_in_progress.as_slice())
        .unwrap_or_default();
    for file in earlier_files {
        let current_digest = content_digest(&input.project.root().join(&file.path));
        let is_listed = session_work.changed_files.iter().any(|changed_file| changed_file.path == file.path);
        if is_listed || current_digest.is_none() || session_work.changed_files.len() >= MAX_FILES {
            continue;
        }
        let is_unchanged = current_digest == file.digest;
        session_work.changed_files.push(FileInProgress {
            path: file.path.clone(),
            touched_lines: if is_unchanged { file.touched_lines.clone() } else { String::new() },
            description: "changed by an earlier session".to_owned(),
            digest: current_digest,
            ..FileInProgress::default()
        });
    }
}

/// Returns the changed files that belong to the current item.
fn filter_changes_for_current_item(
    input: &WorkInput<'_>,
    changed_files: Vec<ChangedFile>,
    last_tick: Option<&LastTick>,
) -> Vec<TimedFileChange> {
    let started_at = item_start_time(input).as_ref().and_then(clock::parse_timestamp).map(SystemTime::from);
    changed_files
        .into_iter()
        .filter(|file| !is_own_or_plan_file(input, &file.path))
        .map(|file| TimedFileChange::with_edit_time_and_missing_as_deleted(input.project, file))
        .filter(|file| input.run.is_none() || file.was_edited_since_start(started_at))
        .filter(|file| {
            last_tick.is_none_or(|tick| file.was_edited_after(tick.ticked_at) && !tick.is_last_change)
        })
        .collect()
}

/// Returns the plan's items that wait for an answer.
fn parked_items(input: &WorkInput<'_>) -> Vec<String> {
    let parked = input.plan.map(TodoList::parked_items_with_questions).unwrap_or_default();
    parked.into_iter().map(|(item, _)| item.to_owned()).collect()
}

/// Returns the open items of the plan; without a plan, those in the run's state. A session outside a run has
/// no items, because its user decides what to do.
fn open_items(input: &WorkInput<'_>) -> Vec<String> {
    let Some(run) = input.run else { return Vec::new() };
    input.plan.map_or_else(|| run.plan_items.todo_items.clone(), TodoList::open_items)
}

/// Returns the commit that the work is compared with; for `Head`, the current one.
fn commit_id_of_work_base(work_base: WorkBase<'_>, git_facts: Option<&GitFacts>) -> Option<String> {
    match work_base {
        WorkBase::Commit(commit) | WorkBase::RewrittenCommit(commit) => Some(commit.to_string()),
        WorkBase::Head => git_facts.and_then(|git| git.head_commit.clone()),
        WorkBase::BeforeFirstCommit => None,
    }
}

/// Returns the item that the session was last assigned, by a notice to continue or at its start.
fn last_assigned_item(input: &WorkInput<'_>) -> Option<String> {
    let continuation_item = input.record.continuation.as_ref().map(|notice| notice.item.clone());
    continuation_item.or_else(|| input.run?.iteration_record.item.clone())
}

fn items_ticked_in_session(input: &WorkInput<'_>) -> Vec<String> {
    let Some(run) = input.run else { return Vec::new() };
    let done_items =
        input.plan.map_or_else(|| run.plan_items.completed_items.clone(), TodoList::ticked_items);
    run.filter_ticked_in_session(&done_items)
}

/// Returns true for paths that never count as work: our own files, and the plan, whose changes show in the
/// items.
fn is_own_or_plan_file(input: &WorkInput<'_>, path: &str) -> bool {
    let plan_file = input.run.and_then(|run| run.options.todo_file.as_deref());
    plimsoll_files::is_plimsoll_file(path) || plan_file == Some(path)
}

/// The commit at which work begins; the owned form of [`WorkBase`].
#[derive(Debug, Clone, PartialEq, Eq)]
enum StartPoint {
    Commit(CommitId),
    NoCommitYet,
    Head,
}

impl StartPoint {
    fn to_work_base(&self, relation: BaseRelation) -> WorkBase<'_> {
        match self {
            StartPoint::Commit(commit) if relation == BaseRelation::Rewritten => {
                WorkBase::RewrittenCommit(commit)
            }
            StartPoint::Commit(commit) => WorkBase::Commit(commit),
            StartPoint::NoCommitYet => WorkBase::BeforeFirstCommit,
            StartPoint::Head => WorkBase::Head,
        }
    }
}

/// Returns the commit at which the session began. An agent may have deleted the session's record, so the run's record is
/// used as well.
fn session_start_point(input: &WorkInput<'_>) -> StartPoint {
    let head_before_session = || input.run?.iteration_record.fingerprint_before.as_ref()?.head.clone();
    let is_start_recorded = input.record.start.started_at.is_some()
        || input.run.is_some_and(|run| run.iteration_record.fingerprint_before.is_some());
    let start_head = input.record.start.head_at_start.clone().or_else(head_before_session);
    match start_head.map(|head| CommitId::parse(&head)) {
        Some(Ok(commit)) => StartPoint::Commit(commit),
        Some(Err(_)) => StartPoint::Head,
        None if is_start_recorded => StartPoint::NoCommitYet,
        None => StartPoint::Head,
    }
}

/// Returns the checkpoint of the session's item, if this session resumed it or wrote it.
fn resumed_or_current_checkpoint_of_item<'a>(input: &WorkInput<'a>) -> Option<&'a Checkpoint> {
    let run = input.run?;
    let checkpoint = &run.context_checkpoint;
    let assigned_item = last_assigned_item(input).unwrap_or_default();
    let is_same_item = assigned_item == checkpoint.current_todo_item && checkpoint.item_work.is_begun;
    let is_resumed_or_current =
        run.iteration_record.resumes_checkpoint || checkpoint.iteration == run.iteration;
    // A checkpoint that another tool wrote does not record when its item began, so it cannot be used as its start.
    let has_item_start = checkpoint.item_work.began_at.is_some();
    (is_same_item && is_resumed_or_current && has_item_start).then_some(checkpoint)
}

/// Returns the commits that others made between the sessions of this item. They are in the range of its commits
/// but are not its work.
fn commit_ids_between_sessions_of_item(input: &WorkInput<'_>) -> Vec<String> {
    let Some(checkpoint) = resumed_or_current_checkpoint_of_item(input) else { return Vec::new() };
    let recorded_commits = checkpoint.item_work.commits_by_others.clone();
    let is_from_this_iteration = input.run.is_some_and(|run| run.iteration == checkpoint.iteration);
    let parse_commit_id = |id: Option<&String>| CommitId::parse(id?).ok();
    let (head_at_checkpoint, head_at_start) = (
        parse_commit_id(checkpoint.head.as_ref()),
        parse_commit_id(input.record.start.head_at_start.as_ref()),
    );
    let (Some(head_at_checkpoint), Some(head_at_start)) = (head_at_checkpoint, head_at_start) else {
        return recorded_commits;
    };
    let root = input.project.root();
    let new_commits = if is_from_this_iteration || head_at_checkpoint == head_at_start {
        Vec::new()
    } else {
        git::commits_between_newest_first(root, &head_at_checkpoint, Some(&head_at_start))
    };
    new_commits.into_iter().map(|commit| commit.id.into()).chain(recorded_commits).collect()
}

/// Returns when the work on the item began.
fn item_start_time(input: &WorkInput<'_>) -> Option<Timestamp> {
    let earlier_start = resumed_or_current_checkpoint_of_item(input)
        .and_then(|checkpoint| checkpoint.item_work.began_at.clone());
    let earlier_start = earlier_start.or_else(|| item_start_recorded_at_planning(input)?.started_at.clone());
    earlier_start.or_else(|| input.record.start.started_at.clone())
}

/// Returns the commit at which the work on the item began, and how it relates to HEAD: the start of the item's
/// first session, otherwise the start of this session. If git no longer has the commit, the next later recorded
/// one is used.
fn item_start_point_and_relation_to_head(
    input: &WorkInput<'_>,
    session_start: &StartPoint,
    repository: Option<&git::RepositoryState<'_>>,
) -> (StartPoint, BaseRelation) {
    let relation_to_head = |start: &StartPoint| match start {
        StartPoint::Commit(commit)
            if repository.is_some_and(|state| state.is_base_at_head(WorkBase::Commit(commit))) =>
        {
            BaseRelation::Ancestor
        }
        StartPoint::Commit(commit) => {
            git::classify_base_ancestor_rewritten_or_missing(input.project.root(), commit)
        }
        StartPoint::NoCommitYet | StartPoint::Head => BaseRelation::Ancestor,
    };
    if repository.is_none() {
        return (session_start.clone(), BaseRelation::Ancestor);
    }
    // Once the item's start is missing, the base of any later checkpoint is not where the item began either.
    let mut is_missing = resumed_or_current_checkpoint_of_item(input)
        .is_some_and(|checkpoint| checkpoint.item_work.base_relation == BaseRelation::Missing);
    for candidate in item_start_point_from_checkpoint_or_planning(input).iter().chain([session_start]) {
        match relation_to_head(candidate) {
            BaseRelation::Missing => is_missing = true,
            relation if is_missing && relation == BaseRelation::Ancestor => {
                return (candidate.clone(), BaseRelation::Missing);
            }
            relation => return (candidate.clone(), relation),
        }
    }
    (StartPoint::Head, BaseRelation::Missing)
}

/// Returns the start of the session's item, as the run recorded it when it planned the session.
fn item_start_recorded_at_planning<'a>(input: &WorkInput<'a>) -> Option<&'a ItemStart> {
    let record = &input.run?.iteration_record;
    record.item_start.as_ref().filter(|_| last_assigned_item(input) == record.item)
}

/// Returns the commit at which the work on the item began, from its checkpoint, otherwise from the start that
/// the run recorded when it planned the session. Returns `None` if neither exists or the id is invalid.
fn item_start_point_from_checkpoint_or_planning(input: &WorkInput<'_>) -> Option<StartPoint> {
    let base_commit = match resumed_or_current_checkpoint_of_item(input) {
        Some(checkpoint) => checkpoint.item_work.base_commit.as_ref(),
        None => item_start_recorded_at_planning(input)?.base_commit.as_ref(),
    };
    base_commit.map_or(Some(StartPoint::NoCommitYet), |commit_id| {
        CommitId::parse(commit_id).ok().map(StartPoint::Commit)
    })
}

#[derive(Debug, Default)]
struct LastTick {
    /// The commit that contains the tick; `None` if it is not committed.
    commit: Option<CommitId>,
    ticked_at: Option<SystemTime>,
    /// True if no tool that may change files was called after the tick: later changes are not the session's
    /// work.
    is_last_change: bool,
    /// When the commit was made. For a commit that git has packed, the end of its second.
    committed_at: Option<SystemTime>,
}

/// Returns the commit that contains the tick if it also contains work done after the tick. Edits after the
/// commit do not count.
fn tick_commit_if_it_contains_later_edits<'a>(
    input: &WorkInput<'_>,
    last_tick: &'a LastTick,
) -> Option<&'a CommitId> {
    let root = input.project.root();
    let (commit, committed_at) = last_tick.commit.as_ref().zip(last_tick.committed_at)?;
    if last_tick.is_last_change || committed_at <= last_tick.ticked_at? + TIMESTAMP_TOLERANCE {
        return None;
    }
    let was_edited_after_tick = |path: &String| {
        let file = TimedFileChange::with_edit_time_and_missing_as_deleted(
            input.project,
            ChangedFile { path: path.clone(), ..ChangedFile::default() },
        );
        file.was_edited_after(last_tick.ticked_at)
            && file.edited_at.is_some_and(|edited_at| edited_at <= committed_at + TIMESTAMP_TOLERANCE)
    };
    let mut paths = git::paths_changed_in_commit(root, commit)
        .into_iter()
        .filter(|path| !is_own_or_plan_file(input, path));
    paths.any(|path| was_edited_after_tick(&path)).then_some(commit)
}

/// Finds where and when the last of these items was ticked. Uses the plan's git history, then the transcript,
/// then the plan's modification time.
fn find_last_tick_in_commits_or_tool_calls(
    input: &WorkInput<'_>,
    work_base: WorkBase<'_>,
    ticked_items: &[String],
    repository: Option<&git::RepositoryState<'_>>,
) -> LastTick {
    let Some(plan_file) = input.run.and_then(|run| run.options.todo_file.as_deref()) else {
        return LastTick::default();
    };
    let root = input.project.root();
    let ticked_items_in = |lines: &[String]| TodoList::parse(&lines.join("\n")).ticked_items();
    let has_no_new_commits = repository.is_none_or(|state| state.is_base_at_head(work_base));
    let path = RepoPath::parse(plan_file).ok().filter(|_| !has_no_new_commits);
    let plan_commits = path
        .map(|path| git::commits_of_file_with_changed_line_texts(root, work_base, &path))
        .unwrap_or_default();
    let newly_ticked_items = |commit: &git::FileCommit| -> Vec<String> {
        let removed_ticks = ticked_items_in(&commit.removed_lines);
        ticked_items_in(&commit.added_lines)
            .into_iter()
            .filter(|item| ticked_items.contains(item) && !removed_ticks.contains(item))
            .collect()
    };
    let committed_items: Vec<String> = plan_commits.iter().flat_map(newly_ticked_items).collect();
    let newest_tick_commit = plan_commits.iter().find(|commit| !newly_ticked_items(commit).is_empty());
    let transcript_tick = find_last_tick_in_tool_calls(input, plan_file);
    if ticked_items.iter().all(|item| committed_items.contains(item)) {
        let committed_at = newest_tick_commit.and_then(|commit| {
            let object_modified_at =
                git::loose_object_path(root, &commit.id).as_deref().and_then(disk::modified_at);
            object_modified_at.or_else(|| {
                clock::from_unix_seconds(commit.committed_at.unsigned_abs() + 1).map(SystemTime::from)
            })
        });
        let commit = newest_tick_commit.map(|commit| commit.id.clone());
        return LastTick {
            commit,
            committed_at,
            ticked_at: transcript_tick.ticked_at.or(committed_at),
            ..transcript_tick
        };
    }
    LastTick {
        ticked_at: transcript_tick.ticked_at.or_else(|| disk::modified_at(&root.join(plan_file))),
        ..transcript_tick
    }
}

/// Finds the last tick in the pending calls, otherwise in the transcript. Does not find a tick's commit.
fn find_last_tick_in_tool_calls(input: &WorkInput<'_>, plan_file: &str) -> LastTick {
    // The current call has just been completed.
    if input.pending_calls.iter().any(|call| may_add_tick_to_plan(&call.tool_input, plan_file)) {
        return LastTick {
            ticked_at: Some(clock::now().into()),
            is_last_change: true,
            ..LastTick::default()
        };
    }
    let pending_calls_may_change_files =
        input.pending_calls.iter().any(|call| may_change_files(call.tool_name.as_deref(), &call.tool_input));
    let mut is_last_change = !pending_calls_may_change_files;
    let mut last_tick: Option<(Option<String>, Option<SystemTime>)> = None;
    for line in input.lines.iter().filter(|line| !line.is_sidechain) {
        let line_time = || line.timestamp.as_deref().and_then(clock::parse_rfc3339).map(SystemTime::from);
        for block in line.message.blocks() {
            match block.kind.as_deref() {
                Some("tool_use") if may_add_tick_to_plan(&block.input, plan_file) => {
                    last_tick = Some((block.id.clone(), line_time()));
                    is_last_change = !pending_calls_may_change_files;
                }
                Some("tool_use") => is_last_change &= !may_change_files(block.name.as_deref(), &block.input),
                // The result comes after everything else that the same command line did.
                Some("tool_result") if last_tick.as_ref().is_some_and(|(id, _)| *id == block.tool_use_id) => {
                    last_tick = Some((block.tool_use_id.clone(), line_time()));
                }
                _ => {}
            }
        }
    }
    let ticked_at = last_tick.and_then(|(_, time)| time);
    LastTick { ticked_at, is_last_change: is_last_change && ticked_at.is_some(), ..LastTick::default() }
}

fn may_change_files(tool_name: Option<&str>, input: &ToolInput) -> bool {
    attribution::may_change_files_besides_commits(tool_name.unwrap_or_default(), input.command.as_deref())
}

/// Returns the files that any program has changed since the work on the item began, by their modification
/// times.
fn files_modified_since_item_start(input: &WorkInput<'_>) -> Vec<ChangedFile> {
    let started_at = item_start_time(input).as_ref().and_then(clock::parse_timestamp);
    let paths = started_at.map(|start_time| {
        disk::newest_files_modified_since_oldest_first(input.project.root(), start_time.into(), MAX_FILES)
    });
    let is_first_session = resumed_or_current_checkpoint_of_item(input).is_none();
    let change_text =
        if is_first_session { "changed in this session" } else { "changed since the item began" };
    let to_changed_file = |path: &std::path::PathBuf| ChangedFile {
        path: input.project.relative_to_root(path),
        change_kind: change_text.to_owned(),
        ..ChangedFile::default()
    };
    paths.unwrap_or_default().iter().map(to_changed_file).collect()
}

/// A changed file with the time of its last edit.
struct TimedFileChange {
    file: ChangedFile,
    edited_at: Option<SystemTime>,
}

impl TimedFileChange {
    fn with_edit_time_and_missing_as_deleted(project: &Project, mut file: ChangedFile) -> TimedFileChange {
        let path = project.root().join(&file.path);
        // Uses the ctime, because a rename keeps the modification time.
        let ctime = disk::changed_at(&path);
        // Another program may have removed the file after the session changed it.
        if ctime.is_none() && !file.is_deleted {
            file =
                ChangedFile { change_kind: "gone".to_owned(), is_deleted: true, hunks: Vec::new(), ..file };
        }
        // A deleted file has no time, so the nearest existing folder's time is used.
        let existing_folder = || path.ancestors().skip(1).find(|folder| disk::is_folder(folder));
        TimedFileChange { edited_at: ctime.or_else(|| existing_folder().and_then(disk::modified_at)), file }
    }

    /// Returns false if the file was changed before the work on the item began: that change belongs to
    /// someone else, or to an earlier item.
    fn was_edited_since_start(&self, started_at: Option<SystemTime>) -> bool {
        self.edited_at.zip(started_at).is_none_or(|(edited, started)| edited >= started)
    }

    /// Returns true if the file was changed after `time`. Returns false if one of the two times is unknown.
    fn was_edited_after(&self, time: Option<SystemTime>) -> bool {
        self.edited_at.zip(time).is_some_and(|(edited, limit)| edited > limit + TIMESTAMP_TOLERANCE)
    }
}

/// Adds the changed files with their line ranges, the last edited first.
fn add_changed_files_with_line_ranges(
    input: &WorkInput<'_>,
    mut item_changes: Vec<TimedFileChange>,
    session_work: &mut SessionWork,
) {
    item_changes.sort_by_key(|change| (change.file.is_deleted, std::cmp::Reverse(change.edited_at)));
    let last_edit = find_last_edit(input);
    let files_at_start = input.run.map_or(&[][..], |run| &run.project_at_start.files_at_start);
    for TimedFileChange { mut file, edited_at } in item_changes.into_iter().take(MAX_FILES) {
        let path = input.project.root().join(&file.path);
        let content = if file.is_deleted { None } else { read_content_up_to_limit(&path) };
        // Git has no earlier content of this file, so the changed lines and their number are unknown.
        let has_no_earlier_version =
            session_work.item_work.base_commit.is_none() && files_at_start.contains(&file.path);
        if has_no_earlier_version && file.change_kind.starts_with("new") {
            (file.change_kind, file.hunks) = ("changed, in no commit before".to_owned(), Vec::new());
        }
        if has_no_earlier_version {
            file.line_counts = None;
        }
        let is_new = file.change_kind.starts_with("new") && file.hunks.is_empty();
        let newest_edit =
            last_edit.as_ref().filter(|edit| edit.path == path && edit.is_not_overwritten(edited_at));
        let mut ranges: Vec<(u64, u64)> =
            file.hunks.iter().map(|hunk| (hunk.first_line, hunk.last_line)).collect();
        if is_new
            && let Some(line_count) = content.as_deref().map(count_lines).filter(|line_count| *line_count > 0)
        {
            ranges.push((1, line_count));
        }
        let line_counts = file.line_counts.or_else(|| {
            let line_count = content.as_deref().filter(|_| is_new).map(count_lines);
            line_count.map(|added| LineCounts { added, removed: 0 })
        });
        let last_edited_range = newest_edit.and_then(|edit| {
            edit.find_unique_or_nearest_line_range(&String::from_utf8_lossy(content.as_deref()?))
        });
        if ranges.is_empty() {
            ranges.extend(last_edited_range);
        }
        if !file.is_committed {
            session_work.item_work.uncommitted_files.push(file.path.clone());
        }
        session_work.changed_files.push(FileInProgress {
            touched_lines: if file.is_deleted {
                String::new()
            } else {
                git::format_last_merged_ranges_keeping_edited(&ranges, last_edited_range)
            },
            added_lines: line_counts.map(|line_counts| line_counts.added),
            removed_lines: line_counts.map(|line_counts| line_counts.removed),
            description: describe_change_kind_and_headings(&file),
            digest: content.map(|content| sha256_hex(&[&content])),
            path: file.path,
        });
    }
}

fn read_content_up_to_limit(path: &Path) -> Option<Vec<u8>> {
    disk::file_size(path).filter(|size| *size <= MAX_CONTENT_BYTES && disk::is_file(path))?;
    disk::read(path).ok().flatten()
}

/// Returns the digest of a file's content, as it is stored in a checkpoint.
pub(crate) fn content_digest(path: &Path) -> Option<String> {
    read_content_up_to_limit(path).map(|content| sha256_hex(&[&content]))
}

fn count_lines(content: &[u8]) -> u64 {
    String::from_utf8_lossy(content).lines().count() as u64
}

fn describe_change_kind_and_headings(file: &ChangedFile) -> String {
    let committed_suffix = if file.is_committed { ", committed" } else { "" };
    let others_suffix = if file.has_excluded_commits { ", also changed by others" } else { "" };
    let mut headings: Vec<&str> = Vec::new();
    for hunk in file.hunks.iter().rev().filter(|hunk| !hunk.heading.is_empty()) {
        if headings.len() < MAX_HEADINGS_PER_FILE && !headings.contains(&hunk.heading.as_str()) {
            headings.push(&hunk.heading);
        }
    }
    let heading_suffix =
        if headings.is_empty() { String::new() } else { format!(": {}", headings.join(", ")) };
    format!("{}{committed_suffix}{others_suffix}{heading_suffix}", file.change_kind)
}

/// The last successful edit of a file by the client's tools, or one in the current message.
struct LastEdit {
    path: std::path::PathBuf,
    text: String,
    /// The first line of the last hunk in the client's patch.
    last_hunk_start: Option<u64>,
    /// The time of the edit; `None` for the current message.
    edited_at: Option<SystemTime>,
}

impl LastEdit {
    /// Returns false if the file was written again by something else.
    fn is_not_overwritten(&self, file_changed_at: Option<SystemTime>) -> bool {
        self.edited_at
            .zip(file_changed_at)
            .is_none_or(|(edited, changed)| changed <= edited + TIMESTAMP_TOLERANCE)
    }

    /// Returns the first and last line of the edited text; among several matches, the one nearest to the
    /// patch's last hunk. Returns `None` if there are several matches and no patch.
    fn find_unique_or_nearest_line_range(&self, file_text: &str) -> Option<(u64, u64)> {
        let text = self.text.trim_end_matches('\n');
        if text.is_empty() {
            return None;
        }
        let line_break_count = text.matches('\n').count() as u64;
        let matches = file_text.match_indices(text).take(1_000);
        let first_lines = matches.map(|(start, _)| file_text[..start].matches('\n').count() as u64 + 1);
        let nearest_line = match self.last_hunk_start {
            Some(hunk_start) => first_lines.min_by_key(|first_line| first_line.abs_diff(hunk_start)),
            None => match first_lines.collect::<Vec<u64>>()[..] {
                [only] => Some(only),
                _ => None,
            },
        };
        nearest_line.map(|first_line| (first_line, first_line + line_break_count))
    }
}

/// Returns true for the client's tools that edit a file.
pub(crate) fn is_edit_tool(tool_name: Option<&str>) -> bool {
    matches!(tool_name, Some("Edit" | "Write" | "MultiEdit" | "NotebookEdit"))
}

fn find_last_edit(input: &WorkInput<'_>) -> Option<LastEdit> {
    let to_edit = |tool_input: &ToolInput, last_hunk_start, edited_at| {
        let path = Path::new(tool_input.file_path.as_ref()?).to_owned();
        let text = tool_input.new_string.clone().or_else(|| tool_input.content.clone())?;
        Some(LastEdit { path, text, last_hunk_start, edited_at })
    };
    let pending_edits =
        input.pending_calls.iter().rev().filter(|call| is_edit_tool(call.tool_name.as_deref()));
    if let Some(edit) = pending_edits.filter_map(|call| to_edit(&call.tool_input, None, None)).next() {
        return Some(edit);
    }
    let mut edit_calls: Vec<&ContentBlock> = Vec::new();
    let mut last_edit = None;
    for line in input.lines.iter().filter(|line| !line.is_sidechain) {
        for block in line.message.blocks() {
            match block.kind.as_deref() {
                Some("tool_use") if is_edit_tool(block.name.as_deref()) => edit_calls.push(block),
                Some("tool_result") if !block.is_error => {
                    let call =
                        edit_calls.iter().find(|call| call.id.is_some() && call.id == block.tool_use_id);
                    let last_hunk_start =
                        line.file_change().and_then(|change| change.structured_patch.last()?.new_start);
                    let edited_at =
                        line.timestamp.as_deref().and_then(clock::parse_rfc3339).map(SystemTime::from);
                    last_edit =
                        call.and_then(|call| to_edit(&call.input, last_hunk_start, edited_at)).or(last_edit);
                }
                _ => {}
            }
        }
    }
    last_edit
}
