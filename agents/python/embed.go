// Package python holds the library for agents in Python, as pip installs it.
package python

import "embed"

// Files has the files of the Python package.
//
//go:embed pyproject.toml _build.py README.md LICENSE orchestrator_agent/*.py orchestrator_agent/*/*.py orchestrator_agent/py.typed
var Files embed.FS
