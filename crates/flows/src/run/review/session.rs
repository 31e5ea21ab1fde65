//! One reviewing session, from before its start to its end.

use super::{EXPORTED, EndCause, Ended, MERGE_REPOSITORY_VARIABLE, Reviewing};
use crate::context::session_usage::complete_cost;
use crate::hook_invocation::{REVIEW_VARIABLE, RUN_VARIABLE};
use crate::our_files::is_ours;
use crate::read_only::ReadOnlySession;
use crate::run::budget_left;
use crate::run::check_can_confine;
use crate::run::save_work::allowed_programs;
use crate::run::stream_reader::StreamReader;
use crate::session_result::SessionResult;
use plimsoll_domain::git_names::{CommitId, InvalidCommitId};
use plimsoll_domain::prompt::{ReviewRequest, review as prompt_of};
use plimsoll_domain::review::{ReviewSession, named};
use plimsoll_domain::text::clip;
use plimsoll_domain::{Exit, SessionId, SessionRecord};
use plimsoll_launcher::client::{self, Client, Launch};
use plimsoll_launcher::git::{self, Changes, changes_since};
use plimsoll_launcher::own_repository::{OwnRepository, OwnRepositoryError};
use plimsoll_launcher::process::{self, Identity};
use plimsoll_launcher::wip::{Wip, commit_wip};
use plimsoll_policy::gate::Evidence;
use plimsoll_policy::models::OPTION;
use plimsoll_policy::{bounds, review};
use plimsoll_store::{Durability, StoreError, clock, disk, environment, layout};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longer than a session needs that reads a change and answers once.
const TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// How long it may tidy up when it is ended.
const GRACE_PERIOD: Duration = Duration::from_secs(5);
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// So much of a diff is sent, in bytes: about 15,000 tokens. The reviewer can read the files themselves.
const MOST_DIFF: usize = 60_000;
/// The run's own files are not the work, also where a repository follows them.
const NOT_THE_WORK: [&str; 5] =
    [".claude/plimsoll/*", ".claude/handoffs/*", ".claude/ralph-state.json*", "PROMPT.md", "progress.txt"];

/// Why there is nothing that a session could review.
#[derive(Debug, thiserror::Error)]
enum NothingToReview {
    #[error("git could not show what has changed")]
    Unknown,
    #[error("what was left uncommitted cannot be committed: {0}")]
    Uncommitted(String),
    #[error(transparent)]
    BadCommit(#[from] InvalidCommitId),
    #[error(transparent)]
    Own(#[from] OwnRepositoryError),
}

/// What a session reviews.
struct ReviewedWork {
    changes: Changes,
    /// Where it reads.
    folder: PathBuf,
    /// The folder that was made for it.
    exported: Option<PathBuf>,
}

impl Reviewing<'_, '_> {
    /// The reviewing session that an earlier process noted for these ticks, with its end. One of other ticks is ended, and one
    /// that never answered is counted and forgotten.
    pub(super) fn left_by_a_kill(
        &mut self,
        items: &[String],
    ) -> Result<Option<(ReviewSession, Ended)>, StoreError> {
        let Some(session) = self.state.outcomes.reviews.session.clone() else { return Ok(None) };
        let is_of_these = session.iteration == self.state.iteration
            && session.session_id == self.state.session_id
            && session.items == items;
        let orphan = self.orphan(&session);
        if let Some(orphan) = orphan.filter(|_| is_of_these) {
            let ended = self.follow(&session, Client::Adopted(orphan));
            return Ok(Some((session, ended)));
        }
        if let Some(orphan) = orphan {
            Client::Adopted(orphan).end(GRACE_PERIOD);
        }
        let mut reader = self.reader(&session);
        reader.read_on();
        let result = self.result(&session, &reader, Exit::default());
        if is_of_these && reader.has_result() {
            return Ok(Some((session, Ended { result, cause: EndCause::Itself })));
        }
        self.update(|state| {
            super::count(self.context, state, &result);
            state.outcomes.reviews.session = None;
        })?;
        Ok(None)
    }

    /// Its client, if it lives: by pid and start time, else by its ids, for a kill before the pid was written.
    fn orphan(&self, session: &ReviewSession) -> Option<Identity> {
        let known = session.pid.zip(session.process_started);
        let known = known.map(|(pid, started)| Identity { pid, started });
        let setting = format!("{REVIEW_VARIABLE}={}", self.state.run_id);
        known.filter(|known| process::is_alive(*known)).or_else(|| process::find(&session.id, &setting))
    }

    /// Before it is started: a client without a noted pid is found by this.
    pub(super) fn note_new(&self, items: Vec<String>) -> Result<ReviewSession, StoreError> {
        let session = ReviewSession {
            id: SessionId::from(uuid::Uuid::new_v4().to_string()),
            iteration: self.state.iteration,
            session_id: self.state.session_id.clone(),
            items,
            started_at: clock::stamp(clock::now()),
            ..ReviewSession::default()
        };
        self.update(|state| state.outcomes.reviews.session = Some(session.clone()))?;
        Ok(session)
    }

    pub(super) fn ask(&mut self, session: &ReviewSession, evidence: &Evidence) -> Result<Ended, StoreError> {
        let without = |words: &str| Ended {
            result: SessionResult::default(),
            cause: EndCause::Trouble(words.to_owned()),
        };
        // A resume may have found another client than the one with which the run began.
        if let Err(error) = check_can_confine("--review", self.reviewer.client, self.reviewer.version) {
            return Ok(without(&error.to_string()));
        }
        let work = match self.work_to_review(session) {
            Ok(work) => work,
            Err(error) => return Ok(without(&error.to_string())),
        };
        let changes = work.changes;
        let checks = evidence.verify.iter().map(|said| (said.command.clone(), said.words.clone()));
        let request = ReviewRequest {
            items: session.items.clone(),
            checks: checks.collect(),
            summary: changes.summary,
            diff: changes.diff,
            is_cut: changes.is_cut,
            new_files: changes.new_files,
        };
        let prompt = self.output(session, "prompt.md");
        let text = prompt_of(&request, &self.state.nonce);
        disk::replace(&prompt, text.text().as_bytes(), Durability::Lazy)?;
        let ended = match self.start(session, &prompt, &work.folder)? {
            Ok(client) => self.follow(session, client),
            Err(error) => without(&error.to_string()),
        };
        if let Some(exported) = work.exported {
            disk::remove_folder(&exported)?;
        }
        Ok(ended)
    }

    /// What is reviewed. For an item of a parallel run that is its commit, in the repository in which results are merged: what
    /// lies in the worktree may be something else.
    fn work_to_review(&self, session: &ReviewSession) -> Result<ReviewedWork, NothingToReview> {
        let base = review::base(self.state, &session.items);
        let base = base.map(CommitId::parse).transpose()?;
        let unknown = || NothingToReview::Unknown;
        let root = self.context.project.root();
        let Some(merge) = environment::variable(MERGE_REPOSITORY_VARIABLE) else {
            let changes = changes_since(root, base.as_ref(), &NOT_THE_WORK, MOST_DIFF).ok_or_else(unknown)?;
            return Ok(ReviewedWork { changes, folder: root.to_owned(), exported: None });
        };
        let (tree, _) = layout::repository(root).ok_or_else(unknown)?;
        let below = root.strip_prefix(tree).map_err(|_| unknown())?;
        let message = format!("plimsoll: what was left uncommitted of {}", clip(&named(&session.items), 60));
        let allowed = allowed_programs(self.context.project, self.state);
        if let Wip::Refused { why } = commit_wip(root, &message, &is_ours, allowed) {
            return Err(NothingToReview::Uncommitted(why));
        }
        let commit = git::head(root).ok_or_else(unknown)?;
        let own = OwnRepository::open(tree, Path::new(&merge))?;
        let name = tree.file_name().unwrap_or_default().to_string_lossy();
        let exported = tree.with_file_name(format!("{EXPORTED}{name}"));
        own.take(&commit)?;
        own.export(&commit, &exported)?;
        let changes = own.changes_between(base.as_ref(), &commit, below, &NOT_THE_WORK, MOST_DIFF);
        let folder = exported.join(below);
        Ok(ReviewedWork { changes: changes.ok_or_else(unknown)?, folder, exported: Some(exported) })
    }

    fn start(
        &self,
        session: &ReviewSession,
        prompt: &Path,
        folder: &Path,
    ) -> Result<Result<Client, client::NotStarted>, StoreError> {
        let ReadOnlySession { arguments, mut environment } = ReadOnlySession::from_user_settings();
        // It belongs to no run, and our hooks leave it alone. Last, so that no variable of the user's settings replaces it.
        environment.push((REVIEW_VARIABLE.to_owned(), self.state.run_id.to_string()));
        let started = client::start(Launch {
            program: self.reviewer.client,
            arguments: &self.arguments(session, arguments),
            folder,
            environment: &environment,
            without: &[RUN_VARIABLE],
            stdin: disk::open(prompt)?,
            stdout: disk::open_to_append(&self.output(session, "jsonl"))?,
            stderr: disk::open_to_append(&self.output(session, "err"))?,
        });
        let client = match started {
            Ok(client) => client,
            Err(error) => return Ok(Err(error)),
        };
        if let Some(identity) = client.identity() {
            self.reviewer.watchdog.watch(identity, None);
            self.update(|state| {
                if let Some(known) =
                    state.outcomes.reviews.session.as_mut().filter(|known| known.id == session.id)
                {
                    (known.pid, known.process_started) = (Some(identity.pid), Some(identity.started));
                }
            })?;
        }
        Ok(Ok(client))
    }

    fn arguments(&self, session: &ReviewSession, only_reads: Vec<String>) -> Vec<String> {
        let given = review::arguments(self.reviewer.client_arguments);
        let ours = ["-p", "--output-format", "stream-json", "--verbose", "--session-id", &session.id];
        ours.into_iter()
            .map(str::to_owned)
            .chain(budget_left(self.context, self.state, self.reviewer.era, &given))
            .chain(given.iter().cloned())
            .chain(self.model().into_iter().flat_map(|model| [OPTION.to_owned(), model.to_owned()]))
            .chain(only_reads)
            .collect()
    }

    pub(super) fn model(&self) -> Option<&str> {
        self.state.options.review_model.as_deref().or(self.reviewer.model)
    }

    /// Follows it to its end, or to where it has to end.
    fn follow(&self, session: &ReviewSession, mut client: Client) -> Ended {
        let mut reader = self.reader(session);
        if let Some(identity) = client.identity() {
            self.reviewer.watchdog.watch(identity, None);
        }
        let begun = Instant::now();
        let ended = loop {
            // Asked before the output is read: what it wrote up to its end is then read, too.
            let exit = client.ended();
            reader.read_on();
            if let Some(exit) = exit {
                break Ended { result: self.result(session, &reader, exit), cause: EndCause::Itself };
            }
            if reader.time_to_look()
                && let Some(cause) = self.cause_to_end(&reader, begun)
            {
                client.end(GRACE_PERIOD);
                reader.read_on();
                break Ended { result: self.result(session, &reader, Exit::default()), cause };
            }
            std::thread::sleep(LOOK_INTERVAL);
        };
        self.reviewer.watchdog.rest();
        ended
    }

    /// Returns how the session ended and what it used. Its hooks record nothing, so its transcript is found by its id.
    fn result(&self, session: &ReviewSession, reader: &StreamReader, exit: Exit) -> SessionResult {
        complete_cost(self.context.project, &session.id, &SessionRecord::default(), reader.ended(exit))
    }

    fn cause_to_end(&self, reader: &StreamReader, begun: Instant) -> Option<EndCause> {
        let minutes = TIMEOUT.as_secs() / 60;
        match () {
            () if (self.give_up)() => Some(EndCause::GivenUp),
            // Its result stands.
            () if reader.lingers(self.reviewer.linger) => Some(EndCause::Itself),
            () if bounds::passed(self.state, &clock::stamp(clock::now())).is_some() => {
                Some(EndCause::OutOfTime)
            }
            () if begun.elapsed() > TIMEOUT => {
                Some(EndCause::Trouble(format!("it gave no answer within {minutes} minutes")))
            }
            () => None,
        }
    }

    fn reader(&self, session: &ReviewSession) -> StreamReader {
        StreamReader::new(self.output(session, "jsonl"), self.reviewer.version)
    }

    fn output(&self, session: &ReviewSession, kind: &str) -> PathBuf {
        let id: String = session.id.chars().take(8).collect();
        let name = format!("review-{:04}-{id}.{kind}", session.iteration);
        self.context.project.run_folder(&self.state.run_id).join(name)
    }
}
