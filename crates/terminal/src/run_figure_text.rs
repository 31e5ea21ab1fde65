//! Text for the figures of a run, used by every view.

use plimsoll_domain::Timestamp;
use plimsoll_domain::run_figures::{RunFigures, WorkerActivity, WorkerFigures};
use plimsoll_domain::text::{count_with_noun, format_tokens};
use plimsoll_flows::workers::pending_items::quote_item_with_number;
use plimsoll_store::clock;

/// Renders a worker in three parts: its name, its item and its activity.
pub fn render_worker_name_item_and_activity(worker: &WorkerFigures) -> [String; 3] {
    let session_text = (worker.session_number > 0).then(|| {
        let percent = worker.context_percent.map_or(String::new(), |percent| format!(", {percent}%"));
        let cost = worker.cost_basis.format_usd(worker.cost_usd);
        format!("session {}{percent}, {cost}, {} tokens", worker.session_number, format_tokens(worker.tokens))
    });
    let activity = match worker.activity {
        WorkerActivity::Working if session_text.is_some() => None,
        WorkerActivity::Working => Some("starting"),
        WorkerActivity::Preparing => Some("preparing its worktree"),
        WorkerActivity::Waiting => Some("waiting"),
        WorkerActivity::Stopped => Some("not at work"),
    };
    let activity_and_session: Vec<String> =
        activity.map(str::to_owned).into_iter().chain(session_text).collect();
    let api_retry = worker.api_retry.as_ref();
    let retry_text =
        api_retry.map(|retry| format!("; {}", render_api_retry(retry.http_status, &retry.failing_since)));
    let activity_text = activity_and_session.join(", ") + &retry_text.unwrap_or_default();
    [
        format!("worker {}", worker.worker_number),
        quote_item_with_number(worker.item_number, &worker.item_text),
        activity_text,
    ]
}

/// Renders the lines below the log of a parallel run: one for each worker and one for the total.
pub fn render_worker_and_total_lines(figures: &RunFigures) -> Vec<String> {
    let workers =
        figures.workers.iter().map(|worker| render_worker_name_item_and_activity(worker).join("  "));
    workers.chain([render_total_line(figures)]).collect()
}

fn render_total_line(figures: &RunFigures) -> String {
    let items = &figures.items;
    let labeled_counts = [
        (items.waiting_to_merge, "to merge"),
        (items.set_aside, "set aside"),
        (items.parked, "waiting for an answer"),
    ];
    let other_counts: String = labeled_counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, label)| format!(", {count} {label}"))
        .collect();
    format!(
        "{}/{} items merged{other_counts}  {}{}  {}, {} tokens",
        items.done,
        items.total,
        count_with_noun(figures.sessions_started as usize, "session"),
        render_running_count(figures),
        figures.cost_basis.format_usd(figures.cost_usd),
        format_tokens(figures.tokens)
    )
}

/// Describes an error of the API: its HTTP status (0 if the API is unreachable), when it began, and that the client retries.
pub fn render_api_retry(http_status: u64, failing_since: &Timestamp) -> String {
    let status_text = match http_status {
        0 => "cannot be reached".to_owned(),
        status => format!("has answered with {status}"),
    };
    let since_text = clock::parse_timestamp(failing_since)
        .map_or_else(|| failing_since.to_string(), clock::format_local_time_with_seconds);
    format!("the API {status_text} since {since_text}; the client retries by itself")
}

/// Renders `, 2 running`, or an empty string if nothing is running.
pub fn render_running_count(figures: &RunFigures) -> String {
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
    use plimsoll_domain::state::ApiRetryState;

    #[test]
    fn a_terminal_has_a_line_for_each_worker_and_one_for_the_total() {
        let worker = WorkerFigures {
            worker_number: 2,
            item_number: 3,
            item_text: "Item\nthree".into(),
            activity: WorkerActivity::Working,
            session_number: 2,
            context_percent: Some(4),
            api_retry: None,
            cost_usd: 0.12,
            cost_basis: CostBasis::Estimated,
            tokens: 31_000,
        };
        let worker_with = |activity, session| WorkerFigures {
            activity,
            session_number: session,
            context_percent: None,
            ..worker.clone()
        };
        let figures = RunFigures {
            sessions_started: 4,
            sessions_running: 1,
            cost_usd: 1.0,
            tokens: 99_000,
            items: ItemCounts { total: 5, done: 1, waiting_to_merge: 2, parked: 1, ..ItemCounts::default() },
            workers: vec![
                worker.clone(),
                worker_with(WorkerActivity::Preparing, 0),
                worker_with(WorkerActivity::Waiting, 1),
                worker_with(WorkerActivity::Working, 0),
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
        assert_eq!(render_worker_and_total_lines(&figures), expected);
        let api_trouble = ApiRetryState { failing_since: "2026-01-07T05:00:02Z".into(), http_status: 529 };
        let [_, _, activity_text] =
            render_worker_name_item_and_activity(&WorkerFigures { api_retry: Some(api_trouble), ..worker });
        assert!(
            activity_text.contains("31k tokens; the API has answered with 529 since "),
            "{activity_text}"
        );
    }
}
