"""run_skill_script: the model runs a script that a skill lists, with no more than it needs."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from agent_kit import User, agent, of, requests, say
from script_kit import Giver, run_call, run_script, write_skill
from skillshelf.trust import Trust
from skillshelf_agent.events import ToolReturned
from skillshelf_agent.sessions import Sessions
from skillshelf_agent.testing import call

HELLO = "import os, sys\nprint('hello', sys.argv[1:], os.getcwd(), sep='\\n')\n"


def test_a_script_gets_its_arguments_and_starts_in_the_workspace(tmp_path: Path) -> None:
    write_skill(tmp_path / "pdf", {"scripts/hello.py": HELLO})
    result = run_script(tmp_path, "scripts/hello.py", "a b", "*")
    assert result.ok
    assert result.text.splitlines() == ["hello", "['a b', '*']", str(tmp_path)]


def test_a_script_finds_the_other_files_of_its_skill(tmp_path: Path) -> None:
    """Modules beside it can be imported, and SKILL_DIR leads to the rest."""
    script = "import os, helper\nprint(helper.WORD, open(os.environ['SKILL_DIR'] + '/assets/a.txt').read())\n"
    write_skill(
        tmp_path / "pdf", {"scripts/run.py": script, "scripts/helper.py": "WORD = 'helped'\n", "assets/a.txt": "asset"}
    )
    assert run_script(tmp_path, "run.py").text == "helped asset"


@pytest.mark.parametrize(
    ("path", "text", "program"),
    [
        ("scripts/a.sh", 'echo "$1"\n', "sh"),
        ("scripts/a.sh", '#!/usr/bin/env bash\nwords=("$1"); echo "${words[0]}"\n', "bash"),
        ("scripts/a.js", "console.log(process.argv[2])\n", "node"),
        ("scripts/a", "#!/usr/bin/env python3\nimport sys\nprint(sys.argv[1])\n", "python3"),
        ("tools/a.pl", "print $ARGV[0];\n", "perl"),
    ],
)
def test_the_first_line_or_the_ending_names_the_interpreter(tmp_path: Path, path: str, text: str, program: str) -> None:
    """A file outside scripts/ counts if the instructions name it."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    write_skill(tmp_path / "pdf", {path: text}, body=f"Run {path} now.\n")
    assert run_script(tmp_path, path, "$(id)").text == "$(id)"


def test_the_tool_is_offered_only_if_a_skill_has_a_script(tmp_path: Path) -> None:
    write_skill(tmp_path / "pdf", {"references/a.md": "text"})
    core = agent(tmp_path, "ok", "ok")
    say(core, "go")
    assert "run_skill_script" not in requests(core)[0].tools
    write_skill(tmp_path / "csv", {"scripts/a.py": HELLO})
    say(core, "go")
    assert "run_skill_script" in requests(core)[1].tools
    assert "run_skill_script" in [tool.name for tool in core.loop.window.tools]


def test_a_script_that_lacks_a_python_module_says_how_to_get_it(tmp_path: Path) -> None:
    """The network would not help."""
    write_skill(tmp_path / "pdf", {"scripts/a.py": "import library_that_nobody_has.part\n"})
    failed = run_script(tmp_path, "scripts/a.py")
    assert not failed.ok
    assert "-m pip install library_that_nobody_has`" in failed.text
    assert "declare it at the top of scripts/a.py" in failed.text
    assert "network=true" not in failed.text


def test_a_list_of_references_names_the_only_scripts_that_run(tmp_path: Path) -> None:
    files = {"scripts/listed.py": HELLO, "scripts/other.py": HELLO}
    write_skill(tmp_path / "pdf", files, "references:\n  - scripts/listed.py\n")
    assert run_script(tmp_path, "scripts/listed.py").ok
    refused = run_script(tmp_path, "scripts/other.py")
    assert not refused.ok
    assert "'scripts/listed.py'" in refused.text


def test_the_user_is_asked_with_the_script_in_sight(tmp_path: Path) -> None:
    """The question has the text, the arguments, and whether the script gets the network."""
    write_skill(tmp_path / "pdf", {"scripts/hello.py": HELLO})
    user = User("no", "yes")
    core = agent(
        tmp_path, run_call("hello.py", "x"), run_call("hello.py", "x", network=True), "ok", mode="ask", user=user
    )
    refused, ran = of(say(core, "go"), ToolReturned)
    assert (refused.refused, ran.ok) == (True, True)
    first, second = user.questions
    assert first.script is not None
    assert second.script is not None
    assert (first.script.path, first.script.text, first.script.arguments) == ("scripts/hello.py", HELLO, ("x",))
    assert (first.script.network, second.script.network) == (False, True)
    assert first.as_json()["script"]["hash"] == first.script.tree


def test_always_is_for_the_script_as_it_is(tmp_path: Path) -> None:
    """Further runs are not asked about, with any arguments, until a file of the skill changes or network is wanted."""
    skill = write_skill(tmp_path / "pdf", {"scripts/hello.py": HELLO, "scripts/helper.py": ""})
    user = User("always", "no", "no")
    steps = [run_call("hello.py"), run_call("hello.py", "other"), run_call("hello.py", network=True), "ok"]
    core = agent(tmp_path, *steps, run_call("hello.py"), "ok", mode="ask", user=user)
    assert [result.ok for result in of(say(core, "go"), ToolReturned)] == [True, True, False]
    (skill / "scripts/helper.py").write_text("changed = True\n")
    assert [result.ok for result in of(say(core, "again"), ToolReturned)] == [False]
    assert len(user.questions) == 3


@pytest.mark.parametrize("mode", ["read-only", "auto-edit"])
def test_no_mode_but_yolo_runs_a_script_unasked(tmp_path: Path, mode: str) -> None:
    write_skill(tmp_path / "pdf", {"scripts/hello.py": HELLO})
    (result,) = of(say(agent(tmp_path, run_call("hello.py"), "ok", mode=mode), "go"), ToolReturned)
    assert result.refused


def test_copies_that_a_killed_agent_left_are_removed(tmp_path: Path) -> None:
    """Those of a living one stay, however old they are, and so does what is not a copy."""
    write_skill(tmp_path / "pdf", {"scripts/where.py": "import os\nprint(os.environ['SKILL_DIR'])\n"})
    living = agent(tmp_path, run_call("where.py"), run_call("where.py"), "ok", "ok")
    (result,) = of(say(living, "go"), ToolReturned)[:1]
    used = Path(result.text)
    runs = next(folder for folder in used.parents if folder.name == "runs")
    abandoned = runs / "skillshelf-abandoned"
    (abandoned / "copy").mkdir(parents=True)
    other = runs / "skillshelf-file"
    other.write_text("not a copy")
    for path in runs.iterdir():
        os.utime(path, (0, 0))
    (runs / "skillshelf-new").mkdir()

    assert run_script(tmp_path, "where.py").ok
    assert not abandoned.exists()
    assert used.exists()
    assert other.exists()
    assert (runs / "skillshelf-new").exists()


def test_a_failure_says_how_the_script_ended(tmp_path: Path) -> None:
    write_skill(tmp_path / "pdf", {"scripts/fail.py": "print('half done')\nraise SystemExit(3)\n"})
    result = run_script(tmp_path, "fail.py")
    assert not result.ok
    assert "half done\n[exit code: 3]" in result.text
    assert "network=true" in result.text


def test_a_changed_skill_runs_as_it_was_approved(tmp_path: Path) -> None:
    """The model is informed that the version on disk is another one."""
    skill = write_skill(tmp_path / "pdf", {"scripts/hello.py": "print('approved')\n"})
    core = agent(tmp_path, run_call("hello.py"), "ok", trust=Trust.open())
    core.skills.approve(core.skills.pending)
    core.reload_skills()
    (skill / "scripts/hello.py").write_text("print('changed')\n")
    (result,) = of(say(core, "go"), ToolReturned)
    assert result.text.startswith(
        "approved\n[The skill changed since the user's review: the approved version is in use."
    )


def test_a_skill_that_is_not_approved_has_no_scripts(tmp_path: Path) -> None:
    write_skill(tmp_path / "pdf", {"scripts/hello.py": HELLO})
    core = agent(tmp_path, run_call("hello.py"), "ok", trust=Trust.open())
    (result,) = of(say(core, "go"), ToolReturned)
    assert not result.ok


# -- variables --------------------------------------------------------------------------------------------------------

PRINT_KEY = "import os\nprint(os.environ.get('PDF_KEY'), os.environ.get('OTHER'))\n"


@pytest.mark.parametrize(
    "metadata",
    ["metadata:\n  env: PDF_KEY\n", "metadata:\n  openclaw:\n    requires:\n      env: [PDF_KEY]\n"],
    ids=["env", "requires"],
)
def test_a_declared_variable_is_asked_for_once_and_never_shown(tmp_path: Path, metadata: str) -> None:
    """The script gets it, and its output shows the name instead of the value. No file has the value."""
    write_skill(tmp_path / "pdf", {"scripts/key.py": PRINT_KEY}, metadata)
    sessions = Sessions(str(tmp_path))
    core = agent(tmp_path, run_call("key.py"), run_call("key.py"), "ok", sessions=sessions)
    giver = Giver(core, PDF_KEY="s3cret-value", OTHER="undeclared")
    events = say(core, "go")
    assert [result.text for result in of(events, ToolReturned)] == ["[PDF_KEY] None"] * 2
    assert [(request.name, request.skill) for request in giver.requests] == [("PDF_KEY", "pdf")]
    assert "s3cret" not in "".join(request.text for request in requests(core))
    assert core.conversation.session is not None
    assert "s3cret" not in Path(core.conversation.session.path).read_text()
    assert "s3cret" not in repr(events)


def test_a_variable_that_is_not_given_is_reported(tmp_path: Path) -> None:
    """The script runs without it: it may know what to do."""
    write_skill(tmp_path / "pdf", {"scripts/key.py": PRINT_KEY}, "metadata:\n  env: PDF_KEY\n")
    result = run_script(tmp_path, "key.py")
    assert result.text == "None None\n[The user has not given the script a value for PDF_KEY.]"


# -- packages ---------------------------------------------------------------------------------------------------------

NEEDS_PACKAGE = '# /// script\n# dependencies = ["greeting>=1"]\n# ///\nimport greeting\nprint(greeting.WORD)\n'
FAKE_UV = f"""#!{sys.executable}
import os, subprocess, sys
with open(os.environ["UV_CACHE_DIR"] + "/calls", "a") as calls:
    print(*sys.argv[1:], sep="|", file=calls)
if sys.argv[1] == "venv":
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", sys.argv[-1]], check=True)
else:
    python = sys.argv[sys.argv.index("--python") + 1]
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    with open(packages + "/greeting.py", "w") as module:
        module.write("WORD = 'installed'")
"""


@pytest.fixture
def uv(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a program called uv on the path, which installs a package of its own. Return the file with its calls."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "uv").write_text(FAKE_UV)
    (folder / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return Path.home() / ".cache/skillshelf/scripts/uv/calls"


def test_packages_of_a_script_are_asked_about_and_installed_once(tmp_path: Path, uv: Path) -> None:
    """The installation is a question of its own, which nothing lasting answers. uv takes wheels only."""
    write_skill(tmp_path / "pdf", {"scripts/a.py": NEEDS_PACKAGE, "scripts/b.py": NEEDS_PACKAGE})
    user = User("yes", "always", "yes")
    core = agent(tmp_path, run_call("a.py"), run_call("b.py"), "ok", mode="ask", user=user)
    assert [result.text for result in of(say(core, "go"), ToolReturned)] == ["installed", "installed"]
    assert [question.tool for question in user.questions] == [
        "run_skill_script",
        "install_packages",
        "run_skill_script",
    ]
    assert user.questions[1].arguments["packages"] == "greeting>=1"
    assert not user.questions[1].can_be_lasting
    _, install = uv.read_text().splitlines()
    assert "--no-build" in install
    assert install.endswith("|--|greeting>=1")


def test_without_permission_for_its_packages_a_script_does_not_run(tmp_path: Path, uv: Path) -> None:
    write_skill(tmp_path / "pdf", {"scripts/a.py": NEEDS_PACKAGE})
    core = agent(tmp_path, run_call("a.py"), "ok", mode="ask", user=User("yes", "no"))
    (result,) = of(say(core, "go"), ToolReturned)
    assert result.refused
    assert not uv.exists()


def test_a_script_with_packages_says_that_it_needs_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says how to install it, and nothing is asked in vain."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(folder))
    workspace = tmp_path / "work"
    write_skill(workspace / "pdf", {"scripts/a.py": NEEDS_PACKAGE})
    user = User("yes")
    core = agent(workspace, run_call("a.py"), "ok", mode="ask", user=user)
    (result,) = of(say(core, "go"), ToolReturned)
    assert not result.ok
    assert "pipx install uv" in result.text
    assert user.questions == []


@pytest.mark.parametrize(
    "block",
    [
        'dependencies = ["--index-url=http://evil.example"]',
        'dependencies = ["./local"]',
        'dependencies = "requests"',
        "dependencies = [",
        'requires-python = "./evil"\n# dependencies = ["six"]',
        'requires-python = "pypy"\n# dependencies = ["six"]',
    ],
)
def test_a_block_that_does_not_list_packages_is_refused(tmp_path: Path, uv: Path, block: str) -> None:
    """An option of uv or a path in the workspace is not a package."""
    write_skill(tmp_path / "pdf", {"scripts/a.py": f"# /// script\n# {block}\n# ///\nprint('ran')\n"})
    result = run_script(tmp_path, "a.py")
    assert not result.ok
    assert "# /// script" in result.text
    assert not uv.exists()


def test_a_script_runs_in_the_sandbox_of_commands(tmp_path: Path) -> None:
    """It can write in the workspace only, and its skill's own files cannot be changed."""
    (tmp_path / "outside").mkdir()
    workspace = tmp_path / "work"
    text = (
        "import os, sys\n"
        "open('made.txt', 'w').close()\n"
        "for place in (sys.argv[1], os.environ['SKILL_DIR']):\n"
        "    try:\n        open(place + '/x', 'w')\n    except OSError as error:\n        print('refused')\n"
    )
    write_skill(workspace / "pdf", {"scripts/a.py": text})
    core = agent(workspace, run_call("a.py", str(tmp_path / "outside")), call("read_file", path="made.txt"), "ok")
    if not core.sandbox:
        pytest.skip("there is no sandbox here")
    ran, read = of(say(core, "go"), ToolReturned)
    assert ran.text == "refused\nrefused"
    assert read.ok
