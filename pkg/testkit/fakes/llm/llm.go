// Package llm is a fake of the APIs of other models than Anthropic's, as command line agents call them: OpenAI's
// Responses and Chat Completions, and Google's Gemini, as streams. There is no language model: each request is read as
// one of the fake of Anthropic's API, whose [anthropic.FollowCommand] answers it.
package llm

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"arizuko/pkg/testkit/fakes/anthropic"
	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

// Key is the accepted key.
const Key = "sk-fake-0001-key-of-the-fake-models"

// maxBody bounds a request, in bytes.
const maxBody = 32 << 20

// Server is the fake. It may be used from many goroutines.
type Server struct {
	fakeserver.Host

	mu    sync.Mutex
	calls []Call // oldest first
}

// Call is a request that could be read, with its body.
type Call struct {
	Request anthropic.Request
	Body    []byte
}

// New returns a fake.
func New() *Server { return &Server{} }

// Start serves at addr, "host:port" with port 0 for a free one, until Close, and returns the base of its URLs,
// "http://host:port": of OpenAI's API at /v1.
func (s *Server) Start(addr string) (string, error) { return s.StartWith(addr, s) }

// Calls are the requests, oldest first.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// dialect is how an API asks and answers.
type dialect interface {
	// request reads the conversation, and the names of the tools that are offered.
	request(body []byte) (anthropic.Request, error)
	// events are the data of the stream of an answer.
	events(model string, reply anthropic.Reply, input int) []any
}

// wholeAnswer ends the path of Gemini's method that does not stream.
const wholeAnswer = ":generateContent"

func dialectOf(path string) dialect {
	switch {
	case strings.HasSuffix(path, "/responses"):
		return responses{}
	case strings.HasSuffix(path, "/chat/completions"):
		return chat{}
	case strings.HasSuffix(path, ":streamGenerateContent"), strings.HasSuffix(path, wholeAnswer):
		return gemini{}
	}
	return nil
}

// ServeHTTP answers the methods of the three APIs; anything else is not found.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.AbortIfUnreachable()
	d := dialectOf(r.URL.Path)
	if r.Method != http.MethodPost || d == nil {
		refuse(w, http.StatusNotFound, "no such method")
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+Key && r.Header.Get("x-goog-api-key") != Key {
		refuse(w, http.StatusUnauthorized, "Incorrect API key provided")
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return
	}
	request, err := d.request(body)
	if err != nil || len(request.Messages) == 0 {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("invalid request: %v", err))
		return
	}
	reply := anthropic.FollowCommand(request)
	s.mu.Lock()
	s.calls = append(s.calls, Call{request, body})
	s.mu.Unlock()
	for i := range reply.Tools {
		reply.Tools[i].Name = offered(request, reply.Tools[i].Name)
	}
	s.Hold(r.Context(), reply.Wait)
	if reply.Status != 0 {
		refuse(w, reply.Status, reply.Text)
		return
	}
	size := 0
	for _, m := range request.Messages {
		size += len(m.Content.Text())
	}
	if strings.HasSuffix(r.URL.Path, wholeAnswer) {
		fakeserver.WriteJSON(w, "application/json", http.StatusOK, geminiWhole(body, reply.Text))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range d.events(request.Model, reply, size/4+1) {
		write(w, event)
	}
	if _, isChat := d.(chat); isChat {
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}
}

// offered is the name of the tool that the model was offered: the same, or one that ends with it, as of a server of
// tools.
func offered(r anthropic.Request, name string) string {
	for _, t := range r.Tools {
		if t.Name == name {
			return name
		}
	}
	for _, t := range r.Tools {
		if strings.HasSuffix(t.Name, name) {
			return t.Name
		}
	}
	return name
}

func write(w http.ResponseWriter, event any) {
	data, err := json.Marshal(event)
	if err != nil {
		panic("llm: event: " + err.Error())
	}
	if fields, ok := event.(object); ok {
		if kind, ok := fields["type"]; ok {
			fmt.Fprintf(w, "event: %s\n", kind)
		}
	}
	fmt.Fprintf(w, "data: %s\n\n", data)
	if err := http.NewResponseController(w).Flush(); err != nil {
		fakeserver.Abort()
	}
}

func refuse(w http.ResponseWriter, status int, text string) {
	if text == "" {
		text = http.StatusText(status)
	}
	fakeserver.WriteJSON(w, "application/json", status,
		object{"error": object{"message": text, "code": status, "status": http.StatusText(status), "type": "error"}})
}

type object = map[string]any

func textOf(text string) anthropic.Content { return anthropic.Content{{Type: "text", Text: text}} }

// pieces cuts a text into some pieces, between runes.
func pieces(text string) (all []string) {
	const size = 16
	from := 0
	for at := range text {
		if at-from >= size {
			all = append(all, text[from:at])
			from = at
		}
	}
	return append(all, text[from:])
}

// callID is an id of a call of a tool that is new.
func callID(i int) string { return fmt.Sprintf("call_%d_%d", time.Now().UnixNano(), i) }
