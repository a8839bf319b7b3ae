// Package telegram is a fake Telegram: a Bot API server that speaks the documented protocol over
// HTTP, with users, chats, topics and files. Tests of an adapter, and the page of
// cmd/fakeplatform, act as the users; tests inject faults.
//
//	tg := telegram.New(telegram.Options{})
//	base, err := tg.Start("127.0.0.1:0")
//	alice := tg.User("Alice", "alice")
//	team := tg.Supergroup("Team", alice)
//	team.Say(alice, "@arizuko_bot hello")
//	call, err := tg.Wait(ctx, telegram.Answers(team))
//
// The methods of users return the message or user that they created. An impossible action, like an edit of a message
// that does not exist, is a mistake of the test and panics; Post, TryEdit and SetReactions, which
// the page needs, return an error instead.
package telegram

import (
	"cmp"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// Defaults of Options.
const (
	DefaultToken    = "5000000001:FAKE-token_of-the-fake-Telegram-001" // the secret has 35 characters, as real ones
	DefaultBotName  = "Arizuko"
	DefaultUsername = "arizuko_bot"
)

// Options describe the bot. The zero value is a bot as BotFather creates it, with privacy mode on,
// and without rate limits.
type Options struct {
	Token      string // "<bot id>:<secret>"
	PrivacyOff bool   // the bot receives all messages of groups
	RateLimits bool   // refuse messages above the documented rates
	// Lacks are methods that the server does not know, as one of an old version that an operator runs.
	Lacks []string
	// FirstID is added to all ids that the fake counts, so that one that is started again repeats none.
	FirstID int
	// Local makes it a server that is run with --local: the paths of files are absolute, and files may have
	// any size.
	Local bool
}

// Server is the fake. It may be used from many goroutines.
type Server struct {
	fakeserver.Host
	*fakeserver.Record[Call]
	*fakeserver.Faults[Fault]
	*fakeserver.Events[update]
	token   string
	methods map[string]method
	rates   *rates // nil without limits

	mu       sync.Mutex
	me       User
	privacy  bool
	nextUser int64
	nextChat int64
	firstID  int
	nextID   int // of messages outside supergroups, which share one sequence
	users    map[int64]User
	rooms    map[int64]*room
	files    map[string]*file // by file_id
	polls    map[string]*poll
	albums   int
	commands map[scope][]Command
	clicks   map[string]*click // presses of buttons, by query
	flooded  time.Time         // until then no message is taken
	queue    queue
	polled   int
	local    bool
}

// New returns a Telegram whose only user is the bot.
func New(o Options) *Server {
	s := &Server{
		Record: fakeserver.NewRecord((*Call).acts),
		Faults: fakeserver.NewFaults((*Fault).matches, (*Fault).prepare),
		token:  cmp.Or(o.Token, DefaultToken), privacy: !o.PrivacyOff,
		// Above 32 bits, as real ids are.
		nextUser: 5_100_000_001, nextChat: 4_000_000_001, firstID: o.FirstID, nextID: o.FirstID + 1,
		users: map[int64]User{}, rooms: map[int64]*room{}, files: map[string]*file{}, polls: map[string]*poll{},
		commands: map[scope][]Command{}, clicks: map[string]*click{}, local: o.Local,
	}
	s.Events = fakeserver.NewEvents(&s.mu, s.push, s.pushAgain)
	id, _, _ := strings.Cut(s.token, ":")
	s.me = User{IsBot: true, FirstName: DefaultBotName, Username: DefaultUsername}
	s.me.ID, _ = strconv.ParseInt(id, 10, 64)
	s.users[s.me.ID] = s.me
	s.methods = s.methodTable()
	for _, name := range o.Lacks {
		delete(s.methods, strings.ToLower(name))
	}
	s.queue = newQueue(o.FirstID)
	if o.RateLimits {
		s.rates = newRates()
	}
	return s
}

// Token is the bot's token.
func (s *Server) Token() string { return s.token }

// Me is the bot's user.
func (s *Server) Me() User {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.me
}

// Start serves at addr, "host:port" with port 0 for a free one, until Close, and returns the
// base of its URLs, "http://host:port". It may be started again after Close.
func (s *Server) Start(addr string) (string, error) {
	return s.StartWith(addr, s)
}

// tokenForm matches a token. A path with anything else is not found, instead of unauthorized.
var tokenForm = regexp.MustCompile(`^[1-9][0-9]*:[A-Za-z0-9_-]+$`)

// ServeHTTP answers /bot<token>/<method> and /file/bot<token>/<path>.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, isFile := strings.CutPrefix(r.URL.Path, "/file")
	rest, isBot := strings.CutPrefix(path, "/bot")
	token, name, found := strings.Cut(rest, "/")
	s.AbortIfUnreachable()
	switch {
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

// call answers one call of a method.
func (s *Server) call(w http.ResponseWriter, r *http.Request, name string) {
	m, known := s.methods[strings.ToLower(name)]
	if !known {
		writeError(w, &apiError{code: http.StatusNotFound, description: "Not Found: method not found"})
		return
	}
	maxFile := maxUpload
	if s.local {
		maxFile = maxLocal
	}
	p, err := readParams(r, maxFile)
	refused, api := errors.AsType[*apiError](err)
	if err != nil && !api {
		fakeserver.Abort() // the client is gone
	}
	f := s.NextFault(m.name)
	var result any
	s.Around(r.Context(), f.Delay, f.After, func() {
		switch {
		case f.refuses() && !f.After:
			s.refused(m, p, fakeserver.ErrFault, f)
		case api:
			s.refused(m, p, refused, f)
		case m.poll != nil:
			result, err = m.poll(r.Context(), p)
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
	writeResult(w, result)
}

// run carries a method out and records it.
func (s *Server) run(m method, p params, f Fault) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	chat := p.int("chat_id", 0)
	if wait := s.floodWait(m, chat); wait > 0 {
		err := tooMany(wait)
		s.Add(recorded(m, p, nil, err, f))
		return nil, err
	}
	result, err := m.do(p)
	call := recorded(m, p, result, err, f)
	if s.rates != nil && m.sends && err == nil {
		s.rates.note(chat, max(len(call.Messages), 1), call.At)
	}
	s.Add(call)
	return result, err
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
	refused, ok := errors.AsType[*apiError](err)
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
	fakeserver.WriteJSON(w, "application/json", status, v)
}
