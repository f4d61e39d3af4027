package config

import (
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
)

const (
	kib int64 = 1 << 10
	mib int64 = 1 << 20
	gib int64 = 1 << 30
)

// standard returns the configuration of a file that sets nothing.
func standard(file string) *Config {
	dir := filepath.Dir(file)
	return &Config{
		File: file,
		Dir:  dir,
		Orchestrator: Orchestrator{
			Name:     filepath.Base(dir),
			StateDir: filepath.Join(dir, ".orchestrator"),
			Shutdown: 40 * time.Second,
		},
		HTTP: HTTP{
			Hosts:   []string{"localhost", "127.0.0.1", "::1"},
			MaxBody: 16 * mib,
			Rate:    200,
		},
		Log:   Log{Level: "info", Format: "auto"},
		Store: Store{Kind: "sqlite", Path: "events.db", Durable: true},
		Protocol: Protocol{
			MaxLine:             16 * mib,
			MaxDepth:            64,
			Rate:                100,
			Burst:               100,
			RequestTimeout:      30 * time.Second,
			OnDependencyFailure: "auto",
			StrictResults:       true,
		},
		Scheduler:  Scheduler{OnOnline: true, AssignOffline: true, MaxAttempts: 3, VerifyAttempts: 2},
		Bus:        Bus{Heartbeat: 60 * time.Second, Stale: 180 * time.Second},
		Notify:     Notify{On: NotifyWords},
		places:     map[string]string{},
		secrets:    map[string]secret{},
		references: map[string]hcl.Expression{},
		withheld:   map[string]bool{},
	}
}

// standardAgent returns an agent whose block sets nothing, before the defaults block is
// applied.
func standardAgent() Agent {
	return Agent{
		InheritEnv: InheritEnv{Ordinary: true},
		Protocol:   "native",
		Stdin:      "pipe",
		Role:       "worker",
		Actor:      "auto",
		Autostart:  true,
		OnExit:     "auto",
		Client:     Client{Permission: "ask", OnTurnEnd: "remind", Resume: true, WireLog: true},
		Restart: Restart{
			Policy:     "on-failure",
			Delay:      500 * time.Millisecond,
			Factor:     2,
			MaxDelay:   30 * time.Second,
			Jitter:     0.2,
			ResetAfter: 60 * time.Second,
			Burst:      5,
			Window:     2 * time.Minute,
			Permanent:  []int{64, 78, 126, 127},
		},
		Stop: Stop{
			CloseStdin: 30 * time.Second,
			Unspoken:   time.Second,
			Signal:     "SIGTERM",
			Grace:      5 * time.Second,
		},
		Health:       Health{WriteTimeout: 10 * time.Second, OnStalled: "mark"},
		Limits:       Limits{Mailbox: 1024, MailboxBytes: 32 * mib, OpenTasks: 1000, Stored: gib, RateBytes: 8 * mib, Connections: 64},
		Output:       Output{Dir: "logs", MaxSize: 16 * mib, Keep: 8, Tail: 200},
		Capabilities: Capabilities{MaxConcurrentTasks: 1},
	}
}

// standardSession returns a session whose block sets nothing.
func standardSession() Session {
	return Session{
		Validation:    "standard",
		MaxIterations: 3,
		OnMax:         "human_review",
		ProgressAfter: 2 * time.Minute,
		ProgressEvery: 30 * time.Second,
	}
}

// signals are the allowed stop signals.
var signals = []string{"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGKILL"}

// defaults reads the defaults block and returns the settings that every agent starts from.
func (r *reader) defaults(blocks hcl.Blocks) Agent {
	a := standardAgent()
	a.Dir = r.config.Dir
	a.Output.Dir = r.config.inStateDir(a.Output.Dir)
	for _, b := range blocks {
		r.read(b.Body, r.scope, section{
			title:      "Block defaults",
			path:       "defaults",
			attributes: []attribute{attr("inherit_env", &a.InheritEnv, inheritEnv), attr("wrap", &a.Wrap, prefix), attr("user", &a.User, account)},
			children:   r.behaviour("defaults", &a, r.scope),
		})
	}
	return a
}

// inStateDir returns p, relative to the state folder unless it is absolute or begins with ~.
func (c *Config) inStateDir(p string) string {
	if strings.HasPrefix(p, "~") {
		return c.absolute(p)
	}
	return within(c.Orchestrator.StateDir, p)
}

// behaviour returns the child blocks that agents and defaults share.
func (r *reader) behaviour(path string, a *Agent, sc *scope) []child {
	kinds := []struct {
		kind       string
		attributes []attribute
	}{
		{kind: "restart", attributes: restartAttributes(&a.Restart)},
		{kind: "stop", attributes: stopAttributes(&a.Stop)},
		{kind: "health", attributes: healthAttributes(&a.Health)},
		{kind: "limits", attributes: limitsAttributes(&a.Limits)},
		{kind: "output", attributes: outputAttributes(&a.Output, r.config)},
	}
	var children []child
	for _, k := range kinds {
		children = append(children, child{kind: k.kind, read: func(b *hcl.Block) {
			r.read(b.Body, sc, section{
				title:      "Block " + k.kind,
				path:       path + "." + k.kind,
				attributes: k.attributes,
			})
		}})
	}
	return append(children, r.confine(path, &a.Confine, sc))
}

func restartAttributes(x *Restart) []attribute {
	return []attribute{
		attr("policy", &x.Policy, choice("always", "on-failure", "never")),
		attr("delay", &x.Delay, duration),
		attr("factor", &x.Factor, ratio(1, 1000)),
		attr("max_delay", &x.MaxDelay, duration),
		attr("jitter", &x.Jitter, ratio(0, 1)),
		attr("reset_after", &x.ResetAfter, duration),
		attr("burst", &x.Burst, whole(0, math.MaxInt32)),
		attr("window", &x.Window, duration),
		attr("permanent", &x.Permanent, numbers(0, 255)),
	}
}

func stopAttributes(x *Stop) []attribute {
	return []attribute{
		attr("close_stdin", x, func(x *Stop, v value) {
			duration(&x.CloseStdin, v)
			x.Unspoken = x.CloseStdin
		}),
		attr("signal", &x.Signal, choice(signals...)),
		attr("grace", &x.Grace, duration),
	}
}

func healthAttributes(x *Health) []attribute {
	return []attribute{
		attr("silence", &x.Silence, duration),
		attr("write_timeout", &x.WriteTimeout, longer),
		attr("on_stalled", &x.OnStalled, choice("mark", "restart")),
	}
}

func limitsAttributes(x *Limits) []attribute {
	return []attribute{
		attr("mailbox", &x.Mailbox, whole(1, math.MaxInt32)),
		attr("mailbox_bytes", &x.MailboxBytes, size(1)),
		attr("open_files", &x.OpenFiles, whole(0, math.MaxInt32)),
		attr("memory", &x.Memory, size(0)),
		attr("processes", &x.Processes, whole(0, math.MaxInt32)),
		attr("cpu", &x.CPU, ratio(0, 1<<16)),
		attr("open_tasks", &x.OpenTasks, whole(0, math.MaxInt32)),
		attr("stored", &x.Stored, size(0)),
		attr("rate_bytes", &x.RateBytes, size(0)),
		attr("connections", &x.Connections, whole(1, math.MaxInt32)),
	}
}

func outputAttributes(x *Output, c *Config) []attribute {
	return []attribute{
		attr("dir", &x.Dir, path(c.inStateDir)),
		attr("max_size", &x.MaxSize, size(1)),
		attr("keep", &x.Keep, whole(0, math.MaxInt32)),
		attr("tail", &x.Tail, whole(0, 1_000_000)),
	}
}
