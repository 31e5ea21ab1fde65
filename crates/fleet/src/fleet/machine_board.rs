//! The board as a machine at work asks for it: `flows::workers` decides by it, and knows nothing of databases.

use super::members::WorkerReport;
use super::watched::WatchedFleet;
use super::{Change, Fleet, Rows, storable};
use crate::database::Parameter;
use crate::fault::FleetError;
use crate::rows::{commit_or_none, item, moment, number, small, whole};
use plimsoll_domain::board::Aside;
use plimsoll_domain::workers::{ItemOutcome, ItemResult};
use plimsoll_flows::workers::BoardError;
use plimsoll_flows::workers::connection::{
    BoardConnection, Ended, Look, Refused, Reserved, SharedItem, UsedUp, WorkerNews,
};
use plimsoll_policy::workers::{self, Claim};
use postgres::types::Type;
use postgres::{Error, Row};
use std::collections::HashSet;
use std::time::Duration;

/// What of an item is carried from one machine to another, beside its row. The words stay where they are: all machines know them.
const ITEMS: &str = "
    select place, '' as text, needs, areas, stage, epoch, tries, worker, lease_until, sha, aside, reason, note,
      '{}'::text[] as landings, start, beyond, question, answer
    from plimsoll.item where plan = $1 and stage <> 'merged' and ($2 < 0 or place = $2) order by place";
const PLAN: &str = "
    select paused_until, merger, merger_until, merger_epoch, passed, draining, ended, max_cost, plimsoll.moment() as now,
      (select coalesce(sum(cost), 0) from plimsoll.worker where plan = $1) as cost,
      case when max_sessions <= (select coalesce(sum(sessions), 0) from plimsoll.item where plan = $1) then max_sessions end as used
    from plimsoll.plan where id = $1";
const CARRY: &str = "
    update plimsoll.item set start = $3, beyond = $4, cost = cost + $5, tokens = tokens + $6, sessions = sessions + $7, sessions_allowed = 0,
      question = coalesce($8, question), answer = case when $8 is null then answer end
    where plan = $1 and place = $2";
const BEGIN_AT: &str = "update plimsoll.item set start = $3, beyond = $4 where plan = $1 and place = $2";
const PASSED: &str = "
    update plimsoll.plan set passed = passed || array(select unnest($2::text[]) except select unnest(passed)) where id = $1
    returning id";
const END: &str = "
    with over as (
      update plimsoll.plan set ended = 'done' where id = $1 and ended is null
        and not exists (select from plimsoll.item where plan = $1 and stage <> 'merged')
      returning id
    )
    insert into plimsoll.event (at, plan, kind) select plimsoll.moment(), id, 'done' from over returning plan";

/// Which machine this is.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    /// Its name in the fleet: of this clone on this computer alone.
    pub(crate) member: String,
    /// The computer's name.
    pub(crate) name: String,
    pub(crate) pid: u32,
}

/// A fleet's board for one machine. Each answer is waited for with an end: a member has sessions to look after.
pub(crate) struct MachineBoard {
    pub(crate) fleet: WatchedFleet,
    pub(crate) machine: Machine,
}

impl MachineBoard {
    fn report_of(&self, news: &WorkerNews) -> WorkerReport {
        WorkerReport {
            name: format!("{}/{}", self.machine.member, news.worker),
            machine: self.machine.name.clone(),
            pid: self.machine.pid,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            session: news.session.clone(),
            percent: news.percent.map(|percent| percent as f64),
            cost: news.cost_usd,
            item: news.item,
        }
    }

    fn ask<T: Send + 'static>(
        &mut self,
        question: impl FnOnce(&mut Fleet) -> Result<T, FleetError> + Send + 'static,
    ) -> Result<T, BoardError> {
        self.fleet.ask("work on the board", question).map_err(meant)
    }
}

impl Fleet {
    fn shared_item(&mut self, place: usize) -> Result<SharedItem, FleetError> {
        let parameters: [Parameter<'_>; 2] = [(&self.plan, Type::INT8), (&small(place), Type::INT4)];
        let found = self.database.read("read an item", ITEMS, &parameters, shared_item)?.pop();
        Ok(found.map(|(_, item)| item).unwrap_or_default())
    }

    fn look(&mut self) -> Result<Look, FleetError> {
        let Fleet { database, plan, name, .. } = self;
        database.transaction("look at the board", |transaction| {
            let row = transaction.query_typed_opt(PLAN, &[(plan, Type::INT8)])?;
            let row = row.ok_or_else(|| FleetError::NoPlan(name.clone()))?;
            let rows = transaction.query_typed(ITEMS, &[(plan, Type::INT8), (&-1_i32, Type::INT4)])?;
            Ok(Look {
                now: moment(row.try_get("now")?),
                whole: whole(&row)?,
                items: rows.iter().map(shared_item).collect::<Result<_, _>>()?,
                passed: row.try_get("passed")?,
                is_draining: row.try_get("draining")?,
                used_up: used_up(&row)?,
                ended: match row.try_get::<_, Option<&str>>("ended")? {
                    Some("done") => Some(Ended::Done),
                    Some(_) => Some(Ended::Stopped),
                    None => None,
                },
            })
        })
    }

    /// Takes what has become of an item.
    pub fn record_result(&mut self, result: &ItemResult) -> Result<(), FleetError> {
        let (kind, doing, detail) = match &result.outcome {
            ItemOutcome::Offered => ("offered", "offer the work on an item", result.start.clone()),
            ItemOutcome::Failed(reason) => ("failed", "give an item back", storable(reason)),
            ItemOutcome::Asked(question) => ("set_aside", "set an item aside", storable(question)),
            ItemOutcome::GivenBack => ("given_back", "give an item back", String::new()),
            ItemOutcome::Kept => return Ok(()),
        };
        let plan = self.plan;
        let (place, tokens) = (small(result.item), number(result.used.tokens));
        let sessions = i32::try_from(result.used.sessions).unwrap_or(i32::MAX);
        let question = match &result.outcome {
            ItemOutcome::Asked(question) => Some(storable(question)),
            ItemOutcome::Offered | ItemOutcome::Failed(_) | ItemOutcome::GivenBack | ItemOutcome::Kept => {
                None
            }
        };
        let change = Change { doing, kind, detail: &detail };
        self.decide_and(
            change,
            Rows::Own(result.item),
            |part, _| {
                let claim = Claim { item: part.place_of(result.item), epoch: result.epoch };
                let board = &mut part.board;
                match &result.outcome {
                    ItemOutcome::Offered => workers::offer(board, claim, &result.start),
                    ItemOutcome::Failed(_) => workers::fail(board, claim, &detail),
                    ItemOutcome::Asked(_) => {
                        workers::set_aside(board, claim, Aside::Question(detail.clone()))
                    }
                    ItemOutcome::GivenBack => workers::give_back(board, claim),
                    ItemOutcome::Kept => Ok(()),
                }
            },
            |transaction| {
                let parameters: [Parameter<'_>; 8] = [
                    (&plan, Type::INT8),
                    (&place, Type::INT4),
                    (&result.start, Type::TEXT),
                    (&result.beyond, Type::TEXT),
                    (&result.used.cost_usd, Type::FLOAT8),
                    (&tokens, Type::INT8),
                    (&sessions, Type::INT4),
                    (&question, Type::TEXT),
                ];
                transaction.execute_typed(CARRY, &parameters).map(drop)
            },
        )
    }

    /// Gives an offered item back, with what its next session is told; after some tries it is set aside.
    pub fn refuse(&mut self, refused: &Refused) -> Result<(), FleetError> {
        let (note, plan) = (storable(&refused.note), self.plan);
        let (place, start, beyond) = (small(refused.item), &refused.start, &refused.beyond);
        let change = Change { doing: "give an item back", kind: "refused", detail: &note };
        self.decide_and(
            change,
            Rows::PlanAnd(refused.item),
            |part, _| {
                let item = part.place_of(refused.item);
                workers::refuse(&mut part.board, refused.merger, item, &note)
            },
            |transaction| {
                let parameters: [Parameter<'_>; 4] =
                    [(&plan, Type::INT8), (&place, Type::INT4), (start, Type::TEXT), (beyond, Type::TEXT)];
                transaction.execute_typed(BEGIN_AT, &parameters).map(drop)
            },
        )
    }

    fn keep_merger(&mut self, merger: u64) -> Result<(), FleetError> {
        let change = Change { doing: "renew the merger's lease", kind: "merger", detail: "" };
        self.decide(change, Rows::Plan, |part, now| workers::renew_merger(&mut part.board, merger, now))
    }

    fn step_down(&mut self, merger: u64) -> Result<(), FleetError> {
        let change = Change { doing: "let another be the merger", kind: "merger", detail: "" };
        self.decide(change, Rows::Plan, |part, _| workers::step_down(&mut part.board, merger))
    }

    fn found(&mut self, place: usize, commit: &str) -> Result<(), FleetError> {
        let change = Change { doing: "write down what has landed", kind: "found", detail: commit };
        self.decide(change, Rows::Own(place), |part, _| {
            let item = part.place_of(place);
            if let Some(row) = part.board.items.get_mut(item)
                && !row.landings.iter().any(|known| known == commit)
            {
                row.landings.push(commit.to_owned());
            }
            Ok(())
        })
    }

    fn note_passed(&mut self, commands: &[String]) -> Result<(), FleetError> {
        let commands: Vec<String> = commands.iter().map(|command| storable(command)).collect();
        let parameters: [Parameter<'_>; 2] = [(&self.plan, Type::INT8), (&commands, Type::TEXT_ARRAY)];
        self.database.query("keep what has passed", PASSED, &parameters).map(drop)
    }

    fn end_done(&mut self) -> Result<(), FleetError> {
        self.database.query("end the fleet", END, &[(&self.plan, Type::INT8)]).map(drop)
    }
}

fn shared_item(row: &Row) -> Result<(usize, SharedItem), Error> {
    // Git is told what these columns say.
    commit_or_none(row, "sha")?;
    let (place, board_item) = item(row)?;
    let question: Option<String> = row.try_get("question")?;
    let answer: Option<String> = row.try_get("answer")?;
    let shared = SharedItem {
        row: board_item,
        start: commit_or_none(row, "start")?,
        beyond: commit_or_none(row, "beyond")?,
        answered: question.zip(answer),
    };
    Ok((place, shared))
}

fn used_up(row: &Row) -> Result<Option<UsedUp>, Error> {
    let (cost, max_cost) = (row.try_get::<_, f64>("cost")?, row.try_get::<_, Option<f64>>("max_cost")?);
    let money = max_cost.filter(|most| cost >= *most).map(|most| UsedUp::Money(cost, most));
    let sessions = row.try_get::<_, Option<i64>>("used")?.map(|used| UsedUp::Sessions(moment(used)));
    Ok(money.or(sessions))
}

/// What it means to whoever works.
fn meant(error: FleetError) -> BoardError {
    match error {
        FleetError::Fenced(_) => BoardError::Fenced,
        error if error.may_pass() => BoardError::Away(error.to_string()),
        error => BoardError::Refused(match error.hint() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        }),
    }
}

impl BoardConnection for MachineBoard {
    fn look(&mut self) -> Result<Look, BoardError> {
        self.ask(Fleet::look)
    }

    fn claim(&mut self, worker: &str) -> Result<Option<(Claim, SharedItem)>, BoardError> {
        let worker = worker.to_owned();
        self.ask(move |fleet| {
            let Some(claim) = fleet.claim(&worker)? else { return Ok(None) };
            Ok(Some((claim, fleet.shared_item(claim.item)?)))
        })
    }

    fn renew(&mut self, claim: Claim) -> Result<(), BoardError> {
        self.ask(move |fleet| fleet.renew(claim))
    }

    fn tell(&mut self, result: &ItemResult) -> Result<(), BoardError> {
        let result = result.clone();
        self.ask(move |fleet| fleet.record_result(&result))
    }

    fn pause(&mut self, length: Duration) -> Result<(), BoardError> {
        self.ask(move |fleet| fleet.pause(length))
    }

    fn become_merger(&mut self, name: &str) -> Result<Option<u64>, BoardError> {
        let name = name.to_owned();
        self.ask(move |fleet| fleet.become_merger(&name))
    }

    fn renew_merger(&mut self, merger: u64) -> Result<(), BoardError> {
        self.ask(move |fleet| fleet.keep_merger(merger))
    }

    fn step_down(&mut self, merger: u64) -> Result<(), BoardError> {
        self.ask(move |fleet| fleet.step_down(merger))
    }

    fn land(&mut self, merger: u64, item: usize, commit: &str) -> Result<(), BoardError> {
        let commit = commit.to_owned();
        self.ask(move |fleet| fleet.land(merger, item, &commit))
    }

    fn found(&mut self, item: usize, commit: &str) -> Result<(), BoardError> {
        let commit = commit.to_owned();
        self.ask(move |fleet| fleet.found(item, &commit))
    }

    fn refuse(&mut self, refused: &Refused) -> Result<(), BoardError> {
        let refused = refused.clone();
        self.ask(move |fleet| fleet.refuse(&refused))
    }

    fn settle(&mut self, is_in_target: &dyn Fn(&str) -> bool) -> Result<Vec<usize>, BoardError> {
        let landings = self.ask(Fleet::landings)?;
        let landed: HashSet<String> = landings.into_iter().filter(|commit| is_in_target(commit)).collect();
        self.ask(move |fleet| fleet.settle_landed(&landed))
    }

    fn note_passed(&mut self, commands: &[String]) -> Result<(), BoardError> {
        let commands = commands.to_vec();
        self.ask(move |fleet| fleet.note_passed(&commands))
    }

    fn reserve(&mut self, news: &WorkerNews, sessions: u32, least_usd: f64) -> Result<Reserved, BoardError> {
        let report = self.report_of(news);
        self.ask(move |fleet| {
            fleet.report(&report)?;
            fleet.reserve(&report, sessions, least_usd)
        })
    }

    fn report(&mut self, news: &WorkerNews) -> Result<(), BoardError> {
        let report = self.report_of(news);
        self.ask(move |fleet| fleet.report(&report))
    }

    fn end(&mut self) -> Result<(), BoardError> {
        self.ask(Fleet::end_done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadline::ANSWER;
    use std::sync::{Arc, Mutex, mpsc};

    #[test]
    fn a_database_that_never_answers_is_away_and_asked_anew() {
        let (answers, comes) = mpsc::channel::<()>();
        let comes = Mutex::new(Some(comes));
        // The first connection hears nothing until the test is over.
        let open = move |_: &str| {
            let silent = comes.lock().expect("nobody panics").take();
            let _ = silent.map(|silent| silent.recv());
            Err(FleetError::NoPlan("night".to_owned()))
        };
        let machine = Machine { member: "m".to_owned(), name: "m".to_owned(), pid: 1 };
        let limit = Duration::from_millis(50);
        let fleet = WatchedFleet { open: Arc::new(open), limit, ..WatchedFleet::new("night") };
        let mut board = MachineBoard { fleet, machine };
        let away = board.look().expect_err("no answer");
        assert!(matches!(&away, BoardError::Away(why) if why.contains("no answer came within")), "{away:?}");
        board.fleet.limit = ANSWER;
        let gone = board.look().expect_err("an answer");
        assert!(
            matches!(&gone, BoardError::Refused(why) if why.contains("no fleet with the name")),
            "{gone:?}"
        );
        drop(answers);
    }
}
