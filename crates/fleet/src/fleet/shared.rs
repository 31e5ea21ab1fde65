//! The board as a machine at work asks for it: `flows::workers` decides by it, and knows nothing of databases.

use super::{Change, Fleet, Rows, lock_plan, storable};
use crate::database::Parameter;
use crate::fault::FleetError;
use crate::rows::{item, moment, number, small, whole};
use plimsoll_domain::board::Aside;
use plimsoll_domain::workers::{Letter, Word};
use plimsoll_flows::workers::shared::{
    BoardError, Ended, Look, Refused, Reserved, SharedBoard, SharedItem, WorkerNews,
};
use plimsoll_policy::workers::{self, Claim, LEASE};
use postgres::types::Type;
use postgres::{Error, Row, Transaction};
use std::time::Duration;

/// What of an item is carried from one machine to another, beside its row. The words stay where they are: all machines know them.
const ITEMS: &str = "
    select place, '' as text, needs, areas, stage, epoch, tries, worker, lease_until, sha, aside, reason, note,
      '{}'::text[] as landings, start, beyond, question, answer
    from plimsoll.item where plan = $1 and stage <> 'merged' and ($2 < 0 or place = $2) order by place";
const PLAN: &str = "
    select paused_until, merger, merger_until, merger_epoch, passed, draining, ended, plimsoll.moment() as now
    from plimsoll.plan where id = $1";
const CARRY: &str = "
    update plimsoll.item set start = $3, beyond = $4, cost = cost + $5, tokens = tokens + $6, sessions = sessions + $7,
      question = coalesce($8, question), answer = case when $8 is null then answer end
    where plan = $1 and place = $2";
const BEGIN_AT: &str = "update plimsoll.item set start = $3, beyond = $4 where plan = $1 and place = $2";
const PASSED: &str = "
    update plimsoll.plan set passed = passed || array(select unnest($2::text[]) except select unnest(passed)) where id = $1
    returning id";
/// Of a run that is over nothing is set aside any more.
const REPORT: &str = "
    with clock as materialized (select plimsoll.moment() as now)
    insert into plimsoll.worker as known (plan, name, machine, pid, version, started, seen, session, percent, cost, item)
    select plan.id, $2, $3, $4, $5, clock.now, clock.now, $6, $7, $8, $9 from plimsoll.plan, clock where plan.id = $1
    on conflict (plan, name) do update set seen = excluded.seen, pid = excluded.pid, version = excluded.version,
      session = excluded.session, percent = excluded.percent, item = excluded.item,
      cost = greatest(known.cost, excluded.cost),
      allowance = case when excluded.item is not null then known.allowance end
    returning name";
const MONEY: &str = "
    select name, cost, allowance, seen > plimsoll.moment() - $2 as is_there from plimsoll.worker where plan = $1";
const MOST: &str = "select max_cost from plimsoll.plan where id = $1";
const ALLOW: &str = "update plimsoll.worker set allowance = cost + $3 where plan = $1 and name = $2";
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

/// A fleet's board for one machine.
#[derive(Debug)]
pub(crate) struct MachineBoard {
    fleet: Fleet,
    machine: Machine,
}

impl MachineBoard {
    pub(crate) fn new(fleet: Fleet, machine: Machine) -> MachineBoard {
        MachineBoard { fleet, machine }
    }

    fn name_of(&self, worker: usize) -> String {
        format!("{}/{worker}", self.machine.member)
    }
}

impl Fleet {
    fn shared_item(&mut self, place: usize) -> Result<SharedItem, FleetError> {
        const DOING: &str = "read an item";
        let parameters: [Parameter<'_>; 2] = [(&self.plan, Type::INT8), (&small(place), Type::INT4)];
        let rows = self.database.query(DOING, ITEMS, &parameters)?;
        let found = rows.first().map(shared_item).transpose();
        let found = found.map_err(|error| self.database.unreadable(DOING, &error))?;
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
                ended: match row.try_get::<_, Option<&str>>("ended")? {
                    Some("done") => Some(Ended::Done),
                    Some(_) => Some(Ended::Stopped),
                    None => None,
                },
            })
        })
    }

    fn tell(&mut self, letter: &Letter) -> Result<(), FleetError> {
        let (kind, doing, detail) = match &letter.word {
            Word::Offered => ("offered", "offer the work on an item", letter.start.clone()),
            Word::Failed(reason) => ("failed", "give an item back", storable(reason)),
            Word::Asked(question) => ("set_aside", "set an item aside", storable(question)),
            Word::GivenBack => ("given_back", "give an item back", String::new()),
            Word::Kept => return Ok(()),
        };
        let plan = self.plan;
        let (place, tokens) = (small(letter.item), number(letter.used.tokens));
        let sessions = i32::try_from(letter.used.sessions).unwrap_or(i32::MAX);
        let question = match &letter.word {
            Word::Asked(question) => Some(storable(question)),
            Word::Offered | Word::Failed(_) | Word::GivenBack | Word::Kept => None,
        };
        let change = Change { doing, kind, detail: &detail };
        self.decide_and(
            change,
            Rows::Own(letter.item),
            |part, _| {
                let claim = Claim { item: part.place_of(letter.item), epoch: letter.epoch };
                let board = &mut part.board;
                match &letter.word {
                    Word::Offered => workers::offer(board, claim, &letter.start),
                    Word::Failed(_) => workers::fail(board, claim, &detail),
                    Word::Asked(_) => workers::set_aside(board, claim, Aside::Question(detail.clone())),
                    Word::GivenBack => workers::give_back(board, claim),
                    Word::Kept => Ok(()),
                }
            },
            |transaction| {
                let parameters: [Parameter<'_>; 8] = [
                    (&plan, Type::INT8),
                    (&place, Type::INT4),
                    (&letter.start, Type::TEXT),
                    (&letter.beyond, Type::TEXT),
                    (&letter.used.cost_usd, Type::FLOAT8),
                    (&tokens, Type::INT8),
                    (&sessions, Type::INT4),
                    (&question, Type::TEXT),
                ];
                transaction.execute_typed(CARRY, &parameters).map(drop)
            },
        )
    }

    fn refuse_at(&mut self, refused: &Refused<'_>) -> Result<(), FleetError> {
        let (note, plan) = (storable(refused.note), self.plan);
        let (place, start, beyond) = (small(refused.item), refused.start, refused.beyond);
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
                    [(&plan, Type::INT8), (&place, Type::INT4), (&start, Type::TEXT), (&beyond, Type::TEXT)];
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

    fn report_of(&mut self, name: &str, machine: &Machine, news: &WorkerNews) -> Result<(), FleetError> {
        let (pid, version) = (i64::from(machine.pid), env!("CARGO_PKG_VERSION"));
        let percent = news.percent.map(|percent| percent as f64);
        let at = news.item.map(small);
        let parameters: [Parameter<'_>; 9] = [
            (&self.plan, Type::INT8),
            (&name, Type::TEXT),
            (&machine.name, Type::TEXT),
            (&pid, Type::INT8),
            (&version, Type::TEXT),
            (&news.session, Type::TEXT),
            (&percent, Type::FLOAT8),
            (&news.cost_usd, Type::FLOAT8),
            (&at, Type::INT4),
        ];
        let rows = self.database.query("report a worker", REPORT, &parameters)?;
        if rows.is_empty() { Err(FleetError::NoPlan(self.name.clone())) } else { Ok(()) }
    }

    /// One after the other: two that looked at the same moment would share the same money.
    fn reserve(&mut self, name: &str, least: f64) -> Result<Reserved, FleetError> {
        let Fleet { database, plan, name: fleet, .. } = self;
        database.transaction("set money aside", |transaction| {
            lock_plan(transaction, *plan, fleet)?;
            let most: Option<f64> =
                transaction.query_typed_one(MOST, &[(plan, Type::INT8)])?.try_get("max_cost")?;
            let Some(most) = most else { return Ok(Reserved::Unlimited) };
            let purses = purses(transaction, *plan)?;
            let reserved = share(&purses, name, most, least);
            if let Reserved::Share(share) = reserved {
                let parameters: [Parameter<'_>; 3] =
                    [(plan, Type::INT8), (&name, Type::TEXT), (&share, Type::FLOAT8)];
                transaction.execute_typed(ALLOW, &parameters)?;
            }
            Ok(reserved)
        })
    }

    fn end_done(&mut self) -> Result<(), FleetError> {
        self.database.query("end the fleet", END, &[(&self.plan, Type::INT8)]).map(drop)
    }
}

/// A worker's money.
#[derive(Debug, Clone, PartialEq)]
struct Purse {
    name: String,
    cost: f64,
    /// It may come to so much.
    allowance: Option<f64>,
    /// It was heard of within a lease: what a dead one had set aside is free.
    is_there: bool,
}

fn purses(transaction: &mut Transaction<'_>, plan: i64) -> Result<Vec<Purse>, Error> {
    let rows = transaction.query_typed(MONEY, &[(&plan, Type::INT8), (&number(LEASE), Type::INT8)])?;
    let purse = |row: &Row| {
        Ok(Purse {
            name: row.try_get("name")?,
            cost: row.try_get("cost")?,
            allowance: row.try_get("allowance")?,
            is_there: row.try_get("is_there")?,
        })
    };
    rows.iter().map(purse).collect()
}

/// What one worker may spend next. All that was ever allowed is never more than the plan may spend.
fn share(purses: &[Purse], name: &str, most: f64, least: f64) -> Reserved {
    let spent: f64 = purses.iter().map(|purse| purse.cost).sum();
    let others = || purses.iter().filter(|purse| purse.name != name && purse.is_there);
    let set_aside = |purse: &Purse| (purse.allowance.unwrap_or_default() - purse.cost).max(0.0);
    let reserved: f64 = others().map(set_aside).sum();
    let free = most - spent - reserved;
    let idle = others().filter(|purse| set_aside(purse) < least).count();
    let share = free / (1 + idle) as f64;
    // A rest that is too small to be shared is the last one's.
    let share = if share < least && reserved < least { free } else { share };
    match () {
        () if share >= least => Reserved::Share(share),
        () if reserved >= least => Reserved::Later,
        () => Reserved::Nothing(spent, most),
    }
}

fn shared_item(row: &Row) -> Result<(usize, SharedItem), Error> {
    let (place, board_item) = item(row)?;
    let question: Option<String> = row.try_get("question")?;
    let answer: Option<String> = row.try_get("answer")?;
    let shared = SharedItem {
        row: board_item,
        start: row.try_get("start")?,
        beyond: row.try_get("beyond")?,
        answered: question.zip(answer),
    };
    Ok((place, shared))
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

impl SharedBoard for MachineBoard {
    fn look(&mut self) -> Result<Look, BoardError> {
        self.fleet.look().map_err(meant)
    }

    fn claim(&mut self, worker: &str) -> Result<Option<(Claim, SharedItem)>, BoardError> {
        let Some(claim) = self.fleet.claim(worker).map_err(meant)? else { return Ok(None) };
        let item = self.fleet.shared_item(claim.item).map_err(meant)?;
        Ok(Some((claim, item)))
    }

    fn renew(&mut self, claim: Claim) -> Result<(), BoardError> {
        self.fleet.renew(claim).map_err(meant)
    }

    fn tell(&mut self, letter: &Letter) -> Result<(), BoardError> {
        self.fleet.tell(letter).map_err(meant)
    }

    fn pause(&mut self, length: Duration) -> Result<(), BoardError> {
        self.fleet.pause(length).map_err(meant)
    }

    fn become_merger(&mut self, name: &str) -> Result<Option<u64>, BoardError> {
        self.fleet.become_merger(name).map_err(meant)
    }

    fn renew_merger(&mut self, merger: u64) -> Result<(), BoardError> {
        self.fleet.keep_merger(merger).map_err(meant)
    }

    fn step_down(&mut self, merger: u64) -> Result<(), BoardError> {
        self.fleet.step_down(merger).map_err(meant)
    }

    fn land(&mut self, merger: u64, item: usize, commit: &str) -> Result<(), BoardError> {
        self.fleet.land(merger, item, commit).map_err(meant)
    }

    fn found(&mut self, item: usize, commit: &str) -> Result<(), BoardError> {
        self.fleet.found(item, commit).map_err(meant)
    }

    fn refuse(&mut self, refused: &Refused<'_>) -> Result<(), BoardError> {
        self.fleet.refuse_at(refused).map_err(meant)
    }

    fn settle(&mut self, is_in_target: &dyn Fn(&str) -> bool) -> Result<Vec<usize>, BoardError> {
        self.fleet.settle(is_in_target).map_err(meant)
    }

    fn note_passed(&mut self, commands: &[String]) -> Result<(), BoardError> {
        self.fleet.note_passed(commands).map_err(meant)
    }

    fn reserve(&mut self, news: &WorkerNews, least_usd: f64) -> Result<Reserved, BoardError> {
        let name = self.name_of(news.worker);
        self.fleet.report_of(&name, &self.machine, news).map_err(meant)?;
        self.fleet.reserve(&name, least_usd).map_err(meant)
    }

    fn report(&mut self, news: &WorkerNews) -> Result<(), BoardError> {
        let name = self.name_of(news.worker);
        self.fleet.report_of(&name, &self.machine, news).map_err(meant)
    }

    fn end(&mut self) -> Result<(), BoardError> {
        self.fleet.end_done().map_err(meant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_may_spend_together_is_never_more_than_the_plan_may() {
        let mut purses: Vec<Purse> = ["a", "b", "c"]
            .map(|name| Purse { name: name.to_owned(), cost: 0.0, allowance: None, is_there: true })
            .into();
        for place in 0..3 {
            let name = purses[place].name.clone();
            let Reserved::Share(share) = share(&purses, &name, 6.0, 0.01) else { panic!("there is enough") };
            assert!((share - 2.0).abs() < 1e-9, "{share}");
            purses[place].allowance = Some(purses[place].cost + share);
        }
        purses[0].cost = 2.0;
        assert_eq!(share(&purses, "a", 6.0, 0.01), Reserved::Later);
        // The machine of the second is gone: what it had set aside and not spent is free.
        (purses[1].cost, purses[1].is_there) = (0.5, false);
        assert_eq!(share(&purses, "a", 6.0, 0.01), Reserved::Share(1.5));
        (purses[2].cost, purses[1].cost) = (2.0, 2.0);
        assert_eq!(share(&purses, "a", 6.0, 0.01), Reserved::Nothing(6.0, 6.0));
        // Too little for two is the last one's.
        purses[2].cost = 1.985;
        purses[2].allowance = Some(1.985);
        assert!(
            matches!(share(&purses, "a", 6.0, 0.01), Reserved::Share(share) if (share - 0.015).abs() < 1e-9)
        );
    }
}
