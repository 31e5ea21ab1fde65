//! `plimsoll init` and `uninstall` on real files, and the real client with the result.

mod byte_for_byte;
mod client_module;
mod generated_settings;
mod harness;
mod init_memory;
mod init_project;
mod installed_hooks;
mod installed_memory;
mod npx_init;
mod program_paths;
mod user_environments;

use plimsoll_protocol::settings::{self, HookSupport};
use plimsoll_testkit::workspace_root;
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn templates_name_exactly_the_hook_programs_that_are_built() {
    let with_memory: BTreeSet<String> =
        settings::hook_and_status_line_programs(HookSupport::Modern.with_memory()).into_iter().collect();
    let classic: BTreeSet<String> =
        settings::hook_and_status_line_programs(HookSupport::Classic).into_iter().collect();
    let built = std::fs::read_to_string(workspace_root().join("crates/hooks/programs.txt")).unwrap();
    let built: BTreeSet<String> = built.lines().map(str::to_owned).collect();
    assert_eq!(with_memory, built);
    assert!(classic.is_subset(&built));
    let all_programs: BTreeSet<String> =
        settings::PROGRAM_NAMES.iter().map(|name| (*name).to_owned()).collect();
    assert!(with_memory.is_subset(&all_programs), "settings::PROGRAMS lacks one of {with_memory:?}");
}

/// Users can look up the templates in the repository, so those files must match the built-in ones.
#[test]
fn template_files_in_hooks_config_match_the_built_in_templates() {
    for (name, text) in [
        ("settings.modern.json", settings::MODERN_TEMPLATE),
        ("settings.classic.json", settings::CLASSIC_TEMPLATE),
        ("settings.memory.json", settings::MEMORY_TEMPLATE),
        ("agents/frame.md", settings::agent::FRAME_AGENT_FILE),
    ] {
        let path = workspace_root().join("hooks-config").join(Path::new(name));
        assert_eq!(plimsoll_store::disk::read_text(&path).unwrap().unwrap(), text);
    }
}
