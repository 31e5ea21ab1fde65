//! What a session did for its item: which item that is, which files it changed for it, and where it is in git.

use crate::our_files;
use plimsoll_domain::digest::sha256;
use plimsoll_domain::git_names::{CommitId, RepoPath};
use plimsoll_domain::handoff::GitFacts;
use plimsoll_domain::state::{BaseRelation, Cause, Checkpoint, FileInProgress, ItemStart, ItemWork};
use plimsoll_domain::{RunState, SessionRecord, Timestamp, TodoList};
use plimsoll_launcher::git::{self, ChangedFile, LineCounts, Since};
use plimsoll_policy::attribution::{self, Seen};
use plimsoll_policy::plan_ticks::puts_a_tick;
use plimsoll_protocol::tool::{ToolCall, ToolInput};
use plimsoll_protocol::transcript::{Block, Line};
use plimsoll_store::{Project, clock, disk};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// How many files are named at most.
const FILES: usize = 200;
/// How many headings of one file are named at most.
const HEADINGS: usize = 3;
/// The content of a larger file is not looked at.
const LARGEST_READ: u64 = 4 * 1024 * 1024;
/// The transcript has milliseconds, a file's time is finer; between two calls a model takes longer than this.
const SLACK: Duration = Duration::from_millis(50);

/// What is known of the session when its work is looked at.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) project: &'a Project,
    pub(crate) record: &'a SessionRecord,
    pub(crate) run: Option<&'a RunState>,
    /// The plan as it is now.
    pub(crate) todo: Option<&'a TodoList>,
    /// Why it is asked.
    pub(crate) cause: Cause,
    /// The end of the transcript.
    pub(crate) lines: &'a [Line],
    /// The tool calls of the message at hand: not yet in the transcript.
    pub(crate) calls: &'a [ToolCall],
}

/// The files of a repository without a commit, ours apart; none of any other folder.
pub(crate) fn files_without_commit(project: &Project) -> Vec<String> {
    let work = git::work(project.root(), Since::Head, &[]).filter(|work| work.facts.head.is_none());
    let files = work.unwrap_or_default().files.into_iter().map(|file| file.path);
    files.filter(|path| !our_files::is_ours(path)).take(FILES).collect()
}

/// What the session did for its item.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) git: Option<GitFacts>,
    pub(crate) item: Option<String>,
    pub(crate) files: Vec<FileInProgress>,
    pub(crate) work: ItemWork,
    /// When the session's last tick was done; what was run and said before it is about a finished item.
    pub(crate) ticked_at: Option<SystemTime>,
}

/// Looks at list, git, files and transcript. Git was asked when the caller began.
pub(crate) fn of_session(question: &Question<'_>, git: Option<git::Begun<'_>>) -> Found {
    let look = git.and_then(git::Begun::look);
    let own = own_item(question);
    let ticked = ticked(question);
    let start = start(question);
    let (begins, relation) = begin_of_item(question, &start, look.as_ref());
    let tick = if ticked.is_empty() {
        None
    } else {
        Some(last_tick(question, start.since(BaseRelation::Ancestor), &ticked, look.as_ref()))
    };
    let shared = tick.as_ref().and_then(|tick| shared_commit(question, tick));
    let parent = shared.and_then(|commit| git::parent(question.project.root(), commit));
    let since = match &tick {
        None => begins.since(relation),
        Some(Tick { commit: Some(commit), .. }) => Since::Commit(parent.as_ref().unwrap_or(commit)),
        Some(Tick { commit: None, .. }) => Since::Head,
    };
    let by_others = by_others(question);
    let seen = look.map(|look| look.work(since, &by_others));
    let (git, changed, commits) = match seen {
        Some(work) => (Some(work.facts), work.files, work.commits),
        None => (None, changed_outside_git(question), Vec::new()),
    };
    let ticked_at = tick.as_ref().and_then(|tick| tick.at);
    let changed = changed_for_item(question, changed, tick.as_ref());
    let current = attribution::current(&Seen {
        own: own.as_deref(),
        open: &open_items(question),
        set_aside: question.run.map_or(&[], |run| &run.items.set_aside),
        parked: &parked_items(question),
        ticked: &ticked,
        changed_since_tick: !changed.is_empty(),
        stops_before_next: question.cause == Cause::Budget,
    });
    let mut found = Found {
        git,
        item: current.item,
        ticked_at,
        work: ItemWork {
            own_item: own.unwrap_or_default(),
            finished: ticked,
            is_begun: current.is_begun,
            ..ItemWork::default()
        },
        ..Found::default()
    };
    if current.is_begun {
        found.work.base = base_of(since, found.git.as_ref());
        found.work.base_relation = if tick.is_none() { relation } else { BaseRelation::Ancestor };
        found.work.commit_count = commits.len();
        found.work.commits = commits;
        found.work.by_others = by_others;
        describe_work(question, changed, &mut found);
    }
    found
}

/// Names when the work on the item began, and its files.
fn describe_work(question: &Question<'_>, changed: Vec<Changed>, found: &mut Found) {
    let since_tick = found.ticked_at.map(|at| clock::fine_stamp(at.into()));
    found.work.began_at = since_tick.or_else(|| began_at(question));
    name_files(question, changed, found);
    if found.work.base_relation == BaseRelation::Missing {
        name_files_of_earlier_sessions(question, found);
    }
}

/// Adds the files that the checkpoint before names, where git can no longer compare with where the item began.
fn name_files_of_earlier_sessions(question: &Question<'_>, found: &mut Found) {
    let before = taken_over(question).map(|before| before.files_in_progress.as_slice()).unwrap_or_default();
    for file in before {
        let digest = digest(&question.project.root().join(&file.path));
        let is_known = found.files.iter().any(|known| known.path == file.path);
        if is_known || digest.is_none() || found.files.len() >= FILES {
            continue;
        }
        let is_as_it_was = digest == file.digest;
        found.files.push(FileInProgress {
            path: file.path.clone(),
            lines: if is_as_it_was { file.lines.clone() } else { String::new() },
            description: "changed by an earlier session".to_owned(),
            digest,
            ..FileInProgress::default()
        });
    }
}

/// Of the changed files those that belong to the current item.
fn changed_for_item(question: &Question<'_>, changed: Vec<ChangedFile>, tick: Option<&Tick>) -> Vec<Changed> {
    let began = began_at(question).as_ref().and_then(clock::moment).map(SystemTime::from);
    changed
        .into_iter()
        .filter(|file| !is_apart(question, &file.path))
        .map(|file| Changed::look(question.project, file))
        .filter(|file| question.run.is_none() || file.is_of_item(began))
        .filter(|file| tick.is_none_or(|tick| file.is_after(tick.at) && !tick.is_all))
        .collect()
}

/// Those of them that wait for an answer.
fn parked_items(question: &Question<'_>) -> Vec<String> {
    let todo = question.todo.map(TodoList::parked).unwrap_or_default();
    todo.into_iter().map(|(item, _)| item.to_owned()).collect()
}

/// The items that are still open, by the list, else by the run. A session of no run has no item: its user asks.
fn open_items(question: &Question<'_>) -> Vec<String> {
    let Some(run) = question.run else { return Vec::new() };
    question.todo.map_or_else(|| run.items.todo_items.clone(), TodoList::open)
}

/// The commit that the work is seen against.
fn base_of(since: Since<'_>, git: Option<&GitFacts>) -> Option<String> {
    match since {
        Since::Commit(commit) | Since::Rewritten(commit) => Some(commit.to_string()),
        Since::Head => git.and_then(|git| git.head.clone()),
        Since::Beginning => None,
    }
}

/// The item that the session was last asked to do.
fn own_item(question: &Question<'_>) -> Option<String> {
    let offered = question.record.continuation.as_ref().map(|offer| offer.item.clone());
    offered.or_else(|| question.run?.iteration_record.item.clone())
}

/// Items that the session ticked.
fn ticked(question: &Question<'_>) -> Vec<String> {
    let Some(run) = question.run else { return Vec::new() };
    let done = question.todo.map_or_else(|| run.items.completed_items.clone(), TodoList::done);
    run.ticked_in_session(&done)
}

/// Our own files are never work, and changes in the plan of a run show in its items.
fn is_apart(question: &Question<'_>, path: &str) -> bool {
    let todo_file = question.run.and_then(|run| run.options.todo_file.as_deref());
    our_files::is_ours(path) || todo_file == Some(path)
}

/// Where work begins; as [`Since`], but owned.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Start {
    Commit(CommitId),
    Beginning,
    Head,
}

impl Start {
    fn since(&self, relation: BaseRelation) -> Since<'_> {
        match self {
            Start::Commit(commit) if relation == BaseRelation::Rewritten => Since::Rewritten(commit),
            Start::Commit(commit) => Since::Commit(commit),
            Start::Beginning => Since::Beginning,
            Start::Head => Since::Head,
        }
    }
}

/// Where the session began. An agent may have cleaned its record away; the run knows what it began from.
fn start(question: &Question<'_>) -> Start {
    let planned_on = || question.run?.iteration_record.footing.as_ref()?.head.clone();
    let is_known = question.record.start.started_at.is_some()
        || question.run.is_some_and(|run| run.iteration_record.footing.is_some());
    let known = question.record.start.head_at_start.clone().or_else(planned_on);
    match known.map(|known| CommitId::parse(&known)) {
        Some(Ok(commit)) => Start::Commit(commit),
        Some(Err(_)) => Start::Head,
        None if is_known => Start::Beginning,
        None => Start::Head,
    }
}

/// The checkpoint of the same item that this session took over, or has written itself.
fn taken_over<'a>(question: &Question<'a>) -> Option<&'a Checkpoint> {
    let run = question.run?;
    let before = &run.context_checkpoint;
    let own = own_item(question).unwrap_or_default();
    let is_of_this_item = own == before.current_todo_item && before.item_work.is_begun;
    let is_taken_over = run.iteration_record.resuming || before.iteration == run.iteration;
    // A checkpoint of another tool does not know where its item began.
    let is_complete = before.item_work.began_at.is_some();
    (is_of_this_item && is_taken_over && is_complete).then_some(before)
}

/// Commits that people made between the sessions of this item: they are among its own, and are not its work.
fn by_others(question: &Question<'_>) -> Vec<String> {
    let Some(before) = taken_over(question) else { return Vec::new() };
    let known = before.item_work.by_others.clone();
    let is_own = question.run.is_some_and(|run| run.iteration == before.iteration);
    let parse = |id: Option<&String>| CommitId::parse(id?).ok();
    let (left, found) = (parse(before.head.as_ref()), parse(question.record.start.head_at_start.as_ref()));
    let (Some(left), Some(found)) = (left, found) else { return known };
    let root = question.project.root();
    let new =
        if is_own || left == found { Vec::new() } else { git::commits_between(root, &left, Some(&found)) };
    new.into_iter().map(|commit| commit.id.into()).chain(known).collect()
}

/// When the work on the item began.
fn began_at(question: &Question<'_>) -> Option<Timestamp> {
    let before = taken_over(question).and_then(|before| before.item_work.began_at.clone());
    let before = before.or_else(|| noted_start(question)?.at.clone());
    before.or_else(|| question.record.start.started_at.clone())
}

/// Returns where the work on the item began, and how that commit stands to HEAD: where its first session began, else where this
/// one did. If git does not find the commit anymore, the work is compared with the next later one that is known.
fn begin_of_item(
    question: &Question<'_>,
    start: &Start,
    look: Option<&git::Look<'_>>,
) -> (Start, BaseRelation) {
    let relation = |start: &Start| match start {
        Start::Commit(commit) if look.is_some_and(|look| look.is_still_at(Since::Commit(commit))) => {
            BaseRelation::Ancestor
        }
        Start::Commit(commit) => git::base_relation(question.project.root(), commit),
        Start::Beginning | Start::Head => BaseRelation::Ancestor,
    };
    if look.is_none() {
        return (start.clone(), BaseRelation::Ancestor);
    }
    // Once it is missing, what a later checkpoint names as the base is not where the item began either.
    let mut is_missing =
        taken_over(question).is_some_and(|before| before.item_work.base_relation == BaseRelation::Missing);
    for known in base(question).iter().chain([start]) {
        match relation(known) {
            BaseRelation::Missing => is_missing = true,
            found if is_missing && found == BaseRelation::Ancestor => {
                return (known.clone(), BaseRelation::Missing);
            }
            found => return (known.clone(), found),
        }
    }
    (Start::Head, BaseRelation::Missing)
}

/// Returns where the work on the session's item began, as the run noted it when it planned the session.
fn noted_start<'a>(question: &Question<'a>) -> Option<&'a ItemStart> {
    let record = &question.run?.iteration_record;
    record.item_start.as_ref().filter(|_| own_item(question) == record.item)
}

/// Returns where the work on an item began that this session took over from an earlier one.
fn base(question: &Question<'_>) -> Option<Start> {
    let base = match taken_over(question) {
        Some(before) => before.item_work.base.as_ref(),
        None => noted_start(question)?.base.as_ref(),
    };
    base.map_or(Some(Start::Beginning), |base| CommitId::parse(base).ok().map(Start::Commit))
}

/// The last tick of a session.
#[derive(Debug, Default)]
struct Tick {
    /// The commit that holds it; none if it is not committed.
    commit: Option<CommitId>,
    /// When it was done.
    at: Option<SystemTime>,
    /// True if the session has called no tool since that may change files: what changed later is not its work.
    is_all: bool,
    /// When that commit was made; of one that git has packed, the end of its second.
    committed_at: Option<SystemTime>,
}

/// The commit that holds the tick, where it also holds work that was done after it. A file that was edited again since
/// the commit does not contain that edit.
fn shared_commit<'a>(question: &Question<'_>, tick: &'a Tick) -> Option<&'a CommitId> {
    let root = question.project.root();
    let (commit, committed_at) = tick.commit.as_ref().zip(tick.committed_at)?;
    if tick.is_all || committed_at <= tick.at? + SLACK {
        return None;
    }
    let is_of_next = |path: &String| {
        let file =
            Changed::look(question.project, ChangedFile { path: path.clone(), ..ChangedFile::default() });
        file.is_after(tick.at) && file.at.is_some_and(|at| at <= committed_at + SLACK)
    };
    let mut paths = git::paths_in(root, commit).into_iter().filter(|path| !is_apart(question, path));
    paths.any(|path| is_of_next(&path)).then_some(commit)
}

/// Where and when the last of these items was ticked: by the plan's own history, the transcript, the plan's time.
fn last_tick(
    question: &Question<'_>,
    since: Since<'_>,
    ticked: &[String],
    look: Option<&git::Look<'_>>,
) -> Tick {
    let Some(file) = question.run.and_then(|run| run.options.todo_file.as_deref()) else {
        return Tick::default();
    };
    let root = question.project.root();
    let ticks = |lines: &[String]| TodoList::parse(&lines.join("\n")).done();
    let has_no_history = look.is_none_or(|look| look.is_still_at(since));
    let path = RepoPath::parse(file).ok().filter(|_| !has_no_history);
    let history = path.map(|path| git::history_of(root, since, &path)).unwrap_or_default();
    let new_ticks = |commit: &git::FileCommit| -> Vec<String> {
        let before = ticks(&commit.removed);
        ticks(&commit.added)
            .into_iter()
            .filter(|item| ticked.contains(item) && !before.contains(item))
            .collect()
    };
    let committed: Vec<String> = history.iter().flat_map(new_ticks).collect();
    let newest = history.iter().find(|commit| !new_ticks(commit).is_empty());
    let seen = tick_in_transcript(question, file);
    if ticked.iter().all(|item| committed.contains(item)) {
        let committed_at = newest.and_then(|commit| {
            let object = git::loose_object(root, &commit.id).as_deref().and_then(disk::modified);
            object.or_else(|| clock::at(commit.at.unsigned_abs() + 1).map(SystemTime::from))
        });
        let commit = newest.map(|commit| commit.id.clone());
        return Tick { commit, committed_at, at: seen.at.or(committed_at), ..seen };
    }
    Tick { at: seen.at.or_else(|| disk::modified(&root.join(file))), ..seen }
}

/// When the session last put a tick into the plan, as far as its calls show.
fn tick_in_transcript(question: &Question<'_>, file: &str) -> Tick {
    // The call at hand has just been done.
    if question.calls.iter().any(|call| puts_a_tick(&call.tool_input, file)) {
        return Tick { at: Some(clock::now().into()), is_all: true, ..Tick::default() };
    }
    let changes_now =
        question.calls.iter().any(|call| may_change(call.tool_name.as_deref(), &call.tool_input));
    let mut is_all = !changes_now;
    let mut last: Option<(Option<String>, Option<SystemTime>)> = None;
    for line in question.lines.iter().filter(|line| !line.is_sidechain) {
        let at = || line.timestamp.as_deref().and_then(clock::parse).map(SystemTime::from);
        for block in line.message.blocks() {
            match block.kind.as_deref() {
                Some("tool_use") if puts_a_tick(&block.input, file) => {
                    last = Some((block.id.clone(), at()));
                    is_all = !changes_now;
                }
                Some("tool_use") => is_all &= !may_change(block.name.as_deref(), &block.input),
                // Its result comes after whatever else the same command line did.
                Some("tool_result") if last.as_ref().is_some_and(|(id, _)| *id == block.tool_use_id) => {
                    last = Some((block.tool_use_id.clone(), at()));
                }
                _ => {}
            }
        }
    }
    let at = last.and_then(|(_, at)| at);
    Tick { at, is_all: is_all && at.is_some(), ..Tick::default() }
}

fn may_change(name: Option<&str>, input: &ToolInput) -> bool {
    attribution::may_change_files(name.unwrap_or_default(), input.command.as_deref())
}

/// Outside git: what changed on the disk since the session began, by any program.
fn changed_outside_git(question: &Question<'_>) -> Vec<ChangedFile> {
    let since = began_at(question).as_ref().and_then(clock::moment);
    let found = since.map(|since| disk::changed_since(question.project.root(), since.into(), FILES));
    let is_first = taken_over(question).is_none();
    let change = if is_first { "changed in this session" } else { "changed since the item began" };
    let file = |path: &std::path::PathBuf| ChangedFile {
        path: question.project.relative(path),
        change: change.to_owned(),
        ..ChangedFile::default()
    };
    found.unwrap_or_default().iter().map(file).collect()
}

/// A changed file, and when it was edited last.
struct Changed {
    file: ChangedFile,
    at: Option<SystemTime>,
}

impl Changed {
    fn look(project: &Project, mut file: ChangedFile) -> Changed {
        let path = project.root().join(&file.path);
        // The ctime: a rename leaves the modification time as it was.
        let touched = disk::touched(&path);
        // Another program may have removed what the work has left.
        if touched.is_none() && !file.is_gone {
            file = ChangedFile { change: "gone".to_owned(), is_gone: true, hunks: Vec::new(), ..file };
        }
        // For a deleted file the folder has the time.
        let folder = || path.ancestors().skip(1).find(|folder| disk::is_folder(folder));
        Changed { at: touched.or_else(|| folder().and_then(disk::modified)), file }
    }

    /// False if it was changed before the work on the item began: that belongs to someone else, or to an earlier item.
    fn is_of_item(&self, began: Option<SystemTime>) -> bool {
        self.at.zip(began).is_none_or(|(at, began)| at >= began)
    }

    /// True if it was changed after a moment; of an unknown moment nothing is known to come after it.
    fn is_after(&self, moment: Option<SystemTime>) -> bool {
        self.at.zip(moment).is_some_and(|(at, moment)| at > moment + SLACK)
    }
}

/// The files with their lines, the one edited last first.
fn name_files(question: &Question<'_>, mut changed: Vec<Changed>, found: &mut Found) {
    changed.sort_by_key(|file| (file.file.is_gone, std::cmp::Reverse(file.at)));
    let last_edit = last_edit(question);
    let were_there = question.run.map_or(&[][..], |run| &run.at_start.files_at_start);
    for Changed { mut file, at } in changed.into_iter().take(FILES) {
        let path = question.project.root().join(&file.path);
        let content = if file.is_gone { None } else { content(&path) };
        // Git knows no earlier content of it, and so neither lines nor how many changed.
        let is_uncounted = found.work.base.is_none() && were_there.contains(&file.path);
        if is_uncounted && file.change.starts_with("new") {
            (file.change, file.hunks) = ("changed, in no commit before".to_owned(), Vec::new());
        }
        if is_uncounted {
            file.counts = None;
        }
        let is_new = file.change.starts_with("new") && file.hunks.is_empty();
        let known = last_edit.as_ref().filter(|edit| edit.path == path && edit.is_newest(at));
        let mut ranges: Vec<(u64, u64)> = file.hunks.iter().map(|hunk| (hunk.first, hunk.last)).collect();
        if is_new && let Some(lines) = content.as_deref().map(line_count).filter(|lines| *lines > 0) {
            ranges.push((1, lines));
        }
        let counts = file.counts.or_else(|| {
            let lines = content.as_deref().filter(|_| is_new).map(line_count);
            lines.map(|added| LineCounts { added, removed: 0 })
        });
        let edited = known.and_then(|edit| edit.place_in(&String::from_utf8_lossy(content.as_deref()?)));
        if ranges.is_empty() {
            ranges.extend(edited);
        }
        if !file.is_committed {
            found.work.uncommitted.push(file.path.clone());
        }
        found.files.push(FileInProgress {
            lines: if file.is_gone { String::new() } else { git::join(&ranges, edited) },
            added: counts.map(|counts| counts.added),
            removed: counts.map(|counts| counts.removed),
            description: description(&file),
            digest: content.map(|content| sha256(&[&content])),
            path: file.path,
        });
    }
}

fn content(path: &Path) -> Option<Vec<u8>> {
    disk::size(path).filter(|size| *size <= LARGEST_READ && disk::is_file(path))?;
    disk::read(path).ok().flatten()
}

/// The digest of a file's content as a checkpoint keeps it.
pub(crate) fn digest(path: &Path) -> Option<String> {
    content(path).map(|content| sha256(&[&content]))
}

fn line_count(content: &[u8]) -> u64 {
    String::from_utf8_lossy(content).lines().count() as u64
}

fn description(file: &ChangedFile) -> String {
    let committed = if file.is_committed { ", committed" } else { "" };
    let also = if file.is_also_by_others { ", also changed by others" } else { "" };
    let mut headings: Vec<&str> = Vec::new();
    for hunk in file.hunks.iter().rev().filter(|hunk| !hunk.heading.is_empty()) {
        if headings.len() < HEADINGS && !headings.contains(&hunk.heading.as_str()) {
            headings.push(&hunk.heading);
        }
    }
    let about = if headings.is_empty() { String::new() } else { format!(": {}", headings.join(", ")) };
    format!("{}{committed}{also}{about}", file.change)
}

/// The last call of Edit or Write, as the transcript and the message at hand show it.
struct LastEdit {
    path: std::path::PathBuf,
    text: String,
    /// Where it began by the client's own patch.
    near: Option<u64>,
    /// When it was done; none for the message at hand.
    at: Option<SystemTime>,
}

impl LastEdit {
    /// False if the file was written again by something else.
    fn is_newest(&self, written: Option<SystemTime>) -> bool {
        self.at.zip(written).is_none_or(|(at, written)| written <= at + SLACK)
    }

    /// The lines that contain its text; of several places the one nearest to the patch.
    fn place_in(&self, file: &str) -> Option<(u64, u64)> {
        let text = self.text.trim_end_matches('\n');
        if text.is_empty() {
            return None;
        }
        let height = text.matches('\n').count() as u64;
        let places = file.match_indices(text).take(1_000);
        let firsts = places.map(|(start, _)| file[..start].matches('\n').count() as u64 + 1);
        let nearest = match self.near {
            Some(near) => firsts.min_by_key(|first| first.abs_diff(near)),
            None => match firsts.collect::<Vec<u64>>()[..] {
                [only] => Some(only),
                _ => None,
            },
        };
        nearest.map(|first| (first, first + height))
    }
}

/// True for the client's tools that edit a file.
pub(crate) fn is_edit(tool: Option<&str>) -> bool {
    matches!(tool, Some("Edit" | "Write" | "MultiEdit" | "NotebookEdit"))
}

fn last_edit(question: &Question<'_>) -> Option<LastEdit> {
    let edit = |input: &ToolInput, near, at| {
        let path = Path::new(input.file_path.as_ref()?).to_owned();
        let text = input.new_string.clone().or_else(|| input.content.clone())?;
        Some(LastEdit { path, text, near, at })
    };
    let at_hand = question.calls.iter().rev().filter(|call| is_edit(call.tool_name.as_deref()));
    if let Some(edit) = at_hand.filter_map(|call| edit(&call.tool_input, None, None)).next() {
        return Some(edit);
    }
    let mut asked: Vec<&Block> = Vec::new();
    let mut last = None;
    for line in question.lines.iter().filter(|line| !line.is_sidechain) {
        for block in line.message.blocks() {
            match block.kind.as_deref() {
                Some("tool_use") if is_edit(block.name.as_deref()) => asked.push(block),
                Some("tool_result") if !block.is_error => {
                    let call = asked.iter().find(|call| call.id.is_some() && call.id == block.tool_use_id);
                    let near =
                        line.file_change().and_then(|change| change.structured_patch.last()?.new_start);
                    let at = line.timestamp.as_deref().and_then(clock::parse).map(SystemTime::from);
                    last = call.and_then(|call| edit(&call.input, near, at)).or(last);
                }
                _ => {}
            }
        }
    }
    last
}
