//! Tests of the commands and their documentation, the installers, the crate boundaries, and the time and memory that programs take.

mod architecture;
mod architecture_pages;
mod cost;
mod cost_in_large_projects;
mod cost_limits;
mod docs;
mod doctor;
mod doctor_modules;
mod empty_projects;
mod export;
mod fleet;
mod forecast_accuracy;
mod help_examples;
mod install;
mod json_outputs;
mod log_why;
mod mac_scripts;
mod module_answers;
mod naming;
mod oldest_git;
mod packaging;
mod recipes;
mod report;
mod settings_schema;
mod site;
mod soak;
mod stop;
mod terminal_escapes;
mod usage;
mod workflows;

/// Returns the commands that a help text lists between its usage and its options, under any heading.
fn commands_listed_in_help(help: &str) -> Vec<String> {
    let after_usage = help.split_once("Usage:").map(|(_, rest)| rest).unwrap_or_default();
    let lists = after_usage.split_once("\nOptions:").map_or(after_usage, |(lists, _)| lists);
    let rows = lists.lines().filter_map(|line| line.strip_prefix("  "));
    let rows = rows.filter(|row| row.starts_with(|letter: char| letter.is_ascii_lowercase()));
    let names = rows.filter_map(|row| row.split(' ').next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}
