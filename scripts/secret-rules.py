#!/usr/bin/env python3
"""Makes crates/secrets/rules/betterleaks.tsv of the rules of Betterleaks (MIT, the successor of gitleaks by the same
author), and of crates/secrets/rules/overrides.tsv, where we say which rule we change, and why.

Usage: scripts/secret-rules.py SOURCE
SOURCE is a config/betterleaks.toml (or a config/gitleaks.toml, whose filters are fields), or the file
generated/upstream-sources.json.gz of the crate kingfisher-rules, which carries it byte for byte:
  cargo info kingfisher-rules     then ~/.cargo/registry/src/*/kingfisher-rules-*/generated/upstream-sources.json.gz
Exit 1 where a rule has a filter that is not understood: say in overrides.tsv what is to become of it.
"""
import gzip
import json
import re
import sys
import tomllib
from pathlib import Path

try:
    from re import _constants as sre, _parser as parser
except ImportError:
    import sre_constants as sre
    import sre_parse as parser

RULES = Path(__file__).resolve().parent.parent / "crates/secrets/rules"
# What most patterns have in common is written once: rules.rs knows the same two words.
ASSIGNED = r"""(?:[ \t\w.-]{0,20})[\s'"]{0,3}"""
SIGN = r"""(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}"""
ENDED = r"""(?:\\?['"\x60]|[\s;]|\\[nr]|$)"""
ENDED_BEFORE = r"""(?:[\x60'"\s;]|\\[nr]|$)"""
# A token is never longer; a pattern without a limit is searched so far.
FARTHEST = 2048
LONGEST_PREFIX = 24
UNKNOWN = []


def source(path):
    """The text of the rules, and where they come from."""
    if not path.endswith(".json.gz"):
        return Path(path).read_text(), Path(path).name

    def named(tree):
        for key, value in tree.items() if isinstance(tree, dict) else []:
            if key.endswith("/config/betterleaks.toml"):
                yield key, value
            yield from named(value)

    address, text = next(named(json.load(gzip.open(path))))
    return text, address


def overrides():
    """What overrides.tsv says of each rule: {id: {action: value}}."""
    said = {}
    for line in (RULES / "overrides.tsv").read_text().splitlines():
        if line and not line.startswith("#"):
            rule, action, reason = line.split("\t")
            assert reason, f"{rule}: a reason is missing"
            name, _, value = action.partition("=")
            said.setdefault(rule, {})[name] = value
    return said


def scoped(pattern):
    """`(?i)` in the middle of a pattern, which Python refuses, as a group to the end of the group it stands in."""
    while (place := pattern.find("(?i)", 1)) > 0:
        depth, end, inside = 0, place + 4, False
        while end < len(pattern):
            letter = pattern[end]
            if letter == "\\":
                end += 1
            elif inside or letter == "[":
                inside = letter != "]"
            elif letter == "(":
                depth += 1
            elif letter == ")" and depth == 0:
                break
            elif letter == ")":
                depth -= 1
            end += 1
        pattern = f"{pattern[:place]}(?i:{pattern[place + 4:end]}){pattern[end:]}"
    return pattern


def parsed(pattern):
    pattern = scoped(pattern).replace("[[:alnum:]]", "[a-zA-Z0-9]").replace(r"\z", r"\Z")
    return parser.parse(pattern.replace("[[:alpha:]]", "[a-zA-Z]").replace("[[", "[\\["))


def beginnings(items):
    """How a match can begin, in small letters: (words, true where a word is all of it)."""
    found = {("", True)}
    for kind, value in items:
        steps = step(kind, value)
        longer = set()
        for word, is_whole in found:
            if not is_whole or len(word) >= LONGEST_PREFIX:
                longer.add((word, False))
            else:
                longer |= {(word + more, whole) for more, whole in steps}
        found = longer
        if len(found) > 400:
            return {("", False)}
    return found


def step(kind, value):
    if kind is sre.LITERAL:
        return {(chr(value).lower(), True)}
    if kind is sre.AT:
        return {("", True)}
    if kind is sre.IN:
        letters = set()
        for what, which in value:
            if what is sre.LITERAL:
                letters.add(chr(which).lower())
            elif what is sre.RANGE and which[1] - which[0] < 12:
                letters |= {chr(code).lower() for code in range(which[0], which[1] + 1)}
            else:
                return {("", False)}
        return {(letter, True) for letter in letters}
    if kind is sre.SUBPATTERN:
        return beginnings(value[3])
    if kind is sre.BRANCH:
        return set().union(*(beginnings(branch) for branch in value[1]))
    if kind is sre.MAX_REPEAT and value[:2] == (0, 1):
        return beginnings(value[2]) | {("", True)}
    if kind is sre.MAX_REPEAT and value[0] == value[1] == 1:
        return beginnings(value[2])
    return {("", False)}


def filter_of(rule, said):
    """Entropy, what is none, what must be there, from a rule's filter."""
    text = rule.get("filter", "")
    entropy = rule.get("entropy")
    if found := re.findall(r'entropy\(finding\["secret"\]\) <=? ([\d.]+)', text):
        entropy = max(map(float, found))
    text = re.sub(r'entropy\(finding\["secret"\]\) <=? [\d.]+', "", text)
    # How much of it is words: looks.rs asks that of every value.
    text = re.sub(r'tokenRatio\(finding\["secret"\]\) >= [\d.]+', "", text)
    text = re.sub(r'matchesAny\(attributes\["path"\], \[[^]]*\]\)', "", text)
    excluded, needed = [], []
    lists = re.compile(r'(!?)matchesAny\(finding\["secret"\], \[((?:\s*(?:`[^`]*`|"(?:\\.|[^"\\])*"),?\s*)*)\]\)')
    for negated, patterns in lists.findall(text):
        for raw, quoted in re.findall(r'`([^`]*)`|"((?:\\.|[^"\\])*)"', patterns):
            (needed if negated else excluded).append(raw or json.loads(f'"{quoted}"'))
    text = lists.sub("", text)
    for allow in rule.get("allowlists", []):
        excluded += allow.get("regexes", []) if allow.get("regexTarget", "secret") == "secret" else []
    rest = re.sub(r"//.*", "", text).replace("||", "").strip()
    if rest and "filter" not in said:
        UNKNOWN.append(f"{rule['id']}: a filter that is not understood: {rest[:200]}")
    return entropy, excluded, needed


def row(rule, said):
    entropy, excluded, needed = filter_of(rule, said)
    pattern = re.sub(r"^(\(\?i\)|\[\\w\.-\]\{0,50\}\?)*", lambda m: "(?i)" if "(?i)" in m[0] else "", rule["regex"])
    is_word = re.match(r"(\(\?i\))?\\b", pattern) is not None
    pattern = re.sub(r"^((?:\(\?i\))?)\\b", r"\1", pattern)
    needed += [said["needed"]] if "needed" in said else []
    keywords = said["keywords"].split(",") if "keywords" in said else [word.lower() for word in rule["keywords"]]
    tree = parsed(pattern)
    begins = beginnings(tree)
    is_start = all(any(word.startswith(key) for key in keywords) for word, _ in begins)
    entropy = float(said.get("entropy", entropy or 0))
    reach = min(tree.getwidth()[1], FARTHEST - 8) + 8
    group = said.get("group") or rule.get("valueGroup") or rule.get("secretGroup")
    group = group or (1 if tree.state.groups > 1 else 0)
    flags = [f"reach={reach}", f"group={group}"]
    flags += ["start"] if is_start else []
    flags += ["word"] if is_word else []
    flags += [f"entropy={entropy:g}"] if entropy else []
    shorter = pattern.replace(ASSIGNED + SIGN, "{assigned}").replace(f"{ASSIGNED})" + SIGN, "{assigned-}")
    shorter = shorter.replace(ENDED, "{ended}").replace(ENDED_BEFORE, "{ended}")
    kind = said.get("kind") or re.sub(r"\.\d+$", "", rule["id"])
    fields = [kind, ",".join(sorted(set(keywords))), " ".join(flags), shorter]
    fields.append("|".join(f"(?:{one})" for one in excluded))
    fields.append("|".join(f"(?:{one})" for one in needed))
    assert not any("\t" in field or "\n" in field for field in fields), rule["id"]
    return "\t".join(fields).rstrip("\t")


def main():
    text, origin = source(sys.argv[1])
    rules, said = tomllib.loads(text)["rules"], overrides()
    unknown = set(said) - {rule["id"] for rule in rules}
    if unknown:
        sys.exit(f"overrides.tsv speaks of rules that are not there: {sorted(unknown)}")
    rows = []
    for rule in rules:
        own = said.get(rule["id"], {})
        # A part of a secret that is none alone, such as the name of an account.
        is_part = rule.get("skipReport") and "keep" not in own
        if "drop" not in own and not is_part and "regex" in rule:
            rows.append(row(rule, own))
    if UNKNOWN:
        sys.exit("\n".join(UNKNOWN))
    heading = f"# Made by scripts/secret-rules.py of {origin}\n# Betterleaks, MIT: LICENSE-betterleaks. Do not edit: say it in overrides.tsv.\n# kind, keywords, flags, pattern, what is none, what must be there\n"
    (RULES / "betterleaks.tsv").write_text(heading + "\n".join(sorted(rows)) + "\n")
    print(f"{len(rows)} rules of {len(rules)}; {sum(' start' in row for row in rows)} begin with their keyword")


main()
