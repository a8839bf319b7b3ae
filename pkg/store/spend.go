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

// SpendBy is what a list of spend has a row for.
type SpendBy string

// The rows of a list of spend.
const (
	ByDay   SpendBy = "day"
	ByGroup SpendBy = "group"
	ByChat  SpendBy = "chat"
)

// SpendList is the spend that is summed.
type SpendList struct {
	From, To string // days, both included
	Folder   string // of one group, "" for all; a list by group has all of them
	Limit    int    // of rows, unless they are days
}

// Spend lists what was used by day, the oldest first, or by group or chat, the most expensive first. Days on which
// nothing was used are left out.
func (r Reader) Spend(ctx context.Context, by SpendBy, l SpendList) ([]SpendRow, error) {
	query, args := querySpendGroups, []any{l.From, l.To}
	switch {
	case by == ByDay && l.Folder == "":
		query = querySpendDays
	case by == ByDay:
		query, args = queryFolderSpendDays, append(args, l.Folder)
	case by == ByGroup:
		args = append(args, l.Limit)
	case l.Folder == "":
		query, args = querySpendChats, append(args, l.Limit)
	default:
		query, args = queryFolderSpendChats, append(args, l.Folder, l.Limit)
	}
	return All(ctx, r, func(scan Scan) (s SpendRow, err error) {
		err = scan(&s.Name, &s.Turns, &s.Input, &s.Output, &s.CostUSD)
		return s, err
	}, query, args...)
}

// FolderSpend returns what a group has used in a span of days, both included.
func (r Reader) FolderSpend(ctx context.Context, folder, from, to string) (s Spend, err error) {
	days, err := r.Spend(ctx, ByDay, SpendList{From: from, To: to, Folder: folder})
	for _, day := range days {
		s.Turns += day.Turns
		s.Input += day.Input
		s.Output += day.Output
		s.CostUSD += day.CostUSD
	}
	return s, err
}

// moveSpend adds what was used in a chat to that of its next address.
func (tx *Tx) moveSpend(from, to string) error {
	if err := tx.Exec(upsertMovedSpend, from, to); err != nil {
		return err
	}
	return tx.Exec(deleteChatSpend, from)
}
