"""The API keys of the sandbox's people and of its agent: real keys, so that the vendor's own tools can sign with them.

They open nothing but the sandbox, whose signatures are verified with them. They are kept as their primes.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from fractal_sandbox.calls import Actor

__all__ = ["fingerprint", "private_pem", "public_key"]

_PRIMES: Final[dict[Actor, tuple[str, str]]] = {
    "person": (
        (
            "f25027bb902b8d174aa4ee35ae5020012c306919fa1e9a900cb9bf8b28ddfadefe73fdbac9dc69fff407dd47f2d613c8"
            "900759c6add2a01fbb64eb5dd3821ffe57ffd7c78143f4cd4ad3d7b5476d9ad87dfd8dafcc89fe4b28c22fefe21678ad"
            "4e11974441bd7bf878ca6abdbd9a452b768036a13988524524ea7660b6b7b23b"
        ),
        (
            "e55ee44e339058e75d1d36f44105d2c2cec3cad36ada1dac0732aabca7f4af5539273e95c0273f44c6cb3ca58c2a209b"
            "c2d7ada106a2492d459867bb619c4f459a19dece98039a867d4b9c16f6a2bc295975fac7310e7a089b6d7be8ee86ebf9"
            "e89f5c05218d728a734f1543d55a5ce174f7521d47d0639b166b2776ce9d81d7"
        ),
    ),
    "agent": (
        (
            "dc5273d54a8339fedae327bb93474381d2b242afa164c3144c0d547ba70a3a666b88bbc5ad193a2881221b8ab1d46876"
            "6b93e7e1816271f2395fd491bcae9e070398f26d1ef1ca7cefd44239d5e18114b2c6b5c4ca3a3b716b42e8116bab6ca6"
            "5ca6f1677ebd7dcf7d6f0aa0b408202567202fa54bd8941cebe47e74482ec775"
        ),
        (
            "c915f5dbcdd48b867548512b78524b484b98adde2a748b63d7b239b1365d8e3636dee8449fabf56577c542c0507fc8c5"
            "05dd09797e45ea9150eff78d74f0b2bd17fea840c1bc23b413026ef86591ae3da47235d8035678dc9282909fd3310525"
            "09900c1e12e9cc2e6b7706b68b9eeb419a3f4dd7343cd53bee6b65e23265f88b"
        ),
    ),
}
_EXPONENT: Final = 65537


@cache
def _private_key(actor: Actor) -> Any:
    from cryptography.hazmat.primitives.asymmetric import rsa

    p, q = (int(prime, 16) for prime in _PRIMES[actor])
    d = pow(_EXPONENT, -1, (p - 1) * (q - 1))
    numbers = rsa.RSAPrivateNumbers(
        p=p,
        q=q,
        d=d,
        dmp1=rsa.rsa_crt_dmp1(d, p),
        dmq1=rsa.rsa_crt_dmq1(d, q),
        iqmp=rsa.rsa_crt_iqmp(p, q),
        public_numbers=rsa.RSAPublicNumbers(_EXPONENT, p * q),
    )
    return numbers.private_key()


def public_key(actor: Actor) -> Any:
    """What verifies the signatures of people, or of the agent."""
    return _private_key(actor).public_key()


def private_pem(actor: Actor) -> str:
    """The private key as a file holds it."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    found: bytes = _private_key(actor).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return found.decode()


@cache
def fingerprint(actor: Actor) -> str:
    """The name by which OCI knows a key: the MD5 of its public half."""
    from cryptography.hazmat.primitives.hashes import MD5, Hash
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    digest = Hash(MD5())  # noqa: S303
    digest.update(public_key(actor).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
    return ":".join(f"{byte:02x}" for byte in digest.finalize())
