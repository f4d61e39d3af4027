// Package plain puts figures, times and texts of others into a few columns of plain
// text: what a table, a line of a stream and a full screen all need. Whatever others
// said comes out inert: nothing in it is obeyed by a terminal.
package plain
