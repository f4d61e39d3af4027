// Package scope checks which files a scope allows to change.
//
// A scope is a list of patterns. A file that no pattern allows is outside, so an empty scope allows
// no file.
//
// # Patterns
//
//	?        one character of a name
//	*        any characters of a name, or none; also a leading dot
//	**       as a whole name: any number of folders, or none
//	[a-z]    one of these; [!a-z] and [^a-z] any other
//	{a,b}    a or b, which may be patterns
//	\        the next character, without its meaning
//
// Only ** matches a slash. At the end of a pattern, ** matches everything below: dir/** allows
// dir/a and dir/a/b, but neither dir nor dirX/a. A pattern without special characters allows
// only the file of that name. Matching is case-sensitive.
//
// Patterns and files are paths relative to the top folder. Files are cleaned first, so that
// a/../../b is recognized as outside. Paths that are absolute, leave the top folder or name no
// file are always outside. So are paths that another system could read differently: with a
// backslash, a drive letter, a NUL or invalid UTF-8.
//
// A pattern that is malformed, absolute or ends in a slash allows no file. A pattern never takes
// back the permission of another pattern.
//
// # Bounds
//
// Patterns and files come from agents, so the cost of a check is bounded. A pattern that is too
// long, or has too many wildcards or alternatives, allows no file. So do patterns beyond the
// maximal number. Without alternatives, matching takes at most a small multiple of the pattern's
// length times the file's. Alternatives would multiply that, so they are expanded first. Each check
// has a maximal number of steps; files that it does not reach are outside. So an excessive scope
// may refuse too much, but never allow too much.
//
// # Limits
//
// The package works on texts, not on files: it does not know links or the existing files. It does
// not decide who may change a file.
package scope
