package services

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestServiceReply(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		err  error
		want string
	}{
		{"all is well", nil, "all is well"},
		{"", nil, "Done."},
		{"", apierr.New(apierr.NotFound, "no such request"), "no such request"},
		{"", apierr.New(apierr.Unavailable, "secret detail"), onbodDown},
		{"", errors.New("secret detail"), onbodDown},
		{"", foreignAnswer(t), onbodDown},
	} {
		if got := serviceReply(tt.text, tt.err, onbodDown); got != tt.want {
			t.Errorf("%q, %v: %q", tt.text, tt.err, got)
		}
	}
}

// foreignAnswer is the error of a call to a program that is no daemon.
func foreignAnswer(t *testing.T) error {
	t.Helper()
	return serve(t, http.NotFound).Do(t.Context(), http.MethodPost, "/approve", nil, nil)
}

func TestWhy_NoMessage_SaysWhatToWrite(t *testing.T) {
	h := parallel(t)
	usage := fmt.Sprintf(whyUsage, "/why")
	for _, tt := range []struct{ text, replyTo, want string }{
		{"/why", "", usage}, {"/why did it fail", "", usage}, {"/why -1", "", usage}, {"/why", "elsewhere", fmt.Sprintf(whyUnknown, "/why")}, {"/why 99999", "", "There is no message 99999."},
	} {
		if got := h.asks(tt.text, tt.replyTo); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.text, got, tt.want)
		}
	}
}

// harness has the services of a database with the group main, which none of the other daemons answers.
type harness struct {
	*Services
	t  *testing.T
	st *store.Store
}

// parallel is newHarness for a test that runs beside others.
func parallel(t *testing.T) *harness {
	t.Helper()
	t.Parallel()
	return newHarness(t)
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{t: t, st: storetest.Open(t)}
	h.Services = &Services{Store: h.st.Reader, Log: slog.New(slog.DiscardHandler), Now: time.Now}
	down := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	h.Routd, h.Onbod, h.Dashd = down, down, down
	h.write(func(tx *store.Tx) error {
		_, err := tx.PutGroup(&msg.Group{Folder: "main", Config: []byte(`{}`)})
		return err
	})
	return h
}

// serve starts another service.
func serve(t *testing.T, answer http.HandlerFunc) *httpx.Client {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	client := httpx.NewClient("service", s.URL, "")
	t.Cleanup(client.HTTP.CloseIdleConnections)
	return client
}

func (h *harness) write(fn func(*store.Tx) error) {
	h.t.Helper()
	if err := h.st.Write(h.t.Context(), fn); err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) setConfig(config any) {
	h.t.Helper()
	text := storetest.Must(json.Marshal(config))(h.t)
	h.write(func(tx *store.Tx) error { return storetest.SetConfig(tx, "main", text) })
}

// asks has a command of an operator decided, as a reply to a message, and returns the answer.
func (h *harness) asks(text, replyTo string, change ...func(*msg.Message)) string {
	h.t.Helper()
	m := &msg.Message{ID: 1, ChatJID: "telegram:1", Sender: "telegram:9", Verb: msg.VerbMessage, Content: text, ReplyToID: replyTo}
	for _, f := range change {
		f(m)
	}
	o := h.Decide(h.t.Context(), decide.AskService{Row: m.ID, Service: decide.Gated, Folder: "main", Operator: m.Sender == "telegram:9"}, m)
	if o.Decision != (store.Decision{Disposition: msg.Command, Reason: msg.ReasonCommand}) {
		h.t.Errorf("%s is decided %+v", text, o.Decision)
	}
	return o.Reply
}

func TestAlerts_AreAnsweredByDashd(t *testing.T) {
	h := parallel(t)
	h.Dashd = serve(t, func(w http.ResponseWriter, r *http.Request) {
		httpx.JSON(w, http.StatusOK, map[string]string{"text": r.Method + " " + r.URL.String()})
	})
	for text, want := range map[string]string{
		"/alerts": "POST /v1/alerts?by=telegram%3A9&set=", "/alerts off ": "POST /v1/alerts?by=telegram%3A9&set=off",
	} {
		m := &msg.Message{ID: 1, ChatJID: "telegram:1", Sender: "telegram:9", Verb: msg.VerbMessage, Content: text}
		if o := h.Decide(t.Context(), decide.AskService{Row: 1, Service: decide.Dashd, Operator: true}, m); o.Reply != want {
			t.Errorf("%s: %q, want %q", text, o.Reply, want)
		}
	}
}
