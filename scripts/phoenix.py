"""Called by phoenix.sh: starts Phoenix, plays a run, and prints what Phoenix has of it. Everything is on loopback and in a folder
of its own; only what was started here is ended."""
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

PHOENIX, PROGRAMS, CLIENT = sys.argv[1:]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return json.load(answer)


def wait(what, seconds, is_so):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if found := is_so():
                return found
        except OSError:
            pass
        time.sleep(0.5)
    sys.exit(f"phoenix.py: {what} did not come within {seconds} s")


def phoenix(folder, port):
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PHOENIX_WORKING_DIR": str(folder / "phoenix"),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    (folder / "phoenix").mkdir()
    with open(folder / "phoenix.log", "wb") as log:
        return subprocess.Popen([PHOENIX, "serve"], env=env, stdout=log, stderr=log, cwd=folder)


def run(folder, port, model):
    project = folder / "project"
    project.mkdir()
    (project / "fix_plan.md").write_text("# Plan\n\n- [ ] Item one\n")
    env = {
        "PATH": f"{PROGRAMS}:{Path(CLIENT).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "ANTHROPIC_API_KEY": "sk-ant-none",
        "ANTHROPIC_BASE_URL": model,
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
        "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA": "1",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_TRACES_EXPORT_INTERVAL": "500",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
    }
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.invalid"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "Plan"]):
        subprocess.run(git + words, cwd=project, env=env, check=True)
    words = ["plimsoll", "run", "--objective", "Do the plan.", "--max-iterations", "1", "--verify", "true", "--", "--model", "opus"]
    done = subprocess.run(
        words + ["--allowedTools", "Bash"], cwd=project, env=env, timeout=120, capture_output=True, text=True
    )
    # 3: the one session that was allowed is over.
    if done.returncode != 3:
        sys.exit(f"phoenix.py: the run ended with {done.returncode}: {done.stdout}{done.stderr}")


def main():
    with tempfile.TemporaryDirectory(prefix="plimsoll-phoenix-") as temporary:
        folder, port, started = Path(temporary), free_port(), []
        try:
            model = subprocess.Popen([f"{PROGRAMS}/phoenix-model"], stdout=subprocess.PIPE, text=True)
            started.append(model)
            started.append(phoenix(folder, port))
            wait("Phoenix", 120, lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5))
            run(folder, port, model.stdout.readline().strip())

            def spans():
                found = ask(port, "/v1/projects/default/spans?limit=1000")["data"]
                return found if any(span["name"] == "plimsoll run" for span in found) else None

            report(wait("the span of the run", 60, spans))
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait(20)


def report(spans):
    by_id = {span["context"]["span_id"]: span for span in spans}
    traces = {span["context"]["trace_id"] for span in spans}

    def path(span):
        names = []
        while span:
            names.append(span["name"])
            span = by_id.get(span.get("parent_id"))
        return " < ".join(names)

    rows = sorted({(path(span), span.get("span_kind", "")) for span in spans})
    print("| span, below what | kind in Phoenix |\n| --- | --- |")
    for where, kind in rows:
        print(f"| {where} | {kind} |")
    if len(traces) != 1:
        sys.exit(f"phoenix.py: {len(traces)} traces instead of one")
    clients = [where for where, _ in rows if "claude_code" in where.split(" < ")[0]]
    if not any(where.endswith("iteration < plimsoll run") for where in clients):
        sys.exit("phoenix.py: no span of the client is below an iteration")


main()
