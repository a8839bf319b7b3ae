package console

import (
	"cmp"
	"context"
	"html/template"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
)

const (
	quarter     = 15 * time.Minute // time zones differ by a multiple
	queueFor    = 24 * time.Hour   // how far back turns count that may still have waited
	countWait   = 25 * time.Millisecond
	topSpenders = 5
)

// figures are the charts of a span of time, which take longer to render than others.
type figures struct {
	at     time.Time // when the rows were counted
	charts template.HTML
}

// show shows the charts of two days by hour, of thirty days, or of half a year by week. The rows are counted again once
// a sixtieth of a column has passed, while the page shows the last result.
func (c *figurePages) show(r *http.Request) (*shown, error) {
	spans, now := []string{"hour", "2 days by hour", "day", "30 days", "week", "26 weeks"}, c.Now()
	span := max(0, slices.Index(spans, r.URL.Query().Get("by"))/2)
	page := pages.Figures{Now: now.UnixMilli(), Zone: now.Local().Format("MST")}
	for i := 0; i < len(spans); i += 2 {
		page.Choices = append(page.Choices, pages.Choice{Current: i/2 == span,
			Link: pages.Link{Path: "/figures?by=" + spans[i], Text: spans[i+1]}})
	}
	cols := columns(spans[2*span], now)
	days := cols
	if span == 0 {
		days = columns("day", now)
	}
	last, err := c.counted[span].get(r.Context(), countWait, func(f *figures) bool {
		age := now.Sub(f.at).Milliseconds()
		return age >= 0 && age < (cols[0].Until-cols[0].From)/60
	}, func(ctx context.Context) (*figures, error) {
		charts, err := c.count(ctx, cols, days)
		if err != nil {
			return nil, err
		}
		html, err := c.Pages.Fragment("charts", charts)
		return &figures{now, html}, err
	})
	if last != nil {
		page.At, page.Charts = last.at.UnixMilli(), last.charts
	}
	return &shown{data: page}, err
}

// columns are the last 48 hours, 30 days or 26 weeks.
func columns(by string, now time.Time) (all pages.Columns) {
	now = now.Local()
	n, layout, start := 48, "Mon 15:00", now.Truncate(quarter).Add(-time.Duration(now.Minute())/15*quarter)
	next := func(i int) time.Time { return start.Add(time.Duration(i) * time.Hour) }
	if by != "hour" {
		days := 1
		n, layout, start = spendDays, "Jan 2", time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.Local)
		if by == "week" {
			n, days, start = 26, 7, start.AddDate(0, 0, -(int(now.Weekday())+6)%7)
		}
		next = func(i int) time.Time { return start.AddDate(0, 0, days*i) }
	}
	for i := 1 - n; i <= 0; i++ {
		all = append(all, pages.NewColumn(next(i), next(i+1), layout))
	}
	return all
}

// messageChart counts messages by spans of time, in ms. Of more than the limit it counts the newest.
func (c *site) messageChart(ctx context.Context, cols pages.Columns, span time.Duration, limit int64) (pages.Chart,
	error) {
	made := pages.Chart{ID: "messages", Title: "Messages", Columns: cols, Series: []pages.Series{
		pages.NewSeries("received", 0, "/messages", "direction", "in"),
		pages.NewSeries("sent", 1, "/messages", "direction", "out", "signs", "all"),
		pages.NewSeries("not delivered", 2, "/messages", "state", "failed")}}
	add := func(at int64, counts [3]int) {
		for i, n := range counts {
			made.Add(at, i, float64(n))
		}
	}
	all, err := rows.CountMessages(ctx, c.Store, cols[0].From, span.Milliseconds(), limit, add)
	if !all {
		made.About = "There were more messages: the newest are counted."
	}
	return made, err
}

// count reads the rows of the columns, and draws the charts.
func (c *figurePages) count(ctx context.Context, cols, days pages.Columns) ([]pages.Chart, error) {
	messages, err := c.messageChart(ctx, cols, quarter, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	t, now := newTurnCharts(cols), c.Now().UnixMilli()
	since := cols[0].From - queueFor.Milliseconds()
	if err := rows.EachTurn(ctx, c.Store, since, func(turn rows.TurnTimes) { t.add(turn, now) }); err != nil {
		return nil, err
	}
	for i, column := range cols {
		for j, percent := range []int{95, 50} {
			t.sign.Add(column.From, j, within(t.signs[i], percent))
			t.answer.Add(column.From, j, within(t.answers[i], percent))
		}
	}
	groups, agents, err := c.spendCharts(ctx, days)
	return []pages.Chart{messages, t.results, t.sign, t.answer, t.queue, groups, agents}, err
}

// turnCharts are the charts of turns.
type turnCharts struct {
	results, sign, answer, queue pages.Chart
	signs, answers               [][]int64 // how long users waited, in ms, by column
}

func newTurnCharts(cols pages.Columns) *turnCharts {
	times := []pages.Series{pages.NewSeries("95 % within", 3, "/turns"), pages.NewSeries("half within", 0, "/turns")}
	return &turnCharts{
		results: pages.Chart{ID: "results", Title: "Turns by result", Columns: cols, Series: []pages.Series{
			pages.NewSeries("running or queued", 1, "/turns"),
			pages.NewSeries("answered", 0, "/turns", "state", "done"),
			pages.NewSeries("cancelled", 3, "/turns", "state", "cancelled"),
			pages.NewSeries("failed", 2, "/turns", "state", "failed")}},
		sign: pages.Chart{ID: "sign", Title: "Time to the first sign", Unit: pages.Milliseconds, Over: true,
			Series: times, Columns: cols,
			About: "From a message until the agent began to work on it: chats show that it is typing."},
		answer: pages.Chart{ID: "answer", Title: "Time to the answer", Unit: pages.Milliseconds, Over: true,
			Series: times, Columns: cols, About: "From a message until its turn had ended."},
		queue: pages.Chart{ID: "queue", Title: "Queue", Columns: cols, About: "How many turns waited, on average.",
			Series: []pages.Series{pages.NewSeries("waiting", 4, "/turns")}},
		signs: make([][]int64, len(cols)), answers: make([][]int64, len(cols)),
	}
}

// add counts a turn.
func (c *turnCharts) add(t rows.TurnTimes, now int64) {
	began := cmp.Or(t.Started, t.Ended, now)
	for _, column := range c.queue.Columns {
		if waited := min(began, column.Until) - max(t.Made, column.From); waited > 0 {
			c.queue.Add(column.From, 0, float64(waited)/float64(column.Until-column.From))
		}
	}
	i := c.results.Columns.Place(t.Made)
	if i < 0 {
		return
	}
	earlier := t.Attempts // they failed: the first start is not known
	if t.State == msg.TurnFailed {
		earlier--
	}
	if t.Started != 0 && earlier <= 0 {
		c.signs[i] = append(c.signs[i], t.Started-t.Asked)
	}
	if t.State == msg.TurnDone {
		c.answers[i] = append(c.answers[i], t.Ended-t.Asked)
	}
	ends := []msg.TurnState{msg.TurnDone, msg.TurnCancelled, msg.TurnFailed}
	c.results.Add(t.Made, 1+slices.Index(ends, t.State), 1)
}

// within is the time that a percentage of all does not exceed. It sorts them.
func within(all []int64, percent int) float64 {
	slices.Sort(all)
	if len(all) == 0 {
		return 0
	}
	return float64(max(0, all[(len(all)*percent+99)/100-1]))
}

// spendCharts are the spend by group and by agent.
func (c *figurePages) spendCharts(ctx context.Context, days pages.Columns) (groups, agents pages.Chart, err error) {
	spent, err := rows.DollarsSince(ctx, c.Store, time.UnixMilli(days[0].From).Format(time.DateOnly))
	if err != nil {
		return groups, agents, err
	}
	t, err := c.table(ctx)
	if err != nil {
		return groups, agents, err
	}
	groups = spendChart("group", days, spent)
	names := map[string]string{}
	for _, g := range t.groups {
		if config, err := groupconfig.Parse(g.Config); err == nil {
			names[g.Folder] = config.Agent.Name
		}
	}
	for i := range spent {
		spent[i].Name = groupconfig.AgentTitle(names[spent[i].Name])
	}
	return groups, spendChart("agent", days, spent), nil
}

// spendChart is the spend of those that spent most, and of all others together.
func spendChart(by string, days pages.Columns, spent []rows.DaySpend) pages.Chart {
	made := pages.Chart{ID: "by-" + by, Title: "Spend by " + by, Unit: pages.Dollars, Columns: days}
	whole := map[string]float64{}
	for _, s := range spent {
		whole[s.Name] += s.USD
	}
	names := slices.SortedFunc(maps.Keys(whole), func(a, b string) int {
		return cmp.Or(cmp.Compare(whole[b], whole[a]), cmp.Compare(a, b))
	})
	for i, name := range names[:min(len(names), topSpenders)] {
		filters := []string{}
		if by == "group" {
			filters = []string{by, name}
		}
		made.Series = append(made.Series, pages.NewSeries(name, i, "/turns", filters...))
	}
	if len(names) > topSpenders {
		made.Series = append(made.Series, pages.NewSeries("others", topSpenders, "/turns"))
	}
	for _, s := range spent {
		made.Add(dayStart(s.Day), min(topSpenders, slices.Index(names, s.Name)), s.USD)
	}
	return made
}

// dayStart is when a day began, in unix ms, 0 if it is none.
func dayStart(day string) int64 {
	at, err := time.ParseInLocation(time.DateOnly, day, time.Local)
	if err != nil {
		return 0
	}
	return at.UnixMilli()
}
