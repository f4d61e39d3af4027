// Package scope says which files a scope allows to change.
//
// A scope is a list of patterns. A file that none of them allows is outside, so
// an empty scope allows nothing.
//
// # Patterns
//
//	?        one character of a name
//	*        any characters of a name, also none, also a leading dot
//	**       as a whole name: any number of folders, also none
//	[a-z]    one of these; [!a-z] and [^a-z] one of the others
//	{a,b}    a or b, which may be patterns themselves
//	\        the next character stands for itself
//
// Nothing but ** crosses a slash. At the end of a pattern ** is all that lies
// below: dir/** allows dir/a and dir/a/b, neither dir itself nor dirX/a. A
// pattern without any of these allows the file of that name and nothing else.
// Upper and lower case are different.
//
// Patterns and files are paths below the top of what is worked on. Files are
// cleaned before they are looked at, so that a/../../b is seen for what it is.
// What is absolute, climbs out or names no file is always outside, whatever the
// patterns are. So is what another system could read in another way: a backslash,
// the letter of a drive, a NUL, text that is not UTF-8.
//
// A pattern that is not well formed, is absolute or ends in a slash allows
// nothing. No pattern ever takes away what another one allows.
//
// # How much it does
//
// Patterns and files come from agents, and the caller has other things to do.
// So a pattern that is overlong or has too many wildcards or alternatives allows
// nothing, and neither do those after too many. Without alternatives, a pattern
// can be matched in steps that are at most a small multiple of its length times
// that of the file; since alternatives in turn would multiply that, they are
// written out beforehand. Each question may take so many steps and no more, and
// what has not been looked at by then is outside: an extravagant scope can refuse
// what it means to allow, but never the other way round.
//
// # What it will not do
//
// It looks at texts and never at files: it knows no links, and does not know what
// is there. It does not say who may change what, only what lies where.
package scope
