package agentproto

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Strip removes an agent's notes to itself and its model's reasoning from a text, then the blank lines around the
// rest: <internal>…</internal>, and <think>…</think>, also as thinking, thought, thoughts or reasoning, in any case,
// nested, with attributes or a prefix such as "seed:".
//
// A tag counts if it begins a line, ends one, or follows a sentence; <internal>…</internal> does within a sentence too.
// Others are words, as are all in code and in quotes. A block that is not closed hides everything to the end. A closing
// tag that ends a line or a sentence, without an opening one, hides the text before it, unless nothing visible follows:
// some templates put the opening tag into the prompt.
func Strip(text string) string {
	visible, _ := strip(text, false)
	return trimBlankLines(visible)
}

// BrokenOff reports whether nothing is left of a text because it has a tag that is not closed. What it hides
// may be an answer that mentions the tag.
func BrokenOff(text string) bool {
	visible, unclosed := strip(text, false)
	return unclosed && strings.TrimFunc(visible, isBlank) == ""
}

// StripGrowing is Strip of a text whose end is still to come. It leaves out any text that may turn out to be hidden.
func StripGrowing(text string) string {
	visible, _ := strip(text, true)
	return trimBlankLines(tagBeginning.ReplaceAllString(visible, ""))
}

const hiddenName = `(?:internal|think|thinking|thoughts?|reasoning)`

var (
	hiddenTag    = regexp.MustCompile(`(?i)<(/?)(?:[a-z]+:)?` + hiddenName + `(?:\s[^<>\n]*)?>`)
	tagBeginning = regexp.MustCompile(`(?i)</?(?:[a-z:]*|(?:[a-z]+:)?` + hiddenName + `\s[^<>\n]*)$`)
	// quotedLine is a line of a quote, or of code by its indent.
	quotedLine = regexp.MustCompile("^(?:    |\t| {0,3}>)")
	// fenceLine is the first or last line of a code block, perhaps in quotes and lists.
	fenceLine = regexp.MustCompile("^(?:[ \t>]|[-*+] |[0-9]+[.)] )*(`{3,}|~{3,})([^\n]*)")
)

// A tag is one that may hide text.
type tag struct {
	start, end int // in the text
	line       int // where its line begins
	closes     bool
	internal   bool // it is the agent's; else the model's
	words      bool // it is in code, or in the middle of a sentence that is about it
	code       bool // or in a quote
}

// maxGuesses bounds how many blocks of a text without a clear end are looked into: each takes time.
const maxGuesses = 100

// stripper removes the hidden parts of a text.
type stripper struct {
	text     string
	growing  bool
	tags     []tag
	visible  []byte
	begin    int // of what is not yet in visible; the last hidden block ended there
	kept     int // how much is visible from before that block
	guesses  int
	unclosed bool
	keepLone bool // a closing tag without an opening one hides nothing
	hidLone  bool // one did
}

func strip(text string, growing bool) (visible string, unclosed bool) {
	if !strings.Contains(text, "<") {
		return text, false
	}
	s := stripper{text: text, growing: growing, tags: findTags(text, 0)}
	s.run()
	if s.hidLone && !growing && !s.unclosed && strings.TrimFunc(string(s.visible), isBlank) == "" {
		s = stripper{text: text, tags: findTags(text, 0), keepLone: true} // all would be hidden by a guess
		s.run()
	}
	return string(s.visible), s.unclosed
}

func (s *stripper) run() {
	for len(s.tags) > 0 && !s.unclosed {
		t := s.tags[0]
		switch {
		case t.code:
			s.tags = s.tags[1:]
		case t.closes:
			s.tags = s.tags[1:]
			s.loneClose(t)
		default:
			s.open(t)
		}
	}
	if !s.unclosed {
		s.visible = append(s.visible, s.text[s.begin:]...)
	}
}

// loneClose hides the text before a closing tag, if there is something after it.
func (s *stripper) loneClose(t tag) {
	before, after := s.before(t), s.text[t.end:]
	line, _, _ := strings.Cut(after, "\n")
	glued := strings.TrimLeftFunc(after, unicode.IsSpace) == after
	ends := before == "" && (glued || strings.TrimSpace(line) == "") || endsSentence(before) && resumes(after)
	follows := s.growing || strings.TrimFunc(after, isBlank) != ""
	if !t.internal && ends && follows && !s.keepLone {
		s.visible, s.begin, s.hidLone = s.visible[:s.kept], t.end, true
	}
}

// open hides the block that begins with a tag, unless the tag is a word.
func (s *stripper) open(t tag) {
	before, after := s.before(t), s.text[t.end:]
	line, _, _ := strings.Cut(after, "\n")
	multiline := strings.TrimSpace(line) == ""
	if before != "" && !t.internal && !multiline && !endsSentence(before) {
		s.tags = s.tags[1:]
		return
	}
	end, exact := closeOf(s.tags)
	if !exact {
		s.guesses++
	}
	closed := end > 0 && (exact || before == "" && !t.internal && !s.growing && s.guesses < maxGuesses)
	if closed && !s.mentions(t, s.tags[end], before) {
		s.visible = append(s.visible, s.text[s.begin:t.start]...)
		s.begin, s.kept = s.tags[end].end, len(s.visible)
		if s.tags = s.tags[end+1:]; !exact { // whatever looks like code began in the block
			s.tags = findTags(s.text, s.begin)
		}
		return
	}
	if !closed && (s.growing || before == "" && !goesOn(after) || s.guesses >= maxGuesses) {
		s.visible, s.unclosed = append(s.visible, s.text[s.begin:t.start]...), true
		return
	}
	s.guesses++
	s.tags = s.tags[1:]
}

// mentions reports whether a sentence is about a pair of tags.
func (s *stripper) mentions(open, end tag, before string) bool {
	about, after := goesOn(s.text[open.end:]), s.text[end.end:]
	if before == "" || open.internal {
		content := s.text[open.end:end.start]
		return about && (end.code || goesOn(after)) || before != "" && strings.Trim(content, ".… ") == ""
	}
	return !resumes(after)
}

// before is the visible text before a tag in its line.
func (s *stripper) before(t tag) string {
	return strings.TrimFunc(s.text[max(t.line, s.begin):t.start], isBlank)
}

// closeOf finds the tag that closes the block of the first one, 0 for none. exact is false if it is a guess: opening
// and closing tags do not match, or only words are left.
func closeOf(tags []tag) (end int, exact bool) {
	depth, last, first := 1, 0, 0
	for i, t := range tags[1:] {
		switch {
		case t.internal != tags[0].internal:
		case t.words || t.code:
			if t.closes && first == 0 {
				first = i + 1
			}
		case !t.closes:
			depth++
		default:
			if depth--; depth == 0 {
				return i + 1, true
			}
			last = i + 1
		}
	}
	return max(last, first*(1-min(last, 1))), false
}

// findTags returns the tags from an offset of a text on, where no code block is open.
func findTags(text string, from int) (tags []tag) {
	fence := ""
	for line := range strings.Lines(text[from:]) {
		if m := fenceLine.FindStringSubmatch(line); m != nil {
			switch {
			case fence == "" && (m[1][0] == '~' || !strings.Contains(m[2], "`")):
				fence = m[1]
			case fence != "" && strings.HasPrefix(m[1], fence) && strings.TrimSpace(m[2]) == "":
				fence = ""
			}
		}
		var spans [][2]int
		for i, m := range hiddenTag.FindAllStringSubmatchIndex(line, -1) {
			if i == 0 {
				spans = codeSpans(line)
			}
			t := tag{start: from + m[0], end: from + m[1], line: from, closes: m[3] > m[2]}
			if text[t.end-2] == '/' {
				continue
			}
			t.internal = strings.Contains(strings.ToLower(text[t.start:t.end]), "internal")
			t.code = fence != "" || quotedLine.MatchString(line)
			for len(spans) > 0 && spans[0][1] <= m[0] {
				spans = spans[1:]
			}
			t.code = t.code || len(spans) > 0 && spans[0][0] < m[0]
			t.words = m[0] > 0 && line[m[0]-1] == ' ' && goesOn(text[t.end:])
			tags = append(tags, t)
		}
		from += len(line)
	}
	return tags
}

// codeSpans returns where the code spans of a line begin and end.
func codeSpans(line string) (spans [][2]int) {
	runs := backticks.FindAllStringIndex(line, -1)
	next := map[int][]int{} // the runs of each length
	for i, r := range runs {
		next[r[1]-r[0]] = append(next[r[1]-r[0]], i)
	}
	for i := 0; i < len(runs); i++ {
		n := runs[i][1] - runs[i][0]
		same := next[n]
		k, _ := slices.BinarySearch(same, i+1)
		if escaped := strings.HasSuffix(line[:runs[i][0]], `\`); k < len(same) && !escaped {
			spans = append(spans, [2]int{runs[i][0], runs[same[k]][1]})
			i = same[k]
		}
	}
	return spans
}

var backticks = regexp.MustCompile("`+")

// goesOn reports whether a text goes on with a sentence.
func goesOn(text string) bool {
	rest, blank := strings.CutPrefix(text, " ")
	r, _ := utf8.DecodeRuneInString(rest)
	return blank && unicode.IsLower(r)
}

// resumes reports whether a new sentence or line begins with a text.
func resumes(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return text == "" || unicode.IsLetter(r) || unicode.IsSpace(r) && !goesOn(text)
}

func endsSentence(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	return strings.ContainsRune(".!?…。！？", r)
}

// isBlank reports whether nothing is seen of r.
func isBlank(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }

func trimBlankLines(text string) string {
	text = strings.TrimRight(text, " \t\r\n")
	for {
		line, rest, found := strings.Cut(text, "\n")
		if !found || strings.Trim(line, " \t\r") != "" {
			return text
		}
		text = rest
	}
}
