package pages

import (
	"html/template"
	"reflect"
	"sync"
)

// maxDraftRows bounds the rows that are kept as HTML, of some 2 kB each.
const maxDraftRows = 1000

// draftRows keeps rows of the route editor as HTML: from one press of a button to the next nearly all are the same, and
// 500 of them take tens of milliseconds.
type draftRows struct {
	mu   sync.Mutex
	rows map[string]draftHTML // by their key
}

type draftHTML struct {
	Row  DraftRow
	Last bool // of the copy
	html template.HTML
}

// draftRow renders a row of the copy.
func (p *Pages) draftRow(row DraftRow, last bool) (template.HTML, error) {
	p.drafts.mu.Lock()
	defer p.drafts.mu.Unlock()
	if kept, ok := p.drafts.rows[row.Key]; ok && kept.Last == last && reflect.DeepEqual(kept.Row, row) {
		return kept.html, nil
	}
	drawn := draftHTML{Row: row, Last: last}
	var err error
	if drawn.html, err = p.Fragment("draft-row", drawn); err != nil {
		return "", err
	}
	if p.drafts.rows == nil || len(p.drafts.rows) >= maxDraftRows {
		p.drafts.rows = map[string]draftHTML{}
	}
	p.drafts.rows[row.Key] = drawn
	return drawn.html, nil
}
