package handlers

import (
	"orchestrator/handlers/replies"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/graph"
	"orchestrator/handlers/match"
	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// requireSoundTasks requires that every task is counted once, waits for open tasks only, and is
// listed by its owners.
func requireSoundTasks(t testing.TB, s *State) {
	counts, parts := make(map[wire.TaskState]int), make(map[wire.TaskState]int)
	for _, k := range s.tasks.list {
		counts[k.view.State]++
		if k.view.Details.IsPart() {
			parts[k.view.State]++
		}
		open := 0
		for e := range s.tasks.graph.Needs(k.node) {
			v := s.tasks.graph.Edge(e)
			up := s.tasks.nodes[v.Up]
			if gates(v.Kind) && !up.handsOver() {
				open++
			}
			sound := v.Resolved == (v.Kind == graph.Related || up.handsOver())
			if v.Kind == graph.Soft { // it stays resolved if the other task is tried again
				sound = v.Resolved || !up.view.State.Final()
			}
			if !sound {
				require.Fail(t, "a dependency is not sound", "%+v while the other is %s", v, up.view.State)
			}
		}
		if k.view.State == wire.TaskPending && open > 0 {
			counts[blocked]++
		}
		begun := k.busy() || k.view.State == wire.TaskNeedsHuman || k.view.State == wire.TaskDone
		sound := s.tasks.graph.Open(k.node) == open && (open == 0 || !begun) &&
			(k.view.EndedAt != "") == k.view.State.Final()
		if !sound { // a require call for each of many is slow
			require.Fail(t, "a task is not sound", "%d of what it depends on are not done: %+v", open, k)
		}
	}
	for state, n := range s.tasks.counts {
		require.Equal(t, counts[state]+s.tasks.archive.counts[state], n, "tasks that are %s", state)
		if state != blocked {
			require.Equal(t, parts[state]+s.tasks.archive.parts[state], s.tasks.parts[state], "parts that are %s", state)
		}
	}
	require.Empty(t, s.tasks.archive.guests)
	require.Len(t, s.tasks.byID, len(s.tasks.list))
	require.Equal(t, len(s.tasks.list), s.tasks.graph.Len())
	require.LessOrEqual(t, len(s.tasks.finished), s.rules.KeepFinished)
	owned := make(map[string]map[*task]bool)
	for _, k := range s.tasks.list {
		requirePlain(t, k)
		for _, actor := range k.owners() {
			if owned[actor] == nil {
				owned[actor] = make(map[*task]bool)
			}
			owned[actor][k] = true
		}
	}
	for actor, all := range owned {
		require.Len(t, s.tasks.owned[actor], len(all))
	}
	for actor, mine := range s.tasks.owned {
		require.True(t, slices.IsSortedFunc(mine, func(a, b *task) int { return int(a.created - b.created) }))
		for _, k := range mine {
			if k.view.SubmittedBy != actor && k.view.AssignedTo != agentOf(actor) {
				require.Fail(t, "an actor sees another's task", "%s sees %s", actor, k.view.ID)
			}
		}
	}
}

// requirePlain requires that a plain task is spelled by hand as it is by reflection.
func requirePlain(t testing.TB, k *task) {
	if k.more != nil {
		return
	}
	kept := k.snapshot()
	text, err := object.Encode(&kept)
	require.NoError(t, err)
	if plain := k.appendPlain(nil); string(plain) != string(text) {
		require.Equal(t, string(text), string(plain))
	}
}

// requireSoundAgents requires that an assigned task is held by one agent, and that no other task
// is held.
func requireSoundAgents(t testing.TB, s *State) {
	holders := make(map[*task]*agent)
	for _, a := range s.agents.order {
		require.Same(t, a, s.agents.byID[a.ID])
		for _, k := range a.holds {
			require.Nil(t, holders[k], "%s is held twice", k.view.ID)
			holders[k] = a
			require.Equal(t, a.ID, k.view.AssignedTo)
			require.Contains(t, s.tasks.owned[a.actor], k)
		}
		require.LessOrEqual(t, len(a.memories.All()), replies.Kept)
	}
	for _, k := range s.tasks.list {
		if held := k.view.State != wire.TaskPending && !k.view.State.Final(); held != (holders[k] != nil) {
			require.Fail(t, "a task is in hand, and is not", "%s is %s", k.view.ID, k.view.State)
		}
	}
}

// requireSoundMarket requires that exactly the assignable tasks wait, that exactly the available
// agents are free, and that no pair of them fits.
func requireSoundMarket(t testing.TB, s *State) {
	waiting := 0
	for _, k := range s.tasks.list {
		could := k.view.State == wire.TaskPending && s.tasks.graph.Open(k.node) == 0 && k.asks() && !k.postponed()
		if could != (k.demand != nil) {
			require.Fail(t, "a task waits to be given out, and does not", "%s is %s", k.view.ID, k.view.State)
		}
		if !could {
			continue
		}
		waiting++
		if s.stopping {
			continue
		}
		for _, a := range s.agents.order {
			fits := a.takes() && a.hears() && (k.wants() == nil || s.agents.index.Fits(&k.wants().Demand, a.ID, match.Conditions{})) && a.offers(k.view.RequiredRole, k.view.RequiredCapabilities) && a.actor != k.view.SubmittedBy
			require.False(t, fits, "%s waits, and %s would fit", k.view.ID, a.ID)
		}
	}
	require.NoError(t, s.tasks.queue.waiting.Check())
	for d := range s.tasks.queue.waiting.Buckets() {
		for k := range d.Items() {
			require.Same(t, d, k.demand)
			waiting--
		}
	}
	require.Zero(t, waiting)
	requireSoundFree(t, s)
}

// requireSoundPostponed requires that exactly the postponed tasks are in the timeline, that each
// is pending, and that callers see until when.
func requireSoundPostponed(t testing.TB, s *State) {
	postponed := 0
	for _, k := range s.tasks.list {
		if !k.postponed() {
			require.True(t, k.view.Details == nil || k.view.After == "", "%s is not postponed any more", k.view.ID)
			continue
		}
		postponed++
		require.Equal(t, wire.TaskPending, k.view.State)
		require.Equal(t, object.Timestamp(k.more.after), k.view.After)
		require.Contains(t, s.tasks.later, k)
	}
	require.Len(t, s.tasks.later, postponed)
	require.True(t, slices.IsSortedFunc(s.tasks.later, queue.CompareTimes[*task]))
}

// requireSoundFree requires that exactly the agents that could be assigned a task are free.
func requireSoundFree(t testing.TB, s *State) {
	var free []*agent
	for _, a := range s.agents.order {
		require.Equal(t, a.takes(), a.offered)
		if a.takes() {
			free = append(free, a)
		}
	}
	slices.SortFunc(free, byPatience)
	require.Equal(t, len(free), len(s.tasks.queue.free))
	for i, a := range free {
		require.Same(t, a, s.tasks.queue.free[i])
	}
	require.Subset(t, free, s.tasks.queue.freed)
}

// requireSoundQuestions requires that every open question is in every list, and that no question
// about a permission is for a task that has ended or that another agent has.
func requireSoundQuestions(t testing.TB, s *State) {
	require.Equal(t, len(s.questions.byID), len(s.questions.open))
	timed := 0
	for _, q := range s.questions.open {
		require.Same(t, q, s.questions.byID[q.view.ID])
		if k := s.tasks.byID[q.view.Task]; q.view.Permission != nil && k != nil {
			require.False(t, k.view.State.Final(), "%s is open, and its task has ended", q.view.ID)
			require.Contains(t, []string{"", q.view.Agent}, k.view.AssignedTo, "%s is open, and another agent has its task", q.view.ID)
		}
		if !q.deadline.IsZero() {
			timed++
			require.Contains(t, s.questions.deadlines, q)
		}
	}
	require.Equal(t, timed, len(s.questions.deadlines))
	require.True(t, slices.IsSortedFunc(s.questions.deadlines, queue.CompareTimes[*question]))
}

// requireSoundBus requires that every actor with mail is known once and that agents and actors
// refer to each other. Exactly the expected heartbeats are watched. There are no more actors of
// runs than agents.
func requireSoundBus(t testing.TB, s *State) {
	require.NoError(t, s.bus.Check())
	for _, c := range s.bus.All() {
		if c.Agent != nil {
			require.Same(t, s.agents.byID[c.Agent.ID], c.Agent)
			require.Same(t, c, c.Agent.mail, "%s is %s, and has the mail of another", c.Agent.ID, c.ID)
		}
		require.True(t, !c.OfRun || c.Agent != nil || s.access.HasToken(c.ID), "%s was a run, and is known for ever", c.ID)
		require.LessOrEqual(t, max(c.Cursor, c.Latest, c.Since), s.Seq())
	}
	for _, a := range s.agents.order {
		require.True(t, a.mail == nil || s.bus.Actor(a.mail.ID) == a.mail && a.mail.Agent == a, "%s is another's actor", a.ID)
	}
}

// requireSoundWishes requires that exactly the unblocked tasks with nothing but requirements
// wait, each in its place.
func requireSoundWishes(t testing.TB, s *State) {
	waiting := 0
	for _, k := range s.tasks.list {
		could := k.view.State == wire.TaskPending && s.tasks.graph.Open(k.node) == 0 && k.wants() != nil && !k.asks() && k.delegation() == nil && !k.postponed()
		waits := k.more != nil && k.more.bucket != nil
		if could != waits {
			require.Fail(t, "a task waits for one that fits, and does not", "%s is %s", k.view.ID, k.view.State)
		}
		if waits {
			waiting++
			require.Contains(t, slices.Collect(k.more.bucket.Items()), k)
			require.Equal(t, k.wants().key, k.more.bucket.Asks.key)
		}
	}
	require.NoError(t, s.tasks.required.waiting.Check())
	filed := 0
	for h := range s.tasks.required.waiting.Buckets() {
		filed++
		waiting -= len(slices.Collect(h.Items()))
	}
	require.Zero(t, waiting)
	require.Equal(t, s.tasks.required.waiting.Len(), filed)
	require.Empty(t, s.tasks.required.order, "all of them have been looked at")
}

// requireSoundIndex requires that the index equals one built anew from the agents.
func requireSoundIndex(t testing.TB, s *State) {
	fresh := match.New()
	for _, a := range s.agents.order {
		running := 0
		for _, k := range a.holds {
			if k.busy() {
				running++
			}
		}
		require.Equal(t, a.running, running, "tasks that %s works on", a.ID)
		if s.rules.CountAssigned {
			running = len(a.holds)
		}
		capacity := a.Capacity
		if a.remote != nil && !s.access.HasKey(a.ID) || !a.limited.IsZero() {
			capacity = 0
		}
		fresh.Put(a.ID, offerOf(a), match.Standing{
			Online: a.state == up || a.state == leaving, Running: running, Capacity: capacity, Load: len(a.holds),
		})
	}
	demands := []match.Demand{{}, {Languages: []string{"go"}}, {Repo: "api", Tags: []string{"gpu"}}, {Environments: []string{"linux"}, Prefer: "a3"}}
	for h := range s.tasks.required.waiting.Buckets() {
		demands = append(demands, h.Asks.Demand)
	}
	for i := range demands {
		require.Equal(t, fresh.Verdicts(&demands[i]), s.agents.index.Verdicts(&demands[i]))
		for _, c := range []match.Conditions{{}, {Online: true}, {Online: true, Free: true}, {Not: "a1"}} {
			name, score, ok := fresh.Best(&demands[i], c)
			name2, score2, ok2 := s.agents.index.Best(&demands[i], c)
			require.Equal(t, []any{name, score, ok}, []any{name2, score2, ok2})
		}
	}
}

// offerOf returns the capabilities that an agent advertised, or those of the configuration.
func offerOf(a *agent) match.Offer {
	c := a.said
	if c == nil {
		c = hub.ReadCapabilities(a.configured.Abilities)
	}
	if c == nil {
		return match.Offer{}
	}
	o := match.Offer{Languages: c.Languages, Environments: c.Environments, Tools: c.Tools, Tags: c.Tags}
	for _, r := range c.Repos {
		o.Repos = append(o.Repos, match.Repo{Name: r.Name, Languages: r.Languages, Tools: r.Tools})
	}
	return o
}

// requireSoundServers requires that exactly the online servers are watched, the one with the
// oldest contact first.
func requireSoundServers(t testing.TB, s *State) {
	online := 0
	for _, a := range s.agents.order {
		if a.remote != nil && a.state == up {
			online++
			require.Contains(t, s.agents.online, a)
		}
	}
	require.Equal(t, len(s.agents.online), online)
	require.True(t, slices.IsSortedFunc(s.agents.online, queue.CompareTimes[*agent]))
}

// requireSoundHelp requires that an agent's question about its task is open exactly as long as
// the task waits for it.
func requireSoundHelp(t testing.TB, s *State) {
	about := make(map[string]string)
	for _, q := range s.questions.open {
		if q.view.Task != "" && !q.aside {
			k := s.tasks.byID[q.view.Task]
			require.Empty(t, about[q.view.Task], "two questions about one task")
			about[q.view.Task] = q.view.ID
			if w := k.work(); w != nil && w.question == q.view.ID { // the result of a review
				require.Equal(t, w.architect, q.view.Agent)
				continue
			}
			require.Equal(t, k.view.AssignedTo, q.view.Agent)
		}
	}
	for _, k := range s.tasks.list {
		question := ""
		if k.more != nil {
			question = k.more.question
		}
		done := k.work() != nil && k.view.State.Final() // it is reviewed after it was done
		if k.view.State == wire.TaskNeedsHuman != (question != "") || question != about[k.view.ID] && !done {
			require.Fail(t, "a question is not sound", "%s is %s and waits for %q", k.view.ID, k.view.State, question)
		}
	}
}

// requireSoundSessions requires that every session is known once and its members have their
// seats. Its tasks are where their phases say, and nothing waits unwatched.
func requireSoundSessions(t testing.TB, s *State) {
	x := &s.sessions
	require.Equal(t, len(x.byID), len(x.order))
	seats, posted, watched := 0, 0, 0
	for _, one := range x.order {
		require.Same(t, one, x.byID[one.spec.ID])
		require.Equal(t, len(one.spec.Members), len(one.members))
		for i, m := range one.members {
			seats++
			require.Equal(t, one.spec.Members[i], m.Member)
			require.Same(t, one, m.of)
			require.Contains(t, x.seats[m.AgentID], m)
			posted += requireSoundParcels(t, s, m)
		}
		requireSoundReviews(t, one)
		var open []*work
		for _, w := range one.works {
			requireSoundWork(t, s, w)
			if !w.settled() {
				open = append(open, w)
			}
			if !w.due.IsZero() {
				watched++
				require.Contains(t, x.watched, w)
			}
		}
		require.True(t, slices.Equal(open, one.open), "%d of the tasks of %s go on", len(open), one.spec.ID)
	}
	for name, theirs := range x.seats {
		require.NotEmpty(t, theirs, name)
		seats -= len(theirs)
	}
	require.Zero(t, seats, "anyRecipient has a seat in no session")
	require.Equal(t, posted, len(x.posted))
	require.Equal(t, watched, len(x.watched))
	require.True(t, slices.IsSortedFunc(x.posted, queue.CompareTimes[*outboxItem]))
	require.True(t, slices.IsSortedFunc(x.watched, queue.CompareTimes[*work]))
	require.Empty(t, x.fresh, "all of them have been sent")
}

// requireSoundParcels requires that an undelivered message waits for a deadline or a task, or is
// on its way to a current run. It returns how many wait for a deadline.
func requireSoundParcels(t testing.TB, s *State, m *member) (posted int) {
	seq := int64(0)
	for _, p := range m.outbox {
		require.False(t, m.of.closed(), "%+v waits in a session that is closed", p)
		require.Same(t, m, p.to)
		require.Greater(t, p.seq, seq)
		require.LessOrEqual(t, p.retries, len(deliveryRetries))
		seq = p.seq
		w := s.tasks.workOn(m.of, p.task)
		switch p.kind {
		case session.TypeTaskAssignment:
			require.True(t, w.phase == session.PhaseAssigned || w.phase == session.PhaseHeld, "%+v is of a task that is %s", p, w.phase)
		case session.TypeReviewRequest:
			require.True(t, w.open != nil && w.open.view.Reviewer == m.AgentID, "%+v is of a task that is %s", p, w.phase)
		}
		switch a := s.agents.byID[m.AgentID]; {
		case p.held:
			require.True(t, p.out == "" && !p.taken && w.phase == session.PhaseHeld, "%+v is held", p)
		case p.repeat && p.out == "":
			require.False(t, p.taken)
		case p.out == "":
			posted++
			require.Contains(t, s.sessions.posted, p)
			require.False(t, p.taken)
		default:
			require.True(t, a != nil && a.alive() && a.run == p.out, "%+v is on the way to a run that has ended", p)
			if p.unread() {
				posted++
				require.Contains(t, s.sessions.posted, p)
			}
		}
	}
	return posted
}

// requireSoundReviews requires that a review is open exactly while its task is being reviewed.
func requireSoundReviews(t testing.TB, x *sessionState) {
	require.Equal(t, len(x.byReview), len(x.reviews))
	for _, v := range x.reviews {
		require.Same(t, v, x.byReview[v.view.ReviewID])
		require.Equal(t, v.view.Verdict == "", v.work.open == v, "%+v", v.view)
		require.Equal(t, v.view.Verdict == "", v.view.DecidedAt == "", "%+v", v.view)
	}
}

// requireSoundWork requires that a work and its task agree.
func requireSoundWork(t testing.TB, s *State, w *work) {
	k := w.task
	require.Same(t, w, k.work())
	require.Equal(t, w.open != nil, w.phase == session.PhaseReviewing, "%s is %s", k.view.ID, w.phase)
	require.LessOrEqual(t, w.tries, maxTries)
	require.True(t, w.revises == nil || w.revises.revision == w)
	require.True(t, w.revision == nil || w.revision.revises == w)
	require.True(t, !w.of.closed() || w.over(), "%s goes on in a session that is closed", k.view.ID)
	if asked := s.questions.byID[w.question] != nil; asked != (w.phase == session.PhaseHuman) {
		require.Fail(t, "a person is asked, or is not", "%s is %s", k.view.ID, w.phase)
	}
	if !k.view.State.Final() {
		require.Contains(t, statesIn[w.phase], k.view.State, "%s is %s", k.view.ID, w.phase)
		require.Equal(t, w.phase != session.PhaseHeld, k.way == inSession, "%s is %s", k.view.ID, w.phase)
	}
	if w.phase == session.PhaseAssigned || w.phase == session.PhaseWorking {
		require.NotNil(t, w.of.member(w.developer), "%s is with %s, who is no member", k.view.ID, w.developer)
		require.NotNil(t, s.agents.byID[w.developer], "%s is with %s, whom nobody knows", k.view.ID, w.developer)
	}
	due := time.Time{}
	if w.active() {
		if !w.overdue && !s.agents.pulls(w.developer) {
			due = w.silentAt()
		}
		if at, ok := w.deadlineAt(); ok && (due.IsZero() || at.Before(due)) {
			due = at
		}
		if out := w.begun.Add(w.limit); w.limit > 0 && (due.IsZero() || out.Before(due)) {
			due = out
		}
	}
	require.Equal(t, due, w.due, "%s is %s", k.view.ID, w.phase)
}

// statesIn maps each phase to the possible states of an open task.
var statesIn = map[string][]wire.TaskState{
	session.PhaseHeld:      {wire.TaskPending},
	session.PhaseAssigned:  {wire.TaskAssigned},
	session.PhaseWorking:   {wire.TaskRunning, wire.TaskNeedsHuman, wire.TaskVerifying},
	session.PhaseCompleted: {wire.TaskInReview},
	session.PhaseReviewing: {wire.TaskInReview},
	session.PhaseRevise:    {wire.TaskInReview},
	session.PhaseRedesign:  {wire.TaskPlanning, wire.TaskPlanReview},
	session.PhaseHuman:     {wire.TaskNeedsHuman},
}
