"""Builds the package by PEP 517, with nothing but Python: so pip installs it without a network."""

import base64
import hashlib
import io
import os
import tarfile
import zipfile

NAME = "orchestrator_agent"  # of the package and of its files
HERE = os.path.dirname(os.path.abspath(__file__))


def _setting(key):
    """Returns a text of pyproject.toml. Python before 3.11 cannot read TOML."""
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as file:
        for line in file:
            name, _, value = line.partition(" = ")
            if name == key:
                return value.strip().strip('"')
    raise KeyError(key)


def _read(name):
    with open(os.path.join(HERE, name), "rb") as file:
        return file.read()


def _metadata():
    head = [
        "Metadata-Version: 2.1", "Name: orchestrator-agent", "Version: " + _setting("version"), "Summary: " + _setting("description"),
        "License: MIT", "Requires-Python: " + _setting("requires-python"), "Classifier: Typing :: Typed",
        "Description-Content-Type: text/markdown", "", "",
    ]
    return "\n".join(head).encode() + _read("README.md")


def _sources():
    for folder, folders, files in os.walk(os.path.join(HERE, NAME)):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            yield os.path.relpath(os.path.join(folder, name), HERE).replace(os.sep, "/")


def _wheel(folder, files):
    """Writes a wheel with files, and what installers want to know of it."""
    stem = NAME + "-" + _setting("version")
    about = stem + ".dist-info/"
    files = dict(files)
    files[about + "METADATA"] = _metadata()
    files[about + "LICENSE"] = _read("LICENSE")
    files[about + "WHEEL"] = b"Wheel-Version: 1.0\nGenerator: orchestrator\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = ""
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(text)}\n"
    files[about + "RECORD"] = (record + about + "RECORD,,\n").encode()
    wheel = stem + "-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)  # without the time, so that equal ones are equal
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _wheel(wheel_directory, {name: _read(name) for name in _sources()})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _wheel(wheel_directory, {NAME + ".pth": (HERE + "\n").encode()})


def build_sdist(sdist_directory, config_settings=None):
    stem = NAME + "-" + _setting("version")
    files = {name: _read(name) for name in ["pyproject.toml", "README.md", "LICENSE", "_build.py", *_sources()]}
    files["PKG-INFO"] = _metadata()
    with tarfile.open(os.path.join(sdist_directory, stem + ".tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(stem + "/" + name)
            entry.size, entry.mode = len(text), 0o644
            archive.addfile(entry, io.BytesIO(text))
    return stem + ".tar.gz"
