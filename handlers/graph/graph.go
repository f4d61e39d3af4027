package graph

// Node is something that depends on others. Nodes are counted from 0.
type Node int32

// Edge is a dependency, for as long as it is not removed; after that another
// one may get its number.
type Edge int32

// none is the edge that there is not.
const none Edge = -1

// Kind records what a dependency does.
type Kind uint8

const (
	Blocks  Kind = iota // holds back until it is resolved
	Input               // the same, and hands something over
	Soft                // holds nothing back
	Related             // nor does this
)

// blocks reports whether dependencies of this kind hold back.
func (k Kind) blocks() bool { return k <= Input }

// View is a dependency as it stands.
type View struct {
	Down, Up Node
	Kind     Kind
	Key      string
	Resolved bool
	At       int64 // the stamp it was resolved with
	Number   int64 // in the order of creation, from 1, never given twice
	Private  bool  // the result of Up is not shown in Down
}

// Graph is nodes and their dependencies. It has one user at a time: even
// those methods that only answer use room of the Graph to find out.
type Graph struct {
	nodes  []node
	edges  []edge
	stamps []stamp // of each edge
	free   Edge    // removed, the first of a list along next[needs]

	keys   keys
	ledger ledger
	order  order

	unordered int  // dependencies put that the order may not hold for
	late      Edge // the latest of them

	marked uint32 // latest mark that was used
	sides  [2]side
	trail  []Edge
}

// end is one of the two ends of a dependency, and with it the list at the node
// there.
type end uint8

const (
	needs   end = iota // at its down node, all that this node depends on
	waiting            // at its up node, all that depends on this node
)

type node struct {
	first, last [2]Edge
	open        int32
	mark        uint32 // of the latest search that came by
}

// edge is what walks and searches come by. What they do not ask for is apart,
// in a stamp, so that less is fetched from far away: most of the time goes there.
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

// New is a Graph without nodes.
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

// Len is how many nodes there are.
func (g *Graph) Len() int { return len(g.nodes) }

// Open is how many dependencies hold a node back.
func (g *Graph) Open(n Node) int { return int(g.nodes[n].open) }

// Edge is a dependency as it stands.
func (g *Graph) Edge(e Edge) View {
	d, s := &g.edges[e], &g.stamps[e]
	return View{
		Down: d.ends[needs], Up: d.ends[waiting], Kind: d.kind, Key: g.keys.at(d.key),
		Resolved: d.resolved, At: s.at, Number: s.number, Private: d.private,
	}
}
