"""Tokens of an identity provider: one good one, and everything that is wrong with the others."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from muster.access.jwks import KEYS_MAX, Keys, read_keys
from muster.access.oidc import TOKEN_CHARS_MAX, Oidc
from muster.access.roster import Roster
from muster.access.trust import GroupRole, Trust
from muster.model.access import Grant, Principal, Role, User
from muster.model.reason import Code, Reason

NOW_S = 1_700_000_000
ISSUER = "https://login.example.org/realms/lab"
RSA = rsa.generate_private_key(65537, 2048)
OTHER = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()
TRUST = Trust(
    ISSUER,
    "muster",
    roles=(GroupRole("ml", Grant(Role.USER, "research")), GroupRole("ops", Grant(Role.OPERATOR))),
)


def public(key: Any, kid: str, **more: str) -> dict[str, Any]:
    kinds = {rsa.RSAPrivateKey: "RSA", ec.EllipticCurvePrivateKey: "EC", ed25519.Ed25519PrivateKey: "OKP"}
    algorithms: dict[str, Any] = {
        "RSA": jwt.algorithms.RSAAlgorithm,
        "EC": jwt.algorithms.ECAlgorithm,
        "OKP": jwt.algorithms.OKPAlgorithm,
    }
    kind = next(name for each, name in kinds.items() if isinstance(key, each))
    return {**json.loads(algorithms[kind].to_jwk(key.public_key())), "kid": kid, **more}


KEYS = read_keys(json.dumps({"keys": [public(RSA, "r"), public(EC, "e"), public(ED, "d")]}).encode())


def claims(**changes: Any) -> dict[str, Any]:
    made = {"iss": ISSUER, "aud": "muster", "sub": "ada", "exp": NOW_S + 300, "iat": NOW_S, "groups": ["ml"], **changes}
    return {name: value for name, value in made.items() if value is not None}


def sign(said: dict[str, Any] | None = None, key: Any = RSA, alg: str = "RS256", kid: str = "r", **header: Any) -> str:
    body = json.dumps(claims() if said is None else said).encode()
    return str(jwt.PyJWS().encode(body, key, alg, headers={"kid": kid, **header}))


class Known:
    """An Oidc over fixed keys, which counts what it missed."""

    def __init__(self, keys: Keys | None = KEYS, trust: Trust = TRUST) -> None:
        self.roster = Roster()
        self.missed = 0
        self._oidc = Oidc(trust, self.roster, lambda: keys, self._miss)

    def _miss(self) -> None:
        self.missed += 1

    def identify(self, text: str, now_ms: int = NOW_S * 1000) -> Principal | Reason:
        return self._oidc.identify(text, now_ms)


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize(("key", "alg", "kid"), [(RSA, "RS256", "r"), (EC, "ES256", "e"), (ED, "EdDSA", "d")])
def test_a_token_of_the_issuer_says_who_asks_and_what_they_may_do(key: Any, alg: str, kid: str) -> None:
    found = Known().identify(sign(key=key, alg=alg, kid=kid))
    assert found == Principal("ada", (Grant(Role.USER, "research"),), "oidc:ada", (NOW_S + 300) * 1000)


def test_groups_and_the_roles_that_were_given_here_add_up() -> None:
    known = Known()
    known.roster.users["ada"] = User((Grant(Role.VIEWER, "prod"),))
    found = known.identify(sign(claims(groups=["ops", "ml", "unheard-of"])))
    assert isinstance(found, Principal)
    assert found.grants == (Grant(Role.VIEWER, "prod"), Grant(Role.USER, "research"), Grant(Role.OPERATOR))


def test_claims_may_have_other_names_and_lie_deeper() -> None:
    trust = Trust(ISSUER, "muster", "email", "realm_access.roles", (GroupRole("ml", Grant(Role.USER, "research")),))
    said = claims(email="ada@example.org", email_verified=True, realm_access={"roles": ["ml"]}, groups=None)
    found = Known(trust=trust).identify(sign(said))
    assert isinstance(found, Principal)
    assert (found.name, found.grants) == ("ada@example.org", (Grant(Role.USER, "research"),))
    unverified = Known(trust=trust).identify(sign({**said, "email_verified": False}))
    assert isinstance(unverified, Reason)


def test_who_is_in_no_group_is_known_and_may_do_nothing() -> None:
    found = Known().identify(sign(claims(groups=None)))
    assert isinstance(found, Principal)
    assert found.grants == ()


@pytest.mark.parametrize(
    "skewed", [{"exp": NOW_S - 59}, {"nbf": NOW_S + 59}, {"iat": NOW_S + 59}, {"exp": NOW_S + 0.5}]
)
def test_clocks_may_differ_by_a_minute(skewed: dict[str, Any]) -> None:
    assert isinstance(Known().identify(sign(claims(**skewed))), Principal)


@pytest.mark.parametrize(
    "wrong",
    [
        {"exp": NOW_S - 60},
        {"exp": None},
        {"exp": "never"},
        {"exp": True},
        {"exp": 10**30},
        {"nbf": NOW_S + 61},
        {"iat": NOW_S + 61},
        {"nbf": "soon"},
        {"iss": "https://login.example.org"},
        {"iss": None},
        {"iss": [ISSUER]},
        {"aud": "another"},
        {"aud": None},
        {"aud": ["another"]},
        {"aud": {"muster": 1}},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": "owner"},
        {"sub": "a\u202eb"},
        {"sub": "../../etc/passwd"},
        {"sub": "a" * 129},
    ],
    ids=str,
)
def test_a_claim_that_is_wrong_is_refused(wrong: dict[str, Any]) -> None:
    found = Known().identify(sign(claims(**wrong)))
    assert isinstance(found, Reason)
    assert found.code is Code.IDENTITY_REFUSED


def _confuse() -> str:
    """The issuer's public key as the secret of an HMAC: what who trusts the token's own algorithm would take."""
    pem = RSA.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    text = f"{part({'alg': 'HS256', 'kid': 'r', 'typ': 'JWT'})}.{part(claims())}"
    mac = hmac.new(pem, text.encode(), hashlib.sha256).digest()
    return f"{text}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


GOOD = sign()
HEAD, BODY, SEAL = GOOD.split(".")
MALFORMED = {
    "no algorithm": f"{part({'alg': 'none', 'kid': 'r'})}.{BODY}.",
    "no algorithm, in capitals": f"{part({'alg': 'NONE', 'kid': 'r'})}.{BODY}.{SEAL}",
    "the public key as a secret": _confuse(),
    "an algorithm of another kind of key": sign(key=EC, alg="ES256", kid="r"),
    "a stronger algorithm that was not agreed": sign(alg="RS512"),
    "another key": sign(key=OTHER),
    "an id that leads elsewhere": sign(kid="../../../../dev/null"),
    "an id that is a query": sign(kid="r' OR 1=1 --"),
    "an id with a NUL": sign(kid="r\0"),
    "no id among several keys": sign(kid=""),
    "an id that is no text": f"{part({'alg': 'RS256', 'kid': ['r']})}.{BODY}.{SEAL}",
    "an address of other keys": sign(key=OTHER, kid="x", jku="https://evil.example/keys", x5u="https://evil.example/c"),
    "a key of its own": sign(key=OTHER, kid="x", jwk=public(OTHER, "x")),
    "something critical": sign(crit=["exp"], exp=1),
    "another type": sign(typ="logout+jwt"),
    "a body that was changed": f"{HEAD}.{part(claims(sub='eve'))}.{SEAL}",
    "no seal": f"{HEAD}.{BODY}.",
    "a cut seal": GOOD[:-9],
    "no body": f"{HEAD}..{SEAL}",
    "nothing": "..",
    "not base64": "a.b.c",
    "a header that is a list": f"{part(['RS256'])}.{BODY}.{SEAL}",
    "a header that is deep": f"{base64.urlsafe_b64encode(b'[' * 9000).decode()}.{BODY}.{SEAL}",
    "a body that is a list": jwt.PyJWS().encode(b"[1]", RSA, "RS256", headers={"kid": "r"}),
    "huge": f"{HEAD}.{BODY}{'A' * TOKEN_CHARS_MAX}.{SEAL}",
    "not ASCII": f"{HEAD}.{BODY}.{SEAL}\u00e9",
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_a_token_that_is_not_the_issuers_is_refused(text: str) -> None:
    found = Known().identify(text)
    assert isinstance(found, Reason)
    assert found.code is Code.IDENTITY_REFUSED
    assert isinstance(Known().identify(GOOD), Principal)


@pytest.mark.parametrize("user", [User(is_disabled=True), User(is_service=True)])
def test_a_user_who_is_disabled_here_or_is_a_program_does_not_come_in_that_way(user: User) -> None:
    known = Known()
    known.roster.users["ada"] = user
    assert isinstance(known.identify(GOOD), Reason)


def test_without_keys_nobody_is_refused_for_good() -> None:
    found = Known(keys=None).identify(GOOD)
    assert isinstance(found, Reason)
    assert found.code is Code.KEYS_UNKNOWN


def test_a_key_that_is_not_known_is_looked_for() -> None:
    known = Known()
    known.identify(sign(kid="new"))
    assert known.missed == 1
    known.identify(GOOD)
    assert known.missed == 1


def test_one_key_alone_needs_no_id() -> None:
    keys = read_keys(json.dumps({"keys": [public(RSA, "r")]}).encode())
    text = jwt.encode(claims(), RSA, "RS256")
    assert isinstance(Known(keys=keys).identify(text), Principal)


def test_of_a_set_only_sound_public_keys_for_signatures_are_read() -> None:
    weak = rsa.generate_private_key(65537, 1024)  # noqa: S505 - to be refused
    private = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(OTHER))
    listed = [
        public(weak, "weak"),
        public(RSA, "for-ciphers", use="enc"),
        public(RSA, "of-another-algorithm", alg="RS512"),
        {"kty": "oct", "kid": "secret", "k": "c2VjcmV0"},
        {"kty": "RSA", "kid": "broken", "n": "!", "e": "AQAB"},
        {"kty": "EC", "crv": "P-256", "kid": "off-the-curve", "x": "AQ", "y": "AQ"},
        {**private, "kid": "with-its-private-part"},
        public(OTHER, "r"),
        public(RSA, "r"),
        "not even a key",
        public(ED, "d"),
    ]
    keys = read_keys(json.dumps({"keys": listed}).encode())
    assert list(keys) == ["with-its-private-part", "r", "d"]
    assert not hasattr(keys["with-its-private-part"].public, "private_numbers")
    assert isinstance(Known(keys=keys).identify(sign(kid="r")), Reason)  # the first of its name counts


def test_a_set_is_read_so_far_and_no_further() -> None:
    many = json.dumps({"keys": [*([{"kty": "x"}] * KEYS_MAX), public(RSA, "late")]}).encode()
    assert read_keys(many) == {}


@pytest.mark.parametrize("data", [b"", b"[]", b'{"keys": 1}', b"\xff", b'{"keys": ' + b"[" * 5000])
def test_what_is_no_set_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a key set"):
        read_keys(data)
