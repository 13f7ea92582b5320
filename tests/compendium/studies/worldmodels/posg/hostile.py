"""The hostile set: programs that try to get out of the sandbox, and how each is to end. Standard library only: it
is also run as another user, by an interpreter that has nothing else.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

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


# call(x86_64 number, aarch64 number, arguments …): a system call, by number; OSError where it is refused
CALL = """
import ctypes, os
_libc = ctypes.CDLL(None, use_errno=True)
def call(x86, arm, *arguments):
    number = {'x86_64': x86, 'aarch64': arm}[os.uname().machine]
    given = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    if _libc.syscall(ctypes.c_long(number), *given) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    raise SystemExit('the call went through')
"""
REFUSED = "PermissionError: [Errno 1]"
ABSENT = "FileNotFoundError"

# name: (what runs on import, how it ends, what the message holds)
FILES = {
    "password file": ("open('/etc/passwd').read()", ABSENT),
    "temporary folder": ("import os; os.listdir('/tmp')", ABSENT),
    "homes": ("import os; os.listdir('/home')", ABSENT),
    "the services' homes": ("import os; os.listdir('/var')", ABSENT),
    "environment by /proc": ("open('/proc/self/environ').read()", ABSENT),
    "other processes by /proc": ("import os; os.listdir('/proc/1')", ABSENT),
    "devices by /sys": ("import os; os.listdir('/sys')", ABSENT),
    "a disk": ("open('/dev/sda', 'rb')", ABSENT),
    "the host's name by file": ("open('/etc/hostname').read()", ABSENT),
    "a new file at the root": ("open('/escaped', 'w').write('x')", "Read-only file system"),
    # read-only for root, somebody else's for an ordinary user
    "the standard library": ("import abc; open(abc.__file__, 'a').write('x')", "Error: [Errno"),
    "the interpreter": ("import os, sys; os.unlink(sys.executable)", "Error: [Errno"),
    "a link out": ("import os; os.symlink('/etc', '/scratch/e'); open('/scratch/e/passwd')", ABSENT),
    "up and out": ("open('/scratch/../../../../etc/passwd')", ABSENT),
    "the script itself": ("import os; os.unlink('/python/inside.py')", "Error: [Errno"),
    "a device made": ("import os; os.mknod('/scratch/d', 0o60600, 0x800)", REFUSED),
    "a program for others": (
        "import os; open('/scratch/x', 'w').close(); os.chmod('/scratch/x', 0o4755)",
        REFUSED,
    ),
    "a file given away": (
        "import os; open('/scratch/x', 'w').close(); os.chown('/scratch/x', 0, 0)",
        REFUSED,
    ),
    "a handle": ("call(304, 265, -1, 0, 0)", REFUSED),
}
NETWORK = {
    "a connection": ("import socket; socket.create_connection(('127.0.0.1', 22), 1)", "PermissionError"),
    "a local socket": ("import socket; socket.socket(socket.AF_UNIX)", "PermissionError"),
    "a pair of sockets": ("import socket; socket.socketpair()", "PermissionError"),
    "a request": ("import urllib.request as u; u.urlopen('http://127.0.0.1:1', timeout=1)", "not permitted"),
    "talk to the kernel": ("import socket; socket.socket(16, 3, 0)", "PermissionError"),
}
PROCESSES = {
    "fork": ("import os; os.fork()", REFUSED),
    "vfork": ("call(58, 220, 0x4111, 0, 0, 0, 0)", REFUSED),
    "clone": ("call(56, 220, 17, 0, 0, 0, 0)", REFUSED),
    "clone3": ("call(435, 435, 0, 0)", REFUSED),
    "spawn": ("import os, sys; os.posix_spawn(sys.executable, ['x'], {})", "PermissionError"),
    "exec": ("import os, sys; os.execv(sys.executable, ['x', '-c', 'pass'])", "PermissionError"),
    "a shell": ("import subprocess; subprocess.run(['/bin/sh', '-c', 'id'])", "Error"),
    "system": ("import os; os.system('id') == 0 or exec('raise OSError(1)')", "OSError"),
    "a thread": ("import threading; threading.Thread(target=print).start()", "RuntimeError"),
    "kill the first": ("import os; os.kill(1, 9)", REFUSED),
    "kill the parent": ("import os; os.kill(os.getppid(), 9)", REFUSED),
    "kill everybody": ("import os; os.kill(-1, 9)", REFUSED),
    "kill the group": ("import os; os.killpg(0, 9)", REFUSED),
    "kill a thread": ("call(234, 131, 1, 1, 9)", REFUSED),
    "queue a signal": ("call(129, 138, 1, 9, ctypes.create_string_buffer(128))", REFUSED),
    "queue a thread's signal": ("call(297, 240, 1, 1, 9, ctypes.create_string_buffer(128))", REFUSED),
    "signal by descriptor": ("call(424, 424, 0, 9, 0, 0)", REFUSED),
    "hold of a process": ("call(434, 434, 1, 0)", REFUSED),
    "a descriptor's owner": ("call(72, 25, 2, 8, 1)", REFUSED),
    "a descriptor's signal": ("call(72, 25, 2, 10, 9)", REFUSED),
    "a descriptor's owner, newer": ("call(72, 25, 2, 15, ctypes.create_string_buffer(8))", REFUSED),
    "a lease": ("call(72, 25, 2, 1024, 0)", REFUSED),
    "another group": ("call(109, 154, 0, 1)", REFUSED),
    "a session": ("call(112, 157)", REFUSED),
    "outlive the parent": ("call(157, 167, 1, 0, 0, 0, 0)", REFUSED),
    "typing into a terminal": ("call(16, 29, 0, 0x5412, ctypes.create_string_buffer(b'x'))", REFUSED),
    "trace": ("call(101, 117, 16, 1, 0, 0)", REFUSED),
    "read a process": ("call(310, 270, 1, 0, 0, 0, 0, 0)", REFUSED),
    "write a process": ("call(311, 271, 1, 0, 0, 0, 0, 0)", REFUSED),
    "compare processes": ("call(312, 272, 1, 1, 0, 0, 0)", REFUSED),
    "priority": ("import os; os.setpriority(os.PRIO_USER, 0, 19)", REFUSED),
    "processors": ("import os; os.sched_setaffinity(0, {0})", REFUSED),
    "scheduler": ("import os; os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))", REFUSED),
    "disk priority": ("call(251, 30, 3, 0, 0x6007)", REFUSED),
    "another's limits": ("import resource; resource.prlimit(1, resource.RLIMIT_NOFILE)", REFUSED),
    "more memory": ("import resource; resource.setrlimit(resource.RLIMIT_AS, (-1, -1))", "Error"),
    "move pages": ("call(279, 239, 1, 0, 0, 0, 0, 0)", REFUSED),
}
KERNEL = {
    "namespaces": ("call(272, 97, 0x10000000)", REFUSED),
    "another's namespace": ("call(308, 268, 0, 0)", REFUSED),
    "mount": ("call(165, 40, 0, b'/scratch', b'tmpfs', 0, 0)", REFUSED),
    "mount, newer": ("call(430, 430, b'tmpfs', 0)", REFUSED),
    "another root": ("call(161, 51, b'/scratch')", REFUSED),
    "turn the root": ("call(155, 41, b'/scratch', b'/scratch')", REFUSED),
    "the host's name": ("call(170, 161, b'x', 1)", REFUSED),
    "a kernel program": ("call(321, 280, 5, 0, 0)", REFUSED),
    "performance counters": ("call(298, 241, 0, 0, -1, -1, 0)", REFUSED),
    "keys": ("call(250, 219, 0, -3, 0, 0, 0)", REFUSED),
    "ring of requests": ("call(425, 425, 1, ctypes.create_string_buffer(256))", REFUSED),
    "a file of memory": ("import os; os.memfd_create('x')", REFUSED),
    "page faults": ("call(323, 282, 0)", REFUSED),
    "watching files": ("call(294, 26, 0)", REFUSED),
    "shared memory": ("call(29, 194, 0, 4096, 0o1777)", REFUSED),
    "a message queue": ("call(68, 186, 0, 0o1777)", REFUSED),
    "a semaphore": ("call(64, 190, 0, 1, 0o1777)", REFUSED),
    "a named queue": ("call(240, 180, b'/x', 0o102, 0o600, 0)", REFUSED),
    "the clock": ("call(227, 112, 0, ctypes.create_string_buffer(16))", REFUSED),
    "restart": ("call(169, 142, 0, 0, 0, 0)", REFUSED),
    "the kernel's log": ("call(103, 116, 10, 0, 0)", REFUSED),
    "a module": ("call(313, 273, 0, b'', 0)", REFUSED),
    "another filter": ("call(317, 277, 1, 0, 0)", REFUSED),
    "capabilities": ("call(126, 91, 0, 0)", REFUSED),
    "a call to come": ("call(600, 600)", REFUSED),
    "the x32 numbers": ("call(0x40000000 + 39, 600)", REFUSED),
    "packages of the project": ("import numpy", "ModuleNotFoundError"),
}

# a frame as the inside uses it: eight bytes of length, then JSON
FRAMED = """
import json, os, struct
DOCUMENT = {"players": ["ann"], "states": ["a"], "initial_state": "a", "terminal_states": ["a"], "actions": {},
            "transitions": [], "observations": {"ann": {"a": "x"}}}
DATA = json.dumps({"status": "ok", "class": "Coin", "document": DOCUMENT}).encode()
def write(data, numbers=range(3, 32)):
    for number in numbers:
        try: os.write(number, data)
        except OSError: pass
"""
ENDINGS = {
    "leaves": ("import os; os._exit(0)", "crashed", "it left, exit status 0"),
    "leaves with a status": ("import os; os._exit(7)", "crashed", "it left, exit status 7"),
    "exits": ("raise SystemExit(0)", "error", "SystemExit"),
    "interrupts": ("raise KeyboardInterrupt", "error", "KeyboardInterrupt"),
    "kills itself": ("import os; os.kill(os.getpid(), 9)", "error", "PermissionError"),
    "aborts": ("import os; os.abort()", "crashed", "ended by SIG"),
    "reads nowhere": ("import ctypes; ctypes.string_at(1)", "crashed", "ended by SIGSEGV"),
    "closes its descriptors": (
        "import os; os.closerange(0, 32)",
        "crashed",
        "it closed the descriptor of its answer",
    ),
    "closes its descriptors and goes on": (
        "import os, time; os.closerange(0, 32)\nwhile True: time.sleep(1)",
        "crashed",
        "it closed the descriptor of its answer and went on",
    ),
    "turns its descriptors round": (
        "import os\nfor n in range(3, 32):\n    try: os.dup2(2, n)\n    except OSError: pass",
        "crashed",
        "it closed the descriptor of its answer",
    ),
    "a frame of its own, and leaves": (
        FRAMED + "write(struct.pack('>Q', len(DATA)) + DATA); os._exit(0)",
        "unreadable",
        "the program wrote it",
    ),
    "a frame of its own, and loops": (
        FRAMED + "write(struct.pack('>Q', len(DATA)) + DATA)\nwhile True: pass",
        "unreadable",
        "at its CPU limit",
    ),
    "a frame and a number": (
        FRAMED + "write(struct.pack('>Q', len(DATA)) + DATA + bytes(16)); os._exit(0)",
        "unreadable",
        "",
    ),
    "half a frame": (FRAMED + "write(struct.pack('>Q', 10**6) + DATA); os._exit(0)", "unreadable", ""),
    "an endless frame": (FRAMED + "write(b'\\xff' * 8 + DATA); os._exit(0)", "unreadable", ""),
    "bare JSON": (FRAMED + "write(DATA); os._exit(0)", "unreadable", "not a verdict"),
    "says that it was refused": (
        FRAMED + 'write(b\'{"ended": ["refused", "I refuse"]}\\n\'); os._exit(0)',
        "unreadable",
        "",
    ),
    "no class, and the inside's own hand": (
        "import sys\nframe = sys._getframe()\nwhile frame.f_code.co_name != 'build': frame = frame.f_back\n"
        "import abstract_posg\nabstract_posg.tabulate = None\nraise ValueError('no way')",
        "error",
        "no way",
    ),
    "another calling convention": (
        "import ctypes, mmap\ncode = mmap.mmap(-1, 4096, prot=7)\ncode.write(bytes.fromhex('b814000000cd80c3'))\n"
        "ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()",
        "crashed",
        "ended by SIG",
    ),
    "endless": ("while True: pass", "cpu", ""),
    "endless and deaf": (
        "import signal\nfor n in range(1, 30):\n    n in (9, 19) or signal.signal(n, signal.SIG_IGN)\nwhile True: pass",
        "cpu",
        "",
    ),
    "endless output": ("while True: print('x' * 10000)", "output", ""),
    "all memory": ("x = bytearray(10**9)", "memory", ""),
    "all memory, slowly": ("x = []\nwhile True: x.append(bytearray(10**6))", "memory", ""),
    "too deep": ("def f(): f()\nf()", "error", "RecursionError"),
    "no program": ("1 +", "error", "SyntaxError"),
}
# What it can learn: everything it sees goes into its message, in which nothing of the machine may be.
SEEING = {
    "names and paths": (
        "import os, sys, platform, sysconfig\nraise ValueError(str((sys.path, sys.executable, sys.prefix, sys.argv, "
        "sys.base_prefix, sys.orig_argv, os.getcwd(), dict(os.environ), platform.node(), os.uname(), "
        "os.listdir('/'), [getattr(m, '__file__', '') for m in sys.modules.values()])))",
        "error",
        "/python/",
    ),
    "who it is": (
        "import os; raise ValueError((os.getpid() < 9, os.getppid() < 9))",
        "error",
        "(True, True)",
    ),
    "a traceback": (
        "import traceback\ntry: open('/nowhere')\nexcept OSError: raise ValueError(traceback.format_exc()) from None",
        "error",
        "candidate.py",
    ),
    "the system's own words": ("import json; json.loads('{')", "error", "JSONDecodeError"),
}

HOSTILE = {
    **{
        name: (CALL + code, "error", said)
        for part in (FILES, NETWORK, PROCESSES, KERNEL)
        for name, (code, said) in part.items()
    },
    **ENDINGS,
    **SEEING,
}


def verdicts(backend: str) -> dict:
    """{name: verdict as a mapping} of the whole set."""
    from compendium.studies.worldmodels.posg.sandbox import Limits, run_candidate

    # a second of CPU time can take many of the clock's on a busy machine
    limits = Limits(wall_seconds=60.0, cpu_seconds=1, memory_bytes=192 * 1024**2, output_bytes=200_000)

    def one(name):
        return name, asdict(run_candidate(module(before=HOSTILE[name][0]), backend=backend, limits=limits))

    with ThreadPoolExecutor(4) as pool:
        return dict(pool.map(one, HOSTILE))


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    from compendium.studies.worldmodels.posg.sandbox import unavailable

    reason = unavailable(sys.argv[2])
    print(json.dumps({"reason": reason, "verdicts": {} if reason else verdicts(sys.argv[2])}))
