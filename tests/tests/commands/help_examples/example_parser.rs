//! Parses the examples from the definition of the command line.

/// The text below the options of one command.
pub(crate) struct HelpPage {
    /// The words after `plimsoll`, such as `turns erase`; empty for `plimsoll` itself.
    pub(crate) command: String,
    text: String,
}

/// A heading with the indented lines below it.
pub(crate) struct Section {
    pub(crate) heading: String,
    pub(crate) lines: Vec<String>,
}

/// A command that a user copies from the help, and what the help says about it.
#[derive(Clone, Debug)]
pub(crate) struct Example {
    pub(crate) command: String,
    pub(crate) script: String,
    pub(crate) description: String,
}

/// Headings of sections that explain something and cannot be copied.
const EXPLANATION_HEADINGS: [&str; 2] = ["Documents", "Exit codes"];
/// Each line below such a heading is a command line, unless it continues or describes the one above it.
const COMMAND_LIST_HEADINGS: [&str; 2] = ["Examples", "First steps"];
/// The heading of a section whose lines form one script.
const SCRIPT_HEADING: &str = "Example, a loop of your own";
/// Headings of what can be copied into a file.
pub(crate) const PLAN_LINES_HEADING: &str = "In the plan";
pub(crate) const SETTINGS_ENTRY_HEADING: &str = "In .claude/settings.json";

/// Returns the pages of all commands, hidden ones included.
pub(crate) fn help_pages() -> Vec<HelpPage> {
    let definition = plimsoll_cli::command_line_definition();
    let mut pages = Vec::new();
    // Naming the type would need clap as a dependency of the tests.
    let mut unvisited = vec![(String::new(), &definition)];
    while let Some((command, definition)) = unvisited.pop() {
        let text = definition.get_after_long_help().or_else(|| definition.get_after_help());
        let text = text.map(ToString::to_string).unwrap_or_default();
        let subcommands: Vec<_> =
            definition.get_subcommands().filter(|subcommand| subcommand.get_name() != "help").collect();
        for subcommand in subcommands.into_iter().rev() {
            let words = format!("{command} {}", subcommand.get_name());
            unvisited.push((words.trim_start().to_owned(), subcommand));
        }
        pages.push(HelpPage { command, text });
    }
    pages
}

impl HelpPage {
    /// Returns the sections that can be copied from. Panics at a section of an unknown kind.
    pub(crate) fn copyable_sections(&self) -> Vec<Section> {
        let mut sections = parse_sections(&self.text);
        for section in &sections {
            let known_headings = EXPLANATION_HEADINGS.iter().chain(&COMMAND_LIST_HEADINGS).chain(&[
                SCRIPT_HEADING,
                PLAN_LINES_HEADING,
                SETTINGS_ENTRY_HEADING,
            ]);
            assert!(
                known_headings.clone().any(|heading| *heading == section.heading),
                "plimsoll {} --help: say in {} what stands below `{}:`",
                self.command,
                file!(),
                section.heading
            );
        }
        sections.retain(|section| !EXPLANATION_HEADINGS.contains(&section.heading.as_str()));
        sections
    }

    /// Returns the examples that a shell can run.
    pub(crate) fn shell_examples(&self) -> Vec<Example> {
        let mut examples = Vec::new();
        for section in self.copyable_sections() {
            if section.heading == SCRIPT_HEADING {
                let script = section.lines.join("\n");
                let description = "a loop".to_owned();
                examples.push(Example { command: self.command.clone(), script, description });
            } else if COMMAND_LIST_HEADINGS.contains(&section.heading.as_str()) {
                examples.extend(parse_command_lines(&self.command, &section.lines));
            }
        }
        examples
    }
}

/// Splits a text into its headings with the indented lines below them. A heading begins a paragraph. Indented lines
/// below other lines are a list of words, which must not contain a command line.
fn parse_sections(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut is_inside = false;
    let mut begins_paragraph = true;
    for line in text.lines() {
        if let Some(line) = line.strip_prefix("  ") {
            match sections.last_mut().filter(|_| is_inside) {
                Some(section) => section.lines.push(line.to_owned()),
                None => assert!(!line.trim().starts_with("plimsoll"), "an example without a heading: {line}"),
            }
        } else {
            is_inside = begins_paragraph && line.ends_with(':');
            if is_inside {
                sections.push(Section { heading: line.trim_end_matches(':').to_owned(), lines: Vec::new() });
            }
        }
        begins_paragraph = line.is_empty();
    }
    sections.retain(|section| !section.lines.is_empty());
    sections
}

fn parse_command_lines(command: &str, lines: &[String]) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    for line in lines {
        let last = examples.last_mut().filter(|_| line.starts_with(' '));
        match last {
            Some(example) if example.script.ends_with('\\') => {
                example.script.push('\n');
                example.script.push_str(line);
            }
            Some(example) => example.description = format!("{} {}", example.description, line.trim()),
            None => {
                let (script, description) = split_description(line);
                examples.push(Example { command: command.to_owned(), script, description });
            }
        }
    }
    examples
}

/// Splits a line at the first two blanks outside of quotes.
pub(crate) fn split_description(line: &str) -> (String, String) {
    let mut quote = None;
    for (index, letter) in line.char_indices() {
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None, ' ') if line[index..].starts_with("  ") => {
                return (line[..index].to_owned(), line[index..].trim().to_owned());
            }
            _ => {}
        }
    }
    (line.to_owned(), String::new())
}

#[test]
fn a_line_is_split_only_outside_of_quotes() {
    let split = |line: &str| split_description(line);
    assert_eq!(split("a 'b  c'   d e"), ("a 'b  c'".to_owned(), "d e".to_owned()));
    assert_eq!(split("a \"it's  b\""), ("a \"it's  b\"".to_owned(), String::new()));
    let lines = ["a \\", "  b", "c    d", "       e", "f"].map(str::to_owned);
    let read: Vec<_> = parse_command_lines("x", &lines)
        .into_iter()
        .map(|example| (example.script, example.description))
        .collect();
    let expected = [("a \\\n  b", ""), ("c", "d e"), ("f", "")];
    assert_eq!(read, expected.map(|(script, description)| (script.to_owned(), description.to_owned())));
}
