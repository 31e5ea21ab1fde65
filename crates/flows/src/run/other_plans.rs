//! Finds plans of other tools that a run without its own plan would ignore.

use plimsoll_domain::TodoList;
use plimsoll_store::{Project, disk};

/// Paths at which other loops and specification tools store their plans; `*` matches any folder.
const PLAN_PATH_PATTERNS: [&str; 17] = [
    "IMPLEMENTATION_PLAN.md",
    "@fix_plan.md",
    ".ralph/fix_plan.md",
    ".ralph/@fix_plan.md",
    ".ralph/IMPLEMENTATION_PLAN.md",
    ".agent/fix_plan.md",
    "PLAN.md",
    "plan.md",
    "TASKS.md",
    "tasks.md",
    "TODO.md",
    "todo.md",
    "tasks/todo.md",
    "specs/*/tasks.md",
    ".specify/specs/*/tasks.md",
    ".kiro/specs/*/tasks.md",
    "openspec/changes/*/tasks.md",
];
/// JSON files with stories in `userStories`, each with `passes`.
const STORY_FILES: [&str; 3] = ["prd.json", "scripts/ralph/prd.json", ".ralph/prd.json"];
/// The maximum number of folders that one pattern matches; the others are ignored.
const MAX_FOLDERS: usize = 50;

/// A plan of another tool with open items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherPlan {
    /// The file, relative to the project.
    pub file: String,
    /// The number of open items.
    pub open_count: usize,
    /// True if the file is JSON with `userStories`, false if it is Markdown.
    pub is_user_story_file: bool,
}

/// Returns the plans of other tools that have open items, the most likely one first.
pub fn other_tools_plans_with_open_items(project: &Project) -> Vec<OtherPlan> {
    let mut plans: Vec<OtherPlan> = Vec::new();
    let plan_files = PLAN_PATH_PATTERNS
        .iter()
        .flat_map(|pattern| expand_pattern(project, pattern))
        .map(|file| (file, false));
    let story_files = STORY_FILES.iter().map(|file| ((*file).to_owned(), true));
    let mut listed_texts = Vec::new();
    for (file, is_user_story_file) in plan_files.chain(story_files) {
        // A file that cannot be read is skipped. Texts are compared because `TODO.md` is the same file as
        // `todo.md` on some systems.
        let Ok(Some(text)) = disk::read_text(&project.root().join(&file)) else { continue };
        let open_count = if is_user_story_file {
            count_open_stories(&text)
        } else {
            TodoList::parse(&text).open_items().len()
        };
        if open_count > 0 && !listed_texts.contains(&text) {
            plans.push(OtherPlan { file, open_count, is_user_story_file });
            listed_texts.push(text);
        }
    }
    plans
}

/// Returns the paths that a pattern stands for; `*` is replaced with the name of each folder.
fn expand_pattern(project: &Project, pattern: &str) -> Vec<String> {
    let Some((before, after)) = pattern.split_once("/*/") else { return vec![pattern.to_owned()] };
    let folders = disk::list_names(&project.root().join(before)).into_iter().take(MAX_FOLDERS);
    folders.map(|folder| format!("{before}/{folder}/{after}")).collect()
}

fn count_open_stories(text: &str) -> usize {
    let document: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let stories = document["userStories"].as_array();
    stories.map_or(0, |stories| stories.iter().filter(|story| story["passes"] == false).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_store::Durability;

    fn plans_in(files: &[(&str, &str)]) -> Vec<(String, usize, bool)> {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = folder.path().join(file);
            disk::create_folder(path.parent().unwrap()).unwrap();
            disk::replace(&path, text.as_bytes(), Durability::Lazy).unwrap();
        }
        let plans = other_tools_plans_with_open_items(&Project::with_local_files(folder.path()));
        plans.into_iter().map(|plan| (plan.file, plan.open_count, plan.is_user_story_file)).collect()
    }

    #[test]
    fn every_pattern_with_open_items_is_found_and_no_other_file() {
        for pattern in PLAN_PATH_PATTERNS {
            let file = pattern.replace('*', "login");
            let text = "# Plan\n\n- [ ] one\n- [x] two\n- [ ] three\n";
            assert_eq!(
                plans_in(&[(&file, text), ("NOTES.md", text)]),
                [(file.clone(), 2, false)],
                "{pattern}"
            );
            assert_eq!(plans_in(&[(&file, "- [x] done\n")]), [], "{pattern}");
        }
        let stories = r#"{"userStories": [{"id": "1", "passes": false}, {"id": "2", "passes": true}]}"#;
        for file in STORY_FILES {
            assert_eq!(plans_in(&[(file, stories)]), [(file.to_owned(), 1, true)]);
        }
        assert_eq!(plans_in(&[("prd.json", "{"), ("TODO.md", "words\n")]), []);
    }

    #[test]
    fn the_most_likely_plan_comes_first_and_a_copy_is_listed_once() {
        let plan = "- [ ] one\n";
        let other = "- [ ] another\n";
        let files = [("TODO.md", plan), ("todo.md", plan), ("IMPLEMENTATION_PLAN.md", other)];
        let expected = [("IMPLEMENTATION_PLAN.md".to_owned(), 1, false), ("TODO.md".to_owned(), 1, false)];
        assert_eq!(plans_in(&files), expected);
    }

    #[cfg(unix)]
    #[test]
    fn no_link_is_followed_out_of_the_project() {
        let outside = tempfile::tempdir().unwrap();
        let secret = outside.path().join("tasks.md");
        disk::replace(&secret, b"- [ ] secret\n", Durability::Lazy).unwrap();
        let folder = tempfile::tempdir().unwrap();
        disk::create_folder(&folder.path().join("specs")).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("specs/a")).unwrap();
        std::os::unix::fs::symlink(&secret, folder.path().join("TODO.md")).unwrap();
        assert_eq!(other_tools_plans_with_open_items(&Project::with_local_files(folder.path())), []);
    }
}
