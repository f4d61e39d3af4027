package config

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/hashicorp/hcl/v2"
)

// An OutputSchema is a schema for the results of tasks that need a capability.
type OutputSchema struct {
	Capability string
	File       string
	Text       string // of the JSON Schema
}

// Compile returns the schema. It must be in one file.
func (o *OutputSchema) Compile() (*jsonschema.Resolved, error) {
	schema := new(jsonschema.Schema)
	if err := json.Unmarshal([]byte(o.Text), schema); err != nil {
		return nil, err
	}
	return schema.Resolve(nil)
}

// outputBlock returns the reader of an output block.
func (r *reader) outputBlock(at string, into *[]OutputSchema, sc *scope) child {
	seen := map[string]hcl.Range{}
	return child{kind: "output", label: "capability", many: true, read: func(b *hcl.Block) {
		if !r.unique(seen, b) {
			return
		}
		o := OutputSchema{Capability: b.Labels[0]}
		r.read(b.Body, sc, section{title: fmt.Sprintf("Output %q", o.Capability), path: at + ".output." + o.Capability, attributes: []attribute{
			attr("schema", &o, func(o *OutputSchema, v value) {
				path(r.config.absolute)(&o.File, v)
				text, err := os.ReadFile(o.File)
				if o.Text = string(text); err == nil {
					_, err = o.Compile()
				}
				if err != nil {
					v.reject("bad-schema", "Not a JSON Schema", fmt.Sprintf("%s cannot be used: %v.", v.quoted(), err), "")
				}
			}),
		}})
		if o.Text == "" {
			r.missing(b, "An output has no schema: a file with a JSON Schema.", `Add one, for example schema = "recipe.json".`)
			return
		}
		*into = append(*into, o)
	}}
}
