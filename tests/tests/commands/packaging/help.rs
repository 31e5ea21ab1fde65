use crate::commands_listed_in_help;
use plimsoll_testkit::world::World;
use std::collections::BTreeSet;

fn check_help_recursively(world: &World, command: &[&str], names: &mut Vec<String>) {
    let arguments = if command.is_empty() { vec!["help", "--all"] } else { [command, &["--help"]].concat() };
    let finished = world.plimsoll(&arguments).run().expect_success();
    if !command.is_empty() {
        let other_form = world.plimsoll(&[&["help"], command].concat()).run().expect_success();
        assert_eq!(other_form.stdout, finished.stdout, "{command:?}");
    }
    let name = ["plimsoll"].iter().chain(command).copied().collect::<Vec<_>>();
    let usage = format!("Usage: {}", name.join(" "));
    assert!(finished.stdout.contains(&usage) && finished.stderr.is_empty(), "{usage}: {finished:?}");
    names.push(name.join("-"));
    for subcommand in commands_listed_in_help(&finished.stdout) {
        check_help_recursively(world, &[command, &[subcommand.as_str()]].concat(), names);
    }
}

#[test]
fn every_command_has_help_and_a_manual_page() {
    let world = World::without_git();
    let mut names = Vec::new();
    check_help_recursively(&world, &[], &mut names);
    assert!(names.len() > 35 && names.contains(&"plimsoll-turns-export".to_owned()), "{names:?}");
    let pages = world.plimsoll(&["generate", "man", "--list"]).run().expect_success().stdout;
    assert_eq!(pages.lines().collect::<BTreeSet<_>>(), names.iter().map(String::as_str).collect());
    let page = world.plimsoll(&["generate", "man"]).run().expect_success().stdout;
    assert!(page.contains("plimsoll\\-gate(1)") && page.contains("plimsoll\\-run(1)"), "{page}");
}

#[test]
fn main_help_lists_commands_for_scripts_only_with_the_all_option() {
    let world = World::without_git();
    let main = world.plimsoll(&["--help"]).run().expect_success().stdout;
    for arguments in [&["-h"][..], &["help"]] {
        assert_eq!(world.plimsoll(arguments).run().expect_success().stdout, main, "{arguments:?}");
    }
    let without_arguments = world.plimsoll(&[]).run();
    assert_eq!((without_arguments.code, without_arguments.stderr.as_str()), (Some(2), main.as_str()));
    insta::assert_snapshot!(main, @"
    The load line for Claude Code: know how full the context window is, checkpoint before it overflows,
    resume without losing work

    Usage: plimsoll <COMMAND>

    Set up:
      init          Set up the hooks, for this project or for you
      doctor        Check the installation: programs, settings, hooks, disk, the run
      statusline    Configure the status line, or see why it shows what it shows
      uninstall     Remove the hooks, and nothing else

    Run:
      plan          Estimate what the open items will take
      run           Work through a plan unattended, one fresh session after another
      fleet         Let several machines work on one plan
      stop          Cancel the run; it cannot be resumed

    See:
      status        Show the run, its open questions, and the context usage
      log           Show what happened, one line per event, or why (--why)
      report        Write a page about the run: what was done, and what it cost
      usage         Show tokens and cost of all sessions, by day, project and model

    Records:
      sessions      List the sessions of all projects, and how to resume them
      handoffs      List the handoffs, and which of them no session has opened
      turns         Read the turn log: every model response, tool call and result
      memory        Read and write the agent's working memory
      prune         Remove old sessions, handoffs and output of runs

    Learn:
      demo          Watch a complete run: real Claude Code, scripted model, no key
      help          Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print the version; with --json also target and commit

    First steps:
      plimsoll init         set up the hooks, for you or for this project
      plimsoll run --objective 'Do fix_plan.md.' -- --allowedTools Bash Edit Write
      plimsoll status       the run, and how full the context window is

    `plimsoll COMMAND --help` shows the options of a command. `plimsoll help --all` also lists the
    commands that scripts use.
    ");
    let all = world.plimsoll(&["help", "--all"]).run().expect_success().stdout;
    let script_lines: Vec<&str> =
        all.lines().filter(|line| !main.lines().any(|listed| listed == *line)).collect();
    insta::assert_snapshot!(script_lines.join("\n"), @"
    For loops of your own:
      start         Prepare a run for a shell loop, and print its environment
      gate          Judge the session that ended: exit 0 stop, 1 continue, 75 pause
      monitor       Print what follows from the context usage, as a marker line
      prompt        Write PROMPT.md again for the current iteration
    For scripts and the agent:
      checkpoint    Write a checkpoint now
      context       Tell the module inside Claude Code what follows from the usage
      with-context  Run another program with the context usage in its environment
      query         Query state, journal, turns or memory with a jq program
      generate      Print the settings' schema, shell completions, or a manual page
    For Linear:
      linear        Deliver a run's notes to Linear, or check the connection
    ");
    let mut rows = all.lines().filter(|line| line.starts_with("  "));
    assert!(rows.all(|row| row.chars().count() <= 80), "a command takes one line: {all}");
    let script = world.plimsoll(&["generate", "completions", "bash"]).run().expect_success().stdout;
    let (main, all) = (commands_listed_in_help(&main), commands_listed_in_help(&all));
    assert!(main.iter().all(|name| all.contains(name)), "{main:?} {all:?}");
    for name in ["start", "gate", "monitor", "prompt", "with-context", "checkpoint", "query", "generate"] {
        assert!(!main.iter().any(|listed| listed == name), "{main:?}");
        assert!(all.iter().any(|listed| listed == name), "{all:?}");
        assert!(script.contains(&format!("plimsoll,{name})")), "{name} is completed");
    }
}

#[test]
fn short_help_of_run_points_to_the_full_help() {
    let world = World::without_git();
    let [short, long] =
        ["-h", "--help"].map(|option| world.plimsoll(&["run", option]).run().expect_success().stdout);
    let end = &short[short.find("Examples:").expect("examples")..];
    insta::assert_snapshot!(end, @"
    Examples:
      plimsoll run --verify 'cargo test' -- --allowedTools Bash Edit Write
      plimsoll run --resume                    after Ctrl-C, a crash, a reboot

    `plimsoll run --help` shows all options, more examples, and the exit codes.
    ");
    assert!(!short.contains("--idle-timeout") && long.contains("--idle-timeout"), "{short}");
    for example in short.lines().filter(|line| line.starts_with("  plimsoll ")) {
        assert!(long.lines().any(|line| line == example), "only those of `--help` are tried: {example}");
    }
    for heading in short.lines().filter(|line| line.ends_with(':') && !line.starts_with(' ')) {
        assert!(long.lines().any(|line| line == heading), "{heading}\n{long}");
    }
}
