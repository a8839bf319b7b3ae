package window

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Input is what a window is made of.
type Input struct {
	Rows      []Row
	Except    func(id int64) bool // rows that are shown elsewhere; nil for none
	You       string              // sender of the message that triggered the turn
	Assistant string              // name of the assistant
}

// Text writes the window, "" if there is nothing to show: a header, then each thread
// with its speakers and messages, the newest thread first. No name and no text can
// pose as a header or as another speaker.
func Text(in Input) string {
	except := in.Except
	if except == nil {
		except = func(int64) bool { return false }
	}
	forest := buildThreadForest(in.Rows, except)
	if len(forest) == 0 {
		return ""
	}
	names := newNames(in.You, in.Assistant)
	var b strings.Builder
	b.WriteString("[recent channel context]\n")
	for _, t := range forest {
		word := "thread"
		if t.alone {
			word = "standalone"
		}
		fmt.Fprintf(&b, "\n%s (%s):\n", word, strings.Join(names.of(t.rows), ", "))
		for i := range t.rows {
			speaker := ""
			if !t.alone {
				speaker = names.name(&t.rows[i]) + ": "
			}
			writeText(&b, speaker, &t.rows[i])
		}
	}
	return b.String()
}

// writeText writes a message, with further lines indented deeper than speakers are.
func writeText(b *strings.Builder, speaker string, row *Row) {
	indent := "  " + speaker
	if row.Quoted {
		indent = "  (quoted) " + speaker // no name has brackets
	}
	for _, line := range lines(cut(row.Text, row.More)) {
		b.WriteString(indent + line + "\n")
		indent = "    "
	}
}

// lines splits text at everything that a reader may take for a line end, without
// empty lines. There is one line at least.
func lines(text string) []string {
	var all []string
	for line := range strings.FieldsFuncSeq(text, isLineEnd) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	if len(all) == 0 {
		return []string{"(empty)"}
	}
	return all
}

func isLineEnd(r rune) bool {
	switch r {
	case '\n', '\v', '\f', '\r', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}

// cut bounds a text to maxText bytes and a remark about what is missing, which
// includes more bytes.
func cut(text string, more int) string {
	if len(text) > maxText {
		end := maxText
		for end > maxText-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		text, more = text[:end], more+len(text)-end
	}
	if more > 0 {
		text = fmt.Sprintf("%s… [%d bytes more]", text, more)
	}
	return text
}

// you is the name of the sender who triggered the turn.
const you = "you"

// maxName bounds a name, in characters.
const maxName = 40

// names gives each sender one name that no other has.
type names struct {
	you       string
	assistant string
	given     map[string]string // by sender
	taken     map[string]bool   // in lower case
}

func newNames(sender, assistant string) *names {
	if assistant = cleanName(assistant); assistant == "" {
		assistant = "assistant"
	}
	return &names{
		you: sender, assistant: assistant, given: map[string]string{},
		taken: map[string]bool{you: true, strings.ToLower(assistant): true},
	}
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
	for i := 2; n.taken[strings.ToLower(name)]; i++ {
		name = fmt.Sprintf("%s %d", wanted, i)
	}
	n.given[row.Sender], n.taken[strings.ToLower(name)] = name, true
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

// cleanName leaves the letters, digits, emoji and spaces of a name, and what stands
// inside names: no brackets, colons, commas, quotation marks, line ends or characters
// that cannot be seen.
func cleanName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError:
			return -1
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.Is(unicode.Mn, r), unicode.Is(unicode.So, r), strings.ContainsRune("-_.'", r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1
	}, name)
	name = strings.Join(strings.Fields(name), " ")
	if runes := []rune(name); len(runes) > maxName {
		name = strings.TrimSpace(string(runes[:maxName]))
	}
	return name
}
