use super::*;

const HOME_FOLDER: &str = "/home/u";

fn paths(paths: &[&str]) -> Vec<PathBuf> {
    paths.iter().map(PathBuf::from).collect()
}

fn readable_path(path: &str) -> ReadablePath {
    ReadablePath { source: path.into(), target: path.into() }
}

fn layout() -> SandboxLayout {
    SandboxLayout {
        project: "/home/u/dev/p".into(),
        home: HOME_FOLDER.into(),
        hidden_folders: paths(&["/run", "/home", "/root"]),
        ..SandboxLayout::default()
    }
}

/// Returns the mount arguments of a sandbox in their order, without those that every sandbox has.
fn mount_arguments(layout: &SandboxLayout) -> Vec<String> {
    let arguments: Vec<String> =
        layout.bubblewrap_arguments().iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let begin =
        "--die-with-parent --new-session --unshare-all --cap-drop ALL --ro-bind / / --dev /dev --proc /proc ";
    let end = format!(" --chdir {}", layout.project.display());
    let words = arguments.join(" ");
    let words = words.strip_prefix(begin).unwrap().strip_suffix(&end).unwrap();
    words.split("--").filter(|word| !word.is_empty()).map(|word| word.trim_end().to_owned()).collect()
}

#[test]
fn an_empty_folder_is_mounted_before_the_paths_inside_it() {
    let layout = SandboxLayout {
        cache_folder: Some("/home/u/.local/state/plimsoll/runs/r/cache".into()),
        readable_paths: vec![readable_path("/home/u/.cargo/bin")],
        repository_folders: paths(&["/home/u/dev"]),
        read_only_paths: paths(&["/home/u/dev/p/.git"]),
        ..layout()
    };
    assert_eq!(
        mount_arguments(&layout),
        [
            "tmpfs /home",
            "tmpfs /home/u",
            "tmpfs /root",
            "tmpfs /run",
            "tmpfs /tmp",
            "ro-bind /home/u/dev /home/u/dev",
            "ro-bind /home/u/.cargo/bin /home/u/.cargo/bin",
            "bind /home/u/.local/state/plimsoll/runs/r/cache /home/u/.cache",
            "bind /home/u/dev/p /home/u/dev/p",
            "ro-bind /home/u/dev/p/.git /home/u/dev/p/.git",
        ]
    );
}

#[test]
fn a_path_is_mounted_only_if_it_exposes_nothing_else() {
    let is_mounted = |path: ReadablePath| {
        let layout = SandboxLayout { readable_paths: vec![path], ..layout() };
        mount_arguments(&layout).iter().any(|mount| mount.starts_with("ro-bind"))
    };
    for (path, expected) in [
        ("/home/u/.nvm/versions/node/v20/bin", true),
        ("/root/.cargo/bin", true),
        // The path is visible in any case.
        ("/usr/bin", false),
        // The path would expose the home folder, other home folders, or the project's neighbors.
        ("/home/u", false),
        ("/home", false),
        ("/home/u/dev", false),
        // The path is in the project, which is writable.
        ("/home/u/dev/p", false),
        ("/home/u/dev/p/node_modules/.bin", false),
    ] {
        assert_eq!(is_mounted(readable_path(path)), expected, "{path}");
    }
    let link = |source: &str, place: &str| ReadablePath { source: source.into(), target: place.into() };
    assert!(is_mounted(link("/data/cargo/bin", "/home/u/.cargo/bin")));
    assert!(!is_mounted(link("/home/u", "/home/u/.local/bin")), "a link to the home");
    assert!(!is_mounted(link("/home/u/dev", "/home/u/.local/bin")), "a link to the project's neighbors");
}

#[test]
fn a_repository_that_contains_the_home_folder_stays_hidden() {
    let layout = SandboxLayout { repository_folders: paths(&["/home/u", "/home"]), ..layout() };
    assert!(!mount_arguments(&layout).iter().any(|mount| mount.starts_with("ro-bind")));
}

#[test]
fn a_project_behind_a_link_is_mounted_at_both_paths() {
    let mounts_spelled = |spelled: &str| {
        let layout = SandboxLayout {
            project_link: Some(spelled.into()),
            read_only_paths: paths(&["/home/u/dev/p/.git"]),
            ..layout()
        };
        mount_arguments(&layout).split_off(5)
    };
    let project_mounts =
        ["bind /home/u/dev/p /home/u/dev/p", "ro-bind /home/u/dev/p/.git /home/u/dev/p/.git"];
    assert_eq!(
        mounts_spelled("/home/u/link"),
        [
            project_mounts[0],
            "bind /home/u/dev/p /home/u/link",
            project_mounts[1],
            "ro-bind /home/u/dev/p/.git /home/u/link/.git"
        ]
    );
    // Outside the hidden folders the link itself is visible.
    assert_eq!(mounts_spelled("/srv/link"), project_mounts);
}

#[test]
fn a_hidden_folder_is_covered_after_its_project_is_mounted() {
    let layout = SandboxLayout { hidden_folders: paths(&["/home/u/dev/p/.config"]), ..layout() };
    let mounts = mount_arguments(&layout);
    assert_eq!(mounts[2..], ["bind /home/u/dev/p /home/u/dev/p", "tmpfs /home/u/dev/p/.config"]);
}

#[test]
fn sockets_that_stay_visible_are_covered() {
    let layout = SandboxLayout {
        readable_paths: vec![readable_path("/home/u/.pyenv/lib")],
        socket_paths: paths(&[
            "/run/docker.sock",
            "/var/lib/mysql/mysql.sock",
            "/home/u/.pyenv/lib/s",
            "/home/u/dev/p/dev.sock",
        ]),
        ..layout()
    };
    let covered: Vec<String> =
        mount_arguments(&layout).into_iter().filter(|mount| mount.contains("/dev/null")).collect();
    assert_eq!(
        covered,
        ["ro-bind /dev/null /var/lib/mysql/mysql.sock", "ro-bind /dev/null /home/u/.pyenv/lib/s"]
    );
    let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                 ffff: 00000002 00000000 00010000 0001 01 20035 /run/a b.sock\n\
                 ffff: 00000002 00000000 00010000 0001 01 20036 @/tmp/abstract\n\
                 ffff: 00000003 00000000 00000000 0001 03 20037\n\
                 ffff: 00000003 00000000 00000000 0001 03 20038 /run/a b.sock\n";
    assert_eq!(parse_sorted_socket_paths(table), paths(&["/run/a b.sock"]));
}

#[test]
fn tools_are_mounted_with_their_libraries_but_without_tokens() {
    let tool_paths_for = |path: &str, variables: &[(&str, &str)]| {
        let variable = |name: &str| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
        };
        paths_needed_by_programs_and_toolchains(path, Path::new(HOME_FOLDER), variable)
    };
    let has = |path: &str, tool: &str| tool_paths_for(path, &[]).contains(&PathBuf::from(tool));
    for (path, tool, expected) in [
        ("/usr/bin:/home/u/x/bin", "/home/u/x/bin", true),
        ("/home/u/.nvm/versions/node/v20/bin", "/home/u/.nvm/versions/node/v20/lib", true),
        ("/home/u/.pyenv/shims", "/home/u/.pyenv/libexec", true),
        ("/home/u/.pyenv/shims", "/home/u/.pyenv/versions", true),
        ("/home/u/.docker/bin", "/home/u/.docker/config.json", false),
        ("/home/u/.docker/bin", "/home/u/.docker", false),
        // Folders next to ~/bin are private to the user.
        ("/home/u/bin", "/home/u/bin", true),
        ("/home/u/bin", "/home/u/lib", false),
        ("/home/u/scripts", "/home/u/lib", false),
        (":.:bin", "bin", false),
        ("", "/home/u/.cargo/registry", true),
        ("", "/home/u/.cargo", false),
        ("/home/u/.cargo/bin", "/home/u/.cargo/credentials.toml", false),
        ("", "/home/u/.npm/_cacache", true),
        ("", "/home/u/.local/share/uv/python", true),
    ] {
        assert_eq!(has(path, tool), expected, "{tool} by {path}");
    }
    let moved = tool_paths_for("", &[("CARGO_HOME", "/opt/cargo"), ("RUSTUP_HOME", "relative")]);
    assert!(moved.contains(&PathBuf::from("/opt/cargo/registry")));
    assert!(!moved.contains(&PathBuf::from("/home/u/.cargo/registry")));
    assert!(moved.contains(&PathBuf::from("/home/u/.rustup/toolchains")));
}

#[test]
fn no_variable_with_a_secret_is_kept() {
    let is_kept = |name: &str, value: &str| {
        is_variable_allowlisted_for_sandbox(name, value, Path::new("/home/u/dev/p"))
    };
    for name in
        ["PATH", "LANG", "LC_ALL", "TZ", "CI", "CARGO_HOME", "RUSTUP_HOME", "RUST_BACKTRACE", "RUSTFLAGS"]
    {
        assert!(is_kept(name, "x"), "{name}");
    }
    for name in [
        "ANTHROPIC_API_KEY",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "GITHUB_TOKEN",
        "SSH_AUTH_SOCK",
        "DATABASE_URL",
        "PLIMSOLL_DATABASE_URL",
        "PLIMSOLL_RUN_ID",
        "PLIMSOLL_RUN_RECORD",
        "RALPH_STATE_FILE",
        "CARGO_REGISTRY_TOKEN",
        "CARGO_REGISTRIES_OURS_TOKEN",
        "CARGO_REGISTRIES_OURS_CREDENTIAL_PROVIDER",
        "npm_config__authToken",
        "NODE_AUTH_TOKEN",
        "GIT_CONFIG_GLOBAL",
        "DBUS_SESSION_BUS_ADDRESS",
        "HTTPS_PROXY",
        "LD_PRELOAD",
        "HOME",
        "TMPDIR",
    ] {
        assert!(!is_kept(name, "x"), "{name}");
    }
    for (folder, expected) in
        [("target2", true), ("/home/u/dev/p/target2", true), ("/home/u/target", false), ("/big", false)]
    {
        assert_eq!(is_kept("CARGO_TARGET_DIR", folder), expected, "{folder}");
    }
}
