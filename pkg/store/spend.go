package store

import (
	"context"
	"fmt"
)

// Spend is what agents have used.
type Spend struct {
	Turns   int64
	Input   int64   // tokens that models read
	Output  int64   // tokens that they wrote
	CostUSD float64 // US dollars
}

// Words are the dollars or, where agents report none, the tokens.
func (s Spend) Words() string {
	switch {
	case s.CostUSD > 0 && s.CostUSD < 0.01:
		return fmt.Sprintf("$%.4f", s.CostUSD)
	case s.CostUSD > 0:
		return fmt.Sprintf("$%.2f", s.CostUSD)
	case s.Input+s.Output > 0:
		return fmt.Sprintf("%d tokens, dollars not reported", s.Input+s.Output)
	}
	return "nothing reported"
}

// SpendRow is what was used on a day, by a group or in a chat.
type SpendRow struct {
	Name string // the day as YYYY-MM-DD, the folder or the chat
	Spend
}

// SpendList is of what a list of spend is the sum. Of Folder what is "" does not count.
type SpendList struct {
	From, To string // days, both included
	Folder   string
	Limit    int // of rows
}

func scanSpend(scan Scan) (SpendRow, error) {
	var r SpendRow
	err := scan(&r.Name, &r.Turns, &r.Input, &r.Output, &r.CostUSD)
	return r, err
}

// SpendDays returns what was used on each day, the oldest first; days on which nothing was are left out.
func (r Reader) SpendDays(ctx context.Context, l SpendList) ([]SpendRow, error) {
	if l.Folder != "" {
		return All(ctx, r, scanSpend, queryFolderSpendDays, l.From, l.To, l.Folder)
	}
	return All(ctx, r, scanSpend, querySpendDays, l.From, l.To)
}

// SpendGroups returns what each group has used, the most expensive first.
func (r Reader) SpendGroups(ctx context.Context, l SpendList) ([]SpendRow, error) {
	return All(ctx, r, scanSpend, querySpendGroups, l.From, l.To, l.Limit)
}

// SpendChats returns what was used in each chat, the most expensive first.
func (r Reader) SpendChats(ctx context.Context, l SpendList) ([]SpendRow, error) {
	if l.Folder != "" {
		return All(ctx, r, scanSpend, queryFolderSpendChats, l.From, l.To, l.Folder, l.Limit)
	}
	return All(ctx, r, scanSpend, querySpendChats, l.From, l.To, l.Limit)
}

// FolderSpend returns what a group has used in a span of days, both included.
func (r Reader) FolderSpend(ctx context.Context, folder, from, to string) (s Spend, err error) {
	_, err = r.Get(ctx, []any{&s.Turns, &s.Input, &s.Output, &s.CostUSD}, queryFolderSpend, folder, from, to)
	return s, err
}

// moveSpend adds what was used in a chat to that of its next address.
func (tx *Tx) moveSpend(from, to string) error {
	if err := tx.Exec(upsertMovedSpend, from, to); err != nil {
		return err
	}
	return tx.Exec(deleteChatSpend, from)
}
