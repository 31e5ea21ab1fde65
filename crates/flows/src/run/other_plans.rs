//! Plans of other tools: what a run without a plan of its own would leave undone.

use plimsoll_domain::TodoList;
use plimsoll_store::{Project, disk};

/// Where other loops and specification tools keep their plans; `*` stands for any folder.
const PLACES: [&str; 17] = [
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
/// Where stories are kept as JSON, in `userStories`, each with `passes`.
const STORIES: [&str; 3] = ["prd.json", "scripts/ralph/prd.json", ".ralph/prd.json"];
/// How many folders of one kind are looked into.
const FOLDERS: usize = 50;

/// A plan of another tool with open items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherPlan {
    /// The file, relative to the project.
    pub file: String,
    /// How many of its items are open.
    pub open: usize,
    /// True if it is no Markdown, but JSON with `userStories`.
    pub is_stories: bool,
}

/// The plans of other tools that have open items, the likeliest first.
pub fn plans_with_open_items(project: &Project) -> Vec<OtherPlan> {
    let mut found: Vec<OtherPlan> = Vec::new();
    let lists = PLACES.iter().flat_map(|place| files(project, place)).map(|file| (file, false));
    let stories = STORIES.iter().map(|file| ((*file).to_owned(), true));
    let mut seen = Vec::new();
    for (file, is_stories) in lists.chain(stories) {
        // What cannot be read is nobody's plan. The text is compared, because `TODO.md` is `todo.md` on some systems.
        let Ok(Some(text)) = disk::read_text(&project.root().join(&file)) else { continue };
        let open = if is_stories { open_stories(&text) } else { TodoList::parse(&text).open().len() };
        if open > 0 && !seen.contains(&text) {
            found.push(OtherPlan { file, open, is_stories });
            seen.push(text);
        }
    }
    found
}

/// The files that a place stands for.
fn files(project: &Project, place: &str) -> Vec<String> {
    let Some((before, after)) = place.split_once("/*/") else { return vec![place.to_owned()] };
    let folders = disk::names(&project.root().join(before)).into_iter().take(FOLDERS);
    folders.map(|folder| format!("{before}/{folder}/{after}")).collect()
}

fn open_stories(text: &str) -> usize {
    let document: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let stories = document["userStories"].as_array();
    stories.map_or(0, |stories| stories.iter().filter(|story| story["passes"] == false).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_store::Durability;

    fn found(files: &[(&str, &str)]) -> Vec<(String, usize, bool)> {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = folder.path().join(file);
            disk::create_folder(path.parent().unwrap()).unwrap();
            disk::replace(&path, text.as_bytes(), Durability::Lazy).unwrap();
        }
        let plans = plans_with_open_items(&Project::at(folder.path()));
        plans.into_iter().map(|plan| (plan.file, plan.open, plan.is_stories)).collect()
    }

    #[test]
    fn every_place_with_open_items_is_found_and_no_other_file() {
        for place in PLACES {
            let file = place.replace('*', "login");
            let text = "# Plan\n\n- [ ] one\n- [x] two\n- [ ] three\n";
            assert_eq!(found(&[(&file, text), ("NOTES.md", text)]), [(file.clone(), 2, false)], "{place}");
            assert_eq!(found(&[(&file, "- [x] done\n")]), [], "{place}");
        }
        let stories = r#"{"userStories": [{"id": "1", "passes": false}, {"id": "2", "passes": true}]}"#;
        for file in STORIES {
            assert_eq!(found(&[(file, stories)]), [(file.to_owned(), 1, true)]);
        }
        assert_eq!(found(&[("prd.json", "{"), ("TODO.md", "words\n")]), []);
    }

    #[test]
    fn the_likeliest_comes_first_and_a_copy_is_not_named_twice() {
        let plan = "- [ ] one\n";
        let other = "- [ ] another\n";
        let files = [("TODO.md", plan), ("todo.md", plan), ("IMPLEMENTATION_PLAN.md", other)];
        let expected = [("IMPLEMENTATION_PLAN.md".to_owned(), 1, false), ("TODO.md".to_owned(), 1, false)];
        assert_eq!(found(&files), expected);
    }

    #[test]
    fn no_link_is_followed_out_of_the_project() {
        let outside = tempfile::tempdir().unwrap();
        let secret = outside.path().join("tasks.md");
        disk::replace(&secret, b"- [ ] secret\n", Durability::Lazy).unwrap();
        let folder = tempfile::tempdir().unwrap();
        disk::create_folder(&folder.path().join("specs")).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("specs/a")).unwrap();
        std::os::unix::fs::symlink(&secret, folder.path().join("TODO.md")).unwrap();
        assert_eq!(plans_with_open_items(&Project::at(folder.path())), []);
    }
}
