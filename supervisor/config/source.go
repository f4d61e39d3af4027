package config

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty/function"

	"orchestrator/supervisor/settings"
)

// maxFile is the largest file that is read. The parser is recursive, and a program cannot recover
// from a stack overflow.
const maxFile = mib

// A reader is one load. It collects the mistakes while it reads the parts of a file, in the
// order of their dependencies.
type reader struct {
	options   Options
	config    *Config
	sources   sources
	files     []string // absolute paths of all files that were opened
	values    []string // paths of files that were read as values
	users     []func() // checks of the users of agents, when all agents are read
	problems  Problems
	sensitive []string // values no problem may show
	worked    int      // bytes and elements of all evaluated expressions
	functions map[string]function.Function
	scope     *scope          // for expressions outside agents
	client    settings.Client // of an agent with an empty block
	agents    map[string]*block
	actors    map[string]string // the agent that has each actor that is not per run

	memberNames  []string // members of all sessions, with their positions
	memberPlaces []hcl.Range
}

// sources are the texts that were read, by the name shown in problems.
type sources map[string]*source

type source struct {
	text []byte
	file *hcl.File
	// Hidden sources are never quoted. A variable file may contain a secret, which cannot be distinguished from the rest
	// if the file does not parse.
	hidden bool
}

// report adds the problem p at a position.
func (r *reader) report(at hcl.Range, p Problem) {
	if p.Severity == "" {
		p.Severity = SeverityError
	}
	p.Range = rangeOf(at)
	p.Snippet = r.sources.snippet(at, at)
	r.problems = append(r.problems, p)
}

// reportWithin is report for a mistake that cannot be understood without the lines before it.
func (r *reader) reportWithin(around, at hcl.Range, p Problem) {
	r.report(at, p)
	r.problems[len(r.problems)-1].Snippet = r.sources.snippet(around, at)
}

// snippet returns the lines from the start of around to the line where at starts.
func (s sources) snippet(around, at hcl.Range) *Snippet {
	const most = 6 // lines; a long list must not push the mistake off the screen
	src, ok := s[at.Filename]
	if !ok || src.hidden || at.Start.Line == 0 || at.Start.Byte > len(src.text) {
		return nil
	}
	text := src.text
	from := lineStart(text, at.Start.Byte)
	line := at.Start.Line
	for from > 0 && line > around.Start.Line && at.Start.Line-line < most-1 {
		from = lineStart(text, from-1)
		line--
	}
	to := len(text)
	if i := bytes.IndexByte(text[at.Start.Byte:], '\n'); i >= 0 {
		to = at.Start.Byte + i
	}
	code := strings.TrimSuffix(string(text[from:to]), "\r")
	start := min(at.Start.Byte-from, len(code))
	return &Snippet{
		Context:        src.blockAround(at),
		Code:           code,
		StartLine:      line,
		HighlightStart: start,
		HighlightEnd:   max(start, min(at.End.Byte-from, len(code))),
	}
}

func lineStart(text []byte, at int) int {
	return bytes.LastIndexByte(text[:at], '\n') + 1
}

// blockAround returns the header of the outermost block around a position, such as `agent
// "coder"`.
func (s *source) blockAround(at hcl.Range) string {
	if s.file == nil {
		return ""
	}
	b := s.file.OutermostBlockAtPos(at.Start)
	if b == nil {
		return ""
	}
	header := b.Type
	for _, label := range b.Labels {
		header += fmt.Sprintf(" %q", label)
	}
	return header
}

// at returns the text of a range, or "" if it is not within a source.
func (s sources) at(r hcl.Range) string {
	src, ok := s[r.Filename]
	if !ok || r.Start.Byte > r.End.Byte || r.End.Byte > len(src.text) {
		return ""
	}
	return string(src.text[r.Start.Byte:r.End.Byte])
}

// nameAt returns the identifier or JSON key at a position.
func (s sources) nameAt(at hcl.Range) string { return strings.Trim(s.at(at), `"`) }

// plainText returns the source of an expression without spaces and comments.
func (s sources) plainText(expr hcl.Expression) string {
	tokens, _ := hclsyntax.LexExpression([]byte(s.at(expr.Range())), "", hcl.InitialPos)
	var b strings.Builder
	for _, t := range tokens {
		if t.Type != hclsyntax.TokenComment && t.Type != hclsyntax.TokenNewline {
			b.Write(t.Bytes)
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// open reads and parses a file. Problems are reported under name.
func (r *reader) open(path, name string, hidden bool) (hcl.Body, bool) {
	text, err := readAll(context.Background(), path)
	if err != nil {
		r.report(hcl.Range{Filename: name}, unreadable(path, err))
		return nil, false
	}
	if real, err := filepath.Abs(path); err == nil {
		r.files = append(r.files, real)
	}
	return r.parse(text, name, hidden)
}

func unreadable(path string, err error) Problem {
	return Problem{
		Code: "config/unreadable", Summary: "File cannot be read",
		Detail: fmt.Sprintf("%s: %v.", path, cause(err)),
	}
}

// parse returns the body of a file. After an error of syntax it is incomplete, or nil, and parse reports false.
func (r *reader) parse(text []byte, name string, hidden bool) (hcl.Body, bool) {
	src := &source{text: text, hidden: hidden}
	r.sources[name] = src
	isJSON := filepath.Ext(name) == ".json"
	if p, ok := strange(text, isJSON); ok {
		src.hidden = true // its lines are meaningless
		r.report(hcl.Range{Filename: name}, p)
		return nil, false
	}
	if p, at, ok := excess(text, name, isJSON); ok {
		r.report(at, p)
		return nil, false
	}
	var diags hcl.Diagnostics
	if isJSON {
		src.file, diags = json.Parse(text, name)
	} else {
		src.file, diags = hclsyntax.ParseConfig(text, name, hcl.InitialPos)
	}
	r.diagnose(diags, "config/syntax", nil)
	if src.file == nil {
		return nil, false
	}
	return src.file.Body, !diags.HasErrors()
}

// readPatience is how long a read of a file that is not regular may take. An example is a named
// pipe that a key agent writes to.
const readPatience = 10 * time.Second

// readAll reads a file of at most maxFile bytes.
func readAll(ctx context.Context, path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errIsFolder
	case info.Size() > maxFile:
		return nil, fmt.Errorf("it is larger than %d KiB", maxFile/kib)
	case !info.Mode().IsRegular():
		return readWaiting(ctx, path)
	}
	return os.ReadFile(path)
}

// readWaiting reads a file that may block. An open cannot be cancelled: after a timeout its
// goroutine remains until the next writer opens the file.
func readWaiting(ctx context.Context, path string) ([]byte, error) {
	type result struct {
		text []byte
		err  error
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readPatience, errNothingCame)
	defer cancel()
	done := make(chan result, 1)
	go func() {
		file, err := os.Open(path)
		if err != nil {
			done <- result{nil, err}
			return
		}
		defer file.Close()
		text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
		if err == nil && int64(len(text)) > maxFile {
			err = fmt.Errorf("it is larger than %d KiB", maxFile/kib)
		}
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// masked replaces sensitive values in every text of p. The readers do not quote such values
// themselves, but messages of libraries and literals in the quoted source may contain them.
func (r *reader) masked(p Problem) Problem {
	const shortest = 4 // shorter values may be part of a word
	for _, s := range r.sensitive {
		if len(s) < shortest {
			continue
		}
		for _, text := range []*string{&p.Summary, &p.Detail, &p.Hint} {
			*text = strings.ReplaceAll(*text, s, "(sensitive)")
		}
		if p.Snippet == nil {
			continue
		}
		// The length must not change, because the highlight is a range of bytes.
		stars := strings.Repeat("*", len(s))
		p.Snippet.Code = strings.ReplaceAll(p.Snippet.Code, s, stars)
	}
	return p
}

func rangeOf(at hcl.Range) Range {
	return Range{
		Filename: at.Filename,
		Start:    Position{Line: at.Start.Line, Column: at.Start.Column, Byte: at.Start.Byte},
		End:      Position{Line: at.End.Line, Column: at.End.Column, Byte: at.End.Byte},
	}
}

// place returns a position in short form.
func place(at hcl.Range) string { return fmt.Sprintf("%s:%d", at.Filename, at.Start.Line) }

const (
	// maxNesting is the deepest nesting of brackets.
	maxNesting = 200
	// maxOperators is the largest number of operators in one expression. The parser recurses
	// for each of them: a[*][*][*] took a gigabyte of stack.
	maxOperators = 1000
	// maxNumeral is the longest text of a number, and maxExponent the most digits of its
	// exponent. 1e999999999 is short to write, but takes a gigabyte to print.
	maxNumeral  = 40
	maxExponent = 3
)

// excess returns a problem if the parser would exhaust the stack or the memory. It checks the
// tokens before they are parsed.
func excess(text []byte, name string, isJSON bool) (Problem, hcl.Range, bool) {
	if isJSON {
		return jsonExcess(text, name)
	}
	tokens, _ := hclsyntax.LexConfig(text, name, hcl.InitialPos)
	d := depth{levels: []level{{}}}
	for _, t := range tokens {
		if t.Type == hclsyntax.TokenNumberLit && hugeNumeral(string(t.Bytes)) {
			return hugeNumber(), t.Range, true
		}
		if !d.take(t.Type) {
			return tooDeep(), t.Range, true
		}
	}
	return Problem{}, hcl.Range{}, false
}

// A depth tracks brackets, and counts the operators within each pair.
type depth struct{ levels []level }

type level struct {
	opened    hclsyntax.TokenType
	operators int
}

// take reports whether the parser stays within the limits at this token.
func (d *depth) take(token hclsyntax.TokenType) bool {
	top := &d.levels[len(d.levels)-1]
	switch token {
	case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen,
		hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
		top.operators++ // an index, or a call
		d.levels = append(d.levels, level{opened: token})
	case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd:
		if len(d.levels) > 1 {
			d.levels = d.levels[:len(d.levels)-1]
		}
	case hclsyntax.TokenComma:
		top.operators = 0
	case hclsyntax.TokenNewline:
		// Within parentheses an expression continues on the next line.
		if len(d.levels) == 1 || top.opened == hclsyntax.TokenOBrace {
			top.operators = 0
		}
	case hclsyntax.TokenBang, hclsyntax.TokenMinus, hclsyntax.TokenPlus, hclsyntax.TokenStar,
		hclsyntax.TokenSlash, hclsyntax.TokenPercent, hclsyntax.TokenQuestion, hclsyntax.TokenDot,
		hclsyntax.TokenAnd, hclsyntax.TokenOr, hclsyntax.TokenEqualOp, hclsyntax.TokenNotEqual:
		top.operators++
	}
	return len(d.levels) <= maxNesting && top.operators <= maxOperators
}

func jsonExcess(text []byte, name string) (Problem, hcl.Range, bool) {
	at := hcl.Range{Filename: name}
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxNesting {
				return tooDeep(), at, true
			}
		case c == '}' || c == ']':
			depth--
		case c >= '0' && c <= '9':
			end := i
			for end < len(text) && strings.IndexByte("0123456789.eE+-", text[end]) >= 0 {
				end++
			}
			if hugeNumeral(string(text[i:end])) {
				return hugeNumber(), at, true
			}
			i = end - 1
		}
	}
	return Problem{}, hcl.Range{}, false
}

func hugeNumeral(s string) bool {
	if len(s) > maxNumeral {
		return true
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		return len(strings.TrimLeft(s[i+1:], "+-0")) > maxExponent
	}
	return false
}

func tooDeep() Problem {
	return Problem{
		Code: "config/too-deep", Summary: "Nested too deeply",
		Detail: fmt.Sprintf("At most %d levels of brackets can be read, and %d operators in one expression.", maxNesting, maxOperators),
	}
}

func hugeNumber() Problem {
	return Problem{
		Code: "config/bad-number", Summary: "Number too large",
		Detail: "No attribute takes a number of that many digits.",
	}
}
