// Package live keeps a few rows at the bottom of a terminal, below the scrolling lines, and
// reads lines that a person types there.
//
// A [Region] writes lines above the rows, redraws the rows when they change, and erases
// them at the end. While the rows are shown, the terminal does not echo and delivers each
// key at once. Ctrl-C remains a signal. Ctrl-Z is read as a key, so that the rows are
// erased before the program stops. A program in the background of its terminal draws
// nothing and does not change the terminal's mode.
package live
