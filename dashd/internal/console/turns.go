package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"arizuko/dashd/internal/login"
	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/why"
)

// Limits of the pages of turns.
const (
	maxRows     = 50 // of a list
	maxRuns     = 10
	maxLogShown = 16 << 10 // bytes of a log on a page
	maxLog      = 2 << 20  // bytes of a log by itself
)

// list shows turns: those in a state, of a chat or of a group.
func (c turnPages) list(r *http.Request) (*shown, error) {
	q := r.URL.Query()
	before, err := position(q)
	if err != nil {
		return nil, err
	}
	list := store.TurnList{State: msg.TurnState(q.Get("state")), ChatJID: q.Get("chat"), Folder: q.Get("group"),
		Limit: maxRows + 1}
	of, current := "", q.Get("state")
	switch {
	case list.ChatJID != "":
		of, list.Folder, current = "Turns of the chat "+pages.Line(list.ChatJID), "", "none"
	case list.Folder != "":
		of, list.State, current = "Turns of the group "+pages.Line(list.Folder)+" that have started", "", "none"
	}
	since, until, wrong := between(q)
	if wrong != "" {
		return nil, apierr.New(apierr.BadRequest, wrongTime)
	}
	from, end, err := rows.TurnsBetween(r.Context(), c.Store, since, until)
	if err != nil {
		return nil, err
	}
	list.Before = min(store.OrNewest(before), end)
	span := url.Values{}
	for _, name := range []string{"since", "until"} {
		if at := q.Get(name); at != "" {
			span.Set(name, at)
			of = cmp.Or(of, "Turns") + fmt.Sprintf(", %s %s UTC", name, strings.Replace(at, "T", " ", 1))
		}
	}
	turns, err := c.Store.Turns(r.Context(), list)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(turns, func(t *msg.Turn) bool { return t.ID < from }); i >= 0 {
		turns = turns[:i]
	}
	turns, next := paged(r, turns, "before", func(t *msg.Turn) int64 { return t.ID })
	page, err := c.turnLines(r.Context(), turns)
	page.Of, page.Next, page.Failed = of, next, len(turns) > 0 && list.State == msg.TurnFailed
	page.Choices = choices("/turns", span, current, "", "All", "running", "Running", "queued", "Queued",
		"done", "Answered", "failed", "Failed", "cancelled", "Cancelled")
	return &shown{data: page}, err
}

// turnLines is a list of turns, with the messages that began them.
func (c *site) turnLines(ctx context.Context, turns []*msg.Turn) (page pages.List[*msg.Turn], err error) {
	page.Now, page.Lines, page.Asked = c.Now().UnixMilli(), turns, map[int64]*msg.Message{}
	for _, t := range turns {
		if page.Asked[t.TriggerMessageID], err = c.Store.Message(ctx, t.TriggerMessageID); err != nil {
			return page, err
		}
	}
	page.Titles, err = c.titles(ctx, turnChats(turns))
	return page, err
}

// show shows one turn.
func (c turnPages) show(r *http.Request) (*shown, error) {
	ctx := r.Context()
	t, err := c.turnOf(r)
	if err != nil {
		return nil, err
	}
	page := pages.TurnPage{Now: c.Now().UnixMilli()}
	if page.Turn, err = why.ReadTurn(ctx, c.Store, t, maxRows); err != nil {
		return nil, err
	}
	if page.Titles, err = c.titles(ctx, []string{t.ChatJID}); err != nil {
		return nil, err
	}
	if page.TookIn, err = factrows.FoldedInto(ctx, c.Store, t.ID); err != nil {
		return nil, err
	}
	if page.Parent, err = c.delegatedBy(ctx, t); err != nil {
		return nil, err
	}
	if page.Work, err = c.Store.Progress(ctx, t.ID); err != nil {
		return nil, err
	}
	page.Asks = questions(page.Turn, login.Sender(ctx))
	page.Turn.Batch, page.Turn.Replies = first(page.Turn.Batch), first(page.Turn.Replies)
	page.Turn.Calls = first(page.Turn.Calls)
	page.Turn.Sent = page.Turn.Sent[max(0, len(page.Turn.Sent)-maxRows):] // the newest
	if err := c.addLog(&page); err != nil {
		return nil, err
	}
	return &shown{title: fmt.Sprintf("Turn %d", t.ID), data: page}, nil
}

func turnChats(turns []*msg.Turn) []string {
	return chatsOf(turns, func(t *msg.Turn) string { return t.ChatJID })
}

// first is the beginning of a list, as much of it as a page shows.
func first[T any](list []T) []T { return list[:min(len(list), maxRows)] }

func (c turnPages) turnOf(r *http.Request) (*msg.Turn, error) {
	id, err := idOf(chi.URLParam(r, "id"), "turn")
	if err != nil {
		return nil, err
	}
	t, err := c.Store.Turn(r.Context(), id)
	if err == nil && t == nil {
		err = apierr.New(apierr.NotFound, "There is no turn %d. It may be older than what is kept.", id)
	}
	return t, err
}

// delegatedBy is the turn that delegated a turn, 0 for none.
func (c turnPages) delegatedBy(ctx context.Context, t *msg.Turn) (int64, error) {
	if t.Kind != msg.Delegated {
		return 0, nil
	}
	asked, err := c.Store.Message(ctx, t.TriggerMessageID)
	if err != nil || asked == nil || asked.ForwardedFrom == nil {
		return 0, err
	}
	return asked.ForwardedFrom.TurnID, nil
}

// addLog adds the end of the last process's log.
func (c turnPages) addLog(page *pages.TurnPage) error {
	runs := page.Turn.Runs
	if len(runs) == 0 {
		return nil
	}
	last := runs[len(runs)-1].ID
	text, cut, err := c.logEnd(page.Turn.Folder, last, maxLogShown)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	page.Log, page.LogRun, page.LogCut = text, last, cut
	return err
}

// logEnd reads the end of a run's log, from the beginning of a line.
func (c *site) logEnd(folder string, run int64, limit int64) (text string, cut bool, err error) {
	f, err := os.OpenInRoot(c.Data, path.Join("logs", folder, fmt.Sprintf("run-%d.log", run)))
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "", false, cmp.Or(err, fs.ErrNotExist)
	}
	from := max(0, info.Size()-limit)
	var b strings.Builder
	b.Grow(int(info.Size() - from))
	if _, err = io.Copy(&b, io.NewSectionReader(f, from, limit)); err != nil {
		return "", false, err
	}
	text = b.String()
	if from > 0 {
		if _, rest, found := strings.Cut(text, "\n"); found {
			text = rest
		}
	}
	return pages.Printable(text), from > 0, nil
}

// log answers with the end of a run's log as text.
func (c groupPages) log(w http.ResponseWriter, r *http.Request) error {
	folder := r.URL.Query().Get("group")
	run, err := strconv.ParseInt(r.URL.Query().Get("run"), 10, 64)
	if err != nil || msg.ValidFolder(folder) != nil {
		return apierr.New(apierr.BadRequest, "The address must name a group and the number of a run.")
	}
	text, _, err := c.logEnd(folder, run, maxLog)
	if errors.Is(err, fs.ErrNotExist) {
		return apierr.New(apierr.NotFound, "The log of run %d is not kept any more.", run)
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = io.WriteString(w, text) // fails only once the client is gone
	return nil
}

// prompt shows the agent's prompt: gated makes it again.
func (c turnPages) prompt(r *http.Request) (*shown, error) {
	t, err := c.turnOf(r)
	if err != nil {
		return nil, err
	}
	var answer struct{ Prompt string }
	page := pages.PromptPage{}
	if err := c.ask(r.Context(), "gated", http.MethodGet, fmt.Sprintf("/v1/turns/%d/context", t.ID), nil,
		&answer); err != nil {
		page.Problem = plainText(err.Error())
	}
	page.Prompt = pages.Printable(answer.Prompt)
	up := pages.Link{Path: turnPath(t.ID), Text: fmt.Sprintf("Turn %d", t.ID)}
	return &shown{data: page, up: []pages.Link{up}}, nil
}

// change retries, cancels or takes back a turn, or does it again. With the field rest, files that have changed since
// stay as they are.
func (c turnPages) change(verb, done string) action {
	return func(r *http.Request) (next, notice string, err error) {
		t, err := c.turnOf(r)
		if err != nil {
			return "/turns", "", err
		}
		next = back(r, turnPath(t.ID))
		path := "/v1" + turnPath(t.ID) + "/" + verb
		if r.PostForm.Get("rest") == "true" {
			path += "?rest=true"
		}
		return next, fmt.Sprintf(done, t.ID), c.ask(r.Context(), "gated", http.MethodPost, path, nil, nil)
	}
}

// questions are those of a turn, open ones first, else the newest first. operator is who looks at them.
func questions(t *why.Turn, operator string) (all []pages.Question) {
	for _, open := range []bool{true, false} {
		for _, a := range slices.Backward(t.Asks) {
			q := pages.Question{Ask: a.Ask, Operator: operator}
			if q.Open() == open && !msg.IsRetry(a.AskID) { // the page has a button of its own
				all = append(all, q)
			}
		}
	}
	return all
}

// answerQuestion asks gated to answer a question of a turn with the option that a form chose.
func (c turnPages) answerQuestion(r *http.Request) (next, notice string, err error) {
	turn, err := idOf(chi.URLParam(r, "id"), "turn")
	if err != nil {
		return "/turns", "", err
	}
	next = turnPath(turn)
	id, err := idOf(chi.URLParam(r, "ask"), "question")
	if err != nil {
		return next, "", err
	}
	option, err := strconv.Atoi(r.PostForm.Get("option"))
	if err != nil {
		return next, "", apierr.New(apierr.BadRequest, "Choose one of the buttons of question %d.", id)
	}
	path := fmt.Sprintf("/v1/asks/%d/answer", id)
	err = c.ask(r.Context(), "gated", http.MethodPost, path, map[string]int{"option": option}, nil)
	return next, fmt.Sprintf("Question %d is answered.", id), err
}
