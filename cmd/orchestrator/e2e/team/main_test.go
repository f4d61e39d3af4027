// Package team tests the orchestrator as a supervisor of processes: limits, restarts, upgrades, confinement, workspaces, the
// record and the merge queue.
package team

import (
	"testing"

	"orchestrator/cmd/orchestrator/e2e/stage"
)

func TestMain(m *testing.M) { stage.Main(m, nil) }
