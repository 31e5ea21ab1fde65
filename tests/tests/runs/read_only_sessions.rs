//! Files outside a project, and every way in which a session that can only read might reach them.

use plimsoll_testkit::scripted_model::{Request, Step};
use plimsoll_testkit::world::World;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::PathBuf;

const SECRET: &str = "the-words-outside";
const INSIDE: &str = "the-words-inside";

/// A folder beside the project with a secret in it, and links to both from inside.
#[derive(Clone)]
pub(crate) struct Outside {
    folder: PathBuf,
    project: PathBuf,
}

impl Outside {
    pub(crate) fn new(world: &World) -> Outside {
        let outside = Outside { folder: world.home().join("outside"), project: world.path("") };
        world.write(outside.folder.join("secret.txt"), SECRET);
        world.write("inside.txt", INSIDE);
        symlink(outside.folder.join("secret.txt"), world.path("link.txt")).expect("a link");
        symlink(&outside.folder, world.path("linked")).expect("a link");
        outside
    }

    /// Settings of the client that permit everything, and a variable and a helper by which the user logs in.
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

    /// Mentions in a prompt, of which the client reads those that it may.
    pub(crate) fn mentions(&self) -> String {
        let secret = self.folder.join("secret.txt");
        format!("@{} @link.txt @linked/secret.txt @~/outside/secret.txt", secret.display())
    }

    /// Adds calls to a step: one that reads inside, then those that try outside.
    pub(crate) fn attempts(&self, step: Step) -> Step {
        let secret = self.folder.join("secret.txt");
        step.tool("Read", json!({ "file_path": self.project.join("inside.txt") }))
            .tool("Read", json!({ "file_path": secret }))
            .tool("Read", json!({ "file_path": self.project.join("link.txt") }))
            .tool("Read", json!({ "file_path": self.project.join("linked/secret.txt") }))
            .tool("Grep", json!({ "pattern": "words", "path": self.folder, "output_mode": "content" }))
            .tool(
                "Grep",
                json!({ "pattern": "words", "path": self.project.join("linked"), "output_mode": "content" }),
            )
            .tool("Glob", json!({ "pattern": "*.txt", "path": self.folder }))
            .tool("Glob", json!({ "pattern": self.folder.join("*.txt") }))
    }

    /// Checks what a session was sent: the words inside for the first attempt, and a refusal for each other one.
    pub(crate) fn assert_unread(&self, requests: &[Request]) {
        let last = requests.last().expect("a request");
        let results: Vec<String> = last.tool_results().into_iter().map(|(_, text)| text).collect();
        // The client gives refusals before results.
        let (inside, outside): (Vec<&String>, Vec<&String>) =
            results.iter().partition(|text| text.contains(INSIDE));
        assert_eq!((inside.len(), outside.len()), (1, 7), "{results:?}");
        for result in outside {
            assert!(result.contains("--restricted confines"), "{result}");
        }
        for request in requests {
            assert!(!request.text().contains(SECRET), "{}", request.text());
        }
    }
}
