"""Certificates for tests, made by the program openssl: an authority, and what it signs."""

import os
import subprocess


def _openssl(*words: str) -> None:
    subprocess.run(
        ["openssl", *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


class Authority:
    """Signs certificates, which it keeps in a folder.

    authority = Authority(folder)
    authority.file                                   # the certificate that signs the others
    certificate, key = authority.sign("server")      # for 127.0.0.1 and localhost
    """

    def __init__(self, folder: str, name: str = "authority"):
        self.folder = folder
        self.file, self._key = self._paths(name)
        _openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-subj", f"/CN={name}", "-days", "30", "-keyout", self._key, "-out", self.file,
        )  # fmt: skip

    def _paths(self, name: str):
        return tuple(os.path.join(self.folder, f"{name}.{end}") for end in ("crt", "key"))

    def sign(self, name: str, names: str = "IP:127.0.0.1,DNS:localhost", days: int = 30, rsa=False):
        """Returns the files of the certificate and of its key. With negative `days` it has ended.
        Its key is one of ECDSA, or with `rsa` one of RSA with 2048 bits."""
        certificate, key = self._paths(name)
        request, extensions = (os.path.join(self.folder, f"{name}.{end}") for end in ("req", "ext"))
        kind = ["rsa:2048"] if rsa else ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        _openssl(
            "req", "-newkey", *kind, "-nodes", "-subj", f"/CN={name}", "-keyout", key,
            "-out", request,
        )  # fmt: skip
        with open(extensions, "w", encoding="ascii") as file:
            file.write(f"subjectAltName={names}\n")
        _openssl(
            "x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self._key,
            "-CAcreateserial", "-days", str(days), "-extfile", extensions, "-out", certificate,
        )  # fmt: skip
        os.chmod(key, 0o600)
        return certificate, key
