package handlers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/events"
)

// TestMemoryIsLimited checks that only the latest requests are remembered. A State restored from
// a snapshot remembers the same, even if ids were used again.
//
// Rows: B-30, T-23.
func TestMemoryIsLimited(t *testing.T) {
	p := atWork(t)
	submit := func(id int) {
		p.play(fmt.Sprintf(`> planner %d submit-task {"type":"t","name":"n%d"}`, id, id))
		require.Len(t, p.last.Records, 1)
	}
	for id := range remembers {
		submit(id)
	}
	p.play("resend planner 0")
	require.Empty(t, p.last.Records)

	// The next run counts from the start: five ids are used twice.
	p.play("exit planner 0")
	p.play("start planner")
	p.play("at +1s")
	for id := range 5 {
		submit(id)
	}
	other := p.saved()
	for _, player := range []*player{p, &other} {
		for id := range remembers - 5 {
			player.play(fmt.Sprintf(`> planner x%d submit-task {"type":"t","name":"m%d"}`, id, id))
		}
		player.play("resend planner 0")
		require.Empty(t, player.last.Records)
		player.play("resend planner x0")
		require.Empty(t, player.last.Records)
		player.play(`> planner last submit-task {"type":"t","name":"last"}`)
		player.play("resend planner 0")
		require.Len(t, player.last.Records, 1, "it is the oldest, and forgotten")
	}
	require.Equal(t, spelled(t, p.state), spelled(t, other.state))
}

// TestQuestionOutlivesMemory checks that a waiting question is recognized after its request is
// forgotten. Its answer is remembered when it comes.
//
// Rows: B-21, B-30.
func TestQuestionOutlivesMemory(t *testing.T) {
	p := atWork(t)
	p.play(`> planner q ask-user {"question":"?","timeout":60000}`)
	for id := range remembers {
		p.play(fmt.Sprintf(`> planner %d submit-task {"type":"t","name":"n%d"}`, id, id))
	}
	p.play("resend planner q")
	require.True(t, p.last.Waits)
	require.Empty(t, p.last.Records)
	p.play(`> operator a answer-question {"questionId":"q1","answer":"yes"}`)
	require.Len(t, p.last.Letters, 2)
	p.play("resend planner q")
	require.Empty(t, p.last.Records)
	require.Len(t, p.last.Letters, 1)
	require.Nil(t, p.last.Letters[0].Refusal)
	p.requireReplay()
}

// TestNewRunAsksTheSameLater checks that the same id and payload at another time is a new
// request of a new run.
//
// Rows: B-30, T-23.
func TestNewRunAsksTheSameLater(t *testing.T) {
	p := atWork(t)
	const request = `> planner 1 submit-task {"type":"t","name":"n"}`
	p.play(request)
	require.Len(t, p.last.Records, 1)
	p.play("exit planner 1")
	p.play("start planner")
	p.play("resend planner 1")
	require.Empty(t, p.last.Records, "the same line, timestamp and all")
	p.play("at +1s")
	for _, restart := range []func(){
		func() { p.state = restored(t, p.rules, spelled(t, p.state)) },
		func() { p.state = p.replayed() },
	} {
		restart()
	}
	answer := p.play(request)
	require.Len(t, p.last.Records, 1, "a new run counts anew: %s", answer)
	require.Equal(t, events.TaskCreated, p.last.Records[0].Kind)
	p.play("resend planner 1")
	require.Empty(t, p.last.Records)
	p.requireReplay()
}
