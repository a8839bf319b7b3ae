package rows

import (
	"context"
	"fmt"

	"arizuko/pkg/store"
)

const (
	spendSums             = `, sum(turns), sum(input_tokens), sum(output_tokens), sum(cost_usd) FROM spend`
	inDays                = ` WHERE day >= ?1 AND day <= ?2`
	ofFolder              = ` INDEXED BY spend_folder` + inDays + ` AND folder = ?3`
	expensiveFirst        = ` ORDER BY 5 DESC, 1 LIMIT `
	querySpendDays        = `SELECT day` + spendSums + inDays + ` GROUP BY day ORDER BY day`
	queryFolderSpendDays  = `SELECT day` + spendSums + ofFolder + ` GROUP BY day ORDER BY day`
	querySpendGroups      = `SELECT folder` + spendSums + inDays + ` GROUP BY folder` + expensiveFirst + `?3+0`
	querySpendChats       = `SELECT chat_jid` + spendSums + inDays + ` GROUP BY chat_jid` + expensiveFirst + `?3+0`
	queryFolderSpendChats = `SELECT chat_jid` + spendSums + ofFolder + ` GROUP BY chat_jid` + expensiveFirst + `?4+0`
)

// Spend is the sum that agents have used.
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

// SpendRow is the spend of a day, a group or a chat.
type SpendRow struct {
	Name string // the day as YYYY-MM-DD, the folder or the chat
	Spend
}

// SpendBy is the key of a list of spend.
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

// Spend lists the spend by day, the oldest first, or by group or chat, the most expensive first. Days on which
// nothing was used are left out.
func ListSpend(ctx context.Context, r store.Reader, by SpendBy, l SpendList) ([]SpendRow, error) {
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
	return store.All(ctx, r, func(scan store.Scan) (s SpendRow, err error) {
		err = scan(&s.Name, &s.Turns, &s.Input, &s.Output, &s.CostUSD)
		return s, err
	}, query, args...)
}

// FolderSpend returns the spend of a group in a span of days, both included.
func FolderSpend(ctx context.Context, r store.Reader, folder, from, to string) (s Spend, err error) {
	days, err := ListSpend(ctx, r, ByDay, SpendList{From: from, To: to, Folder: folder})
	for _, day := range days {
		s.Turns += day.Turns
		s.Input += day.Input
		s.Output += day.Output
		s.CostUSD += day.CostUSD
	}
	return s, err
}
