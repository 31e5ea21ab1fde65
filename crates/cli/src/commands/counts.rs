//! A test that counts commands, options and settings, so that these numbers grow only on purpose.

use super::{CommandGroups, MAIN_COMMAND_GROUPS, SCRIPT_GROUPS, command_line_definition};
use clap::{Arg, Command};
use serde_json::Value;

/// The expected counts. If you add a command, an option or a setting, write beside the number which one it replaces, or
/// why one more is needed. If you remove one, lower the number.
const EXPECTED_COUNTS: [(&str, usize); 6] = [
    // `fleet` is a way to run a plan; new users did not find it.
    // `usage` and `sessions` replace ccusage and its reports: users looked for them.
    ("commands of `plimsoll --help`", 19),
    // `context` answers the module inside the client.
    ("commands of `plimsoll help --all`", 29),
    ("options of `plimsoll run -h`", 23),
    // `--answer` replaces the command `answer`.
    ("options of `plimsoll run --help`", 38),
    // `--module` and `--no-module` of `init`: nothing else can install the module where nobody can be asked.
    // `--answer`, `--markdown` and `--exit-code` of `status` replace the commands `answer` and `context`.
    // `--json` and `--client` of `context`, `--json`, `--cause` and `--client` of `checkpoint` are for that module;
    // `--module` and `--no-module` of `init` install and remove it.
    // `--since`, `--until` and `--json` of `usage`; `--search`, `--last` and `--json` of `sessions`.
    ("options of all commands", 217),
    // `compaction` and `handoff_at` say what the module may do.
    ("settings", 49),
];

/// More commands would not fit on one screen.
const MAX_LISTED_COMMANDS: usize = 19;
const MAX_SHORT_HELP_OPTIONS: usize = 24;

fn count_commands(groups: &CommandGroups) -> usize {
    groups.iter().map(|(_, names)| names.len()).sum()
}

fn visible_options(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|argument| !argument.is_positional() && !argument.is_hide_set())
}

/// Counts the options of a command and its subcommands, without `--help` and `--version`, which every command has.
fn count_options(command: &Command) -> usize {
    let options =
        visible_options(command).filter(|option| !["help", "version"].contains(&option.get_id().as_str()));
    options.count() + command.get_subcommands().map(count_options).sum::<usize>()
}

/// Counts the settings in a schema. An object counts as the sum of its properties.
fn count_settings(schema: &Value) -> usize {
    let properties =
        schema["properties"].as_object().or(schema["additionalProperties"]["properties"].as_object());
    properties.map_or(1, |properties| {
        properties
            .iter()
            .filter(|(name, _)| *name != "$schema")
            .map(|(_, property)| count_settings(property))
            .sum()
    })
}

#[test]
fn commands_options_and_settings_match_the_expected_counts() {
    let definition = command_line_definition();
    let run_command = definition.find_subcommand("run").expect("run");
    let short_help_option_count =
        visible_options(run_command).filter(|option| !option.is_hide_short_help_set()).count();
    let listed_names = MAIN_COMMAND_GROUPS.iter().chain(SCRIPT_GROUPS).flat_map(|(_, names)| *names);
    let listed_commands = listed_names.filter_map(|name| definition.find_subcommand(name));
    let schema: Value = serde_json::from_str(include_str!("../../../../hooks-config/plimsoll.schema.json"))
        .expect("a schema");
    let listed_count = count_commands(MAIN_COMMAND_GROUPS);
    let counts = [
        listed_count,
        listed_count + count_commands(SCRIPT_GROUPS),
        short_help_option_count,
        visible_options(run_command).count(),
        listed_commands.filter(|command| command.get_name() != "help").map(count_options).sum(),
        count_settings(&schema),
    ];
    let named_counts: Vec<_> = EXPECTED_COUNTS.iter().map(|(name, _)| *name).zip(counts).collect();
    assert_eq!(named_counts, EXPECTED_COUNTS, "read what is said above COUNTS");
    assert!(
        listed_count <= MAX_LISTED_COMMANDS && short_help_option_count <= MAX_SHORT_HELP_OPTIONS,
        "{listed_count} {short_help_option_count}"
    );
}
