package supervisor

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/settings"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// taskFor returns a request to submit a task for a worker.
func taskFor(id string) string {
	return request(id, "submit-task", fmt.Sprintf(`{"type":"t","name":%q,"requiredRole":"worker"}`, id))
}

// obliging completes every task that it is assigned, and calls first at the first one.
func obliging(first func(r *player)) part {
	return func(r *player) int {
		for line := r.read(); line != ""; line = r.read() {
			var m struct {
				Type    string
				Payload struct{ TaskID string }
			}
			if json.Unmarshal([]byte(line), &m) != nil || m.Type != "notify:task-assigned" {
				continue
			}
			if first != nil {
				first(r)
				first = nil
			}
			r.say(request("done-"+m.Payload.TaskID, "complete-task", fmt.Sprintf(`{"taskId":%q}`, m.Payload.TaskID)))
		}
		return 0
	}
}

// TestIdleWaitsForPlanners checks that every run of a planner is waited for, whatever an earlier
// run has submitted.
func TestIdleWaitsForPlanners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := 0
		p := perform(t, Options{ExitWhenIdle: true}, []settings.Agent{{Name: "boss", Role: wire.RolePlanner}, {Name: "w", Role: wire.RoleWorker}}, map[string]part{
			"boss": func(r *player) int {
				if run++; run == 1 {
					r.say(taskFor("first"))
					r.read()
					return 1
				}
				<-time.After(20 * time.Second)
				r.say(taskFor("second"))
				r.read()
				return 0
			},
			"w": obliging(nil),
		})
		<-time.After(15 * time.Second)
		status, err := p.Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, "is a planner and still runs", status.Agents[0].Awaited)
		require.Empty(t, status.Agents[1].Awaited)
		require.NoError(t, p.end())
		require.Equal(t, 2, p.count(events.TaskDone))
	})
}

// TestIdleDoesNotWaitForWorkers checks that a worker that submits a part of its task is not
// waited for.
func TestIdleDoesNotWaitForWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{ExitWhenIdle: true},
			[]settings.Agent{{Name: "boss", Role: wire.RolePlanner}, {Name: "w", Role: wire.RoleWorker}, {Name: "v", Role: wire.RoleWorker}}, map[string]part{
				"boss": func(r *player) int {
					r.say(taskFor("whole"))
					r.read()
					return 0
				},
				"w": obliging(func(r *player) { r.say(taskFor("part of w")) }),
				"v": obliging(func(r *player) { r.say(taskFor("part of v")) }),
			})
		began := time.Now()
		require.NoError(t, p.end())
		require.Less(t, time.Since(began), linger)
	})
}

// TestIdleLingers checks that an agent that only submits, and is not a planner, has some time
// for its next task.
func TestIdleLingers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{ExitWhenIdle: true}, []settings.Agent{{Name: "feeder", Role: "reviewer"}, {Name: "w", Role: wire.RoleWorker}}, map[string]part{
			"feeder": func(r *player) int {
				r.say(taskFor("one"))
				for r.read() != "" {
				}
				return 0
			},
			"w": obliging(nil),
		})
		began := time.Now()
		require.NoError(t, p.end())
		require.GreaterOrEqual(t, time.Since(began), linger)
		require.Less(t, time.Since(began), linger+2*time.Second)
	})
}
