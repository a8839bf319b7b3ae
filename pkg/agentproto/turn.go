package agentproto

import (
	"errors"
	"slices"
	"time"
)

// Turn is one turn.
type Turn struct {
	ID     string
	Prompt string // inert, whichever gated wrote it: see [Inert]
	// Session is the agent's name of the conversation, "" for a new one.
	Session string
	// Start is the line that began the run: where the agent is, and its tools. Its TurnID,
	// Prompt and SessionID are those of the run's first turn.
	Start Start

	server *server
	state  state
	fold   bool       // it may be folded into another turn
	newer  chan *Turn // turns that may be folded into this one
	folded []string   // ids of turns that were
	saidAt time.Time  // of the last event, or of the first sign
}

// maxNewer is how many turns wait to be received from Turn.Newer. Further ones are answered on their own.
const maxNewer = 64

// Newer gives, while Answer runs, the turns that came meanwhile and may be answered together with this one. What is
// done with one is up to Answer: [Turn.Fold] makes it a part of this turn. Otherwise it is answered after it, as a turn
// of its own. If folding was not announced, nothing comes.
func (t *Turn) Newer() <-chan *Turn { return t.newer }

// AnnounceFold says that Answer looks at [Turn.Newer] from now on, as Agent.Folds does for the whole run. It may be
// called more than once.
func (t *Turn) AnnounceFold() error {
	s := t.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.folds {
		return nil
	}
	s.folds = true
	return WriteEvent(s.out, Event{Features: &Features{Fold: true}})
}

// Offer says which models the agent has, as in [Models]. It may be called more than once.
func (t *Turn) Offer(m Models) error {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	return WriteEvent(t.server.out, Event{Models: &m}.bounded())
}

// Fold makes a turn that was received from Newer a part of this one: the answer is for both. It returns
// [ErrInterrupted] if the turn was interrupted, or the error of the output. To fold a turn twice does nothing.
func (t *Turn) Fold(newer *Turn) error {
	s := t.server
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, newer)
	switch {
	case t.state == dropped || newer.state == dropped:
		return ErrInterrupted
	case i < 0 || t.state != open:
		return nil
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	newer.state = answered
	t.folded = append(t.folded, newer.ID)
	return WriteEvent(s.out, Event{TurnID: newer.ID, Status: StatusRunning})
}

// Reply is the agent's answer.
type Reply struct {
	// Text is markdown, "" for silence. Beyond [MaxResult] it is cut off.
	Text string
	// Session is the name of the conversation from now on, "" to keep it.
	Session string
}

// Failure is an error with its effect on the turn and its session. Other errors
// count as transient.
type Failure struct {
	Kind       Kind          // "" is session
	Text       string        // for operators
	RetryAfter time.Duration // with kind transient; 0 if nothing is known
}

func (f *Failure) Error() string { return f.Text }

// state says which reports about a turn are still allowed.
type state int

const (
	open     state = iota
	answered       // further messages
	dropped        // nothing
)

// Send sends a message at once: before the answer as a part of it, and after it as one more
// message of the turn. It returns [ErrInterrupted] if the turn was interrupted, or the
// error of the output.
func (t *Turn) Send(r Reply) error {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	frame := t.frame(r)
	if t.state == open {
		frame.Final = new(bool)
	}
	return t.write(frame)
}

// Emit reports the agent's progress, before its answer. It returns [ErrInterrupted] if the turn was interrupted, or the
// error of the output. Gated keeps at most four states a second, so there is no need to emit fewer. Texts that are too
// long for an event are cut, so that no tool or model can fail a turn by the length of its name.
func (t *Turn) Emit(e Event) error {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	return t.emit(e)
}

func (t *Turn) emit(e Event) error {
	if t.state == dropped {
		return ErrInterrupted
	}
	e.TurnID, t.saidAt = t.ID, time.Now()
	return WriteEvent(t.server.out, e.bounded())
}

// signInterval is the smallest time between an event and one that says nothing but that the agent works.
const signInterval = 20 * time.Second

// Alive is called when the model gives a sign that users do not see, such as a thought. It emits [StatusRunning] if
// there was no event for a while: after a minute without one, users read that the agent gives no sign.
func (t *Turn) Alive() error {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	if t.saidAt.IsZero() {
		t.saidAt = time.Now()
	}
	if time.Since(t.saidAt) < signInterval {
		return nil
	}
	return t.emit(Event{Status: StatusRunning})
}

// write writes a frame of the turn. The caller holds the lock.
func (t *Turn) write(f Frame) error {
	if t.state == dropped {
		return ErrInterrupted
	}
	if f.NewSessionID != "" {
		t.server.session = f.NewSessionID
	}
	return WriteFrame(t.server.out, f)
}

// end writes the turn's last frame. A failure without an answer is that of the turn alone: those that were folded into
// it are asked again.
func (t *Turn) end(r Reply, failure error) error {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	f := t.frame(r)
	if failure != nil {
		f.fail(failure)
		if f.Result == "" {
			f.TurnID, f.TurnIDs = t.ID, nil
		}
	}
	err := t.write(f)
	if t.state == open {
		t.state = answered
	}
	return err
}

func (t *Turn) drop() {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	t.state = dropped
}

// frame is a frame for the turn and those that were folded into it. The caller holds the lock.
func (t *Turn) frame(r Reply) Frame {
	f := Frame{Status: StatusOK, NewSessionID: r.Session, Result: Cut(r.Text, MaxResult)}
	if len(t.folded) > 0 {
		f.TurnIDs = append([]string{t.ID}, t.folded...)
	} else {
		f.TurnID = t.ID
	}
	return f
}

// fail makes the frame that of a failure.
func (f *Frame) fail(err error) {
	failure := &Failure{Kind: KindTransient, Text: err.Error()}
	_ = errors.As(err, &failure)
	f.Status, f.Kind, f.Error = StatusError, failure.Kind, Truncate(failure.Text, MaxError)
	if f.Kind == KindTransient {
		f.RetryAfter = min(max(failure.RetryAfter, 0), MaxRetryAfter).Seconds()
	}
}

// offer offers the running turn a newer one. The caller holds the lock.
func (t *Turn) offer(newer *Turn) {
	if !t.server.folds || !newer.fold {
		return
	}
	select {
	case t.newer <- newer:
	default:
	}
}
