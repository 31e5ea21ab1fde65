//! The members of a fleet, and the reports of their workers.

use super::Fleet;
use crate::database::Parameter;
use crate::database_error::FleetError;
use crate::rows::index_to_i32_saturating;
use plimsoll_domain::workers::MemberToken;
use postgres::types::Type;
use std::fmt;

const REPORT_WORKER: &str = "select {fleet}.report_worker($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
const LEAVE_FLEET: &str = "select {fleet}.leave_fleet($1, $2)";
const RECORD_MEMBER_EVENT: &str = "select {fleet}.record_member_event($1, $2, $3, $4, $5)";

/// A member of a fleet: the clone of a machine that has joined.
#[derive(Clone, PartialEq, Eq)]
pub struct Member {
    /// Unique in the fleet.
    name: String,
    /// The secret by which the database knows the member. The first token that is used for a name belongs to it.
    token: String,
}

impl Member {
    pub fn new(name: &str, token: &MemberToken) -> Member {
        Member { name: name.to_owned(), token: token.as_str().to_owned() }
    }

    /// Returns the first two parameters of every function that a member calls.
    pub(super) fn parameters(&self) -> [Parameter<'_>; 2] {
        [(&self.name, Type::TEXT), (&self.token, Type::TEXT)]
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Member").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A periodic report of a worker's parent process.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkerReport {
    /// Unique among the workers of the member, from 1.
    pub worker_number: usize,
    /// The computer's name.
    pub machine_name: String,
    /// The parent process on that machine.
    pub pid: u32,
    pub plimsoll_version: String,
    /// The current session, or empty.
    pub session_id: String,
    /// Used percent of its context window.
    pub context_percent: Option<f64>,
    /// Cost since the worker started, in dollars. A total and not an increment, so that a repeated report is not counted twice.
    pub total_cost_usd: f64,
    /// Index of its item in the plan; `None` between two items.
    pub item_index: Option<usize>,
}

impl Fleet {
    /// Inserts or updates the row of a member's worker, with the current time. Fails if the fleet was deleted.
    pub fn record_worker_report(&mut self, member: &Member, report: &WorkerReport) -> Result<(), FleetError> {
        let (pid, place) = (i64::from(report.pid), report.item_index.map(index_to_i32_saturating));
        let worker_number = index_to_i32_saturating(report.worker_number);
        let [name, token] = member.parameters();
        let parameters: [Parameter<'_>; 10] = [
            name,
            token,
            (&worker_number, Type::INT4),
            (&report.machine_name, Type::TEXT),
            (&pid, Type::INT8),
            (&report.plimsoll_version, Type::TEXT),
            (&report.session_id, Type::TEXT),
            (&report.context_percent, Type::FLOAT8),
            (&report.total_cost_usd, Type::FLOAT8),
            (&place, Type::INT4),
        ];
        self.query("report a worker", REPORT_WORKER, &parameters).map(drop)
    }

    /// Marks the workers of a member that ends as gone, so that they do not count as active until their leases run out.
    pub fn leave_fleet(&mut self, member: &Member) -> Result<(), FleetError> {
        self.query("leave the fleet", LEAVE_FLEET, &member.parameters()).map(drop)
    }

    /// Writes an event about a member into the journal.
    pub(crate) fn record_member_event(
        &mut self,
        member: &Member,
        kind: MemberEventKind,
        item: Option<usize>,
        detail: &str,
    ) -> Result<(), FleetError> {
        let place = item.map(index_to_i32_saturating);
        let kind_name = match kind {
            MemberEventKind::Joined => "joined",
            MemberEventKind::MergeUnconfirmed => "unconfirmed",
        };
        let [name, token] = member.parameters();
        let parameters: [Parameter<'_>; 5] =
            [name, token, (&kind_name, Type::TEXT), (&place, Type::INT4), (&detail, Type::TEXT)];
        self.query("write the journal", RECORD_MEMBER_EVENT, &parameters).map(drop)
    }
}

/// The kinds of events that a member writes about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemberEventKind {
    Joined,
    /// An item is recorded as merged, and the target branch does not contain it.
    MergeUnconfirmed,
}
