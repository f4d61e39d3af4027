package watch

import (
	"time"

	"orchestrator/wire"
)

// What the feed tells the model.

// statusNews is how everything is; took is how long it took to hear.
type statusNews struct {
	status wire.Status
	took   time.Duration
}

// lostNews says that the orchestrator does not answer, and why.
type lostNews struct{ why error }

// tasksNews are the tasks. Of very many some are not in it.
type tasksNews struct {
	tasks []wire.Task
	left  int
}

// questionsNews are the questions that wait for a person.
type questionsNews struct{ questions []wire.Question }

// topicsNews are the topics that are registered.
type topicsNews struct{ topics []wire.TopicView }

// logNews are lines of output, whose is in agent: "" is all. They are for the log, or
// else for the tail of one agent. Fresh ones replace what was there.
type logNews struct {
	agent string
	tail  bool
	lines []wire.LogLine
	fresh bool
}

// mailNews are messages.
type mailNews struct {
	mail  []wire.Mail
	fresh bool
}

// paperNews is what a verb printed.
type paperNews struct {
	number int // of the command
	words  []string
	text   string
	exit   int
}

// noteNews is a sentence about what was done.
type noteNews struct {
	text string
	bad  bool
}

// tickNews comes once a second: times go on.
type tickNews struct{ now time.Time }
