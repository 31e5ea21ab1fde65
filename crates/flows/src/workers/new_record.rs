//! Creates the initial state of a parallel run.

use crate::workers::FleetDescription;
use crate::workers::project_checkout::ProjectCheckout;
use crate::workers::shown_plan::{SHOWN_PLAN_FILE, has_question_below_item};
use crate::workers::workers_file::WorkersFile;
use plimsoll_domain::board::{BoardItem, BoardState};
use plimsoll_domain::format::FormatVersion;
use plimsoll_domain::question::OpenQuestion;
use plimsoll_domain::workers::{FleetMember, ItemProgress, WorkersState};
use plimsoll_domain::{RunState, TodoList, plan_edit};
use plimsoll_policy::plan::EstimatedItem;
use plimsoll_policy::workers::create_board_with_done_items_merged;
use plimsoll_store::{Durability, Project, StoreError, disk};

/// The maximum number of characters of a plan's name in the name of the branch.
const MAX_PLAN_NAME_CHARS: usize = 40;

/// Creates the state of a new parallel run from its plan. If an earlier run left a shown plan in a separate
/// file, replaces that file with the new plan and the user's earlier answers.
pub(super) fn new_state_and_rewrite_shown_plan_with_answers(
    project: &Project,
    run_state: &RunState,
    checkout: &ProjectCheckout,
) -> Result<WorkersState, StoreError> {
    let plan_path = run_state.options.todo_file.clone().unwrap_or_default();
    let plan_text = disk::read_text(&project.root().join(&plan_path))?.unwrap_or_default();
    let items: Vec<EstimatedItem> = TodoList::parse(&plan_text)
        .items
        .into_iter()
        .map(|item| EstimatedItem { text: item.text, is_done: item.is_ticked, file_lines: None, model: None })
        .collect();
    let board = create_board_with_done_items_merged(&items);
    let plan_is_tracked = checkout.is_tracked(&plan_path);
    let has_separate_shown_plan = plan_is_tracked
        && checkout.path_in_repository_unless_outside(&plan_path)
            != checkout.path_in_repository_unless_outside(SHOWN_PLAN_FILE);
    let shown_plan_path = project.root().join(SHOWN_PLAN_FILE);
    if let (true, Some(earlier_plan)) = (has_separate_shown_plan, disk::read(&shown_plan_path)?) {
        // An earlier run showed its plan in this file. The user's answers exist only there.
        disk::replace(
            &shown_plan_path,
            &add_answered_questions_from_earlier_plan(plan_text.as_bytes(), &earlier_plan),
            Durability::Durable,
        )?;
    }
    Ok(WorkersState {
        format: FormatVersion,
        item_progress: vec![ItemProgress::default(); board.items.len()],
        board,
        target_branch_name: format!(
            "plimsoll/{}-{}",
            plan_slug_for_branch_name(&plan_path),
            run_state.run_id.chars().take(8).collect::<String>()
        ),
        start_commit_id: checkout.head_commit.to_string(),
        user_branch: checkout.branch.clone(),
        plan_is_tracked,
        plan_path,
        passed_verify_commands: Vec::new(),
        waits_for_next_day: false,
        stop_reason: None,
        fleet_member: None,
    })
}

/// Returns the plan with the answered questions of an earlier plan added below the same open items.
fn add_answered_questions_from_earlier_plan(plan: &[u8], earlier_plan: &[u8]) -> Vec<u8> {
    let mut plan = plan.to_vec();
    for item in TodoList::parse(&String::from_utf8_lossy(earlier_plan)).items {
        for earlier_question in item.questions.iter().filter(|question| !question.answers.is_empty()) {
            let question = OpenQuestion {
                item: item.text.clone(),
                question: OpenQuestion::clip_question(&earlier_question.text),
                ..OpenQuestion::default()
            };
            let plan_with_question =
                plan_edit::add_question_to_unparked_open_item(&plan, &item.text, &earlier_question.text)
                    .filter(|_| !has_question_below_item(&plan, &item.text, &earlier_question.text));
            let answers = earlier_question.answers.join("\n");
            let plan_with_answer = plan_with_question
                .and_then(|plan| plan_edit::add_answer_to_open_question(&plan, &question, &answers));
            plan = plan_with_answer.unwrap_or(plan);
        }
    }
    plan
}

/// Creates the state of a machine that joins a fleet. The board is read before any decision is based on this
/// state.
pub(super) fn new_fleet_member_state(fleet: &FleetDescription, checkout: &ProjectCheckout) -> WorkersState {
    let board_item = |text: &String| BoardItem { text: text.clone(), ..BoardItem::default() };
    WorkersState {
        format: FormatVersion,
        board: BoardState {
            items: fleet.item_texts.iter().map(board_item).collect(),
            ..BoardState::default()
        },
        target_branch_name: fleet.target_branch.clone(),
        start_commit_id: fleet.start_commit_id.clone(),
        user_branch: checkout.branch.clone(),
        plan_path: fleet.tracked_plan_path.clone().unwrap_or_else(|| SHOWN_PLAN_FILE.to_owned()),
        plan_is_tracked: fleet.tracked_plan_path.is_some(),
        item_progress: vec![ItemProgress::default(); fleet.item_texts.len()],
        fleet_member: Some(FleetMember {
            fleet: fleet.fleet_name.clone(),
            name: fleet.member_name.clone(),
            token: fleet.member_token.clone(),
            remote_name: fleet.remote_name.clone(),
            ..FleetMember::default()
        }),
        ..WorkersState::default()
    }
}

/// Replaces the name and the token of this machine in its record if they differ: the record of an older version has no
/// token, so a resumed run gets a new name.
pub(super) fn record_member_name_and_token(
    workers_file: &WorkersFile,
    fleet: &FleetDescription,
) -> Result<(), StoreError> {
    let is_recorded =
        |member: &FleetMember| member.name == fleet.member_name && member.token == fleet.member_token;
    if workers_file.workers_state().fleet_member.as_ref().is_some_and(is_recorded) {
        return Ok(());
    }
    workers_file.update_and_write_file(|workers| {
        if let Some(member) = &mut workers.fleet_member {
            (member.name, member.token) = (fleet.member_name.clone(), fleet.member_token.clone());
        }
    })
}

/// Converts the file name of a plan to a slug for a branch name. Returns `plan` if no valid character is
/// left.
fn plan_slug_for_branch_name(plan_path: &str) -> String {
    let file_name = plan_path.rsplit('/').next().unwrap_or_default();
    let file_stem = file_name.rsplit_once('.').map_or(file_name, |(stem, _)| stem);
    let replace_unsafe_char =
        |character: char| if character.is_ascii_alphanumeric() || character == '_' { character } else { '-' };
    let slug: String = file_stem.chars().take(MAX_PLAN_NAME_CHARS).map(replace_unsafe_char).collect();
    let slug = slug.trim_matches('-');
    if slug.is_empty() { "plan".to_owned() } else { slug.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::workers::MemberToken;

    #[test]
    fn earlier_answers_are_kept_for_items_that_are_still_open() {
        let earlier = "- [ ] one\n  > a note\n  ? Which port?\n  ! 8042\n  ! or 8043\n  ? Who?\n- [ ] two\n  ? Why?\n  ! So.\n- [ ] gone\n  ? a?\n  ! b\n";
        let plan = "# Next\n- [x] two\n- [ ] one\n- [ ] three\n";
        let expected = "# Next\n- [x] two\n- [ ] one\n  ? Which port?\n  ! 8042\n  ! or 8043\n- [ ] three\n";
        let kept = add_answered_questions_from_earlier_plan(plan.as_bytes(), earlier.as_bytes());
        assert_eq!(String::from_utf8(kept.clone()).unwrap(), expected);
        assert_eq!(add_answered_questions_from_earlier_plan(&kept, earlier.as_bytes()), kept);
    }

    #[test]
    fn a_record_without_the_token_of_its_member_gets_name_and_token() {
        let fleet = |name: &str, token: &str| FleetDescription {
            member_name: name.to_owned(),
            member_token: MemberToken::from(token.to_owned()),
            ..FleetDescription::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let old_member =
            FleetMember { name: "old".into(), ended_run_costs_usd: vec![1.5], ..FleetMember::default() };
        let state = WorkersState { fleet_member: Some(old_member.clone()), ..WorkersState::default() };
        let workers_file = WorkersFile::with_state(folder.path().join("workers.json"), state);
        for (name, token, expected_change_count) in
            [("new", "first", 1), ("new", "first", 1), ("new", "second", 2), ("other", "second", 3)]
        {
            record_member_name_and_token(&workers_file, &fleet(name, token)).unwrap();
            let expected = FleetMember {
                name: name.to_owned(),
                token: MemberToken::from(token.to_owned()),
                ..old_member.clone()
            };
            assert!(workers_file.workers_state().fleet_member == Some(expected), "{name} {token}");
            assert_eq!(workers_file.change_count(), expected_change_count, "{name} {token}");
        }
    }

    #[test]
    fn any_plan_name_becomes_a_valid_part_of_a_branch_name() {
        for (plan, name) in [
            ("fix_plan.md", "fix_plan"),
            ("docs/My plan (2).md", "My-plan--2"),
            ("../.md", "plan"),
            ("a..b.lock", "a--b"),
            ("ünï", "n"),
        ] {
            assert_eq!(plan_slug_for_branch_name(plan), name, "{plan}");
        }
    }
}
