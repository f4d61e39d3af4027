package console

import (
	"fmt"

	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// firedTo reports whether a message is an alert to GO.
func firedTo(m *wire.Mail) bool {
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
func alertWords(m *wire.Mail) (agent, text string) {
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
		text = actor + " could not deal with a message" + term.Colon(said.Text)
		if m.ReplyTo != nil {
			text = fmt.Sprintf("%s could not deal with message %d%s", actor, *m.ReplyTo, term.Colon(said.Text))
		}
	case said.Alert == mail.AlertStale:
		text = actor + " is not missed any more" + term.Colon(said.Text)
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
