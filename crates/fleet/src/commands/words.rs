//! What several commands say.

use crate::fleet::standing::{ItemStanding, Standing};
use plimsoll_domain::board::Moment;
use plimsoll_domain::text::{clip, counted, one_line};
use plimsoll_terminal::duration::for_people;

/// How much of an item stands on a line, and of a reason.
const ITEM: usize = 60;
const REASON: usize = 300;

/// `2 items`, of a count that the database made.
pub(super) fn count(number: u64, noun: &str) -> String {
    counted(usize::try_from(number).unwrap_or(usize::MAX), noun)
}

/// `12 "Add a parser"`.
pub(super) fn item(item: &ItemStanding) -> String {
    format!("{} \"{}\"", item.number, clip(&one_line(&item.text), ITEM))
}

/// A foreign reason in a line.
pub(super) fn reason(words: &str) -> String {
    clip(&one_line(&plimsoll_secrets::without(words)), REASON)
}

/// Why an item is set aside, unless it waits for an answer.
pub(super) fn why_aside(item: &ItemStanding) -> String {
    let words = item.reason.as_deref().filter(|words| !words.is_empty()).unwrap_or(&item.note);
    let tries = if item.aside.as_deref() == Some("tries") { "not merged after all its tries: " } else { "" };
    format!("{tries}{}", reason(words))
}

/// What a fleet does now.
pub(super) fn state(fleet: &Standing) -> String {
    let pause = fleet.paused_until.map(|until| {
        let left = i64::try_from(until.saturating_sub(fleet.now) / 1_000).unwrap_or(i64::MAX);
        format!("paused for {} more: a usage limit", for_people(left))
    });
    match (fleet.ended.as_deref(), pause) {
        (Some("done"), _) => "done".to_owned(),
        (Some(how), _) => one_line(how),
        (None, _) if fleet.items.merged == fleet.items.all => "every item is merged".to_owned(),
        (None, _) if fleet.draining => "draining: nothing new is begun".to_owned(),
        (None, Some(pause)) => pause,
        (None, None) if is_spent(fleet) => "its money is spent: nothing new is begun".to_owned(),
        (None, None) if fleet.workers == 0 => "no worker is there".to_owned(),
        (None, None) => "at work".to_owned(),
    }
}

fn is_spent(fleet: &Standing) -> bool {
    fleet.max_cost.is_some_and(|most| fleet.cost >= most)
}

/// How many items are how far.
pub(super) fn items(fleet: &Standing) -> String {
    let counts = &fleet.items;
    let more = [
        (counts.at_work, "at work"),
        (counts.offered, "to be merged"),
        (counts.open, "open"),
        (counts.aside, "set aside"),
    ];
    let more = more.iter().filter(|(count, _)| *count > 0).map(|(count, words)| format!(", {count} {words}"));
    format!("{} of {} merged{}", counts.merged, count(counts.all, "item"), more.collect::<String>())
}

/// `$3.20 of $40.00`.
pub(super) fn cost(fleet: &Standing) -> String {
    let most = fleet.max_cost.map(|most| format!(" of ${most:.2}")).unwrap_or_default();
    format!("${:.2}{most}", fleet.cost)
}

/// How a user gets the work; none as long as nothing was merged.
pub(super) fn merge_command(fleet: &Standing) -> Option<String> {
    let is_apart = fleet.deliver == "branch" && fleet.items.merged > 0;
    is_apart.then(|| format!("git fetch origin && git merge origin/{}", fleet.target))
}

/// The branches that may be on the remote for what is not merged.
pub(super) fn branch_of(name: &str, item: &ItemStanding) -> Option<String> {
    (item.epoch > 0 && item.stage != "merged")
        .then(|| format!("plimsoll-items/{name}/{}/{}", item.number, item.epoch))
}

/// How long ago something was.
pub(super) fn ago(now: Moment, then: Moment) -> String {
    let seconds = i64::try_from(now.saturating_sub(then) / 1_000).unwrap_or(i64::MAX);
    format!("{} ago", for_people(seconds))
}
