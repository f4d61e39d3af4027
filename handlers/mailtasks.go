package handlers

import (
	"fmt"

	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// A mailReport is a report of an agent about its task by mail. Such mail is for GO and names the
// task in its payload.
type mailReport struct {
	task     *task
	result   *hub.Result // of task.completed
	progress *float64    // of task.progress, if present
	text     string      // the error of a failed task, or a message
}

// linked returns the report in a message, if it counts: if its sender has the task. Otherwise
// the message is only delivered, with a warning.
func (md mailDecision) linked(m *wire.SendMessage) (*mailReport, []string) {
	if md.from.Kind != Agent {
		return nil, nil
	}
	verb := map[string]string{
		mail.TopicTaskCompleted: "completed", mail.TopicTaskFailed: "failed", mail.TopicTaskProgress: "worked on",
	}[m.Topic]
	var said object.Reader
	if verb == "" || m.To != mail.Global || said.Read(m.Payload, md.state.rules.Depth, "") != nil {
		return nil, nil
	}
	id := firstText(&said, "ticket_id", "task_id", "taskId")
	if _, err := md.tasks().manageableTask(id); err != nil {
		return nil, nil // the name of something that is kept elsewhere
	}
	defer func(from Actor) { md.from = from }(md.from)
	md.from.ExplicitSteps = false // mail has no word for the beginning
	k, err := md.tasks().reportableTask(id, verb)
	if err != nil {
		return nil, []string{err.Message}
	}
	e := &mailReport{task: k, result: &succeeded, text: firstText(&said, "error", "message", "error_code")}
	if at, raw := said.Number("progress"); raw != nil && at >= 0 && at <= 1 {
		e.progress = &at
	}
	if result := hub.ResultIn(&said, "result"); result != nil {
		e.result = md.from.wrapped(result)
	}
	if m.Topic == mail.TopicTaskCompleted && e.result.Breach != nil && !md.state.rules.LenientResults {
		return nil, []string{fmt.Sprintf("task %s is not completed: %s", k.label(), e.result.Breach.Message)}
	}
	return e, nil
}

// firstText returns the first of some members that is a non-empty text.
func firstText(o *object.Reader, keys ...string) string {
	for _, key := range keys {
		if s := o.Text(key); s != "" {
			return s
		}
	}
	return ""
}

// heed applies a report to its task.
func (md mailDecision) heed(e *mailReport, m *mailed) {
	md.tasks().begin(e.task)
	k := e.task
	switch m.Topic {
	case mail.TopicTaskCompleted:
		md.tasks().complete(k, e.result, end{mailed: true})
	case mail.TopicTaskFailed:
		why := e.text
		if why == "" {
			why = fmt.Sprintf("said by message %d", m.Seq)
		}
		md.tasks().fail(k, failure{why: why, end: end{mailed: true}})
	case mail.TopicTaskProgress:
		if e.progress != nil {
			md.fact("", k.view.ID, &taskProgress{
				ID: k.view.ID, Name: k.view.Name, Agent: md.from.Name, Progress: *e.progress, Message: e.text,
			})
		}
	}
}

// deadLetter notifies GO that an agent could not process a message. The message stays, and GO
// decides about it.
func (md mailDecision) deadLetter(m *mailed) {
	about := mail.Alert{Alert: mail.AlertDead, Actor: m.From}
	var said object.Reader
	if said.Read(m.Payload, md.state.rules.Depth, "") == nil {
		about.Code, about.Text = said.Text("error_code"), said.Text("error")
	}
	md.tellGlobal(mail.Bus, mail.TopicAlertFired, *m.ReplyTo, about)
}

// handsOut returns the pending task that a message of GO gives to an agent.
func (md mailDecision) handsOut(from string, m *wire.SendMessage) (*task, []string) {
	c := md.state.bus.Actor(m.To)
	if from != mail.Global || m.Topic != mail.TopicTaskAssigned || c == nil || c.Agent == nil {
		return nil, nil
	}
	var said object.Reader
	if said.Read(m.Payload, md.state.rules.Depth, "") != nil {
		return nil, nil
	}
	k := md.state.tasks.byID[object.CanonicalID(firstText(&said, "ticket_id", "task_id", "taskId"))]
	if k == nil {
		return nil, nil // the name of something that is kept elsewhere
	}
	err := assignedInSession(k)
	if err == nil && k.view.State != wire.TaskPending {
		err = wrongState(k, "assigned")
	}
	if err != nil {
		return nil, []string{err.Message}
	}
	return k, nil
}

// An onBus fact is also shown on the bus: polls and streams of the actor that mailTo returns
// find its record. If the actor is "", the bus does not show it.
type onBus interface {
	mailTo(s *State) (actor, topic string)
}

func (t *taskAssigned) mailTo(s *State) (actor, topic string) {
	if t.mailed {
		return "", ""
	}
	return s.agents.actorOf(t.Agent), mail.TopicTaskAssigned
}

func (t *taskDone) mailTo(s *State) (actor, topic string) {
	if t.mailed {
		return "", ""
	}
	t.Actor = s.agents.actorOf(t.Agent)
	return mail.Global, mail.TopicTaskCompleted
}

func (f *taskFailed) mailTo(s *State) (actor, topic string) {
	if f.mailed {
		return "", ""
	}
	f.Actor = s.agents.actorOf(f.Agent)
	return mail.Global, mail.TopicTaskFailed
}

func (t *taskHelp) mailTo(s *State) (actor, topic string) {
	t.Actor = s.agents.actorOf(t.Agent)
	return mail.Global, mail.TopicAlertFired
}

// actorOf returns the actor id of an agent, or "" if it has none.
func (as *agents) actorOf(agent string) string {
	if a := as.byID[agent]; a != nil && a.mail != nil {
		return a.mail.ID
	}
	return ""
}
