package stage

import (
	"bytes"
	"io"
	"maps"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// figures are the metrics read from /metrics.
type figures map[string]*dto.MetricFamily

// Scrape reads the metrics as Prometheus does.
func (s *Orchestrator) Scrape() figures {
	s.T.Helper()
	status, text := s.Fetch(s.Door(), "http://orchestrator/metrics", nil)
	require.Equal(s.T, http.StatusOK, status, "%s", text)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	require.NoError(s.T, err, "%s", text)
	return families
}

func (s *Orchestrator) Fetch(client *http.Client, url string, header http.Header) (status int, text []byte) {
	s.T.Helper()
	r, err := http.NewRequestWithContext(s.T.Context(), http.MethodGet, url, nil)
	require.NoError(s.T, err)
	maps.Copy(r.Header, header)
	answer, err := client.Do(r)
	require.NoError(s.T, err)
	defer answer.Body.Close()
	text, err = io.ReadAll(answer.Body)
	require.NoError(s.T, err)
	return answer.StatusCode, text
}

// Of returns the value of a metric with some label pairs, or -1. For a histogram it returns the
// count.
func (f figures) Of(name string, labels ...string) float64 {
	want := make(map[string]string)
	for i := 0; i < len(labels); i += 2 {
		want[labels[i]] = labels[i+1]
	}
next:
	for _, m := range f[name].GetMetric() {
		for _, l := range m.GetLabel() {
			if text, asked := want[l.GetName()]; asked && text != l.GetValue() {
				continue next
			}
		}
		switch {
		case m.Counter != nil:
			return m.GetCounter().GetValue()
		case m.Histogram != nil:
			return float64(m.GetHistogram().GetSampleCount())
		default:
			return m.GetGauge().GetValue()
		}
	}
	return -1
}
