//! The figures of a run in words, the same on every screen.

use plimsoll_domain::Timestamp;
use plimsoll_domain::run_figures::{RunFigures, WorkerActivity, WorkerFigures};
use plimsoll_domain::text::{counted, tokens};
use plimsoll_flows::workers::pending_items::name_item;
use plimsoll_store::clock;

/// A worker in three parts: its name, its item, and what it does.
pub fn worker_parts(worker: &WorkerFigures) -> [String; 3] {
    let session = (worker.session > 0).then(|| {
        let percent = worker.percent.map_or(String::new(), |percent| format!(", {percent}%"));
        let cost = worker.cost_basis.format_usd(worker.cost_usd);
        format!("session {}{percent}, {cost}, {} tokens", worker.session, tokens(worker.tokens))
    });
    let activity = match worker.activity {
        WorkerActivity::Working if session.is_some() => None,
        WorkerActivity::Working => Some("starting"),
        WorkerActivity::Preparing => Some("preparing its worktree"),
        WorkerActivity::Waiting => Some("waiting"),
        WorkerActivity::Stopped => Some("not at work"),
    };
    let parts: Vec<String> = activity.map(str::to_owned).into_iter().chain(session).collect();
    let trouble = worker.api_trouble.as_ref();
    let trouble = trouble.map(|trouble| format!("; {}", api_trouble(trouble.status, &trouble.since)));
    let words = parts.join(", ") + &trouble.unwrap_or_default();
    [format!("worker {}", worker.worker), name_item(worker.item, &worker.text), words]
}

/// The lines below the log of a parallel run on a terminal: one for each worker, and one for the whole.
pub fn terminal_lines(figures: &RunFigures) -> Vec<String> {
    let workers = figures.workers.iter().map(|worker| worker_parts(worker).join("  "));
    workers.chain([total_line(figures)]).collect()
}

fn total_line(figures: &RunFigures) -> String {
    let items = &figures.items;
    let more = [
        (items.to_merge, "to merge"),
        (items.set_aside, "set aside"),
        (items.parked, "waiting for an answer"),
    ];
    let more: String = more
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, words)| format!(", {count} {words}"))
        .collect();
    format!(
        "{}/{} items merged{more}  {}{}  {}, {} tokens",
        items.done,
        items.total,
        counted(figures.sessions_started as usize, "session"),
        running_words(figures),
        figures.cost_basis.format_usd(figures.cost_usd),
        tokens(figures.tokens)
    )
}

/// That the API does not answer, since when, and who retries.
pub fn api_trouble(status: u64, since: &Timestamp) -> String {
    let what = match status {
        0 => "cannot be reached".to_owned(),
        status => format!("has answered with {status}"),
    };
    let since = clock::moment(since).map_or_else(|| since.to_string(), clock::for_people);
    format!("the API {what} since {since}; the client retries by itself")
}

/// `, 2 running`, if any is.
pub fn running_words(figures: &RunFigures) -> String {
    match figures.sessions_running {
        0 => String::new(),
        count => format!(", {count} running"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::cost::CostBasis;
    use plimsoll_domain::run_figures::ItemCounts;
    use plimsoll_domain::state::ApiTrouble;

    #[test]
    fn a_terminal_has_a_line_for_each_worker_and_one_for_the_whole() {
        let worker = WorkerFigures {
            worker: 2,
            item: 3,
            text: "Item\nthree".into(),
            activity: WorkerActivity::Working,
            session: 2,
            percent: Some(4),
            api_trouble: None,
            cost_usd: 0.12,
            cost_basis: CostBasis::Estimated,
            tokens: 31_000,
        };
        let idle = |activity, session| WorkerFigures { activity, session, percent: None, ..worker.clone() };
        let figures = RunFigures {
            sessions_started: 4,
            sessions_running: 1,
            cost_usd: 1.0,
            tokens: 99_000,
            items: ItemCounts { total: 5, done: 1, to_merge: 2, parked: 1, ..ItemCounts::default() },
            workers: vec![
                worker.clone(),
                idle(WorkerActivity::Preparing, 0),
                idle(WorkerActivity::Waiting, 1),
                idle(WorkerActivity::Working, 0),
            ],
            ..RunFigures::default()
        };
        let start = "worker 2  3 \"Item three\"  ";
        let expected = [
            format!("{start}session 2, 4%, about $0.12, 31k tokens"),
            format!("{start}preparing its worktree"),
            format!("{start}waiting, session 1, about $0.12, 31k tokens"),
            format!("{start}starting"),
            "1/5 items merged, 2 to merge, 1 waiting for an answer  4 sessions, 1 running  $1.00, 99k tokens"
                .to_owned(),
        ];
        assert_eq!(terminal_lines(&figures), expected);
        let trouble = ApiTrouble { since: "2026-01-07T05:00:02Z".into(), status: 529 };
        let [_, _, words] = worker_parts(&WorkerFigures { api_trouble: Some(trouble), ..worker });
        assert!(words.contains("31k tokens; the API has answered with 529 since "), "{words}");
    }
}
