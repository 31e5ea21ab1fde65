//! The items: what became of each, and what it took.

use super::{ReportPage, dollars};
use crate::commands::report::contents::{Commit, Item, ItemOutcome, Report, RunSession};
use crate::commands::run::progress::for_people;
use plimsoll_domain::text::{counted, tokens};

/// More done items than this are folded: what is open is to be seen.
const UNFOLDED: usize = 12;
/// How many commits of one item are named at most.
const COMMITS: usize = 6;

pub(super) fn render(page: &mut ReportPage, report: &Report) {
    if report.items.is_empty() {
        return;
    }
    page.section("items", "Items");
    let (done, rest): (Vec<&Item>, Vec<&Item>) =
        report.items.iter().partition(|item| item.fate == ItemOutcome::Done);
    list(page, report, &rest);
    if done.len() > UNFOLDED {
        page.add(&format!("<details><summary>{} done</summary>\n", counted(done.len(), "item")));
        list(page, report, &done);
        page.add("</details>\n");
    } else {
        list(page, report, &done);
    }
    if report.items.iter().any(|item| item.is_shared) {
        page.add(
            "<p class=\"note\">“About”: a session that did several items is divided evenly among them.</p>\n",
        );
    }
    strays(page, report);
    page.end_section();
}

fn list(page: &mut ReportPage, report: &Report, items: &[&Item]) {
    if items.is_empty() {
        return;
    }
    page.add("<ul class=\"items\">\n");
    for item in items {
        let (class, sign, word) = match item.fate {
            ItemOutcome::Done => ("done", "✓", "done"),
            ItemOutcome::Open => ("open", "○", "open"),
            ItemOutcome::SetAside => ("aside", "‖", "set aside"),
            ItemOutcome::Gone => ("gone", "✕", "gone from the plan, never ticked"),
        };
        page.add(&format!("<li class=\"{class}\"><span class=\"sign\" aria-hidden=\"true\">{sign}</span><div><p class=\"name\">"));
        page.say(&item.name);
        page.add(&format!("</p><p class=\"note\"><b>{word}</b> · {}</p>", took(report, item)));
        commits(page, &item.commits);
        page.add("</div></li>\n");
    }
    page.add("</ul>\n");
}

fn took(report: &Report, item: &Item) -> String {
    if item.sittings.is_empty() {
        return match item.fate {
            ItemOutcome::Done => "which session did it was not recorded".to_owned(),
            _ => "no session has begun it".to_owned(),
        };
    }
    let about = if item.is_shared { "about " } else { "" };
    let mut parts = vec![counted(item.sittings.len(), "session")];
    let resumed = item
        .sittings
        .iter()
        .filter(|place| report.sittings.get(**place).is_some_and(|sitting| sitting.resuming));
    let resumed = resumed.count();
    parts.extend((resumed > 0).then(|| format!("{resumed} resumed")));
    parts.push(item.tokens.map_or("tokens not recorded".to_owned(), |number| {
        format!("{about}{} tokens", tokens(number.round() as u64))
    }));
    parts.push(item.usd.map_or("cost not recorded".to_owned(), |usd| format!("{about}{}", dollars(usd))));
    parts.extend(item.seconds.map(|seconds| format!("{about}{}", for_people(seconds.round() as i64))));
    parts.join(" · ")
}

fn commits(page: &mut ReportPage, commits: &[Commit]) {
    if commits.is_empty() {
        return;
    }
    page.add("<ul class=\"commits\">");
    for commit in commits.iter().take(COMMITS) {
        page.add("<li>");
        page.element("code", "", &commit.id.chars().take(8).collect::<String>());
        page.add(" ");
        page.say(&commit.subject);
        page.add("</li>");
    }
    page.add("</ul>");
    if commits.len() > COMMITS {
        page.add(&format!("<p class=\"note\">and {} more</p>", commits.len() - COMMITS));
    }
}

/// Sessions that are with no item: nothing of them may vanish from the sum.
fn strays(page: &mut ReportPage, report: &Report) {
    let is_with_one = |place: usize| report.items.iter().any(|item| item.sittings.contains(&place));
    let strays: Vec<&RunSession> = report
        .sittings
        .iter()
        .enumerate()
        .filter(|(place, _)| !is_with_one(*place))
        .map(|(_, sitting)| sitting)
        .collect();
    if !strays.is_empty() {
        let sum: u64 = strays.iter().filter_map(|sitting| sitting.tokens).sum();
        let usd: f64 = strays.iter().filter_map(|sitting| sitting.usd).sum();
        let words = format!(
            "{} with none of these items, or without a recorded item: {} tokens, {}.",
            counted(strays.len(), "session"),
            tokens(sum),
            dollars(usd)
        );
        page.element("p", "note", &words);
        page.add("\n");
    }
}
