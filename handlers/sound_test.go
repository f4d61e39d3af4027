package handlers

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/graph"
	"orchestrator/handlers/match"
	"orchestrator/handlers/queue"
	"orchestrator/handlers/replies"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// requireSoundTasks requires that every task is counted once, waits for open tasks only, and is
// listed by its owners.
func requireSoundTasks(t testing.TB, s *State) {
	counts, parts := make(map[wire.TaskState]int), make(map[wire.TaskState]int)
	for _, k := range s.Tasks.List {
		counts[k.View.State]++
		if k.View.Details.IsPart() {
			parts[k.View.State]++
		}
		open := 0
		for e := range s.Tasks.Graph.Needs(k.Node) {
			v := s.Tasks.Graph.Edge(e)
			up := s.Tasks.Nodes[v.Up]
			if state.Gates(v.Kind) && !up.HandsOver() {
				open++
			}
			sound := v.Resolved == (v.Kind == graph.Related || up.HandsOver())
			if v.Kind == graph.Soft { // it stays resolved if the other task is tried again
				sound = v.Resolved || !up.View.State.Final()
			}
			if !sound {
				require.Fail(t, "a dependency is not sound", "%+v while the other is %s", v, up.View.State)
			}
		}
		if k.View.State == wire.TaskPending && open > 0 {
			counts[state.Blocked]++
		}
		begun := k.Busy() || k.View.State == wire.TaskNeedsHuman || k.View.State == wire.TaskDone
		sound := s.Tasks.Graph.Open(k.Node) == open && (open == 0 || !begun) &&
			(k.View.EndedAt != "") == k.View.State.Final()
		if !sound { // a require call for each of many is slow
			require.Fail(t, "a task is not sound", "%d of what it depends on are not done: %+v", open, k)
		}
	}
	for st, n := range s.Tasks.Counts {
		require.Equal(t, counts[st]+s.Tasks.Archive.Counts[st], n, "tasks that are %s", st)
		if st != state.Blocked {
			require.Equal(t, parts[st]+s.Tasks.Archive.Parts[st], s.Tasks.Parts[st], "parts that are %s", st)
		}
	}
	require.Empty(t, s.Tasks.Archive.Guests)
	require.Len(t, s.Tasks.ByID, len(s.Tasks.List))
	require.Equal(t, len(s.Tasks.List), s.Tasks.Graph.Len())
	require.LessOrEqual(t, len(s.Tasks.Finished), s.Rules.KeepFinished)
	owned := make(map[string]map[*state.Task]bool)
	for _, k := range s.Tasks.List {
		requirePlain(t, k)
		for _, actor := range k.Owners() {
			if owned[actor] == nil {
				owned[actor] = make(map[*state.Task]bool)
			}
			owned[actor][k] = true
		}
	}
	for actor, all := range owned {
		require.Len(t, s.Tasks.Owned[actor], len(all))
	}
	for actor, mine := range s.Tasks.Owned {
		require.True(t, slices.IsSortedFunc(mine, func(a, b *state.Task) int { return int(a.Number - b.Number) }))
		for _, k := range mine {
			if k.View.SubmittedBy != actor && k.View.AssignedTo != state.AgentOf(actor) {
				require.Fail(t, "an actor sees another's task", "%s sees %s", actor, k.View.ID)
			}
		}
	}
}

// requirePlain requires that a plain task is spelled by hand as by reflection.
func requirePlain(t testing.TB, k *state.Task) {
	if k.Extra != nil {
		return
	}
	kept := k.Snapshot()
	text, err := object.Encode(&kept)
	require.NoError(t, err)
	if plain := k.AppendPlain(nil); string(plain) != string(text) {
		require.Equal(t, string(text), string(plain))
	}
}

// requireSoundAgents requires that an assigned task is held by one agent, and that no other task
// is held.
func requireSoundAgents(t testing.TB, s *State) {
	holders := make(map[*state.Task]*state.KnownAgent)
	for _, a := range s.Agents.Order {
		require.Same(t, a, s.Agents.ByID[a.ID])
		for _, k := range a.Holds {
			require.Nil(t, holders[k], "%s is held twice", k.View.ID)
			holders[k] = a
			require.Equal(t, a.ID, k.View.AssignedTo)
			require.Contains(t, s.Tasks.Owned[a.ActorID], k)
		}
		require.LessOrEqual(t, len(a.Memories.All()), replies.Kept)
	}
	for _, k := range s.Tasks.List {
		if held := k.View.State != wire.TaskPending && !k.View.State.Final(); held != (holders[k] != nil) {
			require.Fail(t, "a task is in hand, and is not", "%s is %s", k.View.ID, k.View.State)
		}
	}
}

// requireSoundMarket requires that exactly the assignable tasks wait, that exactly the available
// agents are free, and that no pair of them fits.
func requireSoundMarket(t testing.TB, s *State) {
	waiting := 0
	for _, k := range s.Tasks.List {
		could := k.View.State == wire.TaskPending && s.Tasks.Graph.Open(k.Node) == 0 && k.Asks() && !k.Postponed()
		if could != (k.Demand != nil) {
			require.Fail(t, "a task waits to be given out, and does not", "%s is %s", k.View.ID, k.View.State)
		}
		if !could {
			continue
		}
		waiting++
		if s.Stopping {
			continue
		}
		for _, a := range s.Agents.Order {
			fits := a.Takes() && a.Hears() && (k.Wants() == nil || s.Agents.Index.Fits(&k.Wants().Demand, a.ID, match.Conditions{})) && a.Offers(k.View.RequiredRole, k.View.RequiredCapabilities) && a.ActorID != k.View.SubmittedBy
			require.False(t, fits, "%s waits, and %s would fit", k.View.ID, a.ID)
		}
	}
	require.NoError(t, s.Tasks.Queue.Waiting.Check())
	for d := range s.Tasks.Queue.Waiting.Buckets() {
		for k := range d.Items() {
			require.Same(t, d, k.Demand)
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
	for _, k := range s.Tasks.List {
		if !k.Postponed() {
			require.True(t, k.View.Details == nil || k.View.After == "", "%s is not postponed any more", k.View.ID)
			continue
		}
		postponed++
		require.Equal(t, wire.TaskPending, k.View.State)
		require.Equal(t, object.Timestamp(k.Extra.After), k.View.After)
		require.Contains(t, s.Tasks.Later, k)
	}
	require.Len(t, s.Tasks.Later, postponed)
	require.True(t, slices.IsSortedFunc(s.Tasks.Later, queue.CompareTimes[*state.Task]))
}

// requireSoundFree requires that exactly the agents that could be assigned a task are free.
func requireSoundFree(t testing.TB, s *State) {
	var free []*state.KnownAgent
	for _, a := range s.Agents.Order {
		require.Equal(t, a.Takes(), a.Offered)
		if a.Takes() {
			free = append(free, a)
		}
	}
	slices.SortFunc(free, state.ByPatience)
	require.Equal(t, len(free), len(s.Tasks.Queue.Free))
	for i, a := range free {
		require.Same(t, a, s.Tasks.Queue.Free[i])
	}
	require.Subset(t, free, s.Tasks.Queue.Freed)
}

// requireSoundQuestions requires that every open question is in every list, and that no question
// about a permission is for a task that has ended or that another agent has.
func requireSoundQuestions(t testing.TB, s *State) {
	require.Equal(t, len(s.Questions.ByID), len(s.Questions.Open))
	timed := 0
	for _, q := range s.Questions.Open {
		require.Same(t, q, s.Questions.ByID[q.View.ID])
		if k := s.Tasks.ByID[q.View.Task]; q.View.Permission != nil && k != nil {
			require.False(t, k.View.State.Final(), "%s is open, and its task has ended", q.View.ID)
			require.Contains(t, []string{"", q.View.Agent}, k.View.AssignedTo, "%s is open, and another agent has its task", q.View.ID)
		}
		if !q.Deadline.IsZero() {
			timed++
			require.Contains(t, s.Questions.Deadlines, q)
		}
	}
	require.Equal(t, timed, len(s.Questions.Deadlines))
	require.True(t, slices.IsSortedFunc(s.Questions.Deadlines, queue.CompareTimes[*state.Question]))
}

// requireSoundBus requires that every actor with mail is known once and that agents and actors
// refer to each other. Exactly the expected heartbeats are watched. Agents are at least as many as
// actors of runs.
func requireSoundBus(t testing.TB, s *State) {
	require.NoError(t, s.Bus.Check())
	for _, c := range s.Bus.All() {
		if c.Agent != nil {
			require.Same(t, s.Agents.ByID[c.Agent.ID], c.Agent)
			require.Same(t, c, c.Agent.Mail, "%s is %s, and has the mail of another", c.Agent.ID, c.ID)
		}
		require.True(t, !c.OfRun || c.Agent != nil || s.Access.HasToken(c.ID), "%s was a run, and is known for ever", c.ID)
		require.LessOrEqual(t, max(c.Cursor, c.Latest, c.Since), s.Seq())
	}
	for _, a := range s.Agents.Order {
		require.True(t, a.Mail == nil || s.Bus.Actor(a.Mail.ID) == a.Mail && a.Mail.Agent == a, "%s is another's actor", a.ID)
	}
}

// requireSoundWishes requires that exactly the unblocked tasks with only requirements wait, each in
// its place.
func requireSoundWishes(t testing.TB, s *State) {
	waiting := 0
	for _, k := range s.Tasks.List {
		could := k.View.State == wire.TaskPending && s.Tasks.Graph.Open(k.Node) == 0 && k.Wants() != nil && !k.Asks() && k.Delegation() == nil && !k.Postponed()
		waits := k.Extra != nil && k.Extra.Bucket != nil
		if could != waits {
			require.Fail(t, "a task waits for one that fits, and does not", "%s is %s", k.View.ID, k.View.State)
		}
		if waits {
			waiting++
			require.Contains(t, slices.Collect(k.Extra.Bucket.Items()), k)
			require.Equal(t, k.Wants().Key, k.Extra.Bucket.Asks.Key)
		}
	}
	require.NoError(t, s.Tasks.Required.Waiting.Check())
	filed := 0
	for h := range s.Tasks.Required.Waiting.Buckets() {
		filed++
		waiting -= len(slices.Collect(h.Items()))
	}
	require.Zero(t, waiting)
	require.Equal(t, s.Tasks.Required.Waiting.Len(), filed)
	require.Empty(t, s.Tasks.Required.Order, "all of them have been looked at")
}

// requireSoundIndex requires that the index equals one built anew from the agents.
func requireSoundIndex(t testing.TB, s *State) {
	fresh := match.New()
	for _, a := range s.Agents.Order {
		running := 0
		for _, k := range a.Holds {
			if k.Busy() {
				running++
			}
		}
		require.Equal(t, a.Running, running, "tasks that %s works on", a.ID)
		if s.Rules.CountAssigned {
			running = len(a.Holds)
		}
		capacity := a.Capacity
		if a.Remote != nil && !s.Access.HasKey(a.ID) || !a.Limited.IsZero() {
			capacity = 0
		}
		fresh.Put(a.ID, offerOf(a), match.Standing{
			Online: a.State == state.Up || a.State == state.Leaving, Running: running, Capacity: capacity, Load: len(a.Holds),
		})
	}
	demands := []match.Demand{{}, {Languages: []string{"go"}}, {Repo: "api", Tags: []string{"gpu"}}, {Environments: []string{"linux"}, Prefer: "a3"}}
	for h := range s.Tasks.Required.Waiting.Buckets() {
		demands = append(demands, h.Asks.Demand)
	}
	for i := range demands {
		require.Equal(t, fresh.Verdicts(&demands[i]), s.Agents.Index.Verdicts(&demands[i]))
		for _, c := range []match.Conditions{{}, {Online: true}, {Online: true, Free: true}, {Not: "a1"}} {
			name, score, ok := fresh.Best(&demands[i], c)
			name2, score2, ok2 := s.Agents.Index.Best(&demands[i], c)
			require.Equal(t, []any{name, score, ok}, []any{name2, score2, ok2})
		}
	}
}

// offerOf returns the capabilities that an agent advertised, or the ones in the configuration.
func offerOf(a *state.KnownAgent) match.Offer {
	c := a.Said
	if c == nil {
		c = hub.ReadCapabilities(a.Configured.Abilities)
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
	for _, a := range s.Agents.Order {
		if a.Remote != nil && a.State == state.Up {
			online++
			require.Contains(t, s.Agents.Online, a)
		}
	}
	require.Equal(t, len(s.Agents.Online), online)
	require.True(t, slices.IsSortedFunc(s.Agents.Online, queue.CompareTimes[*state.KnownAgent]))
}

// requireSoundHelp requires that an agent's question about its task is open exactly as long as
// the task waits for it.
func requireSoundHelp(t testing.TB, s *State) {
	about := make(map[string]string)
	for _, q := range s.Questions.Open {
		if q.View.Task != "" && !q.Aside {
			k := s.Tasks.ByID[q.View.Task]
			require.Empty(t, about[q.View.Task], "two questions about one task")
			about[q.View.Task] = q.View.ID
			if w := k.Work(); w != nil && w.Question == q.View.ID { // the result of a review
				require.Equal(t, w.Architect, q.View.Agent)
				continue
			}
			require.Equal(t, k.View.AssignedTo, q.View.Agent)
		}
	}
	for _, k := range s.Tasks.List {
		question := ""
		if k.Extra != nil {
			question = k.Extra.Question
		}
		done := k.Work() != nil && k.View.State.Final() // it is reviewed after it was done
		if k.View.State == wire.TaskNeedsHuman != (question != "") || question != about[k.View.ID] && !done {
			require.Fail(t, "a question is not sound", "%s is %s and waits for %q", k.View.ID, k.View.State, question)
		}
	}
}

// requireSoundSessions requires that every session is known once and its members have their seats.
// Its tasks are in the places of their phases, and no message waits unwatched.
func requireSoundSessions(t testing.TB, s *State) {
	x := &s.Sessions
	require.Equal(t, len(x.ByID), len(x.Order))
	seats, posted, watched := 0, 0, 0
	for _, one := range x.Order {
		require.Same(t, one, x.ByID[one.Spec.ID])
		require.Equal(t, len(one.Spec.Members), len(one.Members))
		for i, m := range one.Members {
			seats++
			require.Equal(t, one.Spec.Members[i], m.Member)
			require.Same(t, one, m.Of)
			require.Contains(t, x.Seats[m.AgentID], m)
			posted += requireSoundParcels(t, s, m)
		}
		requireSoundReviews(t, one)
		var open []*state.Work
		for _, w := range one.Works {
			requireSoundWork(t, s, w)
			if !w.Settled() {
				open = append(open, w)
			}
			if !w.Due.IsZero() {
				watched++
				require.Contains(t, x.Watched, w)
			}
		}
		require.True(t, slices.Equal(open, one.Open), "%d of the tasks of %s go on", len(open), one.Spec.ID)
	}
	for name, theirs := range x.Seats {
		require.NotEmpty(t, theirs, name)
		seats -= len(theirs)
	}
	require.Zero(t, seats, "anyRecipient has a seat in no session")
	require.Equal(t, posted, len(x.Posted))
	require.Equal(t, watched, len(x.Watched))
	require.True(t, slices.IsSortedFunc(x.Posted, queue.CompareTimes[*state.OutboxItem]))
	require.True(t, slices.IsSortedFunc(x.Watched, queue.CompareTimes[*state.Work]))
	require.Empty(t, x.Fresh, "all of them have been sent")
}

// requireSoundParcels requires that an undelivered message waits for a deadline or a task, or is
// on its way to a current run. It returns how many wait for a deadline.
func requireSoundParcels(t testing.TB, s *State, m *state.Member) (posted int) {
	seq := int64(0)
	for _, p := range m.Outbox {
		require.False(t, m.Of.Closed(), "%+v waits in a session that is closed", p)
		require.Same(t, m, p.To)
		require.Greater(t, p.Seq, seq)
		require.LessOrEqual(t, p.Retries, len(state.DeliveryRetries))
		seq = p.Seq
		w := s.Tasks.WorkOn(m.Of, p.Task)
		switch p.Kind {
		case session.TypeTaskAssignment:
			require.True(t, w.Phase == session.PhaseAssigned || w.Phase == session.PhaseHeld, "%+v is of a task that is %s", p, w.Phase)
		case session.TypeReviewRequest:
			require.True(t, w.Open != nil && w.Open.View.Reviewer == m.AgentID, "%+v is of a task that is %s", p, w.Phase)
		}
		switch a := s.Agents.ByID[m.AgentID]; {
		case p.Held:
			require.True(t, p.Out == "" && !p.Taken && w.Phase == session.PhaseHeld, "%+v is held", p)
		case p.Repeat && p.Out == "":
			require.False(t, p.Taken)
		case p.Out == "":
			posted++
			require.Contains(t, s.Sessions.Posted, p)
			require.False(t, p.Taken)
		default:
			require.True(t, a != nil && a.Alive() && a.Run == p.Out, "%+v is on the way to a run that has ended", p)
			if p.Unread() {
				posted++
				require.Contains(t, s.Sessions.Posted, p)
			}
		}
	}
	return posted
}

// requireSoundReviews requires that a review is open exactly while its task is being reviewed.
func requireSoundReviews(t testing.TB, x *state.SessionState) {
	require.Equal(t, len(x.ByReview), len(x.Reviews))
	for _, v := range x.Reviews {
		require.Same(t, v, x.ByReview[v.View.ReviewID])
		require.Equal(t, v.View.Verdict == "", v.Work.Open == v, "%+v", v.View)
		require.Equal(t, v.View.Verdict == "", v.View.DecidedAt == "", "%+v", v.View)
	}
}

// requireSoundWork requires that a work and its task agree.
func requireSoundWork(t testing.TB, s *State, w *state.Work) {
	k := w.Task
	require.Same(t, w, k.Work())
	require.Equal(t, w.Open != nil, w.Phase == session.PhaseReviewing, "%s is %s", k.View.ID, w.Phase)
	require.LessOrEqual(t, w.Tries, maxTries)
	require.True(t, w.Revises == nil || w.Revises.Revision == w)
	require.True(t, w.Revision == nil || w.Revision.Revises == w)
	require.True(t, !w.Of.Closed() || w.Over(), "%s goes on in a session that is closed", k.View.ID)
	if asked := s.Questions.ByID[w.Question] != nil; asked != (w.Phase == session.PhaseHuman) {
		require.Fail(t, "a person is asked, or is not", "%s is %s", k.View.ID, w.Phase)
	}
	if !k.View.State.Final() {
		require.Contains(t, statesIn[w.Phase], k.View.State, "%s is %s", k.View.ID, w.Phase)
		require.Equal(t, w.Phase != session.PhaseHeld, k.Way == state.InSession, "%s is %s", k.View.ID, w.Phase)
	}
	if w.Phase == session.PhaseAssigned || w.Phase == session.PhaseWorking {
		require.NotNil(t, w.Of.Member(w.Developer), "%s is with %s, who is no member", k.View.ID, w.Developer)
		require.NotNil(t, s.Agents.ByID[w.Developer], "%s is with %s, whom nobody knows", k.View.ID, w.Developer)
	}
	due := time.Time{}
	if w.Active() {
		if !w.Overdue && !s.Agents.Pulls(w.Developer) {
			due = w.SilentAt()
		}
		if at, ok := w.DeadlineAt(); ok && (due.IsZero() || at.Before(due)) {
			due = at
		}
		if out := w.Begun.Add(w.Limit); w.Limit > 0 && (due.IsZero() || out.Before(due)) {
			due = out
		}
	}
	require.Equal(t, due, w.Due, "%s is %s", k.View.ID, w.Phase)
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
