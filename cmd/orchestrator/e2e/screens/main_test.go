// Package screens tests the displays: the terminal, the web view, the rows of up, notifications, metrics and the audit.
package screens

import (
	"testing"

	"orchestrator/cmd/orchestrator/e2e/stage"
)

func TestMain(m *testing.M) { stage.Main(m, nil) }
