"""The hostile set: nothing gets out, and each attempt is a clean verdict."""

import json
import os
import pwd
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from compendium.frame.paths import ROOT
from compendium.studies.worldmodels.posg import sandbox
from compendium.studies.worldmodels.posg.lanes import lane_one
from compendium.studies.worldmodels.posg.sandbox import (
    BACKENDS,
    Limits,
    SandboxRefused,
    run_candidate,
    unavailable,
)

QUICK = Limits(wall_seconds=4.0, cpu_seconds=1, memory_bytes=192 * 1024**2, output_bytes=200_000)

SOUND = """
from abstract_posg import AbstractPOSG
{before}
class Coin(AbstractPOSG):
    {inside}
    def players(self): return ["ann", "bob"]
    def initial_state(self): return ("toss", 0)
    def is_terminal(self, state): return state[0] == "over"
    def actions(self, state, player): return ["call", "pass"] if player == "ann" else ["watch"]
    def transition(self, state, joint_action): {transition}
    def observation(self, player, state, joint_action, next_state): return next_state[0]
"""
NORMAL = "return {('over', 1): 0.5, ('over', 2): 0.5}"


def module(before="", inside="", transition=NORMAL):
    return SOUND.format(before=before, inside=inside, transition=transition)


@pytest.fixture(params=BACKENDS)
def backend(request):
    reason = unavailable(request.param)
    if reason is not None:
        pytest.skip(f"{request.param} cannot isolate here: {reason}")
    return request.param


def run(source, backend, limits=QUICK):
    return run_candidate(source, backend=backend, limits=limits)


def test_a_sound_model_comes_back_whole(backend):
    verdict = run(module(), backend)
    assert verdict.status == "ok" and verdict.backend == backend
    one = lane_one(verdict.document)
    assert one.valid and one.game.size() == {
        "players": 2,
        "states": 3,
        "terminals": 2,
        "joint_actions": 2,
        "transitions": 4,
    }
    assert one.game.initial == "('toss', 0)"


@pytest.mark.parametrize(
    "deed, said",
    [
        ("open('/etc/passwd').read()", "FileNotFoundError"),
        ("import os; os.listdir('/tmp')", "FileNotFoundError"),
        ("import os; os.listdir('/home')", "FileNotFoundError"),
        (f"open({str(ROOT / 'README.md')!r}).read()", "FileNotFoundError"),
        ("open('/proc/self/environ').read()", "FileNotFoundError"),
        ("import os; os.listdir('/proc/1')", "FileNotFoundError"),
        ("import os; os.listdir('/sys')", "FileNotFoundError"),
        ("open('/dev/sda', 'rb')", "FileNotFoundError"),
        ("open('/escaped', 'w').write('x')", "Read-only file system"),
        # read-only for root, somebody else's for an ordinary user
        ("import abc; open(abc.__file__, 'a').write('x')", "Error: [Errno"),
        ("import os, sys; os.unlink(sys.executable)", "OSError"),
        ("import os; os.symlink('/etc', '/scratch/e'); open('/scratch/e/passwd')", "FileNotFoundError"),
        ("import socket; socket.create_connection(('127.0.0.1', 22), 1)", "PermissionError"),
        ("import socket; socket.socket(socket.AF_UNIX)", "PermissionError"),
        ("import urllib.request as u; u.urlopen('http://127.0.0.1:1', timeout=1)", "not permitted"),
        ("import os; os.fork()", "PermissionError"),
        ("import subprocess; subprocess.run(['/bin/sh', '-c', 'id'])", "Error"),
        ("import os; os.system('id') == 0 or exec('raise OSError(1)')", "OSError"),
        ("import threading; threading.Thread(target=print).start()", "RuntimeError"),
        ("import os; os.kill(1, 9)", "PermissionError"),
        (
            "import ctypes; ctypes.CDLL(None, use_errno=True).unshare(0x10000000) and exec('raise OSError(ctypes.get_errno())')",
            "OSError",
        ),
        (
            "import ctypes; ctypes.CDLL(None).ptrace(16, 1, 0, 0) == -1 and exec('raise OSError(1)')",
            "OSError",
        ),
        ("import numpy", "ModuleNotFoundError"),
        ("raise SystemExit(0)", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("def f(): f()\nf()", "RecursionError"),
        ("1 +", "SyntaxError"),
    ],
)
def test_what_it_tries_on_import_is_refused_inside(backend, deed, said):
    verdict = run(module(before=deed), backend)
    assert verdict.status == "error" and said in verdict.message, verdict
    assert verdict.document is None


def test_environment_is_not_inherited(backend, monkeypatch):
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-secret")
    source = module(
        before="import os\nSEEN = ','.join(sorted(os.environ)) or 'nothing'",
        transition="return {('over', SEEN): 1.0}",
    )
    verdict = run(source, backend)
    assert verdict.status == "ok"
    assert "OPENROUTER" not in json.dumps(verdict.document) and "secret" not in json.dumps(verdict.document)


def test_only_the_scratch_folder_can_be_written_and_it_is_bounded(backend):
    fine = module(
        before="open('/scratch/note', 'w').write('x' * 1000); assert open('note').read() == 'x' * 1000"
    )
    assert run(fine, backend).status == "ok"
    full = run(module(before="open('/scratch/big', 'w').write('x' * 10**7)"), backend)
    assert full.status in ("error", "crashed") and full.document is None
    # nothing is handed from one candidate to the next
    assert "FileNotFoundError" in run(module(before="open('/scratch/note')"), backend).message


def test_files_are_bounded_in_number():
    if (reason := unavailable("namespaces")) is not None:
        pytest.skip(f"namespaces cannot isolate here: {reason}")
    verdict = run(module(before="for i in range(101): open(f'/scratch/{i}', 'w').close()"), "namespaces")
    assert verdict.status == "error" and "No space left" in verdict.message


@pytest.mark.parametrize(
    "raised, said",
    [
        ("raise ValueError('half \\ud800 a pair')", r"half \ud800 a pair"),
        ("raise ValueError('two\\nlines\\x1b[31m')", r"two\nlines\x1b[31m"),
    ],
)
def test_what_a_candidate_says_can_be_stored(backend, raised, said):
    message = run(module(before=raised), backend).message
    assert said in message and message.isprintable() and message.encode()


def test_memory_bomb(backend):
    verdict = run(module(before="x = bytearray(10**9)"), backend)
    assert verdict.status == "memory"
    slow = run(module(before="x = []\nwhile True: x.append(bytearray(10**6))"), backend)
    assert slow.status == "memory"


def test_endless_loop_is_stopped_by_the_kernel(backend):
    # on a busy machine a second of CPU time can take many of the clock's, which is not what is tested here
    patient = replace(QUICK, wall_seconds=120.0)
    assert run(module(before="while True: pass"), backend, patient).status == "cpu"


def test_sleeping_is_stopped_by_the_clock(backend):
    verdict = run(module(before="import time\nwhile True: time.sleep(1)"), backend, Limits(wall_seconds=1.0))
    assert verdict.status == "timeout"


def test_ignoring_signals_does_not_help(backend):
    before = "import signal\nfor n in range(1, 30):\n    n in (9, 19) or signal.signal(n, signal.SIG_IGN)\nwhile True: pass"
    assert run(module(before=before), backend).status in ("cpu", "timeout")


def test_endless_model_is_stopped_by_the_count(backend):
    verdict = run(module(transition="return {('toss', state[1] + 1): 1.0}"), backend)
    assert verdict.status == "error" and "reachable states" in verdict.message


@pytest.mark.parametrize(
    "before",
    [
        "import sys\nwhile True: sys.stderr.write('x' * 10000)",
        "while True: print('x' * 10000)",
        "import os\nwhile True: os.write(1, b'x' * 10000)",
    ],
)
def test_huge_output(backend, before):
    assert run(module(before=before), backend).status == "output"


def test_printing_does_not_disturb_the_answer(backend):
    assert run(module(before='print(\'{"status": "ok"}\')'), backend).status == "ok"


def test_monkey_patched_base_class_changes_nothing_outside(backend):
    before = (
        "import abstract_posg\nabstract_posg.tabulate = lambda *a: {'players': ['evil']}\n"
        "AbstractPOSG.__abstractmethods__ = frozenset()\nAbstractPOSG.declared_states = lambda self: ['x'] * 9"
    )
    assert run(module(before=before), backend).status in ("ok", "error")
    after = run(module(), backend)
    assert after.status == "ok" and lane_one(after.document).valid


def test_a_forged_answer_is_only_data(backend):
    forged = json.dumps({"status": "ok", "document": {"players": "everyone"}})
    for number in range(3, 12):  # whichever descriptor the answer goes to
        verdict = run(
            module(
                before=f"import os\ntry: os.write({number}, {forged!r}.encode()); os._exit(0)\n"
                "except OSError: pass"
            ),
            backend,
        )
        assert verdict.status in ("ok", "unreadable", "crashed")
        if verdict.document is not None and verdict.document.get("players") == "everyone":
            assert not lane_one(verdict.document).passed("contract")
            return
    pytest.fail("no descriptor took the forged answer: the test no longer tests")


@pytest.mark.parametrize(
    "answer",
    [
        "[" * 100_000,
        '{"status": "ok", "status": "ok"}',
        '{"status": "ok", "document": NaN}',
        '{"status": "refused", "message": "I refuse"}',
        '"ok"',
        "\\ud800",
        "1" * 5000,
    ],
)
def test_hostile_answers_are_unreadable(backend, answer):
    before = (
        f"import os\nfor n in range(3, 12):\n    try: os.write(n, {answer!r}.encode())\n    except OSError: pass\n"
        "os._exit(0)"
    )
    assert run(module(before=before), backend).status == "unreadable"


def test_leaving_without_an_answer(backend):
    assert run(module(before="import os; os._exit(0)"), backend).status == "crashed"
    assert run(module(before="import ctypes; ctypes.string_at(1)"), backend).status == "crashed"


EVIL = """
class Evil({base}):
    def __eq__(self, other): return True
    def __hash__(self): return 1
    def __repr__(self): raise RuntimeError("no repr")
    def __lt__(self, other): raise RuntimeError("no order")
"""


@pytest.mark.parametrize(
    "base, value",
    [
        ("object", "Evil()"),
        ("str", "Evil('over')"),
        ("tuple", "Evil(('over', 1))"),
        ("int", "('over', Evil(1))"),
    ],
)
def test_states_with_their_own_idea_of_equality(backend, base, value):
    verdict = run(module(before=EVIL.format(base=base), transition=f"return {{{value}: 1.0}}"), backend)
    assert verdict.status == "error" and "WorldModelError" in verdict.message and "Evil" in verdict.message


@pytest.mark.parametrize(
    "transition, said",
    [
        ("return __import__('pickle').dumps({1: 1})", "gave a bytes"),
        ("return {__import__('pickle').dumps(1): 1.0}", "holds a bytes"),
        ("return {('over', 1): '1.0'}", "should be a number"),
        ("return {('over', 1): True}", "should be a number"),
        ("return type('D', (dict,), {})({('over', 1): 1.0})", "gave a D"),
        ("return [(('over', 1), 1.0)]", "gave a list"),
    ],
)
def test_what_is_not_plain_data_is_refused(backend, transition, said):
    verdict = run(module(transition=transition), backend)
    assert verdict.status == "error" and said in verdict.message


def test_not_a_number_does_not_pass(backend):
    verdict = run(module(transition="return {('over', 1): float('nan')}"), backend)
    assert verdict.status == "unreadable"


@pytest.mark.parametrize(
    "source, said",
    [
        ("x = 1", "0 classes extend AbstractPOSG"),
        (module() + module().replace("Coin", "Dice"), "2 classes extend"),
    ],
)
def test_one_class_is_asked_for(backend, source, said):
    assert said in run(source, backend).message


def test_a_base_class_of_its_own_is_no_second_model(backend):
    source = module().replace("class Coin(AbstractPOSG)", "class Mid(AbstractPOSG): pass\nclass Coin(Mid)")
    assert run(source, backend).status == "ok"


def test_it_refuses_where_isolation_cannot_be_had(monkeypatch):
    monkeypatch.setattr(
        sandbox, "isolation", lambda: (None, ("bwrap: not installed", "namespaces: not permitted"))
    )
    with pytest.raises(SandboxRefused, match="bwrap: not installed; namespaces: not permitted"):
        run_candidate(module())
    told = run_candidate(module(), allow_unisolated=True)
    assert told.status == "ok" and told.backend == "none"


def test_the_reason_is_named_where_bwrap_is_missing(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert unavailable("bwrap") == "the program bwrap is not installed"
    with pytest.raises(SandboxRefused, match="bwrap: the program bwrap is not installed"):
        run_candidate(module(), backend="bwrap")


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="the program bwrap is not installed")
def test_an_open_door_is_found_before_anything_runs(monkeypatch):
    """With a way in that isolates nothing the child itself notices, and the candidate never runs."""
    original = sandbox._command
    monkeypatch.setattr(sandbox, "_command", lambda backend, limits: original("none", limits))
    assert "can be reached" in unavailable("bwrap")
    with pytest.raises(SandboxRefused, match="can be reached"):
        run_candidate(module(), backend="bwrap")


def test_an_unknown_backend_is_named():
    with pytest.raises(ValueError, match="docker"):
        run_candidate(module(), backend="docker")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("name", BACKENDS)
def test_an_ordinary_user_is_isolated_or_refused(name, tmp_path):
    """The same as nobody: isolated, or refused with the reason."""
    python = next(
        (p for p in (sys.executable, "/usr/bin/python3") if _reachable_by_others(Path(p).resolve())), None
    )
    if python is None:
        pytest.skip("no interpreter that an ordinary user may run")
    room = Path("compendium", "studies", "worldmodels", "posg")
    (tmp_path / room).mkdir(parents=True)
    for part in ("abstract.py", "sandbox.py", "sandbox_child.py"):
        shutil.copy(ROOT / room / part, tmp_path / room / part)
    for package in (room, *room.parents[:-1]):
        (tmp_path / package / "__init__.py").write_text("")
    for folder in (tmp_path, *tmp_path.parents):
        if folder == Path(folder.root) or folder.owner() != "root" or folder.stat().st_mode & 0o005:
            break
        folder.chmod(0o755)
    script = tmp_path / "attempt.py"
    script.write_text(
        "import os, sys; sys.path.insert(0, sys.argv[1])\nfrom compendium.studies.worldmodels.posg.sandbox import *\n"
        f"sound, hostile = {module()!r}, {module(before='open(chr(47) + chr(101) + chr(116) + chr(99)).read()')!r}\n"
        "assert os.geteuid() != 0\n"
        f"try: print(run_candidate(sound, backend={name!r}).status, run_candidate(hostile, backend={name!r}).status)\n"
        "except SandboxRefused as error: print('refused', error)\n"
    )
    nobody = pwd.getpwnam("nobody")
    ran = subprocess.run(
        [python, str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": os.environ["PATH"]},
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
        cwd="/",
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "ok error" or ran.stdout.startswith(
        "refused refused to run model-written Python: "
    )


def _reachable_by_others(path: Path) -> bool:
    return path.exists() and all(folder.stat().st_mode & 0o001 for folder in path.parents)
