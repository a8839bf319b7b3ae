package webchat

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/msg"
)

// newRows answers with the rows after an id and the rows that have changed since, oldest first. The answer is
// bounded as a page of the history is; "next" is the id to continue after, "more" says whether to ask again at once.
func (c *Chat) newRows(w http.ResponseWriter, r *http.Request, g *msg.Group) error {
	query := r.URL.Query()
	if query.Has("before") || query.Has("topic") {
		return apierr.New(apierr.BadRequest, "after: takes neither before nor topic")
	}
	after, err := number(query.Get("after"), -1)
	if err != nil || after < 0 {
		return apierr.New(apierr.BadRequest, "after: must be the id of a message")
	}
	page, err := readHistoryPage(query)
	if err != nil {
		return err
	}
	end, err := c.Store.LastMessageID(r.Context())
	if err != nil {
		return err
	}
	if after > end {
		return apierr.New(apierr.Conflict, "after: there is no message %d, the newest is %d: the database was restored. "+
			"Read the history again", after, end)
	}
	page.form = c.formOf(r)
	rows, next, more, err := c.after(r.Context(), JID(g.Folder), after, page)
	if err != nil {
		return err
	}
	writeRows(w, rows, fmt.Sprintf(`"next":%d,"more":%t`, next, more))
	return nil
}

// after returns rows in JSON, the oldest first, the id to continue after, and whether there are more already.
func (c *Chat) after(ctx context.Context, jid string, after int64, page historyPage) (list [][]byte, next int64,
	more bool, err error) {
	size := 0
	for {
		batch, end, more, err := rows.WebAfter(ctx, c.Store.Reader, jid, after, readAtOnce)
		if err != nil {
			return nil, 0, false, err
		}
		for _, m := range batch {
			row, err := c.newRow(ctx, m, page.form)
			if err != nil {
				return nil, 0, false, err
			}
			if len(list) == page.limit || len(list) > 0 && size+len(row) > maxHistory {
				return list, after, true, nil
			}
			if row != nil {
				list, size = append(list, row), size+len(row)
			}
			after = m.ID
		}
		if after = end; !more {
			return list, after, false, nil
		}
	}
}

// newRow returns a row in JSON, or the row that it changes; nil if that is gone.
func (c *Chat) newRow(ctx context.Context, m *msg.Message, as form) ([]byte, error) {
	row, isChange, err := c.shown(ctx, m)
	if err != nil || row == nil {
		return nil, err
	}
	data, err := c.onPage(ctx, row, as)
	if err != nil {
		return nil, err
	}
	if isChange {
		data.Change = m.ID
	}
	return json.Marshal(data)
}
