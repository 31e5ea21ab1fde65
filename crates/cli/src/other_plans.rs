//! Lists the plans of other tools, with the commands that use them.

use plimsoll_domain::text::{count_with_noun, to_safe_single_line};
use plimsoll_flows::run::other_plans::{OtherPlan, other_tools_plans_with_open_items};
use plimsoll_store::Project;

/// Maximum number of plans that are listed.
const MAX_LISTED_PLANS: usize = 3;

/// Returns a line for each plan of another tool that has open items, with the command that uses the plan.
/// Shown if a run has no plan.
pub(crate) fn render_lines(project: &Project) -> Vec<String> {
    let plans = other_tools_plans_with_open_items(project);
    let hidden_count = plans.len().saturating_sub(MAX_LISTED_PLANS);
    let more_line = (hidden_count > 0).then(|| format!("{} more", count_with_noun(hidden_count, "plan")));
    plans.iter().take(MAX_LISTED_PLANS).map(render_plan_line_with_command).chain(more_line).collect()
}

fn render_plan_line_with_command(plan: &OtherPlan) -> String {
    let file = to_safe_single_line(&plan.file);
    let quoted_file = shlex::try_quote(&plan.file).unwrap_or_default();
    let open_count_text = if plan.is_user_story_file {
        if plan.open_count == 1 {
            "1 open story".to_owned()
        } else {
            format!("{} open stories", plan.open_count)
        }
    } else {
        count_with_noun(plan.open_count, "open item")
    };
    let command = if plan.is_user_story_file {
        format!(
            "plimsoll query -nr --argjson prd \"$(cat {quoted_file})\" '$prd.userStories[] | select(.passes | not) | \"- [ ] \\(.id): \\(.title)\"' > fix_plan.md"
        )
    } else {
        format!("plimsoll run --todo {quoted_file}")
    };
    format!("{file} has {open_count_text}, but no run uses it by itself; to work through it: {command}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_plan_is_listed_with_its_command() {
        let plan = |file: &str, open, is_stories| OtherPlan {
            file: file.to_owned(),
            open_count: open,
            is_user_story_file: is_stories,
        };
        assert_eq!(
            render_plan_line_with_command(&plan("specs/log in/tasks.md", 1, false)),
            "specs/log in/tasks.md has 1 open item, but no run uses it by itself; to work through it: plimsoll run --todo 'specs/log in/tasks.md'"
        );
        assert_eq!(
            render_plan_line_with_command(&plan("prd.json", 2, true)),
            "prd.json has 2 open stories, but no run uses it by itself; to work through it: plimsoll query -nr --argjson prd \"$(cat prd.json)\" '$prd.userStories[] | select(.passes | not) | \"- [ ] \\(.id): \\(.title)\"' > fix_plan.md"
        );
    }
}
