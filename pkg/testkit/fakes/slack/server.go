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
// Texts are as on the wire, with <@U…> for mentions and &lt; for "<"; Encode converts a text as a
// user types it. The methods of users return the message or user that they created. An impossible
// action, like an edit of a message that does not exist, is a mistake of the test and panics; Post,
// TryEdit, SetReaction and TryCommand, which the page needs, return an error instead.
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
	DefaultCommand       = "/arizuko"
	DefaultAckTimeout    = 3 * time.Second
)

// DefaultRetryDelays are Slack's: an event is sent again almost at once, after a minute, and after five.
func DefaultRetryDelays() []time.Duration { return []time.Duration{0, time.Minute, 5 * time.Minute} }

// Options describe the app and its settings. The zero value is an app with all of DefaultScopes, subscribed to all
// events, in Socket Mode, and without rate limits.
type Options struct {
	BotToken      string
	AppToken      string
	SigningSecret string
	Scopes        []string // of the bot token; nil is DefaultScopes
	Commands      []string // slash commands that the app registers; nil is DefaultCommand alone
	EventsURL     string   // the request URL of the Events API; "" is Socket Mode

	AckTimeout time.Duration // how long an event waits for its answer
	// RetryDelays are the pauses before an event is sent again that was not answered, or could not be sent;
	// after that it is lost. nil is DefaultRetryDelays.
	RetryDelays []time.Duration
	RateLimits  bool // refuse calls above the documented rates

	Now func() time.Time // Slack's clock, by which messages and answers are dated; nil is time.Now
}

// Server is the fake. It may be used from many goroutines.
type Server struct {
	fakeserver.Host
	*fakeserver.Record[Call]
	*fakeserver.Faults[Fault]
	*fakeserver.Events[*delivery]
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
	queue    queue
	link     link
	statuses []Status
	lag      int
	floods   map[string]time.Time // methods, and until when the app has to wait
}

// New returns a workspace whose only user is the bot.
func New(o Options) *Server {
	s := &Server{
		Record: fakeserver.NewRecord((*Call).acts),
		Faults: fakeserver.NewFaults((*Fault).matches, (*Fault).prepare), o: o.withDefaults(),
		revoked: map[string]string{}, users: map[string]User{}, rooms: map[string]*room{},
		files: map[string]*file{}, link: newLink(),
		floods: map[string]time.Time{},
	}
	s.Events = fakeserver.NewEvents(&s.mu, s.push, s.pushAgain)
	s.me = s.newUser(DefaultBotName, DefaultBotName, true)
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
	o.AckTimeout = cmp.Or(o.AckTimeout, DefaultAckTimeout)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.RetryDelays == nil {
		o.RetryDelays = DefaultRetryDelays()
	}
	if o.Commands == nil {
		o.Commands = []string{DefaultCommand}
	}
	if o.Scopes == nil {
		o.Scopes = DefaultScopes()
	}
	return o
}

// BotToken is the bot's token, xoxb-….
func (s *Server) BotToken() string { return s.o.BotToken }

// AppToken is the app-level token for Socket Mode, xapp-….
func (s *Server) AppToken() string { return s.o.AppToken }

// SigningSecret is the secret with which the Events API signs its posts.
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
	w.Header().Set("Date", s.o.Now().UTC().Format(http.TimeFormat))
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
	default:
		http.NotFound(w, r)
	}
}

// IsAPIPath reports whether a path is one of Slack's, for a handler that adds pages.
func IsAPIPath(path string) bool {
	for _, prefix := range []string{"/api/", socketPath, uploadPath, filesPath, signInPath} {
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
		m = method{name: name, do: func(params) (any, error) { return nil, errorCode("unknown_method") }}
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
	now := time.Now()
	if wait := s.floods[m.name].Sub(now); wait > 0 {
		return nil, tooMany(fakeserver.Seconds(wait))
	}
	if s.rates == nil {
		return m.do(p)
	}
	if wait := s.rates.call(p.bearer+" "+m.name, m.tier, now); wait > 0 {
		return nil, tooMany(wait)
	}
	if !m.sends {
		return m.do(p)
	}
	channel := p.str("channel")
	if wait := s.rates.wait(channel, now); wait > 0 {
		return nil, tooMany(wait)
	}
	result, err := m.do(p)
	if err == nil {
		s.rates.note(channel, now)
	}
	return result, err
}
