package reminders

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"arizuko/gated/internal/endpoint"
	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Path is the endpoint of gated that lists reminders. Below it are POST {id}/cancel.
const Path = "/v1/reminders"

const (
	listRows = 200 // how many reminders one answer lists
	maxBy    = 200 // bytes of an operator's name
)

// Line is a reminder as operators see it. Times are unix ms, 0 for none.
type Line struct {
	ID        int64             `json:"id"`
	Folder    string            `json:"folder"`
	ChatJID   string            `json:"chat_jid"`
	ThreadID  string            `json:"thread_id"`
	Topic     string            `json:"topic"`
	Kind      msg.ReminderKind  `json:"kind"`
	Body      string            `json:"body"`
	DueAt     int64             `json:"due_at"`
	Cron      string            `json:"cron"`
	TimeZone  string            `json:"time_zone"`
	Missed    msg.Missed        `json:"missed"`
	State     msg.ReminderState `json:"state"`
	NextSlot  int64             `json:"next_slot"`
	LastSlot  int64             `json:"last_slot"`
	LastRow   int64             `json:"last_row"` // messages.id of the row that the last slot made
	CreatedBy string            `json:"created_by"`
	Error     string            `json:"error"`
}

// Cancel is the body of a request to cancel a reminder.
type Cancel struct {
	By string `json:"by"` // the operator
}

// Mount adds the endpoints. The router must check the bearer secret.
func (s *Scheduler) Mount(r chi.Router) {
	r.Get(Path, endpoint.Handler(http.StatusOK, s.list))
	r.Post(Path+"/{id}/cancel", endpoint.Handler(http.StatusOK, s.cancel))
}

// list answers with the reminders of a state, by default active: of a folder, of a chat, or of all groups; after an id.
func (s *Scheduler) list(r *http.Request) (any, error) {
	query := r.URL.Query()
	state, after, err := filter(query)
	if err != nil {
		return nil, err
	}
	list := factrows.ReminderList{Folder: query.Get("folder"), State: state, After: after, Limit: listRows}
	switch chat := query.Get("chat"); {
	case list.Folder != "" && chat != "":
		return nil, apierr.New(apierr.BadRequest, "give folder or chat, not both")
	case chat != "":
		if list.ChatJID, err = s.st.Address(r.Context(), chat); err != nil {
			return nil, err
		}
	case list.Folder == "" && state != msg.ReminderActive:
		return nil, apierr.New(apierr.BadRequest, "reminders that have ended are listed for a folder or a chat")
	}
	all, err := factrows.Reminders(r.Context(), s.st.Reader, list)
	if err != nil {
		return nil, err
	}
	lines := make([]Line, len(all))
	for i, reminder := range all {
		if lines[i], err = s.line(r, reminder); err != nil {
			return nil, err
		}
	}
	return map[string]any{"reminders": lines}, nil
}

func filter(query url.Values) (state msg.ReminderState, after int64, err error) {
	state = msg.ReminderState(query.Get("state"))
	switch state {
	case "":
		state = msg.ReminderActive
	case msg.ReminderActive, msg.ReminderDone, msg.ReminderCancelled:
	default:
		return "", 0, apierr.New(apierr.BadRequest, "state %.40q is none of active, done, cancelled", state)
	}
	if text := query.Get("after"); text != "" {
		if after, err = strconv.ParseInt(text, 10, 64); err != nil {
			return "", 0, apierr.New(apierr.BadRequest, "after %.40q is not an id", text)
		}
	}
	return state, after, nil
}

func (s *Scheduler) line(r *http.Request, m *msg.Reminder) (Line, error) {
	slot, row, err := factrows.LastSlot(r.Context(), s.st.Reader, m.ID)
	return Line{
		ID: m.ID, Folder: m.Folder, ChatJID: m.ChatJID, ThreadID: m.ThreadID, Topic: m.Topic, Kind: m.Kind,
		Body: m.Body, DueAt: m.DueAt, Cron: m.Cron,
		TimeZone: ZoneText(m.TimeZone, time.UnixMilli(cmp.Or(m.NextSlot, m.CreatedAt))), Missed: m.Missed,
		State: m.State, NextSlot: m.NextSlot, LastSlot: slot, LastRow: row, CreatedBy: m.CreatedBy, Error: m.Error,
	}, err
}

// cancel ends an active reminder for an operator.
func (s *Scheduler) cancel(r *http.Request) (any, error) {
	id, err := endpoint.ID(r)
	if err != nil {
		return nil, err
	}
	request, err := httpx.Decode[Cancel](r)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(request.By) == "" || len(request.By) > maxBy {
		return nil, apierr.New(apierr.BadRequest, "by is missing, or longer than %d bytes: it names the operator",
			maxBy)
	}
	before, err := factrows.Reminder(r.Context(), s.st.Reader, id)
	if err != nil {
		return nil, err
	}
	if before == nil {
		return nil, apierr.New(apierr.NotFound, "no reminder %d", id)
	}
	err = s.st.Write(r.Context(), func(tx *store.Tx) error {
		if err := s.endIn(tx, before, request.By, "", s.now()); err != nil {
			return err
		}
		return tx.PutAudit(request.By, "cancel reminder", strconv.FormatInt(id, 10)+" of "+before.Folder+" in "+
			before.ChatJID, s.now())
	})
	if errors.Is(err, store.ErrStale) {
		return nil, apierr.New(apierr.Conflict, "reminder %d is %s", id, before.State)
	}
	if err != nil {
		return nil, err
	}
	before.State, before.NextSlot = msg.ReminderCancelled, 0
	return s.line(r, before)
}
