//! The address of the repository is one constant, `repository` in Cargo.toml. The pages that have to name it are written
//! anew with `PLIMSOLL_UPDATE_GOLDEN=1`.

use plimsoll_testkit::workspace_root;

const PAGES: [&str; 3] = ["docs/decisions/cargo-registry.md", "docs/start.md", "docs/upgrade.md"];

/// What stands before the address in a command, and behind it.
const COMMANDS: [(&str, &str); 3] = [
    ("git clone ", " plimsoll"),
    ("curl -fsSL ", "/releases/latest/download/install.sh"),
    ("cargo install --locked --git ", " plimsoll"),
];

/// A line of a page as it has to be, if it names the address.
fn right(line: &str, repository: &str) -> Option<String> {
    COMMANDS.iter().find_map(|(before, behind)| {
        let start = line.find(before)? + before.len();
        let length = line[start..].find(behind)?;
        Some(format!("{}{repository}{}", &line[..start], &line[start + length..]))
    })
}

#[test]
fn the_pages_name_the_address_that_cargo_toml_has() {
    let manifest = std::fs::read_to_string(workspace_root().join("Cargo.toml")).expect("Cargo.toml");
    let line = manifest.lines().find_map(|line| line.strip_prefix("repository = ")).expect("an address");
    let repository = line.trim_matches('"');
    for name in PAGES {
        let path = workspace_root().join(name);
        let text = std::fs::read_to_string(&path).expect(name);
        let lines =
            text.lines().map(|line| right(line, repository).unwrap_or_else(|| line.to_owned()) + "\n");
        let wanted: String = lines.collect();
        assert!(
            text.lines().any(|line| right(line, repository).is_some()),
            "{name} has none of the commands"
        );
        if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &wanted).expect("the pages are writable");
        } else {
            assert_eq!(text, wanted, "{name}: PLIMSOLL_UPDATE_GOLDEN=1 writes it anew");
        }
    }
}

/// Its first command works in a clone today; an address that leads nowhere yet would not.
#[test]
fn the_readme_names_no_address_that_does_not_exist_and_is_short() {
    let text = std::fs::read_to_string(workspace_root().join("README.md")).expect("README.md");
    assert!(!text.contains("example.invalid"));
    let lines = text.lines().count();
    assert!(lines <= 120, "{lines} lines");
}

#[test]
fn an_address_in_a_command_is_found_and_nothing_else_is_touched() {
    for (line, expected) in [
        (
            "git clone https://old.example/x plimsoll && cd plimsoll",
            Some("git clone NEW plimsoll && cd plimsoll"),
        ),
        (
            "curl -fsSL https://old.example/x/releases/latest/download/install.sh | sh   # all",
            Some("curl -fsSL NEW/releases/latest/download/install.sh | sh   # all"),
        ),
        ("git clone it", None),
        ("see https://old.example/x", None),
    ] {
        assert_eq!(right(line, "NEW").as_deref(), expected, "{line}");
    }
}
