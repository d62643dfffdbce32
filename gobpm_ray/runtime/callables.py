"""What is registered under a topic: Python callables by reference (`module:function`) or by value, always signed.

It knows the rows of the store's table `code`. It refuses to unpickle anything whose signature does not match: a row
that anyone could have written would be anyone's code. A missing import is an error of the one who asks, and heals when
the callable is deployed again.
"""

from __future__ import annotations

import hmac
import importlib
import inspect
import json
import pickle
import sys
import sysconfig
import time
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from gobpm_ray.errors import InvalidSetting, UnregisteredCallable

Work = Callable[..., object | Awaitable[object]]
"""fn(inputs) -> values | value, or fn(inputs, context); sync or async."""

KEPT_S = 1.0
"""How long a row is believed before it is read again: what a redeployed callable needs to be noticed."""
_OURS = ("gobpm_ray", "actors", "holders")


@dataclass(frozen=True, slots=True)
class EffectContext:
    """What a callable may know of its call, if its second parameter is named `context`."""

    instance_id: str
    node: str
    idempotency_key: str
    """`instance:track:node:visit`: the same for every attempt of this visit."""
    attempt: int


class Callables:
    """Topics resolved to callables. `loader` gives a topic's row; `local` are this process's own, without a row."""

    def __init__(
        self,
        loader: Callable[[str], bytes | None],
        *,
        key: bytes | None = None,
        local: Mapping[str, Work] | None = None,
    ) -> None:
        self._loader = loader
        self._key = key
        self.local: dict[str, Work] = dict(local or {})
        self._seen: dict[str, tuple[float, bytes | None]] = {}
        self._loaded: dict[bytes, Work] = {}

    def resolve(self, topic: str) -> Work | None:
        """The callable; None when nothing is registered. UnregisteredCallable when its row cannot be loaded here."""
        if (work := self.local.get(topic)) is not None:
            return work
        if (row := self.row(topic)) is None:
            return None
        work = self._loaded.get(row)
        if work is None:
            work = self._loaded[row] = load_row(row, self._key, topic)
        return work

    def row(self, topic: str) -> bytes | None:
        """As it is stored, not loaded: what another process that does the work needs."""
        now = time.monotonic()
        until, row = self._seen.get(topic, (0.0, None))
        if until <= now:
            row = self._loader(topic)
            self._seen[topic] = (now + KEPT_S, row)
        return row


# --- rows


def callable_row(work: Work | str, key: bytes | None, working_dir: Path | None = None) -> bytes:
    """The row for a callable that is deployed here: by value for `__main__` and modules under the working directory,
    by reference for what is installed. UnregisteredCallable, naming the module, for what no node could load."""
    if isinstance(work, str):
        return reference_row(_imported(work, "callable"))
    module = sys.modules.get(work.__module__)
    root = (working_dir or Path.cwd()).resolve()
    if work.__module__ == "__main__" or (module is not None and _belongs(module, root)):
        if key is None:
            raise InvalidSetting(
                f"callable {_name(work)}: code stored by value is always signed, and there is no key: "
                f"set GOBPM_SIGNING_KEY, or deploy it as 'module:function' of an installed module"
            )
        return value_row(work, key, root)
    return reference_row(work)


def reference_row(work: Work) -> bytes:
    """By reference: importable under its name on every node, or UnregisteredCallable."""
    name = _name(work)
    module, _, path = name.partition(":")
    if module == "__main__" or "<" in path:
        raise UnregisteredCallable(f"callable {name}: module {module} cannot be imported on another node by this name")
    found = _imported(name, "callable")
    if found is not work:
        raise UnregisteredCallable(f"callable {name}: the module {module} has another object under that name")
    return json.dumps({"ref": name}).encode()


def value_row(work: Work, key: bytes, root: Path | None = None) -> bytes:
    """By value: pickled with every module under `root` (default: the working directory), and signed."""
    import cloudpickle  # type: ignore[import-untyped]

    with _by_value(work, (root or Path.cwd()).resolve()):
        try:
            pickled = cloudpickle.dumps(work)
        except Exception as error:
            raise UnregisteredCallable(f"callable {_name(work)}: cannot be pickled: {_one_line(error)}") from error
    return json.dumps({"pickle": b64encode(pickled).decode(), "mac": _mac(pickled, key)}).encode()


def load_row(row: bytes, key: bytes | None, topic: str = "") -> Work:
    """The callable of a row. UnregisteredCallable names topic and module; nothing unsigned is ever unpickled."""
    where = f"topic '{topic}'" if topic else "callable"
    try:
        document = json.loads(row)
        if "ref" in document:
            return _imported(str(document["ref"]), where)
        pickled, mac = b64decode(document["pickle"], validate=True), str(document["mac"])
    except (ValueError, LookupError, TypeError) as error:
        raise UnregisteredCallable(f"{where}: its stored row is damaged; deploy it again") from error
    if key is None:
        raise UnregisteredCallable(f"{where}: its code is stored by value and this node has no signing key")
    if not hmac.compare_digest(mac, _mac(pickled, key)):
        raise UnregisteredCallable(f"{where}: the signature of its stored code does not match this node's key")
    try:
        work = pickle.loads(pickled)  # noqa: S301 - signed by this engine's key, checked just above
    except ImportError as error:
        raise UnregisteredCallable(
            f"{where}: its code needs a module that is missing here: {_one_line(error)}"
        ) from error
    except Exception as error:
        raise UnregisteredCallable(f"{where}: its stored code cannot be loaded here: {_one_line(error)}") from error
    if not callable(work):
        raise UnregisteredCallable(f"{where}: what is stored for it cannot be called")
    return work  # type: ignore[no-any-return]


# --- how a callable is called


def takes_context(work: Work) -> bool:
    """Its second parameter is named `context`."""
    try:
        parameters = list(inspect.signature(work).parameters)
    except (TypeError, ValueError):
        return False
    return len(parameters) > 1 and parameters[1] == "context"


def is_async(work: Work) -> bool:
    return inspect.iscoroutinefunction(work) or inspect.iscoroutinefunction(getattr(work, "__call__", None))  # noqa: B004


# --- inside


def _name(work: Work) -> str:
    name = getattr(work, "__qualname__", None) or type(work).__qualname__
    return f"{getattr(work, '__module__', None) or type(work).__module__}:{name}"


def _imported(name: str, where: str) -> Work:
    module_name, colon, path = name.partition(":")
    if not (module_name and colon and path):
        raise UnregisteredCallable(f"{where}: {name!r} is not of the form module:function")
    try:
        found: Any = importlib.import_module(module_name)
        for step in path.split("."):
            found = getattr(found, step)
    except ImportError as error:
        raise UnregisteredCallable(
            f"{where}: module {module_name} cannot be imported here: {_one_line(error)}"
        ) from error
    except AttributeError:
        raise UnregisteredCallable(f"{where}: module {module_name} has no {path}") from None
    except Exception as error:
        raise UnregisteredCallable(f"{where}: module {module_name} fails on import: {_one_line(error)}") from error
    if not callable(found):
        raise UnregisteredCallable(f"{where}: {name} cannot be called")
    return found  # type: ignore[no-any-return]


def _belongs(module: ModuleType, root: Path) -> bool:
    """It lies under the deploying job's working directory and is not installed there (a virtual environment may be)."""
    if module.__name__.partition(".")[0] in _OURS:
        return False
    file = getattr(module, "__file__", None)
    if not file:
        return False
    path = Path(file).resolve()
    if not path.is_relative_to(root):
        return False
    installed = (sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
    return not any(path.is_relative_to(Path(folder).resolve()) for folder in installed if folder)


@contextmanager
def _by_value(work: Work, root: Path) -> Iterator[None]:
    """While it lasts, modules under `root` are pickled whole: no other node has this job's working directory."""
    import cloudpickle

    own = sys.modules.get(work.__module__)
    with ExitStack() as stack:
        for module in list(sys.modules.values()):
            if module.__name__ == "__main__" or not (module is own or _belongs(module, root)):
                continue
            if module.__name__ in cloudpickle.list_registry_pickle_by_value():
                continue
            cloudpickle.register_pickle_by_value(module)
            stack.callback(cloudpickle.unregister_pickle_by_value, module)
        yield


def _mac(pickled: bytes, key: bytes) -> str:
    return hmac.new(key, pickled, sha256).hexdigest()


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
