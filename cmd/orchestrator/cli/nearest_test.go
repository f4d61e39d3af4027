package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNearest(t *testing.T) {
	verbs := []string{"status", "start", "stop", "restart", "down"}
	for wrong, want := range map[string]string{"stauts": "status", "strat": "start", "reboot": "", "dwon": "down", "x": "", "": ""} {
		require.Equal(t, want, Nearest(wrong, verbs), wrong)
	}
}
