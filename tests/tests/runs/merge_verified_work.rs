//! Only verified content is merged, whatever a worker's session writes into the shared `.git`, and whatever a fleet's
//! database says.

use super::workers::{
    RUN_TIMEOUT, TWO_ITEM_PLAN, do_item_step, item_number, run_with_workers, sent_back_reasons,
    write_item_file_step,
};
use plimsoll_testkit::scripted_agent::tick_item_command as tick_in_plan;
use plimsoll_testkit::scripted_model::Step;
use plimsoll_testkit::world::World;
use plimsoll_tests::{ScriptedAgent, THREE_ITEM_PLAN, world_with_plan_and_dates};

/// Returns the name of the branch on which results are merged. It exists even if nothing is merged.
fn target_branch(world: &World) -> String {
    world.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/plimsoll/"])
}

/// Clones the target branch without sharing objects with the project. Returns false if the clone fails.
fn can_clone_target_branch(world: &World) -> bool {
    let (project, target) = (world.project().display().to_string(), target_branch(world));
    let clone = world.home().join("clone").display().to_string();
    let arguments = ["clone", "-q", "--no-local", "--single-branch", "-b", &target, &project, &clone];
    world.command("git", &arguments).run().code == Some(0)
}

/// Returns the content of a file in the target branch, ignoring `git replace`.
fn committed_content(world: &World, file: &str) -> String {
    let name = format!("{}:{file}", target_branch(world));
    world.command("git", &["show", &name]).env("GIT_NO_REPLACE_OBJECTS", "1").run().stdout
}

#[test]
fn git_replace_does_not_hide_committed_content_from_verification() {
    // The session commits EVIL, and makes git show SAFE in this repository, also in its worktree. In the second case
    // git does not even read the file there.
    let attack = "echo EVIL > code.txt && git add code.txt && git commit -qm Evil && \
        git replace $(git rev-parse HEAD:code.txt) $(echo SAFE | git hash-object -w --stdin) && rm code.txt && git checkout -q -- code.txt";
    for (hide, expected) in [("true", None), ("git update-index --assume-unchanged code.txt", Some(4))] {
        let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item 1\n");
        let line = format!("test -e code.txt || {{ {attack} && {hide}; }}");
        let _model = ScriptedAgent::new(move |turn| do_item_step(turn, &line)).start(&mut world);
        let finished =
            run_with_workers(&world, &["2", "--verify", "test ! -e code.txt || grep -q SAFE code.txt"]);
        assert!(!committed_content(&world, "code.txt").contains("EVIL"), "{hide}: {finished:?}");
        if let Some(code) = expected {
            assert_eq!(finished.code, Some(code), "{hide}: {finished:?}");
            let refusal_reasons = sent_back_reasons(&world);
            assert!(
                refusal_reasons.iter().any(|reason| reason.contains("grep -q SAFE code.txt")),
                "{hide}: {refusal_reasons:?}"
            );
        }
    }
}

/// Code of an item that a verify command executes can use git in the worktree where results are merged.
#[test]
fn changes_staged_by_a_verify_command_are_not_merged() {
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item 1\n");
    let stage = "blob=$(echo EVIL | git hash-object -w --stdin) && git update-index --add --cacheinfo 100644,$blob,README.md";
    let line = format!("printf '%s\\n' '{stage}' > check.sh && mkdir -p done && echo 1 > done/1.txt");
    let _model = ScriptedAgent::new(move |turn| do_item_step(turn, &line)).start(&mut world);
    let finished =
        run_with_workers(&world, &["2", "--verify", "test ! -e check.sh || sh check.sh", "--verify", "true"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(committed_content(&world, "check.sh").contains("update-index"), "{finished:?}");
    assert!(!committed_content(&world, "README.md").contains("EVIL"), "{finished:?}");
    let commit = target_branch(&world);
    let (tree, message) = (
        world.git(&["rev-parse", &format!("{commit}^{{tree}}")]),
        world.git(&["log", "-1", "--format=%B", &commit]),
    );
    assert!(message.contains(&format!("Plimsoll-Verified: {tree} ")), "{message}");
}

#[test]
fn local_git_attributes_do_not_suppress_a_merge_conflict() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let _model = ScriptedAgent::new(|turn| {
        let item = turn.item_text.clone().unwrap_or_default();
        let was_refused = turn.request_contains("## Earlier work on this item was sent back");
        let line = if was_refused {
            format!("echo '{item}' >> src/dates.txt")
        } else {
            format!(
                "echo '* merge=union' > $(git rev-parse --git-common-dir)/info/attributes; sed -i '1s/.*/{item}/' src/dates.txt"
            )
        };
        // Workers start two seconds apart, so the first one still works when the second one starts.
        let is_slow = turn.assistant_message_count == 0 && !was_refused && item_number(&item) == "1";
        do_item_step(turn, &line).with_delay(std::time::Duration::from_secs(if is_slow { 3 } else { 0 }))
    }).start(&mut world);
    let finished = run_with_workers(&world, &["2"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let refusal_reasons = sent_back_reasons(&world);
    assert!(
        refusal_reasons.len() == 1 && refusal_reasons[0].contains("conflict in src/dates.txt"),
        "{refusal_reasons:?}"
    );
}

#[test]
fn a_corrupted_git_object_is_not_merged_and_completes_no_run() {
    // `$1` gets the content of `$2`.
    let swap = "swap() { f=$(git rev-parse --git-common-dir)/objects/$(git rev-parse $1 | sed 's,^..,&/,'); \
        t=$(git rev-parse --git-common-dir)/objects/$(git rev-parse $2 | sed 's,^..,&/,'); rm -f $f; cp $t $f; }";
    // A new object, which no other commit contains.
    let mut world_with_new_object = world_with_plan_and_dates("# Plan\n\n- [ ] Item 1\n");
    let line = format!(
        "{swap}; echo new > new.txt && git add new.txt && git commit -qm New && swap HEAD:new.txt HEAD:README.md"
    );
    let _model = ScriptedAgent::new(move |turn| do_item_step(turn, &line)).start(&mut world_with_new_object);
    let finished = run_with_workers(&world_with_new_object, &["2"]);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    let refusal_reasons = sent_back_reasons(&world_with_new_object);
    assert!(
        refusal_reasons.iter().any(|reason| reason.contains("cannot be taken over")),
        "{refusal_reasons:?}"
    );
    assert!(can_clone_target_branch(&world_with_new_object), "the branch is whole: {finished:?}");

    // An object on which all later commits are built.
    let mut world_with_shared_object = world_with_plan_and_dates("# Plan\n\n- [ ] Item 1\n");
    let line =
        format!("{swap}; swap HEAD:src/dates.txt HEAD:README.md; mkdir -p done && echo 1 > done/1.txt");
    let _model = ScriptedAgent::new(move |turn| match turn.assistant_message_count {
        0 => Step::bash_call(line.clone()).with_input_tokens(29_000),
        1 => do_item_step(turn, "true").with_input_tokens(30_000),
        _ => write_item_file_step(turn),
    })
    .start(&mut world_with_shared_object);
    let finished = run_with_workers(&world_with_shared_object, &["2"]);
    assert!(matches!(finished.code, Some(4 | 7)), "{finished:?}");
    assert_ne!(world_with_shared_object.read_json(".claude/ralph-state.json")["status"], "completed");
    assert!(
        format!("{finished:?}").contains("damaged")
            || !can_clone_target_branch(&world_with_shared_object) && finished.code == Some(4),
        "{finished:?}"
    );
}

#[test]
fn a_merged_commit_records_its_verification_and_log_check_confirms_it() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let _model = ScriptedAgent::new(write_item_file_step).start(&mut world);
    let finished = run_with_workers(&world, &["2", "--verify", "true", "--verify", "test -e README.md"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let target = target_branch(&world);
    let message = world.git(&["log", "-1", "--format=%B", &target]);
    let tree = world.git(&["rev-parse", &format!("{target}^{{tree}}")]);
    assert!(message.contains(&format!("Plimsoll-Verified: {tree} 2 commands")), "{message}");
    assert!(message.contains("Plimsoll-Run: ") && message.contains("Plimsoll-Item: Item "), "{message}");
    let checked = world.plimsoll(&["log", "--check", &target]).timeout(RUN_TIMEOUT).run();
    assert_eq!(checked.code, Some(0), "{checked:?}");
    // Either item may have been merged last.
    let stdout =
        checked.stdout.replace(&tree, "[TREE]").replace("Item 1", "Item N").replace("Item 2", "Item N");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&stdout), @r#"
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
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&forged.stderr), @"
    error: no run of yours has checked the tree of [COMMIT]
    hint: its message names the run [ID]: check it on the computer of that run
    ");
    let unknown = world.plimsoll(&["log", "--check", "--output=/victim"]).run();
    assert_ne!(unknown.code, Some(0), "{unknown:?}");
}

/// Writes the user's programs for a filter and a signature into a folder outside of the project, and returns that
/// folder.
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
fn git_runs_no_committed_program_through_a_relative_path_entry() {
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item 1\n");
    let user_bin = write_users_programs(&world);
    world.write(".gitattributes", "*.loud filter=shout\n");
    world.git(&["add", ".gitattributes"]);
    world.git(&["commit", "-qm", "Attributes"]);
    world.git(&["config", "filter.shout.clean", "shout"]);
    world.git(&["config", "filter.shout.smudge", "shout"]);
    world.git(&["config", "filter.shout.required", "true"]);
    world.git(&["config", "commit.gpgSign", "true"]);
    // The same programs also run in the session's worktree, inside its sandbox. Only runs outside of it count here.
    let evil = "case $PWD in */merge) echo $0 >> ~/ran;; esac\n";
    let line = format!(
        "mkdir -p node_modules/.bin && for name in shout gpg ssh; do \
         printf '#!/bin/sh\\n%sexec {user_bin}/%s \"$@\"\\n' '{evil}' $name > node_modules/.bin/$name; done && \
         chmod +x node_modules/.bin/* && echo aloud > a.loud && export PATH={user_bin}:$PATH"
    );
    let _model = ScriptedAgent::new(move |turn| do_item_step(turn, &line)).start(&mut world);
    let search_path =
        world.env_with_programs_on_path().into_iter().find(|(name, _)| name == "PATH").expect("a PATH").1;
    world.set_env("PATH", format!("node_modules/.bin::{user_bin}:{search_path}"));
    let finished = run_with_workers(&world, &["2", "--verify", "true"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let signed = world.git(&["cat-file", "commit", &target_branch(&world)]);
    assert!(signed.contains("users") && committed_content(&world, "a.loud") == "aloud\n", "{finished:?}");
    let run_log = world.home().join("ran");
    assert!(!run_log.exists(), "{}", world.read(&run_log));
}

/// A session in the sandbox can write every file of its worktree and leave its work uncommitted.
#[test]
fn hooks_and_filters_of_the_worktree_do_not_run_outside_the_session() {
    let mut world = world_with_plan_and_dates(TWO_ITEM_PLAN);
    let trap_script = "#!/bin/sh\ntest -n \"$IN_SESSION\" || echo \"$0 $PWD\" >> ~/ran\n";
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
        "export IN_SESSION=1; for hook in {}; do printf '%s' '{trap_script}' > .husky/$hook; chmod +x .husky/$hook; done; \
         printf '%s' '{trap_script}' > tools/check.sh; printf '%scat\\n' '{trap_script}' > tools/clean.sh",
        hooks.join(" ")
    );
    let _model = ScriptedAgent::new(move |turn| {
        let item = turn.item_text.clone().unwrap_or_default();
        match (turn.assistant_message_count, item_number(&item).as_str()) {
            // Commits its item itself, then leaves more work uncommitted.
            (0, "1") => Step::bash_call(format!(
                "{attack}; mkdir -p done && echo 1 > done/1.txt && git -c core.hooksPath=/dev/null add done && \
                 git -c core.hooksPath=/dev/null commit -qm 'Finish {item}'; \
                 echo new > new.own; echo plain > plain.txt; sed -i 's/\\[ \\]/[x]/' plimsoll-item.md"
            ))
            .with_input_tokens(30_000),
            (0, number) => Step::bash_call(format!(
                "{attack}; mkdir -p done && echo {number} > done/{number}.txt; sed -i 's/\\[ \\]/[x]/' plimsoll-item.md"
            ))
            .with_input_tokens(30_000),
            _ => write_item_file_step(turn),
        }
    }).start(&mut world);
    let finished = run_with_workers(&world, &["2", "--verify", "true"]);
    let run_log = world.home().join("ran");
    assert!(!run_log.exists(), "{}: {finished:?}", world.read(&run_log));
    assert_eq!(committed_content(&world, "plain.txt"), "plain\n", "{finished:?}");
    let files = world.git(&["ls-tree", "-r", "--name-only", &target_branch(&world)]);
    assert!(!files.contains("new.own"), "{files}");
    let output = format!("{} {}", finished.stdout, finished.stderr);
    assert!(output.contains("these files are not committed: new.own"), "{finished:?}");
    let worktrees_folder = world.home().join(".local/state/plimsoll/trees");
    let kept_files =
        world.command("find", &[&worktrees_folder.display().to_string(), "-name", "new.own"]).run().stdout;
    assert_eq!(kept_files.lines().count(), 1, "what no commit has stays: {kept_files}");
}

#[test]
fn the_last_commit_of_each_item_names_it_if_the_plan_is_untracked() {
    let mut world = world_with_plan_and_dates("# Plan\n\n- [ ] Item 1\n- [ ] Item 2\n- [ ] Item 3\n");
    world.git(&["rm", "-q", "--cached", "fix_plan.md"]);
    world.write(".gitignore", "fix_plan.md\n");
    world.git(&["add", ".gitignore"]);
    world.git(&["commit", "-qm", "The plan is mine"]);
    let _model = ScriptedAgent::new(write_item_file_step).start(&mut world);
    // Merging is so slow that the later items are merged together.
    let finished = run_with_workers(&world, &["3", "--verify", "case $PWD in */merge) sleep 6;; esac"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let target = target_branch(&world);
    for number in 1..=3 {
        let file = format!("done/{number}.txt");
        let message = world.git(&["log", "-1", "--format=%B", &target, "--", &file]);
        assert!(message.contains("Plimsoll-Run: "), "{number}: {message}");
        assert!(message.contains(&format!("Plimsoll-Item: Item {number}")), "{number}: {message}");
    }
}

#[test]
fn log_check_works_without_workers_and_reports_a_broken_turn_log() {
    let mut world = world_with_plan_and_dates(THREE_ITEM_PLAN);
    let _model = ScriptedAgent::new(|turn| {
        let Some(item) = turn.item_text.clone() else { return Step::from_text(turn.promise_line.clone()) };
        let done = format!("echo '{item}' >> work.txt && {}", tick_in_plan(&item));
        let commit = format!("git add work.txt fix_plan.md && git commit -qm 'Finish {item}'");
        match turn.assistant_message_count {
            0 => Step::bash_call(format!("{done} && {commit}")).with_input_tokens(30_000),
            _ => {
                Step::from_text(format!("{item} is done.\n\n{}", turn.promise_line)).with_input_tokens(31_000)
            }
        }
    })
    .start(&mut world);
    let finished = plimsoll_tests::run_with_objective(&world, &["--verify", "test -e work.txt"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let check = |commit: &str| world.plimsoll(&["log", "--check", commit]).run();
    let checked = ["HEAD", "HEAD~1"].map(|commit| {
        let checked = check(commit);
        assert_eq!(checked.code, Some(0), "{checked:?}");
        world.replace_varying_parts_with_placeholders(&checked.stdout)
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
    let turn_log_line = checked.stdout.lines().find(|line| line.contains("turn log"));
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(turn_log_line.unwrap_or_default()), @r#"item "Item three": session [ID] (turn log broken: plimsoll turns verify), $0.01"#);
}
