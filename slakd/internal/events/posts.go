package events

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
)

const (
	// maxPost is the largest post, in bytes.
	maxPost = 1 << 20
	// postTimeout bounds the handling of a post: Slack waits for 3 seconds.
	postTimeout = 2500 * time.Millisecond
)

// postHandler handles posts of the Events API: events, and the slash commands and presses of buttons that are posted
// to the same URL. Slack posts an event again unless the answer is a success.
type postHandler struct {
	secret  string // that Slack signs with
	timeout time.Duration
	// posted is called before a post is received. repeated says whether Slack has sent it before.
	posted func(repeated bool)
	// receive stores Slack's post. The reply, unless it is nil, is the answer.
	receive func(ctx context.Context, kind string, payload []byte) (reply any, err error)
}

// ServeHTTP implements http.Handler.
func (h *postHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	signature, err := slack.NewSecretsVerifier(r.Header, h.secret)
	if err != nil { // before the body is read: what has no signature, or an old one, takes no memory
		httpx.Error(w, unsigned(err))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPost))
	if err != nil {
		httpx.Error(w, apierr.New(apierr.BadRequest, "the event is too large or incomplete"))
		return
	}
	_, _ = signature.Write(body) // a hash never fails
	if err := signature.Ensure(); err != nil {
		httpx.Error(w, unsigned(err))
		return
	}
	kind, payload := eventRequest, body
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
	ctx, cancel := context.WithTimeout(r.Context(), h.timeout)
	defer cancel()
	count, _ := strconv.Atoi(r.Header.Get("X-Slack-Retry-Num"))
	h.posted(count > 0)
	reply, err := h.receive(ctx, kind, payload)
	switch {
	case err != nil:
		httpx.Error(w, apierr.New(apierr.Unavailable, "the event cannot be stored now"))
	case reply != nil:
		httpx.JSON(w, http.StatusOK, reply)
	}
}

// form makes of a slash command, or a click, what Socket Mode would send.
func form(body []byte) (kind string, payload []byte) {
	values, err := url.ParseQuery(string(body))
	if err != nil || !values.Has("command") {
		return interactionRequest, []byte(values.Get("payload"))
	}
	command, err := slack.SlashCommandParse(&http.Request{Form: values, PostForm: values})
	if err != nil {
		return commandRequest, nil
	}
	payload, _ = json.Marshal(command) // cannot fail: it holds strings
	return commandRequest, payload
}

func unsigned(err error) error {
	return apierr.New(apierr.Unauthorized, "not signed with SLACK_SIGNING_SECRET: %v", err)
}
