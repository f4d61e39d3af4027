// Package generator writes JSON Schemas from the Go types that declare them. Only tests run it.
//
// A struct becomes an object. A field becomes a member:
//
//	key            the json tag
//	required       unless the json tag has omitzero or omitempty
//	description    the comment of the field, read from the source
//	type           the Go type; a field of a declared document becomes a reference to it
//	limits         the schema tag, below
//
// A schema tag has words with commas between them:
//
//	"-"            the member is not part of the document
//	null           the value may be null
//	required       the member is required, in spite of omitzero; optional is the reverse
//	strict         null is not allowed, in spite of a lenient document
//	any            any value
//	type=a|b       the types of a value without a separate Go type
//	FORMAT         one of schema.Formats, such as stamp
//	min=N max=N    limits of a number; minlen, maxlen, minitems and maxitems likewise
//	whole=N        a whole number from N, which every program can represent
//	ms=N           a duration from N up to a year, in milliseconds
//	enum=LIST      the words of a list; enum=a|b for words that stand nowhere else
//	const=WORD     this word only
//	example=a|b    examples
//	ref=NAME       the schema of a document, instead of the Go type
//	each:WORD      a limit of the items of a list, or of the values of a map
//	keys=FORMAT    the form of the keys of a map; another key is refused
//	in:WORD        a limit that only a lenient document has
//	own            of a payload: the member is read by a method of its type
//	output         of a payload: the size is limited
package generator
