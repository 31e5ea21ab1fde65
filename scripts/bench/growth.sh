#!/bin/bash
# Read by scripts/bench.sh: what a longer transcript costs, for our programs and for status lines from npm; and
# how fast the turn log reads.

CCSTATUSLINE=2.2.30
CCLINE=1.1.2
CCUSAGE=20.0.24
GROWN=$STAGE/growth-project
# Transcripts are read where the client keeps them.
CONFIG=$STAGE/growth-home/.claude

# Where the client keeps a session's transcript below a home.
kept() { echo "$1/.claude/projects/project/$(id "$2").jsonl"; }
id() { printf '11111111-1111-4111-8111-%012d' "$1"; }

# A transcript of so many megabytes: calls and results of about 9 KB, each with its own number, and the payload's own usage at the end.
grow() { # megabytes
  local file
  file=$(kept "$STAGE/growth-home" "$1")
  { answer 987654 207880; result 987654 105; } | sed -e "s|$STAGE/project|$GROWN|g" -e "s/$SESSION/$(id "$1")/" |
    awk -v bytes=$(($1 * 1024 * 1024)) '{ pieces[NR] = split($0, texts, "987654"); for (n in texts) piece[NR, n] = texts[n] }
      END {
        for (turn = 100000; written < bytes; turn++)
          for (line = 1; line <= NR; line++) {
            text = piece[line, 1]
            for (n = 2; n <= pieces[line]; n++) text = text turn piece[line, n]
            print text
            written += length(text) + 1
          }
      }' >"$file"
  LAST_CALL=$(tail -c 20000 "$file" | grep -o '"tool_use_id":"toolu_[0-9]*' | tail -1 | cut -d'"' -f4)
  sed -e "s|$STAGE/quiet.jsonl|$file|" -e "s|$STAGE/project|$GROWN|g" -e "s/$SESSION/$(id "$1")/" -e "s/toolu_50/$LAST_CALL/" \
    "$STAGE/quiet.json" >"$STAGE/growth-$1.json"
  sed -e "s|$STAGE/quiet.jsonl|$file|" -e "s|$STAGE/project|$GROWN|g" -e "s/$SESSION/$(id "$1")/" "$STAGE/start.json" >"$STAGE/growth-start-$1.json"
  sed -e "s|\"transcript_path\":\"[^\"]*|\"transcript_path\":\"$file|" -e "s|$STAGE/project|$GROWN|g" \
    -e "s/\"session_id\":\"[^\"]*/\"session_id\":\"$(id "$1")/" "$STAGE/status.json" >"$STAGE/growth-status-$1.json"
  grown plimsoll-session-start "growth-start-$1.json"
}
grown() { plain "$1" "$2" CLAUDE_PROJECT_DIR="$GROWN"; }

growth() {
  local size
  note "transcripts of ${SIZES[*]} MB"
  mkdir -p "$GROWN/.claude/plimsoll" "$(dirname "$(kept "$STAGE/growth-home" 1)")"
  repository "$GROWN"
  for size in "${SIZES[@]}"; do grow "$size"; done
  capture
  for size in "${SIZES[@]}"; do
    grown plimsoll-post-tool "growth-$size.json"
    grown plimsoll-post-tool "growth-$size.json"
    grown plimsoll-statusline "growth-status-$size.json"
  done
  {
    printf '| program |'
    printf ' %s MB |' "${SIZES[@]}"
    printf ' %s : 1 MB | peak memory |\n|---|' "$LARGEST"
    printf -- '---:|%.0s' "${SIZES[@]}"
    echo "---:|---:|"
  }
  growth_row "Plimsoll's monitor" "$ROUNDS" "$STAGE/growth-ours" growth "$BIN/plimsoll-post-tool"
  OUR_GROWTH=$GROWTH
  growth_row "Plimsoll's status line" "$ROUNDS" "$STAGE/growth-ours" growth-status "$BIN/plimsoll-statusline"
  [ -n "$QUICK" ] || peers
}

# The same where each result is another one, and so a file beside the log: DISTINCT is the time. Each round has a folder of its own,
# and nothing is removed before: ext4 passes over the place of each file that went in the last seconds.
capture_distinct() { # transcript, megabytes
  local round folder file began ended times=()
  file=$(kept "$STAGE/growth-home" 7)
  awk '{ sub(/"type":"tool_result","content":"/, "&" NR " ") } 1' "$1" | sed "s/$(id "$2")/$(id 7)/g" >"$STAGE/growth-distinct.jsonl"
  for round in 1 2 3; do
    folder=$STAGE/growth-distinct-$round
    mkdir -p "$folder/.claude/plimsoll"
    sed "s|$GROWN|$folder|g" "$STAGE/growth-distinct.jsonl" >"$file"
    sed -e "s|$1|$file|" -e "s/$(id "$2")/$(id 7)/" -e "s|$GROWN|$folder|g" "$STAGE/growth-start-$2.json" >"$STAGE/growth-start-distinct.json"
    plain plimsoll-session-start growth-start-distinct.json CLAUDE_PROJECT_DIR="$folder"
    sync
    began=${EPOCHREALTIME/./}
    env -i "${ENVIRONMENT[@]}" CLAUDE_CONFIG_DIR="$CONFIG" env -C "$folder" "$BIN/plimsoll" turns sync >/dev/null
    ended=${EPOCHREALTIME/./}
    times+=($((ended - began)))
    [ "$(find "$folder/.claude/plimsoll/turns" -path '*.blobs/*' -type f | wc -l)" -ge $(($(wc -l <"$file") / 4)) ] || die "results were not distinct"
  done
  DISTINCT=$(printf '%s\n' "${times[@]}" | sort -n | sed -n 2p)
}

# All sizes in turn. A program that prints nothing, or does not end, is not timed.
growth_row() { # name, rounds, its home (one for each size, -MB behind it), kind of payload, program
  local size shown contestants=()
  for size in "${SIZES[@]}"; do
    contestants+=(-- -i "$STAGE/$4-$size.json" -e CLAUDE_PROJECT_DIR="$GROWN" -e COLUMNS=200 -e HOME="$3-$size" "${@:5}")
  done
  shown=$(env -i "${ENVIRONMENT[@]}" CLAUDE_PROJECT_DIR="$GROWN" COLUMNS=200 HOME="$3-$LARGEST" \
    timeout 60 "${@:5}" <"$STAGE/$4-$LARGEST.json" 2>/dev/null) || shown=""
  if [ -z "$shown" ]; then
    ABSENT+=("$1: prints nothing on our payload, or not within a minute")
    note "$1 printed nothing and is left out"
    return
  fi
  note "$1 prints: $(sed -e 's/\x1b\[[0-9;]*m//g' <<<"$shown" | tr -s '\n ' ' ')"
  race "$2" "${contestants[@]:1}"
  GROWTH=$(ratio "${TENTH[-1]}" "${TENTH[0]}")
  printf '| %s |' "$1"
  for size in "${!SIZES[@]}"; do printf ' %s |' "$(ms "${TENTH[$size]}")"; done
  printf ' %s | %s |\n' "$GROWTH" "$(mb "${PEAK[-1]}")"
}

# Status lines from npm at pinned versions, each in a home of its own that holds this one transcript.
peers() {
  local name version
  command -v npm >/dev/null || { ABSENT+=("status lines from npm (npm is missing)"); return 0; }
  mkdir -p "$PEERS"
  while read -r name version; do
    note "$name $version"
    timeout 300 npm install --prefix "$PEERS" --no-audit --no-fund --loglevel=error "$name@$version" >&2 ||
      { ABSENT+=("$name $version (npm cannot install it here)"); continue; }
    own_home "$name"
    case $name in
      # Its npm launcher is node and only finds the program in one layout; its guide has the program itself called.
      @cometix/ccline)
        local program
        program=$(compgen -G "$PEERS/node_modules/@cometix/ccline-linux-*-musl/ccline" | head -1)
        [ -n "$program" ] || { ABSENT+=("$name $version (no program for this machine)"); continue; }
        growth_row "CCometixLine $version (Rust)" "$((FEW / 3))" "$OWN_HOME" "$OWN_KIND" "$program"
        ;;
      ccstatusline) growth_row "ccstatusline $version (node)" "$((FEW / 10))" "$OWN_HOME" "$OWN_KIND" "$(command -v node)" "$(realpath "$PEERS/node_modules/.bin/ccstatusline")" ;;
      # Without its cache, which answers for a second from what it has printed before.
      ccusage) growth_row "ccusage $version statusline (offline, no cache)" "$((FEW / 10))" "$OWN_HOME" "$OWN_KIND" "$(command -v node)" "$(realpath "$PEERS/node_modules/.bin/ccusage")" statusline --offline --no-cache ;;
    esac
  done <<<"@cometix/ccline $CCLINE
ccstatusline $CCSTATUSLINE
ccusage $CCUSAGE"
}
own_home() { # name
  local size
  OWN_HOME=$STAGE/growth-of-${1##*/} OWN_KIND=growth-of-${1##*/}
  for size in "${SIZES[@]}"; do
    mkdir -p "$(dirname "$(kept "$OWN_HOME-$size" 1)")"
    ln -f "$(kept "$STAGE/growth-home" "$size")" "$(kept "$OWN_HOME-$size" "$size")"
    sed "s|$STAGE/growth-home|$OWN_HOME-$size|" "$STAGE/growth-status-$size.json" >"$STAGE/$OWN_KIND-$size.json"
  done
}

# The turn log reads a whole transcript, beside a plain forward scan of the same file. What is captured here is what the
# hooks find captured afterwards.
capture() {
  local size=${SIZES[-2]} file lines kept sync=(env -C "$GROWN" CLAUDE_CONFIG_DIR="$CONFIG" "$BIN/plimsoll" turns sync)
  [ -z "$QUICK" ] || size=1
  file=$(kept "$STAGE/growth-home" "$size")
  note "turn log, $size MB"
  rm -rf "$STAGE/growth-unread"
  cp -a "$GROWN" "$STAGE/growth-unread"
  # Only this session is known.
  find "$STAGE/growth-unread/.claude/plimsoll/sessions" -type f ! -name "$(id "$size")*" -delete
  race $((FEW / 10 + 1)) "$STAGE/scan" "$file" -- -r "$STAGE/growth-unread" "$GROWN" "${sync[@]}"
  lines=$(wc -l <"$file")
  kept=$(find "$GROWN/.claude/plimsoll/turns" -name "$(id "$size").jsonl" -exec grep -c . {} +)
  [ "$kept" -ge $((lines / 2)) ] || die "the turn log has $kept records of $lines lines"
  capture_distinct "$file" "$size"
  CAPTURED=$(awk -v size="$size" -v scan="${MEDIAN[0]}" -v sync="${MEDIAN[1]}" -v distinct="$DISTINCT" -v peak="$(mb "${PEAK[1]}")" '
    function speed(time) { return size * 1e6 / time }
    function held(time, least) { return "budget: " least ", " (speed(time) >= least ? "met" : "**not met**") }
    BEGIN {
      printf "`plimsoll turns sync` reads %.0f MB/s (%s) and takes %s of memory.\n", speed(sync), held(sync, 150), peak
      printf "If no two tool results are equal, it reads %.0f MB/s (%s). A plain scan in Rust reads %.0f MB/s.", speed(distinct), held(distinct, 60), speed(scan)
    }')
  CAPTURE_SIZE=$size
  rm -rf "$GROWN"
  cp -a "$STAGE/growth-unread" "$GROWN"
  for size in "${SIZES[@]}"; do grown plimsoll-session-start "growth-start-$size.json"; done
  env -i "${ENVIRONMENT[@]}" "${sync[@]}" >/dev/null
}
