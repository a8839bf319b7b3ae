package slack

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"
)

// Call is one call of a method. Uploads, downloads and posts to response URLs are calls of
// "upload", "download" and "response_url".
type Call struct {
	At       time.Time
	Method   string
	Params   map[string]string // without the token
	Accepted bool              // it was carried out, even if its answer failed
	Status   int               // of the answer; 0 for a broken connection
	Error    string            // Slack's error; "" without one

	ChannelID string
	TS        string // the message that was sent or changed
	ThreadTS  string // the requested thread, or that of the sent message
	Text      string
	Broadcast bool
	Pings     []string // mentions in the text and blocks that notify users, as written
	Metadata  *Metadata
	Reaction  string
	Files     []Upload
	Message   *Message // sent or edited
}

// Upload is a file that the bot sent.
type Upload struct {
	ID, Name, Title string
	Data            []byte
}

// recorded is a call as it is recorded.
func recorded(name string, p params, result any, err error, f Fault) Call {
	c := Call{
		At: time.Now(), Method: name, Params: p.Clone(), Accepted: err == nil,
		ChannelID: cmp.Or(p.str("channel"), p.str("channel_id")), ThreadTS: p.str("thread_ts"),
		TS:   cmp.Or(p.str("ts"), p.str("timestamp")),
		Text: p.str("text") + p.str("initial_comment"), Broadcast: p.bool("reply_broadcast"), Pings: pings(p),
		Reaction: p.str("name"),
	}
	c.Status, c.Error = answerStatus(err, f)
	c.Metadata, _ = p.metadata()
	switch made := result.(type) {
	case posted:
		c.ChannelID, c.TS, c.Message = made.Channel, made.TS, made.Message
	case completed:
		c.Files, c.TS = made.uploads, made.ts
	}
	if c.Message != nil {
		c.ThreadTS = c.Message.ThreadTS
	}
	return c
}

// answerStatus is the status and the error that the caller gets.
func answerStatus(err error, f Fault) (status int, errorCode string) {
	refused, api := errors.AsType[*apiError](err)
	switch {
	case f.Drop:
		return 0, ""
	case f.Body != "":
		return cmp.Or(f.Status, http.StatusOK), ""
	case f.refuses():
		return cmp.Or(f.Status, http.StatusOK), cmp.Or(f.Error, http.StatusText(f.Status))
	case err == nil:
		return http.StatusOK, ""
	case api:
		return cmp.Or(refused.status, http.StatusOK), refused.code
	}
	return http.StatusOK, "internal_error"
}

// acts reports whether a call was carried out and did more than read.
func (c *Call) acts() bool { return c.Accepted && !c.reads() }

func (c *Call) reads() bool {
	switch c.Method {
	case "auth.test", "apps.connections.open", "files.getUploadURLExternal", "download", "reactions.get",
		"conversations.history", "conversations.replies", "conversations.list", "users.conversations":
		return true
	}
	return strings.HasSuffix(c.Method, ".info")
}

// WaitConfirmed waits until the app has answered every event, command and interaction.
func (s *Server) WaitConfirmed(ctx context.Context) error {
	return s.Until(ctx, func() bool { return s.Pending() == 0 })
}
