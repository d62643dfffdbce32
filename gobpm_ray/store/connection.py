"""How a client of the store is opened, what its failures mean, and whether the store is fit to keep instances.

This module knows URLs, redis-py's exceptions and the settings that lose work. It refuses to know keys, scripts, and
what to do about a failure: it names it, as the store being away (`StoreUnavailable`) or saying no (`StoreRefused`).
Both are environment failures, so a delivery stays pending and nobody's content is blamed (H6).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from gobpm_ray.errors import BrokenInvariant, GobpmError, InvalidSetting, StoreRefused, StoreUnavailable
from gobpm_ray.store.embedded import EmbeddedStore

URL_VARIABLE = "GOBPM_REDIS_URL"

CONNECT_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 15.0
"""Above every blocking call (a holder waits one second on its bell) and above a slow disk's fsync."""

_SCHEMES = ("redis", "rediss", "unix")
_OURS = frozenset({"decode_responses", "encoding", "encoding_errors", "protocol", "retry_on_timeout", "retry_on_error"})
"""Options that decide how the engine reads answers: a URL may not change them."""

_MINIMUM_REDIS = (7, 0)
_MINIMUM_VALKEY = (7, 2)

_AWAY = ("LOADING", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "BUSY", "MOVED", "ASK", "max number of clients")
"""Answers that say "not now" or "not here", as the server writes them."""
_NO = (
    "NOAUTH",
    "WRONGPASS",
    "NOPERM",
    "OOM",
    "READONLY",
    "MISCONF",
    "NOREPLICAS",
    "DENIED",
    "NOSCRIPT",
    "invalid password",
    "AUTH ",
    "unknown command",
    "DB index",
    "SELECT is not allowed",
)
"""Answers that say "not as it is set up", as the server writes them."""


# ------------------------------------------------------------------------------------------------------------ opening


def resolve_url(url: str | None = None, home: Path | str | None = None) -> str:
    """The URL of a store: the given one, else `GOBPM_REDIS_URL`, else the embedded store's, which then runs."""
    chosen = url or os.environ.get(URL_VARIABLE)
    return chosen.strip() if chosen else EmbeddedStore(home).ensure_running()


def connect(url: str | None = None, home: Path | str | None = None) -> redis.Redis:
    """A client whose store answered, with a password and TLS as the URL says.

    Answers are bytes; nothing is retried inside, for only the engine knows what may be repeated. Raises
    `InvalidSetting` for a URL that names no store, `StoreUnavailable` and `StoreRefused` as `translate` says.
    """
    return open_client(resolve_url(url, home))


def open_client(url: str) -> redis.Redis:
    """As `connect`, for a URL that is known already (the embedded store is not started)."""
    client = _client(url)
    try:
        with store_errors(mask(url)):
            client.ping()
    except BaseException:
        client.close()
        raise
    return client


def mask(url: str) -> str:
    """The URL as it may be shown: without a password, wherever it stands."""
    shown = re.sub(r"(?<=://)([^:@/?#]*):.*@", r"\1:***@", url)
    return re.sub(r"(?i)([?&][^=&]*password=)[^&]*", r"\1***", shown)


def _client(url: str) -> redis.Redis:
    shown = mask(url)
    try:
        parts = urlsplit(url)
        _ = parts.port  # a port that is no number is refused by reading it
    except ValueError:
        raise InvalidSetting(f"store URL {shown!r}: not a URL") from None
    if parts.scheme not in _SCHEMES:
        raise InvalidSetting(f"store URL {shown!r}: expected redis://, rediss:// or unix://")
    if ours := sorted(_OURS.intersection(name for name, _ in parse_qsl(parts.query))):
        raise InvalidSetting(f"store URL {shown!r}: {ours[0]} is the engine's to decide")
    if parts.scheme == "unix" and not unquote(parts.path).startswith("/"):
        raise InvalidSetting(f"store URL {shown!r}: expected unix:///path/of/the/socket")
    if parts.scheme != "unix" and re.fullmatch(r"/?(\d+/?)?", parts.path) is None:
        raise InvalidSetting(f"store URL {shown!r}: expected a database number after the host")
    options: dict[str, Any] = {}
    if parts.scheme != "unix":
        options = {"socket_keepalive": True, "socket_connect_timeout": CONNECT_TIMEOUT_S}
    try:
        client = redis.Redis.from_url(
            url,
            decode_responses=False,
            protocol=2,
            socket_timeout=ANSWER_TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
            **options,
        )
        # Built and thrown away: an option of the URL that redis-py does not know shows here, not at the first command.
        pool = client.connection_pool
        pool.connection_class(**pool.connection_kwargs)
        return client
    except (ValueError, TypeError, redis.RedisError):
        # Without the cause: its text quotes parts of the URL, the password among them.
        raise InvalidSetting(f"store URL {shown!r}: not a URL of a Redis or Valkey store") from None


# ----------------------------------------------------------------------------------------------------------- failures


@contextlib.contextmanager
def store_errors(where: str = "") -> Iterator[None]:
    """What redis-py raises inside comes out as one of the engine's own errors; `where` is a masked URL or a deed."""
    try:
        yield
    except (redis.RedisError, OSError) as failure:
        raise translate(failure, where) from failure


def translate(failure: BaseException, where: str = "") -> GobpmError:
    """The engine's own name for a failure of the store: away, refused, or a fault of ours (`BrokenInvariant`)."""
    if isinstance(failure, GobpmError):
        return failure
    store = f"store {where}" if where else "store"
    said = " ".join(str(failure).split()) or type(failure).__name__
    if isinstance(failure, redis.AuthenticationError | redis.exceptions.AuthorizationError):
        return StoreRefused(f"{store}: user or password refused: {said}")
    if isinstance(failure, redis.exceptions.NoPermissionError):
        return StoreRefused(f"{store}: this user may not: {said}")
    if isinstance(failure, redis.exceptions.OutOfMemoryError):
        return StoreRefused(f"{store}: its memory is full (maxmemory): {said}")
    if isinstance(failure, redis.ReadOnlyError):
        return StoreRefused(f"{store}: it is a read-only replica: {said}")
    if isinstance(failure, redis.exceptions.NoScriptError):
        return StoreRefused(f"{store}: it forgot a script: {said}")
    if isinstance(failure, redis.BusyLoadingError):
        return StoreUnavailable(f"{store}: it is loading its data: {said}")
    if isinstance(failure, redis.TimeoutError | TimeoutError):
        return StoreUnavailable(f"{store}: no answer in time: {said}")
    if isinstance(failure, redis.exceptions.AskError):  # MovedError is one
        return StoreUnavailable(f"{store}: it is one node of a cluster, and the key is on another: {said}")
    if isinstance(failure, redis.ResponseError):
        return _translate_answer(said, store)
    if isinstance(failure, redis.ConnectionError | OSError):
        # The server closes a connection that it does not trust with an ordinary answer in redis-py's connection error.
        return StoreRefused(f"{store}: {said}") if _starts(said, _NO) else StoreUnavailable(f"{store}: {said}")
    return BrokenInvariant(f"{store}: {type(failure).__name__}: {said}")


def _translate_answer(said: str, store: str) -> GobpmError:
    answer = said.removeprefix("ERR ")
    if _starts(answer, _AWAY):
        return StoreUnavailable(f"{store}: {said}")
    if _starts(answer, _NO):
        return StoreRefused(f"{store}: {said}")
    # WRONGTYPE, CROSSSLOT, a fault in a script: the store is well, and we asked for nonsense.
    return BrokenInvariant(f"{store}: {said}")


def _starts(answer: str, prefixes: tuple[str, ...]) -> bool:
    return answer.startswith(prefixes)


# --------------------------------------------------------------------------------------------------------- inspection


def inspect_store(client: redis.Redis) -> list[str]:
    """One sentence for each setting with which the store can lose what it accepted (E89); raises if it cannot work.

    A store older than Redis 7.0 or Valkey 7.2 and a replica are refused. A hosted store often forbids CONFIG: what INFO
    tells is taken from there, and what nobody tells is named as unknown.
    """
    with store_errors():
        info = cast("Mapping[str, Any]", client.info("everything"))
    _refuse_unfit(info)
    settings = _settings(client)
    warnings: list[str] = []

    eviction = settings.get("maxmemory-policy") or str(info.get("maxmemory_policy", ""))
    if not eviction:
        warnings.append("store: maxmemory-policy could not be read; anything but noeviction loses instances")
    elif eviction != "noeviction":
        warnings.append(f"store: maxmemory-policy is {eviction}: a full store would evict instances; set noeviction")

    append_only = settings.get("appendonly") or {"1": "yes", "0": "no"}.get(str(info.get("aof_enabled", "")), "")
    fsync = settings.get("appendfsync", "")
    if not append_only:
        warnings.append("store: appendonly could not be read; without it a crash of the store loses accepted work")
    elif append_only != "yes":
        warnings.append("store: appendonly is off: a crash of the store loses what it accepted; set appendonly yes")
    elif not fsync:
        warnings.append("store: appendfsync could not be read; anything but always loses the last writes in a crash")
    elif fsync != "always":
        lost = "up to a second of accepted work" if fsync == "everysec" else "accepted work"
        warnings.append(f"store: appendfsync is {fsync}: a crash of the store loses {lost}; set always")
    return warnings


def _refuse_unfit(info: Mapping[str, Any]) -> None:
    valkey = str(info.get("valkey_version", ""))
    redis_version = str(info.get("redis_version", ""))
    if valkey and _version(valkey) < _MINIMUM_VALKEY:
        raise StoreRefused(f"store: Valkey {valkey} is too old; Valkey 7.2 or newer is needed")
    if not valkey and redis_version and _version(redis_version) < _MINIMUM_REDIS:
        raise StoreRefused(f"store: Redis {redis_version} is too old; Redis 7.0 or Valkey 7.2 or newer is needed")
    if str(info.get("role", "")) == "slave":
        raise StoreRefused("store: it is a read-only replica; connect to its primary")


def _settings(client: redis.Redis) -> dict[str, str]:
    """What CONFIG GET tells, nothing where the store forbids it."""
    try:
        raw = cast("Mapping[Any, Any]", client.config_get("maxmemory-policy", "appendonly", "appendfsync"))
    except redis.ResponseError:
        return {}
    except (redis.RedisError, OSError) as failure:
        raise translate(failure) from failure
    return {_text(name): _text(value) for name, value in raw.items()}


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])
