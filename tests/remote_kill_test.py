#!/usr/bin/env python3
"""A model by URL whose runs are killed while they stage it: the next is right.

usage: remote_kill_test.py MUSTER SOURCE_DIR
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

MUSTER, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
MODEL = SOURCE / "models/demo/demo-moe-q8_0.gguf"
RUN = ["--tokens", "1,50,300,7,900", "-n", "12", "--greedy", "--json", "--quiet"]


def main():
    server = subprocess.Popen([sys.executable, SOURCE / "tests/object_server.py"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    base = f"http://127.0.0.1:{int(server.stdout.readline())}"
    url = f"{base}/f/kill/-{MODEL}"

    def served():
        with urllib.request.urlopen(f"{base}/served/kill") as answer:
            return int(answer.read())

    def run(model, *flags):
        done = subprocess.run([MUSTER, "run", model, *RUN, *flags], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    local = run(str(MODEL))["tokens"]
    with tempfile.TemporaryDirectory() as folder:
        stage = ("--stage", folder)
        # Later each time, until a run is through.
        for wanted in range(1, 20):
            before = served()
            child = subprocess.Popen([MUSTER, "run", url, *RUN, *stage], stdout=subprocess.DEVNULL)
            while child.poll() is None and served() < before + wanted * (1 << 20):
                pass
            child.kill()
            if child.wait() == 0:
                break
        else:
            sys.exit("no run came through")
        assert run(url, *stage)["tokens"] == local, "another answer after runs were killed"
        before = served()
        again = run(url, *stage)
        assert again["tokens"] == local
        assert served() == before + 1, f"{served() - before} bytes were served again"
        assert run(url, *stage, "--ram", "200M")["tokens"] == local
        second = subprocess.run([MUSTER, "run", url + "x?key=secret", *RUN, *stage], capture_output=True, text=True)
        assert second.returncode != 0 and "404" in second.stderr and "secret" not in second.stderr, second.stderr
    server.stdin.close()
    print(f"remote: {wanted} runs were killed, the answer is the same")


if __name__ == "__main__":
    main()
