// Package live keeps a few rows at the bottom of a terminal, under the lines that
// scroll past, and takes what a person types there.
//
// It knows nothing of agents. It is given lines to write above, and a picture of what
// is below; it draws that again when it has changed, and takes it away at the end. As
// long as the rows are there the terminal echoes nothing and gives each key at once.
// Ctrl-C remains a signal; Ctrl-Z becomes one when the rows are gone. A program that is
// not in front of its terminal draws nothing and leaves the terminal's mode alone.
package live
