//! Other loops: hooks at Stop that are not ours, in settings and in plugins, and what loops leave in a project.

use super::Files;
use super::plugins::{self, Plugin};
use plimsoll_policy::doctor::{KNOWN_STATE_FILES, LoopFacts, StopHook};
use plimsoll_store::{Project, disk};

pub(super) fn facts(project: &Project, found: &Files, all: &[Plugin]) -> LoopFacts {
    let mut hooks = Vec::new();
    for one in found {
        let commands = one.said().map(|survey| survey.foreign_stop.clone()).unwrap_or_default();
        let file = one.path.clone();
        hooks.extend(commands.into_iter().map(|command| StopHook {
            file: file.clone(),
            plugin: None,
            command,
        }));
    }
    hooks.extend(plugins::stop_hooks(project, all));
    let files = KNOWN_STATE_FILES.into_iter().filter(|file| disk::exists(&project.root().join(file)));
    LoopFacts { hooks, state_files: files.map(str::to_owned).collect() }
}
