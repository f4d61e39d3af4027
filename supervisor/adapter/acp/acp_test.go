package acp

import (
	"testing"

	"orchestrator/supervisor/adapter"
	"orchestrator/supervisor/adapter/internal/play"
)

// TestTranscripts plays lines of real clients, reduced to the members that are read.
func TestTranscripts(t *testing.T) {
	play.Run(t, func() adapter.Client { return New() })
}
