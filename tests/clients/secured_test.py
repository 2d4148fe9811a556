"""The clients of clients/ on a server that asks for tokens and speaks TLS.

secured_test.py FOLDER-OF-THE-CLIENTS
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FOLDER = os.path.abspath(sys.argv.pop(1))
sys.path[:0] = [
    os.path.join(FOLDER, "python"),
    str(Path(__file__).resolve().parent.parent / "server"),
]

import daemon  # noqa: E402
from certificates import Authority  # noqa: E402

import carillon  # noqa: E402

SCRIPT = """
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const [file, port, token, ca] = process.argv.slice(2);
const { Client, ConnectionLost, Refused } = await import(pathToFileURL(file));
const tls = { ca: readFileSync(ca) };
const client = (options) => new Client({ port: Number(port), ...options });
const outcome = async (options) => {
  const queue = client(options);
  try {
    await queue.put("hello");
    return "put";
  } catch (error) {
    if (error instanceof Refused) return error.message;
    return error instanceof ConnectionLost ? "lost" : String(error);
  } finally {
    queue.close();
  }
};
console.log(await outcome({ token, tls }));
console.log(await outcome({ host: "localhost", token, tls }));
console.log(await outcome({ token: "none", tls }));
console.log(await outcome({ tls }));
console.log(await outcome({ token, tls: true }));
const queue = client({ token, tls });
console.log((await queue.reserve()).text);
queue.close();
"""


class SecuredTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="carillon-secured.")
        self.addCleanup(folder.cleanup)
        self.authority = Authority(folder.name)
        certificate, key = self.authority.sign("server")
        tokens = os.path.join(folder.name, "tokens")
        self.token = subprocess.run(
            [
                daemon.carillon_path(),
                "token",
                "new",
                "--name",
                "ci",
                "--scope",
                "put,work,read,admin",
            ]
            + ["--file", tokens],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        server = daemon.carillon_serve(
            os.path.join(folder.name, "data"),
            *["--tokens", tokens, "--tls-cert", certificate, "--tls-key", key],
        )
        self.server = server.start()
        self.addCleanup(server.__exit__)

    def client(self, host="127.0.0.1", **options):
        client = carillon.Client(host, self.server.port, **options)
        self.addCleanup(client.close)
        return client

    def test_python(self):
        for host in ("127.0.0.1", "localhost"):
            queue = self.client(host, token=self.token, tls=self.authority.file)
            self.assertEqual(queue.put(b"x" * 60_000).result, "INSERTED")
            self.assertEqual(queue.reserve(timeout=0).body, b"x" * 60_000)
            self.assertFalse(queue.is_cut())

    def test_python_asks_by_http(self):
        for host in ("127.0.0.1", "localhost"):
            queue = self.client(host, token=self.token, tls=self.authority.file)
            job = queue.put("x").id
            self.assertEqual(queue.show(job)["body"], "x")
            self.assertEqual(queue.cancel_jobs("default"), (1, 0))
        with self.assertRaisesRegex(carillon.Refused, "GET /v1/jobs/1: 401 "):
            self.client(tls=self.authority.file).show(1)
        with self.assertRaisesRegex(carillon.ConnectionLost, "CERTIFICATE_VERIFY_FAILED"):
            self.client(token=self.token, tls=True).show(1)
        with self.assertRaisesRegex(carillon.Refused, "400 This port speaks TLS"):
            self.client(token=self.token).show(1)

    def test_python_is_told_what_is_missing(self):
        with self.assertRaisesRegex(carillon.Refused, "a token is needed"):
            self.client(tls=self.authority.file).put("x")
        with self.assertRaises(carillon.Refused) as refused:
            self.client(token="guess-it", tls=self.authority.file).put("x")
        self.assertEqual(refused.exception.word, "NOT_AUTHENTICATED")
        self.assertNotIn("guess-it", str(refused.exception))
        with self.assertRaisesRegex(carillon.ConnectionLost, "CERTIFICATE_VERIFY_FAILED"):
            self.client(token=self.token, tls=True).put("x")
        with self.assertRaisesRegex(carillon.Refused, "this port speaks TLS"):
            self.client(token=self.token).put("x")
        with self.assertRaisesRegex(ValueError, "one word"):
            self.client(token="two words")

    def test_python_connects_anew(self):
        queue = self.client(token=self.token, tls=self.authority.file, tube="mail")
        queue.put("a")
        queue.close()
        self.assertEqual(queue.put("b", key="k", key_window=60).result, "INSERTED")
        self.server.kill()
        self.assertTrue(self._becomes_cut(queue))
        self.server.start_again()
        self.assertEqual(queue.stats_tube("mail")["current-jobs-ready"], 2)

    def _becomes_cut(self, queue):
        return any(queue.is_cut() for _ in range(10_000))

    def test_javascript(self):
        if not shutil.which("node"):
            self.skipTest("node is not installed; run: scripts/install-packages test")
        script = os.path.join(os.path.dirname(self.authority.file), "client.mjs")
        with open(script, "w", encoding="ascii") as file:
            file.write(SCRIPT)
        done = subprocess.run(
            ["node", script, os.path.join(FOLDER, "javascript", "carillon.mjs")]
            + [str(self.server.port), self.token, self.authority.file],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(
            done.stdout.splitlines(),
            [
                "put",
                "put",
                "auth: NOT_AUTHENTICATED",
                "put-job: FORBIDDEN a token is needed",
                "lost",
                "hello",
            ],
            done.stderr,
        )


if __name__ == "__main__":
    unittest.main()
