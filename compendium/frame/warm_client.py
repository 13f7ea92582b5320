"""`python -SPE warm_client.py NAME -m MODULE ARGUMENTS…`: run a module in a fork of the warm parent, or cold without one.

Standard library only, and nothing of it that is slow to import: this starts once for each notebook.
"""
# Tested by tests/compendium/frame/test_warm.py.

import array
import os
import socket
import sys


def cold(arguments):
    os.execv(sys.executable, [sys.executable, *arguments])


def main(name, arguments):
    path = os.environ.get("COMPENDIUM_WARM", "")
    if not path or path == "0":
        cold(arguments)
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except OSError:  # another machine, or the parent is gone
        cold(arguments)
    import json

    order = {
        "module": arguments[1],
        "arguments": arguments[2:],
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "name": name,
        "session": False,
    }
    body = json.dumps(order).encode()
    connection.sendmsg(
        [len(body).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
    )
    connection.sendall(body)
    lines = connection.makefile("r").read().split("\n")
    return int(lines[1]) & 0xFF if len(lines) > 2 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
