package config

import (
	"fmt"
	"math"

	"github.com/hashicorp/hcl/v2"

	"orchestrator/supervisor/budget"
)

// A Price is the cost of a million tokens of a model.
type Price struct {
	Input, Output float64
	CacheRead     float64 // of the part of the input that was read from a cache; 0: as Input
}

// budgetBlock returns the reader of a budget block.
func (r *reader) budgetBlock(at string, a *Agent, sc *scope) child {
	return child{kind: "budget", read: func(b *hcl.Block) {
		l := new(budget.Limit)
		set := r.readFresh(b.Body, sc, section{title: "Block budget", path: at + ".budget", attributes: []attribute{
			attr("tokens", &l.Tokens, count(0, math.MaxInt)),
			attr("cost", &l.Cost, ratio(0, 1e9)),
			attr("time", &l.Time, duration),
			attr("per", &l.Per, choice("task", "agent", "team", "day")).initially("task"),
			attr("reached", &l.Stop, chosen("stop", "ask", "stop")).initially("ask"),
		}})
		switch given, ok := set["time"]; {
		case ok && l.Time > 0 && l.Per != "task":
			r.report(given, Problem{
				Code: "config/budget-time", Summary: "Time is for tasks", Detail: fmt.Sprintf("A time limits one task, and this budget is per %s.", l.Per),
				Hint: "Remove time or per.",
			})
		case l.Tokens == 0 && l.Cost == 0 && l.Time == 0:
			r.report(b.DefRange, Problem{
				Severity: SeverityWarning, Code: "config/budget-of-nothing", Summary: "Budget without a limit", Detail: "The budget sets no tokens, cost or time, so it limits nothing.",
			})
		default:
			a.Budget = l
		}
	}}
}

// prices returns the block of the prices of models, for programs that report no cost.
func (r *reader) prices() child {
	return child{kind: "prices", children: []child{{kind: "model", label: "name", many: true, read: func(b *hcl.Block) {
		var p Price
		at := "prices.model." + b.Labels[0]
		r.read(b.Body, r.scope, section{title: fmt.Sprintf("Model %q", b.Labels[0]), path: at, attributes: []attribute{
			attr("input", &p.Input, ratio(0, 1e9)),
			attr("output", &p.Output, ratio(0, 1e9)),
			attr("cache_read", &p.CacheRead, ratio(0, 1e9)),
		}})
		if r.config.Prices == nil {
			r.config.Prices = map[string]Price{}
		}
		r.config.Prices[b.Labels[0]] = p
	}}}}.live(&r.config.Prices)
}
