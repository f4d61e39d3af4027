package history

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/mail"
	"orchestrator/wire/session"
)

// shelf is a log in memory: record n at n-1.
type shelf []wire.Record

func (s shelf) Record(seq int64) (wire.Record, error) {
	if seq < 1 || seq > int64(len(s)) {
		return wire.Record{}, fmt.Errorf("record %d is gone", seq)
	}
	return s[seq-1], nil
}

func (s shelf) Find(search wire.Search) iter.Seq2[wire.Record, error] {
	return func(yield func(wire.Record, error) bool) {
		for _, r := range s {
			if (search.Archived || slices.Contains(search.To, r.To)) && r.Seq > search.After && (search.Until == 0 || r.Seq <= search.Until) && !yield(r, nil) {
				return
			}
		}
	}
}

func (s shelf) After(seq int64) iter.Seq2[wire.Record, error] {
	return func(yield func(wire.Record, error) bool) {
		for _, r := range s[seq:] {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// done is a fact of a test: the end of a task.
type done struct{ result wire.Raw }

func (d done) FillIn(t *wire.Task, _ *wire.Record) { t.Result = d.result }
func (d done) Delivers() wire.Raw                  { return d.result }
func (d done) Made() []delegation.Artifact {
	return []delegation.Artifact{{Name: "a", Type: "text/plain", Content: "c"}}
}

// said is a fact of a test: a message of a session.
type said struct{ chain, to string }

func (s said) Entry(e *session.Entry) string {
	e.Chain, e.Document = s.chain, wire.Raw(`{}`)
	return s.to
}

// shelved is a fact of a test: a task that is only in the log.
type shelved struct{ created int64 }

func (s shelved) Archived() (v *wire.Task, created int64, conversation string, err error) {
	return &wire.Task{ID: fmt.Sprintf("a-%d", s.created)}, s.created, "", nil
}

// logOf returns a Log with some facts, each in a separate record.
func logOf(facts ...any) Log {
	var s shelf
	for i := range facts {
		s = append(s, wire.Record{Seq: int64(i + 1), To: "session:s", Correlation: "t-1", Kind: "test"})
	}
	return Log{Archive: s, Decode: func(r *wire.Record) (any, error) {
		if facts[r.Seq-1] == nil {
			return nil, errors.New("a record of another version")
		}
		return facts[r.Seq-1], nil
	}}
}

// TestCompleteTask checks the members that are filled in, and that the given answer stays
// unchanged.
func TestCompleteTask(t *testing.T) {
	l := logOf(done{wire.Raw(`{"contracts":{"api":{"status":"fulfilled","data":{"a":1}}}}`)}, 7, nil)
	given := &wire.TaskReply{Task: wire.Task{ID: "t-1", ResolvedInputs: wire.Inputs{{Key: "api"}}, Links: []wire.Link{{LeftOut: true}}}}
	page := Page{Task: "t-1", Ended: 1, Inputs: []Input{{Key: "api", Ended: 1}}, Results: []Result{{Link: 0, Ended: 1}}}
	whole, err := l.Complete(given, []Page{page})
	require.NoError(t, err)
	task := whole.(*wire.TaskReply).Task
	require.NotEmpty(t, task.Result)
	require.Equal(t, task.Result, task.Links[0].Result)
	require.False(t, task.Links[0].LeftOut)
	require.Nil(t, given.Task.Result)
	require.True(t, given.Task.Links[0].LeftOut)

	for what, page := range map[string]Page{
		"is gone": {Task: "t-1", Ended: 9}, "another version": {Task: "t-1", Ended: 3}, "not about task": {Task: "t-2", Ended: 1},
		"not the end": {Task: "t-1", Inputs: []Input{{Key: "api", Ended: 2}}},
	} {
		_, err := l.Complete(given, []Page{page})
		require.ErrorContains(t, err, what)
	}
	_, err = l.Complete(&wire.NoteList{}, []Page{{Notes: []int64{1}}})
	require.ErrorContains(t, err, "is no note")
	_, err = l.Complete(&wire.TaskAnswer{}, []Page{{Response: 1}})
	require.ErrorContains(t, err, "keeps no line")
	answer, err := l.Complete(&wire.TaskAnswer{Document: wire.Raw(`{"id":"t-1","status":"completed","result":{}}`)}, []Page{{Task: "t-1", Ended: 1}})
	require.NoError(t, err)
	require.Contains(t, string(answer.(*wire.TaskAnswer).Document), `"artifacts":[{"name":"a","type":"text/plain","content":"c"}]`)
	same, err := l.Complete(&wire.Nothing{}, nil)
	require.NoError(t, err)
	require.Equal(t, &wire.Nothing{}, same)
}

// TestArchivedPage checks that tasks beyond the limit of a list are counted, and that their records are not decoded if
// their ids tell whether they count.
func TestArchivedPage(t *testing.T) {
	log := logOf(shelved{1}, shelved{3}, shelved{5}, shelved{6}, shelved{7}, shelved{8})
	for i := range log.Archive.(shelf) {
		r := &log.Archive.(shelf)[i]
		f, err := log.Decode(r)
		require.NoError(t, err)
		r.Correlation = fmt.Sprintf("a-%d", f.(shelved).created)
	}
	decode, decoded := log.Decode, 0
	log.Decode = func(r *wire.Record) (any, error) {
		decoded++
		return decode(r)
	}
	page := &ArchivedPage{
		Takes:   func(v *wire.Task, _ string) bool { return v.ID != "a-6" },
		Present: map[string]bool{"a-6": true},
		Created: []int64{2, 4, 9}, Limit: 3, Most: 100,
	}
	inMemory := &wire.TaskList{Tasks: []wire.Task{{ID: "m-2"}, {ID: "m-4"}, {ID: "m-9"}}, More: 1}
	ask := func() (ids []string, more int64) {
		answer, err := log.Complete(inMemory, []Page{{Archived: page}})
		require.NoError(t, err)
		for _, v := range answer.(*wire.TaskList).Tasks {
			ids = append(ids, v.ID)
		}
		return ids, answer.(*wire.TaskList).More
	}
	ids, more := ask()
	require.Equal(t, []string{"a-1", "m-2", "a-3"}, ids)
	require.Equal(t, int64(6), more)
	require.Equal(t, 6, decoded)
	page.Whole, decoded = true, 0
	again, moreAgain := ask()
	require.Equal(t, ids, again)
	require.Equal(t, more, moreAgain)
	require.Equal(t, 2, decoded)
}

// TestSessionPage checks the limit and the filters of a page.
func TestSessionPage(t *testing.T) {
	l := logOf(said{"c", "dev"}, said{"d", "dev"}, 7, said{"c", "boss"}, said{"c", "dev"})
	read := func(p SessionPage) *wire.SessionView {
		p.Session = "session:s"
		v, err := l.Complete(&wire.SessionView{}, []Page{{Session: &p}})
		require.NoError(t, err)
		return v.(*wire.SessionView)
	}
	v := read(SessionPage{Limit: 2})
	require.Len(t, v.Messages, 2)
	require.True(t, v.More)
	v = read(SessionPage{Limit: 9, After: v.Next})
	require.Len(t, v.Messages, 2)
	require.False(t, v.More)
	require.Equal(t, int64(5), v.Next)
	require.Len(t, read(SessionPage{Limit: 9, Chain: "c", To: "dev"}).Messages, 2)
	require.Len(t, read(SessionPage{Limit: 9, Until: 1}).Messages, 1)
	require.Empty(t, read(SessionPage{Limit: 9, Task: "t-2"}).Messages)
}

// TestReadMail checks that a page has the messages of an actor and the broadcasts of other actors,
// up to its limit or its size.
func TestReadMail(t *testing.T) {
	var s shelf
	for i, to := range []string{"PO:one", mail.Broadcast, "PO:two", "PO:one"} {
		s = append(s, wire.Record{Seq: int64(i + 1), From: "GO", To: to, Topic: mail.TopicDirect, Payload: wire.Raw(`{"a":1}`)})
	}
	messages, seen, more, err := ReadMail(MailIn(s), MailPage{Actor: "PO:one", Limit: 9}, 1<<20)
	require.NoError(t, err)
	require.Len(t, messages, 3)
	require.Equal(t, int64(4), seen)
	require.False(t, more)
	messages, seen, more, err = ReadMail(MailIn(s), MailPage{Actor: "PO:one", Limit: 2}, 1<<20)
	require.NoError(t, err)
	require.Len(t, messages, 2)
	require.Equal(t, int64(2), seen)
	require.True(t, more)
	messages, _, more, err = ReadMail(MailIn(s), MailPage{Actor: "PO:one", Limit: 9}, 1)
	require.NoError(t, err)
	require.Len(t, messages, 1, "a larger message is a page by itself")
	require.True(t, more)
	messages, _, _, err = ReadMail(MailIn(s), MailPage{Actor: "GO", Limit: 9}, 1<<20)
	require.NoError(t, err)
	require.Empty(t, messages, "broadcasts of the actor itself")
}
