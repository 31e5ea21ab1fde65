//! Programs made of every value and every operation below. `generated.txt` lists those on which the engines differ, and the tests
//! fail where a difference appears or disappears. `PLIMSOLL_UPDATE_GOLDEN=1` writes the file anew. The suite tries every tenth
//! program, `scripts/test.sh --long` all of them.

use super::{Engine, query_with, world};
use plimsoll_store::{Durability, disk};
use plimsoll_testkit::world::World;
use serde_json::{Value, json};
use std::path::Path;

/// Programs of one process: as many as its command line takes.
const BATCH: usize = 200;

const VALUES: [&str; 19] = [
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1.5",
    "nan",
    r#""""#,
    r#""abc""#,
    r#""1""#,
    r#""a,b""#,
    "[]",
    "[0,1]",
    r#"["a"]"#,
    "[null]",
    "[[1,2],[3]]",
    "{}",
    r#"{"a":1}"#,
    r#"{"a":null,"b":[1]}"#,
];

/// The values that are also the second one of an operation on two.
const SECOND: [&str; 10] =
    ["null", "true", "0", "-1", "1.5", r#""a""#, "[]", r#"["a",0]"#, "{}", r#"{"a":1}"#];

/// Operations on one value, with two spaces or a line break between two of them.
const OPERATIONS: &str = r#"
type  length  utf8bytelength  not  keys  keys_unsorted  values  scalars  .[]  .[]?  ..  [paths]
to_entries  from_entries  with_entries(.)  add  any  all  any(.[]; .)  all(.[]; .)  map(.)  map_values(.)
has("a")  has(0)  in({"a":1})  in([1])  tojson  tojson | fromjson  tostring  tonumber  fromjson
-.  floor  sqrt  round  ceil  fabs  isnan  isinfinite  isnormal  pow(.; 2)  log  range(.)
[limit(9; range(.; 2))]  [limit(9; range(0; 3; .))]  [limit(9; range(0; .; 1))]  [limit(.; 1, 2)]  . / 0
. % 0  [.[0] % 2]
first  last  nth(1)  nth(-1)  nth(-1; .[])  first(.[])  last(.[])  [limit(-1; .[])]  reverse  sort  sort_by(.a)
group_by(.a)  unique  unique_by(.a)  min  max  min_by(.a)  max_by(.a)  flatten  flatten(-1)  flatten(0)
flatten("a")  transpose  [combinations]  implode  bsearch(1)  until(true; .)  [.[] as [$a] | $a]
. as [$a, {b: $b}] | $a  . as {a: $a} | $a  walk(.)  [.[] | tostring]  join(",")  index(1)  rindex(1)
indices(1)  indices([1])  inside([1])  contains([])  contains({})  contains("a")  any(.[]; error)
isempty(.[])  [splits("b")]  splits(1)
explode  explode | implode  ascii_downcase  ascii_upcase  ltrimstr("a")  rtrimstr("c")  ltrimstr(1)
startswith("a")  endswith(1)  split(",")  split(","; null)  test("a")  test(null)  [match("a") | .offset]
capture("(?<x>a)")  [scan("a")]  sub("a"; "b")  sub("a"; 1)  gsub("a"; "b")  gsub("a"; null)  @text
@json  @csv  @tsv  @html  @uri  @sh  @base64  @base64d  "\(.)"  @csv "x\(.)"  @sh "x\(.)"
todate  fromdate  gmtime  mktime  gmtime | mktime  strftime("%Y")  strptime("%Y")  todateiso8601
.a  .a?  .a.b  .[0]  .[-1]  .[1.5]  .[null]  .[true]  .[1:]  .[:1]  .["a":]  .[[1]]  .[{}]  path(.a)
path(.[0])  [path(..)]  getpath(["a","b"])  getpath(["a",0])  getpath([0])  getpath("a")
setpath(["a"]; 1)  setpath([0]; 1)  setpath([-1]; 1)  setpath([]; 1)  setpath("a"; 1)  setpath([null]; 1)
delpaths([["a"]])  delpaths([[0]])  delpaths([[]])  delpaths([])  delpaths(1)  delpaths([1])  del(.a)
del(.[0])  del(.[0:1])  del(.[])  del(.a.b)  .a = 1  .a.b = 1  .[0] = 1  .[2] = 1  .[] = 1  .[1:] = [9]
.[1:] = 1  .a |= 1  .[] += 1  .a += 1  .a -= 1  .a //= 1  .a |= empty  to_entries | map(.key)
if . then 1 else 2 end  . and true  . or false  . // 1  [.[]?] | length  error  try error catch .
(.[] | error)?  reduce .[] as $x (0; . + $x)  [foreach .[] as $x (0; . + $x)]
[label $out | .[] | if . == 0 then break $out else . end]  {(.): 1}  {a: .}  [.[] | {a: .}]  {"a": .[]}
[., 1] | sort  [., "a"] | min  . == 1  . < 1  env | type  INDEX(.a)  [IN(.[]; 1)]
recurse(.[]?; . != null)  tojson | length  @json "x\(.)"  ascii_downcase | length
"#;

/// Operations on two values; `B` is the second.
const PAIRS: &str = r#"
. + B  . - B  . * B  . / B  . % B  . == B  . < B  [., B] | add  [., B] | sort  .[B]  .[B]?  .[B:]  .[:B]
has(B)  contains(B)  inside(B)  index(B)  indices(B)  split(B)  join(B)  startswith(B)  ltrimstr(B)
test(B)  [scan(B)]  sub(B; "x")  test("a"; B)  getpath([B])  getpath(B)  setpath([B]; 1)
setpath(["a", B]; 1)  delpaths([[B]])  del(.[B])  path(.[B])  .[B] = 1  .[B] |= 1  .[B] += 1  .[B].a = 1
.a[B] = 1  flatten(B)  [limit(9; range(0; B))]  [limit(B; .[])]  nth(B)  [nth(B; .[])]  map(.[B])
sort_by(.[B])  group_by(.[B])  min_by(.[B])  [., B] | implode  [., B] | join(",")  [., B] | @csv
[., B] | @sh  [., B] | transpose  [{key: ., value: B}] | from_entries  {(tostring): B}
[., B] | flatten(1)  strptime(B)  bsearch(B)  error(B)  map(has(B))
"#;

fn operations(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().flat_map(|line| line.split("  ")).filter(|operation| !operation.is_empty())
}

fn programs() -> Vec<String> {
    let of_one = VALUES
        .iter()
        .flat_map(|value| operations(OPERATIONS).map(move |operation| format!("({value}) | {operation}")));
    let of_two = VALUES.iter().step_by(3).flat_map(|value| {
        operations(PAIRS).flat_map(move |operation| {
            SECOND
                .iter()
                .map(move |second| format!("({value}) | {}", operation.replace('B', &format!("({second})"))))
        })
    });
    // jq 1.6 takes an error of null for none.
    of_one.chain(of_two).filter(|program| !program.contains("error((null))")).collect()
}

/// What comes of a program: its first values, or that it raises an error.
#[derive(Debug, Clone, PartialEq)]
enum Outcome {
    Values(Vec<Value>),
    Error,
}

fn outcomes(world: &World, engine: Engine, programs: &[String]) -> Vec<Outcome> {
    let tried = |program: &String| format!("(try {{value: [limit(9; {program})]}} catch {{error: 1}})");
    let filter = programs.iter().map(tried).collect::<Vec<_>>().join(", ");
    let finished = query_with(world, engine, &["-nc", &filter]);
    let outcome = |line: &str| match serde_json::from_str::<Value>(line).ok()?.get_mut("value")? {
        Value::Array(values) => Some(Outcome::Values(std::mem::take(values))),
        _ => None,
    };
    let outcomes: Vec<Outcome> =
        finished.stdout.lines().map(|line| outcome(line).unwrap_or(Outcome::Error)).collect();
    if outcomes.len() == programs.len() {
        return outcomes;
    }
    // jq 1.6 ends by an assertion on some programs, and with it all others of the batch.
    assert!(engine == Engine::Libjq, "{filter}\n{finished:?}");
    match programs.split_at(programs.len() / 2) {
        ([], _) => vec![Outcome::Error],
        (first, second) => {
            [self::outcomes(world, engine, first), self::outcomes(world, engine, second)].concat()
        }
    }
}

/// Those of the programs on which the engines differ, in three sections.
fn differences(world: &World, programs: &[String]) -> String {
    let mut sections = [String::new(), String::new(), String::new()];
    for batch in programs.chunks(BATCH) {
        let (ours, of_jq) = (outcomes(world, Engine::Jaq, batch), outcomes(world, Engine::Libjq, batch));
        for ((program, ours), of_jq) in batch.iter().zip(ours).zip(of_jq) {
            let (section, words) = match (&ours, &of_jq) {
                (ours, of_jq) if ours == of_jq => continue,
                (Outcome::Values(ours), Outcome::Error) => (0, json!(ours).to_string()),
                (Outcome::Error, Outcome::Values(of_jq)) => (1, json!(of_jq).to_string()),
                (Outcome::Values(ours), Outcome::Values(of_jq)) => {
                    (2, format!("{} and {}", json!(ours), json!(of_jq)))
                }
                (Outcome::Error, Outcome::Error) => continue,
            };
            sections[section] += &format!("{program}  =>  {words}\n");
        }
    }
    let [lenient, strict, other] = sections;
    format!(
        "# Made by generated.rs: the programs on which `plimsoll query` and jq 1.6 differ. differences.txt has the reasons.\n\n\
         # jq raises an error; `plimsoll query` gives these values.\n\n{lenient}\n\
         # jq gives these values; `plimsoll query` raises an error.\n\n{strict}\n\
         # `plimsoll query` gives the first values, jq the others.\n\n{other}"
    )
}

const GENERATED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/query/generated.txt");

/// Fails if the engines differ on one of the programs that is not in generated.txt, or agree on one that is.
fn assert_known(found: &str, programs: &[String]) {
    let known = disk::read_text(Path::new(GENERATED)).ok().flatten().unwrap_or_default();
    let program_of = |line: &str| line.split_once("  =>  ").map(|(program, _)| program.to_owned());
    let is_tried = |line: &&str| program_of(line).is_some_and(|program| programs.contains(&program));
    let found: Vec<&str> = found.lines().filter(is_tried).collect();
    let known: Vec<&str> = known.lines().filter(is_tried).collect();
    assert!(!known.is_empty(), "none of the programs is in {GENERATED}");
    let appeared: Vec<&&str> = found.iter().filter(|line| !known.contains(line)).collect();
    let disappeared: Vec<&&str> = known.iter().filter(|line| !found.contains(line)).collect();
    assert!(
        appeared.is_empty() && disappeared.is_empty(),
        "new differences: {appeared:#?}\ndifferences that are gone: {disappeared:#?}\n\
         PLIMSOLL_UPDATE_GOLDEN=1 with the test of all programs writes generated.txt anew"
    );
}

#[test]
fn the_engines_differ_on_no_other_program_of_a_sample() {
    let programs: Vec<String> = programs().into_iter().step_by(10).collect();
    assert_known(&differences(&world(), &programs), &programs);
}

/// Takes more than a minute: `scripts/test.sh --long` runs it.
#[test]
fn all_generated_programs_on_which_the_engines_differ_are_known() {
    let programs = programs();
    assert!(programs.len() > 7_000, "{}", programs.len());
    let found = differences(&world(), &programs);
    if plimsoll_store::environment::variable("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        disk::replace(Path::new(GENERATED), found.as_bytes(), Durability::Lazy)
            .expect("the folder is writable");
    }
    assert_known(&found, &programs);
}
