# What jq has and jaq has not, or has otherwise.

# jaq tells 5.0 from 5: in texts as in answers, numbers are written as jq does.
def tojson_of_jaq: tojson;
def tostring_of_jaq: tostring;
def html_of_jaq: @html;
def uri_of_jaq: @uri;
def sh_of_jaq: @sh;
def base64_of_jaq: @base64;
def tojson: plain | tojson_of_jaq;
def tostring: plain | tostring_of_jaq;
def @json: tojson;
def @text: tostring;
def @html: plain | html_of_jaq;
def @uri: plain | uri_of_jaq;
def @sh: plain | sh_of_jaq;
def @base64: plain | base64_of_jaq;

def row($format; cell; $separator):
  if type != "array" then error("\(type) cannot be \($format)-formatted, only an array can be") end
  | reduce (.[] | if type == "string" then cell
      elif . == null then ""
      elif type == "number" or type == "boolean" then tojson
      else error("\(type) is not valid in a \($format) row") end) as $cell
    (null; if . == null then $cell else . + $separator + $cell end)
  | . // "";
def @csv: row("csv"; "\"" + (split("\"") | join("\"\"")) + "\""; ",");
def @tsv:
  def escape($what; $with): split($what) | join($with);
  row("tsv"; escape("\\"; "\\\\") | escape("\t"; "\\t") | escape("\n"; "\\n") | escape("\r"; "\\r"); "\t");

def input: [limit(1; inputs)] | if . == [] then error("No more inputs") else .[0] end;
def env: $ENV;

def join($separator):
  reduce .[] as $part (null;
    (if . == null then "" else . + $separator end)
    + ($part | if . == null then "" elif type == "boolean" or type == "number" then tojson end))
  | . // "";
def ltrimstr_of_jaq($part): ltrimstr($part);
def rtrimstr_of_jaq($part): rtrimstr($part);
def ltrimstr($part): if type == "string" and ($part | type) == "string" then ltrimstr_of_jaq($part) end;
def rtrimstr($part): if type == "string" and ($part | type) == "string" then rtrimstr_of_jaq($part) end;

def from_entries:
  reduce .[] as $entry ({}; . + ($entry | {
    (if .key == null then .k // .name // .Name // .K // .Key else .key end
      | if type == "number" or type == "boolean" then tojson end):
    (if has("value") then .value elif has("v") then .v else .Value end) }));

def match(re; flags):
  matches(re; flags)[] | .[0] + { captures: .[1:] | map({ offset, length, string, name }) };
def with_flags(f): if type == "array" then [.[0], .[1] // ""] else [., ""] end | f;
def test($re): . as $text | $re | with_flags(. as $re | $text | test($re[0]; $re[1]));
def match($re): . as $text | $re | with_flags(. as $re | $text | match($re[0]; $re[1]));
def capture($re): . as $text | $re | with_flags(. as $re | $text | capture($re[0]; $re[1]));
def scan($re): . as $text | $re | with_flags(. as $re | $text | scan($re[0]; $re[1]));

# jaq takes the values of an object for a path.
def getpath_of_jaq($path): getpath($path);
def getpath($path): if ($path | type) == "array" then getpath_of_jaq($path) else error("a path must be an array") end;
def setpath($path; $value): getpath($path) = $value;
def delpath($path):
  if $path == [] then null
  elif getpath($path[:-1]) == null then .
  else getpath($path) |= empty end;
def delpaths($paths): reduce ($paths | unique | reverse[]) as $path (.; delpath($path));
def del(f): delpaths([path(f)]);

def INDEX(stream; key): reduce stream as $row ({}; .[$row | key | tostring] |= $row);
def INDEX(key): INDEX(.[]; key);
def IN(stream): any(stream == .; .);
def IN(source; stream): any(source == stream; .);

# jaq takes bounds that are no numbers, and for a step of 0 never ends.
def range_of_jaq($from; $to; $by): range($from; $to; $by);
def range($from; $to; $by):
  if ([$from, $to, $by] | all(type == "number")) and $by != 0 then range_of_jaq($from; $to; $by)
  else $from | while(($by > 0 and . < $to) or ($by < 0 and . > $to); . + $by) end;
def range($from; $to):
  if [$from, $to] | any(type != "number") then error("range bounds must be numeric")
  else range_of_jaq($from; $to; 1) end;
def range($to): range(0; $to);

# As newer jq: nothing for 0, and no negative number.
def limit_of_jaq($number; f): limit($number; f);
def limit($number; f):
  if ($number | type) != "number" or $number < 0 then error("limit needs a number that is not negative")
  else limit_of_jaq($number; f) end;

def nth($number; f): if $number < 0 then error("out of bounds negative array index") else first(skip($number; f)) end;

# jaq flattens what is no array, and to a negative depth.
def flatten_to($depth):
  reduce .[] as $part ([];
    if ($part | type) == "array" and $depth != 0 then . + ($part | flatten_to($depth - 1)) else . + [$part] end);
def flatten($depth): if $depth < 0 then error("flatten depth must not be negative") else flatten_to($depth) end;
def flatten: flatten_to(1e9);

def transpose:
  if . == [] then [] else
    . as $rows | (map(length) | max) as $width | [range($width) as $column | [range($rows | length) as $row | $rows[$row][$column]]] end;

# jaq gives one element back without looking at its key.
def only_one(f): if type == "array" and length == 1 then .[0] | f | empty else empty end;
def sort_by_of_jaq(f): sort_by(f);
def sort_by(f): only_one(f), sort_by_of_jaq(f);

# jaq takes negative numbers for bytes, and refuses numbers of no letter.
def implode_of_jaq: implode;
def implode:
  if type != "array" then error("implode input must be an array")
  elif any(.[]; type != "number" or isnan) then error("an array of codepoints is expected")
  else map(floor | if . < 0 or . > 1114111 or (. >= 55296 and . < 57344) then 65533 end) | implode_of_jaq end;

# jq reverses what has no length into an empty array.
def reverse_of_jaq: reverse;
def reverse: if type != "array" and length == 0 then [] else reverse_of_jaq end;

# jaq takes what is no number for the first moment of 1970.
def moment: if type == "number" and isnan then error("invalid gmtime representation") end;
def gmtime_of_jaq: gmtime;
def gmtime: moment | gmtime_of_jaq;
def strftime_of_jaq($format): strftime($format);
def strftime($format): moment | strftime_of_jaq($format);
def todateiso8601_of_jaq: todateiso8601;
def todateiso8601: moment | todateiso8601_of_jaq;
def todate: (if type == "array" then mktime else floor end) | todateiso8601;
