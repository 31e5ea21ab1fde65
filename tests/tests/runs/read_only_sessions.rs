//! Files outside a project, and every way in which a read-only session might reach them.

use plimsoll_testkit::scripted_model::{Request, Step};
use plimsoll_testkit::world::World;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::PathBuf;

const OUTSIDE_TEXT: &str = "the-words-outside";
const INSIDE_TEXT: &str = "the-words-inside";

/// A folder beside the project with a secret in it, and links to both from inside the project.
#[derive(Clone)]
pub(crate) struct OutsideFiles {
    folder: PathBuf,
    project: PathBuf,
}

impl OutsideFiles {
    pub(crate) fn new(world: &World) -> OutsideFiles {
        let outside = OutsideFiles { folder: world.home().join("outside"), project: world.path("") };
        world.write(outside.folder.join("secret.txt"), OUTSIDE_TEXT);
        world.write("inside.txt", INSIDE_TEXT);
        symlink(outside.folder.join("secret.txt"), world.path("link.txt")).expect("a link");
        symlink(&outside.folder, world.path("linked")).expect("a link");
        outside
    }

    /// Returns client settings that permit everything, with a variable and a helper by which the user logs in.
    pub(crate) fn permissive_settings(&self) -> Value {
        json!({
            "permissions": {
                "defaultMode": "bypassPermissions",
                "allow": ["Read", "Read(//**)", "Grep", "Glob"],
                "additionalDirectories": [self.folder],
            },
            "apiKeyHelper": "echo key",
            "env": { "DISABLE_TELEMETRY": "1" },
        })
    }

    /// Returns mentions for a prompt, of which the client reads those that it may.
    pub(crate) fn prompt_mentions(&self) -> String {
        let secret = self.folder.join("secret.txt");
        format!("@{} @link.txt @linked/secret.txt @~/outside/secret.txt", secret.display())
    }

    /// Adds tool calls to a step: one that reads inside the project, then those that try outside.
    pub(crate) fn add_read_attempts(&self, step: Step) -> Step {
        let secret = self.folder.join("secret.txt");
        step.with_tool_call("Read", json!({ "file_path": self.project.join("inside.txt") }))
            .with_tool_call("Read", json!({ "file_path": secret }))
            .with_tool_call("Read", json!({ "file_path": self.project.join("link.txt") }))
            .with_tool_call("Read", json!({ "file_path": self.project.join("linked/secret.txt") }))
            .with_tool_call(
                "Grep",
                json!({ "pattern": "words", "path": self.folder, "output_mode": "content" }),
            )
            .with_tool_call(
                "Grep",
                json!({ "pattern": "words", "path": self.project.join("linked"), "output_mode": "content" }),
            )
            .with_tool_call("Glob", json!({ "pattern": "*.txt", "path": self.folder }))
            .with_tool_call("Glob", json!({ "pattern": self.folder.join("*.txt") }))
    }

    /// Asserts that a session was sent the inside text for the first attempt, and a refusal for each other one.
    pub(crate) fn assert_outside_unread(&self, requests: &[Request]) {
        let last = requests.last().expect("a request");
        let results: Vec<String> = last.all_tool_results().into_iter().map(|(_, text)| text).collect();
        // The client sends refusals before results.
        let (allowed_results, refused_results): (Vec<&String>, Vec<&String>) =
            results.iter().partition(|text| text.contains(INSIDE_TEXT));
        assert_eq!((allowed_results.len(), refused_results.len()), (1, 7), "{results:?}");
        for result in refused_results {
            assert!(result.contains("--restricted confines"), "{result}");
        }
        for request in requests {
            assert!(!request.full_text().contains(OUTSIDE_TEXT), "{}", request.full_text());
        }
    }
}
