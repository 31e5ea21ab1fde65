//! One review session, from before its start to its end.

use super::{DueReview, EXPORT_FOLDER_PREFIX, EndedReview, MERGE_REPOSITORY_VARIABLE, ReviewEndCause};
use crate::context::session_usage::add_estimated_usage_if_cost_is_missing;
use crate::hook_invocation::{REVIEW_VARIABLE, RUN_VARIABLE};
use crate::plimsoll_files::is_plimsoll_file;
use crate::read_only::ReadOnlySession;
use crate::run::check_client_supports_restricted_mode;
use crate::run::remaining_budget_arguments_unless_set_by_user;
use crate::run::save_work::commit_programs_unless_repository_replaced;
use crate::run::stream_reader::StreamReader;
use crate::session_result::SessionResult;
use plimsoll_domain::git_names::{CommitId, InvalidCommitId};
use plimsoll_domain::prompt::{ReviewRequest, render_review_prompt};
use plimsoll_domain::review::{ReviewSession, quote_first_items};
use plimsoll_domain::text::truncate_end;
use plimsoll_domain::{ProcessExit, SessionId, SessionRecord};
use plimsoll_launcher::client::{self, ClientLaunch, LaunchedClient};
use plimsoll_launcher::git::{self, ChangeSummary, summarize_changes_since};
use plimsoll_launcher::plimsoll_repository::{PlimsollRepository, PlimsollRepositoryError};
use plimsoll_launcher::process::{self, ProcessIdentity};
use plimsoll_launcher::wip::{WipCommitOutcome, commit_wip};
use plimsoll_policy::gate::SessionEvidence;
use plimsoll_policy::models::MODEL_OPTION;
use plimsoll_policy::{bounds, review};
use plimsoll_store::{Durability, StoreError, clock, disk, environment, layout};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The time limit of a review session, which reads a change and answers once.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// How long the session may take to exit when it is ended.
const GRACE_PERIOD: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How much of a diff is sent: about 15,000 tokens. The reviewer can read the files themselves.
const MAX_DIFF_BYTES: usize = 60_000;
/// The run's own files are not part of the work, even if a repository tracks them.
const EXCLUDED_PATHS: [&str; 5] =
    [".claude/plimsoll/*", ".claude/handoffs/*", ".claude/ralph-state.json*", "PROMPT.md", "progress.txt"];

/// Why the work could not be prepared for a review.
#[derive(Debug, thiserror::Error)]
enum ReviewInputError {
    #[error("git could not show what has changed")]
    GitFailed,
    #[error("what was left uncommitted cannot be committed: {0}")]
    CommitRefused(String),
    #[error(transparent)]
    BadCommit(#[from] InvalidCommitId),
    #[error(transparent)]
    Repository(#[from] PlimsollRepositoryError),
}

/// The work that a session reviews.
struct WorkToReview {
    changes: ChangeSummary,
    /// The folder in which the session reads.
    reading_folder: PathBuf,
    /// The folder that was created for the session and is removed after it.
    export_folder: Option<PathBuf>,
}

impl DueReview<'_, '_> {
    /// Recovers the review session that an earlier process recorded for these items, and follows it to its
    /// end. A session for other items is ended. A session without an answer is removed from the state, and its
    /// usage is counted.
    pub(super) fn recover_or_discard_open_session(
        &mut self,
        items: &[String],
    ) -> Result<Option<(ReviewSession, EndedReview)>, StoreError> {
        let Some(session) = self.state.outcomes.reviews.open_session.clone() else { return Ok(None) };
        let is_same_review = session.iteration == self.state.iteration
            && session.session_id == self.state.session_id
            && session.items == items;
        let orphan = self.find_orphaned_client(&session);
        if let Some(orphan) = orphan.filter(|_| is_same_review) {
            let ended_review = self.follow_client_to_end(&session, LaunchedClient::Adopted(orphan));
            return Ok(Some((session, ended_review)));
        }
        if let Some(orphan) = orphan {
            LaunchedClient::Adopted(orphan).terminate_with_descendants(GRACE_PERIOD);
        }
        let mut reader = self.open_reader(&session);
        reader.read_new_events();
        let result = self.session_result_estimating_missing_cost(&session, &reader, ProcessExit::default());
        if is_same_review && reader.has_result() {
            return Ok(Some((session, EndedReview { result, end_cause: ReviewEndCause::Finished })));
        }
        self.update_state(|state| {
            super::add_review_usage_and_return_cost(self.context, state, &result);
            state.outcomes.reviews.open_session = None;
        })?;
        Ok(None)
    }

    /// Returns the session's client if it is alive: identified by its recorded pid and start time, or by the
    /// session and run ids after a kill before the pid was written.
    fn find_orphaned_client(&self, session: &ReviewSession) -> Option<ProcessIdentity> {
        let recorded_process = session.pid.zip(session.process_started_at_ticks);
        let recorded_identity =
            recorded_process.map(|(pid, start_ticks)| ProcessIdentity { pid, start_time: start_ticks });
        let marker = format!("{REVIEW_VARIABLE}={}", self.state.run_id);
        recorded_identity
            .filter(|identity| process::is_alive(*identity))
            .or_else(|| process::find_oldest_process_by_argument_and_env(&session.id, &marker))
    }

    /// Records a new session before its client starts, so that a client whose pid was not recorded can be
    /// found.
    pub(super) fn create_and_record_session(&self, items: Vec<String>) -> Result<ReviewSession, StoreError> {
        let session = ReviewSession {
            id: SessionId::from(uuid::Uuid::new_v4().to_string()),
            iteration: self.state.iteration,
            session_id: self.state.session_id.clone(),
            items,
            started_at: clock::to_timestamp(clock::now()),
            ..ReviewSession::default()
        };
        self.update_state(|state| state.outcomes.reviews.open_session = Some(session.clone()))?;
        Ok(session)
    }

    pub(super) fn run_session(
        &mut self,
        session: &ReviewSession,
        evidence: &SessionEvidence,
    ) -> Result<EndedReview, StoreError> {
        let failed_review = |message: &str| EndedReview {
            result: SessionResult::default(),
            end_cause: ReviewEndCause::Failed(message.to_owned()),
        };
        // A resumed run may use another client than the one that it began with.
        if let Err(error) = check_client_supports_restricted_mode(
            "--review",
            self.reviewer.client_program,
            self.reviewer.client_version,
        ) {
            return Ok(failed_review(&error.to_string()));
        }
        let work = match self.collect_work_to_review_committing_in_worktree(session) {
            Ok(work) => work,
            Err(error) => return Ok(failed_review(&error.to_string())),
        };
        let changes = work.changes;
        let check_results =
            evidence.verify_outcomes.iter().map(|outcome| (outcome.command.clone(), outcome.summary.clone()));
        let request = ReviewRequest {
            items: session.items.clone(),
            check_results: check_results.collect(),
            diff_stat: changes.diff_stat,
            diff: changes.diff,
            is_diff_truncated: changes.is_truncated,
            untracked_files: changes.untracked_files,
        };
        let prompt_path = self.output_path(session, "prompt.md");
        let prompt_text = render_review_prompt(&request, &self.state.promise_code);
        disk::replace(&prompt_path, prompt_text.text().as_bytes(), Durability::Lazy)?;
        let ended_review =
            match self.start_read_only_client_and_record_pid(session, &prompt_path, &work.reading_folder)? {
                Ok(client) => self.follow_client_to_end(session, client),
                Err(error) => failed_review(&error.to_string()),
            };
        if let Some(export_folder) = work.export_folder {
            disk::remove_folder_and_contents(&export_folder)?;
        }
        Ok(ended_review)
    }

    /// Collects the changes to review and the folder in which the session reads. For an item of a parallel run
    /// this commits the remaining work and exports the commit from the repository in which results are merged,
    /// because the worktree may contain something else.
    fn collect_work_to_review_committing_in_worktree(
        &self,
        session: &ReviewSession,
    ) -> Result<WorkToReview, ReviewInputError> {
        let base_commit = review::commit_before_work_or_iteration_start(self.state, &session.items);
        let base_commit = base_commit.map(CommitId::parse).transpose()?;
        let git_failed = || ReviewInputError::GitFailed;
        let root = self.context.project.root();
        let Some(merge_repository) = environment::variable(MERGE_REPOSITORY_VARIABLE) else {
            let changes =
                summarize_changes_since(root, base_commit.as_ref(), &EXCLUDED_PATHS, MAX_DIFF_BYTES)
                    .ok_or_else(git_failed)?;
            return Ok(WorkToReview { changes, reading_folder: root.to_owned(), export_folder: None });
        };
        let (working_tree, _) = layout::find_repository(root).ok_or_else(git_failed)?;
        let project_path_in_repository = root.strip_prefix(working_tree).map_err(|_| git_failed())?;
        let message = format!(
            "plimsoll: what was left uncommitted of {}",
            truncate_end(&quote_first_items(&session.items), 60)
        );
        let allowed_programs = commit_programs_unless_repository_replaced(self.context.project, self.state);
        if let WipCommitOutcome::Refused { reason } =
            commit_wip(root, &message, &is_plimsoll_file, allowed_programs)
        {
            return Err(ReviewInputError::CommitRefused(reason));
        }
        let commit = git::head_commit(root).ok_or_else(git_failed)?;
        let repository_copy =
            PlimsollRepository::open_or_copy_from_clone(working_tree, Path::new(&merge_repository))?;
        let name = working_tree.file_name().unwrap_or_default().to_string_lossy();
        let export_folder = working_tree.with_file_name(format!("{EXPORT_FOLDER_PREFIX}{name}"));
        repository_copy.fetch_and_verify_commit_from_clone(&commit)?;
        repository_copy.export_unfiltered_files_to_emptied_folder(&commit, &export_folder)?;
        let changes = repository_copy.summarize_changes_between(
            base_commit.as_ref(),
            &commit,
            project_path_in_repository,
            &EXCLUDED_PATHS,
            MAX_DIFF_BYTES,
        );
        let reading_folder = export_folder.join(project_path_in_repository);
        Ok(WorkToReview {
            changes: changes.ok_or_else(git_failed)?,
            reading_folder,
            export_folder: Some(export_folder),
        })
    }

    fn start_read_only_client_and_record_pid(
        &self,
        session: &ReviewSession,
        prompt_path: &Path,
        folder: &Path,
    ) -> Result<Result<LaunchedClient, client::ClientStartError>, StoreError> {
        let ReadOnlySession { arguments, mut environment } =
            ReadOnlySession::from_user_settings_without_permissions();
        // The session belongs to no run, and Plimsoll's hooks ignore it. Added last, so that no variable of
        // the user's settings replaces it.
        environment.push((REVIEW_VARIABLE.to_owned(), self.state.run_id.to_string()));
        let start_result = client::start_client(ClientLaunch {
            program: self.reviewer.client_program,
            arguments: &self.client_arguments(session, arguments),
            folder,
            environment: &environment,
            removed_variables: &[RUN_VARIABLE],
            stdin: disk::open(prompt_path)?,
            stdout: disk::open_for_append(&self.output_path(session, "jsonl"))?,
            stderr: disk::open_for_append(&self.output_path(session, "err"))?,
        });
        let client = match start_result {
            Ok(client) => client,
            Err(error) => return Ok(Err(error)),
        };
        if let Some(identity) = client.identity() {
            self.reviewer.watchdog.watch_client(identity, None);
            self.update_state(|state| {
                if let Some(recorded_session) = state
                    .outcomes
                    .reviews
                    .open_session
                    .as_mut()
                    .filter(|open_session| open_session.id == session.id)
                {
                    (recorded_session.pid, recorded_session.process_started_at_ticks) =
                        (Some(identity.pid), Some(identity.start_time));
                }
            })?;
        }
        Ok(Ok(client))
    }

    fn client_arguments(&self, session: &ReviewSession, read_only_arguments: Vec<String>) -> Vec<String> {
        let user_arguments = review::reviewer_arguments(self.reviewer.client_arguments);
        let fixed_arguments =
            ["-p", "--output-format", "stream-json", "--verbose", "--session-id", &session.id];
        fixed_arguments
            .into_iter()
            .map(str::to_owned)
            .chain(remaining_budget_arguments_unless_set_by_user(
                self.context,
                self.state,
                self.reviewer.hook_support,
                &user_arguments,
            ))
            .chain(user_arguments.iter().cloned())
            .chain(
                self.review_model().into_iter().flat_map(|model| [MODEL_OPTION.to_owned(), model.to_owned()]),
            )
            .chain(read_only_arguments)
            .collect()
    }

    pub(super) fn review_model(&self) -> Option<&str> {
        self.state.options.review_model.as_deref().or(self.reviewer.session_model)
    }

    /// Follows the session to its end, and ends it when there is a reason to.
    fn follow_client_to_end(&self, session: &ReviewSession, mut client: LaunchedClient) -> EndedReview {
        let mut reader = self.open_reader(session);
        if let Some(identity) = client.identity() {
            self.reviewer.watchdog.watch_client(identity, None);
        }
        let started_at = Instant::now();
        let ended_review = loop {
            // Checked before the output is read, so that everything it wrote until its end is also read.
            let exit = client.exit_if_ended();
            reader.read_new_events();
            if let Some(exit) = exit {
                break EndedReview {
                    result: self.session_result_estimating_missing_cost(session, &reader, exit),
                    end_cause: ReviewEndCause::Finished,
                };
            }
            if reader.restart_state_check_interval_if_due()
                && let Some(cause) = self.reason_to_end_client(&reader, started_at)
            {
                client.terminate_with_descendants(GRACE_PERIOD);
                reader.read_new_events();
                break EndedReview {
                    result: self.session_result_estimating_missing_cost(
                        session,
                        &reader,
                        ProcessExit::default(),
                    ),
                    end_cause: cause,
                };
            }
            std::thread::sleep(POLL_INTERVAL);
        };
        self.reviewer.watchdog.clear_client();
        ended_review
    }

    /// Returns how the session ended and what it used. Its hooks record nothing, so its transcript is found
    /// by its id.
    fn session_result_estimating_missing_cost(
        &self,
        session: &ReviewSession,
        reader: &StreamReader,
        exit: ProcessExit,
    ) -> SessionResult {
        add_estimated_usage_if_cost_is_missing(
            self.context.project,
            &session.id,
            &SessionRecord::default(),
            reader.session_result(exit),
        )
    }

    fn reason_to_end_client(&self, reader: &StreamReader, started_at: Instant) -> Option<ReviewEndCause> {
        let minutes = REVIEW_TIMEOUT.as_secs() / 60;
        match () {
            () if (self.should_abort)() => Some(ReviewEndCause::StoppedByUser),
            // Its result is kept.
            () if reader.lingers_after_result(self.reviewer.linger_timeout) => Some(ReviewEndCause::Finished),
            () if bounds::passed_deadline(self.state, &clock::to_timestamp(clock::now())).is_some() => {
                Some(ReviewEndCause::DeadlineReached)
            }
            () if started_at.elapsed() > REVIEW_TIMEOUT => {
                Some(ReviewEndCause::Failed(format!("it gave no answer within {minutes} minutes")))
            }
            () => None,
        }
    }

    fn open_reader(&self, session: &ReviewSession) -> StreamReader {
        StreamReader::new(self.output_path(session, "jsonl"), self.reviewer.client_version)
    }

    fn output_path(&self, session: &ReviewSession, extension: &str) -> PathBuf {
        let short_id: String = session.id.chars().take(8).collect();
        let file_name = format!("review-{:04}-{short_id}.{extension}", session.iteration);
        self.context.project.run_folder(&self.state.run_id).join(file_name)
    }
}
