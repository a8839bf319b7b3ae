package anthropic

import (
	"cmp"
	"net/http"
	"slices"
	"time"
)

// Fault spoils calls. Without Status, Drop and Body it only delays them.
type Fault struct {
	Method string // "" and "*" are every method
	Times  int    // how many calls; 0 is one, negative is until Heal
	After  bool   // the call is carried out all the same, and only its answer is spoilt: a stream in the middle

	Delay       time.Duration // before the call is carried out, or After it
	Drop        bool          // the connection is closed
	Body        string        // the answer, with Status or 200
	Status      int           // an error answer in the API's form; in a stream an error event
	Description string        // of Status, its usual text if empty
	RetryAfter  int           // seconds; Status is 429 then, if it is not given
}

// InjectFault spoils calls to come. Faults stand in a queue: a call takes the first that means it.
func (s *Server) InjectFault(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		f.Times = cmp.Or(f.Times, 1)
		if f.RetryAfter > 0 {
			f.Status = cmp.Or(f.Status, http.StatusTooManyRequests)
		}
		s.faults = append(s.faults, f)
	}
}

// ClearFaults takes every fault back that Fail announced.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

func (f *Fault) means(method string) bool {
	return f.Method == "" || f.Method == "*" || f.Method == method
}

// nextFault is what is to go wrong with a call, the zero Fault for nothing.
func (s *Server) nextFault(method string) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.faults, func(f Fault) bool { return f.means(method) })
	if i < 0 {
		return Fault{}
	}
	f := s.faults[i]
	s.faults[i].Times--
	if s.faults[i].Times == 0 {
		s.faults = slices.Delete(s.faults, i, i+1)
	}
	return f
}

// spoil answers in place of what would have been answered, and reports whether it did.
func (x *exchange) spoil(f Fault) bool {
	switch {
	case f.Drop:
		panic(http.ErrAbortHandler) // the way to close a connection without an answer
	case f.Body != "":
		x.head(cmp.Or(f.Status, http.StatusOK))
		_, _ = x.w.Write([]byte(f.Body))
	case f.Status != 0:
		x.refuse(f.refused())
	default:
		return false
	}
	return true
}

func (f *Fault) refused() *refused {
	return &refused{status: f.Status, message: f.Description, retryAfter: f.RetryAfter}
}

// SetReachable(false) breaks every connection, and every later one before it is answered, until
// SetReachable(true).
func (s *Server) SetReachable(ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch isCut := closed(s.cut); {
	case ok && isCut:
		s.cut = make(chan struct{})
	case !ok && !isCut:
		close(s.cut)
	}
}

func (s *Server) reachable() bool { return !closed(s.cutting()) }

func (s *Server) cutting() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
