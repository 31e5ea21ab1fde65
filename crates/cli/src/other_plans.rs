//! Names the plans of other tools, with the commands that use them.

use plimsoll_domain::text::{counted, one_line};
use plimsoll_flows::run::other_plans::{OtherPlan, plans_with_open_items};
use plimsoll_store::Project;

/// How many plans are named.
const NAMED: usize = 3;

/// Returns a line for each plan of another tool that has open items, with the command that uses it. For a run without a plan.
pub(crate) fn lines(project: &Project) -> Vec<String> {
    let plans = plans_with_open_items(project);
    let rest = plans.len().saturating_sub(NAMED);
    let more = (rest > 0).then(|| format!("{} more", counted(rest, "plan")));
    plans.iter().take(NAMED).map(line).chain(more).collect()
}

fn line(plan: &OtherPlan) -> String {
    let file = one_line(&plan.file);
    let quoted = shlex::try_quote(&plan.file).unwrap_or_default();
    let open = if plan.is_stories {
        if plan.open == 1 { "1 open story".to_owned() } else { format!("{} open stories", plan.open) }
    } else {
        counted(plan.open, "open item")
    };
    let command = if plan.is_stories {
        format!(
            "plimsoll query -nr --argjson prd \"$(cat {quoted})\" '$prd.userStories[] | select(.passes | not) | \"- [ ] \\(.id): \\(.title)\"' > fix_plan.md"
        )
    } else {
        format!("plimsoll run --todo {quoted}")
    };
    format!("{file} has {open}, and no run uses it by itself; to work through it: {command}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_named_with_its_command() {
        let plan = |file: &str, open, is_stories| OtherPlan { file: file.to_owned(), open, is_stories };
        assert_eq!(
            line(&plan("specs/log in/tasks.md", 1, false)),
            "specs/log in/tasks.md has 1 open item, and no run uses it by itself; to work through it: plimsoll run --todo 'specs/log in/tasks.md'"
        );
        assert_eq!(
            line(&plan("prd.json", 2, true)),
            "prd.json has 2 open stories, and no run uses it by itself; to work through it: plimsoll query -nr --argjson prd \"$(cat prd.json)\" '$prd.userStories[] | select(.passes | not) | \"- [ ] \\(.id): \\(.title)\"' > fix_plan.md"
        );
    }
}
