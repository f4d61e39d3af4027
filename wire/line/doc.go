// Package line splits a stream of bytes into lines of bounded length.
//
// A Splitter is fed chunks and lends out lines that lie inside them: only a line that spans two
// chunks is copied. A line beyond the limit loses only its end.
package line
