package permission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of the page. Values deeper than maxDepth are written in one line of JSON.
const (
	maxDepth  = 8
	maxInline = 80 // bytes of a text beside its name
	maxEmpty  = 2  // empty lines in a row
)

// parse reads JSON that can be shown completely. It refuses duplicate keys and bytes that are not text, which the
// program that runs the call may read differently.
func parse(input json.RawMessage) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(input))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if !utf8.Valid(input) || tokens(input) != tokens([]byte(marshal(value))) {
		return nil, errors.New("it has a key twice, or bytes that are no text")
	}
	return value, nil
}

// tokens counts the tokens of JSON.
func tokens(text []byte) (n int) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		if _, err := decoder.Token(); err != nil {
			return n
		}
		n++
	}
}

// marshal is a value in one line of JSON.
func marshal(value any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // parsed values always marshal
	return strings.TrimSuffix(b.String(), "\n")
}

// words are the agent's own description of something. In one line they stand in quotes.
type words string

// page is a value as users read it: a line for each key, with commands and files as they are. No text passes for
// another field, since each line of a longer one begins with a mark, and no two values give the same page.
type page struct{ strings.Builder }

func (p *page) line(indent, text string) {
	if p.Len() > 0 {
		p.WriteByte('\n')
	}
	p.WriteString(indent + text)
}

// put writes a value below its label, or beside it.
func (p *page) put(indent, label string, value any) {
	if text, ok := inline(value, len(indent)); ok {
		p.line(indent, label+" "+text)
		return
	}
	p.line(indent, label)
	indent += "  "
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			name := key
			if !plainKey.MatchString(key) {
				name = marshal(key)
			}
			p.put(indent, name+":", v[key])
		}
	case []any:
		for _, item := range v {
			p.put(indent, "-", item)
		}
	case string:
		p.block(indent, v)
	case words:
		p.block(indent, string(v))
	}
}

// plainKey matches keys that are written without quotes.
var plainKey = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// inline is a value that stands beside its label.
func inline(value any, depth int) (text string, ok bool) {
	isShort := func(s string) bool { return len(s) <= maxInline && !strings.Contains(s, "\n") }
	switch v := value.(type) {
	case map[string]any:
		return marshal(v), len(v) == 0 || depth >= 2*maxDepth
	case []any:
		return marshal(v), len(v) == 0 || depth >= 2*maxDepth
	case words:
		return marshal(string(v)), isShort(string(v)) || strings.Contains(string(v), "\x00")
	case string:
		switch {
		case strings.Contains(v, "\x00"), // which no chat shows
			// it could be taken for something else
			v == "", v[0] == '"', strings.TrimSpace(v) != v, json.Valid([]byte(v)):
			return marshal(v), isShort(v) || strings.Contains(v, "\x00")
		}
		return v, isShort(v)
	}
	return marshal(value), true
}

// block writes a text line by line.
func (p *page) block(indent, text string) {
	lines := strings.Split(text, "\n")
	for len(lines) > 0 {
		empty := slices.IndexFunc(lines, func(line string) bool { return line != "" })
		if empty < 0 {
			empty = len(lines)
		}
		if empty > maxEmpty {
			p.line(indent, fmt.Sprintf("* %d empty lines", empty))
			lines = lines[empty:]
			continue
		}
		line := "|"
		if lines[0] != "" {
			line += " " + lines[0]
		}
		p.line(indent, line)
		lines = lines[1:]
	}
}
