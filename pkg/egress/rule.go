// Package egress has the rules for the requests that agents send out of their sandboxes, and what is kept of each
// request, its receipt. Both are rows: see package rows below.
package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
)

// Action is what happens to a request.
type Action string

// The actions of rules.
const (
	Pass   Action = "pass"   // it is sent as it is
	Inject Action = "inject" // the token that stands for a secret is replaced by the secret, and it is sent
	Ask    Action = "ask"    // a user is asked; what no rule matches is asked about, too
	Deny   Action = "deny"   // it is refused
)

// Rule is a row of egress_rules. Rules are tried by Seq, then by ID; the first that matches decides.
type Rule struct {
	ID     int64  `json:"id"`
	Seq    int64  `json:"seq"`              // its place; 0 is before all others
	Folder string `json:"folder,omitempty"` // of a group; "" for all
	// Host is "example.com", "*.example.com" for all below it, or "*"; with ":8443" for a port other than 80 and 443.
	Host      string `json:"host"`
	Method    string `json:"method,omitempty"` // "" for any
	Path      string `json:"path,omitempty"`   // what the path begins with; "" for any
	Action    Action `json:"action"`
	Secret    string `json:"secret,omitempty"` // of Inject: its name
	Author    string `json:"author"`           // who made it
	CreatedAt int64  `json:"created_at"`       // unix ms
}

// String is the rule as commands and pages show it, as in "main: POST api.github.com/repos/ → inject github".
func (r *Rule) String() string {
	text := strings.TrimSpace(r.Method + " " + r.Host + r.Path)
	if r.Folder != "" {
		text = r.Folder + ": " + text
	}
	return strings.TrimSpace(text + " → " + string(r.Action) + " " + r.Secret)
}

// Bounds of a rule's parts: those of texts in bytes.
const (
	maxHost = 253 + len(":65535")
	maxPath = 1024
	maxSeq  = 1_000_000_000
)

// Check returns why there can be no such rule, nil if there can. It makes the host and the method those that are
// stored.
func (r *Rule) Check() error {
	r.Host = strings.ToLower(strings.TrimSuffix(strings.TrimSpace(r.Host), "."))
	r.Method = strings.ToUpper(strings.TrimSpace(r.Method))
	if r.Seq < 0 || r.Seq > maxSeq {
		return fmt.Errorf("seq %d: want a place from 0, before all others, to %d", r.Seq, maxSeq)
	}
	if r.Folder != "" {
		if err := msg.ValidFolder(r.Folder); err != nil {
			return err
		}
	}
	name, port := splitPattern(r.Host)
	switch n, err := strconv.ParseUint(port, 10, 16); {
	case r.Host == "", len(r.Host) > maxHost, strings.Contains(r.Host, "/"),
		strings.ContainsFunc(strings.TrimPrefix(name, "*."), notInHost) && name != "*":
		return fmt.Errorf("host %.80q: want a name as in api.github.com, *.github.com for all names below it, or *",
			r.Host)
	case port != "" && (err != nil || n == 0):
		return fmt.Errorf("host %.80q: the port is no number from 1 to 65535", r.Host)
	}
	if strings.ContainsFunc(r.Method, func(c rune) bool { return c < 'A' || c > 'Z' }) || len(r.Method) > 20 {
		return fmt.Errorf("method %.40q: want one as in POST, or none for all", r.Method)
	}
	if r.Path != "" {
		if plain, ok := PlainPath(r.Path); !ok || plain != r.Path || len(r.Path) > maxPath {
			return fmt.Errorf("path %.80q: want what paths begin with, as in /repos/acme/, in its plain form", r.Path)
		}
	}
	switch r.Action {
	case Inject:
		if name == "*" {
			return errors.New("host *: a secret needs the names of the hosts that may get it")
		}
		return groupconfig.CheckSecretName(r.Secret)
	case Pass, Ask, Deny:
		if r.Secret != "" {
			return fmt.Errorf("only the action %s has a secret", Inject)
		}
		return nil
	}
	return fmt.Errorf("action %.40q: want %s, %s, %s or %s", r.Action, Pass, Inject, Ask, Deny)
}

func notInHost(c rune) bool {
	return (c < 'a' || c > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("-._", c)
}

// Request is what rules look at. Host is in lower case, without a dot at its end.
type Request struct {
	Folder string
	Host   string
	Port   int
	Method string // "" while it is not known
	Path   string // as PlainPath returns it, "" while it is not known
}

// MatchesHost reports whether the rule is about the request's host, whatever is sent there.
func (r *Rule) MatchesHost(q *Request) bool {
	if r.Folder != "" && r.Folder != q.Folder {
		return false
	}
	name, port := splitPattern(r.Host)
	if port == "" && q.Port != 80 && q.Port != 443 || port != "" && port != strconv.Itoa(q.Port) {
		return false
	}
	below, wild := strings.CutPrefix(name, "*.")
	switch _, err := netip.ParseAddr(q.Host); {
	case name == q.Host:
		return true
	case err == nil: // an address is named as it is
		return false
	case name == "*":
		return true
	}
	return wild && strings.HasSuffix(q.Host, "."+below)
}

func (r *Rule) matches(q *Request) bool {
	return r.MatchesHost(q) && (r.Method == "" || r.Method == q.Method) && strings.HasPrefix(q.Path, r.Path)
}

// splitPattern cuts the port off, "" for none.
func splitPattern(host string) (name, port string) {
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		return host[:i], host[i+1:]
	}
	return host, ""
}

// Rules are those of an instance, in their order.
type Rules []*Rule

// ForHost decides about a connection of which only the host is known. decided is false if it depends on the requests in
// it, which have to be looked at: then rule is nil.
func (all Rules) ForHost(q *Request) (rule *Rule, decided bool) {
	i := slices.IndexFunc(all, func(r *Rule) bool { return r.MatchesHost(q) })
	if i < 0 || all[i].Method+all[i].Path != "" || all[i].Action == Inject || all[i].Action == Ask {
		return nil, false
	}
	return all[i], true
}

// For returns the rule that decides about a request, nil if none matches: then it is asked about.
func (all Rules) For(q *Request) *Rule {
	if i := slices.IndexFunc(all, func(r *Rule) bool { return r.matches(q) }); i >= 0 {
		return all[i]
	}
	return nil
}

// Secrets are the names of the secrets that may be sent to a request's host, whatever is asked there.
func (all Rules) Secrets(q *Request) (names []string) {
	for _, r := range all {
		if r.Action == Inject && r.MatchesHost(q) && !slices.Contains(names, r.Secret) {
			names = append(names, r.Secret)
		}
	}
	return names
}

// parameters are those of segments, which some servers cut off before they look at dots.
var parameters = regexp.MustCompile(`;[^/]*`)

// PlainPath is an escaped path with each character in its usual form. ok is false for a path that a server may read as
// another one: with a segment of dots, an empty one, a backslash, or a slash that is escaped.
func PlainPath(escaped string) (plain string, ok bool) {
	decoded, err := url.PathUnescape(escaped)
	if err != nil || !strings.HasPrefix(decoded, "/") || strings.ContainsAny(decoded, "\\\x00") {
		return escaped, false
	}
	bare := parameters.ReplaceAllString(decoded, "")
	if strings.Count(decoded, "/") != strings.Count(escaped, "/") || strings.Contains(bare, "//") {
		return escaped, false
	}
	if cleaned := path.Clean(bare); cleaned != bare && cleaned+"/" != bare {
		return escaped, false
	}
	return (&url.URL{Path: decoded}).EscapedPath(), true
}

// Always is the rule that lets requests of the kind of one through: those of its group, by its method, to its host, for
// the same path up to the last slash. ok is false if rules can't match such requests, as their path isn't plain.
func Always(q *Request) (r *Rule, ok bool) {
	r = &Rule{Folder: q.Folder, Host: q.Host, Method: q.Method, Path: Beside(q.Path), Action: Pass}
	if q.Port != 443 && q.Port != 80 {
		r.Host += ":" + strconv.Itoa(q.Port)
	}
	return r, r.Check() == nil
}

// Beside is what the paths that belong with one begin with: that path up to its last slash. None belong with a path
// that isn't plain: a server may read it as one in another folder.
func Beside(path string) string {
	plain, ok := PlainPath(path)
	if !ok {
		return path
	}
	return plain[:strings.LastIndexByte(plain, '/')+1]
}
