// Package plain puts figures, times and texts of others into a few columns of plain
// text: what a table, a line of a stream and a full screen all need.
//
// ID, OneLine and Clock make what others said inert: nothing in it is obeyed by a
// terminal. Clip, Pad and Width take what is inert already.
package plain
