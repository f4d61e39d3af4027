package config

import (
	"fmt"
	"math"
	"time"

	"github.com/hashicorp/hcl/v2"
)

// A Budget says what an agent may use. A limit of 0 is none.
type Budget struct {
	Tokens  int // in and out
	Cost    float64
	Time    time.Duration // of a task
	Per     string        // "task", "agent", "team" or "day"
	Reached string        // "ask" or "stop"
}

// A Price is what a million tokens of a model cost.
type Price struct {
	Input, Output float64
	CacheRead     float64 // of the part of the input that was read from a cache; 0: as Input
}

// budget returns the reader of a budget block.
func budget(r *reader, at string, a *Agent, sc *scope) child {
	return child{kind: "budget", read: func(b *hcl.Block) {
		l := &Budget{Per: "task", Reached: "ask"}
		set := r.read(b.Body, sc, section{title: "Block budget", path: at + ".budget", attributes: []attribute{
			attr("tokens", &l.Tokens, whole(0, math.MaxInt)),
			attr("cost", &l.Cost, ratio(0, 1e9)),
			attr("time", &l.Time, duration),
			attr("per", &l.Per, choice("task", "agent", "team", "day")),
			attr("reached", &l.Reached, choice("ask", "stop")),
		}})
		switch given, ok := set["time"]; {
		case ok && l.Time > 0 && l.Per != "task":
			r.report(given, Problem{
				Code: "config/budget-time", Summary: "Time is for tasks", Detail: fmt.Sprintf("A time limits one task, and this budget is per %s.", l.Per),
				Hint: "Take time out, or per.",
			})
		case l.Tokens == 0 && l.Cost == 0 && l.Time == 0:
			r.report(b.DefRange, Problem{
				Severity: SeverityWarning, Code: "config/budget-of-nothing", Summary: "Budget without a limit", Detail: "The budget has none of tokens, cost and time, so it limits nothing.",
			})
		default:
			a.Budget = l
		}
	}}
}

// prices reads what the models cost whose programs report no money.
func prices(r *reader, b *hcl.Block) {
	r.config.Prices = map[string]Price{}
	r.read(b.Body, r.scope, section{title: "Block prices", path: "prices", children: []child{{kind: "model", label: "name", many: true, read: func(b *hcl.Block) {
		var p Price
		at := "prices.model." + b.Labels[0]
		r.read(b.Body, r.scope, section{title: fmt.Sprintf("Model %q", b.Labels[0]), path: at, attributes: []attribute{
			attr("input", &p.Input, ratio(0, 1e9)),
			attr("output", &p.Output, ratio(0, 1e9)),
			attr("cache_read", &p.CacheRead, ratio(0, 1e9)),
		}})
		r.config.Prices[b.Labels[0]] = p
	}}}})
}
