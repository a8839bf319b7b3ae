package tools

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"arizuko/gated/internal/chats"
	"arizuko/gated/internal/contextobjects"
	"arizuko/pkg/apierr"
	"arizuko/pkg/buildinfo"
	"arizuko/pkg/httpx"
	"arizuko/pkg/store"
)

const (
	// Path is where the server answers.
	Path = "/mcp"
	// callTimeout bounds a call that has a place. It is below the time that httpx leaves for an answer.
	callTimeout = 30 * time.Second
	// waitTimeout bounds a call that waits for a user. It is above the longest ASK_TIMEOUT, a day.
	waitTimeout = 25 * time.Hour
	// maxReading bounds the calls of all runs that may read much. It is below the number of readers of a store.
	maxReading = 2
	// methodCall is MCP's method of tool calls.
	methodCall = "tools/call"
)

// Runs controls runs.
type Runs interface {
	// Drain lets a run finish, without further turns.
	Drain(runID int64)
}

// Services are the rest of gated, as tools see it.
type Services struct {
	Store *store.Store
	Runs  Runs
	Asks  Asks
	Files Files
	// MediaDaily bounds the files of a chat in a day, in bytes.
	MediaDaily int64
	Routd      *httpx.Client // answers about engagement
	Now        func() time.Time
	Operators  map[string]bool // of OPERATORS
	Chats      *chats.Chats
	Zone       string // the time zone of reminders that name none, see reminders.LocalZone
	// Reminders schedules again after a change.
	Reminders interface{ Changed() }
	// Objects are the active context objects of all chats.
	Objects *contextobjects.Objects
	Log     *slog.Logger
}

func (s *Services) now() int64 { return s.Now().UnixMilli() }

// Server serves the tools.
type Server struct {
	tokens   *Tokens
	services *Services
	log      *slog.Logger
	calls    *prometheus.CounterVec
	known    map[string]Kind
	bytes    *semaphore.Weighted // of all runs' larger bodies
	reading  chan struct{}       // has an element for each call that may read much
}

// NewHandler returns the HTTP handler of [Path]. metrics may be nil.
func NewHandler(tokens *Tokens, services *Services, log *slog.Logger, metrics prometheus.Registerer) http.Handler {
	return newHandler(tokens, services, log, metrics, Registry())
}

func newHandler(tokens *Tokens, services *Services, log *slog.Logger, metrics prometheus.Registerer,
	tools []Tool) http.Handler {
	s := &Server{
		tokens: tokens, services: services, log: log, calls: newCalls(metrics, tools), known: map[string]Kind{},
		bytes: semaphore.NewWeighted(maxAllBytes), reading: make(chan struct{}, maxReading),
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "arizuko", Title: "arizuko", Version: buildinfo.Version()},
		&mcp.ServerOptions{
			Instructions: instructions, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		})
	for _, t := range tools {
		s.known[t.Name] = t.Kind
		t.add(server, t.spec())
	}
	server.AddReceivingMiddleware(shortErrors, s.aroundCalls)
	streamable := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{
			Stateless: true, JSONResponse: true, PropagateRequestCancellation: true,
		})
	router := httpx.NewRouter(log, metrics)
	router.With(http.NewCrossOriginProtection().Handler, s.authenticate, s.admit).Handle(Path,
		keepAlive(keepAliveInterval, streamable))
	return router
}

const instructions = "Tools of arizuko, which connects you with a chat. They act for the message that you " +
	"are answering."

// accessKey and callKey are keys of a context.
type (
	accessKey struct{}
	callKey   struct{}
)

// authenticate accepts requests with the token of a live run.
func (s *Server) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		access := s.tokens.Find(r)
		if access == nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			httpx.Error(w, apierr.New(apierr.Unauthorized,
				"want the header Authorization: Bearer with the token of a live run"))
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), accessKey{}, access)))
	})
}

// call is a tool call under way.
type call struct {
	caller  *Caller
	outcome string
	err     error
}

// end notes how a handler ended, and returns the error that the model reads.
func (c *call) end(err error) error {
	if err == nil {
		c.outcome = outcomeOK
		return nil
	}
	text, refused := explain(err)
	c.err, c.outcome = err, outcomeFailed
	if refused {
		c.outcome = outcomeRefused
	}
	return errors.New(text)
}

// aroundCalls bounds, counts and logs tool calls. A panic costs its call alone.
func (s *Server) aroundCalls(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		params, ok := req.GetParams().(*mcp.CallToolParamsRaw)
		if method != methodCall || !ok {
			return next(ctx, method, req)
		}
		access, _ := ctx.Value(accessKey{}).(*Access)
		kind, known := s.known[params.Name]
		if !known {
			s.calls.WithLabelValues(unknownTool, outcomeInvalid).Inc()
			return next(ctx, method, req)
		}
		params.Arguments = leftOut(params.Arguments)
		timeout := callTimeout
		if kind.Waits {
			timeout = waitTimeout
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		defer context.AfterFunc(access.ctx, cancel)()
		c := &call{outcome: outcomeInvalid}
		begun := s.services.Now()
		defer func() {
			if cause := recover(); cause != nil {
				c.outcome = outcomePanic
				s.log.Error("panic in tool", "tool", params.Name, "run", access.run.ID, "panic", cause, "stack",
					string(debug.Stack()))
				result, err = failed("the tool failed inside arizuko, whose log has the reason: go on without it"), nil
			}
			s.note(access, params.Name, c, s.services.Now().Sub(begun))
		}()
		if err := c.enter(ctx, s.services, access, params.Name); err != nil {
			return failed(c.end(err).Error()), nil
		}
		if kind.Bulk {
			release, err := s.beginReading(ctx)
			if err != nil {
				return failed(c.end(err).Error()), nil
			}
			defer release()
		}
		return next(context.WithValue(ctx, callKey{}, c), method, req)
	}
}

// enter waits until a call may begin, and finds out which turn it is for.
func (c *call) enter(ctx context.Context, s *Services, access *Access, tool string) (err error) {
	if err = access.await(ctx); err == nil {
		c.caller, err = s.caller(ctx, access, tool)
	}
	if err == nil {
		c.caller.place, _ = ctx.Value(placeKey{}).(*place)
	}
	return err
}

// beginReading waits until a further call may read much: those of agents leave connections to the database for
// messages.
func (s *Server) beginReading(ctx context.Context) (release func(), err error) {
	select {
	case s.reading <- struct{}{}:
		return func() { <-s.reading }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// failed is a tool's result that is an error.
func failed(text string) *mcp.CallToolResult {
	result := &mcp.CallToolResult{}
	result.SetError(errors.New(text))
	return result
}

// note counts and logs a call, without its arguments.
func (s *Server) note(access *Access, tool string, c *call, took time.Duration) {
	s.calls.WithLabelValues(tool, c.outcome).Inc()
	keys := []any{"tool", tool, "run", access.run.ID, "folder", access.run.Folder, "state", c.outcome, "took", took}
	if c.caller != nil {
		keys = append(keys, "turn", c.caller.Turn.ID, "request", c.caller.Request)
	}
	switch {
	case c.outcome == outcomeFailed:
		s.log.Error("tool call failed", append(keys, "err", c.err)...)
	case c.err != nil:
		s.log.Info("tool call refused", append(keys, "reason", c.err.Error())...)
	default:
		s.log.Info("tool called", keys...)
	}
}

// Outcomes of calls, as labels.
const (
	outcomeOK      = "ok"
	outcomeRefused = "refused" // the caller's mistake, out of reach, or no open turn
	outcomeInvalid = "invalid" // the arguments do not fit the schema
	outcomeFailed  = "failed"
	outcomePanic   = "panic"
)

// unknownTool is the label of calls of tools that do not exist: any text may be called. It is also that of requests
// which were refused before they were read.
const unknownTool = "unknown"

// newCalls counts calls.
func newCalls(reg prometheus.Registerer, tools []Tool) *prometheus.CounterVec {
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "arizuko_tool_calls_total", Help: "Tool calls of agents, by tool and how they ended.",
	}, []string{"tool", "outcome"})
	for _, t := range tools {
		for _, outcome := range []string{outcomeOK, outcomeRefused, outcomeInvalid, outcomeFailed, outcomePanic} {
			calls.WithLabelValues(t.Name, outcome)
		}
	}
	calls.WithLabelValues(unknownTool, outcomeInvalid)
	calls.WithLabelValues(unknownTool, outcomeRefused)
	if reg != nil {
		reg.MustRegister(calls)
	}
	return calls
}
