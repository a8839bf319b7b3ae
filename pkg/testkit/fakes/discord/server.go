// Package discord is a fake Discord: the documented REST API and gateway, with users, guilds,
// channels, threads and files. Tests of an adapter, and the page of cmd/fakeplatform, act as the
// users; tests inject faults.
//
//	dc := discord.New(discord.Options{})
//	base, err := dc.Start("127.0.0.1:0")
//	alice := dc.User("Alice", "alice")
//	general := dc.Guild("Team", alice).Channel("general")
//	general.Say(alice, dc.Me().Mention()+" hello")
//	call, err := dc.Wait(ctx, func(c discord.Call) bool { return c.ChannelID == general.ChannelID && c.Text == "Hello Alice" })
//
// The methods of users return what they created. An impossible action, like an edit of a message
// that does not exist, is a mistake of the test and panics; Post, TryEdit, TryThreadFrom and
// SetReaction, which the page needs, return an error instead.
package discord

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// Defaults of Options.
const (
	DefaultToken     = "NTAwMDAwMDAwMDAwMDAwMDAx.FAKE00.token_of-the-fake-Discord-0001"
	DefaultBotName   = "Arizuko"
	DefaultUsername  = "arizuko"
	DefaultHeartbeat = 41_250 * time.Millisecond
)

// Options describe the bot. The zero value is a bot with every privileged intent switched on in
// the developer portal, and without rate limits.
type Options struct {
	Token       string // without "Bot " in front; it begins with the bot's id in base64
	BotName     string
	BotUsername string
	Denied      Intent        // privileged intents that are switched off
	Heartbeat   time.Duration // interval of the gateway's clients
	Patience    time.Duration // how long a session lasts at least without a heartbeat
	RateLimits  bool          // refuse calls above Discord's rates, and sessions that begin too soon
	// ArchivedRefuse refuses messages in an archived thread, instead of taking it out of the archive.
	ArchivedRefuse bool
	// JoinToHear sends the events of a public thread only after the bot has joined it, or was mentioned in it, or was
	// connected again: so users of Discord report, while its documentation says that bots hear all.
	JoinToHear bool
	Now        func() time.Time // the clock of ids and timestamps; time.Now if nil
}

// Server is the fake. It may be used from many goroutines.
type Server struct {
	fakeserver.Host
	*fakeserver.Record[Call]
	*fakeserver.Faults[Fault]
	*fakeserver.Events[event]
	token        string
	revoked      atomic.Bool
	denied       Intent
	heartbeat    time.Duration
	late         time.Duration // without a heartbeat, until a session ends
	clock        func() time.Time
	routes       http.Handler
	rates        *rates // nil without limits
	walls        walls
	archiveStays bool // of Options.ArchivedRefuse
	joinToHear   bool
	open         sync.WaitGroup // connections of the gateway

	mu           sync.Mutex
	me           User
	lastID       uint64
	users        map[string]User
	guilds       map[string]*guild
	channels     map[string]*channel // also threads and private ones
	files        map[string]*file    // by attachment
	posted       []posted            // nonces of the bot's messages
	commands     []Command
	interactions map[string]*interaction // by token
	gateway      gateway
}

// New returns a Discord whose only user is the bot.
func New(o Options) *Server {
	s := &Server{
		Record:       fakeserver.NewRecord((*Call).acts),
		Faults:       fakeserver.NewFaults((*Fault).matches, (*Fault).prepare),
		archiveStays: o.ArchivedRefuse, joinToHear: o.JoinToHear,
		token: cmp.Or(o.Token, DefaultToken), denied: o.Denied, heartbeat: cmp.Or(o.Heartbeat, DefaultHeartbeat),
		clock: o.Now,
		users: map[string]User{}, guilds: map[string]*guild{}, channels: map[string]*channel{},
		files: map[string]*file{}, interactions: map[string]*interaction{},
		gateway: gateway{sessions: map[string]*session{}},
	}
	s.late = max(o.Patience, time.Duration(float64(s.heartbeat)*lateBeats))
	s.Events = fakeserver.NewEvents(&s.mu, s.push, s.pushAgain)
	if s.clock == nil {
		s.clock = time.Now
	}
	s.me = s.newUser(botID(s.token), cmp.Or(o.BotName, DefaultBotName), cmp.Or(o.BotUsername, DefaultUsername), true)
	s.routes = s.routeTable()
	if o.RateLimits {
		s.rates = newRates()
	}
	return s
}

// botID is the id of the bot at the start of a token; "" if it is malformed.
func botID(token string) string {
	first, _, _ := strings.Cut(token, ".")
	id, err := base64.RawStdEncoding.DecodeString(first)
	if _, ok := snowflake(string(id)); err != nil || !ok {
		return ""
	}
	return string(id)
}

// epoch is the epoch of snowflakes, in milliseconds since 1970.
const epoch = 1_420_070_400_000

// newID is the next snowflake: milliseconds of the clock above 22 bits of a counter. Ids increase
// even if the clock does not. The lock is held.
func (s *Server) newID() string {
	s.lastID = max(s.lastID+1, uint64(max(s.clock().UnixMilli()-epoch, 0))<<22)
	return strconv.FormatUint(s.lastID, 10)
}

// now is the time in the precision of Discord.
func (s *Server) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

// snowflake parses an id, and reports whether it is one.
func snowflake(id string) (uint64, bool) {
	n, err := strconv.ParseUint(id, 10, 64)
	return n, err == nil
}

// Token is the bot's token.
func (s *Server) Token() string { return s.token }

// accepts reports whether a token is the bot's, and valid.
func (s *Server) accepts(token string) bool { return token == s.token && !s.revoked.Load() }

// Me is the bot's user. Its application has the same id.
func (s *Server) Me() User { return s.me }

// Start serves at addr, "host:port" with port 0 for a free one, until Close, and returns the
// base of its URLs, "http://host:port". It may be started again after Close.
func (s *Server) Start(addr string) (string, error) {
	return s.StartWith(addr, s)
}

// Close breaks every connection and stops serving. The record remains.
func (s *Server) Close() error {
	err := s.Host.Close()
	s.open.Wait() // the gateway's connections were hijacked
	return err
}

// ServeHTTP answers /api/v9/… and /api/v10/…, /gateway and /attachments/….
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.AbortIfUnreachable()
	s.LearnBase(r.Host)
	s.routes.ServeHTTP(w, r)
}

// await delays a call until held is closed, unless that is nil, its client goes or the fake becomes unreachable.
func (s *Server) await(ctx context.Context, held <-chan struct{}) {
	if held == nil {
		return
	}
	conns := s.ConnContext()
	select {
	case <-held:
	case <-conns.Done():
		fakeserver.Abort()
	case <-ctx.Done():
		fakeserver.Abort()
	}
}

// call answers one call of a route.
func (s *Server) call(w http.ResponseWriter, r *http.Request, route route) {
	if wait := s.ban(); wait > 0 {
		writeBan(w, wait)
		return
	}
	if token, ofBot := strings.CutPrefix(r.Header.Get("Authorization"), "Bot "); route.token &&
		(!ofBot || !s.accepts(token)) {
		writeError(w, unauthorized())
		return
	}
	q, err := readRequest(r, route.name)
	refused, api := errors.AsType[*apiError](err)
	if err != nil && !api {
		fakeserver.Abort() // the client is gone
	}
	f := s.NextFault(route.name)
	var result any
	s.await(r.Context(), f.Held)
	s.Around(r.Context(), f.Delay, f.After, func() {
		switch {
		case f.refuses() && !f.After:
			s.Add(s.recorded(q, nil, fakeserver.ErrFault, f))
		case api:
			s.Add(s.recorded(q, nil, refused, f))
		default:
			result, err = s.run(w, q, route, f)
		}
	})
	switch {
	case f.answer(w):
	case err != nil:
		writeError(w, err)
	case result == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		writeJSON(w, http.StatusOK, result)
	}
}

// run carries a call out and records it.
func (s *Server) run(w http.ResponseWriter, q *request, route route, f Fault) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.limit(w.Header(), q, route); err != nil {
		s.Add(s.recorded(q, nil, err, f))
		return nil, err
	}
	result, err := route.do(q)
	if result, ok := result.(Message); ok && err == nil {
		q.call.Message, q.call.MessageID = &result, result.ID
	}
	s.Add(s.recorded(q, result, err, f))
	return result, err
}

func writeError(w http.ResponseWriter, err error) {
	refused, ok := errors.AsType[*apiError](err)
	if !ok {
		refused = &apiError{status: http.StatusInternalServerError, message: "500: Internal Server Error"}
	}
	if refused.retryAfter > 0 && refused.code == 0 {
		w.Header().Set("Retry-After", strconv.Itoa(fakeserver.Seconds(refused.retryAfter)))
		w.Header().Set("Via", "1.1 google")
		scope := "user"
		if refused.global {
			scope = "global"
			w.Header().Set("X-RateLimit-Global", "true")
		}
		w.Header().Set("X-RateLimit-Scope", scope)
	}
	writeJSON(w, refused.status, refused.body())
}
