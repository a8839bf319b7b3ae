package match

import (
	"path"
	"strings"
)

type globKind int

const (
	exact   globKind = iota // head
	star                    // head*tail
	stars                   // head*piece*…*tail
	general                 // head … tail with other wildcards between
)

// glob is a pattern of path.Match, taken apart. Its matches start with head and
// ends with tail: the literal text, unescaped, before the first and after the last
// wildcard.
type glob struct {
	pattern    string
	kind       globKind
	head, tail string
	pieces     []string // the literal texts between the wildcards, without the empty ones
}

// parseGlob returns path.ErrBadPattern where path.Match does.
func parseGlob(pattern string) (glob, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return glob{}, err
	}
	head, rest := cutLiteral(pattern)
	g := glob{pattern: pattern, kind: exact, head: head}
	for rest != "" {
		switch {
		case rest[0] != '*':
			g.kind = general
		case g.kind == exact:
			g.kind = star
		case g.kind == star:
			g.kind = stars
		}
		if g.tail != "" {
			g.pieces = append(g.pieces, g.tail)
		}
		g.tail, rest = cutLiteral(skipWildcard(rest))
	}
	return g, nil
}

// Escape returns the pattern that matches a value alone. In an expression the value must have no white
// space, which separates the pairs.
func Escape(value string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(value)
}

// match is a faster path.Match(g.pattern, value).
func (g *glob) match(value string) bool {
	if g.kind == exact {
		return value == g.head
	}
	if len(value) < len(g.head)+len(g.tail) ||
		!strings.HasPrefix(value, g.head) || !strings.HasSuffix(value, g.tail) {
		return false
	}
	between := value[len(g.head) : len(value)-len(g.tail)]
	flat := strings.IndexByte(between, '/') < 0
	if g.kind == star {
		return flat
	}
	// A search for the pieces is much faster than path.Match, of which a long name may need 0.5 ms.
	for _, piece := range g.pieces {
		at := strings.Index(between, piece)
		if at < 0 {
			return false
		}
		between = between[at+len(piece):]
	}
	if g.kind == stars && flat {
		return true
	}
	ok, err := path.Match(g.pattern, value)
	return ok && err == nil
}

// cutLiteral splits a valid pattern before its first wildcard; the literal is unescaped.
func cutLiteral(pattern string) (literal, rest string) {
	var text []byte
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '*', '?', '[':
			return string(text), pattern[i:]
		case '\\':
			i++
		}
		text = append(text, pattern[i])
	}
	return string(text), ""
}

// skipWildcard returns the rest after the run of stars, the question mark or the class
// that a valid pattern starts with.
func skipWildcard(pattern string) string {
	switch pattern[0] {
	case '*':
		return strings.TrimLeft(pattern, "*")
	case '?':
		return pattern[1:]
	}
	end := 1
	for pattern[end] != ']' {
		if pattern[end] == '\\' {
			end++
		}
		end++
	}
	return pattern[end+1:]
}
