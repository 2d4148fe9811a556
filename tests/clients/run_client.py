"""Runs a client's test program against a real Carillon, once in memory and once durable.

    run_client.py ruby beaneater_test.rb
    run_client.py --optional node javascript_client_test.mjs    # exits with 77 if there is no node
    run_client.py --http python3 python_client_test.py      # once, with HTTP at the port + 80

The program gets the server's host and port as two further arguments; exit code 0 means success.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "server"))
import daemon  # noqa: E402


def run(name: str, server: daemon.Server, command: list) -> int:
    with server:
        print(f"== {name}", flush=True)
        code = subprocess.run(command + [daemon.HOST, str(server.port)], check=False).returncode
        if code != 0:
            print(f"== {name}: exit code {code}; the server printed:\n{server.log()}", flush=True)
        return code


def main(command: list) -> int:
    if not command:
        sys.exit(__doc__)
    with_http = command[0] == "--http"
    command = command[1:] if with_http else command
    optional = command[0] == "--optional"
    command = command[1:] if optional else command
    if optional and not shutil.which(command[0]):
        print(f"{command[0]} is not installed; run: scripts/install-packages test")
        return 77
    if not shutil.which(command[0]):
        sys.exit(f"{command[0]} is not installed; run: scripts/install-packages test")
    with tempfile.TemporaryDirectory() as data:
        if with_http:
            return run("durable", daemon.carillon_serve(data), command)
        codes = [
            run("in memory", daemon.carillon_beanstalkd(), command),
            run("durable", daemon.carillon_serve(data), command),
        ]
    return max(map(abs, codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
