"""The imports of the package: they form no circle, and each layer imports only those below it."""

from __future__ import annotations

import ast
import tempfile
import unittest
import zipfile
from pathlib import Path
from typing import Dict, List, Optional, Set

import _build

#: The package is read and not imported, because a circle can make the import fail.
HOME = Path(__file__).parent.parent / "orchestrator_agent"

#: The folders of the package, from the lowest layer up. The modules outside of them may import all.
LAYERS = ["_wire", "_connection", "_work", "_roles"]


def imports_of(file: Path) -> Set[str]:
    """Returns the modules of the package that a module imports. Imports for type checkers and
    those inside functions count as well."""
    package = [HOME.name, *file.relative_to(HOME).parts[:-1]]
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = base + (node.module.split(".") if node.module else [])
            modules = [alias.name for alias in node.names if is_module([*origin[1:], alias.name])]
            found |= {".".join([*origin, name]) for name in modules} or {".".join(origin)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {each for each in found if each.split(".")[0] == HOME.name}


def is_module(parts: List[str]) -> bool:
    place = HOME.joinpath(*parts)
    return place.is_dir() or place.with_suffix(".py").is_file()


def layer_of(module: str) -> int:
    """Returns the number of a module's layer. The lowest is 0."""
    parts = module.split(".")
    return LAYERS.index(parts[1]) if len(parts) > 1 and (HOME / parts[1]).is_dir() else len(LAYERS)


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

    def test_no_import_upwards(self) -> None:
        upwards = [
            f"{module} imports {each}"
            for module, imports in graph().items() for each in imports if layer_of(each) > layer_of(module)
        ]
        self.assertEqual(upwards, [])

    def test_every_layer_is_installed(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            with zipfile.ZipFile(Path(folder) / _build.build_wheel(folder)) as wheel:
                there = wheel.namelist()
        files = [each.relative_to(HOME.parent).as_posix() for each in HOME.rglob("*") if each.is_file() and each.suffix != ".pyc"]
        self.assertEqual([name for name in files if name not in there], [])
        self.assertEqual(sorted(LAYERS), sorted(each.parent.name for each in HOME.glob("*/__init__.py")))


if __name__ == "__main__":
    unittest.main()
