//! The record with which a parallel run begins.

use crate::workers::FleetPlan;
use crate::workers::ground::Ground;
use crate::workers::shown_plan::{SHOWN, has_asked};
use plimsoll_domain::board::{BoardItem, BoardState};
use plimsoll_domain::format::Format;
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::workers::{Member, Work, Workers};
use plimsoll_domain::{RunState, TodoList, plan_edit};
use plimsoll_policy::plan::Item;
use plimsoll_policy::workers::board;
use plimsoll_store::{Durability, Project, StoreError, disk};

/// How much of a plan's name stands in that of the branch.
const NAME: usize = 40;

/// The record of a new parallel run.
pub(super) fn new_record(project: &Project, run: &RunState, ground: &Ground) -> Result<Workers, StoreError> {
    let plan = run.options.todo_file.clone().unwrap_or_default();
    let text = disk::read_text(&project.root().join(&plan))?.unwrap_or_default();
    let items: Vec<Item> = TodoList::parse(&text)
        .items
        .into_iter()
        .map(|item| Item { text: item.text, done: item.done, lines: None, model: None })
        .collect();
    let board = board(&items);
    let plan_is_tracked = ground.is_tracked(&plan);
    let is_shown_apart = plan_is_tracked && ground.repo_path(&plan) != ground.repo_path(SHOWN);
    let path = project.root().join(SHOWN);
    if let (true, Some(earlier)) = (is_shown_apart, disk::read(&path)?) {
        // An earlier run showed its own plan there. What the user answered in it is nowhere else.
        disk::replace(&path, &with_answers(text.as_bytes(), &earlier), Durability::Durable)?;
    }
    Ok(Workers {
        format: Format,
        works: vec![Work::default(); board.items.len()],
        board,
        target: format!("plimsoll/{}-{}", slug(&plan), run.run_id.chars().take(8).collect::<String>()),
        began_at: ground.commit.to_string(),
        users_branch: ground.branch.clone(),
        plan_is_tracked,
        plan,
        passed: Vec::new(),
        waits_for_next_day: false,
        stop_reason: None,
        member: None,
    })
}

/// The plan with the questions about its open items that have an answer in an earlier copy of it.
fn with_answers(plan: &[u8], earlier: &[u8]) -> Vec<u8> {
    let mut plan = plan.to_vec();
    for item in TodoList::parse(&String::from_utf8_lossy(earlier)).items {
        for asked in item.questions.iter().filter(|asked| !asked.answers.is_empty()) {
            let question = OpenQuestion {
                item: item.text.clone(),
                question: OpenQuestion::kept(&asked.text),
                ..OpenQuestion::default()
            };
            let asked_again = plan_edit::with_question(&plan, &item.text, &asked.text)
                .filter(|_| !has_asked(&plan, &item.text, &asked.text));
            let answers = asked.answers.join("\n");
            let answered = asked_again.and_then(|plan| plan_edit::with_answer(&plan, &question, &answers));
            plan = answered.unwrap_or(plan);
        }
    }
    plan
}

/// The record of a machine that joins a fleet; the board is looked at before anything is decided by it.
pub(super) fn record_of_member(plan: &FleetPlan, ground: &Ground) -> Workers {
    let row = |text: &String| BoardItem { text: text.clone(), ..BoardItem::default() };
    Workers {
        format: Format,
        board: BoardState { items: plan.items.iter().map(row).collect(), ..BoardState::default() },
        target: plan.target.clone(),
        began_at: plan.began_at.clone(),
        users_branch: ground.branch.clone(),
        plan: plan.tracked_plan.clone().unwrap_or_else(|| SHOWN.to_owned()),
        plan_is_tracked: plan.tracked_plan.is_some(),
        works: vec![Work::default(); plan.items.len()],
        member: Some(Member {
            fleet: plan.name.clone(),
            name: plan.member.clone(),
            remote: plan.remote.clone(),
            ..Member::default()
        }),
        ..Workers::default()
    }
}

/// A plan's name as a part of a branch's.
fn slug(plan: &str) -> String {
    let name = plan.rsplit('/').next().unwrap_or_default();
    let name = name.rsplit_once('.').map_or(name, |(name, _)| name);
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
    let slug: String = name.chars().take(NAME).map(plain).collect();
    let slug = slug.trim_matches('-');
    if slug.is_empty() { "plan".to_owned() } else { slug.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_an_earlier_run_are_kept_for_items_that_are_still_open() {
        let earlier = "- [ ] one\n  > a note\n  ? Which port?\n  ! 8042\n  ! or 8043\n  ? Who?\n- [ ] two\n  ? Why?\n  ! So.\n- [ ] gone\n  ? a?\n  ! b\n";
        let plan = "# Next\n- [x] two\n- [ ] one\n- [ ] three\n";
        let expected = "# Next\n- [x] two\n- [ ] one\n  ? Which port?\n  ! 8042\n  ! or 8043\n- [ ] three\n";
        let kept = with_answers(plan.as_bytes(), earlier.as_bytes());
        assert_eq!(String::from_utf8(kept.clone()).unwrap(), expected);
        assert_eq!(with_answers(&kept, earlier.as_bytes()), kept);
    }

    #[test]
    fn a_plan_of_any_name_makes_a_part_of_a_branch() {
        for (plan, name) in [
            ("fix_plan.md", "fix_plan"),
            ("docs/My plan (2).md", "My-plan--2"),
            ("../.md", "plan"),
            ("a..b.lock", "a--b"),
            ("ünï", "n"),
        ] {
            assert_eq!(slug(plan), name, "{plan}");
        }
    }
}
