package handlers

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// readLater checks that the answers of stable operations do not depend on the time.
func (w *world) readLater(from Actor) {
	for _, o := range wire.Operations {
		if !o.Stable {
			continue
		}
		payload := map[string]string{"get-task": fmt.Sprintf(`{"taskId":%q}`, w.someTask()), "query-tasks": `{"limit":5}`}[o.Name]
		require.NotEmpty(w.t, payload, "add a payload for %s", o.Name)
		var answers [2]string
		for i, late := range []time.Duration{0, 48 * time.Hour} {
			r := &wire.Request{ID: "later", Operation: o.Name, Timestamp: object.Timestamp(w.at), Payload: []byte(payload)}
			require.Nil(w.t, prepare(r))
			out := w.state.Handle(Input{At: w.at.Add(late), From: from, Message: r})
			if out.Again || len(out.Letters) == 0 || out.Letters[0].Pages != nil { // not kept
				return
			}
			text, err := wire.AppendPayload(nil, out.Letters[0].Payload)
			require.NoError(w.t, err)
			answers[i] = fmt.Sprint(string(text), out.Letters[0].Refusal)
		}
		require.Equal(w.t, answers[0], answers[1], o.Name)
	}
}
