package console

import (
	"net/http"
	"strings"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	factrows "arizuko/pkg/facts/rows"
)

const maxAuditWhats = 100

// audit lists changes, the newest first.
func (c upkeepPages) audit(r *http.Request) (*shown, error) {
	ctx, query := r.Context(), r.URL.Query()
	page := pages.Audit{Who: strings.TrimSpace(query.Get("who")), What: query.Get("what"), Now: c.Now().UnixMilli()}
	page.Filtered = page.Who != "" || page.What != "" || query.Has("before")
	q := factrows.AuditQuery{Who: page.Who, What: page.What, Limit: maxRows + 1}
	var err error
	if q.Before, err = position(query); err != nil {
		return nil, err
	}
	list, err := factrows.Audit(ctx, c.Store, q)
	if err != nil {
		return nil, err
	}
	page.Lines, page.Next = paged(r, list, "before", func(a factrows.AuditRow) int64 { return a.ID })
	oldest, err := factrows.OldestAudit(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	if oldest != nil {
		page.Since, page.Deleted, page.Max = oldest.At, oldest.ID > 1, factrows.MaxAuditRows
	}
	page.Whats, err = rows.AuditWhats(ctx, c.Store, maxAuditWhats)
	return &shown{data: page}, err
}
