package api

import (
	"net/http"
	"time"

	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
)

const (
	// spendDays is the default number of days in a list of spend.
	spendDays = 30
	// maxSpend bounds its lines.
	maxSpend = 1000
)

// Spend is the usage of agents in a span of days.
type Spend struct {
	From  string      `json:"from"` // YYYY-MM-DD, included
	To    string      `json:"to"`
	By    string      `json:"by"`    // day, group or chat
	Lines []SpendLine `json:"spend"` // days in their order; the most expensive of the others first, at most 1,000
	Total SpendLine   `json:"total"` // of the span, beyond the lines too
}

// SpendLine is the usage of a day, a group or a chat.
type SpendLine struct {
	Name    string  `json:"name,omitempty"` // the day, the folder or the chat
	Turns   int64   `json:"turns"`
	Input   int64   `json:"input_tokens"`
	Output  int64   `json:"output_tokens"`
	CostUSD float64 `json:"cost_usd"`
}

// spend lists the usage of agents, by day, group or chat.
func (a API) spend(r *http.Request) (any, error) {
	q, today := r.URL.Query(), a.Now().Local()
	list := factrows.SpendList{
		From: today.AddDate(0, 0, 1-spendDays).Format(time.DateOnly), To: today.Format(time.DateOnly),
		Folder: q.Get("folder"), Limit: maxSpend,
	}
	for name, day := range map[string]*string{"from": &list.From, "to": &list.To} {
		if text := q.Get(name); text != "" {
			if _, err := time.Parse(time.DateOnly, text); err != nil {
				return nil, apierr.New(apierr.BadRequest, "%s=%.40q is not a day, as in 2026-11-23", name, text)
			}
			*day = text
		}
	}
	days, err := factrows.ListSpend(r.Context(), a.Store.Reader, factrows.ByDay, list)
	if err != nil {
		return nil, err
	}
	answer := Spend{From: list.From, To: list.To, By: q.Get("by"), Lines: []SpendLine{}}
	lines := days
	switch answer.By {
	case "", "day":
		answer.By = "day"
	case "group":
		if list.Folder != "" {
			return nil, apierr.New(apierr.BadRequest, "folder is for by=day and by=chat")
		}
		lines, err = factrows.ListSpend(r.Context(), a.Store.Reader, factrows.ByGroup, list)
	case "chat":
		lines, err = factrows.ListSpend(r.Context(), a.Store.Reader, factrows.ByChat, list)
	default:
		return nil, apierr.New(apierr.BadRequest, "by=%.40q is none of day, group, chat", answer.By)
	}
	if err != nil {
		return nil, err
	}
	for _, l := range lines {
		answer.Lines = append(answer.Lines, SpendLine{l.Name, l.Turns, l.Input, l.Output, l.CostUSD})
	}
	for _, d := range days {
		t := &answer.Total
		t.Turns, t.Input, t.Output, t.CostUSD = t.Turns+d.Turns, t.Input+d.Input, t.Output+d.Output, t.CostUSD+d.CostUSD
	}
	return answer, nil
}
