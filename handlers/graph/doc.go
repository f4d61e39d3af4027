// Package graph tracks the nodes that wait for other nodes.
//
// A node is a number. A dependency makes one node, down, depend on another one, up. Blocking
// and input dependencies block down until they are resolved or removed; the call that resolves
// or removes the last one reports that. Soft and related dependencies never block.
//
// # Circles
//
// No node can wait for itself, directly or indirectly. A dependency that would close a circle is
// refused, with the circle. To avoid a search of the whole graph, all nodes are kept in an order:
// each comes after the nodes that it waits for. A dependency that agrees with the order closes no
// circle. For any other, the nodes between its two ends are searched from both ends. Without a
// circle, the order is changed only there: Pearce and Kelly, A dynamic topological sort algorithm
// for directed acyclic graphs, 2006.
//
// Two things differ from the paper. Both searches run in turn, and the first to end is enough:
// the nodes that it has found are moved past the other end. The order consists of labels with
// gaps between them, so that moving a few nodes past many does not renumber the many. This
// matters if a task is split up, where each node waits for one that is created after it.
//
// The order only has to hold for open dependencies. Searches skip resolved ones, and resolving
// or removing a dependency cannot violate the order. Resolved dependencies never become open
// again. So the order has to be checked only when an open dependency is added.
//
// # Snapshots
//
// All yields the dependencies in the order of creation, with their numbers, and Put takes them
// in that order. A restored graph gives the same answers, including circles, and iterates in
// the same order. With Skip it also continues with the same numbers. Only the Edges may differ,
// so store the Number. Put does not look for circles; the next search repairs the order once
// for all.
//
// # Memory
//
// Everything is in slices without pointers, except keys. A node takes 40 bytes: 24 for its
// lists, 16 for its place in the order. A dependency takes 64: 32 for its lists, 16 for its
// stamp, 16 for its ledger entry. A key takes 16 more and its text. Slices that have just grown
// are up to a quarter larger. With a million nodes and three million dependencies, 46 and 69
// bytes were measured. The space of a removed dependency is reused; its ledger entry is removed
// when half of them are unused. Nodes are never removed.
//
// # Limits
//
// The package does not know the meaning of a node or whether it has ended: the caller resolves
// dependencies one by one. It is pure, and a Graph must be used by one goroutine at a time.
package graph
