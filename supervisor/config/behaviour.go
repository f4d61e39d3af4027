package config

import (
	"math"

	"github.com/hashicorp/hcl/v2"
)

// signals are the allowed stop signals.
var signals = []string{"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGKILL"}

// defaults reads the defaults block and returns the settings that every agent starts from.
func (r *reader) defaults(blocks hcl.Blocks) Agent {
	a := standardAgent()
	a.Dir = r.config.Dir
	a.Output.Dir = r.inStateDir(a.Output.Dir)
	for _, b := range blocks {
		r.read(b.Body, r.scope, section{
			title:      "Block defaults",
			path:       "defaults",
			attributes: []attribute{attr("inherit_env", inheritEnv(&a.InheritEnv))},
			children:   r.behaviour("defaults", &a, r.scope),
		})
	}
	return a
}

func (r *reader) inStateDir(p string) string {
	if p != "" && p[0] == '~' {
		return r.config.absolute(p)
	}
	return within(r.config.Orchestrator.StateDir, p)
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
		{kind: "output", attributes: r.outputAttributes(&a.Output)},
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
	return children
}

func restartAttributes(x *Restart) []attribute {
	return []attribute{
		attr("policy", choice(&x.Policy, "always", "on-failure", "never")),
		attr("delay", duration(&x.Delay)),
		attr("factor", ratio(&x.Factor, 1, 1000)),
		attr("max_delay", duration(&x.MaxDelay)),
		attr("jitter", ratio(&x.Jitter, 0, 1)),
		attr("reset_after", duration(&x.ResetAfter)),
		attr("burst", whole(&x.Burst, 0, math.MaxInt32)),
		attr("window", duration(&x.Window)),
		attr("permanent", numbers(&x.Permanent, 0, 255)),
	}
}

func stopAttributes(x *Stop) []attribute {
	return []attribute{
		attr("close_stdin", func(v value) {
			duration(&x.CloseStdin)(v)
			x.Unspoken = x.CloseStdin
		}),
		attr("signal", choice(&x.Signal, signals...)),
		attr("grace", duration(&x.Grace)),
	}
}

func healthAttributes(x *Health) []attribute {
	return []attribute{
		attr("silence", duration(&x.Silence)),
		attr("write_timeout", longer(&x.WriteTimeout)),
		attr("on_stalled", choice(&x.OnStalled, "mark", "restart")),
	}
}

func limitsAttributes(x *Limits) []attribute {
	return []attribute{
		attr("mailbox", whole(&x.Mailbox, 1, math.MaxInt32)),
		attr("mailbox_bytes", size(&x.MailboxBytes, 1)),
		attr("open_files", whole(&x.OpenFiles, 0, math.MaxInt32)),
		attr("memory", size(&x.Memory, 0)),
	}
}

func (r *reader) outputAttributes(x *Output) []attribute {
	return []attribute{
		attr("dir", path(&x.Dir, r.inStateDir)),
		attr("max_size", size(&x.MaxSize, 1)),
		attr("keep", whole(&x.Keep, 0, math.MaxInt32)),
		attr("tail", whole(&x.Tail, 0, 1_000_000)),
	}
}
