"""The second way into the sandbox, where bubblewrap is not installed: a script, never imported. Standard library only.

Leaves the machine for namespaces of its own (user, mount, processes, network, IPC, host name) and a root folder
that holds the interpreter, read-only and under a neutral name, and an empty scratch folder; drops every capability
and starts the command that it was given there. Ends as that command ends. Its one argument is marshalled, for the module json
takes as long to import as all the rest to do: {root, visible: [[outside, inside], …], hidden: [inside, …],
scratch_bytes, command, environment}.
"""
# Tested by tests/compendium/studies/worldmodels/posg/test_sandbox.py.

import ctypes
import marshal
import os
import struct
import sys

PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
# user, mount, network, IPC, host name, processes
CLONE_FLAGS = 0x10000000 | 0x00020000 | 0x40000000 | 0x08000000 | 0x04000000 | 0x20000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
MNT_DETACH = 2
NAME = b"sandbox"
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source, target, kind, flags, data=None):
    text = [None if value is None else value.encode() for value in (source, target, kind, data)]
    check(libc.mount(text[0], text[1], text[2], ctypes.c_ulong(flags), text[3]), "mount")


def enter(order):
    """Leave the machine; what is started after this is alone."""
    uid, gid = os.geteuid(), os.getegid()
    check(libc.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0), "parent-death signal")
    check(libc.unshare(CLONE_FLAGS), "namespaces")
    for name, text in (("setgroups", "deny"), ("uid_map", f"65534 {uid} 1"), ("gid_map", f"65534 {gid} 1")):
        with open(f"/proc/self/{name}", "w") as handle:
            handle.write(text)
    check(libc.sethostname(NAME, len(NAME)), "host name")
    check(libc.setdomainname(NAME, len(NAME)), "domain name")
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    root, size = order["root"], order["scratch_bytes"]
    mount("sandbox", root, "tmpfs", MS_NOSUID | MS_NODEV, f"size={size},mode=755")
    for outside, inside in order["visible"]:
        place = root + inside
        if os.path.isdir(outside):
            os.makedirs(place, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            open(place, "w").close()
        mount(outside, place, None, MS_BIND | MS_REC)
        mount(None, place, None, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV)
    for inside in order["hidden"]:
        mount("hidden", root + inside, "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY, "size=4096")
    os.mkdir(root + "/scratch")
    os.mkdir(root + "/old")
    os.chdir(root)
    check(libc.syscall(PIVOT_ROOT[os.uname().machine], b".", b"./old"), "pivot_root")
    os.chdir("/")
    check(libc.umount2(b"/old", MNT_DETACH), "umount")
    os.rmdir("/old")
    # empty files take no room, but memory of the kernel's
    mount("scratch", "/scratch", "tmpfs", MS_NOSUID | MS_NODEV, f"size={size},nr_inodes=100,mode=700")
    mount(None, "/", None, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV)
    os.chdir("/scratch")


def start(order):
    """Become the command, with no capability; the first process of its namespace."""
    check(libc.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0), "parent-death signal")
    # version 3 header, this process, and three empty sets twice
    header = ctypes.create_string_buffer(struct.pack("=Ii", 0x20080522, 0))
    check(libc.capset(header, ctypes.create_string_buffer(24)), "capabilities")
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    os.execve(order["command"][0], order["command"], order["environment"])


def main():
    order = marshal.loads(bytes.fromhex(sys.argv[1]))
    try:
        enter(order)
        inside = os.fork()
        if inside == 0:
            start(order)
    except (OSError, KeyError) as error:
        os.write(2, f"enter: {getattr(error, 'strerror', None) or error}\n".encode())
        os._exit(1)
    os.close(0)
    os.close(1)
    status = os.waitpid(inside, 0)[1]
    os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))


if __name__ == "__main__":
    main()
