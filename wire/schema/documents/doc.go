// Package documents declares the schemas of documents and messages, for the generator. Only the
// generator uses it: a program reads the generated files in package schema.
//
//	documents.go   the list of all documents, with titles and rules between members
//	words.go       the lists of words that schema tags name
//	heads.go       messages that have no Go type, since they are written member by member
//
// A document belongs into the list when agents or clients see it. Its members are declared by its
// Go type, in the package that reads or writes it.
package documents
