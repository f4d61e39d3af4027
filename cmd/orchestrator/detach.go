package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"orchestrator/supervisor"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
)

// detach starts this program again in the background and returns when every
// agent has been started, or with the reason why not.
func (a *app) detach(c *config.Config) error {
	ctx, stop := a.begin()
	defer stop()
	dir := c.Orchestrator.StateDir
	if home, err := supervisor.OpenHome(dir); err != nil {
		return cannotHold(err, dir)
	} else {
		home.Close()
	}
	logName := filepath.Join(dir, "orchestrator.log")
	process, start, err := a.background(logName)
	if err != nil {
		return fmt.Errorf("starting in the background: %w", err)
	}
	ended := make(chan *os.ProcessState, 1)
	go func() { // ends with the process, or with us
		state, _ := process.Wait()
		ended <- state
	}()
	done := a.patience("the agents to start")
	defer done()
	door := a.doorOf(target{socket: a.socketPath(dir), subject: c.File})
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return a.ended(ctx)
		case state := <-ended:
			return a.endedEarly(state, logName, start)
		case <-again.C:
		}
		if status, ok := settled(ctx, door); ok {
			return a.detached(status, logName)
		}
	}
}

// background starts this program without -d, on its own, writing to a file.
// It returns where in the file this start begins.
func (a *app) background(logName string) (*os.Process, int64, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, 0, err
	}
	log, err := os.OpenFile(logName, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
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
	process, err := os.StartProcess(self, append([]string{os.Args[0]}, foreground(a.args)...), &os.ProcAttr{
		Dir: a.dir, Env: a.environ, Files: []*os.File{nothing, log, log},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	return process, info.Size(), err
}

// foreground are the arguments without the one that asked for the background.
func foreground(args []string) []string {
	var rest []string
	for i, arg := range args {
		if arg == "--" {
			return append(rest, args[i:]...)
		}
		switch arg {
		case "-d", "--detach", "--detach=true":
		default:
			rest = append(rest, arg)
		}
	}
	return rest
}

// settled says whether every agent of an orchestrator has been started, or
// never will be.
func settled(ctx context.Context, d *door) (wire.Status, bool) {
	text, err := d.ask(ctx, "status", struct{}{})
	if err != nil {
		return wire.Status{}, false
	}
	status, err := decode[wire.Status](text)
	if err != nil {
		return status, false
	}
	for _, agent := range status.Agents {
		if agent.State == wire.StateStarting || agent.State == wire.StateWaiting && agent.Starts == 0 && hopeful(status, agent) {
			return status, false
		}
	}
	return status, true
}

// hopeful says whether an agent that waits may still start by itself.
func hopeful(status wire.Status, agent wire.AgentView) bool {
	for _, name := range agent.DependsOn {
		for _, other := range status.Agents {
			if other.Name == name && (other.State == wire.StateFailed || other.State == wire.StateStopped) {
				return false
			}
		}
	}
	return true
}

// detached is the answer when the team runs in the background.
func (a *app) detached(status wire.Status, logName string) error {
	failed := 0
	for _, agent := range status.Agents {
		if agent.State == wire.StateFailed {
			failed++
			a.talk("%s failed: %s", agent.Name, wire.Visible(agent.Reason))
		}
	}
	if a.flags.json {
		if err := a.document(status); err != nil {
			return err
		}
	} else if err := a.print("%s is up, pid %d, %s. Its words: %s\n", status.Name, status.PID, count(len(status.Agents), "agent"), a.short(logName)); err != nil {
		return err
	}
	if failed > 0 {
		return answered(exitNo)
	}
	return nil
}

// endedEarly says what the program in the background said before it ended.
func (a *app) endedEarly(state *os.ProcessState, logName string, start int64) error {
	code := exitNo
	if state != nil && state.ExitCode() > 0 {
		code = state.ExitCode()
	}
	words := "It said nothing."
	if text, err := os.ReadFile(logName); err == nil && int64(len(text)) > start {
		lines := bytes.Split(bytes.TrimSpace(text[start:]), []byte("\n"))
		words = string(bytes.Join(lines[max(0, len(lines)-20):], []byte("\n")))
	} else if errors.Is(err, os.ErrNotExist) {
		words = "Its log is gone."
	}
	if code == exitOK {
		code = exitNo
	}
	return &failure{exit: code, code: codeFailed, message: "The orchestrator ended before it was up", because: []string{words}}
}
