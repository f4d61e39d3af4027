package supervisor

// An orderedStop stops agents in order: each one after the others that depend on it. Agents
// that are to start again do so when all have stopped.
type orderedStop struct {
	stop  func(*agent) // asks an agent to stop
	left  map[*agent]bool
	asked map[*agent]bool
	above map[*agent]int      // number of running dependents among the others
	below map[*agent][]*agent // its dependencies among the others
}

// orderedStops are the ordered stops that are not complete.
type orderedStops struct {
	life    *lifecycle
	running []*orderedStop
}

// of returns an orderedStop of the agents. The caller starts it with begin.
func (o *orderedStops) of(agents []*agent, stop func(*agent)) *orderedStop {
	p := &orderedStop{
		stop: stop, left: make(map[*agent]bool), asked: make(map[*agent]bool),
		above: make(map[*agent]int), below: make(map[*agent][]*agent),
	}
	for _, a := range agents {
		p.left[a] = true
	}
	for _, a := range agents {
		for _, name := range a.DependsOn {
			if d := o.life.agents[name]; d != nil && d != a && p.left[d] {
				p.above[d]++
				p.below[a] = append(p.below[a], d)
			}
		}
	}
	return p
}

// begin starts an ordered stop with the agents that have no dependents.
func (o *orderedStops) begin(p *orderedStop, agents []*agent) {
	o.running = append(o.running, p)
	for _, a := range agents {
		if p.above[a] == 0 {
			p.ask(a)
		}
	}
	o.disband()
}

// ask asks an agent to stop, once.
func (o *orderedStop) ask(a *agent) {
	if o.left[a] && !o.asked[a] {
		o.asked[a] = true
		o.stop(a)
	}
}

// gone removes an agent that has stopped from every ordered stop, and asks the agents that
// waited for it. An agent that ended by itself is removed as well.
func (o *orderedStops) gone(a *agent) {
	for _, p := range o.running {
		if !p.left[a] {
			continue
		}
		delete(p.left, a)
		p.asked[a] = true
		for _, d := range p.below[a] {
			if p.above[d]--; p.above[d] == 0 {
				p.ask(d)
			}
		}
	}
	o.disband()
}

// disband removes the ordered stops that are complete, and starts their agents that should run.
func (o *orderedStops) disband() {
	rest := o.running[:0]
	through := false
	for _, p := range o.running {
		if len(p.left) > 0 {
			rest = append(rest, p)
		} else {
			through = true
		}
	}
	clear(o.running[len(rest):])
	o.running = rest
	o.life.checkOver()
	if through {
		for _, a := range o.life.order {
			o.life.tryStart(a)
		}
	}
}

// held reports whether an agent must not start yet because its ordered stop still runs.
func (o *orderedStops) held(a *agent) bool {
	for _, p := range o.running {
		if p.asked[a] {
			return true
		}
	}
	return false
}
