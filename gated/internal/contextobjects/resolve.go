package contextobjects

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// minLabel is how long, in runes, a label must be to be looked for in a text: "it" stands in any.
const minLabel = 4

// Reference is all that a caller knows of the object it means, beside the query. All of it may be zero.
type Reference struct {
	RawText    string   // in which the object's id, URL or whole label may stand; ignored if none does
	LabelWords []string // all of them are words of the label or URL
	Ordinal    int      // 1 is the oldest that fits, -1 the newest
	ReplyTo    int64    // row of the message that is answered: its objects come before others
}

// Outcome is how a resolution ended.
type Outcome string

// Outcomes.
const (
	Resolved  Outcome = "resolved"
	Ambiguous Outcome = "ambiguous"
	NotFound  Outcome = "not_found"
)

// Resolution is the answer of Resolve.
type Resolution struct {
	Outcome Outcome
	Result  // its matches are the one that is meant, or the candidates
}

// Resolve finds the one object that is meant. It guesses nothing: where several fit and neither a
// literal text, an ordinal nor the message that is answered tells them apart, they are candidates,
// ranked as Lookup does. It touches nothing.
func (x *Objects) Resolve(ctx context.Context, r store.Reader, q *Query, ref Reference) (Resolution, error) {
	objects, err := x.active(ctx, r, q)
	if err != nil {
		return Resolution{}, err
	}
	all, scope := x.rank(q, objects)
	words := folded(ref.LabelWords)
	all = slices.DeleteFunc(all, func(m Match) bool { return !hasWords(m.Object, words) })
	raw := strings.ToLower(ref.RawText)
	all = narrow(all, func(m Match) bool { return stands(raw, m.Object) })
	if ref.Ordinal != 0 {
		all = nth(all, ref.Ordinal)
	} else {
		all = narrow(all, func(m Match) bool { return ref.ReplyTo != 0 && m.Object.SourceMessageID == ref.ReplyTo })
		all = narrow(all, func(m Match) bool { return m.Reasons&msg.SameReplyChain != 0 })
	}
	res := Resolution{Outcome: Ambiguous, Result: q.result(all, scope)}
	switch res.Found {
	case 0:
		res.Outcome = NotFound
	case 1:
		res.Outcome = Resolved
	}
	return res, nil
}

// narrow keeps those that fit, all if none does.
func narrow(all []Match, fits func(Match) bool) []Match {
	var some []Match
	for _, m := range all {
		if fits(m) {
			some = append(some, m)
		}
	}
	if some == nil {
		return all
	}
	return some
}

// nth is the one at an ordinal by creation, none if there are fewer.
func nth(all []Match, ordinal int) []Match {
	slices.SortFunc(all, func(a, b Match) int {
		return cmp.Or(cmp.Compare(a.Object.CreatedAt, b.Object.CreatedAt),
			cmp.Compare(a.Object.SourceMessageID, b.Object.SourceMessageID), strings.Compare(a.Object.ID, b.Object.ID))
	})
	at := ordinal - 1
	if ordinal < 0 {
		at = len(all) + ordinal
	}
	if at < 0 || at >= len(all) {
		return nil
	}
	return all[at : at+1]
}

// stands reports whether a text, in lower case, has the object's id, URL or whole label in it.
func stands(text string, o *Object) bool {
	return text != "" && (hasPart(text, o.ID, 1) || hasPart(text, o.URL, minLabel) || hasPart(text, o.Label, minLabel))
}

// hasPart reports whether a part of at least minRunes stands in a text, in lower case, with no letter,
// digit or slash right before or behind it.
func hasPart(text, part string, minRunes int) bool {
	if utf8.RuneCountInString(part) < minRunes {
		return false
	}
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '/' }
	for part = strings.ToLower(part); ; {
		before, after, found := strings.Cut(text, part)
		if !found {
			return false
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(after)
		if !inWord(last) && !inWord(next) {
			return true
		}
		text = after
	}
}

// hasWords reports whether all words, in lower case, are words of the label or the URL.
func hasWords(o *Object, words []string) bool {
	if len(words) == 0 {
		return true
	}
	known := folded([]string{o.Label, o.URL})
	for _, w := range words {
		if !slices.Contains(known, w) {
			return false
		}
	}
	return true
}

// folded are the words of texts, in lower case: runs of letters and digits.
func folded(texts []string) (words []string) {
	for _, text := range texts {
		words = append(words, strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
		})...)
	}
	return words
}
