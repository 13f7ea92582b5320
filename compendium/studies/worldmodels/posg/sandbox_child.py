"""The inside of the sandbox: a script, never imported by the project. Standard library only.

Reads one JSON order from standard input, shuts every door that is still open, proves that they are shut,
and only then compiles and imports the candidate. The answer is one JSON object on the standard output it
was started with; whatever the candidate prints goes to standard error.
"""

import ctypes
import json
import os
import resource
import struct
import sys
import types

PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 1, 38, 22
CLONE_FLAGS = 0x10000000 | 0x00020000 | 0x40000000 | 0x08000000 | 0x04000000  # user, mount, net, ipc, uts
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
MNT_DETACH = 2
libc = ctypes.CDLL(None, use_errno=True)

# System calls a world model has no use for, by machine: processes and threads, the network, other
# processes' memory, mounts and namespaces, kernel facilities. Opening files is left to the namespaces.
REFUSED = {
    "x86_64": (
        0xC000003E,
        [
            29,
            41,
            42,
            43,
            44,
            45,
            46,
            47,
            49,
            50,
            53,
            56,
            57,
            58,
            59,
            62,
            64,
            68,
            101,
            103,
            133,
            134,
            135,
            155,
            161,
            163,
            164,
            165,
            166,
            167,
            169,
            170,
            172,
            173,
            175,
            176,
            179,
            200,
            234,
            240,
            246,
            248,
            249,
            250,
            259,
            272,
            298,
            302,
            303,
            304,
            308,
            310,
            311,
            312,
            313,
            319,
            321,
            322,
            323,
            424,
            425,
            426,
            427,
            428,
            429,
            430,
            431,
            432,
            433,
            434,
            435,
            438,
        ],
    ),
    "aarch64": (
        0xC00000B7,
        [
            33,
            39,
            40,
            41,
            51,
            60,
            89,
            92,
            97,
            104,
            105,
            106,
            116,
            117,
            129,
            130,
            131,
            142,
            161,
            180,
            186,
            190,
            194,
            198,
            199,
            200,
            201,
            202,
            203,
            206,
            207,
            211,
            212,
            217,
            218,
            219,
            220,
            221,
            224,
            241,
            261,
            264,
            265,
            268,
            270,
            271,
            272,
            273,
            279,
            280,
            281,
            282,
            424,
            425,
            426,
            427,
            428,
            429,
            430,
            431,
            432,
            433,
            434,
            435,
            438,
        ],
    ),
}


class Open(Exception):
    """A door that should be shut is open: nothing of the candidate may run."""


def check(result, what):
    if result != 0:
        raise Open(f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source, target, kind, flags, data=None):
    text = [None if value is None else value.encode() for value in (source, target, kind, data)]
    check(libc.mount(text[0], text[1], text[2], ctypes.c_ulong(flags), text[3]), f"mount {target}")


def enter_namespaces(order):
    """Leave the machine: own user, mount, network, IPC and host-name namespaces, and a root folder that
    holds the interpreter (read-only) and an empty scratch folder."""
    uid, gid = os.geteuid(), os.getegid()
    check(libc.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0), "parent-death signal")
    check(libc.unshare(CLONE_FLAGS), "namespaces")
    for name, text in (("setgroups", "deny"), ("uid_map", f"65534 {uid} 1"), ("gid_map", f"65534 {gid} 1")):
        with open(f"/proc/self/{name}", "w") as handle:
            handle.write(text)
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    root = order["root"]
    size = order["limits"]["scratch_bytes"]
    mount("sandbox", root, "tmpfs", MS_NOSUID | MS_NODEV, f"size={size},mode=755")
    for path in order["visible"]:
        inside = root + path
        if os.path.isdir(path):
            os.makedirs(inside, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(inside), exist_ok=True)
            open(inside, "w").close()
        mount(path, inside, None, MS_BIND | MS_REC)
        mount(None, inside, None, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV)
    for path in order["hidden"]:
        mount("hidden", root + path, "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY, "size=4096")
    os.mkdir(root + "/scratch")
    os.mkdir(root + "/old")
    os.chdir(root)
    check(libc.syscall(155 if os.uname().machine == "x86_64" else 41, b".", b"./old"), "pivot_root")
    os.chdir("/")
    check(libc.umount2(b"/old", MNT_DETACH), "umount")
    os.rmdir("/old")
    # empty files take no room, but memory of the kernel's
    mount("scratch", "/scratch", "tmpfs", MS_NOSUID | MS_NODEV, f"size={size},nr_inodes=100,mode=700")
    mount(None, "/", None, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV)
    os.chdir("/scratch")
    # version 3 header, this process, and three empty sets twice: no capability is kept
    header = ctypes.create_string_buffer(struct.pack("=Ii", 0x20080522, 0))
    check(libc.capset(header, ctypes.create_string_buffer(24)), "capabilities")


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


def refuse_system_calls():
    """A seccomp filter: the calls in REFUSED fail with EPERM; another machine's calling convention kills."""
    arch, numbers = REFUSED.get(os.uname().machine, (None, None))
    if arch is None:
        raise Open(f"no system-call filter is written for {os.uname().machine}")
    rule = lambda code, jt, jf, k: struct.pack("HBBI", code, jt, jf, k)
    deny = 0x00050000 | 1
    program = [rule(0x20, 0, 0, 4), rule(0x15, 1, 0, arch), rule(0x06, 0, 0, 0x80000000), rule(0x20, 0, 0, 0)]
    program += [rule(0x35, 0, 1, 0x40000000), rule(0x06, 0, 0, deny)]  # the x32 numbers
    for number in numbers:
        program += [rule(0x15, 0, 1, number), rule(0x06, 0, 0, deny)]
    program.append(rule(0x06, 0, 0, 0x7FFF0000))
    code = ctypes.create_string_buffer(b"".join(program))
    pointer = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)))
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    check(libc.prctl(PR_SET_SECCOMP, 2, pointer, 0, 0), "system-call filter")


def prove_shut():
    """Try the doors. A kernel that accepts a limit but does not enforce it is found out here."""

    def connect():
        if libc.socket(2, 1, 0) < 0:  # without the module, whose import would cost as much as all the rest
            raise OSError

    for what, attempt in (
        ("a file outside", lambda: os.open("/etc/passwd", os.O_RDONLY)),
        ("/proc", lambda: os.listdir("/proc/self")),
        ("a socket", connect),
        ("a process", os.fork),
        ("the root folder", lambda: os.mkdir("/outside")),
    ):
        try:
            attempt()
        except OSError:
            continue
        raise Open(f"{what} can be reached")


def build(order):
    """Import the candidate and tabulate its world model. Whatever goes wrong here is the candidate's."""
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
    return tabulate(found[0](), order["limits"]["max_states"])


def main():
    order = json.loads(sys.stdin.buffer.read())
    answer_to = os.dup(1)
    os.dup2(2, 1)
    try:
        if order["backend"] == "namespaces":
            enter_namespaces(order)
        set_limits(order["limits"])
        if order["backend"] != "none":
            refuse_system_calls()
            prove_shut()
    except (Open, OSError, ValueError, ImportError) as error:
        answer = {"status": "refused", "message": str(error)}
    else:
        try:
            answer = {"status": "ok"}
            if order["source"] is not None:
                answer["document"] = build(order)
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
    _send(answer_to, json.dumps(answer).encode())
    os._exit(0)  # no exit handlers, finalisers or threads of the candidate


def _line(error):
    """The last line of candidate.py that the error passed through."""
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "candidate.py":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _send(descriptor, data):
    while data:
        data = data[os.write(descriptor, data) :]


if __name__ == "__main__":
    main()
