package api

import (
	"bytes"
	"net/http"
	"strconv"

	"orchestrator/wire"
)

// metricsPath is the path that Prometheus scrapes by default.
const metricsPath = "/metrics"

// inFigures is the content type of the Prometheus text format.
const inFigures = "text/plain; version=0.0.4; charset=utf-8"

// metrics answers with all figures or an error. The figures name the agents, so callers need
// the same right as for the status.
func (api *API) metrics(w http.ResponseWriter, r *http.Request) {
	var text bytes.Buffer
	if err := api.Metrics(r.Context(), &text); err != nil {
		api.refuse(w, r, err)
		return
	}
	w.Header().Set("Content-Type", inFigures)
	w.Header().Set("Content-Length", strconv.Itoa(text.Len()))
	control := http.NewResponseController(w)
	_ = hurry(control)
	_, _ = w.Write(text.Bytes()) // a caller that is gone has no use for it
	_ = sent(control)
}

// metricsEndpoint describes the route of the metrics.
func (api *API) metricsEndpoint() *endpoint {
	return &endpoint{
		ID: "metrics", Summary: "Figures for Prometheus", Tags: []string{tagDoor}, Security: security(byToken),
		Responses: api.responses(openResponse{
			Description: "Agents, tasks, messages and the record, in figures.",
			Content:     map[string]openContent{inFigures: {Schema: wire.Raw(`{"type":"string"}`)}},
		}, 400, 401, 403, 409),
	}
}
