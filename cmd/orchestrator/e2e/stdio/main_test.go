// Package stdio tests messages between agents and the orchestrator over stdin and stdout, and the protocols of editors and
// models: ACP and MCP.
package stdio

import (
	"testing"

	"orchestrator/cmd/orchestrator/e2e/stage"
)

func TestMain(m *testing.M) { stage.Main(m, nil) }
