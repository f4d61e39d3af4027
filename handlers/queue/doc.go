// Package queue keeps items that wait for a taker. Items that ask the same of a taker share a
// bucket. The most urgent item of a bucket comes first, then the oldest.
//
//	Queue   buckets, by what their items ask
//	Bucket  the items that ask the same
//	List    items in the order of their creation
//
// A Timeline is a queue of another kind: what is due at a time, the earliest first.
//
// A taker does not look at all buckets. Each is filed under one of the texts that it asks for:
// the one with the fewest buckets. A taker therefore finds every bucket that it fits under the
// texts that it has, and under "", where buckets are that ask for no text.
//
// The package does not know what a taker is, nor whether it fits.
package queue
