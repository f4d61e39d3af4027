package config

import (
	"math"
	"path/filepath"
	"slices"
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
	c := &Config{
		File:         file,
		Dir:          dir,
		Orchestrator: Orchestrator{Name: filepath.Base(dir), StateDir: filepath.Join(dir, ".orchestrator")},
		Notify:       Notify{On: NotifyWords},
		places:       map[string]string{},
		secrets:      map[string]secret{},
		references:   map[string]hcl.Expression{},
		withheld:     map[string]bool{},
	}
	new(reader).setDefaults(c.section())
	return c
}

// standardAgent returns an agent whose block sets nothing, before the defaults block is
// applied.
func (c *Config) standardAgent() Agent {
	var a Agent
	r := &reader{config: c}
	r.setDefaults(r.agentSection(&a, new([]dependency), nil, false))
	a.Stop.Unspoken = time.Second // close_stdin has set it
	return a
}

// signals are the allowed stop signals.
var signals = []string{"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGKILL"}

// defaults reads the defaults block and returns the settings that every agent starts from.
func (r *reader) defaults(blocks hcl.Blocks) Agent {
	a := r.config.standardAgent()
	a.Dir, r.client = r.config.Dir, a.Client
	s := section{title: "Block defaults", path: "defaults", children: r.behaviour(&a)}
	all := r.agentSection(&a, nil, r.scope, false).attributes
	for _, name := range []string{"inherit_env", "wrap", "user"} {
		s.attributes = append(s.attributes, all[slices.IndexFunc(all, func(a attribute) bool { return a.name == name })])
	}
	for _, b := range blocks {
		r.read(b.Body, r.scope, s)
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
func (r *reader) behaviour(a *Agent) []child {
	return []child{
		{kind: "restart", attributes: restartAttributes(&a.Restart)},
		{kind: "stop", attributes: stopAttributes(&a.Stop)},
		{kind: "health", attributes: healthAttributes(&a.Health)},
		{kind: "limits", attributes: limitsAttributes(&a.Limits)},
		{kind: "output", attributes: outputAttributes(&a.Output, r.config)},
		r.confine(&a.Confine),
	}
}

func restartAttributes(x *Restart) []attribute {
	return []attribute{
		attr("policy", &x.Policy, choice("always", "on-failure", "never")).live("on-failure"),
		attr("delay", &x.Delay, duration).live("500ms"),
		attr("factor", &x.Factor, ratio(1, 1000)).live(2.0),
		attr("max_delay", &x.MaxDelay, duration).live("30s"),
		attr("jitter", &x.Jitter, ratio(0, 1)).live(0.2),
		attr("reset_after", &x.ResetAfter, duration).live("60s"),
		attr("burst", &x.Burst, whole(0, math.MaxInt32)).live(5),
		attr("window", &x.Window, duration).live("2m"),
		attr("permanent", &x.Permanent, numbers(0, 255)).live([]int{64, 78, 126, 127}),
	}
}

func stopAttributes(x *Stop) []attribute {
	return []attribute{
		attr("close_stdin", x, func(x *Stop, v value) {
			duration(&x.CloseStdin, v)
			x.Unspoken = x.CloseStdin
		}).of(&x.CloseStdin, &x.Unspoken).live("30s"),
		attr("signal", &x.Signal, choice(signals...)).live("SIGTERM"),
		attr("grace", &x.Grace, duration).live("5s"),
	}
}

func healthAttributes(x *Health) []attribute {
	return []attribute{
		attr("silence", &x.Silence, duration).live("0s"),
		attr("write_timeout", &x.WriteTimeout, longer).live("10s"),
		attr("on_stalled", &x.OnStalled, choice("mark", "restart")).live("mark"),
	}
}

func limitsAttributes(x *Limits) []attribute {
	return []attribute{
		attr("mailbox", &x.Mailbox, whole(1, math.MaxInt32)).restarts(1024),
		attr("mailbox_bytes", &x.MailboxBytes, size(1)).restarts("32MiB"),
		attr("open_files", &x.OpenFiles, whole(0, math.MaxInt32)).restarts(0),
		attr("memory", &x.Memory, size(0)).restarts("0"),
		attr("processes", &x.Processes, whole(0, math.MaxInt32)).restarts(0),
		attr("cpu", &x.CPU, ratio(0, 1<<16)).restarts(0),
		attr("open_tasks", &x.OpenTasks, whole(0, math.MaxInt32)).live(1000),
		attr("stored", &x.Stored, size(0)).live("1GiB"),
		attr("rate_bytes", &x.RateBytes, size(0)).restarts("8MiB"), // the bytes of a run are counted from its start
		attr("connections", &x.Connections, whole(1, math.MaxInt32)).live(64),
	}
}

func outputAttributes(x *Output, c *Config) []attribute {
	return []attribute{
		attr("dir", &x.Dir, path(c.inStateDir)).restarts("logs"), // a run has one file
		attr("max_size", &x.MaxSize, size(1)).live("16MiB"),
		attr("keep", &x.Keep, whole(0, math.MaxInt32)).live(8),
		attr("tail", &x.Tail, whole(0, 1_000_000)).live(200),
	}
}
