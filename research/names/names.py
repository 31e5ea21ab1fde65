#!/usr/bin/env python3
"""Draws functions for the blind test of names, and adds up its scores. README.md says how the test is done.

    names.py sample --seed N --count 300 --batches 6 --out DIR [CALIBRATION_TREE...]
    names.py score DIR            prints both scores by crate
    names.py table DIR            prints every drawn function with its guess and scores, separated by tabs
"""
import argparse
import collections
import glob
import json
import os
import random
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SIGNATURE = re.compile(r"^(\s*)(?:pub(?:\([^)]*\))? )?(?:const |async |unsafe )*fn \w+")
IMPL_HEADER = re.compile(r"^(impl.*|(?:pub(?:\([^)]*\))? )?trait .*)\{\s*$")
TEST_FILE = re.compile(r"(^|/)(tests?|examples|benches|target)(/|\.rs$)|_tests?\.rs$")
MIN_PER_CRATE = 20
FROM_EACH_CALIBRATION_TREE = 18


def functions_in(path):
    """Yields impl header, signature and text of each function of 6 to 60 lines. Relies on rustfmt's indentation."""
    lines = open(path).read().split("#[cfg(test)]")[0].splitlines()
    impl, index = "", 0
    while index < len(lines):
        header = IMPL_HEADER.match(lines[index])
        if header:
            impl = header.group(1).strip()
        elif lines[index].startswith("}"):
            impl = ""
        start = SIGNATURE.match(lines[index])
        if start:
            last = index
            while not lines[last].rstrip().endswith(("{", ";", "}")) and last + 1 < len(lines):
                last += 1
            if lines[last].rstrip().endswith("{"):
                end = last
                while end + 1 < len(lines) and lines[end].rstrip() != start.group(1) + "}":
                    end += 1
                if 6 <= end - index <= 60:
                    signature = " ".join(line.strip() for line in lines[index : last + 1]).rstrip("{ ")
                    yield impl, signature, "\n".join(lines[index : end + 1])
                index = end
        index += 1


def functions_below(folder, source):
    paths = []
    # This follows no links: below target/, wine has one to the root folder.
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "target"]
        paths += [os.path.join(parent, name) for name in names if name.endswith(".rs")]
    for path in sorted(paths):
        relative = os.path.relpath(path, folder)
        if not TEST_FILE.search(relative):
            for function in functions_in(path):
                yield (source or crate_of(relative), relative) + function


def crate_of(relative):
    parts = relative.split("/")
    return parts[1] if parts[0] == "crates" else parts[0]


def sample(arguments):
    by_crate = collections.defaultdict(list)
    for function in functions_below(ROOT, None):
        if function[1].startswith(("crates/", "research/")):
            by_crate[function[0]].append(function)
    total = sum(map(len, by_crate.values()))
    rng = random.Random(arguments.seed)
    drawn = []
    for _, functions in sorted(by_crate.items()):
        share = round(arguments.count * len(functions) / total)
        drawn += rng.sample(functions, min(len(functions), max(MIN_PER_CRATE, share)))
    for tree in arguments.calibration:
        name = "calibration: " + os.path.basename(os.path.normpath(tree))
        drawn += rng.sample(list(functions_below(tree, name)), FROM_EACH_CALIBRATION_TREE)
    rng.shuffle(drawn)
    for batch in range(arguments.batches):
        folder = "%s/%d" % (arguments.out, batch + 1)
        part = drawn[batch :: arguments.batches]
        # The reader gets one folder and the judge the other, so that the reader cannot see a body.
        os.makedirs(folder + "/guess", exist_ok=True)
        os.makedirs(folder + "/judge", exist_ok=True)
        with open(folder + "/guess/signatures.md", "w") as signatures, open(folder + "/judge/bodies.md", "w") as bodies:
            for number, (_, path, impl, signature, body) in enumerate(part, 1):
                folder_name, file_name = os.path.split(path)
                module = os.path.basename(folder_name) if file_name == "mod.rs" else file_name[:-3]
                header = "`%s` — " % impl if impl else ""
                signatures.write("%d. [module `%s`] %s`%s`\n" % (number, module, header, signature))
                bodies.write("## %d\n```rust\n%s\n```\n" % (number, body))
        with open(folder + "/key.json", "w") as key:
            json.dump({number: function[:2] + function[3:4] for number, function in enumerate(part, 1)}, key)
    print("%d of %d functions" % (len(drawn), total))


def scored_functions(folder):
    for batch in sorted(glob.glob(folder + "/*/key.json")):
        batch = os.path.dirname(batch)
        key = json.load(open(batch + "/key.json"))
        guesses = dict(line.rstrip("\n").split(". ", 1) for line in open(batch + "/guess/guesses.md") if ". " in line)
        for line in open(batch + "/judge/scores.tsv"):
            number, name_score, wording_score, *reason = line.rstrip("\n").split("\t")
            if number in key:
                source, path, signature = key[number]
                yield source, path, signature, guesses.get(number, ""), int(name_score), int(wording_score), " ".join(reason)


def score(arguments):
    groups = collections.defaultdict(list)
    for source, _, _, _, name_score, wording_score, _ in scored_functions(arguments.folder):
        group = "calibration" if source.startswith("calibration") else "all of ours"
        groups[source].append((name_score, wording_score))
        groups[group].append((name_score, wording_score))
    for source, scores in sorted(groups.items()):
        shares = [sum(score[kind] for score in scores) / 2 / len(scores) for kind in (0, 1)]
        print("%-24s %3d functions  names %.3f  wording %.3f" % (source, len(scores), *shares))


def table(arguments):
    print("source\tpath\tsignature\tguess\tname score\twording score\treason")
    for row in scored_functions(arguments.folder):
        print("\t".join(str(field).replace("\t", " ") for field in row))


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
commands = parser.add_subparsers(required=True)
command = commands.add_parser("sample")
command.set_defaults(run=sample)
command.add_argument("--seed", type=int, required=True)
command.add_argument("--count", type=int, default=300)
command.add_argument("--batches", type=int, default=6)
command.add_argument("--out", required=True)
command.add_argument("calibration", nargs="*", metavar="CALIBRATION_TREE")
for name, run in (("score", score), ("table", table)):
    command = commands.add_parser(name)
    command.set_defaults(run=run)
    command.add_argument("folder")
arguments = parser.parse_args()
arguments.run(arguments)
