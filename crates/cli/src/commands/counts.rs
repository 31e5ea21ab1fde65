//! How much there is to learn, in numbers that grow only on purpose.

use super::{GROUPS, Groups, SCRIPT_GROUPS, definition};
use clap::{Arg, Command};
use serde_json::Value;

/// If you add a command, an option or a setting, write beside the number which one it replaces, or why there must be one more. If
/// you remove one, lower the number.
const COUNTS: [(&str, usize); 6] = [
    ("commands of `plimsoll --help`", 16),
    ("commands of `plimsoll help --all`", 26),
    ("options of `plimsoll run -h`", 23),
    // `--answer` replaces the command `answer`.
    ("options of `plimsoll run --help`", 38),
    // `--answer`, `--markdown` and `--exit-code` of `status` replace the commands `answer` and `context`.
    ("options of all commands", 203),
    ("settings", 47),
];

/// More do not fit on one screen.
const MAX_LISTED_COMMANDS: usize = 16;
const MAX_SHORT_OPTIONS: usize = 24;

fn count_commands(groups: &Groups) -> usize {
    groups.iter().map(|(_, names)| names.len()).sum()
}

fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|argument| !argument.is_positional() && !argument.is_hide_set())
}

/// Counts the options of a command and of those below it, without `--help` and `--version`, which all have.
fn count_options(command: &Command) -> usize {
    let own = options(command).filter(|option| !["help", "version"].contains(&option.get_id().as_str()));
    own.count() + command.get_subcommands().map(count_options).sum::<usize>()
}

/// Counts what a settings file can set: an object counts by its parts.
fn count_settings(schema: &Value) -> usize {
    let parts = schema["properties"].as_object().or(schema["additionalProperties"]["properties"].as_object());
    parts.map_or(1, |parts| {
        parts.iter().filter(|(name, _)| *name != "$schema").map(|(_, part)| count_settings(part)).sum()
    })
}

#[test]
fn commands_options_and_settings_are_as_many_as_the_table_says() {
    let line = definition();
    let run = line.find_subcommand("run").expect("run");
    let short = options(run).filter(|option| !option.is_hide_short_help_set()).count();
    let listed_names = GROUPS.iter().chain(SCRIPT_GROUPS).flat_map(|(_, names)| *names);
    let listed_commands = listed_names.filter_map(|name| line.find_subcommand(name));
    let schema: Value = serde_json::from_str(include_str!("../../../../hooks-config/plimsoll.schema.json"))
        .expect("a schema");
    let listed = count_commands(GROUPS);
    let counted = [
        listed,
        listed + count_commands(SCRIPT_GROUPS),
        short,
        options(run).count(),
        listed_commands.filter(|command| command.get_name() != "help").map(count_options).sum(),
        count_settings(&schema),
    ];
    let counted: Vec<_> = COUNTS.iter().map(|(what, _)| *what).zip(counted).collect();
    assert_eq!(counted, COUNTS, "read what is said above COUNTS");
    assert!(listed <= MAX_LISTED_COMMANDS && short <= MAX_SHORT_OPTIONS, "{listed} {short}");
}
