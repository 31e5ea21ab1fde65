use crate::packaging::{found, shell};
use plimsoll_testkit::terminal::Terminal;
use plimsoll_testkit::world::World;

fn with_script(shell: &str, file: &str) -> World {
    let mut world = World::without_git();
    world.set_env("PS1", "prompt$ ");
    let script = world.plimsoll(&["generate", "completions", shell]).run().expect_success().stdout;
    world.write(file, &script);
    world
}

/// Starts a shell, loads the completions, and types up to a tab; what then stands there is the shell's work.
fn at_a_tab(world: &World, program: &str, arguments: &[&str], load: &str) {
    let mut terminal = Terminal::start(world, program, arguments, 100, 30);
    terminal.wait_for("prompt$");
    // As it is typed the word is in two pieces.
    terminal.type_text(&format!("{load}; echo load''ed"));
    terminal.press_enter();
    terminal.wait_for("loaded");
    terminal.type_text("plimsoll ru\t");
    terminal.wait_for("plimsoll run");
    terminal.type_text("--resu\t");
    terminal.wait_for("plimsoll run --resume");
    terminal.close();
}

#[test]
fn bash_completes_at_a_tab() {
    let world = with_script("bash", "plimsoll.bash");
    at_a_tab(&world, "bash", &["--noprofile", "--norc", "-i"], ". ./plimsoll.bash");
}

#[test]
fn bash_is_offered_commands_options_and_values() {
    let world = with_script("bash", "plimsoll.bash");
    let offered = |words: &[&str]| {
        let last = words.len() - 1;
        let line = format!(
            ". ./plimsoll.bash; COMP_WORDS=({}); COMP_CWORD={last}; _plimsoll plimsoll '{}' '{}'; printf '%s ' \"${{COMPREPLY[@]}}\"",
            words.iter().map(|word| format!("'{word}' ")).collect::<String>(),
            words[last],
            words[last - 1],
        );
        shell(&world, &line).expect_success().stdout
    };
    assert_eq!(offered(&["plimsoll", "ru"]), "run ");
    assert_eq!(offered(&["plimsoll", "turns", "e"]), "export erase ");
    assert_eq!(
        offered(&["plimsoll", "run", "--max-"]),
        "--max-iterations --max-cost --max-cost-per-day --max-tokens "
    );
    assert_eq!(offered(&["plimsoll", "query", "--on", "j"]), "journal ");
}

#[test]
fn zsh_completes_at_a_tab() {
    if found("zsh").is_none() {
        return;
    }
    let world = with_script("zsh", "functions/_plimsoll");
    let load = "fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -u -D";
    at_a_tab(&world, "zsh", &["-f", "-i"], load);
}

#[test]
fn fish_is_offered_commands() {
    if found("fish").is_none() {
        return;
    }
    let world = with_script("fish", "plimsoll.fish");
    let offered =
        world.command("fish", &["--no-config", "-c", "source plimsoll.fish; complete -C 'plimsoll ru'"]);
    let offered = offered.run().expect_success();
    let words: Vec<_> = offered.stdout.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(words, ["run"], "{offered:?}");
}
