package groupconfig

import (
	"errors"
	"fmt"
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
	maxSenders = 1000    // of a role
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

// validate finds the problems with the settings that are given.
func (c *Config) validate(r *reader) {
	r.line("assistant_name", c.AssistantName, maxName)
	r.role("roles.ask", c.Roles.Ask)
	r.role("roles.approve", c.Roles.Approve)
	r.role("roles.operate", c.Roles.Operate)
	number(r, "rate", valueOf(c.Rate), 0, maxRate)
	oneOf(r, "reach", c.Reach, ReachWorld, ReachNone)
	oneOf(r, "pin", c.Pin, PinEveryone, PinOperators)
	oneOf(r, "observe", c.Observe, ObserveAll, ObserveShared, ObserveNone)
	oneOf(r, "long", c.Long, LongParts, LongFile)
	oneOf(r, "progress", c.Progress, ProgressLive, ProgressStatus, ProgressOff)
	oneOf(r, "steer", c.Steer, SteerFold, SteerQueue)
	r.ok("announce", "true or false")
	number(r, "budget.turn_usd", c.Budget.TurnUSD, minBudget, maxBudget)
	number(r, "budget.day_usd", c.Budget.DayUSD, minBudget, maxBudget)
	c.Agent.validate(r)
	if r.ok("limits.memory", `an amount of memory, as in "512m" or "2g"`) &&
		(c.Limits.Memory < minMemory || c.Limits.Memory > maxMemory) {
		r.problem("limits.memory", "must be from %s to %s", Bytes(minMemory), Bytes(maxMemory))
	}
	number(r, "limits.cpus", c.Limits.CPUs, 0.01, maxCPUs)
	number(r, "limits.pids", c.Limits.PIDs, minPIDs, maxPIDs)
	r.duration("timeouts.timeout", c.Timeouts.Timeout, minTimeout, maxTimeout)
	r.duration("timeouts.idle", valueOf(c.Timeouts.Idle), 0, maxTimeout)
	r.duration("timeouts.transcribe", c.Timeouts.Transcribe, minTimeout, maxTranscribe)
	r.transcriber(c.Transcribe)
	c.validateHooks(r)
	if c.Agent.onMachine() && c.Limits != (Limits{}) {
		r.problem("limits", "need the runtime docker, not %s", c.Agent.Runtime)
	}
}

func (a *Agent) validate(r *reader) {
	if r.ok("agent.name", "a text") && a.Name != "" {
		switch err := checkAgentName(a.Name); {
		case err != nil:
			r.problem("agent.name", "%v", err)
		case r.agent != "":
			r.problem("agent.name", "is not set here: the agent's name is %s", r.agent)
		case a.Command != "" || a.Image != "":
			r.problem("agent.name", "a group has either an agent of AGENTS or a command or image of its own")
		}
	}
	oneOf(r, "agent.runtime", a.Runtime, Process, Bwrap, Docker)
	r.command("agent.command", a.Command)
	r.line("agent.image", a.Image, maxText)
	// it is an argument of docker
	if strings.HasPrefix(a.Image, "-") || strings.ContainsFunc(a.Image, unicode.IsSpace) {
		r.problem("agent.image", "%.80q must be one word", a.Image)
	}
	if a.onMachine() && a.Image != "" {
		r.problem("agent.image", "needs the runtime docker, not %s", a.Runtime)
	}
	r.line("agent.model", a.Model, maxText)
	oneOf(r, "agent.network", a.Network, NetworkBridge, NetworkNone, NetworkAsk, NetworkHost)
	if a.Network == NetworkAsk && a.Runtime == Process {
		r.problem("agent.network", "ask needs the runtime bwrap or docker, not %s", a.Runtime)
	}
	if r.entries("agent.secrets", "an object of names of secrets", len(a.Secrets)) {
		for name, secret := range a.Secrets {
			secret = strings.TrimSuffix(secret, RefreshSuffix)
			if err := errors.Join(checkSetting(name), CheckSecretName(secret)); err != nil {
				r.problem("agent.secrets", "%v", err)
			}
		}
	}
	if r.entries("agent.env", "a list of variable names", len(a.Env)) {
		for _, name := range a.Env {
			if err := CheckEnv(name); err != nil {
				r.problem("agent.env", "%v", err)
			}
		}
	}
	if r.entries("agent.settings", "an object of texts", len(a.Settings)) {
		for name, value := range a.Settings {
			if err := checkSetting(name); err != nil {
				r.problem("agent.settings", "%v", err)
			}
			r.value("agent.settings."+name, value)
		}
	}
}

func (a *Agent) onMachine() bool { return a.Runtime == Process || a.Runtime == Bwrap }

// ok reports whether a setting is given and is of its type.
func (r *reader) ok(path, want string) bool {
	_, given := r.given[path]
	if r.failed[path] {
		r.problem(path, "must be %s", want)
	}
	return given && !r.failed[path]
}

func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func (r *reader) duration(path string, d Duration, minimum, maximum time.Duration) {
	if r.ok(path, `a duration, as in "90s" or "20m"`) && (time.Duration(d) < minimum || time.Duration(d) > maximum) {
		r.problem(path, "must be from %s to %s", minimum, maximum)
	}
}

// line is a text of one line.
func (r *reader) line(path, text string, limit int) {
	switch {
	case !r.ok(path, "a text"):
	case strings.ContainsFunc(text, unicode.IsControl):
		r.problem(path, "must be one line")
	case utf8.RuneCountInString(text) > limit:
		r.problem(path, "must have at most %d characters", limit)
	}
}

func (r *reader) command(path, text string) {
	if r.ok(path, "a text") {
		r.value(path, text)
	}
}

// value finds texts that can be neither an argument nor a variable's value.
func (r *reader) value(path, text string) {
	if strings.ContainsRune(text, 0) || len(text) > maxText {
		r.problem(path, "must have at most %d bytes and no NUL byte", maxText)
	}
}

func (r *reader) transcriber(text string) {
	const path = "transcribe"
	r.command(path, text)
	switch {
	case text == "":
	case strings.TrimSpace(text) == "":
		r.problem(path, "must not be blank; leave it out for no transcripts")
	case !strings.Contains(text, FilePlaceholder):
		r.problem(path, "must have %s where the audio file goes, as in whisper-cli -f %[1]s", FilePlaceholder)
	}
}

func (r *reader) entries(path, want string, n int) (ok bool) {
	if ok = r.ok(path, want); ok && n > maxEntries {
		r.problem(path, "must have at most %d entries", maxEntries)
	}
	return ok
}

func oneOf[T ~string](r *reader, path string, value T, known ...T) {
	if r.ok(path, "a text") && !slices.Contains(known, value) {
		r.problem(path, "must be one of %v", known)
	}
}

func number[T int | float64](r *reader, path string, n, minimum, maximum T) {
	want := fmt.Sprintf("a number from %v to %v", minimum, maximum)
	if r.ok(path, want) && (n < minimum || n > maximum) {
		r.problem(path, "must be %s", want)
	}
}
