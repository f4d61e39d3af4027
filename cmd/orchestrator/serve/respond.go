package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/handlers"
	"orchestrator/supervisor/hub"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// An Answerer answers the questions of agents, with scripted answers and with lines that a
// person types.
type Answerer struct {
	App      *cli.App
	Team     *hub.Hub
	scripted []scripted
}

// respond starts to answer questions, with typed lines or the lines of the terminal. Its goroutines
// end with ctx or with the team. The caller does not wait for them, because they hold no resources.
func respond(ctx context.Context, a *cli.App, t *hub.Hub, rules []scripted, typed <-chan string) {
	r := &Answerer{App: a, Team: t, scripted: rules}
	r.begin(ctx)
	if typed != nil {
		go r.take(ctx, typed)
		return
	}
	if file, ok := a.Stdin.(*os.File); ok && term.IsTerminal(a.Stdin) && term.IsTerminal(a.Stdout) && !a.JSON() {
		go r.listen(ctx, file)
	}
}

// begin starts to give the scripted answers.
func (a *Answerer) begin(ctx context.Context) {
	if len(a.scripted) > 0 {
		go a.answerScripted(ctx)
	}
}

// Ask makes a request of the instance as its operator.
func (a *Answerer) Ask(ctx context.Context, operation string, request any) (any, error) {
	payload, err := object.Encode(request)
	if err != nil {
		return nil, err
	}
	return a.Team.Super.Requests.Ask(ctx, handlers.Actor{Kind: handlers.Operator}, operation, payload)
}

// Open returns the open questions.
func (a *Answerer) Open(ctx context.Context) ([]wire.Question, error) {
	answer, err := a.Ask(ctx, "list-questions", struct{}{})
	if err != nil {
		return nil, err
	}
	list, ok := answer.(*wire.QuestionList)
	if !ok {
		return nil, fmt.Errorf("list-questions was answered with a %T", answer)
	}
	return list.Questions, nil
}

// answerScripted gives scripted answers to open questions and to later ones.
func (a *Answerer) answerScripted(ctx context.Context) {
	q := output.EventQuery{Since: a.Team.Super.Seq(), Follow: true}
	noted := make(map[string]bool) // questions that no scripted answer fits
	a.answerOpen(ctx, noted)
	_ = a.Team.Super.Events(ctx, q, func(e wire.Event) error {
		switch e.Kind {
		case events.QuestionAsked, events.TaskHelpWanted, events.ReviewEscalated:
			a.answerOpen(ctx, noted)
		}
		return nil
	})
}

func (a *Answerer) answerOpen(ctx context.Context, noted map[string]bool) {
	questions, err := a.Open(ctx)
	if err != nil {
		return // no question is open
	}
	maps.DeleteFunc(noted, func(id string, _ bool) bool {
		return !slices.ContainsFunc(questions, func(q wire.Question) bool { return q.ID == id })
	})
	for _, q := range questions {
		i := slices.IndexFunc(a.scripted, func(s scripted) bool { return s.fits(q.Question) })
		switch {
		case i >= 0:
			a.Answer(ctx, q, a.scripted[i].answer)
		case !noted[q.ID]:
			noted[q.ID] = true
			a.App.Note("%s matches no line of --answers: %q", q.ID, term.Clip(q.Question, 200))
		}
	}
}

// Answer answers a question.
func (a *Answerer) Answer(ctx context.Context, q wire.Question, answer string) {
	_, err := a.Ask(ctx, "answer-question", wire.AnswerQuestion{QuestionID: q.ID, Answer: answer})
	refusal, ok := errors.AsType[*wire.Error](err)
	if ok && refusal.Code != wire.CodeNotFound { // not found: it was answered already
		a.App.Note("%s: %s", q.ID, refusal.Message)
	}
}

// listen reads answers from the terminal: "q1 oauth", or only "oauth" if one question is
// open. The number of an option is also accepted.
func (a *Answerer) listen(ctx context.Context, terminal *os.File) {
	in := bufio.NewReader(&patientReader{ctx: ctx, file: terminal})
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		if line = strings.TrimSpace(line); line != "" {
			a.heard(ctx, line)
		}
	}
}

// take is listen for lines that are typed in the rows at the bottom.
func (a *Answerer) take(ctx context.Context, typed <-chan string) {
	for line := range typed {
		if line = strings.TrimSpace(line); line != "" {
			a.heard(ctx, line)
		}
	}
}

// questionID matches the ids of questions.
var questionID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^q[0-9]+$`) })

// heard handles a typed line: an answer to the question that it names, or else to the only
// one.
func (a *Answerer) heard(ctx context.Context, line string) {
	questions, err := a.Open(ctx)
	if err != nil {
		return
	}
	first, rest, _ := strings.Cut(line, " ")
	for _, q := range questions {
		if q.ID == first {
			a.Answer(ctx, q, chosen(q, strings.TrimSpace(rest)))
			return
		}
	}
	switch {
	case questionID().MatchString(first) && rest != "": // not an answer to another question
		a.App.Note("%s is no longer open: %q was not sent.", first, wire.Visible(strings.TrimSpace(rest)))
	case len(questions) == 0:
		a.App.Note("No open questions: %q was not sent.", wire.Visible(line))
	case len(questions) == 1:
		a.Answer(ctx, questions[0], chosen(questions[0], line))
	default:
		a.App.Note("%d questions are open. Put the id before the answer: %s %s", len(questions), questions[0].ID, wire.Visible(line))
	}
}

// chosen returns the value of the option that text selects by number or label, or else
// text.
func chosen(q wire.Question, text string) string {
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(q.Options) {
		return q.Options[n-1].Value
	}
	for _, o := range q.Options {
		if strings.EqualFold(text, o.Label) || strings.EqualFold(text, o.Value) {
			return o.Value
		}
	}
	return text
}

// A patientReader reads a terminal only while this program is in the foreground, until ctx
// is done. The kernel would stop a background reader with all its agents.
type patientReader struct {
	ctx  context.Context
	file *os.File
}

const lookEvery = 200 // milliseconds

func (p *patientReader) Read(into []byte) (int, error) {
	fd := int(p.file.Fd())
	for p.ctx.Err() == nil {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(ready, lookEvery)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return 0, err
		}
		front, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		if n == 0 || err != nil || front != unix.Getpgrp() {
			if n > 0 { // the input is for another program
				select {
				case <-p.ctx.Done():
				case <-time.After(lookEvery * time.Millisecond):
				}
			}
			continue
		}
		return p.file.Read(into)
	}
	return 0, io.EOF
}

// scripted is an answer to questions that match a pattern.
type scripted struct{ pattern, answer string }

// readAnswers reads a file of answers. Each line has a question, => and the answer. A * in
// the question matches any text, and the first matching line is used.
func readAnswers(file string) ([]scripted, error) {
	text, err := cli.ReadFile(file)
	if err != nil {
		var gone *os.PathError
		if errors.As(err, &gone) {
			err = gone.Err
		}
		return nil, cli.UsageError(fmt.Sprintf("--answers %s cannot be read: %v", file, err), "Write a file with lines like: Which login* => oauth")
	}
	var rules []scripted
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, answer, ok := strings.Cut(line, "=>")
		if !ok || strings.TrimSpace(pattern) == "" {
			return nil, cli.UsageError(fmt.Sprintf("%s:%d is not an answer: %q", file, i+1, line), "Write QUESTION => ANSWER, for example: Which login* => oauth")
		}
		rules = append(rules, scripted{pattern: strings.TrimSpace(pattern), answer: strings.TrimSpace(answer)})
	}
	return rules, nil
}

// fits reports whether a question matches the pattern.
func (s scripted) fits(question string) bool {
	parts := strings.Split(s.pattern, "*")
	if len(parts) == 1 {
		return question == s.pattern
	}
	rest, ok := strings.CutPrefix(question, parts[0])
	if !ok {
		return false
	}
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, ok = strings.Cut(rest, part)
		if !ok {
			return false
		}
	}
	return strings.HasSuffix(rest, last)
}
