// Package play runs the transcripts that test the clients of the package adapter.
//
// A transcript is a text file. These lines are its inputs. The effects of the machine follow each of them, indented,
// and are written by -update:
//
//	< {…}             a line of the client
//	cut {…            the beginning of a line of the client that was too long
//	T {…}             a line of the orchestrator; $KIND$ is the id of the last request of that kind
//	at +5s            the time since the beginning
//	due               the time that Machine.Next returns has come
//	opening KEY=VALUE a field of the Opening, before any other input
//	begin             the handshake
package play

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/adapter"
	"orchestrator/wire/object"
)

// beginning is the start time of a transcript.
var beginning = time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)

var update = flag.Bool("update", false, "write the transcripts anew")

// Run plays all transcripts in testdata with clients that begin makes.
func Run(t *testing.T, begin func() adapter.Client) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			p := &player{t: t, client: begin(), ids: map[string]string{}, names: map[string]string{}, at: beginning}
			p.opening = adapter.Opening{
				Agent: "coder", Run: "0f8fad5b-d9cb-469f-a165-70867728950e", Dir: "/repo", Permission: adapter.PermissionAsk,
				OnTurnEnd: adapter.OnTurnEndRemind, Patience: 10 * time.Minute,
			}
			for line := range strings.Lines(string(text)) {
				p.play(line)
			}
			if *update {
				require.NoError(t, os.WriteFile(file, p.out.Bytes(), 0o644))
				return
			}
			require.Equal(t, string(text), p.out.String())
		})
	}
}

type player struct {
	t       *testing.T
	client  adapter.Client
	opening adapter.Opening
	machine *adapter.Machine
	at      time.Time
	ids     map[string]string // of the last request of each kind
	names   map[string]string // by ids: the text that is shown instead
	out     bytes.Buffer
}

// play plays one line. The lines that show effects are dropped, and made again.
func (p *player) play(line string) {
	if strings.HasPrefix(line, "    ") {
		return
	}
	p.out.WriteString(line)
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch word {
	case "", "#":
	case "opening":
		p.open(rest)
	case "begin":
		p.machine = adapter.NewMachine(p.client, &p.opening)
		p.show(p.machine.Begin(p.at))
	case "<":
		p.show(p.machine.Heard(p.at, []byte(p.given(rest))))
	case "cut":
		p.show(p.machine.Cut(p.at, []byte(p.given(rest))))
	case "T":
		p.show(p.machine.Told(p.at, []byte(p.given(rest))))
	case "at":
		d, err := time.ParseDuration(strings.TrimPrefix(rest, "+"))
		require.NoError(p.t, err)
		p.at = beginning.Add(d)
	case "due":
		when, ok := p.machine.Next()
		require.True(p.t, ok, "nothing is due")
		if when.After(p.at) {
			p.at = when
		}
		p.show(p.machine.Due(p.at))
	default:
		require.Fail(p.t, "not a line of a transcript", "%s", line)
	}
}

func (p *player) open(setting string) {
	key, value, _ := strings.Cut(setting, "=")
	switch key {
	case "permission":
		p.opening.Permission = value
	case "allow":
		p.opening.Allow = append(p.opening.Allow, value)
	case "on_turn_end":
		p.opening.OnTurnEnd = value
	case "conversation":
		p.opening.Conversation = value
	case "door":
		p.opening.Door = strings.Fields(value)
	case "confined":
		p.opening.Confined = value == "true"
	case "protocol":
		p.opening.Protocol = value
	case "model":
		p.opening.Model = value
	default:
		require.Fail(p.t, "not a setting", "%s", setting)
	}
}

// given replaces the names of ids by the ids.
func (p *player) given(text string) string {
	for name, id := range p.ids {
		text = strings.ReplaceAll(text, "$"+name+"$", id)
	}
	return text
}

// show writes effects. Ids are shown by the request that they belong to.
func (p *player) show(effects []adapter.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case adapter.Write:
			p.line("> " + string(e.Line))
		case adapter.Ask:
			p.ids[e.Operation] = e.ID
			p.names[e.ID] = "$" + e.Operation + "$"
			p.line("request:" + e.Operation + " " + p.spelled(e.Payload))
		case adapter.Say:
			p.line("event:" + e.Event + " " + p.spelled(e.Payload))
		case adapter.Log:
			p.line("log " + e.Text)
		case adapter.Clear:
			p.line("(what the turn has left is ended)")
			p.show(p.machine.Cleared(p.at))
		case adapter.Stuck:
			p.line("(it is ended: " + e.Why + ")")
		default:
			require.Fail(p.t, "not an effect", "%T", e)
		}
	}
}

// maxShown is the longest line that is shown whole.
const maxShown = 700

func (p *player) line(text string) {
	for id, name := range p.names {
		text = strings.ReplaceAll(text, id, name)
	}
	if len(text) > maxShown {
		text = fmt.Sprintf("%s… [%d bytes]", text[:maxShown/2], len(text))
	}
	p.out.WriteString("    " + strings.ReplaceAll(text, "\n", "\n      ") + "\n")
	p.remember(text)
}

// remember names the ids of prompts, so that transcripts can refer to them.
func (p *player) remember(text string) {
	for _, key := range []string{`"uuid":"`, `"clientUserMessageId":"`} {
		if _, rest, ok := strings.Cut(text, key); ok {
			id, _, _ := strings.Cut(rest, `"`)
			p.ids["prompt"] = id
		}
	}
}

func (p *player) spelled(v any) string {
	text, err := object.Encode(v)
	require.NoError(p.t, err)
	return string(text)
}
