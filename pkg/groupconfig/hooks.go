package groupconfig

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Hook is an address at which another service delivers events to the group, as messages.
type Hook struct {
	// ID is a random part of the address, so that only the sender knows it: [a-z0-9], 16 to 64 of them.
	ID   string   `json:"id"`
	Kind HookKind `json:"kind"`
	Off  bool     `json:"off,omitempty"`
	// To is the chat where the answers go, one that leads to the group, and Thread its thread; "" for none: only the
	// dashboard shows them.
	To     string `json:"to,omitempty"`
	Thread string `json:"thread,omitempty"`
	// Topic is that of all its turns, "#name"; "" for one of each issue, pull request or object.
	Topic string `json:"topic,omitempty"`

	// Deliveries start a turn if all of these allow it. Others are stored and only observed.
	Events   []string          `json:"events,omitempty"`   // patterns as issues, issues.opened, check_*; none is all
	Branches []string          `json:"branches,omitempty"` // patterns; of deliveries about a branch
	Only     map[string]string `json:"only,omitempty"`     // values of the payload, by dotted paths
	Ignore   []string          `json:"ignore,omitempty"`   // logins whose events start none: the agent's own, for one
	QuietMS  int64             `json:"quiet_ms,omitempty"` // silence that a burst waits for, to become one turn

	// Of HookHMAC: the header with the signature, what stands before it there, and how it is made.
	Header    string `json:"header,omitempty"`
	Prefix    string `json:"prefix,omitempty"`
	Algorithm string `json:"algorithm,omitempty"` // sha256, the default, sha1 or sha512
	Encoding  string `json:"encoding,omitempty"`  // hex, the default, or base64
	// IDHeader has the delivery's id, of HookHMAC and HookBearer; Idempotency-Key by default.
	IDHeader string `json:"id_header,omitempty"`
}

// HookKind is how a sender proves who it is.
type HookKind string

// The kinds of hooks.
const (
	HookGitHub   HookKind = "github"
	HookGitLab   HookKind = "gitlab"
	HookStripe   HookKind = "stripe"
	HookStandard HookKind = "standard" // Standard Webhooks
	HookHMAC     HookKind = "hmac"     // of the body, in a header
	HookBearer   HookKind = "bearer"
)

// HookKinds are all kinds.
func HookKinds() []HookKind {
	return []HookKind{HookGitHub, HookGitLab, HookStripe, HookStandard, HookHMAC, HookBearer}
}

// NewHookID makes the random part of a hook's address.
func NewHookID() string { return strings.ToLower(rand.Text()) }

// ReadHook returns the hook with an id, and its name. Mistakes in other settings don't matter.
func ReadHook(config json.RawMessage, id string) (name string, h Hook, ok bool) {
	c, _ := parse(config)
	for name, h := range c.Hooks {
		if h.ID == id && len(h.problems()) == 0 {
			return name, h, true
		}
	}
	return "", Hook{}, false
}

var (
	hookID     = regexp.MustCompile(`^[a-z0-9]{16,64}$`)
	hookName   = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)
	hookTopic  = regexp.MustCompile(`^#[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$`)
	hookHeader = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
)

// maxQuiet is the longest silence that a burst of deliveries waits for; IMPULSE_MAX_HOLD ends it sooner.
const maxQuiet = int64(10 * time.Minute / time.Millisecond)

// validateHooks finds the problems with the hooks.
func (c *Config) validateHooks(r *reader) {
	if !r.entries("hooks", `an object of hooks by name, as in {"ci": {"id": "…", "kind": "github"}}`, len(c.Hooks)) {
		return
	}
	ids := map[string]bool{}
	for name, h := range c.Hooks {
		if !hookName.MatchString(name) {
			r.problem("hooks", "%.80q is no name: want up to 32 of a-z, 0-9, - and _", name)
		}
		if ids[h.ID] {
			r.problem("hooks", "two have the id %.80s", h.ID)
		}
		ids[h.ID] = true
		for _, problem := range h.problems() {
			r.problem("hooks."+name, "%s", problem)
		}
	}
}

// problems are the mistakes in a hook.
func (h Hook) problems() (all []string) {
	check := func(ok bool, format string, args ...any) {
		if !ok {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	platform, room, _ := strings.Cut(h.To, ":")
	own := h.Kind == HookHMAC
	check(hookID.MatchString(h.ID), "id must be 16 to 64 of a-z and 0-9; `routd hooks add` makes one")
	check(slices.Contains(HookKinds(), h.Kind), "kind must be one of %v", HookKinds())
	check(h.To == "" || platform != "" && room != "" && platform != "hook" && platform != "group",
		"to %.80q is no chat: write platform:room", h.To)
	check(h.Thread == "" || h.To != "", "thread needs to")
	check(h.Topic == "" || hookTopic.MatchString(h.Topic),
		"topic %.80q must be # and a name of letters, digits, - and _", h.Topic)
	check(h.QuietMS >= 0 && h.QuietMS <= maxQuiet, "quiet_ms must be from 0 to %d", maxQuiet)
	check(own == (h.Header != ""), "header is the one with the signature of kind %s, which needs it", HookHMAC)
	check(own || cmp.Or(h.Prefix, h.Algorithm, h.Encoding) == "", "prefix, algorithm and encoding are for kind %s",
		HookHMAC)
	check(h.IDHeader == "" || own || h.Kind == HookBearer, "id_header is for kinds %s and %s", HookHMAC, HookBearer)
	check(slices.Contains([]string{"", "sha1", "sha256", "sha512"}, h.Algorithm),
		"algorithm must be sha256, sha1 or sha512")
	check(slices.Contains([]string{"", "hex", "base64"}, h.Encoding), "encoding must be hex or base64")
	for _, header := range []string{h.Header, h.IDHeader} {
		check(header == "" || hookHeader.MatchString(header), "%.80q is no name of a header", header)
	}
	check(max(len(h.Events), len(h.Branches), len(h.Only), len(h.Ignore)) <= maxEntries,
		"events, branches, only and ignore must have at most %d entries", maxEntries)
	for _, pattern := range slices.Concat(h.Events, h.Branches) {
		_, err := path.Match(pattern, "")
		check(err == nil && pattern != "" && len(pattern) <= maxSender, "%.80q is no pattern", pattern)
	}
	return all
}
