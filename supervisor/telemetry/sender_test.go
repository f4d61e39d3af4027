package telemetry

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func answer(status int, header ...string) http.Response {
	h := make(http.Header)
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return http.Response{StatusCode: status, Header: h}
}

// TestTriesAgain checks that a busy or missing collector is retried, and that one that refuses
// is not.
func TestTriesAgain(t *testing.T) {
	for name, c := range map[string]struct {
		answers []http.Response
		pauses  []time.Duration
		outcome string
	}{
		"at once":    {nil, nil, "sent"},
		"busy":       {[]http.Response{answer(503), answer(429, "Retry-After", "5"), answer(502)}, []time.Duration{time.Second, 5 * time.Second, 4 * time.Second}, "sent"},
		"not there":  {[]http.Response{answer(0)}, []time.Duration{time.Second}, "sent"},
		"says no":    {[]http.Response{answer(400)}, nil, "failed"},
		"elsewhere":  {[]http.Response{answer(307, "Location", "http://other")}, nil, "failed"},
		"at last no": {[]http.Response{answer(504), answer(401)}, []time.Duration{time.Second}, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, collecting)
				w.answers = c.answers
				w.Begin(0)
				w.happen("x", `{}`)
				<-time.After(time.Minute) // the bubble's
				synctest.Wait()
				var pauses []time.Duration
				for i := 1; i < len(w.posted); i++ {
					pauses = append(pauses, w.posted[i].Sub(w.posted[i-1]))
				}
				require.Equal(t, c.pauses, pauses)
				require.Equal(t, "1", w.figure(`spans_total{outcome="`+c.outcome+`"}`))
				require.Equal(t, c.outcome == "failed", len(w.warned) > 0)
				w.Close()
			})
		})
	}
}

// TestCloseIsSoon checks that closing does not wait for a missing collector, and not long for
// any other.
func TestCloseIsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, collecting)
		for range 100 {
			w.answers = append(w.answers, answer(0))
		}
		w.Begin(0)
		w.happen("x", `{}`)
		synctest.Wait()
		began := time.Now()
		w.Close()
		require.Zero(t, time.Since(began), "nothing is tried again")
		require.Equal(t, "1", w.figure(`spans_total{outcome="failed"}`))
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, collecting)
		w.tracing.sender.client.Transport = deaf{}
		w.Begin(0)
		w.happen("x", `{}`)
		synctest.Wait()
		began := time.Now()
		w.Close()
		require.Equal(t, flushing, time.Since(began))
	})
}

// deaf is a collector that never answers.
type deaf struct{}

func (deaf) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestTooManySpans checks that spans without room are dropped and counted, with one warning a
// minute.
func TestTooManySpans(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector", "OTEL_BSP_MAX_QUEUE_SIZE": "4"})
		w.tracing.sender.client.Transport = deaf{}
		w.Begin(0)
		for range 10 {
			w.happen("x", `{}`)
			synctest.Wait()
		}
		require.Equal(t, "6", w.figure(`spans_total{outcome="dropped"}`))
		require.Equal(t, []string{"spans are lostcount1whymore spans are waiting than can be sent"}, w.warned)
		w.Close()
	})
}

// TestSampling checks that spans that are not sampled are not sent, and do not count as lost.
func TestSampling(t *testing.T) {
	t.Setenv("OTEL_TRACES_SAMPLER", "traceidratio")
	t.Setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, collecting)
		w.Begin(0)
		const n = 200
		for i := range n {
			w.happen("task.created", fmt.Sprintf(`{"task":"p%d"}`, i))
			w.happen("task.created", fmt.Sprintf(`{"task":"c%d","parent":"p%d"}`, i, i))
			w.happen("task.done", fmt.Sprintf(`{"task":"c%d"}`, i))
			w.happen("task.done", fmt.Sprintf(`{"task":"p%d"}`, i))
			synctest.Wait()
		}
		w.Close()
		whole := 0
		for i := range n {
			parent, child := w.span(fmt.Sprintf("p%d", i)), w.span(fmt.Sprintf("c%d", i))
			require.Equal(t, parent == nil, child == nil, "a tree is sent whole or not at all")
			if parent != nil {
				whole++
			}
		}
		require.Greater(t, whole, n/4)
		require.Less(t, whole, n*3/4)
		require.Empty(t, w.warned)
	})
}

func TestDestination(t *testing.T) {
	const all, traces = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	for name, c := range map[string]struct {
		env  map[string]string
		url  string
		says string
	}{
		"none":           {nil, "", ""},
		"all":            {map[string]string{all: "http://h:4318"}, "http://h:4318/v1/traces", ""},
		"below":          {map[string]string{all: "https://h/otlp/"}, "https://h/otlp/v1/traces", ""},
		"traces":         {map[string]string{all: "http://h", traces: "http://t:1/x"}, "http://t:1/x", ""},
		"traces at root": {map[string]string{traces: "http://t:1"}, "http://t:1/", ""},
		"disabled":       {map[string]string{all: "http://h", "OTEL_SDK_DISABLED": "TRUE"}, "", ""},
		"no exporter":    {map[string]string{all: "http://h", "OTEL_TRACES_EXPORTER": "none"}, "", ""},
		"no url":         {map[string]string{all: "h:4318"}, "", "should be like http://localhost:4318"},
		"no host":        {map[string]string{all: "http://"}, "", "should be like http://localhost:4318"},
		"grpc":           {map[string]string{all: "http://h", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "", "only http/protobuf is spoken"},
		"headers":        {map[string]string{all: "http://h", "OTEL_EXPORTER_OTLP_HEADERS": "secret"}, "", "should be like name=value"},
		"timeout":        {map[string]string{all: "http://h", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "10s"}, "", `"10s", and should be a whole number`},
		"queue":          {map[string]string{all: "http://h", "OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, "", "should be a whole number from 1"},
		"batches":        {map[string]string{all: "http://h", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "-1"}, "", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"},
		"compression":    {map[string]string{all: "http://h", "OTEL_EXPORTER_OTLP_COMPRESSION": "zip"}, "", "should be gzip or none"},
		"certificate":    {map[string]string{all: "http://h", "OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere"}, "", "no such file"},
		"half a pair":    {map[string]string{all: "http://h", "OTEL_EXPORTER_OTLP_CLIENT_KEY": "/nowhere"}, "", "CLIENT_CERTIFICATE"},
	} {
		d, err := readDestination(func(name string) string { return c.env[name] })
		if c.says != "" {
			require.ErrorContains(t, err, c.says, name)
			require.NotContains(t, err.Error(), "secret", "what stands in headers is for nobody's log")
			continue
		}
		require.NoError(t, err, name)
		if c.url == "" {
			require.Nil(t, d, name)
			continue
		}
		require.Equal(t, c.url, d.url, name)
		require.Equal(t, 10*time.Second, d.timeout)
	}
	d, err := readDestination(func(name string) string {
		return map[string]string{
			all: "http://h", "OTEL_EXPORTER_OTLP_HEADERS": "a=1, b = x%2Cy ,", "OTEL_EXPORTER_OTLP_TIMEOUT": "5", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": "gzip",
		}[name]
	})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "1", "b": "x,y"}, d.headers)
	require.Equal(t, 5*time.Millisecond, d.timeout)
	require.True(t, d.gzip)
}
