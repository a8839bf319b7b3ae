package telegramapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// maxAnswer bounds an answer, in bytes; a hundred updates are far smaller.
const maxAnswer = 16 << 20

// Client calls the Bot API. It is safe for concurrent use.
type Client struct {
	base  string // without a slash at its end
	token string
	http  *http.Client
}

// NewClient calls the API at base, https://api.telegram.org for Telegram itself, by a client of
// package adapter.
func NewClient(base, token string, by *http.Client) *Client {
	return &Client{base: strings.TrimSuffix(base, "/"), token: token, http: by}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Params are the parameters of a call. Values other than strings are sent as JSON. Empty strings,
// zeros and nils are left out.
type Params map[string]any

// Upload is a file to be sent.
type Upload struct {
	Field string // of the form, such as "document"
	Name  string
	Data  io.Reader
}

// Call calls a method and decodes its result into out, unless that is nil. It returns an *Error if
// the API refuses. After any other error, except adapter.ErrUnsent, the call may have been carried
// out. No error contains the token.
func (c *Client) Call(ctx context.Context, method string, p Params, out any, files ...Upload) error {
	bot := &tgbotapi.BotAPI{Token: c.token, Client: doer{ctx, c.http}}
	bot.SetAPIEndpoint(c.base + "/bot%s/%s")
	params, err := p.encode()
	if err != nil {
		return fmt.Errorf("%s: %w: %w", method, adapter.ErrUnsent, err)
	}
	var res *tgbotapi.APIResponse
	if len(files) == 0 {
		res, err = bot.MakeRequest(method, params)
	} else {
		res, err = bot.UploadFiles(method, params, requestFiles(files))
	}
	var refused *tgbotapi.Error
	if errors.As(err, &refused) {
		return fmt.Errorf("%s: %w", method, &Error{
			Method: method, Code: res.ErrorCode, Description: refused.Message,
			RetryAfter: time.Duration(refused.RetryAfter) * time.Second,
			MigrateTo:  refused.MigrateToChatID,
		})
	}
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(res.Result, out); err != nil {
		return fmt.Errorf("%s: invalid result: %w", method, err)
	}
	return nil
}

func (p Params) encode() (tgbotapi.Params, error) {
	params := tgbotapi.Params{}
	for key, value := range p {
		switch v := value.(type) {
		case nil:
		case string:
			params.AddNonEmpty(key, v)
		case int64:
			params.AddNonZero64(key, v)
		default:
			text, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			if s := string(text); s != "null" && s != "[]" && s != "false" {
				params[key] = s
			}
		}
	}
	return params, nil
}

func requestFiles(files []Upload) (all []tgbotapi.RequestFile) {
	for _, f := range files {
		all = append(all, tgbotapi.RequestFile{Name: f.Field, Data: tgbotapi.FileReader{Name: f.Name, Reader: f.Data}})
	}
	return all
}

// doer adds a context to the calls of a library that has none.
type doer struct {
	ctx  context.Context //nolint:containedctx // it lives as long as one call
	http *http.Client
}

func (d doer) Do(req *http.Request) (*http.Response, error) {
	res, err := d.http.Do(req.WithContext(d.ctx))
	if err != nil {
		return nil, adapter.TransportError(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case res.StatusCode >= http.StatusInternalServerError:
		return nil, fmt.Errorf("the server answered %s", res.Status)
	case err != nil:
		return nil, err
	case isAnswer(body):
		res.Body = io.NopCloser(bytes.NewReader(body))
		return res, nil
	case res.StatusCode < http.StatusBadRequest:
		return nil, fmt.Errorf("the server answered %s with something else than the Bot API does", res.Status)
	}
	return nil, &Error{Code: res.StatusCode, RetryAfter: adapter.RetryAfter(res.Header), Foreign: true}
}

// isAnswer reports whether a body is an answer of the Bot API. Another one is of a proxy or of a firewall in front of
// it.
func isAnswer(body []byte) bool {
	var answer struct {
		OK *bool `json:"ok"`
	}
	return json.Unmarshal(body, &answer) == nil && answer.OK != nil
}

// Download downloads a file by its id.
func (c *Client) Download(ctx context.Context, fileID string, w io.Writer) error {
	var file struct {
		Path string `json:"file_path"`
	}
	if err := c.Call(ctx, "getFile", Params{"file_id": fileID}, &file); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/file/bot"+c.token+"/"+c.served(file.Path), nil)
	if err != nil {
		return errors.New("Telegram returned an invalid file path")
	}
	return adapter.Download(c.http, req, w, nil)
}

// served is where a file is served. A server that is run with --local names the file on its disk, in the bot's
// folder: the server of its files serves them from there.
func (c *Client) served(path string) string {
	if _, inFolder, ok := strings.Cut(path, "/"+c.token+"/"); ok && strings.HasPrefix(path, "/") {
		return inFolder
	}
	return path
}

// AnswerPress answers the press of a button with a text in a window that only its user sees, "" for none. A text
// has at most 200 characters.
func (c *Client) AnswerPress(ctx context.Context, query, text string) error {
	p := Params{"callback_query_id": query, "text": text}
	if text != "" {
		p["show_alert"] = true
	}
	return c.Call(ctx, "answerCallbackQuery", p, nil)
}

// JID is the address of a chat, or of a sender, of a platform.
func JID(platform string, id int64) string { return msg.JID(platform, strconv.FormatInt(id, 10)) }

// topicSign stands before the topic in the address of a conversation in the direct messages of a channel.
const topicSign = "."

// TopicJID is the address of a topic of the direct messages of a channel: the conversation with one subscriber.
func TopicJID(platform string, chat, topic int64) string {
	return JID(platform, chat) + topicSign + strconv.FormatInt(topic, 10)
}

// CutTopic cuts the topic off an address; direct reports whether it had one.
func CutTopic(jid string) (chatJID string, direct bool) {
	chatJID, _, direct = strings.Cut(jid, topicSign)
	return chatJID, direct
}

// ChatID is the id in the address of a chat of a platform, and that of its topic of direct messages, 0 for none.
func ChatID(platform, jid string) (chat, topic int64, err error) {
	of, room := msg.SplitJID(jid)
	room, rest, direct := strings.Cut(room, topicSign)
	if chat, err = strconv.ParseInt(room, 10, 64); err == nil && direct {
		topic, err = strconv.ParseInt(rest, 10, 64)
	}
	if err != nil || chat == 0 || direct && topic == 0 || of != platform {
		return 0, 0, fmt.Errorf("%.80q is not a Telegram chat", jid)
	}
	return chat, topic, nil
}
