package config

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/sys/unix"

	"orchestrator/supervisor/settings"
)

const (
	kib int64 = 1 << 10
	mib int64 = 1 << 20
	gib int64 = 1 << 30
)

// standard returns the configuration of an empty file.
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

// standardAgent returns the agent of an empty block, before the defaults block is applied.
func (c *Config) standardAgent() Agent {
	var a Agent
	r := &reader{config: c}
	r.setDefaults(r.agentSection(&a, new([]dependency), nil, false))
	a.Stop.Unspoken = time.Second // close_stdin has set it
	return a
}

// signal reads a stop signal.
func signal(into *syscall.Signal, v value) {
	name := ""
	choice("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGKILL")(&name, v)
	if name != "" {
		*into = unix.SignalNum(name)
	}
}

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
		{kind: "limits", attributes: limitsAttributes(a)},
		{kind: "output", attributes: outputAttributes(a, r.config)},
		r.confine(&a.Confined),
	}
}

func restartAttributes(x *settings.Restart) []attribute {
	return []attribute{
		attr("policy", &x.Policy, policy).live("on-failure"),
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

// policy reads a restart policy.
func policy(into *settings.Policy, v value) {
	choice("always", "on-failure", "never")((*string)(into), v)
}

func stopAttributes(x *settings.Stop) []attribute {
	return []attribute{
		attr("close_stdin", x, func(x *settings.Stop, v value) {
			duration(&x.CloseStdin, v)
			x.Unspoken = x.CloseStdin
		}).of(&x.CloseStdin, &x.Unspoken).live("30s"),
		attr("signal", &x.Signal, signal).live("SIGTERM"),
		attr("grace", &x.Grace, duration).live("5s"),
	}
}

func healthAttributes(x *settings.Health) []attribute {
	return []attribute{
		attr("silence", &x.Silence, duration).live("0s"),
		attr("write_timeout", &x.WriteTimeout, longer).live("10s"),
		attr("on_stalled", &x.Restart, chosen("restart", "mark", "restart")).live("mark"),
	}
}

func limitsAttributes(a *Agent) []attribute {
	return []attribute{
		attr("mailbox", &a.Mailbox.Messages, whole(1, math.MaxInt32)).restarts(1024),
		attr("mailbox_bytes", &a.Mailbox.Bytes, size(1)).restarts("32MiB"),
		attr("open_files", &a.Limits.OpenFiles, whole(0, math.MaxInt32)).restarts(0),
		attr("memory", &a.Limits.Memory, size(0)).restarts("0"),
		attr("processes", &a.Limits.Processes, whole(0, math.MaxInt32)).restarts(0),
		attr("cpu", &a.Limits.CPU, ratio(0, 1<<16)).restarts(0),
		attr("open_tasks", &a.OpenTasks, whole(0, math.MaxInt32)).live(1000),
		attr("stored", &a.Stored, size(0)).live("1GiB"),
		attr("rate_bytes", &a.RateBytes, size(0)).restarts("8MiB"), // the bytes of a run are counted from its start
		attr("connections", &a.Connections, whole(1, math.MaxInt32)).live(64),
	}
}

func outputAttributes(a *Agent, c *Config) []attribute {
	return []attribute{
		attr("dir", &a.Output.Dir, path(c.inStateDir)).restarts("logs"), // a run has one file
		attr("max_size", &a.Output.MaxSize, size(1)).live("16MiB"),
		attr("keep", &a.Output.Keep, whole(0, math.MaxInt32)).live(8),
		attr("tail", &a.Output.Tail, whole(0, 1_000_000)).live(200),
	}
}
