// Package activity has the events of agents about their work: progress, log entries, errors and
// questions. Coding agents also report their usage, their conversation, their turn, a limit of
// their vendor, and the state of a message. The package also has the permissions that an agent asks
// a person for.
package activity

import (
	"fmt"
	"time"

	"orchestrator/wire/object"
)

// NoticeInterrupt is the notice that a person interrupts the current work of the agent. Its payload
// is a wire.TaskNotice.
const NoticeInterrupt = "interrupt"

// Interrupted answers interrupt-agent.
type Interrupted struct {
	// The agent.
	Agent string `json:"agent"`
	// The id of the task that it continues with.
	TaskID string `json:"taskId,omitzero"`
}

// Withdrawn answers withdraw-question.
type Withdrawn struct {
	// Whether the question is closed, even if it was answered or withdrawn before.
	Withdrawn bool `json:"withdrawn"`
}

// Usage is the payload of event:usage: the tokens and cost of a turn, or of one request to a model.
type Usage struct {
	// The id of the task, if the usage was for one.
	TaskID string `json:"taskId,omitzero"`
	// The number of the turn in this run.
	Turn int64 `json:"turn,omitzero" schema:"whole=0"`
	// The model.
	Model string `json:"model,omitzero"`
	// The input tokens.
	Input int64 `json:"input" schema:"whole=0"`
	// The output tokens.
	Output int64 `json:"output" schema:"whole=0"`
	// The tokens read from a cache.
	CacheRead int64 `json:"cacheRead,omitzero" schema:"whole=0"`
	// The tokens written to a cache.
	CacheWrite int64 `json:"cacheWrite,omitzero" schema:"whole=0"`
	// The reasoning tokens.
	Reasoning int64 `json:"reasoning,omitzero" schema:"whole=0"`
	// The cost.
	Cost float64 `json:"cost,omitzero" schema:"min=0,max=9007199254740991"`
	// The currency of the cost, such as USD.
	Currency string `json:"currency,omitzero"`
	// The number of tokens in the conversation.
	ContextUsed int64 `json:"contextUsed,omitzero" schema:"whole=0"`
	// The maximum number of tokens in a conversation.
	ContextSize int64 `json:"contextSize,omitzero" schema:"whole=0"`
}

// Used is the total usage of an agent, of the work on a task, or of a team.
type Used struct {
	// The input tokens.
	Input int64 `json:"input,omitzero" schema:"whole=0"`
	// The output tokens.
	Output int64 `json:"output,omitzero" schema:"whole=0"`
	// The cost.
	Cost float64 `json:"cost,omitzero" schema:"min=0"`
	// The currency of the cost. A cost in another currency is not added.
	Currency string `json:"currency,omitzero"`
}

// Add adds more to u. No sum exceeds object.MaxWhole, so that it can be written.
func (u *Used) Add(more Used) {
	u.Input = min(u.Input+more.Input, object.MaxWhole)
	u.Output = min(u.Output+more.Output, object.MaxWhole)
	if u.Cost == 0 && more.Cost > 0 {
		u.Currency = more.Currency
	}
	if more.Currency == u.Currency {
		u.Cost = min(u.Cost+more.Cost, object.MaxWhole)
	}
}

// Sum returns u as a Used, to be added to another.
func (u *Usage) Sum() Used {
	return Used{Input: u.Input, Output: u.Output, Cost: u.Cost, Currency: u.Currency}
}

// Conversation is the payload of event:session: the conversation of the agent's program. The
// next run of the agent gets its id in ORC_CONVERSATION.
type Conversation struct {
	// The id of the conversation. Your program resumes the conversation by this id.
	ID string `json:"id" schema:"nonblank"`
	// The kind of program, such as claude.
	Kind string `json:"kind,omitzero"`
	// The folder of the conversation.
	Dir string `json:"dir,omitzero"`
	// The version of the program.
	Version string `json:"version,omitzero"`
	// The model.
	Model string `json:"model,omitzero"`
}

// Turn is the payload of event:turn: the current activity of an agent. It is not recorded.
type Turn struct {
	// busy, waiting (for a person) or idle.
	State string `json:"state" schema:"enum=busy|waiting|idle"`
	// When the state began, in ISO 8601.
	Since string `json:"since,omitzero" schema:"time"`
	// Your current activity, in a few words.
	What string `json:"what,omitzero"`
	// The id of the task that you work on.
	TaskID string `json:"taskId,omitzero"`
}

// The states of a Turn.
const (
	Busy    = "busy"
	Waiting = "waiting" // for a person
	Idle    = "idle"
)

// MaxLimit is the longest duration of a limit. If the vendor of an agent names a later time, the
// agent tries again after MaxLimit.
const MaxLimit = 7 * 24 * time.Hour

// Limited is the payload of event:limited: the agent cannot work for a time, most often because its
// vendor limits the use. It gets no task until then, or for seven days. A restart of the agent by
// hand lifts the limit.
type Limited struct {
	// When the limit ends, in ISO 8601.
	Until string `json:"until" schema:"time"`
	// The limited resource, in words of the vendor, or another reason.
	Scope string `json:"scope,omitzero"`
}

// Receipt is the payload of event:receipt: the state of a message of the bus.
type Receipt struct {
	// The number of the message.
	Seq int64 `json:"seq" schema:"whole=1"`
	// in_context: your model has it. refused: your program did not take it.
	State string `json:"state" schema:"enum=in_context|refused"`
}

// The states of a Receipt.
const (
	InContext = "in_context"
	Refused   = "refused"
)

// Read reads the payload of an event. It returns nil for an unknown event.
func Read(name string, o *object.Reader) any {
	switch name {
	case "progress":
		return readProgress(o)
	case "log":
		return readLog(o)
	case "error":
		return readTrouble(o)
	case "question":
		return &OpenQuestion{Question: o.NeedText("question"), Context: o.Document("context")}
	case "usage":
		return readUsage(o)
	case "session":
		return &Conversation{ID: o.NeedText("id"), Kind: o.Text("kind"), Dir: o.Text("dir"), Version: o.Text("version"), Model: o.Text("model")}
	case "turn":
		return &Turn{State: o.NeedOneOf("state", Busy, Waiting, Idle), Since: o.Time("since"), What: o.Text("what"), TaskID: o.Text("taskId")}
	case "limited":
		o.NeedText("until")
		return &Limited{Until: o.Time("until"), Scope: o.Text("scope")}
	case "receipt":
		r := &Receipt{Seq: o.Whole("seq", 1), State: o.NeedOneOf("state", InContext, Refused)}
		needWhole(o, "seq")
		return r
	}
	return nil
}

func readUsage(o *object.Reader) *Usage {
	u := &Usage{
		TaskID: o.Text("taskId"), Turn: o.Whole("turn", 0), Model: o.Text("model"),
		Input: o.Whole("input", 0), Output: o.Whole("output", 0), CacheRead: o.Whole("cacheRead", 0), CacheWrite: o.Whole("cacheWrite", 0),
		Reasoning: o.Whole("reasoning", 0), Currency: o.Text("currency"), ContextUsed: o.Whole("contextUsed", 0), ContextSize: o.Whole("contextSize", 0),
	}
	needWhole(o, "input")
	needWhole(o, "output")
	cost, raw := o.Number("cost")
	if raw != nil && (cost < 0 || cost > object.MaxWhole) {
		o.Refuse("cost", fmt.Sprintf("must be from 0 to %d", object.MaxWhole))
	}
	u.Cost = cost
	return u
}

// needWhole refuses a number that is missing.
func needWhole(o *object.Reader, key string) {
	if o.Find(key) == nil {
		o.Refuse(key, "is missing")
	}
}
