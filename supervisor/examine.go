package supervisor

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"orchestrator/supervisor/adapter"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/settings"
)

// An Examination is the result of Examine for the program of an agent.
type Examination struct {
	Path   string         // of the program; "" if it was not found
	Ready  *adapter.Ready // nil if the handshake failed
	Failed string         // why it failed
	Login  bool           // it failed because the client is not logged in
	Words  []string       // the last lines of the program for people
}

// Examine finds the program of an agent. It starts the program of a coding agent as a run does, waits until the
// handshake is done or ctx is, and ends all its processes. The program gets no prompt. The error comes from the
// environment or from the start.
func Examine(ctx context.Context, start func(child.Spec) (Process, error), a *settings.Agent) (x Examination, err error) {
	env, err := a.Environ(ctx)
	if err != nil {
		return x, err
	}
	user, err := child.FindUser(a.User)
	if err != nil {
		return x, err
	}
	if x.Path, err = user.Find(slices.Concat(a.Wrap, a.Command)[0], a.Dir, env); err == nil {
		err = a.Confine.Possible()
	}
	if err != nil || a.Client.Protocol == "" {
		return x, err
	}
	examined := *a
	examined.Client.Opening.Examine, examined.Client.Opening.Door = true, nil // no orchestrator runs for the tools behind the door
	e := &examiner{done: make(chan struct{}), exited: make(chan child.Exit, 1), ended: make(chan struct{})}
	p, err := startClient(&examined, start, child.Spec{
		Command: a.Command, Wrap: a.Wrap, Dir: a.Dir, Env: env, Run: uuid.NewString(), Limits: a.Limits, Confine: a.Confine, User: user, Listener: e,
	}, "", func(c adapter.Client) adapter.Client {
		e.Client = c
		return e
	})
	if err != nil {
		return x, err
	}
	x.Failed = e.await(ctx)
	e.end(ctx, p)
	switch found := e.found.(type) {
	case *adapter.Ready:
		x.Ready, x.Failed = found, ""
	case adapter.Stuck:
		x.Failed, x.Login = found.Why, found.Class == adapter.FailLogin
	}
	x.Words = slices.DeleteFunc(e.words, func(w string) bool { return w == x.Failed })
	return x, nil
}

// An examiner is the client of a program that is examined, and its listener. It keeps how the handshake ended.
type examiner struct {
	adapter.Client
	child.Nobody
	done   chan struct{} // closed when found is set
	exited chan child.Exit
	ended  chan struct{} // closed when no process is left; found and words no longer change

	mu    sync.Mutex
	found adapter.Effect // the first Ready or Stuck
	words []string
}

// Heard takes a line of the program's stdout.
func (e *examiner) Heard(line []byte) []adapter.Effect {
	effects := e.Client.Heard(line)
	for _, effect := range effects {
		switch effect.(type) {
		case *adapter.Ready, adapter.Stuck:
			e.finds(effect)
		}
	}
	return effects
}

func (e *examiner) finds(effect adapter.Effect) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.found == nil {
		e.found = effect
		close(e.done)
	}
}

const (
	wordsKept   = 3   // lines
	longestWord = 300 // bytes of a line
)

// Output keeps the last lines for people. Messages to the orchestrator are not answered.
func (e *examiner) Output(stream child.Stream, chunk []byte) {
	if stream != child.Stderr {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for line := range strings.Lines(string(chunk)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		e.words = append(e.words, strings.ToValidUTF8(line[:min(len(line), longestWord)], ""))
	}
	e.words = e.words[max(0, len(e.words)-wordsKept):]
}

// Exited implements child.Listener.
func (e *examiner) Exited(exit child.Exit) { e.exited <- exit }

// Ended implements child.Listener.
func (e *examiner) Ended(child.Ending) { close(e.ended) }

// await waits for the end of the handshake. It returns why the handshake failed, or "" after a finding.
func (e *examiner) await(ctx context.Context) string {
	select {
	case <-e.done:
		return ""
	case exit := <-e.exited:
		return "it ended during the handshake: " + exit.String()
	case <-ctx.Done():
		return "it does not answer"
	}
}

// examinePatience is how long a program may go on after the end of its stdin.
const examinePatience = 3 * time.Second

// end ends the program and waits until no process of it is left.
func (e *examiner) end(ctx context.Context, p Process) {
	p.CloseStdin()
	select {
	case <-e.ended:
	case <-time.After(examinePatience):
	case <-ctx.Done():
	}
	p.Kill()
	<-e.ended
}
