// Package queue keeps items that wait for a taker. Items that ask the same of a taker share a
// bucket. The most urgent item of a bucket comes first, then the oldest.
//
//	Queue   buckets, by the demands of their items
//	Bucket  the items with the same demands
//	List    items in the order of their creation
//
// A Timeline orders items by due time.
//
// A taker does not look at all buckets. Each is filed under one of the texts that it asks for:
// the one with the fewest buckets. A taker therefore finds every bucket that it fits under the
// texts that it has, and under "", where buckets are that ask for no text.
//
// The package does not know the meaning of a taker, nor whether it fits.
package queue
