package laws

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/laws/source"
)

// growing are the packages with structures that the law on bounds follows.
var growing = []string{"handlers/...", "supervisor", "supervisor/dispatch", "supervisor/settings", "supervisor/stdin", "supervisor/output", "supervisor/artifacts"}

// A typeName is a type of the module.
type typeName struct{ folder, name string }

// A growth finds the fields of structures that can hold any number of things.
type growth struct {
	types  map[typeName]*ast.TypeSpec
	files  map[*ast.TypeSpec]*source.File
	seen   map[typeName]bool
	fields map[string]string // the place of each field, by Type.field with its folder
}

// growingFields returns the slices and maps in the fields of types, and of all types that these
// fields lead to, with the place of each.
func growingFields(t *testing.T, roots ...typeName) map[string]string {
	g := &growth{
		types: make(map[typeName]*ast.TypeSpec), files: make(map[*ast.TypeSpec]*source.File),
		seen: make(map[typeName]bool), fields: make(map[string]string),
	}
	for _, f := range source.Shipped(t, growing...) {
		for _, declaration := range f.Syntax.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok || group.Tok != token.TYPE {
				continue
			}
			for _, spec := range group.Specs {
				spec := spec.(*ast.TypeSpec)
				g.types[typeName{f.Folder, spec.Name.Name}] = spec
				g.files[spec] = &f
			}
		}
	}
	for _, root := range roots {
		g.named(root)
	}
	return g.fields
}

// named follows a type of the module, and reports whether it is a slice or a map itself.
func (g *growth) named(name typeName) bool {
	spec := g.types[name]
	if spec == nil {
		return false
	}
	if body, ok := spec.Type.(*ast.StructType); ok {
		if !g.seen[name] {
			g.seen[name] = true
			g.structure(g.files[spec], name.folder+"."+name.name, body)
		}
		return false
	}
	if g.seen[name] {
		_, list := spec.Type.(*ast.ArrayType)
		_, table := spec.Type.(*ast.MapType)
		return list || table
	}
	g.seen[name] = true
	return g.follow(g.files[spec], name.folder+"."+name.name, spec.Type)
}

func (g *growth) structure(f *source.File, owner string, body *ast.StructType) {
	for _, field := range body.Fields.List {
		for _, name := range field.Names {
			if g.follow(f, owner+"."+name.Name, field.Type) {
				g.fields[owner+"."+name.Name] = f.At(name)
			}
		}
		if len(field.Names) == 0 && g.follow(f, owner, field.Type) {
			g.fields[owner] = f.At(field)
		}
	}
}

// follow follows the type of a field, and reports whether it is a slice or a map.
func (g *growth) follow(f *source.File, path string, expr ast.Expr) bool {
	switch e := expr.(type) {
	case *ast.Ident:
		return g.named(typeName{f.Folder, e.Name})
	case *ast.SelectorExpr:
		for from := range f.Imports() {
			if folder, ours := strings.CutPrefix(from, source.Module+"/"); ours && folder[strings.LastIndex(folder, "/")+1:] == e.X.(*ast.Ident).Name {
				return g.named(typeName{folder, e.Sel.Name})
			}
		}
	case *ast.StarExpr:
		return g.follow(f, path, e.X)
	case *ast.IndexExpr:
		g.follow(f, path, e.Index)
		return g.follow(f, path, e.X)
	case *ast.IndexListExpr:
		for _, argument := range e.Indices {
			g.follow(f, path, argument)
		}
		return g.follow(f, path, e.X)
	case *ast.ArrayType:
		return g.follow(f, path, e.Elt) || e.Len == nil
	case *ast.MapType:
		g.follow(f, path, e.Key)
		g.follow(f, path, e.Value)
		return true
	case *ast.StructType:
		g.structure(f, path, e)
	}
	return false
}

// bounds has the fields that growingFields finds, by the rows of help/limits.md that state their
// bounds.
var bounds = map[string][]string{
	"stored data of an agent or token": {"supervisor/dispatch.quotas.limits", "supervisor/dispatch.quotas.used"},
	"open tasks": {
		"handlers/state.storedTask.RequiredCapabilities", "handlers/state.tasks.ByID", "handlers/state.tasks.List", "handlers/state.tasks.Owned", "handlers/state.tasks.Later", "handlers/state.tasks.Counts", "handlers/state.tasks.Parts",
		"handlers/state.demand.capabilities", "handlers/state.requirements.Key", "handlers/state.requirements.under", "handlers/state.StoredWork.Scope", "handlers/state.StoredReview.Wanted",
		"handlers/state.StoredExtra.Promises", "handlers/state.Extra.delivered", "handlers/state.StoredExtra.History", "handlers/state.KnownAgent.Holds",
		"handlers/queue.Bucket.under", "handlers/queue.Bucket.waiting", "handlers/queue.Queue.byKey", "handlers/queue.Queue.under",
		"handlers/match.Demand.Environments", "handlers/match.Demand.Languages", "handlers/match.Demand.Tags", "handlers/match.Demand.Tools",
	},
	"ended tasks":                 {"handlers/state.tasks.Finished", "handlers/state.archive.Counts", "handlers/state.archive.Parts", "handlers/state.archive.leaving", "handlers/state.archive.Recalled", "handlers/state.agents.released"},
	"notes and changes of a task": {"handlers/state.StoredExtra.Notes", "handlers/state.StoredExtra.Parts"},
	"dependencies": {
		"handlers/state.tasks.Nodes", "handlers/state.StoredExtra.Needs", "handlers/graph.Graph.edges", "handlers/graph.Graph.nodes", "handlers/graph.Graph.stamps",
		"handlers/graph.Graph.trail", "handlers/graph.Graph.unused", "handlers/graph.keys.spare", "handlers/graph.keys.texts",
		"handlers/graph.ledger.entries", "handlers/graph.order.places", "handlers/graph.side.found",
	},
	"delegated tasks": {
		"handlers/state.StoredDelegation.Chain", "handlers/state.StoredDelegation.Returned", "handlers/state.delegations.Due", "handlers/state.Extra.HandedOn",
	},
	"responses to delegated tasks": {"handlers/state.KnownAgent.Owed"},
	"questions":                    {"handlers/state.questions.ByID", "handlers/state.questions.Deadlines", "handlers/state.questions.Open", "handlers/state.StoredAgent.Late"},
	"agents": {
		"handlers/state.agents.ByID", "handlers/state.agents.Limited", "handlers/state.agents.Online", "handlers/state.agents.Order", "handlers/state.KnownAgent.Under",
		"handlers/state.taskQueue.Free", "handlers/state.taskQueue.Freed",
		"handlers/match.Index.agents", "handlers/match.Index.by", "handlers/match.Index.keys", "handlers/match.Index.order", "handlers/match.Index.slots",
		"handlers/match.Index.spare", "handlers/match.Index.words", "handlers/match.agent.offers", "handlers/match.holders.cells",
		"supervisor.lifecycle.agents", "supervisor.lifecycle.actors", "supervisor.lifecycle.order", "supervisor.lifecycle.deadlines", "supervisor.lifecycle.sessions", "supervisor.agent.expected",
		"supervisor.idleCounter.submitters", "supervisor.idleCounter.workers", "supervisor.stormGuard.ends",
		"supervisor.orderedStop.above", "supervisor.orderedStop.asked", "supervisor.orderedStop.below", "supervisor.orderedStop.left",
		"supervisor.orderedStops.running", "supervisor.stopping.survivors",
		"supervisor/dispatch.recipients.agents", "supervisor/dispatch.recipients.folders", "supervisor/dispatch.postman.agents", "supervisor/dispatch.postman.rounds",
		"supervisor/output.Feed.outputs",
	},
	"a snapshot in progress": {"handlers/snapshot.Snapshot.early", "handlers/snapshot.Snapshot.rest", "handlers/snapshot.Snapshot.text", "supervisor/dispatch.spelling.text"},
	"remembered requests":    {"handlers/replies.Cache.byID", "handlers/replies.Cache.ring"},
	"permissions":            {"handlers/state.StoredAgent.Grants"},
	"drained hosts":          {"handlers/state.State.Drained"},
	"ended runs":             {"handlers/state.StoredAgent.Past"},
	"sessions":               {"handlers/state.sessions.ByID", "handlers/state.sessions.Order", "handlers/state.sessions.Seats", "handlers/state.SessionState.Members"},
	"work of a session": {
		"handlers/state.SessionState.Works", "handlers/state.SessionState.Open", "handlers/state.SessionState.Reviews", "handlers/state.SessionState.ByReview", "handlers/state.sessions.Watched",
	},
	"messages to a member of a session": {"handlers/state.Member.Outbox", "handlers/state.sessions.Posted", "supervisor/stdin.Mailbox.missed"},
	"findings of a review":              {"handlers/review.Loop.Findings"},
	"credentials":                       {"handlers/access.Book.byHash", "handlers/access.Book.byID", "handlers/access.Book.keys", "handlers/access.Book.order"},
	"actors of the bus":                 {"handlers/bus.Directory.byID", "handlers/bus.Directory.due", "handlers/bus.Directory.order"},
	"keys of messages":                  {"handlers/bus.Keys.byKey", "handlers/bus.Keys.ring"},
	"messages to an agent": {
		"supervisor/stdin.Mailbox.queue", "supervisor/stdin.Mailbox.onRoom", "supervisor/stdin.Mailbox.onDrained", "supervisor/stdin.Entry.Text",
		"supervisor/stdin.Entry.Receipts", "supervisor/stdin.receipts.receipts", "supervisor/stdin.receipts.told",
		"supervisor/dispatch.postman.loads", "supervisor/dispatch.postman.due", "supervisor/dispatch.delayedLines.lines", "supervisor/dispatch.delayedLines.done",
	},
	"recent messages":                {"supervisor/dispatch.latestMail.mail"},
	"delivery times":                 {"supervisor/dispatch.postman.written"},
	"records that wait for the disk": {"supervisor/dispatch.batch.letters", "supervisor/dispatch.batch.records", "supervisor/dispatch.batch.settled"},
	"callers over HTTP": {
		"supervisor/dispatch.recipients.waiters", "supervisor/dispatch.notifier.waiters", "supervisor.callers.waiting", "supervisor.Supervisor.inbox.turns",
	},
	"audit lines in memory":      {"supervisor/dispatch.audit.text"},
	"requests in one audit line": {"supervisor/dispatch.audit.folds", "supervisor/dispatch.fold.line"},
	"recent events":              {"supervisor/output.RecentEvents.events"},
	"lines for a reader of logs": {
		"supervisor/output.Feed.all", "supervisor/output.Agent.followers", "supervisor/output.Follower.queues", "supervisor/output.Follower.ready",
		"supervisor/output.queue.pages", "supervisor/output.page.front", "supervisor/output.page.lines", "supervisor/output.page.text",
	},
	"an upgrade in progress": {
		"supervisor.Handover.Agents", "supervisor.handedAgent.Ages", "supervisor.handedAgent.Endings", "supervisor.handedTally.Submitters",
		"supervisor.handedTally.Workers", "supervisor/output.EchoFilter.written", "supervisor/stdin.Handover.Entries", "supervisor/stdin.Handover.Missed",
		"supervisor/stdin.Mailbox.rest", "supervisor/stdin.Waiting.Receipts", "supervisor/stdin.Waiting.Text",
	},
	"restarts": {"supervisor.restartHistory.endings", "supervisor.restartHistory.restarts"},
	"the configuration": {
		"handlers/state.Rules.Topics", "handlers/state.tasks.Blocks", "supervisor/settings.Agent.Command", "supervisor/settings.Agent.DependsOn", "supervisor/settings.Agent.Names",
		"supervisor/settings.Agent.Offers", "supervisor/settings.Agent.Wrap", "supervisor.Options.Sessions", "supervisor.Options.Tasks", "supervisor/settings.Restart.Permanent",
	},
	"`artifacts`": {"supervisor/artifacts.Store.firm", "supervisor/artifacts.Store.Claims", "supervisor/artifacts.Store.recent"}, // 256 folders, and content of open requests
	"one message": {
		"handlers.Input.Absent", "handlers.Input.Archived", "handlers.Letter.Pages", "handlers.Outcome.Letters", "handlers.Outcome.Missing", "handlers.Outcome.Records",
		"handlers/state.archive.absent", "handlers/state.archive.Guests", "handlers/state.archive.Missing", "handlers/state.delegations.Fresh", "handlers/state.delegations.Look",
		"handlers/state.requirementQueue.Order", "handlers/state.SessionSaid.Notes", "handlers/state.sessions.Fresh", "handlers/state.taskQueue.Fresh", "handlers/state.taskQueue.key",
		"handlers.turn.announcements", "handlers.turn.closed", "handlers.turn.departed", "handlers.turn.lostTasks", "handlers.turn.pages",
		"handlers/history.ArchivedPage.Created", "handlers/history.ArchivedPage.Present", "handlers/history.Page.Inputs", "handlers/history.Page.Notes", "handlers/history.Page.Parts",
		"handlers/history.Page.Results", "handlers/match.search.all", "handlers/match.search.among", "handlers/match.search.any", "handlers/match.search.carry",
		"handlers/match.search.held", "handlers/match.search.lead", "handlers/match.search.soft", "handlers/match.search.sums", "handlers/match.soft.here",
		"handlers/match.soft.there",
		"supervisor/dispatch.Channel.inputs", "supervisor/dispatch.Dispatcher.room",
		"supervisor/dispatch.complaints.texts", "supervisor/dispatch.work.letters",
		"supervisor/dispatch.work.missing", "supervisor/dispatch.work.records", "supervisor/dispatch.work.room", "supervisor/dispatch.work.trail",
		"supervisor/dispatch.work.verdicts", "supervisor/stdin.Mailbox.scratch",
	},
}

// TestLawBounds checks that everything that can grow in memory has a row in help/limits.md with
// its bound.
func TestLawBounds(t *testing.T) {
	fields := growingFields(t, typeName{"handlers", "State"}, typeName{"supervisor/dispatch", "Dispatcher"}, typeName{"supervisor", "Supervisor"})
	require.Greater(t, len(fields), 150, "the walk found too little to judge")
	rows, listed := source.LimitRows(t), make(map[string]bool)
	for row, names := range bounds {
		require.True(t, rows[row], "help/limits.md has no row %q", row)
		for _, name := range names {
			require.NotEmpty(t, fields[name], "%s no longer grows: remove it from bounds", name)
			require.False(t, listed[name], "%s is in bounds twice", name)
			listed[name] = true
		}
	}
	for name, at := range fields {
		if !listed[name] {
			t.Errorf("%s: %s may grow: give it a bound, a row in help/limits.md and a place in bounds", at, name)
		}
	}
}

// TestLawStateFiles checks that every file and folder that a state directory may have has a row in
// help/limits.md with its bound.
func TestLawStateFiles(t *testing.T) {
	var names []string
	for _, f := range source.Shipped(t, "supervisor/home") {
		for _, declaration := range f.Syntax.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok || group.Tok != token.VAR {
				continue
			}
			for _, spec := range group.Specs {
				if value := spec.(*ast.ValueSpec); slices.Contains([]string{"stateFiles", "stateFolders"}, value.Names[0].Name) {
					ast.Inspect(value, func(n ast.Node) bool {
						if literal, ok := n.(*ast.BasicLit); ok {
							name, err := strconv.Unquote(literal.Value)
							require.NoError(t, err)
							names = append(names, name)
						}
						return true
					})
				}
			}
		}
	}
	require.Greater(t, len(names), 8)
	for _, name := range names {
		source.RequireFileRow(t, name)
	}
}
