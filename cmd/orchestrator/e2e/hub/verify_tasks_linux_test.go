package hub

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
)

// A planner may complete the task of another agent. The completion is verified as well.
func TestVerifyForAPlanner(t *testing.T) {
	t.Parallel()
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+`
agent "coder" {
  command = ["scripted", "coder"]
  verify  = [["test", "-e", "ok"]]
  capabilities {
    languages = ["go"]
  }
}
`+planner, "coder", "boss")
	h.Open("coder", "boss")
	ann, boss := h.Person(), h.AgentCaller("boss")
	id := create(ann, wanting("x", "go"))
	matched(ann, id)
	boss.Gets(nil, "POST /server/tasks/"+id+"/start", "")
	refused := boss.Fails(http.StatusConflict, "conflict", "POST /server/tasks/"+id+"/complete", `{"result":{"a":1}}`)
	require.Contains(t, refused.Error.Message, "not verified")
	require.Equal(t, "running", taskOf(ann, id).Status)
	h.Write("ok", "")
	boss.Gets(nil, "POST /server/tasks/"+id+"/complete", `{"result":{"a":1}}`)
	require.Equal(t, "done", taskOf(ann, id).Status)
	h.Stop()
}
