// Package journeys plays scripts that cross features, as users do.
package journeys

import (
	"testing"

	"orchestrator/cmd/orchestrator/e2e/stage"
)

func TestMain(m *testing.M) { stage.Main(m, map[string]func(){"acp-coder": acpCode}) }
