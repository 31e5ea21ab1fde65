//! The status of a fleet, its items and its workers, read from the views for dashboards.

use super::Fleet;
use crate::database::Database;
use crate::database_error::FleetError;
use crate::rows::{from_i64_or_zero, read_commits};
use crate::schema;
use chrono::{DateTime, Duration, Utc};
use plimsoll_domain::board::BoardMillis;
use plimsoll_store::clock;
use postgres::{Error, Row};
use serde::{Serialize, Serializer};

const READ_FLEET_STATUS: &str = "
    select fleet, repo, target, deliver, began_at, ended, draining, items, open, at_work, offered, merged, aside, questions, workers,
      machines, cost, max_cost, tokens, sessions, (extract(epoch from created) * 1000)::bigint as created,
      (extract(epoch from paused_until) * 1000)::bigint as paused_until, {fleet}.moment() as now
    from {fleet}.fleet_status";

/// The status of a fleet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetStatus {
    pub name: String,
    /// Address of the git remote through which the machines exchange their work.
    #[serde(rename = "repo")]
    pub remote_address: String,
    /// The branch into which items are merged.
    #[serde(rename = "target")]
    pub target_branch: String,
    /// `branch` or `merge`.
    #[serde(rename = "deliver")]
    pub delivery_mode: String,
    /// The commit at which the fleet started.
    #[serde(rename = "began_at")]
    pub start_commit: String,
    #[serde(rename = "created", serialize_with = "serialize_timestamp")]
    pub created_at: BoardMillis,
    /// Why it has ended: `done` or `stopped`.
    #[serde(rename = "ended")]
    pub end_reason: Option<String>,
    /// True if no new item is claimed.
    #[serde(rename = "draining")]
    pub is_draining: bool,
    /// No item is claimed before this time.
    #[serde(serialize_with = "serialize_optional_timestamp")]
    pub paused_until: Option<BoardMillis>,
    /// Number of items by stage.
    #[serde(rename = "items")]
    pub item_counts: ItemCounts,
    /// Number of workers whose last report is no older than a lease.
    #[serde(rename = "workers")]
    pub active_workers: u64,
    /// Number of machines of these workers.
    #[serde(rename = "machines")]
    pub active_machines: u64,
    /// Cost of all workers so far, in dollars.
    #[serde(rename = "cost_usd")]
    pub cost_usd: f64,
    /// Cost limit in dollars.
    #[serde(rename = "max_cost_usd")]
    pub max_cost_usd: Option<f64>,
    /// Tokens of the sessions that have ended.
    #[serde(rename = "tokens")]
    pub token_count: u64,
    /// Number of sessions that have ended.
    #[serde(rename = "sessions")]
    pub session_count: u64,
    /// When this was read, by the database's clock.
    #[serde(skip)]
    pub read_at: BoardMillis,
}

/// Number of items by stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ItemCounts {
    #[serde(rename = "all")]
    pub total: u64,
    /// Not claimed.
    pub open: u64,
    /// Items leased by a worker.
    #[serde(rename = "at_work")]
    pub in_progress: u64,
    /// Waiting to be merged.
    pub offered: u64,
    pub merged: u64,
    #[serde(rename = "aside")]
    pub set_aside: u64,
    /// Items set aside that wait for an answer.
    #[serde(rename = "questions")]
    pub waiting_for_answer: u64,
}

/// The status of an item.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ItemStatus {
    /// Number in the plan, counted from 1.
    #[serde(rename = "number")]
    pub item_number: u32,
    /// The item's text in the plan.
    pub text: String,
    /// `open`, `leased`, `offered`, `merged` or `aside`.
    pub stage: String,
    /// How many attempts failed or could not be merged.
    #[serde(rename = "tries")]
    pub failed_merge_count: u32,
    /// Epoch of its current attempt.
    pub epoch: u64,
    /// The worker that holds the item's lease.
    #[serde(rename = "worker")]
    pub worker_name: Option<String>,
    /// Why it was set aside: `tries`, `question` or `ended`.
    #[serde(rename = "aside")]
    pub set_aside_kind: Option<String>,
    /// The question, or why its run ended.
    #[serde(rename = "reason")]
    pub set_aside_reason: Option<String>,
    /// Why its work was not merged, for its next session.
    #[serde(rename = "note")]
    pub merge_failure_note: String,
    /// Every commit with which a merger was about to merge it.
    #[serde(rename = "landings")]
    pub attempted_merge_commits: Vec<String>,
    /// The last question that was answered, and the answer.
    #[serde(rename = "answered")]
    pub answered_question: Option<AnsweredQuestion>,
    /// Cost of its sessions that have ended, in dollars.
    #[serde(rename = "cost_usd")]
    pub cost_usd: f64,
    /// Tokens of these sessions.
    #[serde(rename = "tokens")]
    pub token_count: u64,
    /// Number of these sessions.
    #[serde(rename = "sessions")]
    pub session_count: u32,
}

/// The settings of the plan that limit and check the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VerifyCommandsAndSessionLimit {
    pub(crate) verify_commands: Vec<String>,
    /// Session limit of all workers on all machines.
    pub(crate) max_sessions: Option<u64>,
}

/// A question with the user's answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnsweredQuestion {
    pub question: String,
    pub answer: String,
}

/// The status of a worker.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkerStatus {
    pub name: String,
    /// The computer's name.
    #[serde(rename = "machine")]
    pub machine_name: String,
    /// Process ID of the worker's parent process on that machine.
    pub pid: u32,
    /// Version of Plimsoll.
    #[serde(rename = "version")]
    pub plimsoll_version: String,
    /// When its first report arrived.
    #[serde(rename = "started", serialize_with = "serialize_timestamp")]
    pub first_report_at: BoardMillis,
    /// When its last report arrived.
    #[serde(rename = "seen", serialize_with = "serialize_timestamp")]
    pub last_report_at: BoardMillis,
    /// True if its last report is no older than a lease.
    #[serde(rename = "is_there")]
    pub is_active: bool,
    /// Number of its item.
    #[serde(rename = "item")]
    pub item_number: Option<u32>,
    /// Its current session.
    #[serde(rename = "session")]
    pub session_id: String,
    /// Used percent of its context window.
    #[serde(rename = "percent")]
    pub context_percent: Option<f64>,
    /// Cost in dollars.
    #[serde(rename = "cost_usd")]
    pub cost_usd: f64,
}

const READ_PLAN_LIMITS: &str = "select verify, max_sessions from {fleet}.plan";
const READ_ITEM_STATUSES: &str = "
    select item, text, stage, tries, epoch, worker, aside, reason, note, landings, question, answer, cost, tokens, sessions
    from {fleet}.fleet_items order by item";
const READ_WORKER_STATUSES: &str = "
    select worker, machine, pid, version, is_there, item, session, percent, cost,
      (extract(epoch from started) * 1000)::bigint as started, (extract(epoch from seen) * 1000)::bigint as seen
    from {fleet}.fleet_workers order by worker";

/// Converts a timestamp of the database.
pub(crate) fn to_utc(millis: BoardMillis) -> DateTime<Utc> {
    let subsecond_millis = i64::try_from(millis % 1_000).unwrap_or_default();
    clock::from_unix_seconds(millis / 1_000).unwrap_or_default() + Duration::milliseconds(subsecond_millis)
}

fn serialize_timestamp<S: Serializer>(millis: &BoardMillis, serializer: S) -> Result<S::Ok, S::Error> {
    clock::to_millis_timestamp(to_utc(*millis)).serialize(serializer)
}

fn serialize_optional_timestamp<S: Serializer>(
    millis: &Option<BoardMillis>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    millis.map(|timestamp| clock::to_millis_timestamp(to_utc(timestamp))).serialize(serializer)
}

impl Fleet {
    /// Reads the status of the fleet.
    pub fn read_status(&mut self) -> Result<FleetStatus, FleetError> {
        let status =
            self.query_and_map("read the fleet", READ_FLEET_STATUS, &[], fleet_status_from_row)?.pop();
        status.ok_or_else(|| FleetError::FleetNotFound(self.name.to_string()))
    }

    /// Reads the verify commands and the session limit.
    pub(crate) fn read_verify_commands_and_session_limit(
        &mut self,
    ) -> Result<VerifyCommandsAndSessionLimit, FleetError> {
        let to_limits = |row: &Row| {
            Ok(VerifyCommandsAndSessionLimit {
                verify_commands: row.try_get("verify")?,
                max_sessions: row.try_get::<_, Option<i64>>("max_sessions")?.map(from_i64_or_zero),
            })
        };
        let limits = self.query_and_map("look at the fleet", READ_PLAN_LIMITS, &[], to_limits)?.pop();
        limits.ok_or_else(|| FleetError::FleetNotFound(self.name.to_string()))
    }

    /// Reads the items, in the plan's order.
    pub fn read_item_statuses(&mut self) -> Result<Vec<ItemStatus>, FleetError> {
        self.query_and_map("read the items", READ_ITEM_STATUSES, &[], item_status_from_row)
    }

    /// Reads all workers, including those of members that have left.
    pub fn read_worker_statuses(&mut self) -> Result<Vec<WorkerStatus>, FleetError> {
        self.query_and_map("read the workers", READ_WORKER_STATUSES, &[], worker_status_from_row)
    }
}

fn item_status_from_row(row: &Row) -> Result<ItemStatus, Error> {
    let (question, answer): (Option<String>, Option<String>) =
        (row.try_get("question")?, row.try_get("answer")?);
    Ok(ItemStatus {
        item_number: to_u32_or_zero(row.try_get("item")?),
        text: row.try_get("text")?,
        stage: row.try_get("stage")?,
        failed_merge_count: to_u32_or_zero(row.try_get("tries")?),
        epoch: from_i64_or_zero(row.try_get("epoch")?),
        worker_name: row.try_get("worker")?,
        set_aside_kind: row.try_get("aside")?,
        set_aside_reason: row.try_get("reason")?,
        merge_failure_note: row.try_get("note")?,
        attempted_merge_commits: read_commits(row, "landings")?,
        answered_question: question
            .zip(answer)
            .map(|(question, answer)| AnsweredQuestion { question, answer }),
        cost_usd: row.try_get("cost")?,
        token_count: from_i64_or_zero(row.try_get("tokens")?),
        session_count: to_u32_or_zero(row.try_get("sessions")?),
    })
}

fn worker_status_from_row(row: &Row) -> Result<WorkerStatus, Error> {
    Ok(WorkerStatus {
        name: row.try_get("worker")?,
        machine_name: row.try_get("machine")?,
        pid: u32::try_from(row.try_get::<_, i64>("pid")?).unwrap_or_default(),
        plimsoll_version: row.try_get("version")?,
        first_report_at: from_i64_or_zero(row.try_get("started")?),
        last_report_at: from_i64_or_zero(row.try_get("seen")?),
        is_active: row.try_get("is_there")?,
        item_number: row.try_get::<_, Option<i32>>("item")?.map(to_u32_or_zero),
        session_id: row.try_get("session")?,
        context_percent: row.try_get("percent")?,
        cost_usd: row.try_get("cost")?,
    })
}

fn to_u32_or_zero(number: i32) -> u32 {
    u32::try_from(number).unwrap_or_default()
}

/// The status of every fleet that the role may see.
#[derive(Debug)]
pub struct AllStatuses {
    /// The oldest first.
    pub statuses: Vec<FleetStatus>,
    /// An error for each fleet that cannot be read, for example because another version of Plimsoll has created it.
    pub errors: Vec<FleetError>,
}

/// Reads the status of every fleet that the role may see.
pub fn read_all_statuses(mut database: Database) -> Result<AllStatuses, FleetError> {
    let (mut statuses, mut errors) = (Vec::new(), Vec::new());
    for name in schema::list_fleet_names(&mut database)? {
        match schema::check_schema_version(&mut database, &name) {
            Ok(()) => {}
            // The fleet was deleted after the list was read.
            Err(FleetError::FleetNotFound(_)) => continue,
            Err(error @ FleetError::SchemaMismatch { .. }) => {
                errors.push(error);
                continue;
            }
            Err(error) => return Err(error),
        }
        let mut fleet = Fleet { database, name };
        match fleet.read_status() {
            Ok(status) => statuses.push(status),
            Err(FleetError::FleetNotFound(_)) => {}
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => errors.push(error),
        }
        database = fleet.database;
    }
    statuses.sort_by_key(|status| (status.created_at, status.name.clone()));
    Ok(AllStatuses { statuses, errors })
}

fn fleet_status_from_row(row: &Row) -> Result<FleetStatus, Error> {
    let read_count = |name: &str| row.try_get(name).map(from_i64_or_zero);
    Ok(FleetStatus {
        name: row.try_get("fleet")?,
        remote_address: row.try_get("repo")?,
        target_branch: row.try_get("target")?,
        delivery_mode: row.try_get("deliver")?,
        start_commit: row.try_get("began_at")?,
        created_at: read_count("created")?,
        end_reason: row.try_get("ended")?,
        is_draining: row.try_get("draining")?,
        paused_until: row.try_get::<_, Option<i64>>("paused_until")?.map(from_i64_or_zero),
        item_counts: ItemCounts {
            total: read_count("items")?,
            open: read_count("open")?,
            in_progress: read_count("at_work")?,
            offered: read_count("offered")?,
            merged: read_count("merged")?,
            set_aside: read_count("aside")?,
            waiting_for_answer: read_count("questions")?,
        },
        active_workers: read_count("workers")?,
        active_machines: read_count("machines")?,
        cost_usd: row.try_get("cost")?,
        max_cost_usd: row.try_get("max_cost")?,
        token_count: read_count("tokens")?,
        session_count: read_count("sessions")?,
        read_at: read_count("now")?,
    })
}
