package bus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// A house is a bus for tests. It carries out requests, unless a test replaces its answers, and logs
// each with its time.
type house struct {
	began time.Time
	// lost is the number of confirmations of stored mail that still get lost.
	lost int

	mu     sync.Mutex
	other  otherwise
	mail   []mail.Message
	keys   map[string]int64
	bodies []map[string]any // of send requests
	acked  int64
	story  []string
	tell   map[chan string]bool // the open streams
}

// An otherwise answers a request in place of the house. It returns false if it has not answered.
type otherwise func(w http.ResponseWriter, r *http.Request, what string) bool

// instead sets the function that answers requests; nil restores the default.
func (h *house) instead(other otherwise) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.other = other
}

func newHouse() *house {
	return &house{began: time.Now(), keys: make(map[string]int64), tell: make(map[chan string]bool)}
}

// say logs an event with its time.
func (h *house) say(form string, about ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.story = append(h.story, fmt.Sprintf("%v ", time.Since(h.began))+fmt.Sprintf(form, about...))
}

// told returns the events logged since the last call, or those that start with kind. It clears
// the log.
func (h *house) told(kind string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	story := []string{}
	for _, line := range h.story {
		if _, what, _ := strings.Cut(line, " "); strings.HasPrefix(what, kind) {
			story = append(story, line)
		}
	}
	h.story = nil
	return story
}

// has stores a message from GO to HO:h1 and returns its number.
func (h *house) has(topic string, payload string) int64 {
	return h.keep(wire.SendMessage{From: "GO", To: "HO:h1", Topic: topic, Payload: wire.Raw(payload)}).Seq
}

// keep stores mail. Numbers have gaps, as if there were mail for other actors.
func (h *house) keep(m wire.SendMessage) mail.Sent {
	h.mu.Lock()
	defer h.mu.Unlock()
	if seq := h.keys[m.From+" "+m.Key]; m.Key != "" && seq != 0 {
		for _, kept := range h.mail {
			if kept.Seq == seq {
				return mail.Sent{Message: kept, Duplicate: true}
			}
		}
	}
	kept := mail.Message{Seq: int64(10 * (len(h.mail) + 1)), From: m.From, To: m.To, Topic: m.Topic, Payload: m.Payload, CreatedAt: object.Timestamp(time.Now())}
	if m.ReplyTo != 0 {
		kept.ReplyTo = &m.ReplyTo
	}
	h.mail = append(h.mail, kept)
	h.keys[m.From+" "+m.Key] = kept.Seq
	for stream := range h.tell {
		stream <- fmt.Sprintf("id: %d\nevent: %s\ndata: {}\n\n", kept.Seq, kept.Topic)
	}
	return mail.Sent{Message: kept}
}

// letters returns the mail to an actor after a number.
func (h *house) letters(to string, behind int64) []mail.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	mail := []mail.Message{}
	for _, m := range h.mail {
		if m.To == to && m.Seq > behind {
			mail = append(mail, m)
		}
	}
	return mail
}

func (h *house) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	what := r.Method + " " + r.URL.Path
	body, _ := io.ReadAll(r.Body)
	var said map[string]any
	_ = json.Unmarshal(body, &said)
	h.say("%s", strings.TrimSpace(fmt.Sprintf("%s %s", what[strings.LastIndexByte(what, '/')+1:], number(said["seq"]))))
	h.mu.Lock()
	other := h.other
	h.mu.Unlock()
	if other != nil && other(w, r, what) {
		return
	}
	switch what {
	case "POST /api/bus/send":
		mail, wrong := wire.ReadRequest("send-message", body, 64)
		if wrong != nil {
			refuse(w, http.StatusBadRequest, wrong.Message)
			return
		}
		h.mu.Lock()
		h.bodies = append(h.bodies, said)
		h.mu.Unlock()
		sent := h.keep(*mail.(*wire.SendMessage))
		if h.lost--; h.lost >= 0 {
			panic(http.ErrAbortHandler)
		}
		answer(w, sent)
	case "GET /api/bus/poll":
		h.poll(w, r)
	case "POST /api/bus/ack":
		h.mu.Lock()
		h.acked = max(h.acked, int64(said["seq"].(float64)))
		h.mu.Unlock()
		answer(w, mail.Acked{Actor: "HO:h1", Cursor: h.acked})
	case "POST /api/bus/heartbeat":
		answer(w, mail.Beat{Actor: said["actor"].(string), LastSeen: object.Timestamp(time.Now())})
	case "GET /api/sse/events":
		h.stream(w, r)
	default:
		refuse(w, http.StatusNotFound, "there is no "+what)
	}
}

func number(n any) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(n)
}

func (h *house) poll(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	behind := h.acked
	h.mu.Unlock()
	if cursor := r.FormValue("cursor"); cursor != "" {
		behind, _ = strconv.ParseInt(cursor, 10, 64)
	}
	mail := h.letters(r.FormValue("actor"), behind)
	if limit, _ := strconv.Atoi(r.FormValue("limit")); limit > 0 && limit < len(mail) {
		mail = mail[:limit]
	}
	answer(w, mail)
}

// stream sends new mail until the client disconnects or the test sends "".
func (h *house) stream(w http.ResponseWriter, r *http.Request) {
	found := make(chan string, 10)
	h.mu.Lock()
	h.tell[found] = true
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.tell, found)
	}()
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case event := <-found:
			if event == "" {
				return
			}
			_, _ = io.WriteString(w, event)
		case <-r.Context().Done():
			return
		}
	}
}

// streams sends an event on all open streams.
func (h *house) streams(event string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for stream := range h.tell {
		stream <- event
	}
}

func answer(w http.ResponseWriter, v any) {
	text, err := object.Encode(v)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"code":"A_CODE","message":%q,"details":{"pointer":"/x"},"recoverable":%t},"detail":%q}`, message, status >= 500, message)
}

// refusing answers all requests of one kind with a status.
func refusing(kind string, status int) otherwise {
	return only(kind, func(w http.ResponseWriter, _ *http.Request, _ string) bool {
		refuse(w, status, "not now")
		return true
	})
}

// silent never answers.
func silent(_ http.ResponseWriter, r *http.Request, _ string) bool {
	<-r.Context().Done()
	return true
}

// breaking breaks the connection in the middle of the answer.
func breaking(http.ResponseWriter, *http.Request, string) bool { panic(http.ErrAbortHandler) }

// only applies other to requests of one kind.
func only(kind string, other otherwise) otherwise {
	return func(w http.ResponseWriter, r *http.Request, what string) bool {
		return strings.HasSuffix(what, kind) && other(w, r, what)
	}
}

// A pipes value makes connections in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu   sync.Mutex
	down error // the error of new connections
	made []net.Conn
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

// cut makes new connections fail and closes all existing ones; nil allows connections again.
func (p *pipes) cut(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = why
	for _, conn := range p.made {
		_ = conn.Close()
	}
	p.made = nil
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	p.mu.Lock()
	down := p.down
	p.made = append(p.made, near)
	p.mu.Unlock()
	if down != nil {
		return nil, down
	}
	select {
	case p.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }
