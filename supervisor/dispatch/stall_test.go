package dispatch

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/wire"
)

var errNoQuorum = &wire.Error{Code: "no_quorum", Message: "nothing can be recorded: h2 and h3 cannot be reached"}

// stalledStage returns a stage with a recorded task, and with a record that accepts no entry until release is called.
func stalledStage(t *testing.T) (d *stage, id string, release func()) {
	record := newLedger()
	d = begin(t, Options{Record: record})
	answer, err := d.Requests().Ask(t.Context(), handlers.Actor{Kind: handlers.Operator}, "submit-task", []byte(`{"type":"t","name":"kept"}`))
	require.NoError(t, err)
	held := make(chan struct{})
	record.meddle(func() error {
		<-held
		return nil
	})
	return d, answer.(*wire.TaskReply).Task.ID, func() { close(held) }
}

// While most hubs cannot be reached, reads show the committed state and do not wait. A request that writes is refused;
// one that was sent before gets another error, because it may be recorded later.
func TestReadsDuringAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, id, release := stalledStage(t)
		person := handlers.Actor{Kind: handlers.Operator}
		sent, read := make(chan error), make(chan int)
		go func() {
			_, err := d.Requests().Ask(t.Context(), person, "submit-task", []byte(`{"type":"t","name":"in flight"}`))
			sent <- err
		}()
		synctest.Wait()
		tasks := func() int {
			answer, err := d.Requests().Ask(t.Context(), person, "query-tasks", nil)
			require.NoError(t, err)
			return len(answer.(*wire.TaskList).Tasks)
		}
		go func() { read <- tasks() }()
		synctest.Wait()
		d.Dispatcher.SetStalled(errNoQuorum)

		err := <-sent
		var refusal *wire.Error
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, wire.CodeTimeout, refusal.Code, "a client must not repeat it at another hub")
		require.Contains(t, refusal.Message, "h2 and h3 cannot be reached")
		require.Equal(t, 1, <-read, "a read that waited")
		require.Equal(t, 1, tasks())
		_, err = d.Requests().Ask(t.Context(), person, "get-task", []byte(`{"taskId":"`+id+`"}`))
		require.NoError(t, err)
		_, err = d.Requests().Ask(t.Context(), person, "submit-task", []byte(`{"type":"t","name":"refused"}`))
		require.Equal(t, errNoQuorum, err)
		why, err := See(t.Context(), d.Dispatcher, func(state *handlers.State, seq int64) {
			require.EqualValues(t, d.last.Load(), seq)
			require.EqualValues(t, d.last.Load(), state.Seq())
		})
		require.NoError(t, err)
		require.Equal(t, errNoQuorum, why)

		release()
		synctest.Wait()
		d.Dispatcher.SetStalled(nil)
		require.Equal(t, 2, tasks(), "what was in flight was recorded")
		d.Close()
	})
}

// A request that another hub's record has overtaken was not recorded, and its caller may send it again.
func TestRequestAtADeposedHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		moved := errors.New("moved")
		record := newLedger()
		record.meddle(func() error { return moved })
		d := begin(t, Options{Record: record, Check: movedCheck{moved, errNoQuorum}})
		for range 2 {
			_, err := d.Requests().Ask(t.Context(), handlers.Actor{Kind: handlers.Operator}, "submit-task", []byte(`{"type":"t","name":"x"}`))
			require.Equal(t, errNoQuorum, err)
		}
		require.ErrorIs(t, <-d.broke, moved)
		d.Close()
	})
}
