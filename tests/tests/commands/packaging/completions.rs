use crate::packaging::{find_optional_program, run_bash_line};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;

fn world_with_completion_script(shell: &str, file: &str) -> World {
    let mut world = World::without_git();
    world.set_env("PS1", "prompt$ ");
    let script = world.plimsoll(&["generate", "completions", shell]).run().expect_success().stdout;
    world.write(file, &script);
    world
}

/// Starts a shell, loads the completions, types part of a command and Tab, and waits for the completed command.
fn assert_tab_completes(world: &World, program: &str, arguments: &[&str], load_command: &str) {
    let mut terminal = Terminal::start_program_in_project(world, program, arguments, 100, 30);
    terminal.wait_for_text("prompt$");
    // The quotes split the word, so that the typed line itself does not match.
    terminal.type_text(&format!("{load_command}; echo load''ed"));
    terminal.press_enter();
    terminal.wait_for_text("loaded");
    terminal.type_text("plimsoll ru\t");
    terminal.wait_for_text("plimsoll run");
    terminal.type_text("--resu\t");
    terminal.wait_for_text("plimsoll run --resume");
    terminal.close();
}

#[test]
fn bash_completes_commands_and_options_on_tab() {
    let world = world_with_completion_script("bash", "plimsoll.bash");
    assert_tab_completes(&world, "bash", &["--noprofile", "--norc", "-i"], ". ./plimsoll.bash");
}

#[test]
fn bash_completion_offers_commands_options_and_values() {
    let world = world_with_completion_script("bash", "plimsoll.bash");
    let completions_for = |words: &[&str]| {
        let last = words.len() - 1;
        let line = format!(
            ". ./plimsoll.bash; COMP_WORDS=({}); COMP_CWORD={last}; _plimsoll plimsoll '{}' '{}'; printf '%s ' \"${{COMPREPLY[@]}}\"",
            words.iter().map(|word| format!("'{word}' ")).collect::<String>(),
            words[last],
            words[last - 1],
        );
        run_bash_line(&world, &line).expect_success().stdout
    };
    assert_eq!(completions_for(&["plimsoll", "ru"]), "run ");
    assert_eq!(completions_for(&["plimsoll", "turns", "e"]), "export erase ");
    assert_eq!(
        completions_for(&["plimsoll", "run", "--max-"]),
        "--max-iterations --max-cost --max-cost-per-day --max-tokens "
    );
    assert_eq!(completions_for(&["plimsoll", "query", "--on", "j"]), "journal ");
}

#[test]
fn zsh_completes_commands_and_options_on_tab() {
    if find_optional_program("zsh").is_none() {
        return;
    }
    let world = world_with_completion_script("zsh", "functions/_plimsoll");
    let load = "fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -u -D";
    assert_tab_completes(&world, "zsh", &["-f", "-i"], load);
}

#[test]
fn fish_completion_offers_commands() {
    if find_optional_program("fish").is_none() {
        return;
    }
    let world = world_with_completion_script("fish", "plimsoll.fish");
    let launch =
        world.command("fish", &["--no-config", "-c", "source plimsoll.fish; complete -C 'plimsoll ru'"]);
    let finished = launch.run().expect_success();
    let words: Vec<_> = finished.stdout.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(words, ["run"], "{finished:?}");
}
