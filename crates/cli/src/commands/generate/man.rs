//! `plimsoll generate man`: the manual pages, made from the definitions of the command lines.

#[cfg(test)]
mod tests;

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_terminal::console::{fail, fail_with, print_text};
use std::process::ExitCode;

/// Which page.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ManArguments {
    /// The command, such as `turns list` [default: plimsoll itself]
    #[arg(value_name = "COMMAND")]
    words: Vec<String>,
    /// Print the names of all pages
    #[arg(long, conflicts_with = "words")]
    list: bool,
}

const EXAMPLES: &str = "\
scripts/install.sh puts all pages where `man plimsoll-run` finds them. Without it:

Examples:
  plimsoll generate man run | man -l -
  plimsoll generate man turns list > plimsoll-turns-list.1";

/// Prints a page, or the names of all pages. Returns exit code 2 if there is no such command.
pub(super) fn print_man_page(arguments: &ManArguments) -> ExitCode {
    let commands = commands_with_pages();
    if arguments.list {
        commands.iter().for_each(|command| print_text(page_name(command)));
        return ExitCode::SUCCESS;
    }
    let wanted_name = arguments.words.join("-");
    let is_wanted = |command: &&Command| {
        let name = page_name(command);
        name == wanted_name
            || name.strip_prefix("plimsoll").map(|rest| rest.trim_start_matches('-')) == Some(&wanted_name)
    };
    match commands.iter().find(is_wanted).map(render_page) {
        Some(Ok(text)) => {
            print_text(text.trim_end());
            ExitCode::SUCCESS
        }
        Some(Err(error)) => fail(error),
        None => fail_with(
            format!(
                "there is no page for `{}`\nhint: `plimsoll generate man --list` names them",
                arguments.words.join(" ")
            ),
            ExitStatus::Usage,
        ),
    }
}

/// Returns every command that has a page, the program itself first.
fn commands_with_pages() -> Vec<Command> {
    let mut program = crate::commands::CommandLine::command().disable_help_subcommand(true);
    program.build();
    let mut commands = Vec::new();
    collect_visible_commands(&program, &mut commands);
    commands
}

fn collect_visible_commands(command: &Command, commands: &mut Vec<Command>) {
    commands.push(command.clone());
    for subcommand in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        collect_visible_commands(subcommand, commands);
    }
}

/// Returns the name of a command's page, such as `plimsoll-turns-list`.
fn page_name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// Renders a manual page. Synopsis and after-help are rendered here, because clap_mangen loses the `--` of the synopsis
/// and the line breaks of the after-help.
fn render_page(command: &Command) -> std::io::Result<String> {
    let source = concat!("plimsoll ", env!("CARGO_PKG_VERSION"));
    let renderer = Man::new(command.clone()).source(source).manual("Plimsoll");
    let mut text = Vec::new();
    renderer.render_title(&mut text)?;
    renderer.render_name_section(&mut text)?;
    render_synopsis(command).to_writer(&mut text)?;
    renderer.render_description_section(&mut text)?;
    renderer.render_options_section(&mut text)?;
    if command.has_subcommands() {
        renderer.render_subcommands_section(&mut text)?;
    }
    let after_help = command.get_after_long_help().or_else(|| command.get_after_help());
    render_after_help(&after_help.map(ToString::to_string).unwrap_or_default()).to_writer(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn render_synopsis(command: &Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let mut section = Roff::new();
    section.control("SH", ["SYNOPSIS"]);
    for (number, usage_line) in usage.trim_start_matches("Usage:").lines().map(str::trim).enumerate() {
        if number > 0 {
            section.control("br", []);
        }
        match usage_line.strip_prefix(name) {
            Some(rest) => section.text([bold(name), roman(rest)]),
            None => section.text([roman(usage_line)]),
        };
    }
    section
}

/// Renders the text below the options: a short line that ends with a colon becomes a heading, indented lines keep their
/// line breaks, other lines become paragraphs.
fn render_after_help(help: &str) -> Roff {
    let mut sections = Roff::new();
    let (mut has_heading, mut is_preformatted) = (false, false);
    for line in help.lines() {
        let is_indented = line.starts_with(' ');
        if is_preformatted && !is_indented {
            sections.control("fi", []);
        }
        let heading = line.strip_suffix(':').filter(|words| !is_indented && words.split(' ').count() <= 2);
        if let Some(heading) = heading {
            sections.control("SH", [heading.to_uppercase().as_str()]);
            has_heading = true;
        } else if !line.is_empty() {
            if !has_heading {
                sections.control("SH", ["NOTES"]);
                has_heading = true;
            }
            if is_indented && !is_preformatted {
                sections.control("nf", []);
            } else if !is_indented {
                sections.control("PP", []);
            }
            sections.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        is_preformatted = is_indented;
    }
    if is_preformatted {
        sections.control("fi", []);
    }
    sections
}
