package bus

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/mail"
)

// A mailPrinter prints messages, one a line, in columns that only grow.
type mailPrinter struct {
	app     *cli.App
	paint   term.Paint
	now     time.Time
	headed  bool
	at      int // column widths so far
	parties int
	topic   int
}

func newMailPrinter(a *cli.App, now time.Time) *mailPrinter {
	return &mailPrinter{app: a, paint: a.Paint(a.Stdout), now: now, parties: len("FROM -> TO"), topic: len(mail.TopicDirect)}
}

// line prints a message as the API returned it.
func (p *mailPrinter) line(raw []byte) error {
	if p.app.Flags.JSON {
		return p.app.Print("%s\n", raw)
	}
	m, err := client.Decode[wire.Mail](raw)
	if err != nil {
		return err
	}
	if p.app.Flags.Quiet {
		return p.app.Print("%d\n", m.Seq)
	}
	return p.mail(&m)
}

// measure widens the columns for a message.
func (p *mailPrinter) measure(m *wire.Mail) {
	p.at = max(p.at, len(term.Clock(m.CreatedAt, p.now, "15:04:05.000")))
	p.parties = max(p.parties, term.Width(partiesCell(m)))
	p.topic = max(p.topic, term.Width(term.OneLine(m.Topic)))
}

func (p *mailPrinter) mail(m *wire.Mail) error {
	p.measure(m)
	if !p.headed {
		p.headed = true
		if err := p.row("SEQ", "TIME", "FROM -> TO", term.Pad("TOPIC", p.topic), "PAYLOAD"); err != nil {
			return err
		}
	}
	topic := term.Pad(term.OneLine(m.Topic), p.topic)
	switch m.Topic {
	case mail.TopicAlertFired:
		topic = p.paint.Warn(topic)
	case mail.TopicAlertResolved:
		topic = p.paint.Good(topic)
	}
	return p.row(strconv.FormatInt(m.Seq, 10), term.Clock(m.CreatedAt, p.now, "15:04:05.000"), partiesCell(m), topic, p.said(m))
}

// said returns the payload of a message and the number of the message it answers.
func (p *mailPrinter) said(m *wire.Mail) string {
	var parts []string
	if payload := term.OneLine(string(m.Payload)); payload != "{}" {
		if !p.app.Flags.Verbose {
			payload = term.Clip(payload, term.ShownPayload)
		}
		parts = append(parts, payload)
	}
	if m.ReplyTo != nil {
		parts = append(parts, p.paint.Dim(fmt.Sprintf("answers %d", *m.ReplyTo)))
	}
	return strings.Join(parts, "  ")
}

func partiesCell(m *wire.Mail) string { return term.OneLine(m.From) + " -> " + term.OneLine(m.To) }

func (p *mailPrinter) row(seq, at, whom, topic, said string) error {
	line := fmt.Sprintf("%6s  %s  %s  %s  %s", seq, p.paint.Dim(term.Pad(at, p.at)), term.Pad(whom, p.parties), topic, said)
	return p.app.Print("%s\n", strings.TrimRight(line, " "))
}
