"""Stands in for npm's registry, for the server of the archives and for that of git repositories, on loopback: serves a folder, takes
what `npm publish` sends, and lets git clone what is in it.

Usage: registry.py FOLDER    it prints its address, and ends with its standard input
"""

import base64
import functools
import http.server
import json
import os
import pathlib
import subprocess
import sys
import threading
import urllib.parse


class Handler(http.server.SimpleHTTPRequestHandler):
    """Everything under /npm/ is the registry, and what ends with .git a repository; the rest are files of the folder."""

    def log_message(self, *_):
        pass

    def document(self):
        """The file with what the registry knows of a package, or None outside of the registry."""
        name = urllib.parse.unquote(urllib.parse.urlparse(self.path).path)
        if not name.startswith("/npm/") or "/-/" in name or ".." in name:
            return None
        return pathlib.Path(self.directory, "npm", name[len("/npm/") :].replace("/", "%2f") + ".json")

    def answer(self, code, value):
        body = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer_git(self):
        """Lets git's own program answer, as a web server does."""
        address = urllib.parse.urlparse(self.path)
        environment = os.environ | {
            "GIT_PROJECT_ROOT": self.directory,
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("git-protocol", ""),
            "PATH_INFO": address.path,
            "QUERY_STRING": address.query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("content-type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
        }
        sent = self.rfile.read(int(self.headers.get("content-length", 0)))
        answered = subprocess.run(["git", "http-backend"], env=environment, input=sent, stdout=subprocess.PIPE, check=True)
        head, _, body = answered.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        if ".git/" in self.path:
            self.answer_git()
        else:
            self.answer(404, {"error": "not found"})

    def do_GET(self):
        if ".git/" in self.path:
            return self.answer_git()
        document = self.document()
        if document is None:
            return super().do_GET()
        if document.exists():
            return self.answer(200, json.loads(document.read_text()))
        return self.answer(404, {"error": "not found"})

    def do_PUT(self):
        document = self.document()
        sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if document is None:
            return self.answer(404, {"error": "not found"})
        known = json.loads(document.read_text()) if document.exists() else {"versions": {}, "dist-tags": {}}
        if known["versions"].keys() & sent["versions"].keys():
            return self.answer(403, {"error": "this version is published already"})
        for name, file in sent["_attachments"].items():
            tarball = document.parent / sent["name"] / "-" / name
            tarball.parent.mkdir(parents=True, exist_ok=True)
            tarball.write_bytes(base64.b64decode(file["data"]))
        known["name"] = sent["name"]
        known["versions"] |= sent["versions"]
        known["dist-tags"] |= sent["dist-tags"]
        document.parent.mkdir(parents=True, exist_ok=True)
        document.write_text(json.dumps(known))
        return self.answer(201, {"ok": True})


handler = functools.partial(Handler, directory=sys.argv[1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
