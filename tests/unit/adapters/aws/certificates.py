"""A certification authority for servers on this machine."""

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Authority:
    """Issues certificates; `path` is the file of its own."""

    directory: Path
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def path(self) -> Path:
        return self.directory / "authority.pem"

    def context(self, host: str, *, ends: timedelta = DAY, known: bool = True) -> ssl.SSLContext:
        """Returns a server's context; with its own signature unless it is `known`."""
        key = ec.generate_private_key(ec.SECP256R1())
        own = _named("Server")
        issuer, signer = (self.certificate.subject, self.key) if known else (own, key)
        builder = _builder(own, issuer, key, by=signer, ends=ends).add_extension(
            x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False
        )
        path = self.directory / "server.pem"
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        path.write_bytes(builder.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM) + private)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context


def made_authority(directory: Path) -> Authority:
    """Makes an authority with a key of its own."""
    key, name = ec.generate_private_key(ec.SECP256R1()), _named("Authority")
    usage = x509.KeyUsage(*[n in {5, 6} for n in range(9)])
    certificate = (
        _builder(name, name, key, by=key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    authority = Authority(directory, key, certificate)
    authority.path.write_bytes(certificate.public_bytes(Encoding.PEM))
    return authority


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    *,
    by: ec.EllipticCurvePrivateKey,
    ends: timedelta = DAY,
) -> x509.CertificateBuilder:
    """Begins a certificate with both key identifiers, without which Python 3.13 accepts none."""
    now, public, signer = datetime.now(UTC), key.public_key(), by.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 10 * DAY)
        .not_valid_after(now + ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
    )
