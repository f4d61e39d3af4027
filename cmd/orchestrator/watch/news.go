package watch

import (
	"time"

	"orchestrator/wire"
	"orchestrator/wire/control"
)

// Messages from the feed to the model.

// statusNews is the status of the orchestrator, with the duration of the request.
type statusNews struct {
	status control.Status
	took   time.Duration
}

// lostNews reports that the orchestrator does not answer.
type lostNews struct{ why error }

// tasksNews is a list of tasks; left is how many it omits.
type tasksNews struct {
	tasks []wire.Task
	left  int
}

// questionsNews is the list of open questions.
type questionsNews struct{ questions []wire.Question }

// topicsNews is the list of registered topics.
type topicsNews struct{ topics []wire.TopicView }

// logNews is a batch of output of an agent, or of all agents for "". It is for the tail
// pane, or else for the log. A fresh batch replaces the earlier lines.
type logNews struct {
	agent string
	tail  bool
	lines []control.LogLine
	fresh bool
}

// mailNews is a batch of messages. A fresh batch replaces the earlier ones.
type mailNews struct {
	mail  []wire.Mail
	fresh bool
}

// paperNews is the output of a command.
type paperNews struct {
	number int // of the command
	words  []string
	text   string
	exit   int
}

// noteNews is a sentence about an action.
type noteNews struct {
	text string
	bad  bool
}

// tickNews comes once a second to update the times.
type tickNews struct{ now time.Time }
