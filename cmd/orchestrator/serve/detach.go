package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/serve/ownlog"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/hub"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// detachedEnv is set for the program in the background. Both programs have the same
// arguments, because -d can be written in too many ways to be removed.
const detachedEnv = "ORC_DETACHED"

// isDetached reports whether this program runs in the background.
func isDetached(a *cli.App) bool { return a.Getenv(detachedEnv) != "" }

// detach starts this program again in the background. It returns when every agent has been
// started, or with the reason of a failure.
func detach(a *cli.App, c *config.Config) error {
	ctx, stop := a.Context()
	defer stop()
	dir := c.Orchestrator.StateDir
	if home, err := hub.OpenHome(dir, a.SocketPath(dir)); err != nil {
		return CannotHold(err, dir)
	} else {
		home.Close()
	}
	logName := filepath.Join(dir, "orchestrator.log")
	process, start, err := background(a, logName)
	if err != nil {
		return fmt.Errorf("starting in the background: %w", err)
	}
	ended := make(chan *os.ProcessState, 1)
	go func() { // ends with either process
		state, _ := process.Wait()
		ended <- state
	}()
	var waits atomic.Pointer[string]
	waits.Store(new("the agents to start"))
	done := a.ShowDoing(func(since time.Duration) string {
		return fmt.Sprintf("Waiting for %s, %ds", *waits.Load(), int(since.Seconds()))
	})
	defer done()
	door := a.NewClient(client.Target{Socket: a.SocketPath(dir), Subject: c.File})
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return a.Ended(ctx)
		case state := <-ended:
			return endedEarly(a, state, logName, start)
		case <-again.C:
		}
		status, ok, err := upNow(ctx, door)
		standby, stands := errors.AsType[*cli.Failure](err)
		switch {
		case stands && standby.Details["waits"] != nil:
			waits.Store(new(fmt.Sprintf("other hubs: %s", standby.Details["waits"])))
		case stands && standby.Details["hub"] != nil:
			if a.Flags.JSON {
				return a.Document(standing{FormatVersion: wire.FormatVersion, Hub: standby.Details["hub"]})
			}
			return a.Print("%s. The log: %s\n", standby.Message, a.Short(logName))
		case err != nil:
			return err
		case status.PID != 0 && status.PID != process.Pid: // of the hub at work
			if a.Flags.JSON {
				return a.Document(standing{FormatVersion: wire.FormatVersion, Hub: status.Name})
			}
			return a.Print("%s stands by and passes requests on to the hub at work. The log: %s\n", c.Store.Node, a.Short(logName))
		case ok:
			return detached(a, status, logName)
		}
	}
}

// background starts this program in its own session, with its output in a file. It returns
// the offset of this output in the file.
func background(a *cli.App, logName string) (*os.Process, int64, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, 0, err
	}
	if err := ownlog.Rotate(logName); err != nil {
		return nil, 0, err
	}
	log, err := os.OpenFile(logName, os.O_CREATE|os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, 0, err
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return nil, 0, err
	}
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return nil, 0, err
	}
	defer nothing.Close()
	process, err := os.StartProcess(self, append([]string{os.Args[0]}, a.Args()...), &os.ProcAttr{
		Dir: a.Dir, Env: append(slices.Clone(a.Environ), detachedEnv+"=1"), Files: []*os.File{nothing, log, log},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	return process, info.Size(), err
}

// A standing is the answer for a hub in the background that stands by.
type standing struct {
	FormatVersion string `json:"format_version"`
	Hub           any    `json:"hub"` // the one at work
}

// upNow returns the status of the orchestrator, and reports whether it is settled. The error is the
// error of an orchestrator that runs and cannot return its status. A silent orchestrator is not
// settled yet.
func upNow(ctx context.Context, d *client.Client) (control.Status, bool, error) {
	text, err := d.Ask(ctx, "status", struct{}{})
	f, ok := errors.AsType[*cli.Failure](err)
	if ok && (f.Details["hub"] != nil || f.Details["waits"] != nil) { // it stands by
		return control.Status{}, false, f
	}
	if ok && f.Code == wire.CodeInternal {
		f.Because = append(f.Because, "It has started, but could not report its status.")
		return control.Status{}, false, f
	}
	if err != nil {
		return control.Status{}, false, nil
	}
	status, err := client.Decode[control.Status](text)
	return status, err == nil && settled(status), nil
}

// settled reports whether every agent has been started or will not be.
func settled(status control.Status) bool {
	o := startForecast{agents: make(map[string]control.AgentView), hopeful: make(map[string]bool)}
	for _, agent := range status.Agents {
		o.agents[agent.Name] = agent
	}
	for _, agent := range status.Agents {
		switch agent.State {
		case control.StateStarting:
			return false
		case control.StateWaiting:
			if agent.Starts == 0 && o.hope(agent.Name) {
				return false
			}
		case control.StateRunning:
			if time.Duration(agent.UpMS)*time.Millisecond < earlyEnd {
				return false
			}
		case control.StateBackoff:
			if !loops(&agent) && time.Duration(agent.NextStartMS)*time.Millisecond < patientBackoff {
				return false
			}
		}
	}
	return true
}

// A program that cannot work often ends within earlyEnd of its start. The answer waits that long, and
// for a second start that follows within patientBackoff.
const (
	earlyEnd       = 300 * time.Millisecond
	patientBackoff = 2 * time.Second
)

// loops reports whether an agent has ended at least twice since the team is up.
func loops(v *control.AgentView) bool { return v.State == control.StateBackoff && v.Starts > 1 }

// A startForecast determines which agents may still start.
type startForecast struct {
	agents  map[string]control.AgentView
	hopeful map[string]bool // results so far
}

// hope reports whether an agent may still start by itself. It may not if one of its direct
// or indirect dependencies will not start, or if it waits for a host.
func (s *startForecast) hope(name string) bool {
	hopeful, known := s.hopeful[name]
	if known {
		return hopeful
	}
	hopeful = true
	switch agent := s.agents[name]; agent.State {
	case control.StateFailed, control.StateStopped:
		hopeful = false
	case control.StateWaiting:
		hopeful = !strings.HasPrefix(agent.Reason, "for a host") && !slices.ContainsFunc(agent.DependsOn, func(on string) bool { return !s.hope(on) })
	}
	s.hopeful[name] = hopeful
	return hopeful
}

// detached prints the answer for a team in the background.
func detached(a *cli.App, status control.Status, logName string) error {
	var failed []string
	looping := false
	for i := range status.Agents {
		agent := &status.Agents[i]
		if agent.State == control.StateFailed {
			failed = append(failed, term.Word(agent.Name))
			a.Note("%s failed: %s", agent.Name, wire.Visible(agent.Reason))
		}
		if loops(agent) {
			looping = true
			a.Note("%s has already ended %s (%s): orchestrator why %s%s", agent.Name, times(agent.Starts), wire.Visible(agent.LastExit), term.Word(agent.Name), a.Named())
		}
	}
	if failed != nil {
		rest, names := "The other agents are up. ", strings.Join(failed, " ")
		if len(failed) == len(status.Agents) {
			rest, names = "", "--all"
		}
		a.Note("%sWhen the cause is fixed: orchestrator agent start %s%s     Or stop the team: orchestrator down%[3]s", rest, names, a.Named())
	}
	if a.Flags.JSON {
		if err := a.Document(status); err != nil {
			return err
		}
	} else if err := a.Print("%s is up, pid %d, %s. The log: %s\n", status.Name, status.PID, term.Count(len(status.Agents), "agent"), a.Short(logName)); err != nil {
		return err
	}
	if failed != nil || looping {
		return cli.ExitWith(cli.ExitNo)
	}
	return nil
}

func times(n int) string {
	if n == 2 {
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// endedEarly returns the result of a program in the background that has ended already. An
// early success is possible, for example with --exit-when-idle. The reason of a failure is
// the output of the program.
func endedEarly(a *cli.App, state *os.ProcessState, logName string, start int64) error {
	if state != nil && state.Success() {
		if a.Flags.JSON {
			return a.Document(notRunning{FormatVersion: wire.FormatVersion})
		}
		return a.Print("The orchestrator has already ended without an error. The log: %s\n", a.Short(logName))
	}
	code := cli.ExitNo
	if state != nil && state.ExitCode() > 0 {
		code = state.ExitCode()
	}
	words := "It printed no output."
	text, err := os.ReadFile(logName)
	if int64(len(text)) < start { // the log was rotated
		start = 0
	}
	if err == nil && int64(len(text)) > start {
		lines := strings.Split(strings.TrimSpace(string(text[start:])), "\n")
		if f := refusalIn(lines, code); f != nil {
			return f
		}
		words = strings.Join(lines[max(0, len(lines)-20):], "\n")
	} else if errors.Is(err, os.ErrNotExist) {
		words = "Its log does not exist."
	} else if eventlog.NoRoom(filepath.Dir(logName)) {
		words = "The disk is full, so it could not log the reason: df -h " + term.Word(filepath.Dir(logName))
	}
	return &cli.Failure{Exit: code, Code: cli.CodeFailed, Message: "the orchestrator ended before it was up", Because: []string{words}}
}

// refusalIn returns the failure that the program in the background printed, or nil.
func refusalIn(lines []string, exit int) *cli.Failure {
	if r, err := client.Decode[wire.Refusal]([]byte(lines[len(lines)-1])); err == nil && r.Error != nil {
		return &cli.Failure{Exit: exit, Code: r.Error.Code, Message: r.Error.Message, Details: r.Error.Details, Hint: r.Error.Hint}
	}
	i := len(lines) - 1
	for i > 0 && strings.HasPrefix(lines[i], "  ") {
		i--
	}
	message, found := strings.CutPrefix(lines[i], "Error: ")
	if !found {
		return nil
	}
	f := &cli.Failure{Exit: exit, Code: cli.CodeFailed, Message: message}
	for _, line := range lines[i+1:] {
		reason, begins := strings.CutPrefix(line, "  = ")
		switch n := len(f.Because); {
		case begins:
			f.Because = append(f.Because, reason)
		case n > 0:
			f.Because[n-1] += "\n" + strings.TrimSpace(line)
		default:
			f.Message += "\n" + strings.TrimSpace(line)
		}
	}
	return f
}
