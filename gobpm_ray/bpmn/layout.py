"""Where a model's elements stand in a drawing that nobody made: columns from left to right, each scope in a box.

It knows sizes and positions and nothing of XML. A node stands one column behind the last one that leads to it, loops
apart; boundary events sit on the lower border of their activity; a sub-process is as large as its inside.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gobpm_ray.model.elements import (
    Activity,
    BoundaryEvent,
    ComplexGateway,
    EventBasedGateway,
    ExclusiveGateway,
    FlowNode,
    InclusiveGateway,
    ParallelGateway,
    Process,
    SequenceFlow,
    SubProcess,
)

EVENT, GATEWAY, TASK_WIDTH, TASK_HEIGHT = 36, 50, 100, 80
COLUMN_GAP, ROW_GAP, PADDING = 60, 40, 40
_GATEWAYS = (ExclusiveGateway, ParallelGateway, InclusiveGateway, ComplexGateway, EventBasedGateway)

Point = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Box:
    x: int
    y: int
    width: int
    height: int

    def moved(self, x: int, y: int) -> Box:
        return Box(self.x + x, self.y + y, self.width, self.height)

    @property
    def left(self) -> Point:
        return self.x, self.y + self.height // 2

    @property
    def right(self) -> Point:
        return self.x + self.width, self.y + self.height // 2

    @property
    def bottom(self) -> Point:
        return self.x + self.width // 2, self.y + self.height


@dataclass(slots=True)
class Layout:
    boxes: dict[str, Box] = field(default_factory=dict)
    """node id -> its box, in coordinates of the whole drawing"""
    routes: dict[str, list[Point]] = field(default_factory=dict)
    """flow id -> its way"""


def lay_out(process: Process) -> Layout:
    """Every node's box and every flow's way."""
    return _Drawing(process).layout()


_DATA_SIZES = {"dataObject": (36, 50), "dataStore": (50, 50)}


def data_row(layout: Layout, data: Mapping[str, str]) -> dict[str, Box]:
    """A box for each reference to data (id -> kind), from left to right under everything that is laid out."""
    below = max((box.y + box.height for box in layout.boxes.values()), default=0) + 2 * ROW_GAP
    x, found = 2 * PADDING, {}
    for reference, kind in data.items():
        width, height = _DATA_SIZES[kind]
        found[reference] = Box(x, below, width, height)
        x += width + COLUMN_GAP
    return found


class _Drawing:
    def __init__(self, process: Process) -> None:
        self._process = process
        self._inside: defaultdict[str, list[FlowNode]] = defaultdict(list)
        self._boundaries: defaultdict[str, list[BoundaryEvent]] = defaultdict(list)
        for node in process.nodes.values():
            if isinstance(node, BoundaryEvent) and node.attached_to in process.nodes:
                self._boundaries[node.attached_to].append(node)
            else:
                self._inside[node.scope if node.scope in process.nodes else process.id].append(node)
        self._sizes: dict[str, tuple[int, int]] = {}
        self._places: dict[str, Box] = {}
        """node id -> its box, relative to its scope's"""

    def layout(self) -> Layout:
        scopes = self._scopes()
        for scope in reversed(scopes):
            self._sizes[scope] = self._place(scope)
        layout = Layout()
        origins: dict[str, Point] = {self._process.id: (PADDING, PADDING)}
        for scope in scopes:
            x, y = origins[scope]
            for node in self._inside[scope]:
                box = layout.boxes[node.id] = self._places[node.id].moved(x, y)
                origins[node.id] = (box.x, box.y)
                self._on_border(node, box, layout)
        for flow in self._process.flows.values():
            if flow.source in layout.boxes and flow.target in layout.boxes:
                layout.routes[flow.id] = self._route(flow, layout)
        return layout

    def _scopes(self) -> list[str]:
        """Every scope behind the one that it lies in."""
        scopes = [self._process.id]
        for scope in scopes:
            scopes.extend(node.id for node in self._inside[scope] if isinstance(node, SubProcess))
        return scopes

    def _place(self, scope: str) -> tuple[int, int]:
        """The nodes of one scope stand in columns; gives the size that they need."""
        nodes = self._inside[scope]
        columns: defaultdict[int, list[FlowNode]] = defaultdict(list)
        ranks = self._ranks(nodes)
        for node in nodes:
            columns[ranks[node.id]].append(node)
        x, height = PADDING, 0
        for rank in sorted(columns):
            sizes = [self._size(node) for node in columns[rank]]
            width = max(size[0] for size in sizes)
            y = PADDING
            for node, (own_width, own_height) in zip(columns[rank], sizes, strict=True):
                # Events and gateways hang on the middle line of tasks.
                down = max(0, (TASK_HEIGHT - own_height) // 2)
                self._places[node.id] = Box(x + (width - own_width) // 2, y + down, own_width, own_height)
                y += max(own_height, TASK_HEIGHT) + ROW_GAP + (EVENT if self._boundaries[node.id] else 0)
            height = max(height, y)
            x += width + COLUMN_GAP
        return max(x - COLUMN_GAP + PADDING, 2 * TASK_WIDTH), max(height - ROW_GAP + PADDING, 2 * TASK_HEIGHT)

    def _size(self, node: FlowNode) -> tuple[int, int]:
        if isinstance(node, SubProcess):
            return self._sizes[node.id]
        if isinstance(node, Activity):
            return TASK_WIDTH, TASK_HEIGHT
        return (GATEWAY, GATEWAY) if isinstance(node, _GATEWAYS) else (EVENT, EVENT)

    def _on_border(self, node: FlowNode, box: Box, layout: Layout) -> None:
        for number, boundary in enumerate(self._boundaries[node.id], 1):
            middle = box.x + box.width - number * (EVENT + EVENT // 3)
            layout.boxes[boundary.id] = Box(max(middle, box.x), box.y + box.height - EVENT // 2, EVENT, EVENT)

    def _following(self, node: FlowNode) -> Iterator[str]:
        for source in (node, *self._boundaries[node.id]):
            for flow in source.outgoing:
                if flow in self._process.flows:
                    yield self._process.flows[flow].target
            if isinstance(source, BoundaryEvent) and source.handler:
                yield source.handler

    def _ranks(self, nodes: list[FlowNode]) -> dict[str, int]:
        """The column of each node: the longest way to it, along flows that do not lead back."""
        here = {node.id: list(self._following(node)) for node in nodes}
        order: list[str] = []
        state: dict[str, int] = {}
        forward: defaultdict[str, list[str]] = defaultdict(list)
        for root in sorted(nodes, key=lambda node: bool(node.incoming)):
            path = [(root.id, iter(here[root.id]))] if root.id not in state else []
            state.setdefault(root.id, 1)
            while path:
                current, targets = path[-1]
                target = next(targets, None)
                if target is None:
                    state[current] = 2
                    order.append(current)
                    path.pop()
                elif target in here:
                    if state.get(target) != 1:
                        forward[current].append(target)
                    if target not in state:
                        state[target] = 1
                        path.append((target, iter(here[target])))
        ranks = dict.fromkeys(here, 0)
        for current in reversed(order):
            for target in forward[current]:
                ranks[target] = max(ranks[target], ranks[current] + 1)
        return ranks

    def _route(self, flow: SequenceFlow, layout: Layout) -> list[Point]:
        source, target = layout.boxes[flow.source], layout.boxes[flow.target]
        if isinstance(self._process.nodes[flow.source], BoundaryEvent):
            start, end = source.bottom, target.left
            return [start, (start[0], end[1]), end] if end[0] > start[0] else self._below(start, target)
        start, end = source.right, target.left
        if end[0] <= start[0]:
            return self._below(source.bottom, target)
        middle = end[0] - COLUMN_GAP // 2
        return [start, end] if start[1] == end[1] else [start, (middle, start[1]), (middle, end[1]), end]

    def _below(self, start: Point, target: Box) -> list[Point]:
        """A way back: under both ends."""
        end = target.bottom
        low = max(start[1], end[1]) + ROW_GAP // 2
        return [start, (start[0], low), (end[0], low), end]
