package link

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/hostlink"
)

// says sends a piece of stdout as the next line of the stream.
func says(s *Stream, text string) {
	s.SendRetained(&hostlink.Line{Type: hostlink.Output, Bytes: []byte(text)})
}

// TestLostBeginning checks that no other hub can go on in the middle of a line whose beginning is not retained.
func TestLostBeginning(t *testing.T) {
	s := NewStream("run")
	for range 9 {
		says(s, string(bytes.Repeat([]byte("x"), hostlink.MaxPiece)))
	}
	require.False(t, s.Fit())
	require.NoError(t, s.Settle(9))
	require.False(t, s.Fit(), "the line goes on")
	says(s, "end")
	require.NoError(t, s.Settle(10))
	require.False(t, s.Fit())
	says(s, ".\nnext ")
	require.False(t, s.Fit(), "the end is not settled")
	require.NoError(t, s.Settle(11))
	require.True(t, s.Fit())
	_, fit := s.Restart()
	require.True(t, fit)
	require.Equal(t, "next ", string(s.kept[0].Bytes))
}

// TestRestartOfTooMuch checks that Restart reports that lines are missing.
func TestRestartOfTooMuch(t *testing.T) {
	s := NewStream("run")
	says(s, "one\n")
	require.True(t, s.Fit())
	for range 9 {
		says(s, string(bytes.Repeat([]byte("x"), hostlink.MaxPiece-1))+"\n")
	}
	_, fit := s.Restart()
	require.False(t, fit)
}

// TestStartedOnce checks that each hub is told once that a run has started.
func TestStartedOnce(t *testing.T) {
	s := NewStream("run")
	for range 2 {
		for range 2 {
			s.Send(&hostlink.Line{Type: hostlink.Started, PID: 42})
		}
		require.Len(t, s.kept, 1)
		s.Restart()
	}
}
