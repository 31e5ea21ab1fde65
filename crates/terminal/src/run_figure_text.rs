//! Text for the figures of a run, used by every view.

use crate::columns::{clip_to_columns, width};
use plimsoll_domain::Timestamp;
use plimsoll_domain::cost::render_cost_without_title;
use plimsoll_domain::run_figures::{RunFigures, WorkerActivity, WorkerFigures};
use plimsoll_domain::text::{count_with_noun, format_tokens, to_safe_single_line};
use plimsoll_flows::workers::pending_items::quote_item_with_number;
use plimsoll_policy::statusline::{ContextUsageView, render_usage_bar_with_thresholds};
use plimsoll_store::clock;

/// Renders a worker in three parts: its name, its item and its activity.
pub fn render_worker_name_item_and_activity(worker: &WorkerFigures) -> [String; 3] {
    let session_text = (worker.session_number > 0).then(|| {
        let percent = worker.context_percent.map_or(String::new(), |percent| format!(", {percent}%"));
        format!(
            "session {}{percent}, {}, {} tokens",
            worker.session_number,
            render_worker_cost(worker),
            format_tokens(worker.tokens)
        )
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

fn render_worker_cost(worker: &WorkerFigures) -> String {
    render_cost_without_title(worker.cost_basis, worker.cost_usd, worker.session_number)
}

/// The least number of columns for an item's text, even if the line must be clipped.
const MIN_ITEM_COLUMNS: usize = 4;

/// Renders the lines below the log of a parallel run: one for each worker and one for the total, each at most this wide.
pub fn render_worker_and_total_lines(figures: &RunFigures, max_columns: usize) -> Vec<String> {
    let workers = figures.workers.iter().map(|worker| render_worker_line(worker, max_columns));
    let total = clip_to_columns(&render_total_line(figures), max_columns);
    workers.chain([total]).collect()
}

/// Renders a worker in one line: a bar of its context usage, its session, its cost and its item. The item's text is
/// shortened first.
fn render_worker_line(worker: &WorkerFigures, max_columns: usize) -> String {
    let usage = ContextUsageView { used_percent: worker.context_percent, ..ContextUsageView::default() };
    let percent = worker.context_percent.map_or("?".to_owned(), |percent| format!("{percent}%"));
    let status = match (worker.activity, &worker.api_retry) {
        (WorkerActivity::Working, Some(retry)) if retry.http_status > 0 => {
            format!("retrying, API error {}", retry.http_status)
        }
        (WorkerActivity::Working, Some(_)) => "retrying, no connection".to_owned(),
        (WorkerActivity::Working, None) if worker.session_number == 0 => "starting".to_owned(),
        (WorkerActivity::Working, None) => format!("session {}", worker.session_number),
        (WorkerActivity::Preparing, _) => "preparing".to_owned(),
        (WorkerActivity::Waiting, _) => "waiting".to_owned(),
        (WorkerActivity::Stopped, _) => "stopped".to_owned(),
    };
    let cost =
        if worker.session_number > 0 { format!("  {}", render_worker_cost(worker)) } else { String::new() };
    let cell_count = if max_columns < 80 { 5 } else { 10 };
    let before_item = format!(
        "worker {} {} {percent:>4}  item {} ",
        worker.worker_number,
        render_usage_bar_with_thresholds(&usage, cell_count),
        worker.item_number
    );
    let after_item = format!("  {status}{cost}");
    // Two quotation marks surround the text.
    let item_columns =
        max_columns.saturating_sub(width(&before_item) + width(&after_item) + 2).max(MIN_ITEM_COLUMNS);
    let item = clip_to_columns(&to_safe_single_line(&worker.item_text), item_columns);
    clip_to_columns(&format!("{before_item}\"{item}\"{after_item}"), max_columns)
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
        figures.render_cost_without_title(),
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
    format!("the API {status_text} since {since_text}; Claude Code retries by itself")
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
        let expected = [
            "worker 2 ▕█░░░░░░░░░▏   4%  item 3 \"Item three\"  session 2  about $0.12",
            "worker 2 ▕░░░░░░░░░░▏    ?  item 3 \"Item three\"  preparing",
            "worker 2 ▕░░░░░░░░░░▏    ?  item 3 \"Item three\"  waiting  about $0.12",
            "worker 2 ▕░░░░░░░░░░▏    ?  item 3 \"Item three\"  starting",
            "1/5 items merged, 2 to merge, 1 waiting for an answer  4 sessions, 1 running  $1.00, 99k tokens",
        ];
        assert_eq!(render_worker_and_total_lines(&figures, 120), expected);
        let narrow_lines = render_worker_and_total_lines(&figures, 60);
        assert_eq!(narrow_lines[0], "worker 2 ▕█░░░░▏   4%  item 3 \"Ite…\"  session 2  about $0.12");
        assert!(narrow_lines.iter().all(|line| width(line) <= 60), "{narrow_lines:?}");
        let api_trouble = ApiRetryState { failing_since: "2026-01-07T05:00:02Z".into(), http_status: 529 };
        let [_, _, activity_text] =
            render_worker_name_item_and_activity(&WorkerFigures { api_retry: Some(api_trouble), ..worker });
        assert!(
            activity_text.contains("31k tokens; the API has answered with 529 since "),
            "{activity_text}"
        );
    }
}
