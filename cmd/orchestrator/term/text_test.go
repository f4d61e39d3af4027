package term

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                     "0.0s",
		430 * time.Millisecond:                "0.4s",
		31 * time.Second:                      "31s",
		4*time.Minute + 2*time.Second:         "4m02s",
		5 * time.Minute:                       "5m",
		12*time.Minute + 10*time.Second:       "12m",
		62 * time.Minute:                      "1h02m",
		49*time.Hour + 20*time.Minute:         "2d01h",
		-time.Second:                          "-",
		59*time.Second + 900*time.Millisecond: "59s",
	} {
		require.Equal(t, want, Duration(d), d.String())
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0B", 999: "999B", 4200: "4.1K", 32505856: "31M", 1288490188: "1.2G", 1023 << 20: "1.0G"} {
		require.Equal(t, want, Bytes(n))
	}
}

// Text is cut at the width of the terminal, never inside a character.
func TestClip(t *testing.T) {
	require.Equal(t, "short", Clip("short", 5))
	require.Equal(t, "shor…", Clip("shorter", 5))
	require.Equal(t, "写…", Clip("写手写手", 4))
	require.Equal(t, "写手  ", Pad("写手", 6))
}

// Untrusted text is escaped and put on one line.
func TestOneLine(t *testing.T) {
	require.NotContains(t, OneLine("a\n\x1b[2J\u202eb"), "\x1b")
	require.Equal(t, "a b", OneLine(" a\n\tb "))
}

// A bar has its fixed length for any progress.
func TestBar(t *testing.T) {
	for progress, want := range map[float64]string{-1: "-----", 0: "-----", 0.5: "###--", 1: "#####", 7: "#####"} {
		require.Equal(t, want, Bar(progress, 5))
	}
}
