"""A real Slurm of one node, from Debian's packages (slurmctld, slurmd, munge): `python one_node.py COMMAND
…`.

Starts the three daemons with keys, spools and logs in a folder of their own, runs COMMAND with Slurm at
hand, and ends them again. The only file outside that folder is /etc/slurm/slurm.conf, because jobs look for
it there; where one exists already, or these daemons cannot run, `reason` says so and nothing is started.
"""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONF = Path("/etc/slurm/slurm.conf")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel")
MINE = "# one_node.py"  # how the file begins, then the folder and the process that started it
CONFIGURATION = """\
{mine} {folder} {owner}
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SrunPortRange={ports[2]}-{ports[3]}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdSpoolDir={folder}/spool
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
MinJobAge=300
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory={memory} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def reason() -> str:
    """Why no Slurm can be started here; empty where it can."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    missing = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    if missing:
        return f"no {', '.join(missing)}: install slurmctld, slurmd, slurm-client and munge"
    if os.geteuid() != 0:
        return "Slurm's daemons are started as root"
    _clear_what_a_killed_run_left()
    if CONF.exists():
        return f"{CONF} is there already: this machine has a Slurm of its own"
    return ""


@contextlib.contextmanager
def one_node():
    """Yield the folder of a running one-node Slurm. Raises RuntimeError, with its log, where it does not
    come up.
    """
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    try:
        _configure(folder)
        yield _start(folder)
    finally:
        _stop(folder)
        CONF.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def _clear_what_a_killed_run_left():
    """End the daemons of a run whose own process is gone, and remove its configuration."""
    with contextlib.suppress(OSError, ValueError):
        head = CONF.read_text().splitlines()[0].removeprefix(MINE).split()
        if CONF.read_text().startswith(MINE) and not Path(f"/proc/{int(head[1])}").exists():
            _stop(Path(head[0]))
            CONF.unlink()
            shutil.rmtree(head[0], ignore_errors=True)


def _configure(folder: Path):
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(1024))
    folder.chmod(0o711)  # munged insists that others cannot write, and clients must reach the socket
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20
    CONF.parent.mkdir(parents=True, exist_ok=True)
    CONF.write_text(
        CONFIGURATION.format(
            mine=MINE,
            owner=os.getpid(),
            host=socket.gethostname().split(".")[0],
            folder=folder,
            ports=_free_ports(4),
            cores=max(2, os.cpu_count() or 1),
            memory=max(1000, memory - 500),
        )
    )


def _start(folder: Path) -> Path:
    munge = [
        "munged",
        f"--key-file={folder}/munge.key",
        f"--socket={folder}/munge.socket",
        "--force",
        f"--pid-file={folder}/munged.pid",
        f"--log-file={folder}/munged.log",
        f"--seed-file={folder}/munge.seed",
    ]
    for command in (munge, ["slurmctld"], ["slurmd"]):
        subprocess.run(command, check=True, env=_environment(), timeout=60, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = subprocess.run(
            ["sinfo", "-h", "-o", "%t"], capture_output=True, text=True, env=_environment(), check=False
        )
        if found.stdout.split() == ["idle"]:
            return folder
        time.sleep(0.5)
    logs = "\n".join(path.read_text(errors="replace")[-2000:] for path in sorted(folder.glob("*.log")))
    raise RuntimeError(f"the node did not become idle within a minute\n{logs}")


def _stop(folder: Path):
    """End the daemons by the ids that they wrote down."""
    running = []
    for name in ("slurmd", "slurmctld", "munged"):
        with contextlib.suppress(OSError, ValueError):
            running.append(int((folder / f"{name}.pid").read_text()))
    for process in running:
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGTERM)
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{process}").exists() for process in running) and time.monotonic() < deadline:
        time.sleep(0.2)


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now; the last two open a range."""
    with contextlib.ExitStack() as held:
        taken = [held.enter_context(socket.socket()) for _ in range(count - 1)]
        for each in taken:
            each.bind(("127.0.0.1", 0))
        ports = [each.getsockname()[1] for each in taken]
    start = min(ports[-1], 65000)
    return [*ports[:-1], start, start + 200]


def _environment() -> dict:
    return {**os.environ, "PATH": os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])}


def main(command) -> int:
    why = reason()
    if why:
        print(f"no Slurm: {why}", file=sys.stderr)
        return 77
    with one_node() as folder:
        print(f"Slurm of one node runs; its logs: {folder}", file=sys.stderr)
        return subprocess.run(command or [os.environ.get("SHELL", "bash")], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
