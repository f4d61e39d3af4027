// Package sdk has only tests. They generate the documents and the methods of the SDKs for Python
// and TypeScript from the operations and the schemas of package wire, and check that the files are
// current:
//
//	go test ./agents/internal/sdk -update
package sdk
