//! `plimsoll generate man`: the manual pages, made from the definitions of the command lines.

#[cfg(test)]
mod tests;

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_terminal::console::{fail, fail_with, say};
use std::process::ExitCode;

/// Which page.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ManArguments {
    /// The command whose page is printed, such as `run` or `turns list` [default: plimsoll itself]
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

/// Prints a page, or the names of all; exit code 2 where there is no such command.
pub(super) fn man(arguments: &ManArguments) -> ExitCode {
    let pages = pages();
    if arguments.list {
        pages.iter().for_each(|page| say(name_of(page)));
        return ExitCode::SUCCESS;
    }
    let wanted = arguments.words.join("-");
    let is_wanted = |page: &&Command| {
        let name = name_of(page);
        name == wanted
            || name.strip_prefix("plimsoll").map(|rest| rest.trim_start_matches('-')) == Some(&wanted)
    };
    match pages.iter().find(is_wanted).map(page) {
        Some(Ok(text)) => {
            say(text.trim_end());
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

/// Every command that has a page, the program itself first.
fn pages() -> Vec<Command> {
    let mut program = crate::commands::Command::command().disable_help_subcommand(true);
    program.build();
    let mut found = Vec::new();
    collect(&program, &mut found);
    found
}

fn collect(command: &Command, found: &mut Vec<Command>) {
    found.push(command.clone());
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        collect(below, found);
    }
}

/// `plimsoll-turns-list`.
fn name_of(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// One page. The synopsis and what is below the options are our own: the library forgets the `--` of the one and
/// the lines of the other.
fn page(command: &Command) -> std::io::Result<String> {
    let source = concat!("plimsoll ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(source).manual("Plimsoll");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    synopsis(command).to_writer(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let below = command.get_after_long_help().or_else(|| command.get_after_help());
    below_the_options(&below.map(ToString::to_string).unwrap_or_default()).to_writer(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn synopsis(command: &Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let mut section = Roff::new();
    section.control("SH", ["SYNOPSIS"]);
    for (number, form) in usage.trim_start_matches("Usage:").lines().map(str::trim).enumerate() {
        if number > 0 {
            section.control("br", []);
        }
        match form.strip_prefix(name) {
            Some(rest) => section.text([bold(name), roman(rest)]),
            None => section.text([roman(form)]),
        };
    }
    section
}

/// A short line with a colon at its end is a heading; what is indented stays as it is; the rest is text.
fn below_the_options(help: &str) -> Roff {
    let mut sections = Roff::new();
    let (mut has_heading, mut as_it_stands) = (false, false);
    for line in help.lines() {
        let indented = line.starts_with(' ');
        if as_it_stands && !indented {
            sections.control("fi", []);
        }
        let heading = line.strip_suffix(':').filter(|words| !indented && words.split(' ').count() <= 2);
        if let Some(heading) = heading {
            sections.control("SH", [heading.to_uppercase().as_str()]);
            has_heading = true;
        } else if !line.is_empty() {
            if !has_heading {
                sections.control("SH", ["NOTES"]);
                has_heading = true;
            }
            if indented && !as_it_stands {
                sections.control("nf", []);
            } else if !indented {
                sections.control("PP", []);
            }
            sections.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        as_it_stands = indented;
    }
    if as_it_stands {
        sections.control("fi", []);
    }
    sections
}
