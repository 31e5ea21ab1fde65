//! What lands is what was verified: whatever a worker's session writes into the shared `.git`, and whatever a fleet's database says.

use super::workers::{LIMIT, TWO, does, honest, number, reasons, run};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::story::tick as tick_in_plan;
use plimsoll_testkit::world::World;
use plimsoll_tests::{ITEMS, ScriptedAgent, world};

/// The branch on which everything is merged, whether anything is or not.
fn target(world: &World) -> String {
    world.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/plimsoll/"])
}

/// A clone that shares nothing with the project, of the branch on which everything is merged.
fn clone_of(world: &World) -> bool {
    let (project, target) = (world.project().display().to_string(), target(world));
    let clone = world.home().join("clone").display().to_string();
    let arguments = ["clone", "-q", "--no-local", "--single-branch", "-b", &target, &project, &clone];
    world.command("git", &arguments).run().code == Some(0)
}

/// What a file holds in the commit, whatever is replaced in this repository.
fn stored(world: &World, file: &str) -> String {
    let name = format!("{}:{file}", target(world));
    world.command("git", &["show", &name]).env("GIT_NO_REPLACE_OBJECTS", "1").run().stdout
}

#[test]
fn a_replaced_object_is_verified_as_a_clone_has_it() {
    // The session commits EVIL, and makes git show SAFE in this repository, also in its worktree. In the second way git does not
    // even look at the file there.
    let attack = "echo EVIL > code.txt && git add code.txt && git commit -qm Evil && \
        git replace $(git rev-parse HEAD:code.txt) $(echo SAFE | git hash-object -w --stdin) && rm code.txt && git checkout -q -- code.txt";
    for (hide, expected) in [("true", None), ("git update-index --assume-unchanged code.txt", Some(4))] {
        let mut world = world("# Plan\n\n- [ ] Item 1\n");
        let line = format!("test -e code.txt || {{ {attack} && {hide}; }}");
        let _model = ScriptedAgent::new(move |turn| does(turn, &line)).start(&mut world);
        let finished = run(&world, &["2", "--verify", "test ! -e code.txt || grep -q SAFE code.txt"]);
        assert!(!stored(&world, "code.txt").contains("EVIL"), "{hide}: {finished:?}");
        if let Some(code) = expected {
            assert_eq!(finished.code, Some(code), "{hide}: {finished:?}");
            let back = reasons(&world);
            assert!(back.iter().any(|reason| reason.contains("grep -q SAFE code.txt")), "{hide}: {back:?}");
        }
    }
}

/// Code of an item that a verify command executes can use git where everything is merged.
#[test]
fn what_a_verify_command_stages_does_not_land() {
    let mut world = world("# Plan\n\n- [ ] Item 1\n");
    let stage = "blob=$(echo EVIL | git hash-object -w --stdin) && git update-index --add --cacheinfo 100644,$blob,README.md";
    let line = format!("printf '%s\\n' '{stage}' > check.sh && mkdir -p done && echo 1 > done/1.txt");
    let _model = ScriptedAgent::new(move |turn| does(turn, &line)).start(&mut world);
    let finished = run(&world, &["2", "--verify", "test ! -e check.sh || sh check.sh", "--verify", "true"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(stored(&world, "check.sh").contains("update-index"), "{finished:?}");
    assert!(!stored(&world, "README.md").contains("EVIL"), "{finished:?}");
    let commit = target(&world);
    let (tree, message) = (
        world.git(&["rev-parse", &format!("{commit}^{{tree}}")]),
        world.git(&["log", "-1", "--format=%B", &commit]),
    );
    assert!(message.contains(&format!("Plimsoll-Verified: {tree} ")), "{message}");
}

#[test]
fn attributes_beside_the_commit_merge_nothing_without_a_conflict() {
    let mut world = world(TWO);
    let _model = ScriptedAgent::new(|turn| {
        let item = turn.item.clone().unwrap_or_default();
        let was_refused = turn.saw("## Earlier work on this item was sent back");
        let line = if was_refused {
            format!("echo '{item}' >> src/dates.txt")
        } else {
            format!(
                "echo '* merge=union' > $(git rev-parse --git-common-dir)/info/attributes; sed -i '1s/.*/{item}/' src/dates.txt"
            )
        };
        // Workers begin two seconds after each other: the first is at work when the second begins.
        let is_slow = turn.step == 0 && !was_refused && number(&item) == "1";
        does(turn, &line).delay(std::time::Duration::from_secs(if is_slow { 3 } else { 0 }))
    }).start(&mut world);
    let finished = run(&world, &["2"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let back = reasons(&world);
    assert!(back.len() == 1 && back[0].contains("conflict in src/dates.txt"), "{back:?}");
}

#[test]
fn an_object_with_another_content_neither_lands_nor_completes_a_run() {
    // `$1` gets the content of `$2`.
    let swap = "swap() { f=$(git rev-parse --git-common-dir)/objects/$(git rev-parse $1 | sed 's,^..,&/,'); \
        t=$(git rev-parse --git-common-dir)/objects/$(git rev-parse $2 | sed 's,^..,&/,'); rm -f $f; cp $t $f; }";
    // Its own: no other commit has it, and none shall.
    let mut own = world("# Plan\n\n- [ ] Item 1\n");
    let line = format!(
        "{swap}; echo new > new.txt && git add new.txt && git commit -qm New && swap HEAD:new.txt HEAD:README.md"
    );
    let _model = ScriptedAgent::new(move |turn| does(turn, &line)).start(&mut own);
    let finished = run(&own, &["2"]);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    let back = reasons(&own);
    assert!(back.iter().any(|reason| reason.contains("cannot be taken over")), "{back:?}");
    assert!(clone_of(&own), "the branch is whole: {finished:?}");

    // One that everything is built on.
    let mut old = world("# Plan\n\n- [ ] Item 1\n");
    let line =
        format!("{swap}; swap HEAD:src/dates.txt HEAD:README.md; mkdir -p done && echo 1 > done/1.txt");
    let _model = ScriptedAgent::new(move |turn| match turn.step {
        0 => Step::bash(line.clone()).usage(29_000),
        1 => does(turn, "true").usage(30_000),
        _ => honest(turn),
    })
    .start(&mut old);
    let finished = run(&old, &["2"]);
    assert!(matches!(finished.code, Some(4 | 7)), "{finished:?}");
    assert_ne!(old.json(".claude/ralph-state.json")["status"], "completed");
    assert!(
        format!("{finished:?}").contains("damaged") || !clone_of(&old) && finished.code == Some(4),
        "{finished:?}"
    );
}

#[test]
fn a_commit_that_landed_says_what_was_proved_and_the_log_checks_it() {
    let mut world = world(TWO);
    let _model = ScriptedAgent::new(honest).start(&mut world);
    let finished = run(&world, &["2", "--verify", "true", "--verify", "test -e README.md"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let target = target(&world);
    let message = world.git(&["log", "-1", "--format=%B", &target]);
    let tree = world.git(&["rev-parse", &format!("{target}^{{tree}}")]);
    assert!(message.contains(&format!("Plimsoll-Verified: {tree} 2 commands")), "{message}");
    assert!(message.contains("Plimsoll-Run: ") && message.contains("Plimsoll-Item: Item "), "{message}");
    let checked = world.plimsoll(&["log", "--check", &target]).timeout(LIMIT).run();
    assert_eq!(checked.code, Some(0), "{checked:?}");
    // Either item may have been the last one.
    let stdout =
        checked.stdout.replace(&tree, "[TREE]").replace("Item 1", "Item N").replace("Item 2", "Item N");
    insta::assert_snapshot!(world.stable_text(&stdout), @r#"
    commit [COMMIT]
    tree   [TREE]
    2 verify commands passed on this tree in the run [ID] at [DATE-TIME]
      true
      test -e README.md
    item "Item N": session [ID] (turn log intact), $0.01
    "#);
    // A message can be copied; the tree cannot.
    world.git(&["switch", "-q", &target]);
    world.write("src/dates.txt", "forged\n");
    world.git(&["commit", "-qam", &message]);
    let forged = world.plimsoll(&["log", "--check", "HEAD"]).run();
    assert_eq!(forged.code, Some(1), "{forged:?}");
    insta::assert_snapshot!(world.stable_text(&forged.stderr), @"
    plimsoll: no run of yours has checked the tree of [COMMIT]
    hint: its message names the run [ID]: check it on the computer of that run
    ");
    let unknown = world.plimsoll(&["log", "--check", "--output=/victim"]).run();
    assert_ne!(unknown.code, Some(0), "{unknown:?}");
}

/// Programs of the user's in a folder outside of the project, by which a filter and a signature work.
fn write_users_programs(world: &World) -> String {
    world.write_program(world.home().join("bin/shout"), "#!/bin/sh\ncat\n");
    world.write_program(
        world.home().join("bin/gpg"),
        "#!/bin/sh\ncat > /dev/null\nprintf '\\n[GNUPG:] SIG_CREATED D\\n' >&2\n\
         printf -- '-----BEGIN PGP SIGNATURE-----\\nusers\\n-----END PGP SIGNATURE-----\\n'\n",
    );
    world.home().join("bin").display().to_string()
}

#[test]
fn a_relative_path_entry_leads_git_to_no_program_of_a_commit() {
    let mut world = world("# Plan\n\n- [ ] Item 1\n");
    let users = write_users_programs(&world);
    world.write(".gitattributes", "*.loud filter=shout\n");
    world.git(&["add", ".gitattributes"]);
    world.git(&["commit", "-qm", "Attributes"]);
    world.git(&["config", "filter.shout.clean", "shout"]);
    world.git(&["config", "filter.shout.smudge", "shout"]);
    world.git(&["config", "filter.shout.required", "true"]);
    world.git(&["config", "commit.gpgSign", "true"]);
    // The same program runs in the session's worktree, inside of its sandbox. Only what is outside counts here.
    let evil = "case $PWD in */merge) echo $0 >> ~/ran;; esac\n";
    let line = format!(
        "mkdir -p node_modules/.bin && for name in shout gpg ssh; do \
         printf '#!/bin/sh\\n%sexec {users}/%s \"$@\"\\n' '{evil}' $name > node_modules/.bin/$name; done && \
         chmod +x node_modules/.bin/* && echo aloud > a.loud && export PATH={users}:$PATH"
    );
    let _model = ScriptedAgent::new(move |turn| does(turn, &line)).start(&mut world);
    let usual = world.env().into_iter().find(|(name, _)| name == "PATH").expect("a PATH").1;
    world.set_env("PATH", format!("node_modules/.bin::{users}:{usual}"));
    let finished = run(&world, &["2", "--verify", "true"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let signed = world.git(&["cat-file", "commit", &target(&world)]);
    assert!(signed.contains("users") && stored(&world, "a.loud") == "aloud\n", "{finished:?}");
    let ran = world.home().join("ran");
    assert!(!ran.exists(), "{}", world.read(&ran));
}

/// A session in the sandbox can write every file of its worktree, and leave its work uncommitted.
#[test]
fn hooks_and_filters_of_the_tree_run_for_no_worker_and_their_files_are_named() {
    let mut world = world(TWO);
    let trap = "#!/bin/sh\ntest -n \"$IN_SESSION\" || echo \"$0 $PWD\" >> ~/ran\n";
    let hooks =
        ["pre-commit", "post-commit", "post-checkout", "pre-rebase", "post-rewrite", "reference-transaction"];
    world.write_program("tools/clean.sh", "#!/bin/sh\ntr a-z A-Z\n");
    world.write_program(".husky/pre-commit", "#!/bin/sh\nsh tools/check.sh\n");
    world.write("tools/check.sh", "true\n");
    world.write(".gitattributes", "*.own filter=own\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "Hooks"]);
    world.git(&["config", "core.hooksPath", ".husky"]);
    world.git(&["config", "filter.own.clean", "sh tools/clean.sh"]);
    world.git(&["config", "filter.own.smudge", "sh tools/clean.sh"]);
    let attack = format!(
        "export IN_SESSION=1; for hook in {}; do printf '%s' '{trap}' > .husky/$hook; chmod +x .husky/$hook; done; \
         printf '%s' '{trap}' > tools/check.sh; printf '%scat\\n' '{trap}' > tools/clean.sh",
        hooks.join(" ")
    );
    let _model = ScriptedAgent::new(move |turn| {
        let item = turn.item.clone().unwrap_or_default();
        match (turn.step, number(&item).as_str()) {
            // Committed by itself, then some work that is not.
            (0, "1") => Step::bash(format!(
                "{attack}; mkdir -p done && echo 1 > done/1.txt && git -c core.hooksPath=/dev/null add done && \
                 git -c core.hooksPath=/dev/null commit -qm 'Finish {item}'; \
                 echo new > new.own; echo plain > plain.txt; sed -i 's/\\[ \\]/[x]/' plimsoll-item.md"
            ))
            .usage(30_000),
            (0, number) => Step::bash(format!(
                "{attack}; mkdir -p done && echo {number} > done/{number}.txt; sed -i 's/\\[ \\]/[x]/' plimsoll-item.md"
            ))
            .usage(30_000),
            _ => honest(turn),
        }
    }).start(&mut world);
    let finished = run(&world, &["2", "--verify", "true"]);
    let ran = world.home().join("ran");
    assert!(!ran.exists(), "{}: {finished:?}", world.read(&ran));
    assert_eq!(stored(&world, "plain.txt"), "plain\n", "{finished:?}");
    let files = world.git(&["ls-tree", "-r", "--name-only", &target(&world)]);
    assert!(!files.contains("new.own"), "{files}");
    let said = format!("{} {}", finished.stdout, finished.stderr);
    assert!(said.contains("these files are not committed: new.own"), "{finished:?}");
    let place = world.home().join(".local/state/plimsoll/trees");
    let kept = world.command("find", &[&place.display().to_string(), "-name", "new.own"]).run().stdout;
    assert_eq!(kept.lines().count(), 1, "what no commit has stays: {kept}");
}

#[test]
fn each_item_is_named_by_its_last_commit_if_git_does_not_track_the_plan() {
    let mut world = world("# Plan\n\n- [ ] Item 1\n- [ ] Item 2\n- [ ] Item 3\n");
    world.git(&["rm", "-q", "--cached", "fix_plan.md"]);
    world.write(".gitignore", "fix_plan.md\n");
    world.git(&["add", ".gitignore"]);
    world.git(&["commit", "-qm", "The plan is mine"]);
    let _model = ScriptedAgent::new(honest).start(&mut world);
    // So slow where results are merged that the later items are merged together.
    let finished = run(&world, &["3", "--verify", "case $PWD in */merge) sleep 6;; esac"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let target = target(&world);
    for number in 1..=3 {
        let file = format!("done/{number}.txt");
        let message = world.git(&["log", "-1", "--format=%B", &target, "--", &file]);
        assert!(message.contains("Plimsoll-Run: "), "{number}: {message}");
        assert!(message.contains(&format!("Plimsoll-Item: Item {number}")), "{number}: {message}");
    }
}

#[test]
fn a_run_without_workers_keeps_what_was_proved_and_a_broken_turn_log_is_named() {
    let mut world = world(ITEMS);
    let _model = ScriptedAgent::new(|turn| {
        let Some(item) = turn.item.clone() else { return Step::text(turn.promise.clone()) };
        let done = format!("echo '{item}' >> work.txt && {}", tick_in_plan(&item));
        let commit = format!("git add work.txt fix_plan.md && git commit -qm 'Finish {item}'");
        match turn.step {
            0 => Step::bash(format!("{done} && {commit}")).usage(30_000),
            _ => Step::text(format!("{item} is done.\n\n{}", turn.promise)).usage(31_000),
        }
    })
    .start(&mut world);
    let finished = plimsoll_tests::run(&world, &["--verify", "test -e work.txt"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let check = |commit: &str| world.plimsoll(&["log", "--check", commit]).run();
    let checked = ["HEAD", "HEAD~1"].map(|commit| {
        let checked = check(commit);
        assert_eq!(checked.code, Some(0), "{checked:?}");
        world.stable_text(&checked.stdout)
    });
    insta::assert_snapshot!(checked.join("\n"), @r#"
    commit [COMMIT]
    tree   [COMMIT]
    1 verify command passed on this tree in the run [ID] at [DATE-TIME]
      test -e work.txt
    item "Item three": session [ID] (turn log intact), $0.01

    commit [COMMIT]
    tree   [COMMIT]
    1 verify command passed on this tree in the run [ID] at [DATE-TIME]
      test -e work.txt
    item "Item two": session [ID] (turn log intact), $0.01
    "#);
    assert_eq!(check("HEAD~3").code, Some(1), "no command ran there");
    let turns = world.path(".claude/plimsoll/turns");
    for file in std::fs::read_dir(turns).expect("turn logs").flatten().map(|entry| entry.path()) {
        if file.extension().is_some_and(|extension| extension == "jsonl") {
            world.write(&file, &world.read(&file).replace("Finish Item", "Forged Item"));
        }
    }
    let checked = check("HEAD");
    let session = checked.stdout.lines().find(|line| line.contains("turn log"));
    insta::assert_snapshot!(world.stable_text(session.unwrap_or_default()), @r#"item "Item three": session [ID] (turn log broken: plimsoll turns verify), $0.01"#);
}
