package api

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"orchestrator/handlers"
)

// TestDeclaredRoutes checks that each route of an operation is served, and that its writer takes the answer of the
// operation.
func TestDeclaredRoutes(t *testing.T) {
	served := make(map[string]*route)
	for _, all := range [][]route{hubRoutes(), busRoutes()} {
		for i := range all {
			served[all[i].pattern] = &all[i]
		}
	}
	for _, o := range handlers.Operations() {
		for _, pattern := range o.HTTP {
			r := served[pattern]
			if !assert.NotNil(t, r, "%s of %s is not served: add the prefix of its path to hubTrees or busTrees, and to callersOf", pattern, o.Name) || r.answer != nil {
				continue
			}
			_, ok := r.write.document(o.Answer)
			assert.True(t, ok, "%s cannot write the answer of %s: give the operation a form with a write in hub.go or bus.go", pattern, o.Name)
		}
	}
}
