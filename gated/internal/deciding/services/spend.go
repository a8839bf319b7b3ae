package services

import (
	"context"
	"fmt"
	"time"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

// spendDays is how many days the second line of /spend covers, with today.
const spendDays = 30

// spend answers /spend: what the sender has used in the group, and for operators also what was used in the chat.
func (s *Services) spend(ctx context.Context, p decide.AskService, m *msg.Message) string {
	year, month, day := s.Now().Local().Date()
	today := time.Date(year, month, day, 0, 0, 0, 0, time.Local)
	first := today.AddDate(0, 0, 1-spendDays)
	own := func(since time.Time) (factrows.Spend, error) {
		return rows.SenderSpend(ctx, s.Store, p.Folder, m.Sender, since.UnixMilli())
	}
	text, err := spendWords("You in the group "+msg.EscapeLine(p.Folder), own, today, first)
	if err == nil && p.Operator && m.Sender != msg.WebOperator { // as in /status
		chat := func(since time.Time) (factrows.Spend, error) {
			return rows.ChatSpend(ctx, s.Store, p.Folder, m.ChatJID, since.Format(time.DateOnly))
		}
		var all string
		all, err = spendWords("All users of this chat", chat, today, first)
		text += "\n" + all
	}
	if err != nil {
		s.Log.Error("reading spend failed", "row", m.ID, "folder", p.Folder, "err", err)
		return choiceFailed
	}
	return text
}

func spendWords(who string, since func(time.Time) (factrows.Spend, error), today, first time.Time) (string, error) {
	now, err := since(today)
	if err != nil {
		return "", err
	}
	all, err := since(first)
	return fmt.Sprintf("%s:\n- today: %s\n- %d days: %s", who, used(now), spendDays, used(all)), err
}

// used words turns, tokens and dollars.
func used(s factrows.Spend) string {
	turns := fmt.Sprintf("%d turns, ", s.Turns)
	if s.Turns <= 1 { // only turns whose agent reported something count
		turns = []string{"", "1 turn, "}[s.Turns]
	}
	if s.CostUSD == 0 || s.Input+s.Output == 0 {
		return turns + s.Words()
	}
	return fmt.Sprintf("%s%d tokens, %s", turns, s.Input+s.Output, s.Words())
}
