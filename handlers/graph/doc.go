// Package graph knows which nodes wait for which.
//
// A node is a number, and a dependency says that one node, down, depends on
// another one, up. Those that block, and those that hand over an input, hold
// down back for as long as they are neither resolved nor removed; the last one
// that is says so. Soft ones and those that only relate two nodes never do.
//
// # Circles
//
// No node can wait for itself, over however many others. What would close a
// circle is refused, with the circle. To find one without a look at the whole
// graph, all nodes are kept in an order in which each comes after those that it
// waits for. A dependency that agrees with the order closes no circle, and that
// is seen at once. For any other, the nodes between its two ends are searched
// from both ends, and if there is no circle the order is changed there, and
// nowhere else: Pearce and Kelly, A dynamic topological sort algorithm for
// directed acyclic graphs, 2006.
//
// Two things are other than there. Both searches go on in turn, and the first
// to end is enough: what it has found is moved past the other end. And the order
// is labels with room between them instead of the numbers from 0 on, so that
// moving a few nodes past many does not touch the many. It matters for work
// that is taken apart, where each node waits for one that is made after it:
// numbers would have to be given anew to all that have been, for each.
//
// The order has to hold only for what is open. What is resolved is passed over
// in every search, and resolving or removing a dependency asks less of the order
// than before, so that nothing needs to be done then. Nor does what is resolved
// ever become open again. So an order that held goes on to hold, until another
// open dependency comes, and that one is looked at.
//
// # Snapshots
//
// All gives the dependencies in the order of creation, with their numbers, and
// Put takes them so. A graph that is put together again gives the same answers,
// circles included, and goes through everything in the same order; with Skip, it
// goes on with the same numbers. Only an Edge may be another one: what is
// written down is the Number. Put looks for no circles, and what disagrees with
// the order is left for the next search to see to, once for all.
//
// # Room
//
// Everything is in slices, without a pointer but for the keys. A node takes 40
// bytes (24 for its lists, 16 for its place in the order), a dependency 64 (32
// for the lists that it is in, 16 for its stamp, 16 in the ledger, by which it is
// found by its number) and 16 more with the text if it has a key. Slices that
// have just grown are up to a quarter larger; a million nodes with three million
// dependencies were measured at 46 and 69 bytes. The room of a removed dependency
// is used again, and that of its number is cleared up once half of them are gone.
// Nodes stay.
//
// # What it will not do
//
// It does not know what a node is, nor whether it has ended: dependencies are
// resolved one by one, by the caller. It is pure, and not for more than one
// goroutine at a time.
package graph
