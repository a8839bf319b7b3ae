package groupconfig

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Problems are all the mistakes found in a configuration, one line each.
type Problems []string

func (p Problems) Error() string { return strings.Join(p, "; ") }

// Parse reads a group's configuration. The error is a Problems that names every mistake by its
// path, as in "agent.runtime".
func Parse(raw json.RawMessage) (Config, error) {
	c, problems := parse(raw)
	if len(problems) > 0 {
		return Config{}, problems
	}
	return c, nil
}

// parse returns the valid settings, and the problems with the others, sorted.
func parse(raw json.RawMessage) (Config, Problems) {
	r := newReader("")
	return r.parse(raw), r.problems
}

// reader reads one configuration.
type reader struct {
	agent    string                     // of [Agents], "" in a group's configuration
	given    map[string]json.RawMessage // the settings that it has, by path
	former   map[string]string          // the former paths of those that are given under them
	failed   map[string]bool            // those that are not of their type
	problems Problems
}

func newReader(agent string) *reader {
	return &reader{agent: agent, given: map[string]json.RawMessage{}, former: map[string]string{},
		failed: map[string]bool{}}
}

func (r *reader) parse(raw json.RawMessage) Config {
	r.list("", raw)
	c := r.decode()
	if c.Agent.Name == DefaultAgent {
		c.Agent.Name = ""
	}
	c.validate(r)
	slices.Sort(r.problems)
	return c
}

// notAnObject is the problem with a whole configuration that is none.
const notAnObject = "must be a JSON object"

// list lists the settings of a section, "" for the top. It is stricter than encoding/json, to which
// Rate is rate.
func (r *reader) list(section string, raw json.RawMessage) {
	var settings map[string]json.RawMessage
	if json.Unmarshal(raw, &settings) != nil || settings == nil {
		r.problem(section, notAnObject)
		return
	}
	known := paths()
	for name, value := range settings {
		path := strings.TrimPrefix(section+"."+name, ".")
		switch {
		case strings.Contains(name, ".") || !slices.Contains(known, cmp.Or(renamed[path], path)):
			r.problems = append(r.problems, fmt.Sprintf("unknown setting %.80q; did you mean %s?", r.shown(path),
				nearest(path)))
		case slices.Contains(sections(), path):
			r.list(path, value)
		default:
			r.give(path, value)
		}
	}
}

// give keeps a setting under its present path. It is a problem if that is given under its former one, too.
func (r *reader) give(path string, value json.RawMessage) {
	present := cmp.Or(renamed[path], path)
	if _, twice := r.given[present]; twice {
		r.problems = append(r.problems, fmt.Sprintf("%s: is set twice: remove %s, its former name", present,
			cmp.Or(r.former[present], path)))
		r.given[present] = json.RawMessage(`[]`) // the least, whichever comes first
		delete(r.failed, present)
		return
	}
	r.given[present] = value
	if present != path {
		r.former[present] = path
	}
	if string(value) == "null" { // which encoding/json takes for one that is left out
		r.failed[present] = true
	}
}

// decode reads the settings, each on its own: a mistake in one leaves the others, and those that were not listed,
// because its name comes twice, is not read.
func (r *reader) decode() (c Config) {
	var text []byte // an object for each, as in {"agent":{"model":"m"}}
	all := slices.Collect(maps.Keys(r.given))
	for _, path := range all {
		text = append(append(append(text, `{"`...), strings.ReplaceAll(path, ".", `":{"`)...), `":`...)
		text = append(append(text, r.given[path]...), strings.Repeat("}", 1+strings.Count(path, "."))...)
	}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	for _, path := range all {
		if strict.Decode(&c) != nil {
			r.failed[path] = true
		}
	}
	return c
}

// shown is a path as the problems name it: as it is written, and of an agent of [Agents] below its name.
func (r *reader) shown(path string) string {
	if r.agent != "" {
		return r.agent + strings.TrimPrefix(path, "agent")
	}
	return cmp.Or(r.former[path], path)
}

func (r *reader) problem(path, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if path != "" {
		text = r.shown(path) + ": " + text
	}
	r.problems = append(r.problems, text)
}
