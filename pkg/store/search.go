package store

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	QuerySearchState   = `SELECT indexed FROM search_state`
	updateSearchState  = `UPDATE search_state SET indexed = ?`
	QuerySearchDeleted = `SELECT ifnull(max(id), 0), count(*) FROM (SELECT id FROM search_deleted ORDER BY id LIMIT ?+0) d`
	QuerySearchHits    = `SELECT docid, docid FROM message_search WHERE message_search MATCH ?1 AND docid < ?2 AND docid >= ?3 ORDER BY docid DESC LIMIT ?4+0`
	// IsCopy is the condition that message n, which is derived from message m, was sent or decided in its place.
	IsCopy = `n.direction = m.direction AND n.kind = m.kind AND CASE n.direction WHEN 'in' THEN n.source = 'replay' ELSE n.source <> 'notice' END`
	// The rows of ?1, a JSON list of ids, that the other filters of a list leave.
	listFilter = `(?3 = '' OR m.chat_jid = ?3) AND (?4 = '' OR m.routed_to = ?4) AND (?5 = '' OR m.sender = ?5) AND (?6 = '' OR m.direction = ?6)
		AND (?7 = '' OR m.disposition = ?7 OR ?7 = 'undecided' AND m.direction = 'in' AND m.disposition IS NULL) AND (?8 = '' OR m.reason = ?8)
		AND (?9 = '' OR m.out_state = ?9 OR ?9 = 'waiting' AND m.out_state IN ('queued', 'sending'))
		AND m.received_at >= ?10 AND m.received_at < ?11
		AND (?13 = '' OR EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = m.id AND d.state = 'failed' AND d.error_class = ?13))
		AND (?14+0 = 0 OR NOT EXISTS (SELECT 1 FROM messages n INDEXED BY messages_derived WHERE n.derived_from = m.id AND ` + IsCopy + `))
		AND (?15+0 = 1 OR m.source <> 'waiting') LIMIT ?12+0`
	listedColumns = `SELECT j.value, ` + FoundColumns
	QueryListed   = listedColumns +
		` FROM json_each(?1) j CROSS JOIN messages m ON m.id = CAST(j.value AS INTEGER) WHERE ?2+0 <> 0 AND ` +
		listFilter
	foundAsChanged = `SELECT h.id, ` + beforeContent +
		`substr(h.content, 1, 8192), CASE WHEN octet_length(m.attachments) <= 65536 THEN m.attachments END` +
		afterContent
	// The hits of a search as their last edits left them: a hit that is an edit leads to its message,
	// and a text that was edited or deleted is not found.
	QueryListedFound = foundAsChanged +
		` FROM json_each(?1) j CROSS JOIN messages h ON h.id = CAST(j.value AS INTEGER) CROSS JOIN messages m ON m.id = ifnull(CASE
		WHEN h.direction = 'in' AND h.verb = 'edit' THEN (SELECT o.id FROM messages o WHERE o.chat_jid = h.chat_jid AND o.platform_id = h.target_id)
		WHEN h.direction = 'out' AND h.kind = 'edit' THEN h.derived_from END, h.id)
		WHERE ifnull(` + LastChange + `, m.id) = h.id AND ` + listFilter
)

// Bounds of one batch of the full-text index, so that other writers wait for milliseconds only.
const (
	searchBatchRows  = 200
	searchBatchBytes = 256 << 10
)

// IndexMessages puts the next rows into the full-text index, and removes those that were deleted. It reports how many
// rows that were; a batch that is not full is the last one for now. It is repeated safely.
func (tx *Tx) IndexMessages() (rows int, more bool, err error) {
	removed, err := tx.unindexDeleted()
	if err != nil || removed == searchBatchRows {
		return removed, true, err
	}
	var indexed int64
	if _, err := tx.Find([]any{&indexed}, QuerySearchState); err != nil {
		return 0, false, err
	}
	last, added, size := indexed, 0, int64(0)
	err = tx.Each(Uncancelled(), func(scan Scan) (bool, error) {
		var bytes int64
		if err := scan(&last, &bytes); err != nil {
			return false, err
		}
		added, size = added+1, size+bytes
		return size < searchBatchBytes, nil
		// The next rows to index, with the bytes that are read for each.
	}, `SELECT id, min(octet_length(content), 65536) FROM messages WHERE id > ? ORDER BY id LIMIT ?+0`,
		indexed, searchBatchRows)
	if err != nil || added == 0 {
		return removed, false, err
	}
	if err := tx.Exec(updateSearchState, last); err != nil {
		return 0, false, err
	}
	err = tx.q.dialect.indexRows(tx.q, indexed, last)
	return removed + added, added == searchBatchRows || size >= searchBatchBytes, err
}

// unindexDeleted removes the next deleted rows from the index.
func (tx *Tx) unindexDeleted() (n int, err error) {
	var last int64
	if _, err := tx.Find([]any{&last, &n}, QuerySearchDeleted, searchBatchRows); err != nil || n == 0 {
		return 0, err
	}
	if err := tx.Exec(`DELETE FROM message_search WHERE docid IN (SELECT id FROM search_deleted WHERE id <= ?)`,
		last); err != nil {
		return 0, err
	}
	if err := tx.q.dialect.reindexRows(tx.q, last); err != nil {
		return 0, err
	}
	err = tx.Exec(`DELETE FROM search_deleted WHERE id <= ?`, last)
	return n, err
}

// Limits of a query of a full-text search.
const (
	maxQueryWords  = 16
	maxWordLength  = 256 // bytes; of longer ones the beginning
	maxPhraseWords = 4   // longer ones would be read as a whole, see matchPhrase
	minPrefix      = 2   // characters
)

// SearchQuery makes an expression of the full-text index from the text that a user typed: all words must be in a
// message, in any order and case; those in double quotes stand together; a word with * at its end is the beginning of
// one, as is one of a script without spaces, where a word of the index is all up to the next punctuation. It returns ""
// if there is no word to look for. All other characters are separators, as they are in messages.
func SearchQuery(text string) string {
	var terms []string
	for i, part := range strings.Split(text, `"`) {
		if len(terms) == maxQueryWords {
			break
		}
		if i%2 == 1 {
			if words := searchWords(part); len(words) > 0 {
				terms = append(terms, matchPhrase(words)...)
			}
			continue
		}
		for field := range strings.FieldsSeq(part) {
			if words := searchWords(field); len(words) > 0 { // several for a word such as e-mail
				terms = append(terms, matchPhrase(words)...)
			}
		}
	}
	return strings.Join(terms[:min(len(terms), maxQueryWords)], " ")
}

// searchWords splits a text as the tokenizer unicode61 of SQLite does, with a * at the end of those that are prefixes.
func searchWords(text string) (words []string) {
	for len(text) > 0 {
		start := strings.IndexFunc(text, beginsWord)
		if start < 0 {
			break
		}
		text = text[start:]
		end := strings.IndexFunc(text, func(r rune) bool { return !isWord(r) })
		if end < 0 {
			end = len(text)
		}
		word := Truncate(strings.ToValidUTF8(text[:end], ""), maxWordLength)
		cut := len(word) < end
		last, _ := utf8.DecodeLastRuneInString(word)
		cut = cut || unicode.In(last, unspaced...)
		if text = text[end:]; cut || strings.HasPrefix(text, "*") && utf8.RuneCountInString(word) >= minPrefix {
			word += "*"
		}
		words = append(words, word)
	}
	return words
}

// unspaced are scripts that have no spaces between words, or endings that come directly behind them.
var unspaced = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer,
	unicode.Myanmar,
}

// beginsWord reports whether a word may begin with a character: https://sqlite.org/fts3.html#tokenizer.
func beginsWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Co, r)
}

// isWord reports whether a character belongs to a word: marks belong to the letter before them.
func isWord(r rune) bool { return beginsWord(r) || unicode.Is(unicode.Mn, r) }

// matchPhrase is the expression of words that stand together. Up to four words the index is read as far as it is
// needed, which is quick for frequent words too: a longer phrase is the phrases of four words that overlap.
func matchPhrase(words []string) (terms []string) {
	words = words[:min(len(words), maxQueryWords)]
	for i := 0; i == 0 || i+maxPhraseWords <= len(words); i++ {
		terms = append(terms, `"`+strings.Join(words[i:min(i+maxPhraseWords, len(words))], " ")+`"`)
	}
	return terms
}
