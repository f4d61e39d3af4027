package acp

import (
	"testing"

	"orchestrator/supervisor/adapter"
	"orchestrator/supervisor/adapter/internal/play"
)

// TestTranscripts plays what real clients have said, reduced to the members that are read.
func TestTranscripts(t *testing.T) {
	play.Run(t, func() adapter.Client { return New() })
}
