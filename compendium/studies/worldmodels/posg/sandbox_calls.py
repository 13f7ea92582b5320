"""The system calls that a world model may make, by machine, and the filter that refuses all others.

Whatever is not listed fails with EPERM, calls of kernels to come included; another machine's calling convention
(32-bit, x32) kills or is refused. Opening files is left to the namespaces. Standard library only.
"""

import struct

ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}  # AUDIT_ARCH_…, column below

# name x86_64 aarch64 (-: the machine has no such call); the frequent ones first
_CALLS = """
read 0 63; write 1 64; mmap 9 222; munmap 11 215; futex 202 98; brk 12 214; close 3 57; fstat 5 80; lseek 8 62
stat 4 -; lstat 6 -; newfstatat 262 79; statx 332 291; open 2 -; openat 257 56; getdents64 217 61; access 21 -
faccessat 269 48; faccessat2 439 439; readlink 89 -; readlinkat 267 78; getcwd 79 17; chdir 80 49; fchdir 81 50
readv 19 65; writev 20 66; pread64 17 67; pwrite64 18 68; close_range 436 436; dup 32 23; dup2 33 -; dup3 292 24
mkdir 83 -; mkdirat 258 34; rmdir 84 -; unlink 87 -; unlinkat 263 35; rename 82 -; renameat 264 38
renameat2 316 276; symlink 88 -; symlinkat 266 36; truncate 76 45; ftruncate 77 46; fsync 74 82; fdatasync 75 83
flock 73 32; umask 95 166; utimensat 280 88; statfs 137 43; fstatfs 138 44; poll 7 -; ppoll 271 73; select 23 -
pselect6 270 72; mremap 25 216; mprotect 10 226; madvise 28 233; rt_sigaction 13 134; rt_sigprocmask 14 135
rt_sigreturn 15 139; sigaltstack 131 132; restart_syscall 219 128; exit 60 93; exit_group 231 94
clock_gettime 228 113; clock_getres 229 114; clock_nanosleep 230 115; nanosleep 35 101; gettimeofday 96 169
time 201 -; times 100 153; getpid 39 172; getppid 110 173; gettid 186 178; getuid 102 174; geteuid 107 175
getgid 104 176; getegid 108 177; uname 63 160; getrlimit 97 163; getrusage 98 165; getrandom 318 278
sched_yield 24 124
"""
# These only with certain values of one argument: (number of the argument, values).
_SOME = {
    "ioctl 16 29": (1, (0x5401, 0x5413, 0x5421, 0x5450, 0x5451, 0x541B)),  # is it a terminal, close on exec
    "fcntl 72 25": (1, (0, 1, 2, 3, 5, 6, 7, 1030)),  # copies, flags, locks: no owner and no signal
    "prlimit64 302 261": (0, (0,)),  # its own limits, which it cannot raise
}
# What only the one who waits for the candidate may do besides.
_WAITING = "wait4 61 260; kill 62 129"

# Ways out, each tried in the proof (the candidate's own copies of them are in the tests): name, numbers, arguments
# that do no harm where the door is open.
_DOORS = """
kill 62 129 0 0; tkill 200 130 0 0; tgkill 234 131 0 0 0; rt_sigqueueinfo 129 138 0 0 0
rt_tgsigqueueinfo 297 240 0 0 0 0; pidfd_open 434 434 0 0; pidfd_send_signal 424 424 -1 0 0 0; fcntl 72 25 2 8 0
fcntl 72 25 2 10 0; fcntl 72 25 2 15 0; ptrace 101 117 16 0 0 0; process_vm_readv 310 270 0 0 0 0 0 0
process_vm_writev 311 271 0 0 0 0 0 0; prlimit64 302 261 1 7 0 0; setpriority 141 140 0 0 0
sched_setaffinity 203 122 0 0 0; sched_setscheduler 144 119 0 -1 0; sched_setparam 142 118 0 0
sched_setattr 314 274 0 0 0; ioprio_set 251 30 1 0 0; socket 41 198 2 1 0; socketpair 53 199 1 1 0 0
execve 59 221 0 0 0; execveat 322 281 -1 0 0 0 0; unshare 272 97 0; setns 308 268 -1 0; mount 165 40 0 0 0 0 0
pivot_root 155 41 0 0; chroot 161 51 0; bpf 321 280 0 0 0; perf_event_open 298 241 0 0 -1 -1 0
keyctl 250 219 0 0 0 0 0; add_key 248 217 0 0 0 0 0; io_uring_setup 425 425 0 0; memfd_create 319 279 0 0
prctl 157 167 3 0 0 0 0; seccomp 317 277 2 0 0; setsid 112 157; setpgid 109 154 0 0; shmget 29 194 0 0 0
msgget 68 186 0 0; semget 64 190 0 0 0; mq_open 240 180 0 0 0 0; timer_create 222 107 0 0 0
userfaultfd 323 282 0; open_by_handle_at 304 265 -1 0 0; sethostname 170 161 0 -1; kcmp 312 272 0 0 0 0 0
inotify_init1 294 26 -1; capset 126 91 0 0; migrate_pages 256 238 0 0 0 0; ioctl 16 29 0 21522 0
"""


class UnknownMachine(ValueError):
    """No filter is written for this kind of processor."""


def filters(machine: str) -> dict:
    """{candidate, waiting: filter programs (hexadecimal), doors: [name, number, arguments …]} for `machine`.

    Raises UnknownMachine for any but `ARCHITECTURES`.
    """
    if machine not in ARCHITECTURES:
        raise UnknownMachine(f"no system-call filter is written for {machine}")
    column = ARCHITECTURES[machine][1] + 1
    doors = [entry.split() for entry in _entries(_DOORS)]
    return {
        "candidate": program(machine, allowed(machine)).hex(),
        "waiting": program(machine, {**allowed(machine), **_numbers(_WAITING, column)}).hex(),
        "doors": [[words[0], int(words[column]), *map(int, words[3:])] for words in doors],
    }


def allowed(machine: str) -> dict:
    """{number of a call: None, or (argument, values) that it is allowed with}."""
    column = ARCHITECTURES[machine][1] + 1
    some = {number: rule for text, rule in _SOME.items() for number in _numbers(text, column)}
    return {**_numbers(_CALLS, column), **some}


def program(machine: str, calls: dict) -> bytes:
    """A classic BPF program over `struct seccomp_data`: the calls in `calls` pass, every other fails with EPERM."""
    load, equal, give = 0x20, 0x15, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
    allow, deny, kill = 0x7FFF0000, 0x00050000 | 1, 0x80000000

    def rule(code, jt, jf, k):
        return struct.pack("=HBBI", code, jt, jf, k)

    lines = [rule(load, 0, 0, 4), rule(equal, 1, 0, ARCHITECTURES[machine][0]), rule(give, 0, 0, kill)]
    lines.append(rule(load, 0, 0, 0))
    for number, only in calls.items():
        if only is None:
            lines += [rule(equal, 0, 1, number), rule(give, 0, 0, allow)]
            continue
        argument, values = only
        block = [rule(load, 0, 0, 16 + 8 * argument)]  # the low half: the kernel reads these as 32 bits
        for value in values:
            block += [rule(equal, 0, 1, value), rule(give, 0, 0, allow)]
        block.append(rule(give, 0, 0, deny))
        lines += [rule(equal, 0, len(block), number), *block]
    return b"".join([*lines, rule(give, 0, 0, deny)])


def _entries(text: str) -> list[str]:
    return [entry.strip() for entry in text.replace("\n", ";").split(";") if entry.strip()]


def _numbers(text: str, column: int) -> dict:
    return {int(words[column]): None for words in map(str.split, _entries(text)) if words[column] != "-"}
