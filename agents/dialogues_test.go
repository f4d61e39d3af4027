package agents_test

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/stdio"
)

// TestDialogues plays the dialogues that every SDK plays. dialogues/README.md describes their
// format.
func TestDialogues(t *testing.T) {
	t.Setenv("ORC_AGENT_ID", "")
	files, err := filepath.Glob("dialogues/*.txt")
	require.NoError(t, err)
	require.Greater(t, len(files), 5)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, d := range readDialogues(t, file, string(text)) {
			t.Run(filepath.Base(file)+"/"+d.title, func(t *testing.T) { synctest.Test(t, d.play) })
		}
	}
}

// A dialogue is one dialogue of a file.
type dialogue struct {
	title string
	steps []step
}

// A step is a line of a dialogue, including its continuation lines.
type step struct{ place, word, rest string }

func readDialogues(t *testing.T, file, text string) (found []dialogue) {
	t.Helper()
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.TrimSpace(line) == "", line[0] == '#':
			continue
		case line[0] == ' ', line[0] == '\t':
			steps := found[len(found)-1].steps
			steps[len(steps)-1].rest += " " + strings.TrimSpace(line)
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		if word == "dialogue" {
			found = append(found, dialogue{title: rest})
			continue
		}
		last := &found[len(found)-1]
		last.steps = append(last.steps, step{place: fmt.Sprintf("%s:%d", file, i+1), word: word, rest: rest})
	}
	return found
}

// A stage plays the orchestrator's side of a dialogue. The program's side is the player.
type stage struct {
	*testing.T
	player
	say   *io.PipeWriter
	lines chan string       // printed by the SDK
	known map[string]string // values of names
	uuids map[string]bool
	given map[string]bool // tasks delegated to the agent
}

func (d dialogue) play(t *testing.T) {
	in, say := io.Pipe()
	hear, out := io.Pipe()
	s := &stage{T: t, say: say, lines: make(chan string, 100), known: make(map[string]string), uuids: make(map[string]bool), given: make(map[string]bool)}
	s.player = newPlayer(s, agents.Connect(in, out))
	go s.listen(hear)
	place := ""
	defer func() {
		if t.Failed() {
			t.Log("at " + place)
		}
		_ = say.Close() // calls that are still running after a failed step must end
		_ = hear.Close()
		s.giveUp()
	}()
	for _, each := range d.steps {
		place = each.place
		s.take(each.word, each.rest)
	}
	s.take("end", "")
	s.over()
	_ = out.Close()
	for line := range s.lines {
		require.Fail(t, "a line that no step took", line)
	}
}

// listen reads what the SDK prints, so that the SDK never blocks.
func (s *stage) listen(hear io.Reader) {
	defer close(s.lines)
	for lines := bufio.NewReader(hear); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			if line != "" {
				s.Errorf("the end of a line is missing: %.200q", line)
			}
			return
		}
		s.lines <- line
	}
}

// patience is how long a step waits, in fake time.
const patience = 10 * time.Second

// await returns the next value of a channel, or fails after patience.
func await[T any](s *stage, from <-chan T, what string) (value T) {
	s.Helper()
	select {
	case value = <-from:
	case <-time.After(patience):
		require.Fail(s, what+" does not come")
	}
	return value
}

// take runs a step.
func (s *stage) take(word, rest string) {
	switch word {
	case ">":
		s.hears(await(s, s.lines, "the line"), rest)
	case "<":
		s.isGiven(s.expand(rest))
		s.write(s.expand(rest) + "\n")
	case "<part":
		if head, space := strings.CutSuffix(rest, `\`); space {
			rest = head
		}
		s.write(s.expand(rest))
	case "<hex":
		text, err := hex.DecodeString(rest)
		require.NoError(s, err)
		s.write(string(text))
	case "end":
		require.NoError(s, s.say.Close())
		require.NoError(s, s.conn.Wait())
	case "pause":
		synctest.Wait()
	default:
		s.act(word, s.expand(rest))
	}
}

func (s *stage) write(text string) {
	_, err := io.WriteString(s.say, text)
	require.NoError(s, err)
}

// hears compares a line with want, and checks that the orchestrator would accept the line.
func (s *stage) hears(line, want string) {
	s.Helper()
	ears := stdio.Reader{Depth: 1000, Agent: s.me.Agent, Given: func(id string) bool { return s.given[id] }}
	switch message := ears.Parse([]byte(line)).(type) {
	case wire.Log:
		require.Fail(s, "it is no message to the orchestrator", "%.200q", line)
	case *wire.Refused:
		require.NotContains(s, message.Type, "task:", "%s: %.200q", message.Err, line)
	}
	if why := s.same(parsed(s, s.expand(want)), parsed(s, line), ""); why != "" {
		require.Fail(s, why, "want %.2000s\ngot  %.2000s", want, line)
	}
}

var (
	repeats = regexp.MustCompile(`"\$repeat:(\d+):([^"]*)"`)
	names   = regexp.MustCompile(`"\$([0-9A-Za-z]+)"`)
	moments = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
)

// expand replaces repeats and the names of known values in a text.
func (s *stage) expand(text string) string {
	text = repeats.ReplaceAllStringFunc(text, func(found string) string {
		parts := repeats.FindStringSubmatch(found)
		n, err := strconv.Atoi(parts[1])
		require.NoError(s, err)
		return `"` + strings.Repeat(parts[2], n) + `"`
	})
	return names.ReplaceAllStringFunc(text, func(found string) string {
		if value, there := s.known[found[2:len(found)-1]]; there {
			return string(object.Quote(value))
		}
		return found
	})
}

// parsed decodes JSON. Numbers keep their spelling.
func parsed(t require.TestingT, text string) (value any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	require.NoError(t, d.Decode(&value), "%.200q", text)
	rest, err := io.ReadAll(io.MultiReader(d.Buffered(), strings.NewReader("")))
	require.NoError(t, err)
	require.Empty(t, strings.TrimSpace(string(rest)), "more than one value: %.200q", text)
	return value
}

// same compares a value of a line with the wanted one. It returns the difference, or "".
func (s *stage) same(want, got any, at string) string {
	text, isText := got.(string)
	switch want := want.(type) {
	case map[string]any:
		return s.sameObject(want, got, at)
	case []any:
		return eachItem(want, got, at, s.same)
	case string:
		if want == "$any" {
			return ""
		}
		if name, special := strings.CutPrefix(want, "$"); special && isText {
			return s.stands(name, text, at)
		}
	}
	return plain(want, got, at)
}

func (s *stage) sameObject(want map[string]any, got any, at string) string {
	object, ok := got.(map[string]any)
	if !ok {
		return fmt.Sprintf("%s is no object", at)
	}
	for key, value := range want {
		if _, there := object[key]; !there {
			return fmt.Sprintf("%s/%s is missing", at, key)
		}
		if why := s.same(value, object[key], at+"/"+key); why != "" {
			return why
		}
	}
	for key := range object {
		if _, wanted := want[key]; !wanted {
			return fmt.Sprintf("%s/%s is not wanted", at, key)
		}
	}
	return ""
}

// stands returns the difference between a text and the value of a name, or "".
func (s *stage) stands(name, text, at string) string {
	ok := text != ""
	switch words, has := strings.CutPrefix(name, "has:"); {
	case has:
		ok = strings.Contains(text, words)
	case name == "text":
	case name == "time":
		_, err := time.Parse(time.RFC3339, text)
		ok = err == nil && moments.MatchString(text)
	case name == "uuid":
		id, err := uuid.Parse(text)
		ok = err == nil && id.Version() == 4 && id.String() == text && !s.uuids[text]
		s.uuids[text] = true
	default:
		for _, other := range s.known {
			ok = ok && other != text
		}
		s.known[name] = text
	}
	if !ok {
		return fmt.Sprintf("%s must not be %.200q, which stands for $%s", at, text, name)
	}
	return ""
}

// told compares a value that the program received with the wanted one. It ignores members that
// are not in want.
func told(want, got any, at string) string {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok && len(want) > 0 {
			return fmt.Sprintf("%s is no object: %.200v", at, got)
		}
		for key, value := range want {
			if why := told(value, object[key], at+"/"+key); why != "" {
				return why
			}
		}
		return ""
	case []any:
		return eachItem(want, got, at, told)
	case nil: // no value, which some SDKs return as an empty one
		if got == "" {
			return ""
		}
	}
	return plain(want, got, at)
}

func eachItem(want []any, got any, at string, same func(want, got any, at string) string) string {
	items, ok := got.([]any)
	if !ok && got != nil || len(items) != len(want) {
		return fmt.Sprintf("%s is no list of %d", at, len(want))
	}
	for i := range want {
		if why := same(want[i], items[i], fmt.Sprintf("%s/%d", at, i)); why != "" {
			return why
		}
	}
	return ""
}

func plain(want, got any, at string) string {
	number, isNumber := want.(json.Number)
	other, areNumbers := got.(json.Number)
	same := isNumber == areNumbers
	switch {
	case same && isNumber:
		a, aOK := new(big.Rat).SetString(number.String())
		b, bOK := new(big.Rat).SetString(other.String())
		same = aOK && bOK && a.Cmp(b) == 0
	case same:
		switch got.(type) {
		case map[string]any, []any:
			same = false
		default:
			same = want == got
		}
	}
	if !same {
		return fmt.Sprintf("%s is %.200v, not %.200v", at, got, want)
	}
	return ""
}
