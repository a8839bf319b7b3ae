// Package eventsapi is the Events API: Slack posts what happens, and posts it again until it hears
// that it has been taken.
package eventsapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/slakd/internal/socket"
)

const (
	// most is how large an event may be, in bytes.
	most = 1 << 20
	// takeMost is how long it may take: Slack waits for 3 seconds.
	takeMost = 2500 * time.Millisecond
)

// Handler answers Slack's posts: events, and the slash commands that are posted to the same
// address.
type Handler struct {
	Secret string // that Slack signs with
	// Take takes what Slack has sent, of a kind of package socket's. The reply, if it is not nil,
	// is the answer. Its error, also where it has taken too long, has Slack post it again.
	Take func(ctx context.Context, kind string, payload []byte) (reply any, err error)
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		httpx.Error(w, apierr.New(apierr.BadRequest, "the event is too large, or broke off"))
		return
	}
	if err := h.verify(r.Header, body); err != nil {
		httpx.Error(w, apierr.New(apierr.Unauthorized, "SLACK_SIGNING_SECRET did not sign this: %v", err))
		return
	}
	kind, payload := socket.Event, body
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		kind, payload = form(body)
	}
	var greeting struct {
		Type      string `json:"type"`
		Challenge string `json:"challenge"`
	}
	if json.Unmarshal(payload, &greeting) == nil && greeting.Type == "url_verification" {
		httpx.JSON(w, http.StatusOK, map[string]string{"challenge": greeting.Challenge})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), takeMost)
	defer cancel()
	reply, err := h.Take(ctx, kind, payload)
	switch {
	case err != nil:
		httpx.Error(w, apierr.New(apierr.Unavailable, "the event cannot be taken now"))
	case reply != nil:
		httpx.JSON(w, http.StatusOK, reply)
	}
}

// form reads a slash command, or what was clicked, as Socket Mode tells of it.
func form(body []byte) (kind string, payload []byte) {
	values, err := url.ParseQuery(string(body))
	if err != nil || !values.Has("command") {
		return "interactive", []byte(values.Get("payload"))
	}
	command, err := slack.SlashCommandParse(&http.Request{Form: values, PostForm: values})
	if err != nil {
		return socket.Command, nil
	}
	payload, _ = json.Marshal(command) // strings alone
	return socket.Command, payload
}

// verify says whether Slack sent this, and within the last five minutes.
func (h *Handler) verify(header http.Header, body []byte) error {
	verifier, err := slack.NewSecretsVerifier(header, h.Secret)
	if err != nil {
		return err
	}
	if _, err := verifier.Write(body); err != nil {
		return err
	}
	return verifier.Ensure()
}
