package trace

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rows: D-13.
func TestTraceparents(t *testing.T) {
	const trace, span = "5b8aa5a2d2c872e8321cf37308d69df2", "051581bf3cb55c13"
	c, ok := Parse("00-" + trace + "-" + span + "-01")
	require.True(t, ok)
	require.Equal(t, Context{TraceID: trace, SpanID: span, Flags: 1}, c)
	require.Equal(t, "00-"+trace+"-"+span+"-01", c.Traceparent())
	c, ok = Parse("00-" + trace + "-" + span + "-fe")
	require.True(t, ok)
	require.Equal(t, byte(0xfe), c.Flags)
	for _, later := range []string{"01-" + trace + "-" + span + "-01", "cc-" + trace + "-" + span + "-01-what.will.be"} {
		c, ok = Parse(later)
		require.True(t, ok, later)
		require.Equal(t, Context{TraceID: trace, SpanID: span, Flags: 1}, c)
	}
	for _, wrong := range []string{
		"", "00", trace, "00-" + trace + "-" + span, "00-" + trace + "-" + span + "-", "00-" + trace + "-" + span + "-1", "00-" + trace + "-" + span + "-001",
		"ff-" + trace + "-" + span + "-01", "0-" + trace + "-" + span + "-01",
		"00-" + trace + "-" + span + "-01-", "00-" + trace + "-" + span + "-01-x", " 00-" + trace + "-" + span + "-01", "00-" + trace + "-" + span + "-01\n",
		"00-" + strings.ToUpper(trace) + "-" + span + "-01", "00-" + trace + "-" + strings.ToUpper(span) + "-01", "00-" + trace + "-" + span + "-0A",
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01", "00-" + trace + "-" + strings.Repeat("0", 16) + "-01",
		"00-" + trace[1:] + "-" + span + "-01", "00-" + trace + "0-" + span + "-01", "00-" + trace + "-" + span[1:] + "-01", "00-" + trace + "-" + span + "0-01",
		"00-" + trace[:31] + "g-" + span + "-01", "00_" + trace + "_" + span + "_01",
	} {
		c, ok := Parse(wrong)
		require.False(t, ok, wrong)
		require.Zero(t, c)
	}
	for _, wrong := range []Context{{}, {TraceID: trace}, {SpanID: span}, {TraceID: "my trace", SpanID: span}, {TraceID: trace, SpanID: trace}} {
		require.Empty(t, wrong.Traceparent())
	}
}

// Rows: D-13.
func TestTraceIDs(t *testing.T) {
	require.True(t, IsID("0000000000000000000000000000000a"))
	require.True(t, IsSpanID("000000000000000a"))
	for _, wrong := range []string{"", strings.Repeat("0", 32), strings.Repeat("0", 16), strings.Repeat("A", 32), strings.Repeat("a", 31), strings.Repeat("é", 16), strings.Repeat("g", 16)} {
		require.False(t, IsID(wrong), wrong)
		require.False(t, IsSpanID(wrong), wrong)
	}
	require.False(t, IsSpanID(strings.Repeat("a", 32)))
	require.False(t, IsID(strings.Repeat("a", 16)))
}

// TestDerivedTraceIDs checks that derived ids are always the same, because other systems store
// them.
//
// Rows: D-13.
func TestDerivedTraceIDs(t *testing.T) {
	seen := make(map[string]bool)
	for _, what := range []string{"", "task-1", "task-2", "task-1\x00", strings.Repeat("x", 1000)} {
		id, span := IDOf([]byte(what)), SpanIDOf([]byte(what))
		require.True(t, IsID(id), id)
		require.True(t, IsSpanID(span), span)
		require.False(t, strings.HasPrefix(id, span))
		require.False(t, seen[id] || seen[span], what)
		seen[id], seen[span] = true, true
	}
	require.Equal(t, "c499d4545b82d6b3fb38c047c5909f3e", IDOf([]byte("task-1")))
	require.Equal(t, "6d1d3d293fee4327", SpanIDOf([]byte("task-1")))
}
