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
	r.Get(Path, func(w http.ResponseWriter, r *http.Request) {
		lines, err := s.list(r)
		if err != nil {
			httpx.Error(w, err)
			return
		}
		httpx.JSON(w, http.StatusOK, map[string]any{"reminders": lines})
	})
	r.Post(Path+"/{id}/cancel", func(w http.ResponseWriter, r *http.Request) {
		line, err := s.cancel(r)
		if err != nil {
			httpx.Error(w, err)
			return
		}
		httpx.JSON(w, http.StatusOK, line)
	})
}

// list answers with the reminders of a state, by default active: of a folder, of a chat, or of all groups; after an id.
func (s *Scheduler) list(r *http.Request) ([]Line, error) {
	query := r.URL.Query()
	state, after, err := filter(query)
	if err != nil {
		return nil, err
	}
	var all []*msg.Reminder
	switch folder, chat := query.Get("folder"), query.Get("chat"); {
	case folder != "" && chat != "":
		return nil, apierr.New(apierr.BadRequest, "give folder or chat, not both")
	case folder != "":
		all, err = factrows.Reminders(r.Context(), s.st.Reader,
			factrows.ReminderList{Folder: folder, State: state, After: after, Limit: listRows})
	case chat != "":
		if chat, err = s.st.Address(r.Context(), chat); err == nil {
			all, err = factrows.Reminders(r.Context(), s.st.Reader,
				factrows.ReminderList{ChatJID: chat, State: state, After: after, Limit: listRows})
		}
	case state == msg.ReminderActive:
		all, err = factrows.Reminders(r.Context(), s.st.Reader, factrows.ReminderList{After: after, Limit: listRows})
	default:
		return nil, apierr.New(apierr.BadRequest, "reminders that have ended are listed for a folder or a chat")
	}
	if err != nil {
		return nil, busy(err)
	}
	lines := make([]Line, 0, len(all))
	for _, reminder := range all {
		line, err := s.line(r, reminder)
		if err != nil {
			return nil, busy(err)
		}
		lines = append(lines, line)
	}
	return lines, nil
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
func (s *Scheduler) cancel(r *http.Request) (line Line, err error) {
	id, err := strconv.ParseInt(chi.URLParam(r, "id"), 10, 64)
	if err != nil || id <= 0 {
		return line, apierr.New(apierr.BadRequest, "%.40q is not an id", chi.URLParam(r, "id"))
	}
	request, err := httpx.Decode[Cancel](r)
	if err != nil {
		return line, err
	}
	if strings.TrimSpace(request.By) == "" || len(request.By) > maxBy {
		return line, apierr.New(apierr.BadRequest, "by is missing, or longer than %d bytes: it names the operator",
			maxBy)
	}
	before, err := factrows.Reminder(r.Context(), s.st.Reader, id)
	if err != nil {
		return line, busy(err)
	}
	if before == nil {
		return line, apierr.New(apierr.NotFound, "no reminder %d", id)
	}
	err = s.st.Write(r.Context(), func(tx *store.Tx) error {
		if err := s.endIn(tx, before, request.By, "", s.now()); err != nil {
			return err
		}
		return tx.PutAudit(request.By, "cancel reminder", strconv.FormatInt(id, 10)+" of "+before.Folder+" in "+
			before.ChatJID, s.now())
	})
	if errors.Is(err, store.ErrStale) {
		return line, apierr.New(apierr.Conflict, "reminder %d is %s", id, before.State)
	}
	if err != nil {
		return line, busy(err)
	}
	before.State, before.NextSlot = msg.ReminderCancelled, 0
	return s.line(r, before)
}

// busy turns a database error into one that asks the client to retry.
func busy(err error) error {
	return apierr.New(apierr.Unavailable, "the database is not available right now: %w", err)
}
