package status

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// maxParameter bounds each parameter, in bytes; no platform's ids come near it.
const maxParameter = 512

// Mount adds GET /status?chat_jid=&thread_id=&topic=&sender=&sender_name=&spend=; the caller adds the login middleware.
func (s *Status) Mount(r chi.Router) { r.Get("/status", s.serve) }

func (s *Status) serve(w http.ResponseWriter, r *http.Request) {
	report, err := s.answer(r)
	if apierr.KindOf(err) == apierr.Internal && store.IsOutage(err) {
		s.Log.Error("status failed", "err", err)
		err = apierr.New(apierr.Unavailable, "%s", store.Reason(err))
	}
	if err != nil {
		httpx.Error(w, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Vary", "Accept")
	if strings.Contains(strings.ToLower(strings.Join(r.Header.Values("Accept"), ",")), "application/json") {
		httpx.JSON(w, http.StatusOK, report)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, report.Text+"\n") // fails only once the client is gone
}

func (s *Status) answer(r *http.Request) (Report, error) {
	at, err := parseWhere(r.URL.RawQuery)
	if err != nil {
		return Report{}, err
	}
	if at.ChatJID != "" {
		return s.Chat(r.Context(), at)
	}
	facts, err := s.Instance(r.Context())
	return facts.report(), err
}

func parseWhere(rawQuery string) (at Where, err error) {
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return at, apierr.New(apierr.BadRequest, "query: %w", err)
	}
	for name, field := range map[string]*string{
		"chat_jid": &at.ChatJID, "thread_id": &at.ThreadID, "topic": &at.Topic, "sender": &at.Sender,
		"sender_name": &at.SenderName,
	} {
		*field = query.Get(name)
		if len(*field) > maxParameter || !utf8.ValidString(*field) {
			return at, apierr.New(apierr.BadRequest, "%s must be text of at most %d bytes", name, maxParameter)
		}
	}
	at.Spend = query.Get("spend") == "true"
	platform, room := msg.SplitJID(at.ChatJID)
	if at.ChatJID != "" && (platform == "" || room == "") {
		return at, apierr.New(apierr.BadRequest, "chat_jid %q is not platform:room", at.ChatJID)
	}
	return at, nil
}
