use super::*;

const HOME_FOLDER: &str = "/home/u";

fn paths(paths: &[&str]) -> Vec<PathBuf> {
    paths.iter().map(PathBuf::from).collect()
}

fn same(path: &str) -> ReadablePath {
    ReadablePath { source: path.into(), place: path.into() }
}

fn layout() -> Layout {
    Layout {
        project: "/home/u/dev/p".into(),
        home: HOME_FOLDER.into(),
        hidden: paths(&["/run", "/home", "/root"]),
        ..Layout::default()
    }
}

/// The mounts of a sandbox in their order, a line each, without those that every sandbox has.
fn mounts(layout: &Layout) -> Vec<String> {
    let words: Vec<String> =
        layout.bwrap_arguments().iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let begin =
        "--die-with-parent --new-session --unshare-all --cap-drop ALL --ro-bind / / --dev /dev --proc /proc ";
    let end = format!(" --chdir {}", layout.project.display());
    let words = words.join(" ");
    let words = words.strip_prefix(begin).unwrap().strip_suffix(&end).unwrap();
    words.split("--").filter(|word| !word.is_empty()).map(|word| word.trim_end().to_owned()).collect()
}

#[test]
fn an_empty_folder_comes_before_what_is_mounted_in_it() {
    let layout = Layout {
        cache: Some("/home/u/.local/state/plimsoll/runs/r/cache".into()),
        readable: vec![same("/home/u/.cargo/bin")],
        repository: paths(&["/home/u/dev"]),
        protected: paths(&["/home/u/dev/p/.git"]),
        ..layout()
    };
    assert_eq!(
        mounts(&layout),
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
fn a_path_is_readable_only_if_it_shows_nothing_else() {
    let shown = |path: ReadablePath| {
        let layout = Layout { readable: vec![path], ..layout() };
        mounts(&layout).iter().any(|mount| mount.starts_with("ro-bind"))
    };
    for (path, expected) in [
        ("/home/u/.nvm/versions/node/v20/bin", true),
        ("/root/.cargo/bin", true),
        // It is visible anyway.
        ("/usr/bin", false),
        // It would show the home, other homes, or the project's neighbors.
        ("/home/u", false),
        ("/home", false),
        ("/home/u/dev", false),
        // It is the project, which is writable.
        ("/home/u/dev/p", false),
        ("/home/u/dev/p/node_modules/.bin", false),
    ] {
        assert_eq!(shown(same(path)), expected, "{path}");
    }
    let link = |source: &str, place: &str| ReadablePath { source: source.into(), place: place.into() };
    assert!(shown(link("/data/cargo/bin", "/home/u/.cargo/bin")));
    assert!(!shown(link("/home/u", "/home/u/.local/bin")), "a link to the home");
    assert!(!shown(link("/home/u/dev", "/home/u/.local/bin")), "a link to the project's neighbors");
}

#[test]
fn a_repository_that_holds_the_home_stays_hidden() {
    let layout = Layout { repository: paths(&["/home/u", "/home"]), ..layout() };
    assert!(!mounts(&layout).iter().any(|mount| mount.starts_with("ro-bind")));
}

#[test]
fn a_project_behind_a_link_is_at_both_places() {
    let spelled = |spelled: &str| {
        let layout =
            Layout { spelled: Some(spelled.into()), protected: paths(&["/home/u/dev/p/.git"]), ..layout() };
        mounts(&layout).split_off(5)
    };
    let here = ["bind /home/u/dev/p /home/u/dev/p", "ro-bind /home/u/dev/p/.git /home/u/dev/p/.git"];
    assert_eq!(
        spelled("/home/u/link"),
        [here[0], "bind /home/u/dev/p /home/u/link", here[1], "ro-bind /home/u/dev/p/.git /home/u/link/.git"]
    );
    // The link itself is there.
    assert_eq!(spelled("/srv/link"), here);
}

#[test]
fn a_folder_of_the_users_in_the_project_is_empty_after_the_project_is_mounted() {
    let layout = Layout { hidden: paths(&["/home/u/dev/p/.config"]), ..layout() };
    let mounts = mounts(&layout);
    assert_eq!(mounts[2..], ["bind /home/u/dev/p /home/u/dev/p", "tmpfs /home/u/dev/p/.config"]);
}

#[test]
fn sockets_that_stay_visible_are_covered() {
    let layout = Layout {
        readable: vec![same("/home/u/.pyenv/lib")],
        sockets: paths(&[
            "/run/docker.sock",
            "/var/lib/mysql/mysql.sock",
            "/home/u/.pyenv/lib/s",
            "/home/u/dev/p/dev.sock",
        ]),
        ..layout()
    };
    let covered: Vec<String> =
        mounts(&layout).into_iter().filter(|mount| mount.contains("/dev/null")).collect();
    assert_eq!(
        covered,
        ["ro-bind /dev/null /var/lib/mysql/mysql.sock", "ro-bind /dev/null /home/u/.pyenv/lib/s"]
    );
    let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                 ffff: 00000002 00000000 00010000 0001 01 20035 /run/a b.sock\n\
                 ffff: 00000002 00000000 00010000 0001 01 20036 @/tmp/abstract\n\
                 ffff: 00000003 00000000 00000000 0001 03 20037\n\
                 ffff: 00000003 00000000 00000000 0001 03 20038 /run/a b.sock\n";
    assert_eq!(socket_paths(table), paths(&["/run/a b.sock"]));
}

#[test]
fn programs_bring_what_lies_beside_them_and_no_file_with_a_token() {
    let tools = |path: &str, variables: &[(&str, &str)]| {
        let variable = |name: &str| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
        };
        tool_paths(path, Path::new(HOME_FOLDER), variable)
    };
    let has = |path: &str, tool: &str| tools(path, &[]).contains(&PathBuf::from(tool));
    for (path, tool, expected) in [
        ("/usr/bin:/home/u/x/bin", "/home/u/x/bin", true),
        ("/home/u/.nvm/versions/node/v20/bin", "/home/u/.nvm/versions/node/v20/lib", true),
        ("/home/u/.pyenv/shims", "/home/u/.pyenv/libexec", true),
        ("/home/u/.pyenv/shims", "/home/u/.pyenv/versions", true),
        ("/home/u/.docker/bin", "/home/u/.docker/config.json", false),
        ("/home/u/.docker/bin", "/home/u/.docker", false),
        // What is beside ~/bin is the user's.
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
    let moved = tools("", &[("CARGO_HOME", "/opt/cargo"), ("RUSTUP_HOME", "relative")]);
    assert!(moved.contains(&PathBuf::from("/opt/cargo/registry")));
    assert!(!moved.contains(&PathBuf::from("/home/u/.cargo/registry")));
    assert!(moved.contains(&PathBuf::from("/home/u/.rustup/toolchains")));
}

#[test]
fn no_variable_with_a_secret_is_kept() {
    let is_kept = |name: &str, value: &str| is_kept_variable(name, value, Path::new("/home/u/dev/p"));
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
