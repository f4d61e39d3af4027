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

// nothing leaves no line out.
func nothing([]byte, int64) bool { return false }

// TestLostBeginning checks that no other hub can continue in the middle of a line without its beginning.
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
	_, fit := s.Restart(nothing)
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
	_, fit := s.Restart(nothing)
	require.False(t, fit)
}

// TestStartedOnce checks that each hub hears once that a run has started.
func TestStartedOnce(t *testing.T) {
	s := NewStream("run")
	for range 2 {
		for range 2 {
			s.Send(&hostlink.Line{Type: hostlink.Started, PID: 42})
		}
		require.Len(t, s.kept, 1)
		s.Restart(nothing)
	}
}

// TestRestartLeavesOut checks that lines of stdout are left out wherever they begin and end.
func TestRestartLeavesOut(t *testing.T) {
	s := NewStream("run")
	says(s, "on")
	says(s, "e\ntwo\nth")
	s.SendRetained(&hostlink.Line{Type: hostlink.Output, Stderr: true, Bytes: []byte("cry\n")})
	says(s, "ree\nfour\nfi")
	s.SendRetained(&hostlink.Line{Type: hostlink.Exited})
	ends := make(map[string]int64)
	_, fit := s.Restart(func(text []byte, n int64) bool {
		ends[string(text)] = n
		return string(text) != "two\n"
	})
	require.True(t, fit)
	require.Equal(t, map[string]int64{"one\n": 2, "two\n": 2, "three\n": 4, "four\n": 4}, ends)
	var said []string
	for _, l := range s.kept {
		said = append(said, l.Type+" "+string(l.Bytes))
	}
	require.Equal(t, []string{"output two\n", "output cry\n", "output fi", "exited "}, said)
}
