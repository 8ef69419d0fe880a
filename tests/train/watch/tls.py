"""An HTTPS server with a certificate authority of its own, as Trainer's certificate rotator makes one."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.http_server import Handler


def certificates(folder: Path) -> None:
    """Writes ca.crt, and server.pem (certificate and key) for localhost, in the form of
    open-policy-agent/cert-controller: an authority that signs the server's certificate.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    now = datetime.now(UTC)
    authority, server = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())

    def named(name: str) -> Any:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])

    def certificate(name: str, key: Any, *extensions: Any) -> Any:
        builder = x509.CertificateBuilder(
            named("test authority"), named(name), key.public_key(), x509.random_serial_number(),
            now - timedelta(hours=1), now + timedelta(hours=1),
        )  # fmt: skip
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        return builder.sign(authority, hashes.SHA256())

    usage = dict.fromkeys(
        ("content_commitment", "data_encipherment", "key_agreement", "crl_sign", "encipher_only", "decipher_only"),
        False,
    )
    root = certificate(
        "test authority",
        authority,
        (x509.BasicConstraints(ca=True, path_length=None), True),
        (x509.KeyUsage(digital_signature=True, key_encipherment=True, key_cert_sign=True, **usage), True),
        (x509.SubjectKeyIdentifier.from_public_key(authority.public_key()), False),
    )
    leaf = certificate(
        "localhost",
        server,
        (x509.SubjectAlternativeName([x509.DNSName("localhost")]), False),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), False),
    )
    pem = serialization.Encoding.PEM
    key = server.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "ca.crt").write_bytes(root.public_bytes(pem))
    (folder / "server.pem").write_bytes(leaf.public_bytes(pem) + key)


@contextmanager
def serve(handler: type[Handler], folder: Path, **attributes: Any) -> Iterator[str]:
    """Serves until the end of the block with folder/server.pem; the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (handler,), attributes))
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that refuses the certificate
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"https://localhost:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
