#!/usr/bin/env python3
"""Tries a release as the image runs it: a static program in an empty root.

    cargo xtask dist && deploy/try-release.py PROGRAM COMPONENT.wasm EVENTS.jsonl

As user 65532, the root read-only but for its folders, in network, process and mount namespaces of its own. Needs
root, util-linux and redis-server. Names are resolved from /etc/hosts and from a name server that this starts: there is
no library in the root that could help. Prints a line for each thing tried; ends with 1 if one fails.
"""

import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

USER = "65532:65532"
WRITABLE = ["tmp", "var/lib/keyrail", "var/cache/keyrail"]
REDIS_PORT = 6399
DEADLINE_S = 30
failed = 0


def lay(root, program, inputs):
    """What the last stage of the Dockerfile has, and what a container engine adds: /proc, hosts, resolv.conf."""
    for folder in [*WRITABLE, "usr/bin", "etc", "proc", "in", "dev"]:
        (root / folder).mkdir(parents=True)
    shutil.copy(program, root / "usr/bin/keyrail")
    for file in inputs:
        shutil.copy(file, root / "in")
    certificates = root / "etc/ssl/certs"
    certificates.mkdir(parents=True)
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", certificates)
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n127.0.0.1 redis.hosts\n")
    (root / "etc/resolv.conf").write_text("nameserver 127.0.0.1\n")
    # Somewhere to write, a character device that every engine gives.
    os.mknod(root / "dev/null", 0o666 | 0o020000, os.makedev(1, 3))
    os.chmod(root / "dev/null", 0o666)


def close(root):
    def mount(*arguments):
        subprocess.run(["mount", *arguments], check=True)

    mount("--bind", root, root)
    mount("-o", "remount,bind,ro", root)
    for folder in WRITABLE:
        mount("-t", "tmpfs", "-o", "mode=0700,uid=65532,gid=65532,nosuid,nodev,noexec", "tmpfs", root / folder)
    mount("-t", "proc", "proc", root / "proc")


def loopback_up():
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh", b"lo", 0x1 | 0x40))


def serve_names():
    """Answers 127.0.0.1 to every question for an address of version 4, and nothing to others."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))

    def answer():
        while True:
            query, peer = server.recvfrom(512)
            end = query.index(b"\0", 12) + 5
            is_a = query[end - 4 : end - 2] == b"\0\1"
            record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1" if is_a else b""
            server.sendto(query[:2] + b"\x81\x80\0\1" + struct.pack(">HHH", int(is_a), 0, 0) + query[12:end] + record, peer)

    threading.Thread(target=answer, daemon=True).start()


def inside(root, *arguments):
    # Another user than root has no capabilities, and gets none by what it starts.
    limits = [shutil.which("setpriv"), "--no-new-privs", shutil.which("chroot")]
    environment = {"KEYRAIL_RUNTIME_CACHE_DIR": "/var/cache/keyrail/compiled", "KEYRAIL_BROKER": "embedded:/var/lib/keyrail/k.redb"}
    return [*limits, f"--userspec={USER}", root, "/usr/bin/keyrail", *arguments], environment


def report(what, good, said=""):
    global failed
    failed += not good
    print(f"{'ok' if good else 'FAILED':8}{what}" + ("" if good else f": {said.strip()[-600:]}"), flush=True)


def tried(what, root, *arguments, says="", code=0):
    command, environment = inside(root, *arguments)
    start = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    said = (done.stdout + done.stderr).strip()
    report(f"{what} ({time.monotonic() - start:.1f} s)", done.returncode == code and says in said, f"{done.returncode} {said}")
    return done.stdout


def within_deadline(what, condition):
    for _ in range(DEADLINE_S * 10):
        if condition():
            return report(what, True)
        time.sleep(0.1)
    return report(what, False, f"not in {DEADLINE_S} s")


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def serve(root):
    """A host on Redis that listens on all addresses, from its start to SIGTERM."""
    token = tried("make a token", root, "token", "ops", "--role", "read", "--file", "/var/lib/keyrail/tokens.toml").strip()
    settings = ["--set", "http.listen=0.0.0.0:7411", "--set", "http.tokens_file=/var/lib/keyrail/tokens.toml"]
    command, environment = inside(root, "--broker", f"redis://redis.hosts:{REDIS_PORT}", *settings, "run")
    host = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    ready, environment = inside(root, *settings, "health", "ready")
    within_deadline("the host is ready", lambda: subprocess.run(ready, env=environment, capture_output=True).returncode == 0)
    # `env` is what the program gets; a token is not for the command line, where others see it.
    asked, environment = inside(root, "--host", "http://localhost:7411", "members", "--json")
    members = subprocess.run(asked, env={**environment, "KEYRAIL_TOKEN": token}, capture_output=True, text=True)
    report("it tells its members over HTTP, by name", members.returncode == 0 and len(members.stdout.splitlines()) == 1, members.stdout + members.stderr)
    # setpriv and chroot have become the program.
    host.terminate()
    within_deadline("it ends in order at SIGTERM", lambda: host.poll() == 0)
    if host.poll() is None:
        host.kill()


def everything(root, component, events):
    loopback_up()
    serve_names()
    close(root)
    redis = subprocess.Popen(["redis-server", "--port", str(REDIS_PORT), "--bind", "127.0.0.1", "--save", ""], stdout=subprocess.DEVNULL)
    try:
        within_deadline("a Redis of this trial is up", lambda: answers(REDIS_PORT))
        tried("it tells its version", root, "--version", says="keyrail ")
        tried("a component is compiled by a process of the same program", root, "register", f"/in/{component}")
        published = tried("events are published", root, "publish", f"/in/{events}", says="published")
        tried("a handler runs on them", root, "run", "--handler", f"/in/{component}", "--until-idle", says="settled")
        tried("the second start finds what was compiled", root, "run", "--handler", f"/in/{component}", "--until-idle")
        tried("Redis by a name of /etc/hosts", root, "--broker", f"redis://redis.hosts:{REDIS_PORT}", "register", f"/in/{component}")
        tried("Redis by a name of DNS", root, "--broker", f"redis://redis.example.org:{REDIS_PORT}", "publish", f"/in/{events}", says="published")
        tried("a name that nobody knows is an error", root, "--broker", "redis://nobody:1", "members", code=4)
        tried("the root is read-only", root, "--broker", "embedded:/k.redb", "members", code=4)
        serve(root)
        states = tried("the outcome can be read", root, "state", "dump", json.loads(tried("what is registered", root, "handlers", "--json").splitlines()[0])["handler"]) if published else ""
        print(f"        {len(states.splitlines())} keys with state")
    finally:
        redis.terminate()
        redis.wait()


def main():
    program, component, events = (Path(argument).resolve() for argument in sys.argv[1:4])
    if "KEYRAIL_TRY_ROOT" in os.environ:
        everything(Path(os.environ["KEYRAIL_TRY_ROOT"]), component.name, events.name)
        return 1 if failed else 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        lay(root, program, [component, events])
        os.chmod(folder, 0o755)
        again = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", sys.executable, __file__, *sys.argv[1:4]]
        return subprocess.run(again, env={**os.environ, "KEYRAIL_TRY_ROOT": str(root)}).returncode


if __name__ == "__main__":
    sys.exit(main())
