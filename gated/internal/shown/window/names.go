package window

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// you is the name of the sender who triggered the turn.
const you = "you"

// maxName bounds a name, in characters.
const maxName = 40

// names gives each sender one name, which looks like no other's.
type names struct {
	you       string
	assistant string
	given     map[string]string // by sender
	taken     map[string]bool   // by looks
}

func newNames(in *Input) *names {
	n := &names{you: in.You, assistant: cleanName(in.Assistant), given: map[string]string{}, taken: map[string]bool{}}
	if n.assistant == "" {
		n.assistant = "assistant"
	}
	for _, name := range append([]string{you, n.assistant}, in.Reserved...) {
		n.take(name)
	}
	return n
}

func (n *names) take(name string) {
	for _, look := range looks(name) {
		n.taken[look] = true
	}
}

func (n *names) isTaken(name string) bool {
	return slices.ContainsFunc(looks(name), func(look string) bool { return n.taken[look] })
}

// of returns the names of the senders of rows, in order of first appearance.
func (n *names) of(rows []Row) (all []string) {
	seen := map[string]bool{}
	for i := range rows {
		if name := n.name(&rows[i]); !seen[name] {
			seen[name] = true
			all = append(all, name)
		}
	}
	return all
}

func (n *names) name(row *Row) string {
	switch {
	case row.Own:
		return n.assistant
	case row.Agent != "":
		return agentName(row)
	case row.Sender == n.you && n.you != "":
		return you
	}
	if name := n.given[row.Sender]; name != "" {
		return name
	}
	wanted := cleanName(row.Name)
	if wanted == "" {
		wanted = cleanName(strings.ReplaceAll(row.Sender, ":", " "))
	}
	if wanted == "" {
		wanted = "unknown"
	}
	name := wanted
	for i := 2; n.isTaken(name); i++ {
		name = fmt.Sprintf("%s %d", wanted, i)
	}
	n.given[row.Sender] = name
	n.take(name)
	return name
}

// agentName is the name of a row that a group's agent wrote as a user. It has brackets, which
// no user's name has.
func agentName(row *Row) string {
	group := strings.Map(func(r rune) rune {
		if r == '/' || r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, row.Agent)
	if runes := []rune(group); len(runes) > maxName {
		group = string(runes[:maxName])
	}
	if name := cleanName(row.Name); name != "" && row.Name != row.Agent {
		return fmt.Sprintf("%s (agent %s)", name, group)
	}
	return group + " (agent)"
}

// maxSpoken is the length of the longest name, an agent's, in characters.
const maxSpoken = 2*maxName + len(" (agent )")

// looksSpoken reports whether a line of text has the form of a speaker's line: a name, a colon, and a text behind a
// space; or a name that is taken and a colon; or that of a header. Characters that are not seen make no difference.
func (n *names) looksSpoken(line string) bool {
	line = strings.Map(func(r rune) rune {
		if isInvisible(r) {
			return -1
		}
		return r
	}, line)
	for _, frame := range []string{quoted, title, wordThread + " (", wordAlone + " ("} {
		if len(line) >= len(frame) && strings.EqualFold(line[:len(frame)], frame) {
			return true
		}
	}
	for end, r := range line {
		if end > 0 && strings.ContainsRune(",;?!=", r) || utf8.RuneCountInString(line[:end]) > maxSpoken {
			last, _ := utf8.DecodeLastRuneInString(line)
			return looksLikeColon(last) // the form of a header
		}
		if looksLikeColon(r) {
			after, size := utf8.DecodeRuneInString(line[end+utf8.RuneLen(r):])
			if size == 0 || unicode.IsSpace(after) || n.isTaken(line[:end]) {
				return true
			}
		}
	}
	return false
}
