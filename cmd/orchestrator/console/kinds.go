package console

import (
	"fmt"
	"strings"
	"time"

	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// A look is how the console shows the events of a kind.
type look struct {
	mark   string // between the name and the text
	color  func(term.Paint, string) string
	text   func(term.Paint, string) string // nil shows the text unchanged
	before string                          // is put before the text
	hidden bool                            // other lines tell the same
	calm   bool                            // routine, and so not shown with --quiet
}

// trouble is the look of kinds that are not in looks.
var trouble = look{mark: "!", color: term.Paint.Warn}

// looks has the looks of routine events, and of events that need more than a warning. The marks are
// "+" for new, ">" for progress, "ok" and "x" for the end, "?" for a question, "~" for messages
// between members of a session and "." for information.
var looks = map[string]look{
	events.OrchestratorStopping: {text: term.Paint.Strong, before: "orchestrator is ", calm: true},
	events.OrchestratorStopped:  {text: term.Paint.Strong, before: "orchestrator ", calm: true},
	events.OrchestratorStorm:    {text: term.Paint.Warn},
	events.OrchestratorCleared:  {text: term.Paint.Warn},
	events.OrchestratorReloaded: {text: term.Paint.Warn, calm: true},
	events.OrchestratorIdle:     {text: term.Paint.Warn, calm: true},

	events.AgentStarted:   {mark: ">", color: term.Paint.Good, before: "started, ", calm: true},
	events.AgentWaiting:   {mark: ".", color: term.Paint.Dim, calm: true},
	events.AgentRecovered: {mark: ".", color: term.Paint.Dim, calm: true},
	events.AgentStopped:   {mark: ".", color: term.Paint.Dim, before: "stopped: ", calm: true},
	events.AgentExited:    {mark: "!", color: term.Paint.Bad},

	events.TaskCreated:       {mark: "+", color: term.Paint.Good, before: "task ", calm: true},
	events.TaskAssigned:      {mark: ">", color: term.Paint.Good, calm: true},
	events.TaskStarted:       {mark: ">", color: term.Paint.Good, calm: true},
	events.TaskUnblocked:     {mark: ">", color: term.Paint.Good, calm: true},
	events.TaskPlanReturned:  {mark: ">", color: term.Paint.Good, calm: true},
	events.TaskProgress:      {mark: ">", color: term.Paint.Dim, text: term.Paint.Dim, calm: true},
	events.TaskDone:          {mark: "ok", color: term.Paint.Good, calm: true},
	events.ContractFulfilled: {mark: "ok", color: term.Paint.Good, calm: true},
	events.TaskFailed:        {mark: "x", color: term.Paint.Bad},
	events.TaskCancelled:     {mark: "x", color: term.Paint.Warn},
	events.QuestionAsked:     {mark: "?", color: term.Paint.Warn, text: term.Paint.Strong},
	events.TaskHelpWanted:    {mark: "?", color: term.Paint.Warn, text: term.Paint.Strong},
	events.TaskPlanned:       {mark: "?", color: term.Paint.Warn, text: term.Paint.Strong},
	events.QuestionRejoined:  {mark: "?", color: term.Paint.Warn, calm: true},
	events.QuestionAnswered:  {mark: "ok", color: term.Paint.Good, calm: true},

	events.TaskWorkspace: {mark: ">", color: term.Paint.Dim, text: term.Paint.Dim, calm: true},
	events.TaskVerifying: {mark: ">", color: term.Paint.Good, calm: true},
	events.TaskVerified:  {mark: "ok", color: term.Paint.Good, calm: true},
	events.TaskMerged:    {mark: "ok", color: term.Paint.Good, calm: true},

	events.TaskForwarded: {mark: ">", color: term.Paint.Good, calm: true},
	events.TaskActed:     {mark: ">", color: term.Paint.Good, calm: true},
	events.TaskResponded: {mark: ">", color: term.Paint.Dim, text: term.Paint.Dim, calm: true},

	events.SessionMessage: {mark: "~", color: term.Paint.Dim, text: term.Paint.Dim, calm: true},
	events.SessionOpened:  aside,
	events.ReviewDecided:  {mark: ">", color: term.Paint.Good, calm: true},
	events.ReviewExtended: {mark: "!", color: term.Paint.Warn, calm: true},

	events.AgentBudget: {mark: "!", color: term.Paint.Warn},

	events.TaskUpdated: aside, events.TaskNoted: aside, events.DependencyAdded: aside, events.DependencyRemoved: aside,
	events.QuestionWithdrawn: aside, events.QuestionKept: aside,
	events.AgentCapable: aside, events.AgentConversation: aside, events.AgentUsage: aside, events.AgentInterrupted: aside,
	events.ServerRegistered: aside, events.ServerSeen: aside,
	events.KeyRotated: aside, events.KeyRevoked: aside, events.RegistrationIssued: aside, events.TokenRevoked: aside,
	events.PersonSignedIn: aside, events.KeyIssued: aside, events.TokenIssued: aside, events.ActorTokenIssued: aside,

	events.OrchestratorStarted: hidden, events.AgentStarting: hidden, events.AgentEnded: hidden, events.AgentStopping: hidden,
	events.AgentKnown: hidden, events.AgentForgotten: hidden, // known from the file
	events.TaskAnnounced: hidden, events.DependencyResolved: hidden, events.TaskAnswered: hidden, events.SessionDelivered: hidden,
	events.SessionAssigned: hidden, events.SessionReassigned: hidden, events.SessionMoved: hidden, events.SessionCompleted: hidden,
	events.ReviewRequested: hidden, events.TaskArchived: hidden, events.TaskRecalled: hidden,
}

var (
	aside  = look{mark: ".", color: term.Paint.Dim, text: term.Paint.Dim, calm: true}
	hidden = look{hidden: true, calm: true}
)

// calm reports whether an event is routine, and so not shown with --quiet.
func calm(e *wire.Event) bool {
	switch e.Kind {
	case events.AgentExited:
		return exitedWell(e)
	case events.AgentLimited:
		return !limited(e)
	case events.MessageReceipt:
		return !refused(e)
	}
	return term.OfMail(e.Kind) && !firedTo(e.Mail) || calmKind(e.Kind)
}

// calmKind reports whether all events of a kind are routine, so that they need no text.
func calmKind(kind string) bool { return looks[kind].calm }

func exitedWell(e *wire.Event) bool { return e.Figures.ExitCode != nil && *e.Figures.ExitCode == 0 }

// limited reports whether a limit begins. Otherwise it ends.
func limited(e *wire.Event) bool { return payload[activity.Limited](e).Until != "" }

// refused reports whether the program of an agent has refused a message.
func refused(e *wire.Event) bool { return payload[activity.Receipt](e).State == activity.Refused }

// payload returns the payload of an event, or a zero T if it cannot be decoded.
func payload[T any](e *wire.Event) (body T) {
	if found, err := client.Decode[T](e.Payload); err == nil {
		body = found
	}
	return body
}

// event prints an event as one line. A second line has the next command if a person must act.
func (c *Console) event(l output.Line) {
	e, p := l.Event, c.paint
	if c.mail(l) {
		return
	}
	k, known := looks[e.Kind]
	if !known {
		k = trouble
	}
	text, below := term.FirstAndLast(e.Text)
	switch e.Kind {
	case events.OrchestratorStopping:
		if c.tty {
			text += ". Ctrl-C again kills"
		}
	case events.AgentExited:
		if exitedWell(e) {
			k.mark, k.color = ".", term.Paint.Dim
		}
	case events.AgentRefused:
		if strings.HasPrefix(text, "refused request:complete-task") && len(below) > 0 { // the event of the task has reported it
			c.below(l, below)
			return
		}
	case events.AgentLimited:
		if !limited(e) {
			k = aside
		}
	case events.MessageReceipt: // messages are not shown, but for alerts
		k.hidden = !refused(e)
	case events.AgentGaveUp:
		k = look{mark: "x", color: term.Paint.Bad}
		text = p.Bad("gave up: ") + text
	case events.TaskDone:
		text += took(c.tally.took(e.Task))
	case events.TaskResponded:
		k.hidden = saidElsewhere(e)
	case events.SessionMessage: // the event of the task tells the same
		k.hidden = payload[struct {
			Type string `json:"message_type"`
		}](e).Type == session.TypeTaskProgress
	}
	if k.hidden {
		return
	}
	mark := k.mark
	if k.color != nil {
		mark = k.color(p, mark)
	}
	if text = k.before + text; k.text != nil {
		text = k.text(p, text)
	}
	c.put(l.At, e.Agent, mark, text)
	c.below(l, below)
	if next := c.next(e); next != "" {
		c.put(l.At, e.Agent, mark, p.Dim(next))
	}
}

// next returns the command for a person's reaction to an event, or "".
func (c *Console) next(e *wire.Event) string {
	switch e.Kind {
	case events.AgentGaveUp:
		return "its output: orchestrator logs " + e.Agent + c.named + "     restart it: orchestrator agent start " + e.Agent + c.named
	case events.QuestionAsked, events.TaskHelpWanted:
		if c.tty {
			return howToAnswer(e) + c.named + "     or type the number or VALUE here"
		}
		return howToAnswer(e) + c.named
	case events.TaskPlanned:
		return "orchestrator task approve-plan " + term.ID(e.Task) + c.named + "     or: revise-plan " + term.ID(e.Task) + " -m TEXT" + c.named
	}
	return ""
}

// below prints lines of output below the line of their event.
func (c *Console) below(l output.Line, lines []string) {
	for _, line := range lines {
		c.put(l.At, l.Event.Agent, " ", "  "+c.paint.Dim(line))
	}
}

// saidElsewhere reports whether another event tells the same as a response: the end of the
// task, or its question.
func saidElsewhere(e *wire.Event) bool {
	said := payload[struct {
		Status string `json:"status"`
	}](e)
	switch said.Status {
	case delegation.InputRequired, delegation.Completed, delegation.Failed, delegation.Cancelled:
		return true
	}
	return false
}

// howToAnswer returns the command that answers a question.
func howToAnswer(e *wire.Event) string {
	id, _ := asked(e)
	if id == "" {
		return "orchestrator inbox"
	}
	return "orchestrator inbox answer " + wire.Visible(id) + " VALUE"
}

// asked returns the id and the deadline of the question that an event is about.
func asked(e *wire.Event) (id, deadline string) {
	question := payload[struct {
		ID       string `json:"question_id"`
		Deadline string `json:"deadline"`
	}](e)
	return question.ID, question.Deadline
}

// took returns a duration for the end of a line, or "" if it is unknown.
func took(d time.Duration) string {
	if d < 0 {
		return ""
	}
	return " in " + term.Duration(d)
}

// firedTo reports whether a message is an alert to GO.
func firedTo(m *mail.Message) bool {
	return m != nil && m.To == mail.Global && m.Topic == mail.TopicAlertFired
}

// mail prints messages to GO about alerts and unregistered topics. It returns false for
// events that are not about messages.
func (c *Console) mail(l output.Line) bool {
	e, p := l.Event, c.paint
	switch {
	case !term.OfMail(e.Kind):
		return false
	case e.Kind != events.MessageSent || e.Mail == nil || e.Mail.To != mail.Global:
	case e.Mail.Topic == mail.TopicAlertFired:
		c.alert(l, p.Warn("!"))
	case e.Mail.Topic == mail.TopicAlertResolved:
		c.alert(l, p.Good("ok"))
	case e.Mail.Topic == mail.TopicUnknown && e.Mail.From == mail.Bus:
		c.unknownTopic(l)
	}
	return true
}

func (c *Console) alert(l output.Line, mark string) {
	agent, text := alertWords(l.Event.Mail)
	if text != "" {
		c.put(l.At, agent, mark, text)
	}
}

// alertWords returns the text of an alert and its agent. It returns no text for a crash,
// which the console shows as an exit.
func alertWords(m *mail.Message) (agent, text string) {
	var said mail.Alert
	if m.From != mail.Bus || object.DecodeOwn(m.Payload, &said) != nil {
		return "", fmt.Sprintf("%s: %s (%s)", term.OneLine(m.From), term.Clip(term.OneLine(string(m.Payload)), term.ShownPayload), m.Topic)
	}
	actor, fired := term.OneLine(said.Actor), m.Topic == mail.TopicAlertFired
	switch {
	case said.Alert == mail.AlertCrashed:
		return "", ""
	case said.Alert == mail.AlertStale && fired:
		text = actor + " sends no heartbeat"
	case said.Alert == mail.AlertDead:
		text = actor + " could not process a message" + term.Colon(said.Text)
		if m.ReplyTo != nil {
			text = fmt.Sprintf("%s could not process message %d%s", actor, *m.ReplyTo, term.Colon(said.Text))
		}
	case said.Alert == mail.AlertStale:
		text = actor + " is no longer missing" + term.Colon(said.Text)
	default:
		text = actor + term.Colon(said.Text)
	}
	return term.OneLine(said.Agent), text + " (" + term.OneLine(said.Alert) + ")"
}

// unknownTopic prints that an actor uses an unregistered topic. It prints repetitions in a
// row only once.
func (c *Console) unknownTopic(l output.Line) {
	said, err := client.Decode[mail.UnknownTopic](l.Event.Mail.Payload)
	if err != nil || said.Topic == c.unknown {
		return
	}
	c.unknown = said.Topic
	c.put(l.At, "", c.paint.Dim("."), c.paint.Dim(fmt.Sprintf("%s uses the topic %s, which is not registered (bus.topics)", term.OneLine(said.From), term.OneLine(said.Topic))))
}
