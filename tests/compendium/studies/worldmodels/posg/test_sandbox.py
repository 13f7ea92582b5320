"""The hostile set: nothing gets out, and each attempt is a clean verdict."""

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
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
from compendium.studies.worldmodels.posg.sandbox_calls import (
    ARCHITECTURES,
    UnknownMachine,
    allowed,
    filters,
    program,
)
from tests.compendium.studies.worldmodels.posg import hostile
from tests.compendium.studies.worldmodels.posg.hostile import HOSTILE, module

QUICK = Limits(wall_seconds=4.0, cpu_seconds=1, memory_bytes=192 * 1024**2, output_bytes=200_000)


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


def check_hostile(verdicts: dict):
    """That each program of the hostile set ended as it is to, and learned nothing of the machine."""
    named = [os.uname().nodename, str(ROOT), str(Path.home()), sys.prefix, os.path.realpath(sys.executable)]
    assert verdicts.keys() == HOSTILE.keys() and len(HOSTILE) >= 100
    for name, (_, status, said) in HOSTILE.items():
        found = verdicts[name]
        assert (found["status"], found["document"]) == (status, None) and said in found["message"], (
            name,
            found,
        )
        assert not [each for each in named if each in found["message"]], (name, found)


def test_nothing_gets_out_and_each_attempt_has_its_verdict(backend):
    check_hostile(hostile.verdicts(backend))


def test_the_filter_lists_what_it_allows_on_both_machines():
    """By the calls' numbers: the same set on both, but for the old calls that aarch64 never had."""
    old = {
        "stat",
        "lstat",
        "open",
        "access",
        "readlink",
        "dup2",
        "mkdir",
        "rmdir",
        "unlink",
        "rename",
        "symlink",
    }
    old |= {"poll", "select", "time"}
    numbers = {name: allowed(name) for name in ARCHITECTURES}
    assert len(numbers["x86_64"]) - len(numbers["aarch64"]) == len(old)
    for machine, doors in ((name, filters(name)["doors"]) for name in ARCHITECTURES):
        for name, number, *arguments in doors:
            only = numbers[machine].get(number, "refused")
            assert only == "refused" or arguments[only[0]] not in only[1], (machine, name)
        assert len(filters(machine)["candidate"]) < 2 * 8 * 4096, "what the kernel takes"
    with pytest.raises(UnknownMachine, match="riscv64"):
        filters("riscv64")


@pytest.mark.parametrize(
    "missing", ["kill", "rt_tgsigqueueinfo", "fcntl", "sched_setaffinity", "ioprio_set", "setpriority"]
)
def test_a_door_that_the_filter_leaves_open_is_found(backend, missing, monkeypatch):
    """With a filter that lets one call through, nothing of the candidate runs."""
    machine = os.uname().machine
    number = next(door[1] for door in filters(machine)["doors"] if door[0] == missing)
    wide = {**filters(machine), "candidate": program(machine, {**allowed(machine), number: None}).hex()}
    monkeypatch.setattr(sandbox, "filters", lambda _: wide)
    with pytest.raises(SandboxRefused, match=f"the system call {missing} can be reached"):
        run(module(), backend)


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


def test_sleeping_is_stopped_by_the_clock(backend):
    verdict = run(module(before="import time\nwhile True: time.sleep(1)"), backend, Limits(wall_seconds=1.0))
    assert verdict.status == "timeout"


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


STAYS = """
import json, os, struct
DATA = json.dumps({{"status": "ok", "class": {name!r}, "document": {{"players": "everyone"}}}}).encode()
def tried(act, *arguments):
    try: return act(*arguments)
    except OSError: return None
# whichever descriptors the question and the answer go by
out = next(n for n in range(3, 32) if tried(os.write, n, struct.pack('>Q', len(DATA)) + DATA))
os.write(out, next(filter(None, (tried(os.read, n, 16) for n in range(3, 32)))))
os._exit(0)
"""


def test_one_that_stays_and_speaks_the_whole_exchange_is_only_data(backend):
    """It must name a class that the program defines, and the gates see what it says."""
    verdict = run(module(before=STAYS.format(name="Coin")), backend)
    assert verdict.status == "ok" and verdict.document == {"players": "everyone"}
    assert not lane_one(verdict.document).passed("contract")
    for name in ("Dice", "AbstractPOSG", ["Coin"], None):
        verdict = run(module(before=STAYS.format(name=name)), backend)
        assert verdict.status == "unreadable" and "names no class" in verdict.message


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
    """Of a program that speaks the whole exchange."""
    before = (
        f"import os, struct\nANSWER = {answer!r}.encode()\nfor n in range(3, 32):\n"
        "    try:\n        os.write(n, struct.pack('>Q', len(ANSWER)) + ANSWER)\n"
        "        for back in range(3, 32):\n"
        "            try: os.write(n, os.read(back, 16)); os._exit(0)\n            except OSError: pass\n"
        "    except OSError: pass\n"
    )
    assert run(module(before=before), backend).status == "unreadable"


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
    monkeypatch.setattr(sandbox, "_command", lambda backend, *rest: original("none", *rest))
    assert "can be reached" in unavailable("bwrap")
    with pytest.raises(SandboxRefused, match="can be reached"):
        run_candidate(module(), backend="bwrap")


def test_an_unknown_backend_is_named():
    with pytest.raises(ValueError, match="docker"):
        run_candidate(module(), backend="docker")


@pytest.fixture
def readable():
    """A folder that everybody may read; pytest closes its own to others whenever a session of it starts."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("name", BACKENDS)
def test_an_ordinary_user_is_isolated_or_refused(name, readable):
    """The hostile set as nobody: the same verdicts, or a reason why it cannot be isolated here."""
    python = next(
        (p for p in (sys.executable, "/usr/bin/python3") if _reachable_by_others(Path(p).resolve())), None
    )
    if python is None:
        pytest.skip("no interpreter that an ordinary user may run")
    room = Path("compendium", "studies", "worldmodels", "posg")
    (readable / room).mkdir(parents=True)
    for part in ("abstract", "sandbox", "sandbox_calls", "sandbox_child", "sandbox_enter"):
        shutil.copy(ROOT / room / f"{part}.py", readable / room)
    shutil.copy(hostile.__file__, readable)
    for package in (room, *room.parents[:-1]):
        (readable / package / "__init__.py").write_text("")
    nobody = pwd.getpwnam("nobody")
    ran = subprocess.run(
        [python, str(readable / "hostile.py"), str(readable), name],
        capture_output=True,
        text=True,
        timeout=300,
        env={"PATH": os.environ["PATH"]},
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
        cwd="/",
    )
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    if said["reason"]:
        pytest.skip(f"{name} cannot isolate an ordinary user here: {said['reason']}")
    check_hostile(said["verdicts"])


def _reachable_by_others(path: Path) -> bool:
    return path.exists() and all(folder.stat().st_mode & 0o001 for folder in path.parents)
