"""Data stores of the engine as people and programs outside its processes see them: listed, read, set, dropped.

A process declares a data store when it is deployed, and what it says of it, its type and its capacity, is what an
operator's write is held to; of several processes the one deployed last. This module knows requests and refusals; how a
step writes is `gobpm_ray.runtime.stored_data`.
"""

from __future__ import annotations

import json
from typing import Any

from gobpm_ray.core.shapes import require_fit, store_shape
from gobpm_ray.engine.reading import Reading
from gobpm_ray.engine.views import DataStoreView
from gobpm_ray.errors import InputError, UnknownDataStore
from gobpm_ray.model.data import DataStore, ItemType
from gobpm_ray.model.elements import Process
from gobpm_ray.runtime.ports import DataRow, Store
from gobpm_ray.runtime.stored_data import decoded_data, encoded_data
from gobpm_ray.secret import HIDDEN, revealed

DECLARED = "stores"
"""The store's table of what processes say of their data stores: name -> JSON."""
LONGEST_NAME = 200


class DataStores(Reading):
    """See the module's docstring."""

    def data_stores(self) -> list[DataStoreView]:
        """Every data store that holds something or that a deployed process declares, by name; without the values."""
        held = {row.name: row for row in self.store.all_data()}
        names = sorted({*held, *self.store.values(DECLARED)})
        return [_view(name, held.get(name), self._declaration(name), shown=False) for name in names]

    def data_store(self, name: str) -> DataStoreView:
        """What the data store holds: `value`, None while nobody has written it. UnknownDataStore: it holds nothing, and
        no deployed process declares it. A value in which a process has written a secret is hidden."""
        row, declaration = self.store.read_data([name]).get(name), self._declaration(name)
        if row is None and declaration is None:
            known = ", ".join(one.name for one in self.data_stores()[:10])
            raise UnknownDataStore(f"data store {name!r}: unknown ({f'known: {known}' if known else 'there is none'})")
        return _view(name, row, declaration, shown=True)

    def set_data_store(self, name: str, value: Any, *, version: int | None = None) -> DataStoreView:
        """The data store holds this value from now on; processes that read it later see it. `version`: only if it still
        has the version that `data_store` gave, DataStoreChanged otherwise. A `Secret`, or anything with one
        inside, is shown to nobody. Mistyped, LimitReached by what is declared."""
        declaration = self._declaration(_checked_name(name))
        opened, marked = revealed({name: value})
        if declaration is not None:
            require_fit(store_shape(_declared_store(name, declaration)), opened[name])
        encoded = encoded_data(opened[name], name)
        self.store.write_data(name, encoded, -1 if version is None else version, secret=bool(marked))
        return self.data_store(name)

    def drop_data_store(self, name: str) -> None:
        """The data store holds nothing any more: who reads it reads null. UnknownDataStore: it held nothing."""
        if not self.store.drop_data(name):
            raise UnknownDataStore(f"data store {name!r}: it holds nothing")

    def _declaration(self, name: str) -> dict[str, Any] | None:
        row = self.store.get_value(DECLARED, name)
        return None if row is None else json.loads(row)


def declare_stores(store: Store, process: Process) -> None:
    """Whoever sets a data store of the process by hand is held to what it says of it."""
    for each in process.stores:
        said: dict[str, Any] = {"process": process.id}
        if each.capacity:
            said["capacity"] = each.capacity
        if each.item is not None:
            item = each.item
            said["item"] = {"simple": item.simple, "schema": item.schema, "collection": item.collection}
        if each.name in process.secrets:
            said["secret"] = True
        store.put_value(DECLARED, each.name, json.dumps(said, ensure_ascii=False).encode())


def _declared_store(name: str, said: dict[str, Any]) -> DataStore:
    item = ItemType(**said["item"]) if "item" in said else None
    return DataStore(name, said.get("capacity", 0), item)


def _checked_name(name: str) -> str:
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME or any(ord(c) < 32 for c in name):
        raise InputError(
            f"data store {str(name)[:80]!r}: expected 1 to {LONGEST_NAME} characters without control characters"
        )
    return name


def _view(name: str, row: DataRow | None, said: dict[str, Any] | None, *, shown: bool) -> DataStoreView:
    said = said or {}
    hidden = bool(said.get("secret")) or (row is not None and row.secret)
    value: object = None
    if row is not None and shown:
        value = HIDDEN if hidden else decoded_data(row)
    return DataStoreView(
        name=name,
        version=0 if row is None else row.version,
        written_ms=0 if row is None else row.at,
        written_by="" if row is None else row.by,
        bytes=0 if row is None else len(row.value),
        hidden=hidden,
        capacity=said.get("capacity", 0),
        type=_type_text(said.get("item")),
        declared_by=said.get("process", ""),
        value=value,
    )


def _type_text(item: dict[str, Any] | None) -> str:
    if item is None:
        return ""
    one = "JSON schema" if item["schema"] else f"xsd:{item['simple']}" if item["simple"] else "anything"
    return f"list of {one}" if item["collection"] else one
