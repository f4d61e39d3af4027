// Package hosts tests teams on several machines: hosts that run agents, hubs that share a record, and moves between them.
package hosts

import (
	"testing"

	"orchestrator/cmd/orchestrator/e2e/stage"
)

func TestMain(m *testing.M) { stage.Main(m, nil) }
