package groupconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	maxName    = 80      // characters of a name shown in a chat
	maxText    = 4 << 10 // bytes of any other text
	maxEntries = 64      // of env and settings
	maxSenders = 1000    // of access
	maxSender  = 256     // bytes of a sender's id
	maxRate    = 10_000  // turns per sender and hour
	minMemory  = 6 << 20 // docker's minimum
	maxMemory  = 1 << 50
	maxCPUs    = 1024
	minBudget  = 0.01 // US dollars: a call of a model costs that soon
	maxBudget  = 100_000.0
	minPIDs    = 4       // the container's init, a shell, the agent and one more
	maxPIDs    = 1 << 22 // Linux's maximum
	minTimeout = time.Second
	maxTimeout = 7 * 24 * time.Hour

	maxTranscribe = 10 * time.Minute // messages wait meanwhile
)

// What is wanted of an object, and the problem with a whole configuration that is none.
const (
	object      = "a JSON object"
	notAnObject = "must be " + object
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

// parse returns what can be read, and the problems with the rest, sorted.
func parse(raw json.RawMessage) (c Config, problems Problems) {
	r := &reader{}
	r.object("", raw, fields{
		"assistant_name": line(&c.AssistantName, maxName),
		"access":         c.Access.read,
		"rate":           rate(&c.Rate),
		"reach":          oneOf(&c.Reach, ReachWorld, ReachNone),
		"approvers":      c.Approvers.read,
		"pin":            oneOf(&c.Pin, PinEveryone, PinOperators),
		"observe":        oneOf(&c.Observe, ObserveAll, ObserveShared, ObserveNone),
		"long":           oneOf(&c.Long, LongParts, LongFile),
		"progress":       oneOf(&c.Progress, ProgressLive, ProgressStatus, ProgressOff),
		"tool_input":     yesNo(&c.ToolInput),
		"steer":          oneOf(&c.Steer, SteerFold, SteerQueue),
		"announce":       yesNo(&c.Announce),
		"budget":         c.Budget.read,
		"agent":          c.Agent.read,
		"limits":         c.Limits.read,
		"timeouts":       c.Timeouts.read,
		"transcribe":     transcribe(&c.Transcribe),
	})
	r.agree(c)
	slices.Sort(r.problems)
	return c, r.problems
}

// agree finds settings that exclude each other.
func (r *reader) agree(c Config) {
	onMachine := c.Agent.Runtime == Process || c.Agent.Runtime == Bwrap
	if onMachine && c.Agent.Image != "" {
		r.problem("agent.image", "needs the runtime docker, not %s", c.Agent.Runtime)
	}
	if c.Agent.Name != "" && (c.Agent.Command != "" || c.Agent.Image != "") {
		r.problem("agent.name", "a group has either an agent of AGENTS or a command or image of its own")
	}
	if onMachine && c.Limits != (Limits{}) {
		r.problem("limits", "need the runtime docker, not %s", c.Agent.Runtime)
	}
}

func (a *Agent) read(r *reader, path string, raw json.RawMessage) {
	r.object(path, raw, fields{
		"name":     namedAgent(&a.Name),
		"runtime":  oneOf(&a.Runtime, Process, Bwrap, Docker),
		"command":  command(&a.Command),
		"image":    word(&a.Image),
		"model":    line(&a.Model, maxText),
		"env":      names(&a.Env),
		"settings": settings(&a.Settings),
	})
}

func (b *Budget) read(r *reader, path string, raw json.RawMessage) {
	r.object(path, raw, fields{
		"turn_usd": number(&b.TurnUSD, minBudget, maxBudget),
		"day_usd":  number(&b.DayUSD, minBudget, maxBudget),
	})
}

func (l *Limits) read(r *reader, path string, raw json.RawMessage) {
	r.object(path, raw, fields{
		"memory": memory(&l.Memory),
		"cpus":   number(&l.CPUs, 0.01, maxCPUs),
		"pids":   number(&l.PIDs, minPIDs, maxPIDs),
	})
}

func (t *Timeouts) read(r *reader, path string, raw json.RawMessage) {
	r.object(path, raw, fields{
		"timeout": func(r *reader, path string, raw json.RawMessage) {
			t.Timeout = r.duration(path, raw, minTimeout, maxTimeout)
		},
		"idle": func(r *reader, path string, raw json.RawMessage) {
			idle := r.duration(path, raw, 0, maxTimeout)
			t.Idle = &idle
		},
		"transcribe": func(r *reader, path string, raw json.RawMessage) {
			t.Transcribe = r.duration(path, raw, minTimeout, maxTranscribe)
		},
	})
}

// reader collects the problems.
type reader struct{ problems Problems }

// field reads the value at a path.
type field func(r *reader, path string, raw json.RawMessage)

type fields map[string]field

func (r *reader) problem(path, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if path != "" {
		text = path + ": " + text
	}
	r.problems = append(r.problems, text)
}

// into decodes a value, or adds a problem that says what is wanted.
func into[T any](r *reader, path string, raw json.RawMessage, want string) (v T, ok bool) {
	if string(raw) == "null" || json.Unmarshal(raw, &v) != nil {
		r.problem(path, "must be %s", want)
		return v, false
	}
	return v, true
}

func (r *reader) object(path string, raw json.RawMessage, known fields) {
	values, ok := into[map[string]json.RawMessage](r, path, raw, object)
	if !ok {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		at := key
		if path != "" {
			at = path + "." + key
		}
		if read, ok := known[key]; ok {
			read(r, at, values[key])
		} else {
			r.problems = append(r.problems, fmt.Sprintf("unknown setting %.80q; did you mean %s?", at, nearest(at)))
		}
	}
}

func (r *reader) duration(path string, raw json.RawMessage, minimum, maximum time.Duration) Duration {
	text, ok := into[string](r, path, raw, `a duration, as in "90s" or "20m"`)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		r.problem(path, `%.80q is not a duration, as in "90s" or "20m"`, text)
	case d < minimum || d > maximum:
		r.problem(path, "must be from %s to %s", minimum, maximum)
	}
	return Duration(d)
}

// line is a text of one line.
func line(to *string, limit int) field {
	return func(r *reader, path string, raw json.RawMessage) {
		text, ok := into[string](r, path, raw, "a text")
		switch {
		case !ok:
		case strings.ContainsFunc(text, unicode.IsControl):
			r.problem(path, "must be one line")
		case utf8.RuneCountInString(text) > limit:
			r.problem(path, "must have at most %d characters", limit)
		}
		*to = text
	}
}

// word is a text for command lines: no space, and not an option.
func word(to *string) field {
	return func(r *reader, path string, raw json.RawMessage) {
		line(to, maxText)(r, path, raw)
		if strings.HasPrefix(*to, "-") || strings.ContainsFunc(*to, unicode.IsSpace) {
			r.problem(path, "%.80q must be one word", *to)
		}
	}
}

func command(to *string) field {
	return func(r *reader, path string, raw json.RawMessage) {
		*to, _ = into[string](r, path, raw, "a text")
		checkValue(r, path, *to)
	}
}

func transcribe(to *string) field {
	return func(r *reader, path string, raw json.RawMessage) {
		command(to)(r, path, raw)
		switch {
		case strings.TrimSpace(*to) == "" && *to != "":
			r.problem(path, "must not be blank; leave it out for no transcripts")
		case *to != "" && !strings.Contains(*to, FilePlaceholder):
			r.problem(path, "must have %s where the audio file goes, as in whisper-cli -f %[1]s", FilePlaceholder)
		}
	}
}

// checkValue finds texts that can be neither an argument nor a variable's value.
func checkValue(r *reader, path, text string) {
	if strings.ContainsRune(text, 0) || len(text) > maxText {
		r.problem(path, "must have at most %d bytes and no NUL byte", maxText)
	}
}

func oneOf[T ~string](to *T, known ...T) field {
	return func(r *reader, path string, raw json.RawMessage) {
		text, ok := into[string](r, path, raw, "a text")
		if *to = T(text); ok && !slices.Contains(known, *to) {
			r.problem(path, "must be one of %v", known)
		}
	}
}

func yesNo(to *bool) field {
	return func(r *reader, path string, raw json.RawMessage) {
		*to, _ = into[bool](r, path, raw, "true or false")
	}
}

func number[T int | float64](to *T, minimum, maximum T) field {
	return func(r *reader, path string, raw json.RawMessage) {
		want := fmt.Sprintf("a number from %v to %v", minimum, maximum)
		n, ok := into[T](r, path, raw, want)
		if ok && (n < minimum || n > maximum) {
			r.problem(path, "must be %s", want)
		}
		*to = n
	}
}

func rate(to **int) field {
	return func(r *reader, path string, raw json.RawMessage) {
		var n int
		number(&n, 0, maxRate)(r, path, raw)
		*to = &n
	}
}

func memory(to *Bytes) field {
	return func(r *reader, path string, raw json.RawMessage) {
		text, ok := into[string](r, path, raw, `a text, as in "512m" or "2g"`)
		if !ok {
			return
		}
		if err := to.UnmarshalText([]byte(text)); err != nil {
			r.problem(path, "%v", err)
		} else if *to < minMemory || *to > maxMemory {
			r.problem(path, "must be from %s to %s", Bytes(minMemory), Bytes(maxMemory))
		}
	}
}

func names(to *[]string) field {
	return func(r *reader, path string, raw json.RawMessage) {
		*to, _ = into[[]string](r, path, raw, "a list of variable names")
		if len(*to) > maxEntries {
			r.problem(path, "must have at most %d entries", maxEntries)
		}
		for _, name := range *to {
			if err := CheckEnv(name); err != nil {
				r.problem(path, "%v", err)
			}
		}
	}
}

func settings(to *map[string]string) field {
	return func(r *reader, path string, raw json.RawMessage) {
		*to, _ = into[map[string]string](r, path, raw, "an object of texts")
		if len(*to) > maxEntries {
			r.problem(path, "must have at most %d entries", maxEntries)
		}
		for name, value := range *to {
			if err := checkSetting(name); err != nil {
				r.problem(path, "%v", err)
			}
			checkValue(r, path+"."+name, value)
		}
	}
}
