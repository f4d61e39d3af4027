package bus

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/mail"
)

// TestKeys checks that the latest keys are known. For any other key, forgotten or never
// used, only a lookup in the log can tell.
//
// Rows: E-16, E-17.
func TestKeys(t *testing.T) {
	const many = MaxKeys + 100
	k := NewKeys(0)
	for seq := int64(1); seq <= many; seq++ {
		k.Keep("PO:one", fmt.Sprint(seq), Sent{Seq: 2 * seq})
		k.Keep("PO:one", "", Sent{Seq: 2*seq + 1})
	}
	require.NoError(t, k.Check())
	find := func(from, key string, looked int64) []any {
		what, sure := k.find(from, key, looked)
		return []any{what.Seq, sure}
	}
	require.Equal(t, []any{int64(2 * many), true}, find("PO:one", fmt.Sprint(many), 0))
	require.Equal(t, []any{int64(202), true}, find("PO:one", "101", 0), "the oldest that is known")
	require.Equal(t, []any{int64(0), false}, find("PO:one", "100", 199), "it was sent behind that look, and forgotten")
	require.Equal(t, []any{int64(0), true}, find("PO:one", "another", 200), "it would have been found, or be known")
	require.Equal(t, []any{int64(0), true}, find("PO:two", fmt.Sprint(many), 200), "another's key is another")
}

// TestBefore checks when a lookup in the log suffices.
func TestBefore(t *testing.T) {
	k := NewKeys(10)
	before := func(l wire.Lookup, key string) []any {
		what, sure := k.Before(&l, "PO:one", key)
		return []any{what, sure}
	}
	require.Equal(t, []any{Sent{}, true}, before(wire.Lookup{}, ""), "it has no key")
	require.Equal(t, []any{Sent{}, false}, before(wire.Lookup{Sender: "PO:two", Looked: 20}, "k"), "it was looked up for another")
	require.Equal(t, []any{Sent{Seq: 5, Sum: 7}, true}, before(wire.Lookup{Sender: "PO:one", Before: 5, Sum: 7}, "k"))
	require.Equal(t, []any{Sent{}, false}, before(wire.Lookup{Sender: "PO:one", Looked: 9}, "k"), "the lookup is too old")
	require.Equal(t, []any{Sent{}, true}, before(wire.Lookup{Sender: "PO:one", Looked: 10}, "k"))
}

// owner owns an actor in a test.
type owner struct{}

// TestDirectory checks known actors, expected heartbeats, and that a Directory is restored from its
// actors.
func TestDirectory(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	d := NewDirectory[owner]()
	one, two := d.Enter("PO:one", 1), d.Enter("PO:two", 2)
	require.Same(t, one, d.Enter("PO:one", 3))
	two.Agent = new(owner)
	require.True(t, d.Remote("PO:one"))
	require.False(t, d.Remote("PO:two") || d.Remote("PO:three"))

	d.Beat(one, noon.Add(time.Second), true)
	d.Watch(two, noon)
	require.Equal(t, []*Actor[owner]{two, one}, []*Actor[owner](d.Expected()))
	d.Beat(two, noon, false)
	require.Equal(t, []*Actor[owner]{one}, []*Actor[owner](d.Expected()))
	require.NoError(t, d.Check())

	d.Arrived(&wire.Record{Seq: 4, To: "PO:one", Topic: mail.TopicDirect})
	require.Equal(t, int64(4), one.Latest)

	again := NewDirectory[owner]()
	require.True(t, again.Restore(d.All(), d.Met()))
	require.NoError(t, again.Check())
	require.Equal(t, d.All(), again.All())
	require.False(t, again.Restore([]*Actor[owner]{one}, d.Met()), "GO is missing")
	require.False(t, again.Restore(append(d.All(), one), d.Met()), "it is there twice")

	d.Leave(two)
	d.Drop("PO:one")
	require.Empty(t, d.Expected())
	require.Nil(t, d.Actor("PO:two"))
	require.NoError(t, d.Check())
}

// TestTopics checks the warnings about senders and recipients that do not fit a topic.
func TestTopics(t *testing.T) {
	require.Len(t, Topics(), len(topics))
	require.Nil(t, Topic("another"))
	for _, c := range []struct{ from, to, topic, warning string }{
		{mail.Global, "PO:one", mail.TopicTaskAssigned, ""},
		{"PO:one", "PO:two", mail.TopicTaskAssigned, "is for GO to send"},
		{"PO:one", "PO:two", mail.TopicTaskFailed, "is for GO, and this is to PO:two"},
		{mail.Bus, mail.Global, mail.TopicAlertFired, ""},
		{"PO:one", "PO:two", "another", ""},
	} {
		odd := Misdirected(c.from, &wire.SendMessage{To: c.to, Topic: c.topic})
		require.Contains(t, odd, c.warning)
		require.Equal(t, c.warning == "", odd == "")
	}
}
