// Package object reads and writes JSON objects strictly: exact keys, none twice, bounded depth,
// and errors that name the place of a mistake.
//
//	Scan      checks a text and splits it into members, without allocating
//	Reader    reads the members of an object and keeps the first error
//	Decoder   reads the members of an object and collects all errors and warnings
//	Encode    writes a document; the Append functions write members without reflection
//	Decode    reads a document into a Go value
//	Error     is the error of a reader, with a JSON pointer in its details
//
// The package knows no message and no document: the meaning of a member belongs to the package that
// reads it.
package object
