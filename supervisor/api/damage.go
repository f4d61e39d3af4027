package api

import (
	"errors"
	"fmt"
	"net/http"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// A lastLine is the end of a stream that meets damage of the record.
type lastLine struct {
	Error *damage `json:"error"`
}

// damage is the error of a reader of a damaged fact.
type damage struct {
	wire.Error
	Seq int64 `json:"seq"`
}

// damageOf returns the damage of the record that has caused an error, or nil.
func damageOf(err error) *damage {
	found, ok := errors.AsType[interface {
		error
		DamagedFact() int64
	}](err)
	if !ok {
		return nil
	}
	seq := found.DamagedFact()
	return &damage{Seq: seq, Error: wire.Error{
		Code: wire.CodeDamaged, Message: fmt.Sprintf("fact %d of the record is damaged", seq), Hint: "List the damage: orchestrator store check",
		Details: map[string]any{"seq": seq},
	}}
}

// endAtDamage writes the last line of a stream that meets damage of the record.
func (api *API) endAtDamage(w http.ResponseWriter, r *http.Request, err error) {
	d := damageOf(err)
	accountOf(r.Context()).refuse(&d.Error)
	api.Log.Warn("a stream ended early", "path", r.URL.Path, "error", err)
	control := http.NewResponseController(w)
	if text, failed := object.Encode(lastLine{d}); failed == nil && hurry(control) == nil {
		_, _ = w.Write(append(text, '\n'))
		_ = sent(control)
	}
}
