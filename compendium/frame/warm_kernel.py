"""Kernels as forks of the warm parent: a kernel provisioner for Jupyter's own machinery, for this process alone."""
# Tested by tests/compendium/frame/test_warm.py.

import os
import signal
import socket
import time

from jupyter_client.provisioning import KernelProvisionerFactory
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from compendium.frame.warm import PARENT, VARIABLE
from compendium.frame.warm_client import request

ENDING = 5  # seconds between two looks at a child are a hundredth of this


class Child:
    """A forked kernel, with what Jupyter asks of a `subprocess.Popen`."""

    stdin = stdout = stderr = None

    def __init__(self, connection: socket.socket):
        self._connection, self._text, self.returncode = connection, b"", None
        while b"\n" not in self._text:
            self._read(connection)
        self.pid = int(self._text.split(b"\n")[0])
        connection.setblocking(False)

    def _read(self, connection):
        part = connection.recv(64)
        if not part:
            raise ConnectionError("the warm parent is gone")
        self._text += part

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""
        if self.returncode is None:
            try:
                self._read(self._connection)
            except BlockingIOError:
                pass
            except OSError:
                self.returncode = -int(signal.SIGKILL)
            lines = self._text.split(b"\n")
            if len(lines) > 2:
                self.returncode = int(lines[1])
        return self.returncode

    def wait(self) -> int:
        """Wait for its end; returns the exit code."""
        while self.poll() is None:
            time.sleep(ENDING / 100)
        self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


class WarmProvisioner(LocalProvisioner):
    """Starts `python -m ipykernel_launcher …` as a fork of the warm parent."""

    async def launch_kernel(self, cmd, **kwargs):
        module = cmd.index("-m")
        with open(os.devnull) as nothing:
            connection = request(
                os.environ[VARIABLE],
                cmd[module + 1],
                [*cmd[module + 2 :], f"--IPKernelApp.parent_handle={PARENT}"],
                environment=kwargs["env"],
                folder=kwargs.get("cwd") or os.getcwd(),
                files=(nothing, 1, 2),
                name="kernel",
                session=True,
            )
        self.process = Child(connection)
        self.pid = self.pgid = self.process.pid
        return self.connection_info


class _Entry:
    """What Jupyter expects of an installed provisioner."""

    name = "warm"

    @staticmethod
    def load():
        return WarmProvisioner


def use_where_possible() -> None:
    """Kernels of this process come from the warm parent, where there is one."""
    if os.environ.get(VARIABLE, "0") not in ("", "0"):
        factory = KernelProvisionerFactory.instance()
        factory.provisioners[_Entry.name] = _Entry
        factory.default_provisioner_name = _Entry.name
