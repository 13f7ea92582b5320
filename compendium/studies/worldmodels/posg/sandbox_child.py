"""The inside of the sandbox: a script, never imported by the project. Standard library only.

Two processes. The one that waits reads the order, starts the other, and alone can reach whoever ordered. The
candidate's shuts every door that is still open, proves that they are shut, and only then compiles and imports the
candidate; whatever that prints goes to standard error. Its answer goes to the one that waits, which takes it only
from a process that is still there to return a number it could not know, and says how the process ended otherwise.
A program that stays and speaks this whole exchange is listened to: its answer is data, whoever made it.
"""
# Tested by tests/compendium/studies/worldmodels/posg/test_sandbox.py.

import _signal  # without the names of signals, whose import costs as much as the rest
import ctypes
import json
import os
import resource
import struct
import sys
import time
import types

PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 1, 38, 22
EPERM, ESRCH = 1, 3
SHUT = b"shut"
LENGTH, NONCE = 8, 16  # bytes
NO_WAY_BACK = 90  # how the candidate's process ends where its own descriptors are gone
AST_ONLY = 0x400
PATIENCE = 200  # hundredths of a second that a process has to end in, once it can no longer answer
libc = ctypes.CDLL(None, use_errno=True)


class Open(Exception):
    """A door that should be shut is open: nothing of the candidate may run."""


def check(result, what):
    if result != 0:
        raise Open(f"{what}: {os.strerror(ctypes.get_errno())}")


def set_limits(limits):
    for name, value in (
        ("AS", limits["memory_bytes"]),
        ("CPU", limits["cpu_seconds"]),
        ("CORE", 0),
        ("FSIZE", limits["scratch_bytes"]),
        ("NOFILE", 32),
        ("NPROC", 1),
        ("MSGQUEUE", 0),
    ):
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))


def refuse_system_calls(program):
    """Put a seccomp filter in place (sandbox_calls.py), for good."""
    code = ctypes.create_string_buffer(program)
    pointer = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code)))
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    check(libc.prctl(PR_SET_SECCOMP, 2, pointer, 0, 0), "system-call filter")


def prove_alone(outsider):
    """That no process outside has a number here, and the host's name is not known: asked before the filter is."""
    try:
        os.kill(outsider, 0)
    except OSError as error:
        if error.errno != ESRCH:
            raise Open("a process outside can be reached") from None
    else:
        if outsider > 9:  # in here, numbers begin again from 1
            raise Open("a process outside can be reached")
    if os.getpid() > 9:
        raise Open("the machine's processes can be reached")
    if os.uname().nodename != "sandbox":
        raise Open("the host's name can be reached")


def prove_shut(doors):
    """Try the doors. A kernel that accepts a limit but does not enforce it is found out here."""
    for what, attempt in (
        ("a file outside", lambda: os.open("/etc/passwd", os.O_RDONLY)),
        ("/proc", lambda: os.listdir("/proc/self")),
        ("a process", os.fork),
        ("the root folder", lambda: os.mkdir("/outside")),
    ):
        try:
            attempt()
        except OSError:
            continue
        raise Open(f"{what} can be reached")
    for name, number, *arguments in doors:
        given = [ctypes.c_long(value) for value in arguments]
        if libc.syscall(ctypes.c_long(number), *given) != -1 or ctypes.get_errno() != EPERM:
            raise Open(f"the system call {name} can be reached")


def build(order):
    """Import the candidate and tabulate its world model: (document, name of its class). Whatever goes wrong here
    is the candidate's."""
    base = types.ModuleType("abstract_posg")
    exec(compile(order["abstract"], "abstract_posg.py", "exec"), base.__dict__)
    tabulate, kind, failure = base.tabulate, base.AbstractPOSG, base.WorldModelError
    sys.modules["abstract_posg"] = base
    module = types.ModuleType("candidate")
    sys.modules["candidate"] = module
    exec(compile(order["source"], "candidate.py", "exec"), module.__dict__)
    found = [
        value
        for value in list(module.__dict__.values())
        if isinstance(value, type) and value is not kind and kind in value.__mro__
    ]
    found = [value for value in found if not any(value in other.__mro__[1:] for other in found)]
    if len(found) != 1:
        raise failure(f"{len(found)} classes extend AbstractPOSG, should be one")
    return tabulate(found[0](), order["limits"]["max_states"]), found[0].__name__


def answer_of(order):
    """What the candidate comes to, as JSON."""
    try:
        answer = {"status": "ok"}
        if order["source"] is not None:
            answer["document"], answer["class"] = build(order)
    except MemoryError:
        answer = {"status": "memory", "message": "ran out of memory"}
    except BaseException as error:  # the candidate may raise anything, SystemExit included
        line = getattr(error, "lineno", None) or _line(error)
        where = f" (line {line})" if line else ""
        try:
            said = str(error)[:400]
        except BaseException:  # a hostile __str__
            said = ""
        answer = {"status": "error", "message": f"{type(error).__name__}: {said}{where}"}
    data = json.dumps(answer).encode()
    if len(data) > order["limits"]["output_bytes"]:
        data = json.dumps({"status": "output", "message": f"an answer of {len(data)} bytes"}).encode()
    return data


def run_candidate(order, proof, answer, question):
    """The candidate's process, from its first line to its last."""
    empty, end = os.pipe()
    os.close(end)
    os.dup2(empty, 0)
    os.dup2(2, 1)
    for number in set(range(3, 32)) - {proof, answer, question}:
        try:
            os.close(number)
        except OSError:
            pass
    isolated = order["backend"] != "none"
    try:
        check(libc.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0), "parent-death signal")
        if isolated:
            prove_alone(order["outsider"])
        set_limits(order["limits"])
        if isolated:
            refuse_system_calls(bytes.fromhex(order["candidate"]))
            prove_shut(order["doors"])
    except (Open, OSError, ValueError) as error:
        os.write(proof, str(error).encode())
        os._exit(1)
    os.write(proof, SHUT)
    os.close(proof)
    data = answer_of(order)
    try:
        _send(answer, struct.pack(">Q", len(data)) + data)
        _send(answer, os.read(question, NONCE))
    except OSError:
        os._exit(NO_WAY_BACK)
    os._exit(0)  # no exit handlers, finalisers or threads of the candidate


def listen(worker, answer, question, limits):
    """(answer, None) of the candidate's process, or (b"", (status, message)) where it gave none."""
    head = _receive(answer, LENGTH)
    data = b""
    if len(head) == LENGTH and (length := struct.unpack(">Q", head)[0]) <= limits["output_bytes"]:
        data = _receive(answer, length)
        if len(data) == length:
            nonce = os.urandom(NONCE)
            try:
                _send(question, nonce)
            except OSError:  # nobody is there to read it
                nonce = None
            back = _receive(answer, NONCE + 1)
            if back == nonce:
                return data, None
    ended = _ending(worker, limits)
    if head:  # something was written, and not by what runs to its end
        return b"", ("unreadable", f"the answer is not a verdict: the program wrote it, and {ended[1]}")
    return b"", ended


def _ending(worker, limits):
    """(status, message): how the candidate's process ended, or that it goes on with no way to answer."""
    for _ in range(PATIENCE):
        number, status, used = os.wait4(worker, os.WNOHANG)
        if number:
            break
        time.sleep(0.01)
    else:
        os.kill(worker, _signal.SIGKILL)
        os.wait4(worker, 0)
        return "crashed", "it closed the descriptor of its answer and went on"
    if os.WIFSIGNALED(status):
        import signal

        name = signal.Signals(os.WTERMSIG(status)).name
        # the kernel counts ticks for the limit and measures for the sum, which on a busy machine differ
        if name in ("SIGXCPU", "SIGKILL") and used.ru_utime + used.ru_stime > limits["cpu_seconds"] / 2:
            return "cpu", "stopped by the kernel at its CPU limit"
        return "crashed", f"ended without an answer: it was ended by {name}"
    if os.WEXITSTATUS(status) == NO_WAY_BACK:
        return "crashed", "it closed the descriptor of its answer"
    return "crashed", f"ended without an answer: it left, exit status {os.WEXITSTATUS(status)}"


def classes_in(source):
    """Names of the classes that a program defines with a base, anywhere in it."""
    names, left = [], [compile(source, "candidate.py", "exec", AST_ONLY)]
    while left:
        node = left.pop()
        if type(node).__name__ == "ClassDef" and node.bases:
            names.append(node.name)
        for field in node._fields:
            value = getattr(node, field, None)
            left += [
                part for part in (value if isinstance(value, list) else [value]) if hasattr(part, "_fields")
            ]
    return names


def main():
    order = json.loads(sys.stdin.buffer.read())
    proof, answer, question = os.pipe(), os.pipe(), os.pipe()
    worker = os.fork()
    if worker == 0:
        run_candidate(order, proof[1], answer[1], question[0])
    for number in (proof[1], answer[1], question[0]):
        os.close(number)
    _signal.signal(_signal.SIGPIPE, _signal.SIG_IGN)
    said, data, ended, classes = _receive(proof[0], 1000), b"", None, []
    if said != SHUT:
        ended = ("refused", said.decode("utf-8", "replace") or _ending(worker, order["limits"])[1])
    else:
        if order["backend"] != "none":
            refuse_system_calls(bytes.fromhex(order["waiting"]))
        data, ended = listen(worker, answer[0], question[1], order["limits"])
        if data and order["source"] is not None:
            try:
                classes = classes_in(order["source"])
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                pass  # then it defines none
    _send(1, json.dumps({"ended": ended, "classes": classes}).encode() + b"\n" + data)
    os._exit(0)


def _line(error):
    """The last line of candidate.py that the error passed through."""
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "candidate.py":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _receive(descriptor, count):
    """`count` bytes, or as many as came before the other side closed."""
    data = bytearray()
    while len(data) < count and (chunk := os.read(descriptor, min(count - len(data), 65536))):
        data += chunk
    return bytes(data)


def _send(descriptor, data):
    while data:
        data = data[os.write(descriptor, data[:65536]) :]


if __name__ == "__main__":
    main()
