package store

import (
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"
)

// maxIndexedWord is the longest word of the index, in bytes, as in queries.
const maxIndexedWord = maxWordLength

func (e *server) indexRows(st *statements, after, last int64) error {
	return indexTexts(st, postgresTexts, after, last)
}

func (e *server) reindexRows(st *statements, last int64) error {
	return indexTexts(st, postgresChanged, last)
}

// indexTexts puts the rows of a query into the index.
func indexTexts(st *statements, query string, args ...any) error {
	var ids []int64
	var vectors []string
	err := st.scan(Uncancelled(), false, func(scan Scan) (bool, error) {
		var id int64
		var text string
		if err := scan(&id, &text); err != nil {
			return false, err
		}
		ids, vectors = append(ids, id), append(vectors, vector(text))
		return true, nil
	}, query, args...)
	if err != nil || len(ids) == 0 {
		return err
	}
	return st.later(nil, postgresWords, ids, vectors)
}

// vector is the text of a tsvector: the words with their places.
func vector(text string) string {
	var b strings.Builder
	for i, word := range strings.FieldsFunc(foldText(text), func(r rune) bool { return !isWord(r) }) {
		if len(word) > maxIndexedWord {
			word = Truncate(word, maxIndexedWord)
		}
		b.WriteString(word)
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(i + 1))
		b.WriteByte(' ')
	}
	return b.String()
}

// match makes a tsquery of phrases in double quotes whose words may end in a *.
func (e *server) match(expression string) string {
	if strings.Count(expression, `"`)%2 == 1 {
		return "&" // an error, as the expression is in SQLite
	}
	var terms []string
	for i, phrase := range strings.Split(expression, `"`) {
		words := strings.Fields(foldText(phrase))
		if i%2 == 0 || len(words) == 0 {
			continue
		}
		for j, word := range words {
			if prefix, ok := strings.CutSuffix(word, "*"); ok {
				words[j] = prefix + ":*"
			}
		}
		terms = append(terms, "("+strings.Join(words, " <-> ")+")")
	}
	return strings.Join(terms, " & ")
}

// foldText makes letters small and takes their marks away, as the tokenizer of SQLite does.
func foldText(text string) string {
	folded, _, err := transform.String(transform.Chain(norm.NFD, runes.Remove(runes.In(unicode.Mn)), norm.NFC),
		strings.ToLower(text))
	if err != nil { // no transformation of these fails
		return strings.ToLower(text)
	}
	return folded
}
