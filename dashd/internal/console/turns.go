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
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"arizuko/dashd/internal/login"
	"arizuko/dashd/internal/pages"
	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Limits of the pages of turns.
const (
	maxRows     = 50 // of a list
	maxRuns     = 10
	maxText     = 2000     // characters of a message
	maxLogShown = 16 << 10 // bytes of a log on a page
	maxLog      = 2 << 20  // bytes of a log by itself
)

// turns lists turns: those in a state, of a chat or of a group.
func (c *Console) turns(r *http.Request) (*shown, error) {
	q := r.URL.Query()
	before, err := position(q)
	if err != nil {
		return nil, err
	}
	list := store.TurnList{State: msg.TurnState(q.Get("state")), ChatJID: q.Get("chat"), Folder: q.Get("group"),
		Before: before, Limit: maxRows + 1}
	page := pages.TurnsPage{Now: c.Now().UnixMilli()}
	switch {
	case list.ChatJID != "":
		page.Of, list.Folder = "Turns of the chat "+line(list.ChatJID), ""
	case list.Folder != "":
		page.Of, list.State = "Turns of the group "+line(list.Folder)+" that have started", ""
	}
	for _, choice := range []struct {
		state msg.TurnState
		text  string
	}{{"", "All"}, {msg.TurnRunning, "Running"}, {msg.TurnQueued, "Queued"}, {msg.TurnFailed, "Failed"},
		{msg.TurnCancelled, "Cancelled"}} {
		path := "/turns"
		if choice.state != "" {
			path += "?state=" + string(choice.state)
		}
		page.Choices = append(page.Choices, pages.Choice{Link: pages.Link{Path: path, Text: choice.text},
			Current: page.Of == "" && list.State == choice.state})
	}
	rows, err := c.Store.Turns(r.Context(), list)
	if err != nil {
		return nil, err
	}
	if len(rows) > maxRows {
		rows = rows[:maxRows]
		page.Older = older(r, rows[maxRows-1].ID)
	}
	titles := titles{c: c, known: map[string]string{}}
	for _, t := range rows {
		page.Lines = append(page.Lines, turnRow(t, titles.of(r.Context(), t.ChatJID), page.Now))
	}
	return &shown{title: "Turns", template: "turns.html", data: page}, titles.err
}

// position is where a list goes on: below an id, 0 for its beginning.
func position(q url.Values) (int64, error) {
	text := q.Get("before")
	if text == "" {
		return 0, nil
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return 0, apierr.New(apierr.BadRequest, "before=%.40q is not an id", text)
	}
	return id, nil
}

// older is the address of the rest of a list, with the same filters.
func older(r *http.Request, last int64) string {
	q := r.URL.Query()
	q.Del(flashParameter)
	q.Set("before", strconv.FormatInt(last, 10))
	return r.URL.Path + "?" + q.Encode()
}

// titles reads titles of chats, each once. After an error all are "".
type titles struct {
	c     *Console
	known map[string]string
	err   error
}

func (t *titles) of(ctx context.Context, jid string) string {
	if text, known := t.known[jid]; known || t.err != nil {
		return text
	}
	chat, err := t.c.Store.Chat(ctx, jid)
	if t.err = err; chat != nil {
		t.known[jid] = line(chat.Title)
	}
	return t.known[jid]
}

func turnRow(t *msg.Turn, title string, now int64) pages.TurnRow {
	row := pages.TurnRow{
		ID: t.ID, Rows: int64(t.RowCount), Folder: t.Folder, Chat: line(t.ChatJID), Title: title, Topic: line(t.Topic),
		State:  string(t.State),
		Reason: cmp.Or(t.Reason.Meaning(), string(t.Reason)), Error: line(t.Error), CreatedAt: t.CreatedAt,
		StartedAt: t.StartedAt, Ended: t.EndedAt,
		Attempts: t.Attempts, Waits: waits(t, now), NotBefore: t.NotBefore,
		CanCancel: t.State == msg.TurnQueued || t.State == msg.TurnRunning,
	}
	row.CanRetry = t.State == msg.TurnFailed || t.State == msg.TurnCancelled ||
		t.State == msg.TurnQueued && t.NotBefore > now
	return row
}

func waits(t *msg.Turn, now int64) string {
	if t.State != msg.TurnQueued {
		return ""
	}
	words := t.WaitsFor.Meaning()
	if left := t.NotBefore - now; left > 0 {
		words = cmp.Or(words, "it waits") + fmt.Sprintf(", %d s left", (left+999)/1000)
	}
	return words
}

// turn shows one turn.
func (c *Console) turn(r *http.Request) (*shown, error) {
	ctx := r.Context()
	t, err := c.turnOf(r)
	if err != nil {
		return nil, err
	}
	now := c.Now().UnixMilli()
	titles := titles{c: c, known: map[string]string{}}
	page := pages.TurnPage{Now: now, Turn: turnRow(t, titles.of(ctx, t.ChatJID), now), Thread: line(t.ThreadID),
		Surface: t.Surface}
	page.With = t.AnsweredWith
	folded, err := c.Store.FoldedInto(r.Context(), t.ID)
	if err != nil {
		return nil, err
	}
	for _, f := range folded {
		page.TookIn = append(page.TookIn, f.ID)
	}
	if page.Parent, err = c.delegatedBy(ctx, t); err != nil {
		return nil, err
	}
	if page.Messages, page.Answers, err = c.turnMessages(ctx, t.ID); err != nil {
		return nil, err
	}
	if err := c.addWork(ctx, &page, t); err != nil {
		return nil, err
	}
	if page.Asks, err = c.questions(ctx, t, login.Sender(ctx)); err != nil {
		return nil, err
	}
	calls, err := c.Store.ToolCalls(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	for _, call := range calls[:min(len(calls), maxRows)] {
		page.Tools = append(page.Tools, pages.ToolLine{Name: call.Tool, Result: line(string(call.Result)),
			At: call.CreatedAt})
	}
	if err := c.addRuns(ctx, &page, t); err != nil {
		return nil, err
	}
	return &shown{title: fmt.Sprintf("Turn %d", t.ID), template: "turn.html", data: page,
		up: []pages.Link{{Path: "/turns", Text: "Turns"}}}, titles.err
}

func (c *Console) turnOf(r *http.Request) (*msg.Turn, error) {
	text := chi.URLParam(r, "id")
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return nil, apierr.New(apierr.BadRequest, "%.40q is not the number of a turn.", text)
	}
	t, err := c.Store.Turn(r.Context(), id)
	if err == nil && t == nil {
		err = apierr.New(apierr.NotFound, "There is no turn %d. It may be older than what is kept.", id)
	}
	return t, err
}

// delegatedBy is the turn that delegated a turn, 0 for none.
func (c *Console) delegatedBy(ctx context.Context, t *msg.Turn) (int64, error) {
	if t.Kind != msg.Delegated {
		return 0, nil
	}
	asked, err := c.Store.Message(ctx, t.TriggerMessageID)
	if err != nil || asked == nil || asked.ForwardedFrom == nil {
		return 0, err
	}
	return asked.ForwardedFrom.TurnID, nil
}

func (c *Console) turnMessages(ctx context.Context, id int64) (given, answers []pages.TurnMessage, err error) {
	rows, err := c.Store.TurnMessages(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	replies, err := c.Store.TurnReplies(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range rows[:min(len(rows), maxRows)] {
		given = append(given, turnMessage(m))
	}
	for _, m := range replies[:min(len(replies), maxRows)] {
		shown := turnMessage(m)
		shown.State = string(m.OutState)
		shown.Bad = m.OutState == msg.OutFailed || m.OutState == msg.OutAmbiguous
		if shown.Bad && m.Error != "" {
			shown.State += ": " + line(m.Error)
		}
		answers = append(answers, shown)
	}
	return given, answers, nil
}

func turnMessage(m *msg.Message) pages.TurnMessage {
	return pages.TurnMessage{ID: m.ID, At: m.ReceivedAt, From: line(cmp.Or(m.SenderName, m.Sender)),
		Text: cutText(m.Content, maxText), Files: len(m.Attachments)}
}

// addRuns adds the processes that worked on a turn, the newest last, and the end of the last one's log.
func (c *Console) addRuns(ctx context.Context, page *pages.TurnPage, t *msg.Turn) error {
	until := cmp.Or(t.EndedAt, page.Now)
	runs, err := factrows.RunsDuring(ctx, c.Store, t.Folder, t.Topic, t.CreatedAt, until, maxRuns)
	if err != nil {
		return err
	}
	for _, run := range runs {
		page.Runs = append(page.Runs, pages.RunLine{ID: run.ID, Runtime: run.Runtime, Result: run.Result,
			Error: line(run.Error), StartedAt: run.StartedAt, EndedAt: run.EndedAt})
	}
	if len(runs) == 0 {
		return nil
	}
	last := runs[len(runs)-1].ID
	text, cut, err := c.logEnd(t.Folder, last, maxLogShown)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	page.Log, page.LogRun, page.LogCut = text, last, cut
	return err
}

// logEnd reads the end of a run's log, from the beginning of a line.
func (c *Console) logEnd(folder string, run int64, limit int64) (text string, cut bool, err error) {
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
	content, err := io.ReadAll(io.NewSectionReader(f, from, limit))
	if err != nil {
		return "", false, err
	}
	text = string(content)
	if from > 0 {
		if _, rest, found := strings.Cut(text, "\n"); found {
			text = rest
		}
	}
	return printable(text), from > 0, nil
}

// log answers with a run's log as text.
func (c *Console) log(w http.ResponseWriter, r *http.Request) {
	t, err := c.turnOf(r)
	if err != nil {
		c.failed(w, r, err)
		return
	}
	run, err := strconv.ParseInt(r.URL.Query().Get("run"), 10, 64)
	if err != nil {
		c.failed(w, r, apierr.New(apierr.BadRequest, "run=%.40q is not the number of a run.", r.URL.Query().Get("run")))
		return
	}
	c.writeLog(w, r, t.Folder, run)
}

// writeLog answers with the end of a run's log.
func (c *Console) writeLog(w http.ResponseWriter, r *http.Request, folder string, run int64) {
	text, _, err := c.logEnd(folder, run, maxLog)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.failed(w, r, apierr.New(apierr.NotFound, "The log of run %d is not kept any more.", run))
	case err != nil:
		c.failed(w, r, err)
	default:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = io.WriteString(w, text) // fails only once the client is gone
	}
}

// prompt shows what the agent was given: gated makes it again.
func (c *Console) prompt(r *http.Request) (*shown, error) {
	t, err := c.turnOf(r)
	if err != nil {
		return nil, err
	}
	var answer struct{ Prompt string }
	page := pages.PromptPage{}
	if err := ask(r.Context(), c.Gated, "gated", http.MethodGet, fmt.Sprintf("/v1/turns/%d/context", t.ID), nil,
		&answer); err != nil {
		page.Problem = plainText(err.Error())
	}
	page.Prompt = printable(answer.Prompt)
	return &shown{title: "What the agent was given", template: "prompt.html", data: page,
		up: []pages.Link{{Path: "/turns", Text: "Turns"}, {Path: fmt.Sprintf("/turns/%d", t.ID),
			Text: fmt.Sprintf("Turn %d", t.ID)}}}, nil
}

// changeTurn retries or cancels a turn.
func (c *Console) changeTurn(verb, done string) action {
	return func(r *http.Request) (next, notice string, err error) {
		t, err := c.turnOf(r)
		if err != nil {
			return "/turns", "", err
		}
		next = fmt.Sprintf("/turns/%d", t.ID)
		return next, fmt.Sprintf(done, t.ID), ask(r.Context(), c.Gated, "gated", http.MethodPost, "/v1"+next+"/"+verb,
			nil, nil)
	}
}
