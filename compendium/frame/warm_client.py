"""`python -SPE warm_client.py NAME -m MODULE ARGUMENTS…`: run a module in a fork of the warm parent, or cold without one.

Standard library only, and nothing of it that is slow to import: this starts once for each notebook.
"""
# Tested by tests/compendium/frame/test_warm.py.

import array
import os
import socket
import sys


def request(path: str, module: str, arguments, *, environment, folder, files, name: str, session=False):
    """Ask the parent at `path` for a child. Returns the connection; it says "pid\\n", at the end "code\\n".

    files : three open files or descriptors for standard input, output and error; session : a session of its own.
    Raises OSError where no parent listens.
    """
    import json

    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
        order = {
            "module": module,
            "arguments": list(arguments),
            "environment": dict(environment),
            "folder": str(folder),
            "name": name,
            "session": session,
        }
        body = json.dumps(order).encode()
        rights = array.array("i", [file if isinstance(file, int) else file.fileno() for file in files])
        connection.sendmsg([len(body).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        connection.sendall(body)
    except BaseException:
        connection.close()
        raise
    return connection


def main(name, arguments):
    cold = [sys.executable, *arguments]
    path = os.environ.get("COMPENDIUM_WARM", "")
    if not path or path == "0":
        os.execv(sys.executable, cold)
    try:
        connection = request(
            path,
            arguments[1],
            arguments[2:],
            environment=os.environ,
            folder=os.getcwd(),
            files=(0, 1, 2),
            name=name,
        )
    except OSError:  # another machine, or the parent is gone
        os.execv(sys.executable, cold)
    lines = connection.makefile("r").read().split("\n")
    return int(lines[1]) & 0xFF if len(lines) > 2 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
