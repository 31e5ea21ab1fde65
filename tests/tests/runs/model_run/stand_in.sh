#!/bin/sh
# A stand-in for the client: plays the sessions of $HOME/sessions one after another, with the hooks, the stream and the
# transcript of the real one. Each session is a script of the words below; PARENT is `plimsoll run`.
if [ "$1" = --version ]; then echo "2.1.329 (Claude Code)"; exit 0; fi
for word; do
    if [ "$before" = --session-id ]; then id=$word; fi
    before=$word
done
export CLAUDE_CODE_SESSION_ID="$id" CLAUDE_PROJECT_DIR="$PWD"
# A session that can only read reviews: its scripts and what is seen of it are apart.
sessions=sessions begun=begun
case " $* " in *" --tools Read,Grep,Glob "*) sessions=reviews begun=reviewed ;; esac
number=1
until mkdir "$HOME/$begun/$number" 2> /dev/null; do number=$((number + 1)); done
cat > "$HOME/$begun/$number/prompt"
transcript=$HOME/$begun/$number/transcript.jsonl
parent=$PPID
item=$(sed -n '/^## Your item$/{n;n;s/^> //p;q}' "$HOME/$begun/$number/prompt")
promise=$(grep -o '<promise>COMPLETE[^<]*</promise>' "$HOME/$begun/$number/prompt" | tail -n 1)
blocked=$(printf %s "$promise" | sed 's/COMPLETE \([^ <]*\)/BLOCKED \1 no way/')

event() { # name, further fields
    printf '{"hook_event_name":"%s","session_id":"%s","cwd":"%s","transcript_path":"%s"%s}' "$1" "$id" "$PWD" "$transcript" "$2"
}
begin() {
    event SessionStart ',"source":"startup"' | plimsoll-session-start > /dev/null
    echo '{"type":"system","subtype":"init","model":"claude-opus-5-5","claude_code_version":"2.1.329"}'
}
# One answer that called a tool, after so many tokens. A session that is told to end there does.
answers() {
    printf '{"type":"assistant","isSidechain":false,"requestedModel":"claude-opus-5-5","timestamp":"%s","message":{"id":"msg_1","model":"claude-opus-5-5","role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}}],"usage":{"input_tokens":%s,"output_tokens":1}}}\n' \
        "$(date -u +%Y-%m-%dT%H:%M:%S.000Z)" "$1" >> "$transcript"
    event PostToolBatch ',"tool_calls":[{"tool_name":"Bash","tool_use_id":"toolu_1","tool_input":{"command":"true"},"tool_response":"ok"}]' |
        plimsoll-post-tool > "$HOME/begun/$number/reply"
    if grep -q '"continue":false' "$HOME/begun/$number/reply"; then
        result false '"terminal_reason":"hook_stopped"' ""
        leave
    fi
}
says() {
    event Stop ",\"stop_hook_active\":false,\"last_assistant_message\":\"$1\"" | plimsoll-stop-gate > /dev/null
    result false '"terminal_reason":"completed"' "$1"
}
fails() { # status, words
    result true "\"terminal_reason\":\"api_error\",\"api_error_status\":$1" "API Error: $1 $2"
}
result() { # is it an error, why, words
    printf '{"type":"result","subtype":"success","is_error":%s,%s,"result":"%s","total_cost_usd":0.01}\n' "$1" "$2" "$3"
}
leave() {
    event SessionEnd ',"reason":"other"' | plimsoll-session-end > /dev/null
    : > "$HOME/begun/$number/left"
    exit 0
}
crashes() {
    : > "$HOME/begun/$number/left"
    kill -9 $$
}
# The answer of a review; hooks of ours that a settings file names would run in it, too.
reviews() {
    echo "$*" > "$HOME/reviewed/$number/answer"
    begin
    event Stop ',"stop_hook_active":false,"last_assistant_message":"Done."' | plimsoll-stop-gate > /dev/null
    result false '"terminal_reason":"completed"' "$1"
    event SessionEnd ',"reason":"other"' | plimsoll-session-end > /dev/null
    exit 0
}
tick() { sed -i "s/^- \[ \] $1\$/- [x] $1/" fix_plan.md; }
# As a person does it, in another terminal.
person() { env -u PLIMSOLL_RUN_ID -u CLAUDE_CODE_SESSION_ID "$@" > /dev/null 2>&1; }

if [ $begun = reviewed ]; then
    echo "$*" > "$HOME/reviewed/$number/arguments"
    env > "$HOME/reviewed/$number/environment"
    if [ ! -e "$HOME/reviews/$number" ]; then reviews "VERDICT: pass"; fi
fi
if [ ! -e "$HOME/$sessions/$number" ]; then begin; answers 30000; says "I see nothing to do."; leave; fi
. "$HOME/$sessions/$number"
leave
