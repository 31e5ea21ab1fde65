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
      | if type == "string" then . else tojson end):
    (if has("value") then .value elif has("v") then .v else .Value end) }));

def match(re; flags):
  matches(re; flags)[] | .[0] + { captures: .[1:] | map({ offset, length, string, name }) };
def with_flags(f): if type == "array" then [.[0], .[1] // ""] else [., ""] end | f;
def test($re): . as $text | $re | with_flags(. as $re | $text | test($re[0]; $re[1]));
def match($re): . as $text | $re | with_flags(. as $re | $text | match($re[0]; $re[1]));
def capture($re): . as $text | $re | with_flags(. as $re | $text | capture($re[0]; $re[1]));
def scan($re): . as $text | $re | with_flags(. as $re | $text | scan($re[0]; $re[1]));

def todate: (if type == "array" then mktime else floor end) | todateiso8601;

def setpath($path; $value):
  if $path == [] then $value
  else $path[0] as $key
    | if . == null and ($key | type) == "string" then {} end
    | if ($key | type) == "number" then (. // []) + [range(length; $key + 1) | null] end
    | .[$key] = (.[$key] | setpath($path[1:]; $value)) end;
def delpath($path):
  if $path == [] then null
  elif getpath($path[:-1]) == null then .
  else $path[-1] as $last
    | getpath($path[:-1]) |= if type == "object" and ($last | type) == "string"
      # jaq would put the last key in the place of the one that goes.
      then with_entries(select(.key != $last)) else .[$last] |= empty end end;
def delpaths($paths): reduce ($paths | unique | reverse[]) as $path (.; delpath($path));
def del(f): delpaths([path(f)]);

def INDEX(stream; key): reduce stream as $row ({}; .[$row | key | tostring] |= $row);
def INDEX(key): INDEX(.[]; key);
def IN(stream): any(stream == .; .);
def IN(source; stream): any(source == stream; .);
