//! The client's modules: files of plugins whose handlers the client runs inside its own process. A plugin lists its
//! module in `hooks/hooks.json` under `modules`.

use crate::client::format_version;
use plimsoll_domain::journal::OtherModule;
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_protocol::settings::parse_version;
use serde_json::Value;

/// The first client that was observed to load our module and to let it answer a compaction.
pub const FIRST_MODULE_VERSION: (u32, u32, u32) = (2, 1, 287);

/// The client's name for the plugin that `plimsoll init --module` writes.
pub const INSTALLED_MODULE_PLUGIN: &str = "plimsoll@skills-dir";

/// Events by which a module can change a session unseen: it replaces a compaction, continues a turn that has ended, or
/// changes a prompt.
pub const SESSION_CHANGING_EVENTS: [&str; 3] = ["session.compact", "turn.complete", "prompt.submit"];

/// The pattern that handles every event.
const EVERY_EVENT: &str = "*";

/// The client loads one module per plugin. A longer list is not searched further.
const MAX_MODULES_PER_PLUGIN: usize = 4;

/// Returns true if a client with this version output loads modules. A client that does not report its version counts
/// as too old.
pub fn supports_modules(version_output: &str) -> bool {
    parse_version(version_output).is_some_and(|version| version >= FIRST_MODULE_VERSION)
}

/// Returns [`FIRST_MODULE_VERSION`] as text.
pub fn first_module_version() -> String {
    format_version(FIRST_MODULE_VERSION)
}

/// Returns the paths under `modules` in a plugin's hooks file, relative to that file's folder.
pub fn module_paths(hooks_text: &str) -> Vec<String> {
    let hooks_file: Value = serde_json::from_str(hooks_text).unwrap_or_default();
    let modules = hooks_file.get("modules").and_then(Value::as_array).into_iter().flatten();
    modules.filter_map(Value::as_str).take(MAX_MODULES_PER_PLUGIN).map(str::to_owned).collect()
}

/// Returns the events of [`SESSION_CHANGING_EVENTS`] that the text of a module names as the first argument of a call,
/// such as `on("session.compact", …)`, and `*` if it handles every event. A minified module may call `on` by another
/// name, so only the argument counts. The text is searched and not parsed, so a comment may count too.
pub fn session_changing_events(module_text: &str) -> Vec<String> {
    let named_events =
        SESSION_CHANGING_EVENTS.into_iter().filter(|event| is_first_argument(module_text, "", event));
    let every_event = is_first_argument(module_text, "on", EVERY_EVENT).then_some(EVERY_EVENT);
    named_events.chain(every_event).map(str::to_owned).collect()
}

/// Returns true if the text has a call whose first argument is this string literal, and whose function's name ends with
/// `function_end`.
fn is_first_argument(text: &str, function_end: &str, argument: &str) -> bool {
    text.match_indices(argument).any(|(start, _)| {
        let (before, after) = (&text[..start], &text[start + argument.len()..]);
        let Some(quote) = before.chars().next_back().filter(|quote| "\"'`".contains(*quote)) else {
            return false;
        };
        let call = before[..before.len() - 1].trim_end().strip_suffix('(');
        after.starts_with(quote) && call.is_some_and(|call| call.trim_end().ends_with(function_end))
    })
}

/// Describes a module in one safe line: `NAME (session.compact, prompt.submit)`.
pub fn describe_other_module(module: &OtherModule) -> String {
    let plugin = truncate_end(&to_safe_single_line(&module.plugin), 80);
    let events: Vec<String> =
        module.events.iter().map(|event| truncate_end(&to_safe_single_line(event), 40)).collect();
    format!("{plugin} ({})", events.join(", "))
}

/// Returns the modules that were recorded at a run's start and at its resumptions: each plugin once, with every event
/// that one of the records has.
pub fn merge_module_events_by_plugin<'m>(
    recorded_modules: impl IntoIterator<Item = &'m OtherModule>,
) -> Vec<OtherModule> {
    let mut merged: Vec<OtherModule> = Vec::new();
    for module in recorded_modules {
        let known = match merged.iter().position(|known| known.plugin == module.plugin) {
            Some(index) => &mut merged[index],
            None => {
                merged.push(OtherModule { plugin: module.plugin.clone(), events: Vec::new() });
                let last = merged.len() - 1;
                &mut merged[last]
            }
        };
        let new_events = module.events.iter().filter(|event| !known.events.contains(event));
        let new_events: Vec<String> = new_events.cloned().collect();
        known.events.extend(new_events);
    }
    merged
}

/// The most modules that one sentence names.
const MAX_NAMED_MODULES: usize = 5;

/// Returns the sentence of a run's report about the modules of other plugins; `None` if there are none.
pub fn other_modules_sentence(modules: &[OtherModule]) -> Option<String> {
    let mut names: Vec<String> = modules.iter().take(MAX_NAMED_MODULES).map(describe_other_module).collect();
    let omitted_count = modules.len().saturating_sub(MAX_NAMED_MODULES);
    names.extend((omitted_count > 0).then(|| format!("and {omitted_count} more")));
    (!modules.is_empty())
        .then(|| format!("Modules of other plugins could act in these sessions: {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_loaded_from_the_first_version_on() {
        for (version_output, expected) in [
            ("2.1.286 (Claude Code)", false),
            ("2.1.287 (Claude Code)", true),
            ("2.1.329 (Claude Code)", true),
            ("3.0.0 (Claude Code)", true),
            ("", false),
            ("who knows", false),
        ] {
            assert_eq!(supports_modules(version_output), expected, "{version_output}");
        }
    }

    #[test]
    fn only_a_list_of_texts_names_modules() {
        for (hooks_text, expected) in [
            (r#"{"modules": ["./a.ts"]}"#, &["./a.ts"][..]),
            (r#"{"hooks": {}, "modules": ["./a.ts", 1, "b.js"]}"#, &["./a.ts", "b.js"]),
            (r#"{"modules": ["1", "2", "3", "4", "5"]}"#, &["1", "2", "3", "4"]),
            (r#"{"modules": "./a.ts"}"#, &[]),
            (r#"{"hooks": {}}"#, &[]),
            ("[]", &[]),
            ("{", &[]),
        ] {
            assert_eq!(module_paths(hooks_text), expected, "{hooks_text}");
        }
    }

    #[test]
    fn an_event_counts_if_it_is_the_first_argument_of_a_call() {
        for (module_text, expected) in [
            (r#"on("session.compact", f)"#, &["session.compact"][..]),
            ("on( 'turn.complete', f); on(`prompt.submit`, f)", &["turn.complete", "prompt.submit"]),
            ("on (\n  \"prompt.submit\",\n  f)", &["prompt.submit"]),
            (r#"export const register=e=>{e("session.compact",t)}"#, &["session.compact"]),
            (r#"on("*", f)"#, &["*"]),
            (r#"words.split("*")"#, &[]),
            (r#"const name = "session.compact";"#, &[]),
            (r#"on("session.compacted", f); on("x.session.compact", f)"#, &[]),
            (r#"on("session.compact', f)"#, &[]),
            ("session.compact", &[]),
            ("\"session.compact\"", &[]),
            ("é(\"turn.complete\"", &["turn.complete"]),
            ("", &[]),
        ] {
            assert_eq!(session_changing_events(module_text), expected, "{module_text}");
        }
    }

    fn module(plugin: &str, events: &[&str]) -> OtherModule {
        OtherModule {
            plugin: plugin.to_owned(),
            events: events.iter().map(|event| (*event).to_owned()).collect(),
        }
    }

    #[test]
    fn records_of_the_same_plugin_are_merged() {
        let recorded = [
            module("a@b", &["session.compact"]),
            module("c@d", &["*"]),
            module("a@b", &["session.compact", "turn.complete"]),
        ];
        let expected = [module("a@b", &["session.compact", "turn.complete"]), module("c@d", &["*"])];
        assert_eq!(merge_module_events_by_plugin(&recorded), expected);
    }

    #[test]
    fn the_report_names_the_plugins_and_their_events_in_one_line() {
        assert_eq!(other_modules_sentence(&[]), None);
        let modules = [module("a@b", &["session.compact", "turn.complete"]), module("bad\nname", &["*"])];
        insta::assert_snapshot!(other_modules_sentence(&modules).unwrap(), @"Modules of other plugins could act in these sessions: a@b (session.compact, turn.complete), bad name (*)");
        let many: Vec<OtherModule> = (0..7).map(|number| module(&number.to_string(), &["*"])).collect();
        insta::assert_snapshot!(other_modules_sentence(&many).unwrap(), @"Modules of other plugins could act in these sessions: 0 (*), 1 (*), 2 (*), 3 (*), 4 (*), and 2 more");
    }
}
