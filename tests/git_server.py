"""Git repositories on this machine, and a server for them that speaks smart HTTP, as Git hosts do."""

import base64
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(repository: Path, *words: str) -> str:
    """Run a Git command in a repository, and return what it prints."""
    completed = subprocess.run(
        ["git", *words], cwd=repository, env={**os.environ, **_ENVIRONMENT}, check=True, capture_output=True, text=True
    )
    return completed.stdout.strip()


def make_repository(folder: Path, files: Mapping[str, str], branch: str = "main") -> str:
    """Make a repository with one commit of these files, and return the commit."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", f"--initial-branch={branch}")
    return commit_files(folder, files)


def commit_files(repository: Path, files: Mapping[str, str]) -> str:
    """Add a commit with these files, and return it."""
    for path, text in files.items():
        file = repository / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "Change")
    return git(repository, "rev-parse", "HEAD")


class GitServer(ThreadingHTTPServer):
    """Serves the repositories in a folder. With a password, only those who send it get anything."""

    def __init__(self, folder: Path, password: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.folder = folder
        self.password = password
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.requests: list[str] = []


@contextmanager
def serving(folder: Path, password: str = "") -> Iterator[GitServer]:
    """Serve the repositories in a folder until the end of the block."""
    with GitServer(folder, password) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Request(BaseHTTPRequestHandler):
    server: GitServer

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self) -> None:
        self.server.requests.append(self.path)
        expected = base64.b64encode(f"ada:{self.server.password}".encode()).decode()
        if self.server.password and self.headers.get("Authorization") != f"Basic {expected}":
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="here"')
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        environment = {
            **os.environ,
            "GIT_PROJECT_ROOT": str(self.server.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        completed = subprocess.run(
            ["git", "http-backend"], input=body, env=environment, capture_output=True, check=False
        )
        head, _, content = completed.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
