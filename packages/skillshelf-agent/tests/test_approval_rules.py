"""Rules that allow or deny kinds of calls for good."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import skillshelf
from agent_kit import User, agent, of, requests, say
from repository import TESTS
from skillshelf.errors import SettingsError
from skillshelf.shelf.workspace_skills import WorkspaceSkills
from skillshelf_agent import AgentCore, Policy
from skillshelf_agent.events import ToolReturned
from skillshelf_agent.rules import Decision, Rule, RuleBook, RuledCall, find_ruling, offer_rule
from skillshelf_agent.testing import ScriptedModel, call


def run(command: str) -> RuledCall:
    return RuledCall("run_command", {"command": command}, root="/w", is_sandboxed=True)


def allow(pattern: str) -> Rule:
    return Rule("allow", "run_command", command=pattern)


def is_allowed(pattern: str, command: str) -> bool:
    return find_ruling([allow(pattern)], run(command)) is not None


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("git status", "git status"),
        ("git status", "  git \t status "),
        ("git status", "git 'status'"),
        ("git diff *", "git diff"),
        ("git diff *", "git diff --stat -- 'a file.txt'"),
        ("pytest *", "pytest -x tests/test_a.py::test_b"),
        ("./gradlew test", "./gradlew test"),
        ("uv run pytest *", "uv run pytest -q"),
        ("git commit *", 'git commit -m "Größer, schöner"'),
        ("sudo systemctl restart web", "sudo systemctl restart web"),
    ],
)
def test_a_rule_allows_the_commands_that_have_its_words(pattern: str, command: str) -> None:
    """Blanks and quotes do not count; a `*` at the end stands for further words, or none."""
    assert is_allowed(pattern, command)


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("git status", "git status --short"),
        ("git status", "git stat"),
        ("git status", "git status ''"),
        ("git diff *", "git difftool"),
        ("git diff *", "gitdiff"),
        ("git diff *", "git 'diff --stat'"),
        ("git diff *", "/w/git diff"),
        ("git diff *", "git -c core.pager=evil diff"),
        ("git diff *", "Git diff"),
    ],
)
def test_a_rule_covers_no_other_words(pattern: str, command: str) -> None:
    assert not is_allowed(pattern, command)


def test_a_prefix_allows_nothing_outside_the_sandbox() -> None:
    """What further words make of a program cannot be known. An exact command was the user's own word."""
    command = RuledCall("run_command", {"command": "git diff"}, root="/w")
    assert find_ruling([allow("git diff *")], command) is None
    assert find_ruling([allow("git diff")], command) is not None


@pytest.mark.parametrize(
    "command",
    [
        "ls; evil",
        "ls && evil",
        "ls || evil",
        "ls | evil",
        "ls & evil",
        "ls &",
        "ls $(evil)",
        "ls `evil`",
        "ls <(evil)",
        "ls > out",
        "ls < in",
        "ls 2>&1",
        "ls\nevil",
        "ls\revil",
        "ls $HOME",
        "ls ${HOME}",
        'ls "$HOME"',
        'ls "`evil`"',
        "ls *",
        "ls ?",
        "ls [a]",
        "ls {a,b}",
        "ls ~",
        "ls # evil",
        "ls \\\nevil",
        "ls 'a",
        "A=1 ls",
        "PATH=/tmp ls",
        "(ls)",
        "{ ls; }",
        "! ls",
        "ls\0evil",
        "ls \x1b[2J",
        "ls\u00a0evil",
        "ls\u2003a",
        "ls\u2028evil",
        "ls\u200ba",
        "ls <<E\nevil\nE",
        "ls <<<a",
        "ls &>out",
        "ls |& evil",
        'ls "a\nb"',
        "ls\\\tevil",
        "time ls",
        "exec ls",
        "if ls",
        "ls $'a'",
        "",
        "   ",
    ],
)
def test_a_command_that_leaves_something_to_the_shell_always_asks(command: str) -> None:
    """No rule covers it, and none is offered."""
    assert not is_allowed("ls *", command)
    assert offer_rule(run(command)) is None


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("*", "alone is every command"),
        ("git * status", "only be the last word"),
        ("git dif*", "only be the last word"),
        ("* status", "only be the last word"),
        ("git * *", "only be the last word"),
        ("ls; rm", "not one program"),
        ("ls; rm *", "not one program"),
        ("a=b c", "not one program"),
        ("git $x", "not one program"),
        ("", "not one program"),
    ],
)
@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_a_command_that_is_not_plain_words_is_no_rule(decision: Decision, pattern: str, message: str) -> None:
    """The error says what to write instead."""
    with pytest.raises(SettingsError, match=message):
        Rule(decision, "run_command", command=pattern)


def test_a_star_in_quotes_is_a_word_like_any_other() -> None:
    """The shell gives it to the program as it is."""
    assert is_allowed("grep 'a *'", "grep 'a *'")
    assert not is_allowed("grep 'a *'", "grep 'a b'")
    assert not is_allowed("grep '*'", "grep a")


@pytest.mark.parametrize(
    "command", ["git diff --stat", "git commit -m 'a; b'", "cat /etc/passwd", "sudo ls", "grep '*' x"]
)
def test_the_offered_rule_is_this_very_command(command: str) -> None:
    rule = offer_rule(run(command))
    assert rule is not None
    assert (rule.command, rule.allows_prefix) == (command, False)
    assert find_ruling([rule], run(command)) == rule
    assert find_ruling([rule], run(f"{command} x")) is None


def test_a_rule_that_grants_the_network_wins_over_one_that_does_not() -> None:
    """A user adds it when the command that they always allow fails without."""
    granting = Rule("allow", "run_command", command="npm ci", network=True)
    assert find_ruling([allow("npm ci"), granting, allow("npm *")], run("npm ci")) == granting


def test_a_denial_wins_and_reaches_into_longer_commands() -> None:
    """It is looked for in each simple command, because a refusal too many costs little."""
    rules = [allow("git *"), allow("git push"), Rule("deny", "run_command", command="git push *")]
    for command in (
        "git push",
        "git push -f",
        "git 'push'",
        "cd x && git push",
        "cd x;git push",
        "cd x\ngit push",
        "ls | git push",
        "sleep 1 & git push",
        "A=1 git push",
        "A='x y' git push > log",
        "! git push",
        "(git push)",
        "{ git push; }",
        "if git push; then ls; fi",
        "echo $(git push)",
        'echo "$(git push)"',
        "echo `git push`",
        "cat <(git push)",
        "git push 2>&1 | tee log",
        ">log git push",
        "git >log push",
        "git \\\n push",
        "g'i't pu\\sh; ls",
        "cat <<E; git push\nE",
        '"" git push',
        'VAR="x & y" git push',
        'A="$(date)" git push',
        "A=$(date)/x git push",
        "A=${B:-x y} git push",
        '>"a b" git push',
        "2>&1 git push",
        "command -p git push",
    ):
        ruling = find_ruling(rules, run(command))
        assert ruling is not None
        assert ruling.decision == "deny", command


@pytest.mark.parametrize(
    ("pattern", "command", "denies"),
    [
        ("rm *", "/bin/rm -r x", True),
        ("rm *", "ls; '/usr/bin/rm' x", True),
        ("rm *", "env rm x", True),
        ("rm *", "env A=b rm x", True),
        ("rm *", "/usr/bin/env -i -u A -C /tmp B=c /bin/rm x > log", True),
        ("rm *", "env env rm x", True),
        ("rm *", "env A=1 -i " * 2000 + "rm x", True),
        ("env rm x", "env A=1 env rm x", True),
        ("env rm x", "env A=1 env rm x y", False),
        ("/bin/rm *", "/bin/rm x", True),
        ("/bin/rm *", "rm x", False),
        ("env *", "env rm x", True),
        ("rm *", "env", False),
        ("rm *", "env git rm x", False),
        ("rm *", "ls /bin/rm", False),
        ("git push", "git commit -m 'now; git push'", False),
    ],
)
def test_a_denial_looks_at_the_base_name_and_behind_env(pattern: str, command: str, denies: bool) -> None:
    """A pattern with a path is about this path only."""
    assert (find_ruling([Rule("deny", "run_command", command=pattern)], run(command)) is not None) == denies


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("src/**", "src/a/b.py", True),
        ("src/", "src/a/b.py", True),
        ("src/**", "srcs/a.py", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/a/b.py", False),
        ("**/*.md", "a.md", True),
        ("**/*.md", "x/y/a.md", True),
        ("a.txt", "a.txt", True),
        ("a.txt", "b/a.txt", False),
        ("a[b].txt", "ab.txt", False),
    ],
)
def test_rules_for_files_go_by_the_path_in_the_workspace(pattern: str, path: str, fits: bool) -> None:
    """A rule holds for both tools that write."""
    rule = Rule("allow", "edit_file", path=pattern)
    for tool in ("write_file", "edit_file"):
        assert bool(find_ruling([rule], RuledCall(tool, {}, f"/w/{path}", "/w"))) == fits
    assert find_ruling([rule], RuledCall("write_file", {}, f"/other/{path}", "/w")) is None


def test_rules_for_other_tools_compare_named_arguments() -> None:
    """True is not 1, and arguments that the rule does not name may be anything."""
    rule = Rule("allow", "github__comment", arguments={"repo": "me/x", "draft": True})
    given_arguments = {"repo": "me/x", "draft": True, "text": "Hello"}
    assert find_ruling([rule], RuledCall("github__comment", given_arguments, root="/w"))
    assert not find_ruling([rule], RuledCall("github__comment", {**given_arguments, "draft": 1}, root="/w"))
    assert not find_ruling([rule], RuledCall("github__comment", {"repo": "me/x"}, root="/w"))
    assert not find_ruling([rule], RuledCall("github__delete", given_arguments, root="/w"))


def test_rules_of_another_workspace_do_not_hold_here() -> None:
    """A rule without a workspace holds everywhere."""
    assert find_ruling([Rule("allow", "run_command", command="ls", workspace="/other")], run("ls")) is None
    assert find_ruling([Rule("allow", "run_command", command="ls", workspace="/w")], run("ls"))


def test_rules_are_stored_outside_the_workspace_and_survive_comments(tmp_path: Path) -> None:
    """Another book sees a rule at once, and removing one leaves the rest of the file as it was."""
    path = tmp_path / "config" / "rules.toml"
    book = RuleBook("/w", str(path))
    other = RuleBook("/w", str(path))
    first = Rule("allow", "run_command", command="git diff *", workspace="/w")
    second = Rule("deny", "write_file", path="dist/**")
    assert book.add(first)
    assert not book.add(first)
    path.write_text(path.read_text() + "\n# my own words\n")
    book.add(second)
    assert other.list() == [first, second]
    other.remove(first)
    assert book.list() == [second]
    assert "# What the agent may" in path.read_text()
    assert path.parent.stat().st_mode & 0o077 == 0


TEXT = st.text(st.characters(codec="utf-8"), min_size=1)
VALUES = st.recursive(st.booleans() | st.integers(-(2**60), 2**60) | TEXT, lambda inner: st.lists(inner, max_size=3))


Draft = tuple[str, dict[str, object], str]


@given(st.lists(st.tuples(TEXT, st.dictionaries(TEXT, VALUES, max_size=3), TEXT), max_size=4))
def test_any_rule_is_read_back_as_it_was_stored(tmp_path_factory: pytest.TempPathFactory, drafts: list[Draft]) -> None:
    """Whatever its names and values hold, and whichever rule is removed."""
    path = tmp_path_factory.mktemp("rules") / "rules.toml"
    book = RuleBook("/w", str(path))
    rules: list[Rule] = []
    for tool, arguments, workspace in drafts:
        rule = Rule("allow", f"x__{tool}", arguments=arguments, workspace=workspace)
        if book.add(rule):
            rules.append(rule)
    assert list(RuleBook("/w", str(path)).refresh()) == rules
    for rule in list(rules):
        book.remove(rule)
        rules.remove(rule)
        assert list(RuleBook("/w", str(path)).refresh()) == rules


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rule = 1", "two brackets"),
        ("[[rule]]\ndecision = 'maybe'\ntool = 'run_command'", "rule 1"),
        ("[[rule]]\ndecision = 'allow'\ntool = 'run_command'\ncommand = 'ls; rm'", "not one program"),
        ("[[rule]]\ndecision = 'allow'\ntool = 'run_command'\ncommand = 'ls'\nwho = 'me'", "who"),
        ("[[rules]]\n", "not a rule"),
        ("version = 2", "of version 1, not 2"),
        ("version = true", "of version 1, not True"),
        ("[[rule", "TOML"),
    ],
)
def test_a_wrong_file_is_an_error_with_a_place(tmp_path: Path, text: str, message: str) -> None:
    """And if it becomes wrong later, the rules read last stay in force."""
    path = tmp_path / "rules.toml"
    book = RuleBook("/w", str(path))
    rule = Rule("deny", "run_command", command="git push *")
    book.add(rule)
    path.write_text(text)
    with pytest.raises(SettingsError, match=message):
        RuleBook("/w", str(path))
    assert book.list() == [rule]
    assert message in book.problem


def test_a_file_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    """Anyone could have put a rule there."""
    path = tmp_path / "rules.toml"
    RuleBook("/w", str(path)).add(allow("ls"))
    path.chmod(0o666)
    with pytest.raises(SettingsError, match="only you may"):
        RuleBook("/w", str(path))


STORED = TESTS / "stored/config/rules.toml"


def open_stored(tmp_path: Path) -> tuple[RuleBook, Path]:
    """Open a copy of the rules that version 0f37ce5 stored, which had no version."""
    path = tmp_path / "rules.toml"
    path.write_text(STORED.read_text() + "\n# my own words\n")
    path.chmod(0o600)
    return RuleBook("/srv/shop", str(path)), path


def rules_on(book: RuleBook, command: str) -> str:
    ruling = book.find_ruling(book.describe_call("run_command", {"command": command}, is_sandboxed=True))
    return ruling.decision if ruling else "ask"


def test_a_star_of_an_earlier_version_allows_nothing_until_it_is_confirmed(tmp_path: Path) -> None:
    """Exact rules and denials stay in force. Confirming one rule keeps the others waiting."""
    book, path = open_stored(tmp_path)
    commands = ("git status", "git diff", "pytest -q x", "make check", "git push", "rm x")
    assert [rules_on(book, command) for command in commands] == ["allow", "ask", "ask", "allow", "deny", "deny"]
    waiting = [rule for rule in book.list() if not rule.confirmed]
    assert [rule.command for rule in waiting] == ["git diff *", "pytest -q *"]

    book.add(allow("git diff *"))
    again = RuleBook("/srv/shop", str(path))
    assert [rules_on(again, command) for command in commands] == ["allow", "allow", "ask", "allow", "deny", "deny"]
    assert len(again.list()) == len(book.list()) == 9
    assert "version = 1" in path.read_text()
    assert "# my own words" in path.read_text()


def test_the_word_version_in_a_comment_is_no_version(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text("# my version of the rules\n[[rule]]\ndecision = 'deny'\ntool = 'run_command'\ncommand = 'rm *'\n")
    RuleBook("/w", str(path)).add(allow("ls *"))
    assert rules_on(RuleBook("/w", str(path)), "ls x") == "allow"
    assert path.read_text().startswith("# my version of the rules\nversion = 1\n")


def test_other_changes_of_an_old_file_confirm_nothing(tmp_path: Path) -> None:
    book, path = open_stored(tmp_path)
    book.add(allow("ls *"))
    book.remove(Rule("deny", "run_command", command="rm *"))
    again = RuleBook("/srv/shop", str(path))
    assert [rules_on(again, command) for command in ("ls x", "git diff", "rm x")] == ["allow", "ask", "ask"]
    assert "# my own words" in path.read_text()


def policy(tmp_path: Path, *rules: Rule, mode: str = "ask") -> Policy:
    book = RuleBook(str(tmp_path.resolve() / "w"), str(tmp_path / "config" / "rules.toml"))
    for rule in rules:
        book.add(rule)
    return Policy(mode, rules=book)  # type: ignore[arg-type]


def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "w"
    folder.mkdir()
    return folder


def test_the_agent_runs_a_call_that_a_rule_allows_without_a_question(tmp_path: Path) -> None:
    """A longer command than the rule's is asked about."""
    root = workspace(tmp_path)
    user = User("no")
    core = agent(
        root, call("run_command", command="echo a"), call("run_command", command="echo a; echo b"), "ok", user=user
    )
    core.gate.policy = policy(tmp_path, allow("echo *"))
    results = of(say(core, "go"), ToolReturned)
    assert [result.refused for result in results] == [False, True]
    assert [question.arguments["command"] for question in user.questions] == ["echo a; echo b"]


@pytest.mark.parametrize("name", ["SKILL.md", "AGENTS.md", "CLAUDE.md", "skill.MD"])
def test_no_rule_allows_a_write_of_instructions(tmp_path: Path, name: str) -> None:
    """They are asked about each time, and no rule is offered."""
    root = workspace(tmp_path)
    user = User("no")
    core = agent(root, call("write_file", path=f"x/{name}", content="x"), "ok", user=user)
    core.gate.policy = policy(tmp_path, Rule("allow", "write_file", path="**"))
    say(core, "go")
    assert [question.offered_rule for question in user.questions] == [None]


@pytest.mark.parametrize("mode", ["ask", "auto-edit", "yolo"])
def test_a_denied_call_is_refused_in_every_mode(tmp_path: Path, mode: str) -> None:
    """The model learns that it is the user's rule."""
    root = workspace(tmp_path)
    core = agent(root, call("write_file", path="dist/a.js", content="x"), "ok", user=User())
    core.gate.policy = policy(tmp_path, Rule("deny", "write_file", path="dist/**"), mode=mode)
    (result,) = of(say(core, "go"), ToolReturned)
    assert result.refused
    assert "a rule of the user's denies it" in result.text
    assert not (root / "dist").exists()


class Mail(skillshelf.BaseSkill):
    """A code skill whose tool needs no approval, unless its policy says so."""

    name = "mail"
    description = "Sends mail."

    @skillshelf.tool
    def mail(self, to: str) -> str:
        """Send a mail."""
        return to


def test_a_rule_denies_calls_of_a_tool_that_needs_no_approval(tmp_path: Path) -> None:
    """Only the calls that it names, if it names any; a tool of which it denies all is not offered."""
    calls = [call("mail", to="everyone"), call("mail", to="one")]
    core = AgentCore(ScriptedModel(*calls, "ok"), WorkspaceSkills(workspace(tmp_path), [Mail()]))
    core.gate.policy = policy(tmp_path, Rule("deny", "mail", arguments={"to": "everyone"}))
    denied, sent = of(say(core, "go"), ToolReturned)
    assert (denied.refused, sent.refused, sent.text) == (True, False, "one")
    assert "a rule of the user's denies it" in denied.text

    core.gate.policy = policy(tmp_path, Rule("deny", "mail"))
    assert core.withheld_tools == ("mail",)


@pytest.mark.parametrize(
    ("rule", "withheld"),
    [
        (Rule("deny", "write_file", path="**"), ("edit_file", "write_file")),
        (Rule("deny", "write_file", path="dist/**"), ()),
        (Rule("deny", "run_command", command="git push *"), ()),
        (Rule("deny", "mail"), ("mail",)),
        (Rule("deny", "mail", arguments={"to": "everyone"}), ()),
    ],
)
def test_a_tool_is_withheld_if_a_rule_denies_every_call(tmp_path: Path, rule: Rule, withheld: tuple[str, ...]) -> None:
    """A rule about some of its calls leaves it with the model."""
    core = AgentCore(ScriptedModel("ok"), WorkspaceSkills(workspace(tmp_path), [Mail().with_policy({"mail": "ask"})]))
    core.gate.policy = policy(tmp_path, rule)
    say(core, "go")
    assert core.withheld_tools == withheld
    every = {"write_file", "edit_file", "run_command", "mail"}
    assert every & {*requests(core)[0].tools} == every - {*withheld}


def test_no_rule_widens_read_only(tmp_path: Path) -> None:
    """The mode is the user's later word."""
    root = workspace(tmp_path)
    core = agent(root, call("run_command", command="touch a"), "ok", user=User())
    core.gate.policy = policy(tmp_path, allow("touch *"), mode="read-only")
    (result,) = of(say(core, "go"), ToolReturned)
    assert result.refused
    assert not (root / "a").exists()


def test_an_answer_can_make_the_offered_rule(tmp_path: Path) -> None:
    """From then on, in this session and the next, calls like it are not asked about."""
    root = workspace(tmp_path)
    user = User("rule")
    core = agent(root, call("run_command", command="echo a"), call("run_command", command="echo 'a'"), "ok", user=user)
    core.gate.policy = policy(tmp_path)
    results = of(say(core, "go"), ToolReturned)
    assert [result.ok for result in results] == [True, True]
    assert [str(question.offered_rule) for question in user.questions] == ['allow run_command "echo a"']
    assert json.loads(json.dumps(user.questions[0].as_json()))["offered_rule"]
    assert [rule.workspace for rule in policy(tmp_path).rules.list()] == [str(root.resolve())]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "command",
    ["cat {0}", "cat ../secret", "cat link", "grep -f{0} x", "grep -rhf{0} .", "git diff --no-index={0} x"],
)
def test_a_star_does_not_stand_for_files_outside_the_workspace(tmp_path: Path, command: str) -> None:
    """Neither by their path, nor in an option, nor through a link. Patterns that look like paths are still words."""
    root = tmp_path.resolve() / "w"
    folder = root / "sub"
    folder.mkdir(parents=True)
    secret = root.parent / "secret"
    secret.write_text("x")
    (root / "secret").write_text("x")
    (folder / "link").symlink_to(secret)
    program = command.partition(" ")[0]
    rule = allow(f"{program} *")

    def is_covered(text: str, start: Path) -> bool:
        return (
            find_ruling(
                [rule], RuledCall("run_command", {"command": text}, "", str(root), str(start), is_sandboxed=True)
            )
            == rule
        )

    text = command.format(secret)
    start = root if ".." in text else folder
    assert not is_covered(text, start)
    assert is_covered(f"{program} /no/such/path {root}/secret /dev/null .", folder)
    assert is_covered(f"{program} ../secret", folder)


def test_a_file_of_rules_in_the_workspace_only_denies(tmp_path: Path) -> None:
    """The agent could write it: by a command, or where the user's file is a link into a folder of dotfiles."""
    root = tmp_path.resolve()
    (root / "config").symlink_to(root / "dotfiles")
    (root / "dotfiles").mkdir()
    path = str(root / "config" / "rules.toml")
    book = RuleBook(str(root / "dotfiles"), path)
    book.add(allow("ls"))
    book.add(Rule("deny", "run_command", command="rm *"))
    assert book.is_in_workspace
    assert book.find_ruling(book.describe_call("run_command", {"command": "ls"})) is None
    assert book.find_ruling(book.describe_call("run_command", {"command": "rm x"})) is not None

    elsewhere = RuleBook(str(root / "other"), path)
    assert elsewhere.find_ruling(elsewhere.describe_call("run_command", {"command": "ls"})) is not None
