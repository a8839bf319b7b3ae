// Package slackapi adds methods of several calls to the library of Slack's Web API, and
// classifies errors.
package slackapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// pageSize is how many messages or channels one call asks for; Slack may return fewer.
const pageSize = 200

// Client calls the API. It is safe for concurrent use.
type Client struct {
	*slack.Client
	base  string // with a slash at its end
	token string
	http  *http.Client
}

// NewClient calls the API at base, https://slack.com/api/ for Slack itself, by a client of package
// adapter. The app's token, which only Socket Mode needs, may be empty.
func NewClient(base, botToken, appToken string, by *http.Client) *Client {
	c := &Client{base: strings.TrimSuffix(base, "/") + "/", token: botToken, http: by}
	c.Client = slack.New(botToken, slack.OptionAPIURL(c.base), slack.OptionAppLevelToken(appToken),
		slack.OptionHTTPClient(doer{by}))
	return c
}

// doer makes the calls of the API.
type doer struct{ *http.Client }

// Do is http.Client.Do. An answer with status 429 that is not JSON is not Slack's, but one of a proxy in front of it,
// which refuses this machine: its error is a *adapter.Failure for the whole account.
func (d doer) Do(req *http.Request) (*http.Response, error) {
	res, err := d.Client.Do(req)
	if err != nil {
		return nil, adapter.TransportError(err)
	}
	if res.StatusCode != http.StatusTooManyRequests {
		return res, nil
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil || !json.Valid(body) {
		return nil, adapter.ForeignRate(res)
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// MessageTS returns the ts of the message that a platform id names, "" if it names none. The ids of edits
// and reactions begin with it.
func MessageTS(platformID string) string {
	ts, _, _ := strings.Cut(platformID, ":")
	seconds, rest, ok := strings.Cut(ts, ".")
	if _, err := strconv.ParseUint(seconds, 10, 64); !ok || err != nil {
		return ""
	}
	if _, err := strconv.ParseUint(rest, 10, 64); err != nil {
		return ""
	}
	return ts
}

// React adds or removes the bot's reaction. If that was done before, it is no error; nor if the message is gone from
// which it is to be removed.
func (c *Client) React(ctx context.Context, channel, ts, emoji string, add bool) error {
	do, already := c.RemoveReactionContext, "no_reaction"
	if add {
		do, already = c.AddReactionContext, "already_reacted"
	}
	err := do(ctx, emoji, slack.NewRefToMessage(channel, ts))
	if code := Code(err); code == already || !add && code == MessageGone {
		return nil
	}
	return err
}

// MessageGone is Slack's code for a message that is not there.
const MessageGone = "message_not_found"

// Delete deletes a message. If it was deleted before, that is no error.
func (c *Client) Delete(ctx context.Context, channel, ts string) error {
	_, _, err := c.DeleteMessageContext(ctx, channel, ts)
	if Code(err) == MessageGone {
		return nil
	}
	return err
}

// Upload is a file to be sent.
type Upload struct {
	Channel, Thread string // Thread is the ts of its first message, "" for none
	Name            string
	Comment         string // mrkdwn
	Data            *os.File
}

// ErrUnseen is wrapped by errors of steps that users do not see, so that they may be repeated.
var ErrUnseen = errors.New("not shown to users")

// Upload sends a file and returns the ts of its message, "" if Slack does not return it yet: it shares
// files asynchronously.
func (c *Client) Upload(ctx context.Context, u Upload) (ts string, err error) {
	info, err := u.Data.Stat()
	if err != nil {
		return "", err
	}
	place, err := c.GetUploadURLExternalContext(ctx, slack.GetUploadURLExternalParameters{FileName: u.Name,
		FileSize: int(info.Size())})
	if err == nil {
		err = c.UploadToURL(ctx, slack.UploadToURLParameters{UploadURL: place.UploadURL, Reader: u.Data,
			Filename: u.Name})
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnseen, err)
	}
	_, err = c.CompleteUploadExternalContext(ctx, slack.CompleteUploadExternalParameters{
		Files: []slack.FileSummary{{ID: place.FileID, Title: u.Name}}, Channel: u.Channel, InitialComment: u.Comment,
		ThreadTimestamp: u.Thread,
	})
	if err != nil {
		return "", err
	}
	return c.shared(ctx, place.FileID, u.Channel), nil
}

// shareDelays are the waits before Slack is asked again where it has shared a file.
func shareDelays() []time.Duration {
	return []time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second, 0}
}

// shared returns the ts of the message that shares a file in a channel, "" if Slack does not say it within some
// seconds.
func (c *Client) shared(ctx context.Context, file, channel string) (ts string) {
	for _, delay := range shareDelays() {
		info, _, _, err := c.GetFileInfoContext(ctx, file, 1, 1)
		if err != nil {
			return ""
		}
		for _, where := range []map[string][]slack.ShareFileInfo{info.Shares.Public, info.Shares.Private} {
			if shares := where[channel]; len(shares) > 0 {
				return shares[0].Ts
			}
		}
		adapter.Pause(ctx, delay)
	}
	return ""
}

// Download downloads a file from a URL of Slack's. Only those receive the token.
func (c *Client) Download(ctx context.Context, from string, w io.Writer) error {
	if !c.owns(from) {
		return errors.New("the file is not on a server of Slack's")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return errors.New("Slack returned an invalid file URL")
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	return adapter.Download(c.http, req, w, func(res *http.Response) error {
		login := res.Request.URL.Path != req.URL.Path && strings.HasPrefix(res.Header.Get("Content-Type"), "text/html")
		if login || res.StatusCode == http.StatusFound { // to the login page, which is on another host
			return &adapter.Failure{Class: msg.Permanent,
				Err: errors.New("Slack refuses the download: add the scope files:read under OAuth & Permissions " +
					"and install the app again")}
		}
		return nil
	})
}

// FileURL asks Slack where a file is. Its error is a *adapter.Failure, permanent if Slack gives no access to
// the file.
func (c *Client) FileURL(ctx context.Context, id string) (string, error) {
	var answer struct {
		File struct {
			Mode        string `json:"mode"`
			Access      string `json:"file_access"`
			External    bool   `json:"is_external"`
			URL         string `json:"url_private"`
			DownloadURL string `json:"url_private_download"`
		} `json:"file"`
	}
	if err := c.call(ctx, "files.info", url.Values{"file": {id}}, &answer); err != nil {
		f := Failure(fmt.Errorf("files.info: %w", err))
		if f.Class == msg.Ambiguous || f.Class == msg.Rate {
			f.Class = msg.Transient
		}
		return "", f
	}
	from := cmp.Or(answer.File.DownloadURL, answer.File.URL)
	switch {
	case answer.File.External || answer.File.Mode == "external":
		return "", &adapter.Failure{Class: msg.Permanent, Err: errors.New("it is not stored on Slack")}
	case from == "":
		return "", &adapter.Failure{Class: msg.Permanent,
			Err: errors.New("Slack gives no access to it")}
	}
	return from, nil
}

// owns reports whether a URL is one of Slack's files, or of the API's own host, as in fakes.
func (c *Client) owns(of string) bool {
	file, err := url.Parse(of)
	if err != nil {
		return false
	}
	base, err := url.Parse(c.base)
	if err != nil {
		return false
	}
	return file.Scheme == "https" && file.Host == "files.slack.com" ||
		file.Scheme == base.Scheme && file.Host == base.Host
}

// IsMember reports whether the bot is in a conversation.
func (c *Client) IsMember(ctx context.Context, channel string) (bool, error) {
	found, err := c.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: channel})
	switch {
	case Code(err) == "channel_not_found":
		return false, nil
	case err != nil:
		return false, err
	}
	return found.IsMember || found.IsIM || found.IsMpIM, nil
}

// InSomeChannel reports whether the bot is in any channel.
func (c *Client) InSomeChannel(ctx context.Context) (bool, error) {
	for cursor := ""; ; {
		channels, next, err := c.GetConversationsContext(ctx, &slack.GetConversationsParameters{
			Cursor: cursor, Limit: pageSize, ExcludeArchived: true,
			Types: []string{"public_channel", "private_channel"},
		})
		if err != nil {
			return false, err
		}
		for i := range channels {
			if channels[i].IsMember {
				return true, nil
			}
		}
		if next == "" {
			return false, nil
		}
		cursor = next
	}
}
