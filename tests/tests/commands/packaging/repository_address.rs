//! The address of the repository is one constant, `repository` in Cargo.toml. `PLIMSOLL_UPDATE_GOLDEN=1` updates the pages
//! that contain it.

use plimsoll_testkit::workspace_root;

const PAGES: [&str; 3] = ["docs/decisions/cargo-registry.md", "docs/start.md", "docs/upgrade.md"];

/// The text before and after the address in each command.
const COMMANDS: [(&str, &str); 3] = [
    ("git clone ", " plimsoll"),
    ("curl -fsSL ", "/releases/latest/download/install.sh"),
    ("cargo install --locked --git ", " plimsoll"),
];

/// Returns the line with the given address, or `None` if it has none of the commands.
fn line_with_address(line: &str, repository: &str) -> Option<String> {
    COMMANDS.iter().find_map(|(prefix, suffix)| {
        let start = line.find(prefix)? + prefix.len();
        let length = line[start..].find(suffix)?;
        Some(format!("{}{repository}{}", &line[..start], &line[start + length..]))
    })
}

#[test]
fn docs_use_the_repository_address_of_cargo_toml() {
    let manifest = std::fs::read_to_string(workspace_root().join("Cargo.toml")).expect("Cargo.toml");
    let line = manifest.lines().find_map(|line| line.strip_prefix("repository = ")).expect("an address");
    let repository = line.trim_matches('"');
    for name in PAGES {
        let path = workspace_root().join(name);
        let text = std::fs::read_to_string(&path).expect(name);
        let lines = text
            .lines()
            .map(|line| line_with_address(line, repository).unwrap_or_else(|| line.to_owned()) + "\n");
        let expected: String = lines.collect();
        assert!(
            text.lines().any(|line| line_with_address(line, repository).is_some()),
            "{name} has none of the commands"
        );
        if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &expected).expect("the pages are writable");
        } else {
            assert_eq!(text, expected, "{name}: PLIMSOLL_UPDATE_GOLDEN=1 writes it anew");
        }
    }
}

/// The first command of the README works in a clone; a placeholder address would not work yet.
#[test]
fn readme_is_short_and_has_no_placeholder_address() {
    let text = std::fs::read_to_string(workspace_root().join("README.md")).expect("README.md");
    assert!(!text.contains("example.invalid"));
    let lines = text.lines().count();
    assert!(lines <= 120, "{lines} lines");
}

#[test]
fn only_addresses_in_known_commands_are_replaced() {
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
        assert_eq!(line_with_address(line, "NEW").as_deref(), expected, "{line}");
    }
}
