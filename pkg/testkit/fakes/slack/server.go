// Package slack is a fake Slack: a workspace with the documented Web API, Socket Mode and Events
// API, with users, channels, threads and files. Tests of an adapter, and the page of
// cmd/fakeplatform, act as the users; tests inject faults.
//
//	sl := slack.New(slack.Options{})
//	base, err := sl.Start("127.0.0.1:0") // base + "/api/" stands for https://slack.com/api/
//	alice := sl.User("Alice", "alice")
//	team := sl.Channel("team", alice)
//	team.Say(alice, sl.Me().Mention()+" hello")
//	call, err := sl.Wait(ctx, slack.Answers(team))
//
// Texts are as on the wire, with <@U…> for mentions and &lt; for "<"; Encode converts what a user
// types. The methods of users return what they created. An impossible action, like an edit of a
// message that does not exist, is a mistake of the test and panics; Post, TryEdit, SetReaction and
// TryCommand, which the page needs, return an error instead.
package slack

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// Defaults of Options.
const (
	DefaultBotToken      = "xoxb-1000000000001-1000000000002-FAKEfakeFAKEfakeFAKEfake"
	DefaultAppToken      = "xapp-1-A0FAKE00001-1000000000003-fakefakefakefakefakefakefakefake"
	DefaultSigningSecret = "fa4e0000fa4e0000fa4e0000fa4e0000"
	DefaultBotName       = "arizuko"
	DefaultTeam          = "Acme"
	DefaultAckTimeout    = 3 * time.Second
	DefaultRetries       = 3
	DefaultPing          = 5 * time.Second
	DefaultMaxFile       = 1 << 30
)

// Options describe the app and its settings. The zero value is an app with all of DefaultScopes and
// all events, in Socket Mode, and without rate limits.
type Options struct {
	BotToken      string
	AppToken      string
	SigningSecret string
	BotName       string
	Team          string   // the workspace's name
	Scopes        []string // of the bot token; nil is DefaultScopes
	Events        []string // subscriptions, as in a manifest: "message.channels", "app_mention"; nil is all
	EventsURL     string   // the request URL of the Events API; "" is Socket Mode

	AckTimeout    time.Duration // how long an event waits for its answer
	Retries       int           // how often it is sent again after that; negative is never
	RetryDelay    time.Duration // after a post that failed at once; 0 is AckTimeout
	Ping          time.Duration // interval of the pings on a socket
	MaxFile       int64         // bytes
	RateLimits    bool          // refuse posts above the documented rates
	NoMessagesTab bool          // users and the bot cannot write in DMs
}

// Server is the fake. It may be used from many goroutines.
type Server struct {
	fakeserver.Host
	*fakeserver.Record[Call]
	*fakeserver.Faults[Fault]
	o       Options
	methods map[string]method
	rates   *rates // nil without limits

	mu       sync.Mutex
	me       User
	ids      int
	lastTS   int64             // microseconds
	revoked  map[string]string // the error by token
	users    map[string]User
	rooms    map[string]*room
	files    map[string]*file
	hooks    map[string]*hook // response URLs by path
	queue    queue
	link     link
	statuses []Status
	lag      int
}

// New returns a workspace whose only user is the bot.
func New(o Options) *Server {
	s := &Server{
		Record: fakeserver.NewRecord((*Call).acts, (*Call).sends), Faults: fakeserver.NewFaults((*Fault).matches, (*Fault).prepare), o: o.withDefaults(),
		revoked: map[string]string{}, users: map[string]User{}, rooms: map[string]*room{},
		files: map[string]*file{}, hooks: map[string]*hook{}, link: newLink(),
	}
	s.me = s.newUser(s.o.BotName, s.o.BotName, true)
	s.me.AppID = s.id("A")
	s.users[s.me.ID] = s.me
	s.methods = s.methodTable()
	if o.RateLimits {
		s.rates = newRates()
	}
	return s
}

func (o Options) withDefaults() Options {
	o.BotToken = cmp.Or(o.BotToken, DefaultBotToken)
	o.AppToken = cmp.Or(o.AppToken, DefaultAppToken)
	o.SigningSecret = cmp.Or(o.SigningSecret, DefaultSigningSecret)
	o.BotName = cmp.Or(o.BotName, DefaultBotName)
	o.Team = cmp.Or(o.Team, DefaultTeam)
	o.RetryDelay = cmp.Or(o.RetryDelay, o.AckTimeout)
	o.AckTimeout = cmp.Or(o.AckTimeout, DefaultAckTimeout)
	o.Retries = cmp.Or(o.Retries, DefaultRetries)
	o.Ping = cmp.Or(o.Ping, DefaultPing)
	o.MaxFile = cmp.Or(o.MaxFile, DefaultMaxFile)
	if o.Scopes == nil {
		o.Scopes = DefaultScopes()
	}
	return o
}

// BotToken is the bot's token, xoxb-….
func (s *Server) BotToken() string { return s.o.BotToken }

// AppToken is the app-level token for Socket Mode, xapp-….
func (s *Server) AppToken() string { return s.o.AppToken }

// SigningSecret is what the Events API signs with.
func (s *Server) SigningSecret() string { return s.o.SigningSecret }

// Me is the bot's user.
func (s *Server) Me() User { return s.me }

// Start serves at addr, "host:port" with port 0 for a free one, until Close, and returns the
// base of its URLs, "http://host:port"; the Web API is at "/api/" below it. It may be started again
// after Close.
func (s *Server) Start(addr string) (string, error) {
	return s.StartWith(addr, s)
}

// StartWith is Start with a handler around the server, which may add pages.
func (s *Server) StartWith(addr string, handler http.Handler) (string, error) {
	base, err := s.Host.StartWith(addr, handler)
	if err == nil {
		s.SetReachable(true)
	}
	return base, err
}

// Close breaks every connection and stops serving. The record remains.
func (s *Server) Close() error {
	s.SetReachable(false)
	err := s.Host.Close()
	s.link.running.Wait() // sockets were hijacked
	s.queue.posting.Wait()
	return err
}

// ServeHTTP answers the Web API, the sockets, and the URLs of files and responses.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.AbortIfUnreachable()
	s.LearnBase(r.Host)
	path := r.URL.Path
	switch {
	case strings.HasPrefix(path, "/api/"):
		s.call(w, r, strings.TrimPrefix(path, "/api/"))
	case path == socketPath:
		s.socket(w, r)
	case strings.HasPrefix(path, uploadPath):
		s.upload(w, r, strings.TrimPrefix(path, uploadPath))
	case strings.HasPrefix(path, filesPath):
		s.download(w, r, strings.TrimPrefix(path, filesPath))
	case path == signInPath:
		writePage(w, signInPage)
	case strings.HasPrefix(path, hookPath):
		s.respond(w, r, path)
	default:
		http.NotFound(w, r)
	}
}

// IsAPIPath reports whether a path is one of Slack's, for a handler that adds pages.
func IsAPIPath(path string) bool {
	for _, prefix := range []string{"/api/", socketPath, uploadPath, filesPath, signInPath, hookPath} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

// call answers one call of a method.
func (s *Server) call(w http.ResponseWriter, r *http.Request, name string) {
	p, err := readParams(r)
	refused, api := errors.AsType[*apiError](err)
	if err != nil && !api {
		fakeserver.Abort() // the client is gone
	}
	m, known := s.methods[name]
	if !known {
		m = method{name: name, token: anyToken, do: func(params) (any, error) { return nil, errorCode("unknown_method") }}
	}
	switch p.bearer {
	case s.o.BotToken:
		w.Header().Set("X-OAuth-Scopes", strings.Join(s.o.Scopes, ","))
	case s.o.AppToken:
		w.Header().Set("X-OAuth-Scopes", "connections:write")
	}
	f := s.NextFault(name)
	var result any
	s.Around(r.Context(), f.Delay, f.After, func() {
		switch {
		case f.refuses() && !f.After:
			s.Add(recorded(name, p, nil, fakeserver.ErrFault, f))
		case api:
			s.Add(recorded(name, p, nil, refused, f))
		default:
			result, err = s.run(m, p, f)
		}
	})
	if f.answer(w) {
		return
	}
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, result)
}

// run carries a method out and records it.
func (s *Server) run(m method, p params, f Fault) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	result, err := s.carryOut(m, p)
	s.Add(recorded(m.name, p, result, err, f))
	return result, err
}

func (s *Server) carryOut(m method, p params) (any, error) {
	if err := s.authorize(m, p); err != nil {
		return nil, err
	}
	if s.rates == nil || !m.sends {
		return m.do(p)
	}
	channel, now := p.str("channel"), time.Now()
	if wait := s.rates.wait(channel, now); wait > 0 {
		return nil, tooMany(wait)
	}
	result, err := m.do(p)
	if err == nil {
		s.rates.note(channel, now)
	}
	return result, err
}
