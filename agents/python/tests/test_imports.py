"""The imports of the package: they form no circle."""

from __future__ import annotations

import ast
import unittest
from pathlib import Path
from typing import Dict, List, Optional, Set

import orchestrator_agent as sdk

HOME = Path(sdk.__file__).parent


def imports_of(file: Path) -> Set[str]:
    """Returns the modules of the package that a module imports. Imports for type checkers and
    those inside functions count as well."""
    package = [HOME.name, *file.relative_to(HOME).parts[:-1]]
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            origin = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
            found |= {".".join(origin)} if node.module else {".".join([*origin, alias.name]) for alias in node.names}
    return found


def graph() -> Dict[str, Set[str]]:
    """Returns the imports of each module."""
    modules = {}
    for file in sorted(HOME.rglob("*.py")):
        parts = [HOME.name, *file.relative_to(HOME).with_suffix("").parts]
        modules[".".join(part for part in parts if part != "__init__")] = imports_of(file)
    return modules


def circle_in(modules: Dict[str, Set[str]]) -> Optional[List[str]]:
    """Returns the modules of a circle in order, or None."""
    done: Set[str] = set()

    def visit(module: str, way: List[str]) -> Optional[List[str]]:
        if module in way:
            return [*way[way.index(module):], module]
        if module in done:
            return None
        found = next(filter(None, (visit(each, [*way, module]) for each in sorted(modules.get(module, ())))), None)
        done.add(module)
        return found

    return next(filter(None, (visit(module, []) for module in modules)), None)


class TestImports(unittest.TestCase):
    def test_modules_are_known(self) -> None:
        modules = graph()
        unknown = {each for imports in modules.values() for each in imports} - set(modules)
        self.assertEqual(unknown, set())
        self.assertGreater(len(modules), 20)

    def test_no_circle(self) -> None:
        self.assertEqual(circle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}}), ["b", "c", "b"])
        circle = circle_in(graph())
        self.assertIsNone(circle, " imports ".join(circle or []))


if __name__ == "__main__":
    unittest.main()
