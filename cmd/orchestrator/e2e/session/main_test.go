// Package session tests sessions and delegated work, as their members and monitors see them.
package session

import (
	"testing"

	"orchestrator/cmd/orchestrator/e2e/stage"
)

func TestMain(m *testing.M) { stage.Main(m, map[string]func(){"acp-member": acpMember}) }
