// Package telegram is a fake Telegram: a Bot API server that speaks the documented protocol
// over HTTP, and behind it the people, chats, topics and files that a bot meets there. Tests
// of an adapter, and a person at the page of cmd/faketelegram, play the people and break the
// connection.
//
//	tg := telegram.New(telegram.Options{})
//	base, err := tg.Start("127.0.0.1:0")
//	alice := tg.User("Alice", "alice")
//	team := tg.Supergroup("Team", alice)
//	team.Say(alice, "@arizuko_bot hello")
//	call, err := tg.Wait(ctx, telegram.Answers(team))
//
// The methods with which people act return what they made. A story that cannot be, like an
// edit of a message that is not there, is a mistake of who tells it and panics; Post, Revise
// and SetReactions, which a page needs, return an error instead.
package telegram

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"arizuko/pkg/httpx"
)

// Defaults of Options.
const (
	DefaultToken    = "5000000001:FAKE-token_of-the-fake-Telegram-0001"
	DefaultBotName  = "Arizuko"
	DefaultUsername = "arizuko_bot"
)

// Options say who the bot is. The zero value is a bot as BotFather makes it, with privacy
// mode on, and no limits on the rate.
type Options struct {
	Token       string // "<bot id>:<secret>"
	BotName     string
	BotUsername string
	PrivacyOff  bool // the bot sees all that is said in groups
	RateLimits  bool // refuse what is sent faster than documented
}

// Server is the fake. It may be used from many goroutines.
type Server struct {
	token   string
	methods map[string]method
	rates   *rates // nil without limits

	mu       sync.Mutex
	changed  chan struct{} // closed, and replaced, whenever something happened
	cut      chan struct{} // closed while no connection survives
	me       User
	privacy  bool
	nextUser int64
	nextChat int64
	nextID   int // of messages outside supergroups, which share one sequence
	users    map[int64]User
	rooms    map[int64]*room
	files    map[string]*file // by file_id
	polls    map[string]*poll
	albums   int
	commands []Command
	queue    queue
	calls    []Call
	polled   int
	faults   []Fault
	http     *httpx.Server
	served   chan struct{} // closed when http is done
}

// New makes a Telegram in which nobody lives but the bot.
func New(o Options) *Server {
	s := &Server{
		token: or(o.Token, DefaultToken), privacy: !o.PrivacyOff,
		changed: make(chan struct{}), cut: make(chan struct{}),
		// Beyond 32 bits, as ids are by now.
		nextUser: 5_100_000_001, nextChat: 4_000_000_001, nextID: 1,
		users: map[int64]User{}, rooms: map[int64]*room{}, files: map[string]*file{}, polls: map[string]*poll{},
	}
	id, _, _ := strings.Cut(s.token, ":")
	s.me = User{IsBot: true, FirstName: or(o.BotName, DefaultBotName), Username: or(o.BotUsername, DefaultUsername)}
	s.me.ID, _ = strconv.ParseInt(id, 10, 64)
	s.users[s.me.ID] = s.me
	s.methods = s.methodTable()
	s.queue = newQueue()
	if o.RateLimits {
		s.rates = newRates()
	}
	return s
}

func or(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

// Token is the bot's token.
func (s *Server) Token() string { return s.token }

// Me is the bot.
func (s *Server) Me() User { return s.me }

// Start serves at addr, "host:port" with port 0 for a free one, until Close, and returns the
// base of its URLs, "http://host:port". After Close it may be started again.
func (s *Server) Start(addr string) (string, error) {
	return s.StartWith(addr, s)
}

// StartWith is Start with a handler around the server, which may add pages.
func (s *Server) StartWith(addr string, handler http.Handler) (string, error) {
	server, err := httpx.Listen(addr, handler, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	s.Reachable()
	served := make(chan struct{})
	s.mu.Lock()
	s.http, s.served = server, served
	s.mu.Unlock()
	go func() {
		defer close(served)
		_ = server.Serve() // what it could say, Close is told too
	}()
	return "http://" + server.Addr(), nil
}

// Close breaks every connection and stops serving. What happened can still be looked at.
func (s *Server) Close() error {
	s.Unreachable()
	s.mu.Lock()
	server, served := s.http, s.served
	s.http = nil
	s.mu.Unlock()
	if server == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // open requests are broken off, not waited for
	_ = server.Close(ctx)
	<-served
	return nil
}

// happened wakes whoever waits for news. The lock is held.
func (s *Server) happened() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// tokenForm is what a token looks like; anything else is not even a wrong one.
var tokenForm = regexp.MustCompile(`^[1-9][0-9]*:[A-Za-z0-9_-]+$`)

// ServeHTTP answers /bot<token>/<method> and /file/bot<token>/<path>.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, isFile := strings.CutPrefix(r.URL.Path, "/file")
	rest, isBot := strings.CutPrefix(path, "/bot")
	token, name, found := strings.Cut(rest, "/")
	switch {
	case !s.reachable():
		panic(http.ErrAbortHandler) // the way to close a connection without an answer
	case !isBot || !found || !tokenForm.MatchString(token):
		writeError(w, notFound())
	case token != s.token:
		writeError(w, unauthorized())
	case isFile:
		s.download(w, r, name)
	default:
		s.call(w, r, name)
	}
}

// call answers one call of a method, or lets a fault do it.
func (s *Server) call(w http.ResponseWriter, r *http.Request, name string) {
	m, known := s.methods[strings.ToLower(name)]
	if !known {
		writeError(w, &apiError{code: http.StatusNotFound, description: "Not Found: method not found"})
		return
	}
	p, err := readParams(r)
	refused, api := isAPI(err)
	if err != nil && !api {
		panic(http.ErrAbortHandler) // the request broke off
	}
	f := s.nextFault(m.name)
	if !f.After && !s.pause(r.Context(), f.Delay) {
		panic(http.ErrAbortHandler)
	}
	var result any
	switch {
	case f.refuses() && !f.After:
		s.record(m, p, nil, nil, f)
	case api:
		s.record(m, p, nil, refused, f)
		err = refused
	case m.poll != nil:
		result, err = m.poll(r.Context(), p)
	default:
		result, err = s.run(m, p, f)
	}
	if f.After && !s.pause(r.Context(), f.Delay) || !s.reachable() {
		panic(http.ErrAbortHandler)
	}
	if f.answer(w) {
		return
	}
	if err != nil {
		writeError(w, err)
		return
	}
	writeResult(w, result)
}

// run carries a method out and keeps it in the record.
func (s *Server) run(m method, p params, f Fault) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	chat := p.int("chat_id", 0)
	if s.rates != nil && m.sends {
		if wait := s.rates.wait(chat, time.Now()); wait > 0 {
			err := tooMany(wait)
			s.keep(m, p, nil, err, f)
			return nil, err
		}
	}
	result, err := m.do(p)
	call := s.keep(m, p, result, err, f)
	if s.rates != nil && m.sends && err == nil {
		s.rates.note(chat, len(call.Messages), call.At)
	}
	s.happened()
	return result, err
}

// pause waits for d and reports whether the connection is still there then.
func (s *Server) pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-s.cutting():
	case <-ctx.Done():
	}
	return false
}

type reply struct {
	OK          bool        `json:"ok"`
	Result      any         `json:"result,omitempty"`
	Code        int         `json:"error_code,omitempty"`
	Description string      `json:"description,omitempty"`
	Parameters  *parameters `json:"parameters,omitempty"`
}

type parameters struct {
	MigrateTo  int64 `json:"migrate_to_chat_id,omitempty"`
	RetryAfter int   `json:"retry_after,omitempty"`
}

func writeResult(w http.ResponseWriter, result any) {
	writeJSON(w, http.StatusOK, reply{OK: true, Result: result})
}

func writeError(w http.ResponseWriter, err error) {
	refused, ok := isAPI(err)
	if !ok {
		refused = &apiError{code: http.StatusInternalServerError, description: "Internal Server Error: " + err.Error()}
	}
	answer := reply{Code: refused.code, Description: refused.description}
	if refused.migratedTo != 0 || refused.retryAfter != 0 {
		answer.Parameters = &parameters{MigrateTo: refused.migratedTo, RetryAfter: refused.retryAfter}
	}
	if refused.retryAfter != 0 {
		w.Header().Set("Retry-After", strconv.Itoa(refused.retryAfter))
	}
	writeJSON(w, refused.code, answer)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // who asked is gone
}
