package graph

// Node is something that depends on others. Nodes are numbered from 0.
type Node int32

// Edge identifies a dependency until it is removed. The value may be reused after that.
type Edge int32

// none is the Edge value for no edge.
const none Edge = -1

// Kind is the kind of a dependency.
type Kind uint8

const (
	Blocks  Kind = iota // blocks until it is resolved
	Input               // blocks, and delivers an input
	Soft                // does not block
	Related             // does not block
)

// blocks reports whether dependencies of this kind hold back.
func (k Kind) blocks() bool { return k <= Input }

// View is the current state of a dependency.
type View struct {
	Down, Up Node
	Kind     Kind
	Key      string
	Resolved bool
	At       int64 // the stamp it was resolved with
	Number   int64 // in the order of creation, from 1, never given twice
	Private  bool  // the result of Up is not shown in Down
}

// A Graph holds nodes and their dependencies. Only one goroutine may use it at a time, even for
// queries, because they use its buffers.
type Graph struct {
	nodes  []node
	edges  []edge
	stamps []stamp // of each edge
	free   Edge    // removed, the first of a list along next[needs]

	keys   keys
	ledger ledger
	order  order

	unordered int  // number of dependencies from Put that may violate the order
	late      Edge // the latest of them

	marked uint32 // latest mark that was used
	sides  [2]side
	trail  []Edge
}

// end selects one end of a dependency, and the list at its node.
type end uint8

const (
	needs   end = iota // at its down node, all that this node depends on
	waiting            // at its up node, all that depends on this node
)

type node struct {
	first, last [2]Edge
	open        int32
	mark        uint32 // of the latest search that visited it
}

// edge holds the members that searches use. Others are in stamp, so that searches touch less
// memory.
type edge struct {
	ends       [2]Node
	next, prev [2]Edge
	key        int32
	kind       Kind
	resolved   bool
	private    bool
}

// stamp is the number of a dependency, and what it was resolved with.
type stamp struct{ number, at int64 }

// gone is the kind of a dependency that is removed.
const gone Kind = 255

// gates reports whether a dependency holds its down node back.
func (e *edge) gates() bool { return e.kind.blocks() && !e.resolved }

// New returns an empty Graph.
func New() *Graph {
	return &Graph{free: none, keys: newKeys(), order: newOrder()}
}

// Add adds a node, after all others.
func (g *Graph) Add() Node {
	n := Node(len(g.nodes))
	g.nodes = append(g.nodes, node{first: [2]Edge{none, none}, last: [2]Edge{none, none}})
	g.order.add()
	return n
}

// Len returns the number of nodes.
func (g *Graph) Len() int { return len(g.nodes) }

// Open returns the number of dependencies that block a node.
func (g *Graph) Open(n Node) int { return int(g.nodes[n].open) }

// Edge returns the current state of a dependency.
func (g *Graph) Edge(e Edge) View {
	d, s := &g.edges[e], &g.stamps[e]
	return View{
		Down: d.ends[needs], Up: d.ends[waiting], Kind: d.kind, Key: g.keys.at(d.key),
		Resolved: d.resolved, At: s.at, Number: s.number, Private: d.private,
	}
}
