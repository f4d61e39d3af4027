package config

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

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
		Code:    "config/too-deep",
		Summary: "Nested too deeply",
		Detail:  fmt.Sprintf("At most %d levels of brackets can be read, and %d operators in one expression.", maxNesting, maxOperators),
	}
}

func hugeNumber() Problem {
	return Problem{
		Code:    "config/bad-number",
		Summary: "Number too large",
		Detail:  "No attribute takes a number of that many digits.",
	}
}
