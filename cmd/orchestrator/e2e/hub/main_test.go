// Package hub tests the HTTP API for people, agents and servers, and the bus.
package hub

import (
	"testing"

	"orchestrator/cmd/orchestrator/e2e/stage"
)

func TestMain(m *testing.M) { stage.Main(m, nil) }
