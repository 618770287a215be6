"""A certificate for the stub, and a bundle of authorities with it, as large as that of an SDK."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from bench.subjects import VENV


@dataclass(frozen=True, slots=True)
class Certificate:
    """The files: the stub's key and certificate, and the bundle that its clients trust."""

    own: Path
    trusted: Path


def make(directory: Path) -> Certificate:
    """Writes a new certificate for localhost, and botocore's bundle of authorities with it."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now, public = datetime.now(UTC), key.public_key()
    usage = dict.fromkeys(
        (
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "crl_sign",
            "content_commitment",
        ),
        False,
    )
    made = (
        x509.CertificateBuilder(name, name, public, x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True,
                key_cert_sign=True,
                encipher_only=False,
                decipher_only=False,
                **usage,
            ),
            critical=True,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(public), critical=False)
        .sign(key, hashes.SHA256())
    )
    text = made.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    [authorities] = VENV.glob("lib/python*/site-packages/botocore/cacert.pem")
    files = Certificate(directory / "own.pem", directory / "trusted.pem")
    files.own.write_bytes(private + text)
    files.trusted.write_bytes(authorities.read_bytes() + text)
    return files
